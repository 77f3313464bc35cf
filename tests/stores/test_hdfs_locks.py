"""Locks in HDFS: what a holder asks for that has lost its lock is refused, whenever it arrives."""

from __future__ import annotations

import itertools
import json
import os
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from hudi_assets.engine.errors import Conflict, LockLost, UnsupportedTable
from hudi_assets.engine.model import Action, State
from hudi_assets.engine.storage.hdfs import CLAIMS
from hudi_assets.engine.storage.hdfs_folder import HOLDERS
from hudi_assets.engine.table.layout.choice import layout_of
from hudi_assets.engine.table.settings.config import WRITERS
from hudi_assets.engine.transaction.file_lock import LOCK_PATH, FileSystemLock
from hudi_assets.engine.transaction.lock import EXECUTE, WRITE, table_lock, write_lock
from hudi_assets.engine.transaction.lock_providers import FILE_SYSTEM, LOCK_PROVIDER, STORAGE_BASED
from hudi_assets.engine.transaction.publish import Publisher, begun_under
from tests.stores.folder_hdfs import FolderHdfs, FolderNameNode
from tests.stores.test_leases import PROPERTIES, Clock, config

LATER_MS = 400_000
CONFIG = config()


class Late(FolderNameNode):
    """Right before a request of a kind reaches the name node, after so many others, something else happens."""

    def __init__(self, kind: str, after: int = 0) -> None:
        self.kind, self.after = kind, after
        self.before: Callable[[], None] | None = None

    @property
    def is_waiting(self) -> bool:
        return self.before is not None

    def create(self, path: str, options: Any) -> Any:
        self._come_late("create")
        return super().create(path, options)

    def rename(self, source: str, target: str, overwrite: bool) -> None:
        self._come_late("rename")
        super().rename(source, target, overwrite)

    def _come_late(self, kind: str) -> None:
        if self.before is not None and kind == self.kind:
            self.after -= 1
            if self.after < 0:
                act, self.before = self.before, None
                act()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


@pytest.fixture
def storage(tmp_path: Path) -> FolderHdfs:
    return FolderHdfs(str(tmp_path / "t"))


def write_new(storage: FolderHdfs) -> None:
    with storage.open_new("d/new") as out:
        out.write(b"late")


CHANGES: dict[str, Callable[[FolderHdfs], object]] = {
    "create": lambda storage: storage.create("d/new", b"late"),
    "touch": lambda storage: storage.touch("d/new"),
    "replace": lambda storage: storage.replace("d/old", b"late"),
    "replace if": lambda storage: storage.replace_if("d/old", b"late", storage.read_with_version("d/old")[1]),
    "publish": lambda storage: storage.publish("staged", "d/new"),
    "copy": lambda storage: storage.copy("d/old", "d/new"),
    "stream": write_new,
    "delete": lambda storage: storage.delete("d/old"),
    "delete a tree": lambda storage: storage.delete_tree("d"),
}


WRITES = ["create", "touch", "replace", "replace if", "copy", "stream"]


@pytest.mark.parametrize(
    ("change", "kind", "after"),
    [
        *((one, "rename", 0) for one in CHANGES),
        ("publish", "rename", 1),
        *((one, "create", 0) for one in WRITES),
    ],
)
def test_a_change_that_arrives_after_the_lock_was_taken_over_is_refused(
    change: str, kind: str, after: int, storage: FolderHdfs, clock: Clock
) -> None:
    """It was asked for while the lock was held; even the question right before it was answered well."""
    storage.create("d/old", b"old")
    storage.create("staged", b"late")
    node = storage.node = Late(kind, after)
    successor = FolderHdfs(storage.base)

    def take_over() -> None:
        clock.wait(LATER_MS)
        with table_lock(successor, WRITE, config=CONFIG, wait_s=0):
            clock.wait(-LATER_MS)  # the old holder's clock still says that it has the lock
        clock.now_ms += 1

    def change_late() -> None:
        with table_lock(storage, WRITE, config=CONFIG, wait_s=0):
            node.before = take_over
            CHANGES[change](storage)

    with pytest.raises(LockLost):
        change_late()
    assert not node.is_waiting
    assert [file.path for file in successor.list_files("d")] == ["d/old"]
    assert successor.read("d/old") == b"old"
    assert successor.list_directories(f"{HOLDERS}/table_lock") == []


