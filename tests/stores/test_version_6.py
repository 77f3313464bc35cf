"""Version 6 in a bucket: names that occur once, plans that come and go so that nothing late loses rows, times."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import obstore
import pytest
from obstore.exceptions import PreconditionError

from hudi_assets.engine import HudiTable
from hudi_assets.engine.actions.archiving.archive import Archiver
from hudi_assets.engine.errors import Conflict, LockLost, UnsupportedTable
from hudi_assets.engine.hudi_table import table as opening
from hudi_assets.engine.model import Action, NothingToDo, State
from hudi_assets.engine.storage import LocalStorage, Storage
from hudi_assets.engine.table.layout.choice import layout_of
from hudi_assets.engine.table.layout.names import is_token_of_once, token_of_once
from hudi_assets.engine.table.metadata.writer import MetadataTable
from hudi_assets.engine.timeline.compaction_plan import RESIDUE
from hudi_assets.engine.timeline.instants import instant_ms
from hudi_assets.engine.timeline.zone import UTC
from hudi_assets.engine.transaction.publish import CLOCKS_MS, Publisher
from hudi_assets.engine.transaction.rollback import RollbackExecutor
from hudi_assets.engine.transaction.taken_back import FOLDER, Note, TakenBack
from tests.crash.faulty import Crash
from tests.crash.tables import SCHEMA, planned, snapshot, write, write_batches
from tests.stores.folder_hdfs import FolderHdfs
from tests.stores.memory import MemoryStorage
from tests.stores.test_changes import SETTINGS
from tests.stores.test_late_commits import Bucket, dead_write
from tests.stores.test_taken_back import Sender, newest
from tests.tables.local_session import LocalSession
from tests.tables.steps import created

_PUT = MemoryStorage._put
NEXT = (6, 9_500)
"""First key and first ordering value of what another process writes."""


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch, session: LocalSession) -> Bucket:
    return Bucket(monkeypatch, session, 6)


def meanwhile(bucket: Bucket, work: Callable[[], object]) -> None:
    """Another process has the lock, while this one stands still."""
    fences = list(bucket.store._fences)
    bucket.later()
    work()
    bucket.store._fences[:] = fences


def is_plan(path: str, mode: object) -> bool:
    """The request that puts a plan in the place of the empty one."""
    return path.endswith(".compaction.requested") and isinstance(mode, dict)


def right(bucket: Bucket, session: LocalSession, rows: set[Any]) -> None:
    """These rows, whatever is done next."""
    assert snapshot(bucket.open()) == rows
    bucket.open().recover()
    assert snapshot(bucket.open()) == rows
    assert bucket.open().validate() == ()
    for plan in bucket.open().state().executable_plans:
        bucket.open().execute_compaction(session, plan.instant)
    write(bucket.open(), session, 20, 9_800)
    bucket.open().execute_compaction(session, planned(bucket.open(), 10_700).instant)
    assert snapshot(bucket.open()) == rows | {(i, 9_800 + i, i * 10 + 9_800) for i in range(20, 26)}
    assert bucket.open().validate() == ()


# ------------------------------------------------------------------------------------------------------- plans


def test_a_plan_takes_whole_slices(bucket: Bucket, session: LocalSession) -> None:
    plan = planned(bucket.open())
    assert sum(len(operation.log_files) for operation in plan.operations) == bucket.open().stats().remaining_log_files
    assert [one for operation in plan.operations for one in operation.carried_over] == []
    assert bucket.open().state().executable_plans == (plan,)
    bucket.open().execute_compaction(session, plan.instant)
    assert bucket.open().stats().remaining_log_files == 0


def test_in_hdfs_log_files_are_carried_over(
    monkeypatch: pytest.MonkeyPatch, session: LocalSession, tmp_path: Any
) -> None:
    """Nothing arrives late there."""
    monkeypatch.setattr(opening, "open_storage", lambda *_: FolderHdfs(str(tmp_path / "t")))
    created(str(tmp_path / "t"), SCHEMA, clock="commit", table_version=6)
    table = HudiTable.open(str(tmp_path / "t"), settings={"hudi_assets.writers": "stopped"})
    write_batches(table, session)
    assert [one for operation in planned(table).operations for one in operation.carried_over]
    taken_back = table._table.publisher.taken_back
    taken_back.add("20260101000000001", Note(True, data=frozenset({"f"})))
    assert taken_back.gone() == {"20260101000000001"}
    assert Archiver(table._table)._taken_back() == frozenset()


@pytest.mark.parametrize("request_", ["the empty plan", "the plan"])
@pytest.mark.parametrize("goes_on", [True, False])
def test_a_plan_that_arrives_late_does_not_come(
    monkeypatch: pytest.MonkeyPatch, bucket: Bucket, session: LocalSession, request_: str, goes_on: bool
) -> None:
    """Another process has written meanwhile, into the slices that the plan would close."""
    left = [1]

    def late(self: MemoryStorage, path: str, data: bytes, mode: Any, *rest: Any) -> str:
        wanted = is_plan(path, mode) if request_ == "the plan" else path.endswith(".compaction.requested")
        if wanted and left:
            left.pop()
            meanwhile(bucket, lambda: write(bucket.open(), session, *NEXT))
            done = _PUT(self, path, data, mode, *rest)
            if not goes_on:
                raise Crash
            return done
        return _PUT(self, path, data, mode, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(MemoryStorage, "_put", late)
        with pytest.raises((Conflict, Crash)):
            planned(bucket.open())
    assert not left
    bucket.later()
    assert bucket.open().state().executable_plans == ()
    rows = snapshot(bucket.open())
    assert {row[0] for row in rows} == set(range(12))
    right(bucket, session, rows)


def test_a_plan_that_others_have_seen_stays(
    monkeypatch: pytest.MonkeyPatch, bucket: Bucket, session: LocalSession
) -> None:
    """Its planner was stopped right after its request. Another writes into the slice that the plan opens."""
    left = [1]

    def stopped_after(self: MemoryStorage, path: str, data: bytes, mode: Any, *rest: Any) -> str:
        version = _PUT(self, path, data, mode, *rest)
        if is_plan(path, mode) and left:
            left.pop()
            meanwhile(bucket, lambda: write(bucket.open(), session, *NEXT))
        return version

    with monkeypatch.context() as patch:
        patch.setattr(MemoryStorage, "_put", stopped_after)
        with pytest.raises(LockLost):
            planned(bucket.open())
    bucket.later()
    (plan,) = bucket.open().state().executable_plans
    appended = [log for log in bucket.open().state().remaining_logs if log.base_instant == plan.instant]
    assert appended
    right(bucket, session, snapshot(bucket.open()))


def test_a_plan_that_is_withdrawn_late_is_gone_by_then(
    monkeypatch: pytest.MonkeyPatch, bucket: Bucket, session: LocalSession
) -> None:
    """Whoever has the lock next withdraws it first, and does not write into the slice that it opens."""
    plan, left, delete = planned(bucket.open()), [1], obstore.delete

    def late(store: Any, keys: Any) -> None:
        if str(keys).endswith(f"{plan.instant}.compaction.requested") and left:
            left.pop()
            meanwhile(bucket, lambda: write(bucket.open(), session, *NEXT))
        delete(store, keys)

    with monkeypatch.context() as patch:
        patch.setattr(obstore, "delete", late)
        bucket.open().unschedule(plan.instant)
    assert not left
    bucket.later()
    rows = snapshot(bucket.open())
    assert {row[0] for row in rows} == set(range(12))
    assert bucket.open().state().executable_plans == ()
    right(bucket, session, rows)


def test_a_plan_whose_planner_gives_it_up_late_is_gone_by_then(
    monkeypatch: pytest.MonkeyPatch, bucket: Bucket, session: LocalSession
) -> None:
    left, delete = [1], obstore.delete

    def late(store: Any, keys: Any) -> None:
        if str(keys).endswith(".compaction.requested") and left:
            left.pop()
            meanwhile(bucket, lambda: write(bucket.open(), session, *NEXT))
        delete(store, keys)

    with monkeypatch.context() as patch:
        patch.setattr(obstore, "delete", late)
        name = "hudi_assets.engine.actions.compaction.planning.CompactionPlanner._still_alone"
        patch.setattr(name, lambda *_: "something appeared beside it")
        with pytest.raises(Conflict):
            planned(bucket.open())
    assert not left
    bucket.later()
    right(bucket, session, snapshot(bucket.open()))


def test_a_withdrawal_that_arrives_late_leaves_a_plan_with_rows(
    monkeypatch: pytest.MonkeyPatch, bucket: Bucket, session: LocalSession
) -> None:
    """The guard comes after another has written into the plan's slice; its sender is dead."""
    plan = planned(bucket.open())
    sender = Sender(monkeypatch, ".compaction.requested", lambda: bucket.open().unschedule(plan.instant), dies=True)
    bucket.later()
    write(bucket.open(), session, *NEXT)
    rows = snapshot(bucket.open())
    sender.arrive()
    bucket.later()
    assert any("removed the guard" in said for said in bucket.open().recover())
    assert [one.instant for one in bucket.open().state().executable_plans] == [plan.instant]
    right(bucket, session, rows)


