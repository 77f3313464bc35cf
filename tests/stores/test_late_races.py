"""A holder whose commit arrives late, while another process has the lock and is at work on the same instant."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from hudi_assets.engine import HudiTable
from hudi_assets.engine.actions.compaction.executor import CompactionExecutor
from hudi_assets.engine.errors import Conflict, LockLost
from hudi_assets.engine.hudi_table import table as opening
from hudi_assets.engine.storage.objects import ObjectStorage
from hudi_assets.engine.transaction.rollback import RollbackExecutor
from tests.crash.tables import planned, snapshot, write
from tests.stores.memory import MemoryStorage
from tests.stores.test_late_commits import Bucket
from tests.tables.local_session import LocalSession


class Stopped(threading.Thread):
    """A process of its own, stopped right before the request that makes its commit; `go_on` lets it go to its end."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, ending: str, work: Any) -> None:
        super().__init__(daemon=True)
        self._work, self._arrived, self._go = work, threading.Event(), threading.Event()
        self.error: BaseException | None = None
        put = MemoryStorage._put

        def late(storage: MemoryStorage, path: str, *rest: Any) -> str:
            if path.endswith(ending) and threading.current_thread() is self:
                self._arrived.set()
                self._go.wait(60)
            return put(storage, path, *rest)

        monkeypatch.setattr(MemoryStorage, "_put", late)
        self.start()
        assert self._arrived.wait(60)

    def run(self) -> None:
        try:
            self._work()
        except BaseException as error:
            self.error = error

    def go_on(self) -> None:
        self._go.set()
        self.join(60)
        assert isinstance(self.error, LockLost)


@pytest.fixture(params=[9, 6])
def bucket(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, session: LocalSession) -> Bucket:
    """Each that opens the table has a storage of its own, with its own checks."""
    made = Bucket(monkeypatch, session, request.param)
    store = made.store._store

    def another(*_: object) -> MemoryStorage:
        storage = MemoryStorage()
        storage.__dict__["_made"] = store
        return storage

    monkeypatch.setattr(opening, "open_storage", another)
    return made


@contextmanager
def before(monkeypatch: pytest.MonkeyPatch, owner: type, name: str, stopped: Stopped) -> Iterator[None]:
    """The stopped process goes on right before another calls this."""
    method = getattr(owner, name)

    def late(self: Any, *rest: Any) -> Any:
        stopped.go_on()
        return method(self, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, late)
        yield


def test_a_compaction_that_was_completed_while_it_was_taken_over_stays(
    monkeypatch: pytest.MonkeyPatch, bucket: Bucket, session: LocalSession
) -> None:
    rows, plan = snapshot(bucket.open()), planned(bucket.open())
    stopped = Stopped(monkeypatch, ".commit", lambda: bucket.open().execute_compaction(session, plan.instant))
    bucket.later()
    with (
        before(monkeypatch, CompactionExecutor, "_begin", stopped),
        pytest.raises(Conflict, match="completed meanwhile"),
    ):
        bucket.open().execute_compaction(session, plan.instant)
    assert f"{plan.instant} commit" in bucket.completed()
    assert snapshot(bucket.open()) == rows
    bucket.open().recover()
    assert bucket.open().validate() == ()


@pytest.mark.parametrize("begins", ["_revert_to_inflight", "_take_out"])
def test_a_commit_that_arrives_while_it_is_rolled_back_goes(
    monkeypatch: pytest.MonkeyPatch, bucket: Bucket, session: LocalSession, begins: str
) -> None:
    rows, done = snapshot(bucket.open()), bucket.completed()
    stopped = Stopped(monkeypatch, ".deltacommit", lambda: write(bucket.open(), session, 6, 9_500))
    bucket.later()
    table = HudiTable.open("memory://bucket/table", settings={"hudi_assets.writers": "stopped"})
    (one,) = table.state().timeline.inflight_writes
    with before(monkeypatch, RollbackExecutor, begins, stopped):
        table.rollback(one.timestamp)
    assert [each for each in bucket.completed() if not each.endswith("rollback")] == done
    assert snapshot(bucket.open()) == rows
    bucket.open().recover()
    assert bucket.open().validate() == ()


def test_who_was_stopped_as_it_began_overwrites_nothing(
    monkeypatch: pytest.MonkeyPatch, bucket: Bucket, session: LocalSession
) -> None:
    plan = planned(bucket.open())
    publisher = bucket.open()._table.publisher
    publisher.begin_compaction(plan.instant, b'{"writer": "hudi-assets", "execution": "dead"}')
    read = ObjectStorage.read_with_version
    another = b'{"writer": "hudi-assets", "execution": "another"}'

    def stopped(self: ObjectStorage, path: str) -> tuple[bytes, str]:
        found = read(self, path)
        if path.endswith(".compaction.inflight"):
            self.replace(path, another)
        return found

    monkeypatch.setattr(ObjectStorage, "read_with_version", stopped)
    with pytest.raises(Conflict):
        publisher.begin_compaction(plan.instant, b'{"writer": "hudi-assets", "execution": "mine"}')
    monkeypatch.undo()
    path = f"{bucket.timeline}/{plan.instant}.compaction.inflight"
    assert bucket.store.read(path) == another
