"""Undoing, repairing and racing on tables of versions 8 and 9, where compactions stand at past instants."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_assets.engine import HudiTable
from hudi_assets.engine.errors import Conflict, CorruptTable, InvalidInput, UnsupportedTable
from hudi_assets.engine.model import Action, NoPlan, Plan
from hudi_assets.engine.storage import LocalStorage
from hudi_assets.engine.table.layout.v8 import LayoutV8
from hudi_assets.engine.timeline.instants import Timeline, format_instant, instant_ms
from hudi_assets.engine.transaction.publish import Publisher
from tests.tables.local_session import LocalSession
from tests.tables.steps import rows_in

SCHEMA = pa.schema([("id", pa.int64()), ("ts", pa.int64()), ("v", pa.int64())])
LATER = {"requested", "inflight"}


class Clock:
    """Ten milliseconds pass whenever it is read, so that there is room between instants."""

    def __init__(self) -> None:
        self.ms = 1_790_000_000_000

    def __call__(self) -> int:
        self.ms += 10
        return self.ms


@dataclass
class Table:
    """A table of version 9 with one file group, and its clock."""

    path: Path
    session: LocalSession
    clock: Clock

    @property
    def timeline(self) -> Path:
        return self.path / ".hoodie/timeline"

    def open(self, **settings: str) -> HudiTable:
        config = HudiTable.open(str(self.path), settings=settings).config
        return HudiTable(LocalStorage(str(self.path)), config, now_ms=self.clock)

    def put(self, key: int, ts: int, v: int = 0) -> str:
        frame: Any = self.session.rows([{"id": key, "ts": ts, "v": v}], SCHEMA)
        instant = self.open().upsert(self.session, frame).instant
        assert instant is not None
        return instant

    def plan(self, threshold: int) -> Plan:
        plan = self.open().plan_compaction(threshold=threshold)
        assert isinstance(plan, Plan), plan
        return plan

    def execute(self, plan: Plan, **settings: str) -> None:
        self.open(**settings).execute_compaction(self.session, plan.instant)

    def compact(self, threshold: int) -> Plan:
        plan = self.plan(threshold)
        self.execute(plan)
        return plan

    def rows(self) -> dict[int, tuple[int, int]]:
        tasks = self.open().snapshot_tasks()
        found = [(r["id"], (r["ts"], r["v"])) for r in rows_in(tasks)]
        assert len(found) == len(dict(found))
        return dict(found)

    def in_base_files(self) -> set[int]:
        tasks = self.open().state()
        names = [base.path for base in tasks.view.base_files]
        return {key for name in names for key in pa.parquet.read_table(self.path / name)["id"].to_pylist()}

    def only(self, pattern: str) -> Path:
        (found,) = self.path.glob(pattern)
        return found

    def begins(self, instant: str) -> None:
        """Another engine's write appears on the timeline, as Java leaves it: empty files."""
        for state in LATER:
            (self.timeline / f"{instant}.deltacommit.{state}").touch()


def moved(instant: str, ms: int) -> str:
    return format_instant(instant_ms(instant, "UTC") + ms, "UTC")


@pytest.fixture
def table(session: LocalSession, tmp_path: Path) -> Table:
    HudiTable.create(
        str(tmp_path / "t"),
        SCHEMA,
        record_key=["id"],
        ordering_field="ts",
        buckets=1,
        data_latency="1s",
        table_version=9,
    )
    return Table(tmp_path / "t", session, Clock())


@pytest.fixture
def three(table: Table) -> list[str]:
    """Delta commits of event times 1000, 2000 and 9000, each with a row of its own."""
    return [table.put(key, ts) for key, ts in ((1, 1_000), (2, 2_000), (3, 9_000))]


# ------------------------------------------------------------------------------- planning and executing


def test_a_plan_stands_between_what_it_takes_and_what_it_leaves(table: Table, three: list[str]) -> None:
    plan = table.plan(2_000)
    completions = table.open().state().timeline.completions
    assert completions[three[1]] < plan.instant < three[2]
    assert not plan.operations[0].carried_over
    before = table.rows()
    table.execute(plan)
    assert table.rows() == before
    assert table.in_base_files() == {1, 2}


def test_completions_are_later_than_everything_on_the_timeline(table: Table, three: list[str]) -> None:
    plan = table.plan(2_000)
    last = table.put(4, 9_500)
    before = max(table.open().state().timeline.completions.values())
    table.execute(plan)
    completions = table.open().state().timeline.completions
    assert completions[plan.instant] == max(completions.values()) > before > last


