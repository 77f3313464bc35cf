"""Beside Apache Hudi with its metadata table on: it believes what we write into it, and goes on with it.

Every step compares Hudi's four queries with the metadata table on with those with it off, and with our engine; Hudi's
own procedure compares its metadata table with the files.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_assets.engine import HudiTable
from hudi_assets.engine.errors import UnsupportedTable
from hudi_assets.engine.metadata_table.own_timeline import OwnTimeline
from hudi_assets.engine.metadata_table.partitions import named, table_properties
from hudi_assets.engine.model import Action, Plan
from hudi_assets.engine.queries.query import read_task
from scripts.hudi_client import Hudi
from scripts.hudi_rows import Rows, by_key, differences, read_with_hudi_rs
from tests.crash.faulty import Crash, DyingStorage
from tests.interop.tables import START, hudi_options, rows
from tests.local_session import Frame
from tests.metadata_tables import in_metadata_table, on_disk

pytestmark = [pytest.mark.interop, pytest.mark.timeout(1800)]

MINUTE = 60_000
ON = {"hoodie.metadata.enable": "true", "hoodie.enable.data.skipping": "true"}
BATCHES = ((range(9), 0), ([0, 1, 2, 9], 30), ([3, 4, 5], 60), ([1, 9, 10], 90))
SETTINGS = {
    "hudi_assets.writers": "stopped",
    "hoodie.payload.event.time.field": "ts",
    "hudi_assets.event.time.unit": "ms",
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": "2",
    "hudi_assets.query.grace": "0s",
}


def frame(table: pa.Table) -> Any:
    return Frame(table)


@dataclass(frozen=True)
class Beside:
    """A table that one release of Hudi and we use in turn."""

    hudi: Hudi
    path: Path
    version: int
    session: Any

    @property
    def options(self) -> dict[str, str]:
        more = {**ON, "hoodie.write.table.version": str(self.version), "hoodie.write.auto.upgrade": "false"}
        return {**hudi_options(name="t"), **more}

    @property
    def table(self) -> HudiTable:
        return HudiTable.open(str(self.path), settings=SETTINGS)

    def batch(self, numbers: Any, start: int, mark: int) -> pa.Table:
        return rows(numbers, lambda n: start + n, mark)

    def hudi_writes(self, numbers: Any, start: int, mark: int, **more: str) -> None:
        self.hudi.write(self.path, self.batch(numbers, start, mark), {**self.options, **more})

    def we_write(self, numbers: Any, start: int, mark: int, **settings: str) -> None:
        table = HudiTable.open(str(self.path), settings={**SETTINGS, **settings})
        table.upsert(self.session, frame(self.batch(numbers, start, mark)))

    def plan(self, minute: int) -> Plan:
        plan = self.table.plan_compaction(threshold=START + minute * MINUTE)
        assert isinstance(plan, Plan), plan
        return plan

    def compact(self, minute: int) -> None:
        self.table.execute_compaction(self.session, self.plan(minute).instant)

    def hudi_compacts(self, op: str) -> None:
        assert self.hudi.compaction(self.path, op, **{**ON, "hoodie.write.table.version": str(self.version)})

    def read(self, query: str, on: bool, **more: str) -> Rows:
        options = ON if on else {"hoodie.metadata.enable": "false"}
        return by_key(self.hudi.read(self.path, query, options=options, **more))

    def snapshot(self) -> Rows:
        return self.read("snapshot", True)

    def is_true(self, step: str) -> Rows:
        """All of Hudi's queries are the same with and without the metadata table; it lists what is there."""
        assert self._listed() == on_disk(self.table), step
        assert self.table.validate() == (), step
        assert self._found_by_hudi() == [], step
        writes = [i.timestamp for i in self.table.state().timeline.completed(Action.DELTA_COMMIT, Action.COMMIT)]
        queries: list[tuple[str, dict[str, str]]] = [("snapshot", {}), ("read_optimized", {})]
        cleaned = bool(self.table.state().timeline.completed(Action.CLEAN))
        queries += [("time_travel", {"as_of": writes[-1 if cleaned else len(writes) // 2]})]
        begin = writes[-2 if cleaned else 0]
        queries += [("incremental", {"begin": begin, "end": end}) for end in writes[-2:] if end > begin]
        for query, more in queries:
            unlike = differences(self.read(query, False, **more), self.read(query, True, **more))
            assert not unlike, f"{step}, {query} {more}:\n" + "\n".join(unlike)
        answer = self.snapshot()
        if self.version == 9 and not self.table.state().timeline.pending_compactions:
            # hudi-rs lists through the metadata table of versions 8 and 9.
            unlike = differences(answer, by_key(read_with_hudi_rs(str(self.path), "snapshot")))
            assert not unlike, f"{step}, hudi-rs:\n" + "\n".join(unlike)
        tasks = self.table.snapshot_tasks()
        ours = by_key(pa.Table.from_batches([batch for task in tasks for batch in read_task(task)]))
        assert not (unlike := differences(ours, answer)), f"{step}:\n" + "\n".join(unlike)
        return answer

    def _listed(self) -> dict[str, dict[str, int]]:
        """What the metadata table lists. 0.15.0 gives the log files of a write that it takes back one byte."""
        there = on_disk(self.table)
        return {
            partition: {
                name: there.get(partition, {}).get(name, size) if size == 1 and name.startswith(".") else size
                for name, size in files.items()
            }
            for partition, files in in_metadata_table(self.table).items()
        }

    def _found_by_hudi(self) -> list[Any]:
        """What `validate_metadata_table_files` finds. It takes a table of the catalog only."""
        folder = self.path / ".hoodie"
        kept = (folder / "hoodie.properties").read_bytes()
        name = f"t{abs(hash(self.path))}"
        self.hudi.ask("sql", statement=f"create table if not exists {name} using hudi location '{self.path}'")
        found = self.hudi.ask("sql", statement=f"call validate_metadata_table_files(table=>'{name}')")["rows"]
        # Creating it has written the properties anew, without those that Hudi does not know.
        (folder / "hoodie.properties").write_bytes(kept)
        (folder / ".hoodie.properties.crc").unlink(missing_ok=True)
        assert isinstance(found, list)
        return found


CASES = [
    pytest.param(("0.15.0", 6), id="0.15.0-v6"),
    pytest.param(("1.2.0", 6), id="1.2.0-v6", marks=pytest.mark.slow),
    pytest.param(("1.2.0", 9), id="1.2.0-v9", marks=pytest.mark.slow),
]


@pytest.fixture(params=CASES)
def beside(request: pytest.FixtureRequest, session: Any, path: Path) -> Beside:
    """Four upserts of Hudi's, with its metadata table."""
    release, version = request.param
    hudi: Hudi = request.getfixturevalue("hudi_0_15" if release == "0.15.0" else "hudi_1_2")
    found = Beside(hudi, path, version, session)
    for mark, (numbers, start) in enumerate(BATCHES):
        found.hudi_writes(numbers, start, mark)
    assert "files" in named(table_properties(found.table.state().storage)["hoodie.table.metadata.partitions"])
    return found


def _willing(beside: Beside) -> dict[str, str]:
    return {"hudi_assets.metadata.switch.off": "true"} if beside.version == 9 else {}


def test_we_write_and_compact_and_hudi_goes_on(beside: Beside) -> None:
    beside.compact(32)
    beside.is_true("our compaction")
    beside.we_write([2, 11], 95, 20, **_willing(beside))
    beside.is_true("our write")
    beside.hudi_writes([0, 2, 12], 100, 21)
    after = beside.is_true("their write")
    beside.hudi_compacts("run")
    beside.hudi_writes([3], 110, 22, **{"hoodie.clean.automatic": "true", "hoodie.cleaner.commits.retained": "1"})
    assert len(beside.is_true("their compaction and clean")) == len(after)


@pytest.mark.slow
def test_hudi_appends_beside_our_plan_and_executes_it(beside: Beside) -> None:
    before = beside.snapshot()
    plan = beside.plan(32)
    assert beside.is_true("pending") == before
    beside.hudi_writes([0, 3, 12], 100, 20)
    after = beside.is_true("appended beside it")
    assert after != before
    beside.hudi_compacts("execute")
    assert plan.instant in {i.timestamp for i in beside.table.state().timeline.completed(Action.COMMIT)}
    assert beside.is_true("executed by Hudi") == after


@pytest.mark.slow
def test_what_we_take_back_is_gone(beside: Beside) -> None:
    before = beside.snapshot()
    beside.we_write([2, 11], 95, 20, **_willing(beside))
    beside.table.rollback(beside.table.state().timeline.last_write or "")
    assert beside.is_true("our write rolled back") == before
    beside.hudi_writes([2, 14], 96, 19)
    beside.table.rollback(beside.table.state().timeline.last_write or "")
    assert beside.is_true("their write rolled back") == before
    beside.table.unschedule(beside.plan(32).instant)
    assert beside.is_true("our plan unscheduled") == before
    beside.compact(32)
    assert beside.is_true("compacted") == before
    beside.table.clean(policy="KEEP_LATEST_FILE_VERSIONS", retained=1)
    assert beside.is_true("our clean") == before
    beside.hudi_writes([0, 12], 100, 21)
    beside.is_true("their write")


@pytest.mark.slow
def test_our_compaction_of_the_metadata_table(beside: Beside) -> None:
    for number in range(12):
        beside.we_write([number], 95 + number, 20 + number, **_willing(beside))
    state = beside.table.state()
    own = OwnTimeline.read(state.storage, state.layout)
    indexes = named(table_properties(state.storage)["hoodie.table.metadata.partitions"])
    assert own.last_compaction is not None
    assert {*indexes} <= {"files", "column_stats"}
    beside.is_true("our writes")
    beside.hudi_writes([0, 12], 120, 40)
    beside.is_true("their write")


def _crash(beside: Beside, place: Callable[[str], bool], *, after: bool) -> None:
    """A write of ours that dies at the last storage operation of this kind."""

    def act(storage: DyingStorage) -> None:
        config = HudiTable.open(str(storage.base), settings={**SETTINGS, **_willing(beside)}).config
        HudiTable(storage, config).upsert(beside.session, frame(beside.batch([1, 30], 130, 99)))

    rehearsal = beside.path.with_name("rehearsal")
    shutil.copytree(beside.path, rehearsal)
    storage = DyingStorage(str(rehearsal))
    act(storage)
    shutil.rmtree(rehearsal)
    number = [n for n, operation in enumerate(storage.operations, 1) if place(operation)][-1]
    with pytest.raises(Crash):
        act(DyingStorage(str(beside.path), number, after=after))


@pytest.mark.slow
def test_hudi_takes_our_dead_write_back(beside: Beside) -> None:
    def completes(operation: str) -> bool:
        return operation.startswith("create .hoodie/") and "/metadata/" not in operation and "deltacommit" in operation

    def in_metadata(operation: str) -> bool:
        return operation.startswith("create .hoodie/metadata/files/")

    for place, after in ((completes, False), (in_metadata, True)):
        before = beside.snapshot()
        _crash(beside, place, after=after)
        assert beside.snapshot() == before
        beside.hudi_writes([13], 140, 50)
        gone_on = beside.is_true("their write after our crash")
        assert gone_on.keys() - before.keys() <= {key for key in gone_on if "k13" in key[1]}
        beside.table.recover()
        assert beside.is_true("recovered") == gone_on


@pytest.mark.slow
def test_an_index_that_a_write_would_make_untrue(hudi_1_2: Hudi, session: Any, path: Path) -> None:
    beside = Beside(hudi_1_2, path, 9, session)
    index = {"hoodie.metadata.global.record.level.index.enable": "true"}
    for mark, (numbers, start) in enumerate(BATCHES[:2]):
        beside.hudi_writes(numbers, start, mark, **index)
    storage = beside.table.state().storage
    assert "record_index" in named(table_properties(storage)["hoodie.table.metadata.partitions"])
    with pytest.raises(UnsupportedTable, match="record_index"):
        beside.we_write([2], 95, 20)
    beside.compact(32)
    beside.is_true("our compaction beside a record index")
    beside.we_write([2], 95, 20, **_willing(beside))
    assert "record_index" not in named(table_properties(storage)["hoodie.table.metadata.partitions"])
    beside.is_true("our write")
    beside.hudi_writes([2, 40], 100, 30, **index)
    assert "record_index" in named(table_properties(storage)["hoodie.table.metadata.partitions"])
    beside.is_true("built anew")
