"""A holder that goes on after its lease: what arrives too late, and what is left to whoever has the lock now."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hudi_assets.engine import HudiTable
from hudi_assets.engine.errors import Conflict, LockLost
from hudi_assets.engine.hudi_table import table as opening
from hudi_assets.engine.model import Action, State
from hudi_assets.engine.table.layout.choice import layout_of
from hudi_assets.engine.transaction import lease
from hudi_assets.engine.transaction.heartbeat import FOLDER
from hudi_assets.engine.transaction.publish import Publisher
from tests.crash.faulty import Crash
from tests.crash.tables import SCHEMA, planned, snapshot, write, write_batches
from tests.stores.memory import MemoryStorage
from tests.tables.local_session import LocalSession
from tests.tables.steps import created


class Bucket:
    """A table in memory; `later` lets all leases end, and all heartbeats with them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, session: LocalSession, version: int = 9) -> None:
        self.store, self.session, self._later_ms = MemoryStorage(), session, 0
        self.version, self.timeline = version, layout_of(version, "").timeline_folder
        self.settings = {"hudi_assets.writers": "stopped"} if version == 6 else {}
        now_ms = lease._now_ms
        monkeypatch.setattr(lease, "_now_ms", lambda: now_ms() + self._later_ms)
        monkeypatch.setattr(opening, "open_storage", lambda *_: self.store)
        monkeypatch.setattr(Publisher, "_wait_for_later_second", lambda *_: None)
        self.create(version)
        write_batches(self.open(), session)

    def create(self, version: int) -> None:
        created("memory://bucket/table", SCHEMA, clock="commit", table_version=version)

    def open(self) -> HudiTable:
        return HudiTable.open("memory://bucket/table", settings=self.settings)

    def later(self) -> None:
        """As another process sees it, which looks some minutes later."""
        self._later_ms += 600_000
        self.store._fences.clear()  # those are of the process that is stopped
        self.store.delete_tree(FOLDER)

    def completed(self) -> list[str]:
        return [f"{i.timestamp} {i.action}" for i in self.open().state().timeline.instants if i.is_completed]


@pytest.fixture(params=[9, 6])
def bucket(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, session: LocalSession) -> Bucket:
    return Bucket(monkeypatch, session, request.param)


def stopped_before(
    monkeypatch: pytest.MonkeyPatch, bucket: Bucket, ending: str, meanwhile: Callable[[], object]
) -> None:
    """The process is stopped between the fence and the request that creates a file of this name."""
    put = MemoryStorage._put
    left = [1]

    def late(self: MemoryStorage, path: str, *rest: Any) -> str:
        if path.endswith(ending) and left:
            left.pop()
            fences = list(bucket.store._fences)
            meanwhile()
            bucket.store._fences[:] = fences
        return put(self, path, *rest)

    monkeypatch.setattr(MemoryStorage, "_put", late)


def test_a_commit_of_a_write_that_was_taken_back_is_taken_back(
    monkeypatch: pytest.MonkeyPatch, bucket: Bucket, session: LocalSession
) -> None:
    before, done = snapshot(bucket.open()), bucket.completed()

    def meanwhile() -> None:
        bucket.later()
        (said,) = (line for line in bucket.open().recover() if "unfinished write" in line)
        assert "2 log files" in said

    stopped_before(monkeypatch, bucket, ".deltacommit", meanwhile)
    with pytest.raises(LockLost, match="gave no sign of life"):
        write(bucket.open(), session, 6, 9_500)
    assert bucket.completed() == done
    assert snapshot(bucket.open()) == before
    bucket.open().recover()
    assert bucket.open().validate() == ()


def test_a_commit_that_arrived_in_time_stays(
    monkeypatch: pytest.MonkeyPatch, bucket: Bucket, session: LocalSession
) -> None:
    """Stopped right after its request: whoever comes next sees the commit, and it counts."""
    done = bucket.completed()
    put = MemoryStorage._put
    seen: list[set[Any]] = []

    def stopped_after(self: MemoryStorage, path: str, *rest: Any) -> str:
        version = put(self, path, *rest)
        if path.endswith(".deltacommit"):
            fences = list(bucket.store._fences)
            monkeypatch.setattr(MemoryStorage, "_put", put)
            bucket.later()
            bucket.open().recover()
            seen.append(snapshot(bucket.open()))
            bucket.store._fences[:] = fences
        return version

    monkeypatch.setattr(MemoryStorage, "_put", stopped_after)
    with pytest.raises(LockLost):
        write(bucket.open(), session, 6, 9_500)
    assert len(bucket.completed()) == len(done) + 1
    assert snapshot(bucket.open()) == seen[0]
    assert bucket.open().validate() == ()


def test_an_execution_that_another_has_begun_anew_is_taken_back(
    monkeypatch: pytest.MonkeyPatch, bucket: Bucket, session: LocalSession
) -> None:
    rows, plan = snapshot(bucket.open()), planned(bucket.open())
    done: list[list[str]] = []

    def meanwhile() -> None:
        bucket.later()
        bucket.open().execute_compaction(session, plan.instant)
        done.append(bucket.completed())

    stopped_before(monkeypatch, bucket, ".commit", meanwhile)
    with pytest.raises(Conflict):
        bucket.open().execute_compaction(session, plan.instant)
    assert [bucket.completed()] == done
    assert snapshot(bucket.open()) == rows
    bucket.open().recover()
    assert bucket.open().validate() == ()