@pytest.mark.parametrize("finish", [False, True])
def test_a_write_that_turns_up_below_a_published_plan_stops_it(table: Table, three: list[str], finish: bool) -> None:
    """Its writer took the instant before the plan was published, and its file came after."""
    plan = table.plan(2_000)
    table.begins(moved(plan.instant, -1))
    with pytest.raises(Conflict, match="requested before the plan's instant and is unfinished"):
        table.execute(plan)
    for state in LATER:
        (table.timeline / f"{moved(plan.instant, -1)}.deltacommit.{state}").unlink()
    if finish:
        table.execute(plan)
        assert table.in_base_files() == {1, 2}
        return
    # As if the third had been requested below the plan: the plan is moved above it instead.
    above = moved(three[2], 1)
    assert above < table.open().state().timeline.completions[three[2]]
    (table.timeline / f"{plan.instant}.compaction.requested").rename(table.timeline / f"{above}.compaction.requested")
    before = table.rows()
    with pytest.raises(Conflict, match=rf"{three[2]}, requested before the plan's instant, is not in the plan") as told:
        table.open().execute_compaction(table.session, above)
    assert "Unschedule" in str(told.value)
    table.open().unschedule(above)
    assert table.rows() == before
    assert three[2] > table.compact(2_000).instant


def test_an_unfinished_write_keeps_the_plan_below_it(table: Table, three: list[str]) -> None:
    table.begins(moved(three[2], -1))
    plan = table.plan(10_000)
    assert plan.instant < moved(three[2], -1)
    assert [Path(p).name.split("_")[1].split(".")[0] for op in plan.operations for p in op.log_files] == three[:2]
    table.execute(plan)
    assert table.in_base_files() == {1, 2}


def test_nothing_is_planned_where_an_unfinished_write_is_older(table: Table, three: list[str]) -> None:
    table.begins(moved(three[0], -1))
    planned = table.open().plan_compaction(threshold=10_000)
    assert isinstance(planned, NoPlan)
    assert planned.reason


# ------------------------------------------------------------------------------- completing


class _Behind(Publisher):
    """A process that read the timeline before another one completed the instant, without any lock."""

    def read_timeline(self) -> Timeline:
        return Timeline(())


def test_two_completions_of_one_instant_do_not_both_stand(table: Table, three: list[str]) -> None:
    first = next(table.timeline.glob(f"{three[2]}_*.deltacommit"))
    publisher = Publisher(LocalStorage(str(table.path)), LayoutV8(9), table.clock)
    behind = _Behind(publisher.storage, publisher.layout, table.clock)
    with pytest.raises(Conflict, match="completed already"):
        publisher.complete(three[2], Action.DELTA_COMMIT, b"")
    with pytest.raises(Conflict, match="by another process too"):
        behind.complete(three[2], Action.DELTA_COMMIT, b"")
    assert list(table.timeline.glob(f"{three[2]}_*")) == [first]


def test_what_two_completions_left_is_found(table: Table, three: list[str]) -> None:
    """A process that died between creating its file and looking whether it was alone."""
    first = next(table.timeline.glob(f"{three[2]}_*.deltacommit"))
    completion = first.name.split("_")[1].split(".")[0]
    second = first.with_name(first.name.replace(completion, moved(completion, 1)))
    second.write_bytes(first.read_bytes())
    (finding,) = table.open().validate()
    assert finding.kind == "two_completions"
    assert Path(finding.path).name in (first.name, second.name)


def test_two_executions_of_a_plan(table: Table, three: list[str]) -> None:
    """The one that comes second has nothing left of it, on the timeline or beside the base file."""
    plan = table.plan(2_000)
    table.execute(plan)
    with pytest.raises(InvalidInput, match="completed already"):
        table.execute(plan)
    table.only(f"*_{plan.instant}.parquet")
    table.only(f".hoodie/timeline/{plan.instant}_*.commit")


# ------------------------------------------------------------------------------- taking back


def test_unschedule_leaves_what_was_appended_since(table: Table, three: list[str]) -> None:
    plan = table.plan(2_000)
    table.put(1, 9_600, v=7)
    table.begins(format_instant(table.clock(), "UTC"))  # nor does an unfinished write hold it up
    before = table.rows()
    assert before[1] == (9_600, 7)
    table.open().unschedule(plan.instant)
    assert table.open().pending_plan() is None
    assert table.rows() == before
    assert table.open().leftovers() == ()