def test_an_execution_finishes_a_withdrawal_first(
    monkeypatch: pytest.MonkeyPatch, bucket: Bucket, session: LocalSession
) -> None:
    plan = planned(bucket.open())
    with monkeypatch.context() as patch:
        patch.setattr(RollbackExecutor, "_delete_plan", lambda *_: (_ for _ in ()).throw(Crash()))
        with pytest.raises(Crash):
            bucket.open().unschedule(plan.instant)
    bucket.later()
    with pytest.raises(Exception, match="No compaction is pending"):
        bucket.open().execute_compaction(session, plan.instant)
    right(bucket, session, snapshot(bucket.open()))


@pytest.mark.parametrize("version", [9, 6])
@pytest.mark.parametrize("kind", ["rollback", "restore"])
def test_what_would_be_taken_back_late_is_not(
    monkeypatch: pytest.MonkeyPatch, session: LocalSession, kind: str, version: int
) -> None:
    """A rollback or restore that arrives when another has written, and its sender is dead."""
    bucket = Bucket(monkeypatch, session, version)
    bucket.settings = {"hudi_assets.writers": "stopped"}
    bucket.open().savepoint()
    write(bucket.open(), session, 3, 9_300)
    work: dict[str, Callable[[], object]] = {
        "rollback": lambda: bucket.open().rollback(newest(bucket, Action.DELTA_COMMIT)),
        "restore": lambda: bucket.open().restore(newest(bucket, Action.SAVEPOINT)),
    }
    sender = Sender(monkeypatch, f".{kind}.requested", work[kind], dies=True)
    bucket.later()
    write(bucket.open(), session, *NEXT)
    rows = snapshot(bucket.open())
    sender.arrive()
    bucket.later()
    assert any("had arrived after" in said for said in bucket.open().recover())
    assert snapshot(bucket.open()) == rows
    assert bucket.open().validate() == ()
    sender = Sender(monkeypatch, f".{kind}.requested", work[kind], dies=True)
    sender.arrive()
    bucket.later()
    work[kind]()  # in time, that is: it is done, by whoever comes next
    assert snapshot(bucket.open()) != rows
    assert [i for i in bucket.open().state().timeline.instants if not i.is_completed] == []


