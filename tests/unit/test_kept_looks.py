"""What a look keeps for the next one: what it lists again, and what it does not believe."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_assets.engine import HudiTable, NoPlan
from hudi_assets.engine.event_time import remembering
from hudi_assets.engine.event_time.table_times import TableTimes
from hudi_assets.engine.past import rewriting
from hudi_assets.engine.storage import LocalStorage, Storage, folders
from hudi_assets.engine.storage.folders import Stamp
from hudi_assets.engine.table.slices import kept
from hudi_assets.engine.table.state import TableState
from hudi_assets.engine.timeline import archived_facts
from hudi_assets.engine.timeline.archived_facts import Memory
from tests.races.player import timeline_of
from tests.stores.folder import FolderBucket
from tests.tables.kept_looks import assert_kept_is_true, looks_keep, moved_on, settle, view_of
from tests.tables.life import Life
from tests.tables.local_session import LocalSession


@pytest.fixture(autouse=True, params=["objects", pytest.param("columns", marks=pytest.mark.slow)])
def _keeping(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with looks_keep(monkeypatch, columns=request.param == "columns"):
        yield


@pytest.fixture(params=[6, 9])
def life(request: pytest.FixtureRequest, session: LocalSession, tmp_path: Path) -> Life:
    made = Life(tmp_path / "t", session, request.param)
    made.turns(3)
    return made


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The folders that were listed with sizes, and those of which the names were."""
    found: list[str] = []
    whole, names = LocalStorage.list_folder, folders._names_again

    def list_folder(self: LocalStorage, directory: str):  # type: ignore[no-untyped-def]
        found.append(directory)
        return whole(self, directory)

    def names_again(folder: str, prefix: str, last: folders.Folder):  # type: ignore[no-untyped-def]
        found.append(f"names of {prefix}")
        return names(folder, prefix, last)

    monkeypatch.setattr(LocalStorage, "list_folder", list_folder)
    monkeypatch.setattr(folders, "_names_again", names_again)
    return found


def looked_at(life: Life) -> None:
    settle()
    moved_on(life.table)


def partitions_of(listed: list[str]) -> list[str]:
    return [one for one in listed if "p=" in one]


def test_only_folders_that_changed_are_listed_again(life: Life, listed: list[str]) -> None:
    looked_at(life)
    listed.clear()
    looked_at(life)
    assert partitions_of(listed) == []
    before = life.table._table.look().parts
    life.upsert("a")
    listed.clear()
    looked_at(life)
    assert partitions_of(listed) == ["names of p=a/"]
    assert life.table._table.look().parts["p=b"] is before["p=b"]
    assert_kept_is_true(life.table)