def test_unschedule_takes_a_dead_attempt_with_it(table: Table, three: list[str]) -> None:
    """Its instant is a past one: a base file that stayed would count once the timeline's start has passed it."""
    plan = table.plan(2_000)
    before = table.rows()
    table.execute(plan)
    table.only(f".hoodie/timeline/{plan.instant}_*.commit").unlink()
    assert table.rows() == before
    table.open().unschedule(plan.instant)
    assert list(table.path.glob("*.parquet")) == []
    assert not [p for p in table.timeline.iterdir() if p.name.startswith(plan.instant)]
    assert table.rows() == before


def test_a_rolled_back_attempt_leaves_a_plan_that_works(table: Table, three: list[str]) -> None:
    plan = table.plan(2_000)
    table.execute(plan)
    table.only(f".hoodie/timeline/{plan.instant}_*.commit").unlink()
    result = table.open().rollback(plan.instant)
    assert result.still_planned
    assert list(table.path.glob("*.parquet")) == []
    table.execute(plan)
    assert table.in_base_files() == {1, 2}


def test_rollback_of_a_write_deletes_its_log_files(table: Table, three: list[str]) -> None:
    result = table.open().rollback(three[2])
    assert (result.files_deleted, result.rollback_blocks) == (1, 0)
    assert not list(table.path.glob(f".*_{three[2]}.log.*"))
    assert set(table.rows()) == {1, 2}


def test_what_was_compacted_is_rolled_back_after_its_compaction(table: Table, three: list[str]) -> None:
    plan = table.compact(2_000)
    table.open().rollback(three[2])  # it came after the compaction's instant
    assert set(table.rows()) == {1, 2}
    with pytest.raises(InvalidInput, match=rf"{plan.instant} is later.*Roll {plan.instant} back first"):
        table.open().rollback(three[1])
    assert set(table.rows()) == {1, 2}
    table.open().rollback(plan.instant)
    table.open().rollback(three[1])
    assert set(table.rows()) == {1}


def test_a_compaction_is_taken_back_below_later_writes(table: Table, three: list[str]) -> None:
    plan = table.compact(2_000)
    table.put(1, 9_700, v=5)
    before = table.rows()
    table.open().rollback(plan.instant)
    assert table.rows() == before
    assert list(table.path.glob("*.parquet")) == []
    again = table.compact(2_000)
    assert table.rows() == before
    assert again.instant < three[2]


def test_a_compaction_that_another_plan_reads_stays(table: Table, three: list[str]) -> None:
    first = table.compact(1_000)
    second = table.plan(2_000)
    with pytest.raises(InvalidInput, match=rf"{second.instant} is planned with its file .*{first.instant}.parquet"):
        table.open().rollback(first.instant)
    table.open().unschedule(second.instant)
    table.open().rollback(first.instant)
    assert set(table.rows()) == {1, 2, 3}


def test_a_compaction_that_a_later_one_built_on_stays(table: Table, three: list[str]) -> None:
    first, second = table.compact(1_000), table.compact(2_000)
    with pytest.raises(InvalidInput, match=f"{second.instant} is later"):
        table.open().rollback(first.instant)


def test_a_compaction_whose_base_file_a_savepoint_names_stays(table: Table, three: list[str]) -> None:
    plan = table.compact(2_000)
    savepoint = table.open().savepoint(three[2])
    with pytest.raises(InvalidInput, match=rf"Savepoint {savepoint} names its file"):
        table.open().rollback(plan.instant)
    table.open().delete_savepoint(savepoint)
    table.open().rollback(plan.instant)
    assert set(table.rows()) == {1, 2, 3}


def test_restore_past_and_future_compactions(table: Table, three: list[str]) -> None:
    """One at an instant before the savepoint changes no answer and stays, one after it goes."""
    savepoint = table.open().savepoint()
    before = table.rows()
    early = table.compact(2_000)
    table.put(1, 9_600, v=1)
    table.put(3, 9_700, v=2)
    late = table.compact(9_600)
    assert early.instant < savepoint < late.instant
    table.open().restore(savepoint)
    assert table.rows() == before
    completed = {i.timestamp for i in table.open().state().timeline.completed(Action.COMMIT)}
    assert completed == {early.instant}
    assert [p.name.rsplit("_", 1)[-1] for p in table.path.glob("*.parquet")] == [f"{early.instant}.parquet"]
    assert table.open().validate() == ()


# ------------------------------------------------------------------------------- what is nobody's


def _copy_as(source: Path, old: str, new: str) -> Path:
    copy = source.with_name(source.name.replace(old, new))
    copy.write_bytes(source.read_bytes())
    return copy