@pytest.mark.parametrize("change", CHANGES)
def test_no_rename_of_a_change_arrives_after_it(change: str, tmp_path: Path, clock: Clock) -> None:
    """However many renames a change takes: what the lock's next holder did before any one of them stays."""
    for after in itertools.count():
        storage = FolderHdfs(str(tmp_path / str(after)))
        storage.create("d/old", b"old")
        storage.create("staged", b"late")
        node = storage.node = Late("rename", after)
        successor = FolderHdfs(storage.base)
        if not _is_taken_over(storage, successor, node, change, clock):
            break
        assert successor.list_files("d") == []
        assert successor.list_directories(f"{HOLDERS}/table_lock") == []
    assert after > 0


def _is_taken_over(storage: FolderHdfs, successor: FolderHdfs, node: Late, change: str, clock: Clock) -> bool:
    """Ask for a change; the next holder deletes all that is there. False where no such rename was asked for."""

    def take_over() -> None:
        clock.wait(LATER_MS)
        with table_lock(successor, WRITE, config=CONFIG, wait_s=0):
            successor.delete_tree("d")
            clock.wait(-LATER_MS)
        clock.now_ms += 1

    with suppress(LockLost, FileNotFoundError), table_lock(storage, WRITE, config=CONFIG, wait_s=0):
        node.before = take_over
        CHANGES[change](storage)
        assert node.is_waiting or change.startswith("delete"), "a change is done though its lock was lost"
        if node.is_waiting:
            node.before = None
            return False
    return True


@pytest.mark.parametrize(("after", "is_deleted"), [(0, True), (1, True), (1, False)])
def test_an_execution_that_lost_its_lock_begins_nothing(
    after: int, is_deleted: bool, storage: FolderHdfs, clock: Clock
) -> None:
    """Its plan may be gone by now. So its inflight file neither comes back nor stays: there would be no plan to it."""
    layout = layout_of(9, storage.base)
    inflight = layout.instant_path("20260101000000000", Action.COMPACTION, State.INFLIGHT)
    storage.create(inflight, begun_under("former"))
    node = storage.node = Late("rename", after)
    successor = FolderHdfs(storage.base)

    def take_over() -> None:
        clock.wait(LATER_MS)
        with table_lock(successor, WRITE, config=CONFIG, wait_s=0):
            assert not is_deleted or successor.delete(inflight)
            clock.wait(-LATER_MS)
        clock.now_ms += 1

    def begin() -> None:
        with table_lock(storage, WRITE, config=CONFIG, wait_s=0):
            node.before = take_over
            publisher = Publisher(storage, layout, lambda: clock.now_ms)
            publisher.begin_compaction("20260101000000000", begun_under("late"))

    with pytest.raises(LockLost):
        begin()
    assert not node.is_waiting
    assert not successor.exists(inflight)


@pytest.mark.parametrize("released", ["before it is written", "before it has its name"])
def test_a_heartbeat_outlasts_a_lock_that_this_process_released(released: str, storage: FolderHdfs) -> None:
    """It was on its way in the folder of the write lock, which went with the lock. The outer lock is held still."""
    node = storage.node = Late("create" if released == "before it is written" else "rename")
    with table_lock(storage, EXECUTE, config=CONFIG, wait_s=0):
        inner = ExitStack()
        inner.enter_context(table_lock(storage, WRITE, config=CONFIG, wait_s=0))

        def release() -> None:
            inner.close()

        node.before = release
        storage.touch(".hoodie/.heartbeat/1")
        assert not node.is_waiting
        assert storage.exists(".hoodie/.heartbeat/1")


