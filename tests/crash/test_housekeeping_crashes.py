"""A crash at every storage operation of a clean, a savepoint and an archiving: no answer changes, and the
next run ends where one without a crash would have."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from hudi_assets.engine import HudiTable
from hudi_assets.engine.actions.archiving.archive import ArchiveResult
from hudi_assets.engine.model import Action, NothingToDo
from hudi_assets.engine.queries.query import ReadTask
from hudi_assets.engine.transaction.clean import CleanResult
from tests.crash.faulty import faults
from tests.crash.tables import SCHEMA, carried_by, new_table, planned
from tests.tables.local_session import LocalSession
from tests.tables.steps import at, rows_in

SETTINGS = {"hoodie.keep.min.commits": "3", "hoodie.keep.max.commits": "4", "hoodie.cleaner.commits.retained": "1"}
Answer = tuple[tuple[object, ...], ...]
Answers = dict[str, Answer]


@pytest.fixture(params=["hardlink", "symlink", pytest.param("version 8", marks=pytest.mark.thorough), "version 9"])
def path(session: LocalSession, tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """Two file groups, two compactions, each with log files carried over; all settled, nothing cleaned."""
    path = tmp_path / "table"
    layered = request.param.startswith("version")
    own = {"hudi_assets.query.grace": "0s"} if layered else carried_by(request.param)
    table = new_table(path, int(request.param[-1]) if layered else 6, **SETTINGS, **own)
    for number, (ts, threshold) in enumerate([(1_000, 0), (5_000, 2_000), (9_000, 6_000)]):
        for part in range(2):
            rows = [
                {"id": i, "ts": ts + 500 * part + i, "v": number * 10 + part} for i in range(part * 2, part * 2 + 6)
            ]
            table.upsert(session, session.rows(rows, SCHEMA), clock_time=at(ts + 2_000), batch_id=f"{number}-{part}")
        if threshold:
            table.execute_compaction(session, planned(table, threshold).instant)
    return path


def answers(table: HudiTable, instants: list[str]) -> Answers:
    """Every query there is: snapshot, read-optimized, as of instants, all commits; freshness; batches."""
    found = {"snapshot": _rows(table.snapshot_tasks())}
    found["read_optimized"] = tuple(sorted((Path(f).name,) for f in table.read_optimized_files()))
    for instant in instants:
        found[f"as of {instant}"] = _rows(table.time_travel_tasks(instant))
    found["incremental"] = _rows(table.incremental_tasks(instants[0]))
    freshness = table.freshness()
    found["freshness"] = ((freshness.freshness, freshness.threshold, freshness.min_event_time, freshness.instant),)
    found["batches"] = tuple(sorted(table.committed_batches().items()))
    return found


def _rows(tasks: list[ReadTask]) -> Answer:
    return tuple(sorted(tuple(row.values()) for row in rows_in(tasks)))


def data_files(path: Path) -> set[str]:
    return {file.name for file in path.iterdir() if not file.name.endswith("metadata") and file.is_file()}


def settled(path: Path) -> set[str]:
    """The timeline's files; those of cleans without their time, which differs from run to run."""
    folders = (path / ".hoodie", path / ".hoodie/timeline")
    names = {f.name for folder in folders if folder.is_dir() for f in folder.iterdir() if f.is_file()}
    return {name.partition(".")[2] if ".clean" in name else name for name in names if name[0].isdigit()}


def test_clean(path: Path, tmp_path: Path) -> None:
    table = HudiTable.open(str(path))
    result = table.clean(dry_run=True)
    assert isinstance(result, CleanResult)
    assert result.earliest_retained is not None
    instants = [i.timestamp for i in table.state().timeline.completed(Action.DELTA_COMMIT, Action.COMMIT)]
    kept = [i for i in instants if i >= result.earliest_retained]
    before = answers(table, kept)
    expected = data_files(path) - {name.rsplit("/", 1)[-1] for name in result.deleted}
    for copy, where in faults(path, tmp_path, HudiTable.clean):
        table = HudiTable.open(str(copy))
        assert answers(table, kept) == before, where
        table.clean() if "create" in where else table.recover()
        if not any("clean" in name for name in settled(copy)):
            table.clean()
        assert data_files(copy) == expected, where
        assert {n for n in settled(copy) if "clean" in n} == {"clean", "clean.requested", "clean.inflight"}, where
        assert answers(table, kept) == before, where
        assert isinstance(table.clean(), NothingToDo), where


def test_savepoint(path: Path, tmp_path: Path) -> None:
    table = HudiTable.open(str(path))
    instant = table.state().timeline.last_write
    assert instant is not None
    before = answers(table, [instant])
    for copy, where in faults(path, tmp_path, lambda t: t.savepoint(instant, comment="c")):
        table = HudiTable.open(str(copy))
        assert answers(table, [instant]) == before, where
        made = table.savepoints() == (instant,)
        table.recover()
        assert table.savepoints() == ((instant,) if made else ()), where
        assert [n for n in settled(copy) if "savepoint" in n] == [] or made, where
        assert table.savepoint(instant) == instant
        assert table.savepoints() == (instant,)


def test_delete_savepoint(path: Path, tmp_path: Path) -> None:
    table = HudiTable.open(str(path))
    instant = table.savepoint()
    for copy, where in faults(path, tmp_path, lambda t: t.delete_savepoint(instant)):
        table = HudiTable.open(str(copy))
        if table.savepoints():
            assert table.state().timeline.pending(Action.SAVEPOINT) == (), where
            table.delete_savepoint(instant)
        assert [n for n in settled(copy) if "savepoint" in n] == [], where


def test_archive(path: Path, tmp_path: Path) -> None:
    rehearsal = Path(shutil.copytree(path, tmp_path / "whole", symlinks=True))
    table = HudiTable.open(str(rehearsal))
    last = table.state().timeline.last_write
    assert last is not None
    before = answers(table, [last])
    result = table.archive()
    assert isinstance(result, ArchiveResult)
    assert len(result.instants) == 5
    expected = settled(rehearsal)
    assert answers(table, [last]) == before
    for copy, where in faults(path, tmp_path, HudiTable.archive):
        table = HudiTable.open(str(copy))
        state = table.state()
        assert not state.timeline.pending(*{i.action for i in state.timeline.instants}), where
        assert answers(table, [last]) == before, where
        table.recover()
        assert answers(table, [last]) == before, where
        table.archive()
        assert settled(copy) == expected, where
        assert answers(table, [last]) == before, where
        assert isinstance(table.archive(), NothingToDo), where
        archive = [*copy.glob(".hoodie/archived/*"), *copy.glob(".hoodie/timeline/history/*.parquet")]
        assert len(archive) == 1, where
