"""Clean, savepoint, restore and archive on tables of versions 8 and 9, and what Hudi's cleaner has to retain."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from hudi_assets.engine.actions.archiving.archive import ArchiveResult
from hudi_assets.engine.errors import CorruptTable, UnsupportedTable
from hudi_assets.engine.model import Action, NothingToDo
from hudi_assets.engine.storage import LocalStorage
from hudi_assets.engine.timeline.archive.v8 import HISTORY, archived_instants, read_manifest
from hudi_assets.engine.transaction.clean import CleanResult
from tests.tables.life import Life
from tests.tables.local_session import LocalSession

FEW = {
    "hoodie.keep.min.commits": "3",
    "hoodie.keep.max.commits": "5",
    "hoodie.compact.inline.max.delta.commits": "2",
    "hoodie.timeline.compaction.batch.size": "2",
    "hudi_assets.query.grace": "0s",
}
TIMELINE = ".hoodie/timeline"


@pytest.fixture
def life(tmp_path: Path, session: LocalSession) -> Life:
    return Life(tmp_path / "t", session, 9, **{"hudi_assets.query.grace": "0s"})


# ------------------------------------------------------------------------------------------------ archive


@pytest.mark.slow
@pytest.mark.parametrize("version", [8, 9])
def test_a_table_that_only_we_write_stays_small(tmp_path: Path, session: LocalSession, version: int) -> None:
    life = Life(tmp_path / "t", session, version, **FEW)
    done: list[str] = []
    for _ in range(6):
        life.turns(2)
        life.table.clean(retained=1)
        before = life.snapshot()
        result = life.table.archive()
        done += result.instants if isinstance(result, ArchiveResult) else ()
        assert life.snapshot() == before
        assert life.table.validate() == ()
        assert len(life.timeline()) <= 30
        assert len(list((life.path / HISTORY).glob("*"))) <= 12
    storage = LocalStorage(str(life.path))
    archived = list(archived_instants(storage))
    assert [i.timestamp for i in archived] == sorted(done)
    assert len(done) > 12
    assert max(file.layer for file in read_manifest(storage).files) >= 2


def test_the_archive_holds_what_the_files_held(tmp_path: Path, session: LocalSession) -> None:
    life = Life(tmp_path / "t", session, 9, **FEW)
    life.turns(4)
    before = {f.name: f.read_bytes() for f in (life.path / TIMELINE).iterdir() if f.is_file()}
    result = life.table.archive()
    assert isinstance(result, ArchiveResult)
    gone = before.keys() - life.timeline()
    instants = {i.timestamp: i for i in archived_instants(LocalStorage(str(life.path)))}
    assert {name[:17] for name in gone} == instants.keys() == set(result.instants)
    completed = {name for name in gone if "_" in name}
    assert {f"{i.timestamp}_{i.completion}.{i.action}" for i in instants.values()} == completed
    for name in completed:
        assert instants[name[:17]].metadata == before[name]
    for name in gone - completed:
        plan = instants[name[:17]].plan
        if name.endswith("compaction.requested"):
            assert plan == before[name]
        elif "deltacommit" in name:
            assert plan is None


def crossing(life: Life) -> None:
    """A write that was requested before a compaction's instant and completed after it, and later ones elsewhere.

    As two writers make it; here the compaction's instant is moved.
    """
    for _ in range(2):
        life.upsert("a")
    compaction = life.compact(2)
    write = life.upsert("a", later=1_000_000)
    state = life.table.state()
    completion = state.timeline.completions[write]
    inside = f"{int(write) + 1:017d}"
    assert write < inside < completion
    files = [*(life.path / TIMELINE).iterdir(), *life.path.glob("p=*/*")]
    for file in files:
        if compaction in file.name and "log" not in file.name:
            if file.suffix == ".commit":  # it names the base files
                file.write_bytes(file.read_bytes().replace(compaction.encode(), inside.encode()))
            file.rename(file.with_name(file.name.replace(compaction, inside)))
    [log] = [log for log in life.table.state().remaining_logs if log.base_instant == write]
    assert life.table.state().slice_instant(log) == inside


def test_completion_times_outlive_the_archiving(tmp_path: Path, session: LocalSession) -> None:
    life = Life(tmp_path / "t", session, 9, **FEW)
    crossing(life)
    for _ in range(6):
        life.upsert("b")
        life.compact(life.number)
    before = life.snapshot()
    assert {row[2] for row in before if row[3] == "a"} == {3}
    for _ in range(3):
        life.table.archive()
    state = life.table.state()
    assert state.timeline.start is not None
    [log] = [log for log in state.remaining_logs if log.partition == "p=a"]
    assert log.base_instant < state.timeline.start
    assert life.snapshot() == before
    # And not because it would be so anyway.
    for file in (life.path / HISTORY).iterdir():
        file.unlink()
    assert life.snapshot() != before


def test_a_damaged_archive_is_named(tmp_path: Path, session: LocalSession) -> None:
    life = Life(tmp_path / "t", session, 9, **FEW)
    crossing(life)
    for _ in range(6):
        life.upsert("b")
        life.compact(life.number)
    result = life.table.archive()
    assert isinstance(result, ArchiveResult)
    [file] = (life.path / HISTORY).glob("*.parquet")
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(CorruptTable, match=file.name):
        life.snapshot()


def test_a_log_file_on_no_timeline_never_counts(tmp_path: Path, session: LocalSession) -> None:
    """A dead write's log file would once the start has passed its instant: it goes before that, or holds the start."""
    life = Life(tmp_path / "t", session, 9, **FEW)
    life.turns(3)
    [log, other] = life.table.state().remaining_logs
    writes = [i.timestamp for i in life.table.state().timeline.completed(Action.DELTA_COMMIT)]
    unknown = f"{int(writes[1]) + 1:017d}"
    stray = life.path / log.path.replace(log.base_instant, unknown)
    stray.write_bytes((life.path / other.path).read_bytes())
    for _ in range(3):
        life.turns(2)
        life.table.archive()
        assert {row[2] for row in life.snapshot()} == {life.number}
        assert not (stray.exists() and life.table.state().timeline.is_committed(unknown))


