"""What `validate` finds in a table that something was done to, and what `recover` mends of it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hudi_assets.engine import HudiTable
from hudi_assets.engine.errors import Conflict, CorruptTable, InvalidInput
from hudi_assets.engine.model import NoPlan, Plan
from hudi_assets.engine.timeline.rollback_metadata import decode_rollback_plan, encode_rollback_plan
from tests.crash.tables import carried_by, new_table, planned, snapshot, write, write_batches
from tests.races.player import timeline_of
from tests.tables.steps import with_properties

# Some log file that a marker names.
FILE = ".00000000-0000-0000-0000-000000000000_20240101000000000.log.1_0-1-0"
BOTH = pytest.mark.parametrize("path", [6, 9], indirect=True)


@pytest.fixture(params=[6])
def path(session: Any, tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A table of version 6, with log files to carry over; of version 9 too where the test is for BOTH."""
    return write_batches(new_table(tmp_path / "table", request.param), session)


def kinds(table: HudiTable) -> set[str]:
    return {finding.kind for finding in table.validate()}


@BOTH
def test_a_whole_table_has_no_findings(session: Any, path: Path) -> None:
    table = HudiTable.open(str(path))
    assert table.validate() == ()
    plan = planned(table)
    assert table.validate() == ()
    write(table, session, 4, 9_500)
    assert table.validate() == ()
    table.execute_compaction(session, plan.instant)
    assert table.validate() == ()
    table.savepoint()
    newest = write(table, session, 4, 9_600)
    table.rollback(newest)
    assert table.validate() == ()
    write(table, session, 4, 9_700)
    table.restore(table.savepoints()[0])
    assert table.validate() == ()
    assert table.stats().orphans == ()


def _link(path: Path, plan: Plan) -> Path:
    return path / plan.operations[0].carried_over[0].link


def _drop_link(path: Path, plan: Plan) -> None:
    _link(path, plan).unlink()


def _change_link(path: Path, plan: Plan) -> None:
    link = _link(path, plan)
    data = bytearray(link.read_bytes())
    link.unlink()
    data[-1] ^= 1
    link.write_bytes(data)


def _drop_log(path: Path, plan: Plan) -> None:
    (path / plan.operations[0].log_files[0]).unlink()


def _drop_plan(path: Path, plan: Plan) -> None:
    (path / f".hoodie/{plan.instant}.compaction.requested").unlink()


def _cut_log(path: Path, plan: Plan) -> None:
    log = path / plan.operations[0].log_files[0]
    os.truncate(log, log.stat().st_size - 9)


def _break_plan(path: Path, plan: Plan) -> None:
    file = path / f".hoodie/{plan.instant}.compaction.requested"
    file.write_bytes(file.read_bytes()[:40])


def _odd_files(path: Path, plan: Plan) -> None:
    (path / "notes.txt").write_text("x")
    (path / ".hoodie/.temp/20200101000000000").mkdir(parents=True)


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (_drop_link, {"missing_link"}),
        (_change_link, {"link_differs"}),
        (_drop_log, {"missing_file"}),
        (_cut_log, {"short_file"}),
        (_break_plan, {"unreadable"}),
        (_odd_files, {"unknown_file", "markers"}),
        (_drop_plan, {"orphan"}),
    ],
)
def test_findings(session: Any, path: Path, damage: Callable[[Path, Plan], None], expected: set[str]) -> None:
    plan = planned(HudiTable.open(str(path)))
    damage(path, plan)
    before = sorted((p, p.stat().st_mtime_ns) for p in path.rglob("*"))
    found = HudiTable.open(str(path)).validate()
    assert {f.kind for f in found} >= expected
    assert all(f.what and f.hint and f.path for f in found)
    assert sorted((p, p.stat().st_mtime_ns) for p in path.rglob("*")) == before, "validate wrote something"


@pytest.mark.parametrize("mode", ["hardlink", "symlink", "copy"])
def test_recover_removes_orphan_links(session: Any, path: Path, mode: str) -> None:
    table = with_properties(HudiTable.open(str(path)), carried_by(mode))
    before = snapshot(table)
    plan = planned(table)
    links = {c.link for op in plan.operations for c in op.carried_over}
    _drop_plan(path, plan)
    assert set(table.stats().orphans) == links
    assert table.recover()
    assert not any(os.path.lexists(path / link) for link in links)
    assert table.validate() == ()
    assert snapshot(table) == before


def test_phantom_slice(session: Any, path: Path) -> None:
    """The archiver has moved the timeline's start past links without a plan: their slice hides the rows below."""
    table = HudiTable.open(str(path))
    plan = planned(table)
    before = snapshot(table)
    _drop_plan(path, plan)
    newest = write(table, session, 40, 9_900)
    whole = snapshot(table)
    for file in (path / ".hoodie").glob("*.deltacommit*"):
        if not file.name.startswith(newest):
            file.unlink()
    assert snapshot(table) != whole, "the trap did not spring, so this tests nothing"
    assert "phantom_slice" in kinds(table)
    assert table.stats().orphans
    table.recover()
    assert snapshot(table) == whole
    assert snapshot(table) > before
    assert table.validate() == ()


