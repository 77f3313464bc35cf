"""A crash at every storage operation of a rollback, an unscheduling and a restore: every reader's answer is one
of the states in between, and the next run ends it by itself.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hudi_assets.engine import HudiTable
from hudi_assets.engine.model import Action, Plan
from tests.crash.faulty import Crash, dying, faults
from tests.crash.tables import Rows, carried_by, no_strays, on_timeline, planned, snapshot, write
from tests.tables.steps import with_properties

# Each storage operation of a long history.
LONG = [*(pytest.param(version, marks=pytest.mark.thorough) for version in (6, 8)), 9]


def dead(path: Path, tmp_path: Path, action: Callable[[HudiTable], object]) -> Iterator[tuple[HudiTable, str]]:
    """The table after `action` died in it, for each fault; and what it died of."""
    return ((HudiTable.open(str(copy)), where) for copy, where in faults(path, tmp_path, action))


def is_clean(table: HudiTable, where: str) -> None:
    """Nothing is pending but compactions, every file belongs to a slice, no marker or guard is left."""
    no_strays(table, where)
    state = table.state()
    assert state.guards == frozenset(), where
    assert {i.action for i in state.timeline.instants if not i.is_completed} <= {"compaction"}, where


def test_rollback_of_a_commit(session: Any, path: Path, tmp_path: Path) -> None:
    table = HudiTable.open(str(path))
    before = snapshot(table)
    newest = write(table, session, 4, 9_500)  # a log file more in both groups
    with_it = snapshot(table)
    assert with_it != before
    for victim, where in dead(path, tmp_path, lambda t: t.rollback(newest)):
        assert snapshot(victim) in (before, with_it), where
        began = bool(victim.state().timeline.pending(Action.ROLLBACK))
        victim.recover()
        assert snapshot(victim) == (before if began or not on_timeline(victim, newest) else with_it), where
        if on_timeline(victim, newest):
            victim.rollback(newest)
        is_clean(victim, where)
        assert snapshot(victim) == before, where
        write(victim, session, 4, 9_500)
        assert snapshot(victim) == with_it, where


def test_next_write_finishes_a_rollback(session: Any, path: Path, tmp_path: Path) -> None:
    table = HudiTable.open(str(path))
    before = snapshot(table)
    newest = write(table, session, 4, 9_500)
    for victim, where in dead(path, tmp_path, lambda t: t.rollback(newest)):
        gone = not on_timeline(victim, newest) or victim.state().timeline.pending(Action.ROLLBACK)
        write(victim, session, 20, 9_800)
        rows = {r for r in snapshot(victim) if r[0] < 20}
        assert (rows == before) == bool(gone), where
        is_clean(victim, where)


def test_rollback_of_an_unfinished_write(session: Any, path: Path, tmp_path: Path) -> None:
    before = snapshot(HudiTable.open(str(path)))
    rehearsal = HudiTable.open(str(path))
    newest = write(rehearsal, session, 4, 9_500)
    state = rehearsal.state()
    (commit,) = (i for i in state.timeline.completed(Action.DELTA_COMMIT) if i.timestamp == newest)
    written = [stat.path for stat in state.commit(commit).stats]
    (path / state.layout.timeline_folder / commit.file_name).unlink()
    # Its markers went with the commit: put them back as they stood.
    assert len(written) == 2
    for name in written:
        marker = path / f".hoodie/.temp/{newest}/{name}.marker.APPEND"
        marker.parent.mkdir(parents=True, exist_ok=True)
        marker.touch()
    assert snapshot(HudiTable.open(str(path))) == before
    for victim, where in dead(path, tmp_path, lambda t: t.rollback(newest)):
        assert snapshot(victim) == before, where
        victim.recover()
        assert not on_timeline(victim, newest), where
        is_clean(victim, where)


def test_rollback_of_an_attempt(session: Any, path: Path, tmp_path: Path) -> None:
    table = HudiTable.open(str(path))
    before = snapshot(table)
    plan = planned(table)
    rehearsal = Path(shutil.copytree(path, tmp_path / "executed"))
    victim, storage = dying(rehearsal)
    victim.execute_compaction(session, plan.instant)
    commits = (n for n, op in enumerate(storage.operations, 1) if f"/{plan.instant}" in op and op.endswith(".commit"))
    last = next(commits)
    with pytest.raises(Crash):
        dying(path, last)[0].execute_compaction(session, plan.instant)
    assert list(path.glob("*.parquet")), "nothing was left to roll back"
    for victim, where in dead(path, tmp_path, lambda t: t.rollback(plan.instant)):
        assert snapshot(victim) == before, where
        victim.recover()
        if victim.state().timeline.pending_compactions[0].state == "inflight":
            victim.rollback(plan.instant)
        assert not list(Path(victim.path).glob("*.parquet")), where
        assert victim.state().timeline.pending_compactions[0].state == "requested", where
        assert all(victim.exists(c.link) for op in plan.operations for c in op.carried_over), where
        victim.execute_compaction(session, plan.instant)
        assert snapshot(victim) == before, where
        is_clean(victim, where)


def test_rollback_of_a_compaction(session: Any, path: Path, tmp_path: Path) -> None:
    table = HudiTable.open(str(path))
    before = snapshot(table)
    plan = planned(table)
    table.execute_compaction(session, plan.instant)
    for victim, where in dead(path, tmp_path, lambda t: t.rollback(plan.instant)):
        assert snapshot(victim) == before, where
        victim.recover()
        assert snapshot(victim) == before, where
        if on_timeline(victim, plan.instant):
            victim.rollback(plan.instant)
        is_clean(victim, where)
        again = planned(victim)
        victim.execute_compaction(session, again.instant)
        assert snapshot(victim) == before, where


@pytest.mark.parametrize(
    ("path", "mode"), [(6, "hardlink"), (6, "symlink"), (6, "copy"), (9, "auto")], indirect=["path"]
)
def test_unschedule(session: Any, path: Path, tmp_path: Path, mode: str) -> None:
    table = with_properties(HudiTable.open(str(path)), carried_by(mode))
    before = snapshot(table)
    plan = planned(table)
    for victim, where in dead(path, tmp_path, lambda t: t.unschedule(plan.instant)):
        assert snapshot(victim) == before, where
        victim.recover()
        assert snapshot(victim) == before, where
        if victim.pending_plan() is not None:
            assert all(victim.exists(c.link) for op in plan.operations for c in op.carried_over), where
            victim.unschedule(plan.instant)
        is_clean(victim, where)
        assert snapshot(victim) == before, where
        again = planned(victim)
        victim.execute_compaction(session, again.instant)
        assert snapshot(victim) == before, where


def _history(table: HudiTable, session: Any) -> list[Rows]:
    """A savepoint, then every kind of later instant; the snapshots on the way, the savepoint's first."""
    states = [snapshot(table)]
    table.savepoint()
    plan = planned(table)
    write(table, session, 4, 9_500)
    states.append(snapshot(table))
    table.execute_compaction(session, plan.instant)
    write(table, session, 30, 9_600)
    states.append(snapshot(table))
    second = table.plan_compaction(threshold=9_503)
    assert isinstance(second, Plan)
    write(table, session, 1, 9_700)
    states.append(snapshot(table))
    return states