@pytest.mark.parametrize("key", ["hoodie.timeline.path", "hoodie.timeline.history.path"])
def test_another_folder_is_refused(tmp_path: Path, session: LocalSession, key: str) -> None:
    life = Life(tmp_path / "t", session, 9, **{key: "old"})
    with pytest.raises(UnsupportedTable, match=key):
        life.table.archive()


# ---------------------------------------------------------------------------------------------- clean, age


def test_age_counts_from_the_compactions_completion(life: Life) -> None:
    """By its instant the compaction is six commits old when it is completed: Hudi's cleaner would go by that."""
    for _ in range(7):
        life.upsert()
    before = life.files()
    compaction = life.compact(1)
    state = life.table.state()
    assert sum(1 for i in state.timeline.completed(Action.DELTA_COMMIT) if i.timestamp > compaction) == 6
    replaced = {path for path in before if f"_{life.table.state().timeline.instants[0].timestamp}.log" in path}
    assert len(replaced) == 2
    for _ in range(3):
        assert isinstance(life.table.clean(retained=3), NothingToDo)
        life.upsert()
    done = life.table.clean(retained=3)
    assert isinstance(done, CleanResult)
    assert set(done.deleted) == replaced


def test_a_partition_that_changed_only_in_the_past_is_visited(life: Life) -> None:
    """Partition a is compacted at an instant below what a clean has retained, and never written again."""
    life.upsert("a")
    for _ in range(4):
        life.upsert("b")
    life.compact(3)
    earlier = life.table.clean(retained=1)
    life.upsert("b")
    compaction = life.compact(4)
    assert isinstance(earlier, NothingToDo)
    life.upsert("b")
    done = life.table.clean(retained=1)
    assert isinstance(done, CleanResult)
    assert done.earliest_retained is not None
    assert compaction < done.earliest_retained
    assert {path.partition("/")[0] for path in done.deleted} == {"p=a", "p=b"}


@pytest.mark.parametrize("policy", ["KEEP_LATEST_COMMITS", "KEEP_LATEST_FILE_VERSIONS", "KEEP_LATEST_BY_HOURS"])
def test_queries_have_an_hour_by_default(tmp_path: Path, session: LocalSession, policy: str) -> None:
    life = Life(tmp_path / "t", session, 9)
    life.turns(3)
    if policy != "KEEP_LATEST_BY_HOURS":
        held = life.table.clean(policy=policy, retained=1)
        assert isinstance(held, NothingToDo)
        assert "replaced less than 1 h ago" in held.reason
    life.hours = 2
    life.upsert()
    before = life.snapshot()
    done = life.table.clean(policy=policy, retained=1)
    assert isinstance(done, CleanResult)
    assert done.deleted
    assert life.snapshot() == before