def test_what_changes_right_after_it_was_listed_is_seen(
    life: Life, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A folder's time has ticks: within one, two changes leave the same time."""
    now_ns = time.time_ns()
    monkeypatch.setattr(Stamp, "of", classmethod(lambda cls, folder: cls(0, 0, now_ns, now_ns)))
    monkeypatch.setattr(folders, "TICK_NS", 60_000_000_000)
    looked_at(life)
    shutil.copy(next(iter((tmp_path / "t/p=a").glob(".*.log.*"))), tmp_path / f"t/p=a/.f_{life.instants()[-1]}.log.9")
    assert_kept_is_true(life.table)


def test_a_file_that_grows_before_its_commit_has_its_whole_size(life: Life) -> None:
    """Apache Hudi writes under the file's own name: a look may see a part of it."""
    before = life.files()
    instant = life.upsert("a")
    (log,) = life.files() - before
    file = life.path / "p=a" / log.rpartition("/")[2]
    content = file.read_bytes()
    done = next(one for one in timeline_of(life.path).glob(f"{instant}*.deltacommit") if one.is_file())
    away = life.path.with_name("away")
    done.rename(away)
    with open(file, "r+b") as growing:
        growing.truncate(10)
    looked_at(life)
    with open(file, "r+b") as growing:
        growing.write(content)
    away.rename(done)
    settle()
    assert_kept_is_true(life.table)


@pytest.mark.parametrize("action", ["rollback", "clean", "restore", "indexing.requested", "whatever"])
def test_what_does_more_than_add_files_has_all_listed_again(life: Life, action: str) -> None:
    """On version 6, where the store can append, Apache Hudi's rollback adds a block to a log file that stays."""
    looked_at(life)
    file = next(iter((life.path / "p=a").glob(".*.log.*")))
    with open(file, "ab") as growing:
        growing.write(b"#HUDI#")
    now = "20991231000000000"
    name = f"{now}_{now}.{action}" if life.table.config.table_version > 6 and "." not in action else f"{now}.{action}"
    (timeline_of(life.path) / name).write_bytes(b"")
    assert view_of(moved_on(life.table)) == view_of(life.table.state())


def test_what_vanished_has_all_listed_again(life: Life) -> None:
    instant = life.upsert("a")
    looked_at(life)
    with open(next(iter((life.path / "p=a").glob(".*.log.*"))), "ab") as growing:
        growing.write(b"#HUDI#")
    for file in timeline_of(life.path).glob(f"{instant}*"):
        file.unlink()
    assert view_of(moved_on(life.table)) == view_of(life.table.state())


def test_a_file_that_is_cut_short_in_its_place_is_seen_in_time(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing tells of it but its size: so all is listed again after a while."""
    looked_at(life)
    state = life.table.state()
    log = state.remaining_logs[0]
    os.truncate(life.path / log.path, 10)
    assert life.table.freshness().reason is None
    monkeypatch.setattr(kept, "BELIEVED_S", 0.0)
    assert "10 of the" in (life.table.freshness().reason or "")


def test_a_file_that_takes_anothers_place_is_asked_for_its_size(life: Life) -> None:
    """As rsync and other backups put one back: under another name, and then in the place of the old one."""
    looked_at(life)
    log = life.path / life.table.state().remaining_logs[0].path
    other = log.with_name(".being_put_back")
    other.write_bytes(log.read_bytes()[:10])
    other.replace(log)
    settle()
    assert "10 of the" in (life.table.freshness().reason or "")


def test_a_folder_that_takes_anothers_place_is_asked_for_all_sizes(life: Life) -> None:
    looked_at(life)
    log = life.path / life.table.state().remaining_logs[0].path
    away = life.path.with_name("away")
    log.parent.rename(away)
    shutil.copytree(away, log.parent)
    os.truncate(log, 10)
    settle()
    assert "10 of the" in (life.table.freshness().reason or "")


def test_a_file_with_the_name_of_a_folder_is_a_file(life: Life) -> None:
    folder = life.path / "p=a/inside"
    folder.mkdir()
    looked_at(life)
    folder.rmdir()
    folder.touch()
    looked_at(life)
    assert_kept_is_true(life.table)
    folder.unlink()
    folder.mkdir()
    looked_at(life)
    assert_kept_is_true(life.table)


def test_what_is_the_same_after_a_while_is_not_told_again(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    """All is listed with sizes. What these say of a partition is what was known."""
    looked_at(life)
    monkeypatch.setattr(kept, "BELIEVED_S", 0.0)
    life.upsert("a")
    looked_at(life)
    began = time.monotonic()
    before = life.table._table.look()
    assert before.reading.whole_at >= began
    monkeypatch.setattr(kept, "BELIEVED_S", 3_600.0)
    before.keep()
    again = life.table._table.look()
    assert again.parts["p=b"] is before.parts["p=b"]
    assert again.reading.whole_at == before.reading.whole_at
    assert_kept_is_true(life.table)


def test_tables_of_few_files_are_listed_each_time(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "FEW_FILES", 1_000)
    looked_at(life)
    os.truncate(life.path / life.table.state().remaining_logs[0].path, 10)
    assert "10 of the" in (life.table.freshness().reason or "")


def test_a_file_that_goes_is_missed_at_once(life: Life) -> None:
    settle()
    assert life.table.freshness().reason is None
    (life.path / life.table.state().remaining_logs[0].path).unlink()
    assert "gone" in (life.table.freshness().reason or "")


def test_a_link_whose_target_goes_is_seen_at_once(session: LocalSession, tmp_path: Path) -> None:
    settings = {"hudi_assets.carry.over": "symlink", "hudi_assets.table.services": "ours"}
    life = Life(tmp_path / "t", session, 6, **settings)
    life.upsert()
    life.upsert()
    life.compact(1)
    link = next(one for one in life.path.rglob(".*.log.*") if one.is_symlink())
    elsewhere = link.resolve().rename(life.path / ".hoodie" / "elsewhere")
    link.unlink()
    link.symlink_to(elsewhere)
    looked_at(life)
    assert life.table.freshness().freshness is not None
    elsewhere.unlink()  # the folder of the link stays as it was
    assert life.table.freshness().freshness is None


def test_a_new_partition_and_one_that_goes_are_seen(life: Life) -> None:
    looked_at(life)
    life.upsert("c")
    settle()
    assert_kept_is_true(life.table)
    shutil.rmtree(life.path / "p=c")
    settle()
    assert "p=c" not in moved_on(life.table).listing


def test_settings_have_looks_of_their_own(life: Life) -> None:
    looked_at(life)
    other = HudiTable.open(life.table.path, settings={"hudi_assets.data.latency": "1h"})
    assert other.freshness() != life.table.freshness()


def test_a_store_without_such_folders_is_listed_each_time(life: Life) -> None:
    """What was parsed is kept there too, of folders with the same entries."""
    if life.table.config.table_version == 6:
        pytest.skip("not in a bucket")
    table = HudiTable(FolderBucket(str(life.path)), life.table.config)
    first = moved_on(table).parts
    assert moved_on(table).parts["p=a"] is first["p=a"]
    life.upsert("a")
    again = moved_on(table)
    assert again.parts["p=b"] is first["p=b"]
    assert view_of(again) == view_of(table.state())


def test_a_partition_in_which_nothing_is_due_is_passed_over_alone(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    life.upsert("a")
    life.upsert("b", later=1_000_000)
    times = TableTimes(life.table.state())
    assert times.oldest.keys() == {"p=a", "p=b"}
    for threshold in (0, life.number * 1000, 2_000_000_000):
        found = look_of_due(life.table, threshold)
        with monkeypatch.context() as patch:
            patch.setattr(TableTimes, "oldest", {})
            assert look_of_due(life.table, threshold) == found


def look_of_due(table: HudiTable, threshold: int) -> object:
    due = table.plan_compaction(threshold=min(threshold, table.now_ms()), dry_run=True)
    return due if isinstance(due, NoPlan) else [(op.partition, op.log_files) for op in due.operations]


def test_rows_without_event_time_count_in_whatever_partition(life: Life) -> None:
    """A delete without ordering value may be of any age: no other log file of its partition stands for it."""
    life.upsert("a")
    looked_at(life)
    keys = life.session.frame(pa.table({"id": [0], "p": ["a"]}))
    life.table.delete(life.session, keys, clock_time=datetime.fromtimestamp(life.number + 4, UTC))
    settle()
    assert_kept_is_true(life.table)
    state = life.table._table.look()
    times = TableTimes(state)
    assert "p=a" not in times.oldest
    assert set(state.parts["p=a"].remaining_logs) <= set(times.deciding_logs)


def test_a_write_that_ends_after_a_look_is_known_by_its_commit(life: Life) -> None:
    """A log file may be there, and looked at, before the commit that says what it holds."""
    instant = life.upsert("a")
    done = next(one for one in timeline_of(life.path).glob(f"{instant}*.deltacommit") if one.is_file())
    away = life.path.with_name("away")
    done.rename(away)
    looked_at(life)
    before = life.table._table.look().parts["p=a"]
    away.rename(done)
    settle()
    assert_kept_is_true(life.table)
    assert life.table._table.look().parts["p=a"] is not before


def test_what_outlives_archiving_is_kept_by_looks_now_and_then(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is made of all commits: looks that go on from each other leave the newest ones for later."""
    made: list[str] = []
    written = archived_facts.write_memory

    def write_memory(storage: Storage, memory: Memory, made_from: str) -> None:
        made.append(made_from)
        written(storage, memory, made_from)

    monkeypatch.setattr(remembering, "write_memory", write_memory)
    kept_by = []
    for _ in range(12):
        life.upsert("a")
        made.clear()
        settle()
        life.table.stats()
        kept_by.append(bool(made))
    assert 1 <= sum(kept_by) <= 3
    for number in range(4):  # one that is forgotten would be written twice
        life.upsert("a", batch=f"batch {number}")
        made.clear()
        settle()
        life.table.stats()
        assert made or number < 2, "the two newest are never archived"
    made.clear()
    TableTimes(life.table.state()).remember()  # as before archiving
    assert made


def test_an_slo_is_told_the_same(life: Life) -> None:
    for number in range(4):
        settle()
        before = HudiTable.open(life.table.path)
        known = view_of_slo(before._table.look())
        kept.forget()
        assert known == view_of_slo(before._table.look())
        moved_on(before)
        _ = life.upsert("ab"[number % 2]) if number < 3 else life.compact(life.number - 1)


def view_of_slo(state: TableState) -> object:
    """The table as the policy sees it."""
    seen = rewriting.view_of(state, "1h")
    state.keep()
    return seen