@pytest.mark.slow
@pytest.mark.parametrize("path", LONG, indirect=True)
def test_restore(session: Any, path: Path, tmp_path: Path) -> None:
    table = HudiTable.open(str(path))
    states = _history(table, session)
    savepoint = table.savepoints()[0]
    for victim, where in dead(path, tmp_path, lambda t: t.restore(savepoint)):
        assert snapshot(victim) in states, where
        began = bool(victim.state().timeline.pending(Action.RESTORE))
        victim.recover()
        if not began:
            victim.restore(savepoint)
        assert snapshot(victim) == states[0], where
        is_clean(victim, where)
        assert victim.state().timeline.pending_compactions == (), where
        # A compaction at an instant before the savepoint may stay: what is later than it is still to compact.
        again = planned(victim, 9_012)
        victim.execute_compaction(session, again.instant)
        assert snapshot(victim) == states[0], where


@pytest.mark.slow
@pytest.mark.parametrize("path", LONG, indirect=True)
def test_next_write_finishes_a_restore(session: Any, path: Path, tmp_path: Path) -> None:
    table = HudiTable.open(str(path))
    states = _history(table, session)
    savepoint = table.savepoints()[0]
    for victim, where in dead(path, tmp_path, lambda t: t.restore(savepoint)):
        restored = bool(victim.state().timeline.pending(Action.RESTORE)) or snapshot(victim) == states[0]
        write(victim, session, 50, 9_900)
        rows = {row for row in snapshot(victim) if row[0] < 50}
        assert rows == (states[0] if restored else states[-1]), where
