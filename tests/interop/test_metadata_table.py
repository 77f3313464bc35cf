"""Beside Apache Hudi with its metadata table on: it believes what we write into it, and goes on with it.

Every step compares Hudi's four queries with the metadata table on with those with it off, and with our engine; Hudi's
own procedure compares its metadata table with the files.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hudi_assets.engine import HudiTable
from hudi_assets.engine.errors import UnsupportedTable
from hudi_assets.engine.model import Action
from hudi_assets.engine.table.metadata.own_timeline import OwnTimeline
from hudi_assets.engine.table.metadata.partitions import named, table_properties
from scripts.hudi_client import Hudi
from tests.crash.faulty import Crash, DyingStorage
from tests.interop.beside import BATCHES, Beside, frame

pytestmark = [pytest.mark.interop, pytest.mark.timeout(1800)]

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


def test_we_write_and_compact_and_hudi_goes_on(beside: Beside) -> None:
    beside.compact(32)
    beside.is_true("our compaction")
    beside.we_write([2, 11], 95, 20, **beside.willing)
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
    beside.we_write([2, 11], 95, 20, **beside.willing)
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
        beside.we_write([number], 95 + number, 20 + number, **beside.willing)
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
        config = HudiTable.open(str(storage.base), settings={**beside.settings, **beside.willing}).config
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
    beside.we_write([2], 95, 20, **beside.willing)
    assert "record_index" not in named(table_properties(storage)["hoodie.table.metadata.partitions"])
    beside.is_true("our write")
    beside.hudi_writes([2, 40], 100, 30, **index)
    assert "record_index" in named(table_properties(storage)["hoodie.table.metadata.partitions"])
    beside.is_true("built anew")