@pytest.mark.parametrize("suffix", ["log", "parquet"])
def test_files_of_no_instant_go_before_they_count(table: Table, three: list[str], suffix: str) -> None:
    """A dead write's log file; the base file of a compaction at a past instant that was withdrawn."""
    plan = table.compact(2_000)
    source = table.only(f".*_{three[2]}.log.*") if suffix == "log" else table.only(f"*_{plan.instant}.parquet")
    old = three[2] if suffix == "log" else plan.instant
    orphan = _copy_as(source, old, moved(old, 1))
    before = table.rows()
    assert table.open().stats().orphans == (orphan.name,)
    (said,) = table.open().leftovers()
    assert moved(old, 1) in said
    (finding,) = table.open().validate()
    assert (finding.kind, finding.path, finding.hint) == ("orphan", orphan.name, "Run recover.")
    table.open().recover()
    assert not orphan.exists()
    assert table.rows() == before
    assert table.open().validate() == ()


def test_archiving_never_passes_such_a_file(table: Table) -> None:
    keep = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.cleaner.commits.retained": "1"}
    instants = [table.put(key, 1_000 + key) for key in range(6)]
    orphan = _copy_as(table.only(f".*_{instants[1]}.log.*"), instants[1], moved(instants[1], 1))
    table.open(**keep).archive()
    state = table.open().state()
    assert state.timeline.start is not None
    assert state.timeline.start > instants[1], "nothing was archived"
    assert not orphan.exists()
    assert set(table.rows()) == set(range(6))


def test_a_file_that_the_start_has_passed_is_found(table: Table) -> None:
    """Its rows are shown, by Hudi too; nothing but the archived timeline tells that its write was never completed."""
    keep = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.cleaner.commits.retained": "1"}
    instants = [table.put(key, 1_000 + key) for key in range(6)]
    table.open(**keep).archive()
    assert table.open().validate() == ()
    dead = _copy_as(table.only(f".*_{instants[1]}.log.*"), instants[1], moved(instants[1], 1))
    (finding,) = table.open().validate()
    assert (finding.kind, finding.path) == ("phantom_file", dead.name)


def test_a_file_of_an_action_that_is_not_known_here_is_somebodys(table: Table, three: list[str]) -> None:
    orphan = _copy_as(table.only(f".*_{three[2]}.log.*"), three[2], moved(three[2], 1))
    (table.timeline / f"{moved(three[2], 1)}.somethingnew.requested").touch()
    assert table.open().stats().orphans == ()
    table.open().recover()
    assert orphan.exists()


def test_a_log_file_that_remains_is_missed(table: Table, three: list[str]) -> None:
    table.compact(2_000)
    table.only(f".*_{three[1]}.log.*").unlink()  # it was compacted
    assert set(table.rows()) == {1, 2, 3}
    table.only(f".*_{three[2]}.log.*").unlink()
    with pytest.raises(CorruptTable, match=three[2]):
        table.rows()


# ------------------------------------------------------------------------------- making and looking


@pytest.mark.parametrize("version", [8, 9])
def test_create_refuses_what_the_version_has_not(session: LocalSession, tmp_path: Path, version: int) -> None:
    how: dict[str, Any] = {"record_key": ["id"], "ordering_field": "ts", "table_version": version}
    with pytest.raises(InvalidInput, match="OVERWRITE_WITH_LATEST"):
        HudiTable.create(str(tmp_path / "a"), SCHEMA, merge_mode="OVERWRITE_WITH_LATEST", **how)
    assert not (tmp_path / "a").exists()
    made = HudiTable.create(str(tmp_path / "b"), SCHEMA, data_latency="1s", **how)
    split = HudiTable.open(
        made.path, settings={"hudi_assets.exact.split": "true", "hudi_assets.table.services": "ours"}
    )
    with pytest.raises(InvalidInput, match=f"hudi_assets.exact.split is not possible on table version {version}"):
        split.plan_compaction(threshold=1)


@pytest.mark.parametrize("version", [5, 7, 10])
def test_no_other_version_is_made(tmp_path: Path, version: int) -> None:
    with pytest.raises(UnsupportedTable, match=f"version {version} is not supported"):
        HudiTable.create(str(tmp_path / "a"), SCHEMA, record_key=["id"], ordering_field="ts", table_version=version)
    assert not (tmp_path / "a").exists()


def _status(table: Table) -> dict[str, Any]:
    command = [sys.executable, "-m", "hudi_assets.cli", "status", str(table.path), "--json"]
    said: dict[str, Any] = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    return said


def test_status(table: Table, three: list[str]) -> None:
    plan = table.plan(2_000)
    table.execute(plan)
    pending = table.plan(10_000)
    said = _status(table)
    assert said["table_version"] == 9
    assert said["pending"] == [pending.instant]
    assert said["last_compaction"] == plan.instant
    assert said["remaining"]["log_files"] == 1