def test_a_lock_that_is_released_while_it_is_asked_is_no_lost_one(storage: FolderHdfs) -> None:
    with table_lock(storage, EXECUTE, config=CONFIG, wait_s=0):
        inner = ExitStack()
        held = inner.enter_context(table_lock(storage, WRITE, config=CONFIG, wait_s=0))
        assert held.lease is not None
        asked = held.lease.fence

        def released_first() -> None:
            inner.close()
            asked()

        held.lease.fence = released_first  # type: ignore[method-assign]
        storage.touch(".hoodie/.heartbeat/1")
        assert storage.exists(".hoodie/.heartbeat/1")


@pytest.mark.parametrize("change", CHANGES)
def test_what_is_asked_in_time_is_done_once(change: str, storage: FolderHdfs) -> None:
    storage.create("d/old", b"old")
    storage.create("staged", b"late")
    with table_lock(storage, EXECUTE, config=CONFIG, wait_s=0), table_lock(storage, WRITE, config=CONFIG, wait_s=0):
        CHANGES[change](storage)
    there = {file.path: storage.read(file.path) for file in storage.list_files("d")}
    new, old = {"d/new": b"" if change == "touch" else b"late"}, {"d/old": b"old"}
    assert there == {
        "replace": {"d/old": b"late"},
        "replace if": {"d/old": b"late"},
        "copy": {**old, "d/new": b"old"},
        "delete": {},
        "delete a tree": {},
    }.get(change, {**old, **new})
    assert storage.list_folder(f"{HOLDERS}/table_lock") == ([], [])


def test_an_answer_that_is_lost_is_found_out(storage: FolderHdfs) -> None:
    """The library asks again, and is told that there is nothing of the kind: it was done by the first try."""

    class Twice(FolderNameNode):
        def rename(self, source: str, target: str, overwrite: bool) -> None:
            super().rename(source, target, overwrite)
            super().rename(source, target, overwrite)

    storage.node = Twice()
    storage.create("staged", b"s")
    with table_lock(storage, WRITE, config=CONFIG, wait_s=0):
        storage.create("a", b"1")
        storage.replace("a", b"2")
        assert storage.read("a") == b"2"
        version = storage.replace_if("a", b"3", storage.read_with_version("a")[1])
        assert storage.read_with_version("a") == (b"3", version)
        assert storage.delete("a") is True
        assert not storage.exists("a")
        assert storage.delete("a") is False
        storage.publish("staged", "p")
        assert storage.read("p") == b"s"
    storage.create("staged", b"t")
    storage.publish("staged", "q")
    assert storage.read("q") == b"t"


def test_a_name_that_another_took_is_no_lost_answer(storage: FolderHdfs) -> None:
    storage.create("a", b"another's")
    with table_lock(storage, WRITE, config=CONFIG, wait_s=0):
        for content in (b"ours", b"another's"):
            with pytest.raises(Conflict, match="created this file first"):
                storage.create("a", content)


def test_what_a_dead_holder_left_is_gone_with_the_next(storage: FolderHdfs, clock: Clock) -> None:
    storage.make_folder(f"{HOLDERS}/table_lock/dead")
    storage.create(f"{HOLDERS}/table_lock/dead/half", b"x")
    storage.make_folder(f"{HOLDERS}/hudi_assets_execute/alive")
    storage.create(f"{HOLDERS}/hudi_assets_execute/alive/half", b"x")
    with table_lock(storage, WRITE, config=CONFIG, wait_s=0):
        assert not storage.exists(f"{HOLDERS}/table_lock/dead")
        assert storage.exists(f"{HOLDERS}/hudi_assets_execute/alive/half")


# -- what follows a version ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("finds_out", ["by a claim", "by reading"])
def test_what_was_claimed_is_finished_by_whoever_looks(finds_out: str, storage: FolderHdfs) -> None:
    """A process died between claiming a version and putting its file into its place."""
    storage.create("f", b"1")
    _, version = storage.read_with_version("f")

    class Dies(FolderNameNode):
        def rename(self, source: str, target: str, overwrite: bool) -> None:
            if target.endswith("/f"):
                raise KeyboardInterrupt
            super().rename(source, target, overwrite)

    storage.node = Dies()
    with pytest.raises(KeyboardInterrupt):
        storage.replace_if("f", b"2", version)
    other = FolderHdfs(storage.base)
    assert other.read("f") == b"1"
    if finds_out == "by a claim":
        with pytest.raises(Conflict):
            other.replace_if("f", b"3", version)
    else:
        assert other.read_with_version("f")[0] == b"2"
    assert other.read("f") == b"2"
    storage.node = FolderNameNode()
    with pytest.raises(Conflict):
        storage.replace_if("f", b"4", version)
    assert other.read("f") == b"2"