def test_an_execution_sees_that_another_has_begun(
    monkeypatch: pytest.MonkeyPatch, bucket: Bucket, session: LocalSession
) -> None:
    """Whatever became of the lock: the inflight file says whose execution it is."""
    plan, storage = planned(bucket.open()), bucket.store
    verify = "hudi_assets.engine.actions.compaction.executor.CompactionExecutor._verify_carried_over"
    inflight = f"{bucket.timeline}/{plan.instant}.compaction.inflight"

    def another_begins(*_: object) -> None:
        own = storage.read(inflight)
        assert own.startswith(b'{"writer": "hudi-assets", "execution": "')
        storage.replace(inflight, own[:-6] + b'other"}')

    monkeypatch.setattr(verify, another_begins)
    with pytest.raises(Conflict, match="Another process executes compaction"):
        bucket.open().execute_compaction(session, plan.instant)
    monkeypatch.undo()
    monkeypatch.setattr(opening, "open_storage", lambda *_: bucket.store)


def test_a_commit_that_arrives_while_it_is_taken_back_goes(
    monkeypatch: pytest.MonkeyPatch, bucket: Bucket, session: LocalSession
) -> None:
    done = bucket.completed()
    dead_write(monkeypatch, bucket, session)
    bucket.later()
    withdraw = Publisher.withdraw_write

    def late(self: Publisher, instant: str) -> None:
        withdraw(self, instant)
        path = self.layout.instant_path(instant, Action.DELTA_COMMIT, State.COMPLETED, "20991231235959999")
        self.storage.create(path, b"{}")

    monkeypatch.setattr(Publisher, "withdraw_write", late)
    bucket.open().recover()
    assert bucket.completed() == done


def dead_write(monkeypatch: pytest.MonkeyPatch, bucket: Bucket, session: LocalSession) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Publisher, "commit_write", lambda *_: (_ for _ in ()).throw(Crash()))
        with pytest.raises(Crash):
            write(bucket.open(), session, 6, 9_500)


def test_a_write_whose_heartbeat_is_young_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, bucket: Bucket, session: LocalSession
) -> None:
    """A lease that has ended by a wrong clock."""
    dead_write(monkeypatch, bucket, session)
    (write_,) = bucket.open().state().timeline.inflight_writes
    bucket.store.touch(f"{FOLDER}/{write_.timestamp}")
    assert bucket.open().recover() == ()
    with pytest.raises(Conflict, match=f"{write_.timestamp} of another writer is unfinished"):
        write(bucket.open(), session, 6, 9_600)
    bucket.later()
    assert [line for line in bucket.open().recover() if "unfinished write" in line]
    write(bucket.open(), session, 6, 9_600)


_WRITE, _SAVEPOINT = Action.DELTA_COMMIT, Action.SAVEPOINT
LATE_PLANS: dict[str, Callable[[HudiTable], object]] = {
    "compaction": planned,
    "rollback": lambda table: table.rollback(max(i.timestamp for i in table.state().timeline.completed(_WRITE))),
    "restore": lambda table: table.restore(max(i.timestamp for i in table.state().timeline.completed(_SAVEPOINT))),
    "clean": lambda table: table.clean(),
}
SETTINGS = {"hoodie.cleaner.commits.retained": "1", "hudi_assets.query.grace": "0s", "hudi_assets.writers": "stopped"}


@pytest.mark.parametrize("kind", LATE_PLANS)
def test_a_plan_that_arrived_late_goes_again(
    monkeypatch: pytest.MonkeyPatch, bucket: Bucket, session: LocalSession, kind: str
) -> None:
    bucket.settings = SETTINGS
    table = bucket.open()
    for step in range(2):
        write(table, session, step, 1_650 + step)
        if kind == "clean":
            table.execute_compaction(session, planned(table, 1_700 + step).instant)
    if kind == "restore":
        table.savepoint()
        write(table, session, 6, 9_500)
    before = snapshot(table)

    def meanwhile() -> None:
        bucket.later()
        bucket.open().recover()

    stopped_before(monkeypatch, bucket, f".{kind}.requested", meanwhile)
    with pytest.raises(LockLost):
        LATE_PLANS[kind](bucket.open())
    assert [i for i in bucket.open().state().timeline.instants if not i.is_completed] == []
    bucket.open().recover()
    assert snapshot(bucket.open()) == before
    assert bucket.open().validate() == ()


def test_a_plan_that_somebody_has_begun_stays(
    monkeypatch: pytest.MonkeyPatch, bucket: Bucket, session: LocalSession
) -> None:
    """Stopped right after its request: another process has found the plan, and executes it."""
    put, rows = MemoryStorage._put, snapshot(bucket.open())
    empty = [1] if bucket.version == 6 else []

    def stopped_after(self: MemoryStorage, path: str, *rest: Any) -> str:
        version = put(self, path, *rest)
        if path.endswith(".compaction.requested") and not (empty and empty.pop()):
            fences = list(bucket.store._fences)
            monkeypatch.setattr(MemoryStorage, "_put", put)
            bucket.later()
            bucket.open().recover()
            bucket.store.create(path.replace("requested", "inflight"), b"")
            bucket.store._fences[:] = fences
        return version

    monkeypatch.setattr(MemoryStorage, "_put", stopped_after)
    with pytest.raises(LockLost):
        planned(bucket.open())
    assert bucket.open().pending_plan() is not None
    assert snapshot(bucket.open()) == rows