def test_what_is_gone_is_not_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    """S3 answers 404 to a condition on a file that is gone; other stores say that the condition does not hold."""
    storage = MemoryStorage()
    storage.create("f", b"one")
    _, version = storage.read_with_version("f")
    storage.delete("f")
    for error in (FileNotFoundError, PreconditionError):

        def refused(*_: object, error: type[Exception] = error, **__: object) -> None:
            raise error("gone")

        monkeypatch.setattr(obstore, "put", refused)
        with pytest.raises(Conflict):
            storage.replace_if("f", b"two", version)


# ------------------------------------------------------------------------------------------------------- names


def data_files(bucket: Bucket) -> set[str]:
    return {file.path for files in bucket.open().state().listing.values() for file in files}


def test_no_write_makes_a_name_again(monkeypatch: pytest.MonkeyPatch, bucket: Bucket, session: LocalSession) -> None:
    """Each process counts its tasks from the start, and each slice its log files."""
    monkeypatch.setattr("hudi_assets.engine.spark.session.write_token", lambda: "0-1-2")
    names: list[set[str]] = []
    before = data_files(bucket)
    for _ in range(2):
        dead_write(monkeypatch, bucket, session)
        names.append(data_files(bucket) - before)
        bucket.later()
        bucket.open().recover()
    assert names[0]
    assert {name.rpartition("_")[0] for name in names[0]} == {name.rpartition("_")[0] for name in names[1]}
    assert not names[0] & names[1]


def test_a_late_name_takes_none_of_another(
    monkeypatch: pytest.MonkeyPatch, bucket: Bucket, session: LocalSession
) -> None:
    """A sender that is stopped right before the end of a copy, and killed after it: no row is lost or there twice."""
    before, copy, left = snapshot(bucket.open()), obstore.copy, [1]

    def late(store: Any, source: str, target: str, **options: Any) -> None:
        if not left:
            copy(store, source, target, **options)
            return
        left.pop()
        content = obstore.get(store, source).bytes()
        meanwhile(bucket, lambda: write(bucket.open(), session, *NEXT))
        obstore.put(store, target, content, mode="create")
        raise Crash

    with monkeypatch.context() as patch:
        patch.setattr(obstore, "copy", late)
        with pytest.raises(Crash):
            write(bucket.open(), session, 3, 9_900)
    bucket.later()
    rows = snapshot(bucket.open())
    assert rows == {row for row in before if row[0] not in range(6, 12)} | {
        (i, 9_500 + i, i * 10 + 9_500) for i in range(6, 12)
    }
    right(bucket, session, rows)