def test_a_claim_of_a_version_that_is_gone_changes_nothing(storage: FolderHdfs) -> None:
    """Also where the first claim of it was swept, after a day."""
    storage.create("f", b"1")
    _, version = storage.read_with_version("f")
    other = FolderHdfs(storage.base)

    class Slow(FolderNameNode):
        def rename(self, source: str, target: str, overwrite: bool) -> None:
            if target.endswith(version):
                storage.node = FolderNameNode()
                other.replace_if("f", b"2", version)
                other.delete_tree(CLAIMS)
                other.make_folder(CLAIMS)
                source = _remade(other, source)
            super().rename(source, target, overwrite)

    storage.node = Slow()
    with pytest.raises(Conflict, match="changed this file first"):
        storage.replace_if("f", b"3", version)
    assert other.read_with_version("f")[0] == b"2"


def _remade(storage: FolderHdfs, source: str) -> str:
    path = source.removeprefix(f"{storage.base}/")
    storage.create(f"{path}/new", b"3")
    return source


def test_under_a_lock_what_was_changed_meanwhile_is_not_replaced(storage: FolderHdfs) -> None:
    """By a holder of another lock of the table, while the new file was written."""
    storage.create("f", b"1")
    node = storage.node = Late("create")
    with table_lock(storage, WRITE, config=CONFIG, wait_s=0):
        _, version = storage.read_with_version("f")
        node.before = lambda: FolderHdfs(storage.base).replace("f", b"another's")
        with pytest.raises(Conflict, match="changed this file first"):
            storage.replace_if("f", b"2", version)
        assert storage.read("f") == b"another's"


def test_the_same_bytes_again_are_another_version(storage: FolderHdfs) -> None:
    storage.create("f", b"1")
    _, version = storage.read_with_version("f")
    seen = {version}
    for _ in range(5):
        version = storage.replace_if("f", b"1", version)
        seen.add(version)
    assert len(seen) == 6


def test_claims_are_swept_after_a_day(storage: FolderHdfs, monkeypatch: pytest.MonkeyPatch) -> None:
    storage.create("f", b"1")
    _, version = storage.read_with_version("f")
    version = storage.replace_if("f", b"2", version)
    (claim,) = storage.list_directories(CLAIMS)
    old = time.time() - 90_000
    os.utime(f"{storage.base}/{claim}", (old, old))
    again = FolderHdfs(storage.base)
    again.replace_if("f", b"3", version)
    assert claim not in again.list_directories(CLAIMS)
    assert len(again.list_directories(CLAIMS)) == 1


# -- beside Hudi's writers ----------------------------------------------------------------------------------------


def test_hudis_file_lock_is_inside_ours(storage: FolderHdfs) -> None:
    locked = config(**{WRITERS: "locked"})
    with write_lock(storage, locked, wait_s=0) as held:
        assert json.loads(storage.read(".hoodie/lock"))["owner"] == "hudi-assets"
        assert held.owner != ""
        held.check()
        storage.take_back(".hoodie/lock")
        with pytest.raises(Conflict, match="Hudi's lock on the table was taken"):
            held.check()
    assert not storage.exists(".hoodie/lock")


def test_hudis_holder_is_waited_for(storage: FolderHdfs) -> None:
    storage.create(".hoodie/lock", b'{"lockThreadName":"java"}')
    locked = config(**{WRITERS: "locked", LOCK_PROVIDER: FILE_SYSTEM})
    with pytest.raises(Conflict, match="Another engine holds Hudi's lock"), write_lock(storage, locked, wait_s=0):
        pass
    assert storage.exists(".hoodie/lock")