def test_orphans_that_hold_rows_stay(session: Any, path: Path) -> None:
    """A log file that shows nothing that is elsewhere is reported, and left to a person."""
    table = HudiTable.open(str(path))
    newest = write(table, session, 40, 9_900)
    log = path / table.state().commit(table.state().timeline.instants[-1]).stats[0].path
    for file in (path / ".hoodie").glob(f"{newest}.*"):
        file.unlink()
    stray = log.rename(log.with_name(log.name.replace(log.name.split("_")[1][:17], "20990101000000000")))
    assert [(f.kind, f.path) for f in table.validate()] == [("orphan", stray.name)]
    assert table.recover() == ()
    assert stray.exists()


@BOTH
def test_two_base_files(session: Any, path: Path) -> None:
    table = HudiTable.open(str(path))
    plan = planned(table)
    result = table.execute_compaction(session, plan.instant)
    base = path / result.operations[0].base_file
    file_id, _, instant = base.name.split("_")
    stray = base.with_name(f"{file_id}_9-9-9_{instant}")
    stray.write_bytes(base.read_bytes())
    found = [f for f in table.validate() if f.kind == "two_base_files"]
    assert [f.path for f in found] == [stray.name]


# --------------------------------------------------------------------------------- what is refused


def test_rollback_refuses(session: Any, path: Path) -> None:
    table = HudiTable.open(str(path))
    instants = [i.timestamp for i in table.state().timeline.instants]
    before = sorted(p.name for p in path.rglob("*") if ".aux" not in str(p))
    with pytest.raises(InvalidInput, match=f"deltacommit {instants[1]} is later|deltacommit {instants[2]} is later"):
        table.rollback(instants[0])
    with pytest.raises(InvalidInput, match="no instant"):
        table.rollback("yesterday")
    with pytest.raises(InvalidInput, match="No write or compaction"):
        table.rollback("20990101000000000")
    assert sorted(p.name for p in path.rglob("*") if ".aux" not in str(p)) == before
    plan = planned(table)
    with pytest.raises(InvalidInput, match=f"Unschedule {plan.instant}"):
        table.rollback(instants[2])
    with pytest.raises(InvalidInput, match="unschedule it"):
        table.rollback(plan.instant)
    table.execute_compaction(session, plan.instant)
    with pytest.raises(InvalidInput, match="merged or carried over"):
        table.rollback(instants[2])
    newest = write(table, session, 4, 9_500)
    with pytest.raises(InvalidInput, match=newest):
        table.rollback(plan.instant)
    table.savepoint(newest)
    with pytest.raises(InvalidInput, match="savepoint"):
        table.rollback(newest)


def test_unschedule_refuses(session: Any, path: Path) -> None:
    table = HudiTable.open(str(path))
    with pytest.raises(InvalidInput, match="Pending: none"):
        table.unschedule("20990101000000000")
    plan = planned(table)
    newest = write(table, session, 4, 9_500)
    with pytest.raises(InvalidInput, match=f"Commit {newest} wrote to the plan's slice"):
        table.unschedule(plan.instant)
    table.rollback(newest)
    before = snapshot(table)
    table.unschedule(plan.instant)
    assert snapshot(table) == before
    assert table.validate() == ()


@BOTH
def test_restore_refuses(session: Any, path: Path) -> None:
    table = HudiTable.open(str(path))
    first = table.savepoint()
    log = next(path.glob(".0*.log.1_*"))
    with pytest.raises(InvalidInput, match=f"There are: {first}"):
        table.restore("20990101000000000")
    write(table, session, 4, 9_500)
    second = table.savepoint()
    with pytest.raises(InvalidInput, match=second):
        table.restore(first)
    table.delete_savepoint(second)
    kept = log.rename(path / ".hoodie/kept")
    with pytest.raises(CorruptTable, match="savepoint names is missing"):
        table.restore(first)
    kept.rename(log)
    table.restore(first)
    table.restore(first)
    assert table.validate() == ()


def test_an_attempt_of_a_living_engine_stays(session: Any, path: Path) -> None:
    """Beside engines that may run, Hudi's list of markers says that its executor is at work."""
    beside = {"hudi_assets.writers": "locked", "hudi_assets.table.services": "ours"}
    table = HudiTable.open(str(path), settings=beside)
    savepoint = table.savepoint()
    plan = planned(table)
    (path / f".hoodie/{plan.instant}.compaction.inflight").touch()
    markers = path / f".hoodie/.temp/{plan.instant}/MARKERS.type"
    markers.parent.mkdir(parents=True)
    markers.write_text("TIMELINE_SERVER_BASED")
    for action in (table.rollback, table.unschedule):
        with pytest.raises(Conflict, match="being executed by another engine"):
            action(plan.instant)
    with pytest.raises(Conflict, match="being executed by another engine"):
        table.restore(savepoint)
    markers.unlink()
    assert table.rollback(plan.instant).still_planned
    table.unschedule(plan.instant)
    assert table.validate() == ()