@pytest.mark.parametrize(
    ("token", "is_once"),
    [("0-1-2", False), ("7-1048577-3", False), ("7-3-1048577", False), ("7-1048577-1048577", True), ("", False)],
)
def test_tokens_by_chance_are_told_from_those_that_spark_counts(token: str, is_once: bool) -> None:
    assert is_token_of_once(token) is is_once
    assert layout_of(6, "").occurs_once(f"p/.f-1_20260101000000000.log.3_{token}") is is_once
    assert layout_of(9, "").occurs_once(f"p/.f-1_20260101000000000.log.3_{token}")
    assert layout_of(6, "").occurs_once(f"p/f-1_{token}_20260101000000000.parquet")
    assert sum(is_token_of_once(token_of_once(7)) for _ in range(1_000)) > 980


def test_a_note_that_goes_takes_no_name_that_others_may_have() -> None:
    storage = MemoryStorage()
    taken_back = TakenBack(storage, layout_of(6, ""), lambda: instant_ms("20300101000000000", UTC))
    others, ours = ".f_20260101000000000.log.3_0-1-2", f".f_20260101000000000.log.3_{token_of_once()}"
    if not is_token_of_once(ours.rpartition("_")[2]):
        ours = ".f_20260101000000000.log.3_0-2000000-2000000"
    taken_back.add("20260101000000001", Note(True, data=frozenset({others, ours})))
    for name in (others, ours):
        storage.create(name, b"")
    taken_back.forget_late()
    assert storage.list_files(FOLDER) == []
    assert (storage.exists(others), storage.exists(ours)) == (True, False)


def test_the_archive_waits_for_what_may_be_given_its_name_yet(
    monkeypatch: pytest.MonkeyPatch, bucket: Bucket, session: LocalSession
) -> None:
    """A log file of an instant below the timeline's start counts as committed."""
    bucket.settings = SETTINGS
    before = data_files(bucket)
    dead_write(monkeypatch, bucket, session)
    copied = {path: bucket.store.read(path) for path in data_files(bucket) - before}
    (dead,) = bucket.open().state().timeline.inflight_writes
    bucket.later()
    for step in range(4):
        write(bucket.open(), session, step, 9_950 + step)
        bucket.open().execute_compaction(session, planned(bucket.open(), 9_980).instant)
    rows = snapshot(bucket.open())
    bucket.open().clean()
    bucket.open().archive()
    start = bucket.open().state().timeline.start
    assert start is not None
    assert start < dead.timestamp
    for path, content in copied.items():  # they arrive; whoever sent them is dead
        bucket.store.create(path, content)
    assert isinstance(bucket.open().archive(), NothingToDo)
    right(bucket, session, rows)
    bucket.store.delete_tree(FOLDER)
    bucket.open().archive()
    assert (bucket.open().state().timeline.start or "") > dead.timestamp


def test_an_ordinary_rollback_does_not_hold_the_archive_back(bucket: Bucket, session: LocalSession) -> None:
    bucket.settings = SETTINGS
    bucket.open().rollback(newest(bucket, Action.DELTA_COMMIT))
    assert bucket.open()._table.publisher.taken_back.gone() == frozenset()
    for note in bucket.store.list_files(FOLDER):
        assert bucket.open()._table.publisher.taken_back.of(note.name).whole


def test_a_late_commit_in_the_metadata_table_takes_none_of_anothers(monkeypatch: pytest.MonkeyPatch) -> None:
    """On version 6 both have the same name."""
    storage = MemoryStorage()
    table, path = MetadataTable(storage, layout_of(6, ""), lambda: 0), ".hoodie/metadata/.hoodie/1.deltacommit"

    def late(self: MemoryStorage, path: str, data: bytes) -> None:
        self.replace(path, others or data)
        raise LockLost("lost")

    monkeypatch.setattr(MemoryStorage, "create", late)
    for others in (b"another's", b""):
        with pytest.raises(LockLost):
            table._create(path, b"ours")
        assert storage.exists(path) is bool(others)


# ------------------------------------------------------------------------------------------------------- times