def test_our_own_is_taken_over_from_any_host(storage: FolderHdfs) -> None:
    """Whoever is here has our lease: another holder of ours is dead, on whichever host it was."""
    left = {"owner": "hudi-assets", "host": "elsewhere", "table": storage.base}
    storage.create(".hoodie/lock", json.dumps(left).encode())
    with write_lock(storage, config(**{WRITERS: "locked"}), wait_s=0):
        assert json.loads(storage.read(".hoodie/lock"))["host"] != "elsewhere"


def test_the_storage_based_lock_is_refused(storage: FolderHdfs) -> None:
    """Hudi has none for hdfs://."""
    wanted: Any = {WRITERS: "locked", LOCK_PROVIDER: STORAGE_BASED}
    with (
        pytest.raises(UnsupportedTable, match="has no storage-based lock"),
        write_lock(storage, config(**wanted), wait_s=0),
    ):
        pass


def test_a_lock_path_without_a_scheme_is_refused(storage: FolderHdfs) -> None:
    """To Hadoop it is on the default store, which only its own files name."""
    assert "hoodie.table.name" in PROPERTIES
    wanted: Any = {WRITERS: "locked", LOCK_PATH: "/locks"}
    node = FolderHdfs(storage.base)
    node.base = f"hdfs://folder{storage.base}"
    with pytest.raises(UnsupportedTable, match=r"filesystem\.path is /locks") as refused:
        write_lock(node, config(**wanted), wait_s=0).__enter__()
    assert "Give the whole path, hdfs://" in str(refused.value)


@pytest.mark.parametrize("folder", ["{base}x/locks", "{base}/../locks", "hdfs://other/locks", "{base}/.hoodie/.locks"])
def test_a_lock_path_where_no_change_is_refused_after_the_lease(folder: str, storage: FolderHdfs) -> None:
    """Only in the table does a change go through the folder of the lock's holder."""
    wanted: Any = {WRITERS: "locked", LOCK_PATH: folder.format(base=storage.base)}
    with pytest.raises(UnsupportedTable, match=r"filesystem\.path is .*, where a change can arrive after"):
        write_lock(storage, config(**wanted), wait_s=0).__enter__()


@pytest.mark.parametrize("kind", ["take", "release"])
@pytest.mark.parametrize("folder", ["{base}/own/locks/", "{base}", ""])
def test_hudis_lock_is_changed_under_the_lease(kind: str, folder: str, storage: FolderHdfs, clock: Clock) -> None:
    """It lies in the table. What a holder that has lost its lease asks of it arrives nowhere."""
    locked = config(**{WRITERS: "locked", LOCK_PATH: folder.format(base=storage.base)})
    file = {"{base}/own/locks/": "own/locks/lock", "{base}": "lock", "": ".hoodie/lock"}[folder]
    node = storage.node = Late("rename")
    successor = FolderHdfs(storage.base)

    def take_over() -> None:
        clock.wait(LATER_MS)
        with table_lock(successor, WRITE, config=CONFIG, wait_s=0):
            clock.wait(-LATER_MS)
        clock.now_ms += 1

    def work() -> None:
        with table_lock(storage, WRITE, config=CONFIG, wait_s=0):
            lock = FileSystemLock.of(storage, locked)
            if kind == "take":
                node.before = take_over
            mine = lock.take(0, "works")
            assert storage.read(file) == mine
            node.before = take_over
            lock.release(mine)

    with pytest.raises(LockLost):
        work()
    assert not node.is_waiting
    assert successor.exists(file) is (kind == "release")


def test_on_version_6_hudis_writers_are_stopped(storage: FolderHdfs) -> None:
    """Hudi 0.15.0 appends to log files in HDFS, which on a disk nobody does."""
    wanted: Any = {WRITERS: "locked", "hoodie.table.version": "6", "hoodie.timeline.layout.version": "1"}
    with pytest.raises(UnsupportedTable, match="have to be stopped"):
        write_lock(storage, config(**wanted), wait_s=0).__enter__()
    assert not storage.exists(".hoodie/lock")