def test_the_grace_is_the_tables_setting(tmp_path: Path, session: LocalSession) -> None:
    life = Life(tmp_path / "t", session, 9, **{"hudi_assets.query.grace": "3h"})
    life.turns(3)
    life.hours = 2
    held = life.table.clean(policy="KEEP_LATEST_FILE_VERSIONS", retained=1)
    assert isinstance(held, NothingToDo)
    assert "3 h" in held.reason
    life.hours = 4
    assert isinstance(life.table.clean(policy="KEEP_LATEST_FILE_VERSIONS", retained=1), CleanResult)


# --------------------------------------------------------------------------------- savepoint and restore


def test_a_savepoint_is_named_by_both_times(life: Life) -> None:
    life.turns(3)
    before = life.timeline()
    at = life.table.savepoint()
    made = life.timeline() - before
    assert f"{at}.savepoint.inflight" in made
    [completed] = made - {f"{at}.savepoint.inflight"}
    assert completed.startswith(f"{at}_")
    assert completed.endswith(".savepoint")
    saved, files = life.snapshot(), life.files()
    life.turns(3)
    life.table.clean(retained=1)
    kept = {
        path for savepoint in life.table.state().timeline.completed(Action.SAVEPOINT) for path in files if savepoint
    }
    assert kept & life.files()
    rows = life.table.time_travel(life.session, at).rows()
    assert sorted((r["id"], r["ts"], r["v"], r["p"]) for r in rows) == saved
    life.table.delete_savepoint(at)
    assert not [name for name in life.timeline() if "savepoint" in name]
    assert isinstance(life.table.clean(retained=1), CleanResult)


def test_a_savepoint_keeps_a_log_file_of_a_later_slice(life: Life, tmp_path: Path, session: LocalSession) -> None:
    """Another engine's compaction beside a write: requested before its instant, completed after it."""
    life.upsert()
    life.upsert()
    compacted = life.compact(1)
    late = life.upsert()
    beside = str(int(compacted) - 1)
    other = _requested_at(life, late, beside, tmp_path / "other", session)
    kept = other.table.savepoint(beside)
    names = {f"{f.parent.name}/{f.name}" for f in other.path.glob(f"p=*/.*_{beside}.log.*")}
    assert len(names) == 2
    before = sorted((r["id"], r["v"]) for r in other.table.time_travel(session, kept).toArrow().to_pylist())
    for _ in range(4):
        other.upsert()
        other.compact(other.number)
    assert isinstance(other.table.clean(retained=1), CleanResult)
    assert names <= other.files()
    assert sorted((r["id"], r["v"]) for r in other.table.time_travel(session, kept).toArrow().to_pylist()) == before
    other.table.delete_savepoint(kept)
    other.upsert()
    other.table.clean(retained=1)
    assert not names & other.files()


def _requested_at(life: Life, instant: str, wanted: str, copy: Path, session: LocalSession) -> Life:
    """A copy of the table in which a write has an earlier requested time, and the completion time that it had."""
    shutil.copytree(life.path, copy)
    for file in [*copy.rglob(f"*{instant}*")]:
        if file.is_file() and not file.name.endswith(".crc"):
            # Of one length: sizes within the files stay right.
            file.write_bytes(file.read_bytes().replace(instant.encode(), wanted.encode()))
            file.rename(file.with_name(file.name.replace(instant, wanted, 1)))
    other = object.__new__(Life)
    other.path, other.session, other.number, other.hours = copy, session, life.number, 0
    return other


def test_a_restored_table_is_what_it_was(life: Life) -> None:
    life.turns(3)
    at = life.table.savepoint()
    saved = life.snapshot()
    life.turns(3)
    assert life.snapshot() != saved
    life.table.restore(at)
    assert life.snapshot() == saved
    assert life.table.validate() == ()
    life.turns(2)
    assert {row[2] for row in life.snapshot()} == {life.number}