@pytest.mark.parametrize(
    ("instant", "now", "slept"),
    [
        ("20260101000000000", "20260101000000001", 1.499),
        ("20260101000000999", "20260101000000999", 0.501),
        ("20260101000000300", "20260101000001499", 0.001),
        ("20260101000000300", "20260101000001500", None),
        ("20260101000000300", "20260101120000000", None),
        ("20260101000000300", "20251231120000000", None),  # a clock that was put back
    ],
)
def test_a_commit_is_of_a_later_second_than_its_instant(
    monkeypatch: pytest.MonkeyPatch, instant: str, now: str, slept: float | None
) -> None:
    """By the file's time, which a store has in whole seconds, and which Hudi takes for the completion."""
    waits: list[float] = []
    monkeypatch.setattr("hudi_assets.engine.transaction.publish.time.sleep", waits.append)

    def commit(storage: Storage, version: int, action: Action) -> None:
        publisher = Publisher(storage, layout_of(version, ""), lambda: instant_ms(now, UTC))
        publisher.storage.create(publisher.layout.instant_path(instant, action, State.INFLIGHT), b"")
        publisher.complete(instant, action, b"{}")

    for action in (Action.DELTA_COMMIT, Action.COMPACTION):
        waits.clear()
        commit(MemoryStorage(), 6, action)
        assert [round(wait, 3) for wait in waits] == ([] if slept is None else [slept])
    waits.clear()
    commit(MemoryStorage(), 6, Action.ROLLBACK)
    assert waits == []
    assert CLOCKS_MS == 500


def test_nobody_waits_where_times_are_exact(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    waits: list[float] = []
    monkeypatch.setattr("hudi_assets.engine.transaction.publish.time.sleep", waits.append)
    instant = "20260101000000300"
    publisher = Publisher(LocalStorage(str(tmp_path)), layout_of(6, ""), lambda: instant_ms(instant, UTC))
    publisher.complete(instant, Action.DELTA_COMMIT, b"{}")
    assert waits == []


# ------------------------------------------------------------------------------------------------------- refused


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"hudi_assets.writers": "locked"}, "the writers of Apache Hudi have to be stopped"),
        ({"hudi_assets.exact.split": "true"}, "under the same name"),
        ({"hudi_assets.executor": "hudi"}, "Apache Hudi executes no plan from here"),
    ],
)
def test_what_has_no_safe_way_is_refused(
    bucket: Bucket, session: LocalSession, settings: dict[str, str], why: str
) -> None:
    bucket.settings = {"hudi_assets.writers": "stopped", **settings}
    before = sorted(file.path for file in bucket.store.list_files(bucket.timeline))
    remaining = bucket.open().stats().remaining_log_files
    for change in (lambda: write(bucket.open(), session, *NEXT), lambda: bucket.open().recover()):
        with pytest.raises(UnsupportedTable, match=why):
            change()
    assert sorted(file.path for file in bucket.store.list_files(bucket.timeline)) == before
    assert bucket.open().stats().remaining_log_files == remaining


def test_a_table_with_an_exact_split_is_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    storage = MemoryStorage()
    monkeypatch.setattr(opening, "open_storage", lambda *_: storage)
    with pytest.raises(UnsupportedTable, match="under the same name"):
        created("memory://bucket/table", SCHEMA, clock="commit", table_version=6, exact_split=True)
    assert storage.list_folder("") == ([], [])


def test_a_plan_of_elsewhere_that_may_leave_residue_is_refused(
    bucket: Bucket, session: LocalSession, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table was copied into the bucket with a plan pending: that one is unscheduled there."""
    monkeypatch.setattr(opening, "open_storage", lambda path, *_: LocalStorage(path))
    created(str(tmp_path / "t"), SCHEMA, clock="commit", table_version=6)
    settings = {"hudi_assets.table.services": "ours", "hudi_assets.writers": "stopped"}
    disk = HudiTable.open(str(tmp_path / "t"), settings=settings)
    write_batches(disk, session)
    plan = planned(disk)
    assert RESIDUE in plan.extra_metadata
    rows = snapshot(disk)
    bucket.store = MemoryStorage()
    monkeypatch.setattr(opening, "open_storage", lambda *_: bucket.store)
    for file in sorted((tmp_path / "t").rglob("*")):
        if file.is_file():
            bucket.store.create(str(file.relative_to(tmp_path / "t")), file.read_bytes())
    bucket.settings = settings
    with pytest.raises(UnsupportedTable, match="names would occur more than once"):
        bucket.open().execute_compaction(session, plan.instant)
    assert snapshot(bucket.open()) == rows
    bucket.open().unschedule(plan.instant)
    right(bucket, session, rows)