@BOTH
def test_an_unstated_table_is_refused(session: Any, path: Path) -> None:
    properties = path / ".hoodie/hoodie.properties"
    properties.write_text(properties.read_text().replace("hudi_assets.writers=stopped\n", ""))
    table = HudiTable.open(str(path))
    newest = table.state().timeline.last_write
    assert newest is not None
    with pytest.raises(InvalidInput, match=r"hudi_assets\.writers"):
        table.rollback(newest)


def unfinished(path: Path, instant: str) -> None:
    """The newest write as another engine's that has not committed it."""
    timeline = timeline_of(path)
    next(p for p in timeline.glob(f"{instant}*.deltacommit")).unlink()
    for state in ("requested", "inflight"):
        (timeline / f"{instant}.deltacommit.{state}").write_bytes(b"")


@BOTH
@pytest.mark.parametrize("trace", ["view_storage_conf.properties", "view_storage_conf_a.properties", "ckp_meta/x"])
def test_a_flink_jobs_unfinished_write(session: Any, path: Path, trace: str) -> None:
    """The job may commit it from its checkpoint: it is not rolled back; one that holds nothing is."""
    table = HudiTable.open(str(path))
    before = snapshot(table)
    left = path / ".hoodie/.aux" / trace
    left.parent.mkdir(exist_ok=True)
    left.touch()
    newest = write(table, session, 4, 9_500)
    unfinished(path, newest)
    marker = path / f".hoodie/.temp/{newest}/p/{FILE}.marker.APPEND"
    marker.parent.mkdir(parents=True)
    marker.touch()
    assert table.validate() == ()  # a job that runs always has one
    with pytest.raises(InvalidInput, match="Flink job") as refused:
        table.rollback(newest)
    assert f".hoodie/.aux/{trace.partition('/')[0]}" in str(refused.value)
    assert snapshot(table) == before
    marker.unlink()
    table.rollback(newest)
    assert snapshot(table) == before
    assert table.validate() == ()


def test_what_a_flink_job_has_given_up(session: Any, path: Path) -> None:
    """Later writes are there: no job commits it any more."""
    table = HudiTable.open(str(path))
    (path / ".hoodie/.aux/view_storage_conf.properties").touch()
    given_up = write(table, session, 4, 9_500)
    unfinished(path, given_up)
    before = snapshot(table)
    timeline = timeline_of(path)
    for state in ("requested", "inflight"):
        (timeline / f"{given_up}.deltacommit.{state}").rename(timeline / f"20240101000000000.deltacommit.{state}")
    assert kinds(table) >= {"unfinished"}
    table.rollback("20240101000000000")
    assert snapshot(table) == before


@BOTH
def test_a_foreign_unfinished_write(session: Any, path: Path) -> None:
    """Another engine's unfinished write is taken back only where it is said to be stopped, and gives no heartbeat."""
    table = HudiTable.open(str(path))
    before = snapshot(table)
    newest = write(table, session, 4, 9_500)
    unfinished(path, newest)
    beat = path / f".hoodie/.heartbeat/{newest}"
    beat.parent.mkdir(exist_ok=True)
    beat.touch()
    with pytest.raises(Conflict, match="may still be running"):
        table.rollback(newest)
    beat.unlink()
    locked = HudiTable.open(str(path), settings={"hudi_assets.writers": "locked"})
    with pytest.raises(Conflict, match="may still be running"):
        locked.rollback(newest)
    assert {f.kind for f in table.validate()} == {"unfinished"}
    result = table.rollback(newest)  # without markers: its blocks are found in the log files
    assert result.files_deleted == 2
    assert snapshot(table) == before
    assert table.validate() == ()


@BOTH
def test_another_engines_rollback(session: Any, path: Path) -> None:
    """While it is unfinished, nobody writes or plans; `rollback` of its target ends it where that engine is stopped."""
    table = HudiTable.open(str(path))
    newest = write(table, session, 4, 9_500)
    rehearsal = shutil.copytree(path, path.with_name("rehearsal"))
    rolled_back = HudiTable.open(str(rehearsal)).rollback(newest).rollback
    name = f"{rolled_back}.rollback.requested"
    plan = decode_rollback_plan((timeline_of(Path(rehearsal)) / name).read_bytes(), name)
    foreign = encode_rollback_plan(replace(plan, ours=False), lambda p: str(path / p))
    (timeline_of(path) / name).write_bytes(foreign)
    for action in (lambda: write(table, session, 4, 9_600), table.recover):
        with pytest.raises(Conflict, match=f"of {newest} is another engine's"):
            action()
    with pytest.raises(Conflict, match="another engine's"):
        table.plan_compaction(threshold=2_000)
    reason = table.plan_compaction(threshold=2_000, dry_run=True)
    assert isinstance(reason, NoPlan)
    assert "rollback" in reason.reason
    assert kinds(table) == {"unfinished"}
    table.rollback(newest)
    assert snapshot(table) == snapshot(HudiTable.open(str(rehearsal)))
    assert table.validate() == ()
    write(table, session, 4, 9_700)
