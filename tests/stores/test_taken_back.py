"""Notes of what was taken back: a commit of it that arrives later counts no more, whoever died meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import obstore
import pytest

from hudi_assets.engine.errors import LockLost
from hudi_assets.engine.model import Action
from hudi_assets.engine.model.units import DAY_MS
from hudi_assets.engine.storage import LOCKS
from hudi_assets.engine.transaction.publish import Publisher
from hudi_assets.engine.transaction.rollback import RollbackExecutor
from hudi_assets.engine.transaction.taken_back import FOLDER, Note, TakenBack
from tests.crash.faulty import Crash
from tests.crash.tables import planned, snapshot, write
from tests.stores.memory import MemoryStorage
from tests.stores.test_late_commits import Bucket
from tests.tables.local_session import LocalSession

Work = Callable[[Bucket, LocalSession], object]
_PUT = MemoryStorage._put


class Sender:
    """A process whose commit is under way: it arrives once `arrive` is called. The process dies before."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, ending: str, work: Callable[[], object], *, dies: bool) -> None:
        kept: list[Any] = []

        def under_way(storage: MemoryStorage, path: str, *rest: Any) -> str:
            if path.endswith(ending):
                kept.append((storage, path, *rest))
                if dies:
                    raise Crash
            return _PUT(storage, path, *rest)

        with monkeypatch.context() as patch:
            patch.setattr(MemoryStorage, "_put", under_way)
            if dies:
                with pytest.raises(Crash):
                    work()
            else:
                work()
        (self._request,) = kept

    def arrive(self) -> None:
        _PUT(*self._request)


@contextmanager
def dying_at(monkeypatch: pytest.MonkeyPatch, n: int) -> Iterator[list[str]]:
    """The process dies before its n-th request that changes the table. What it was, if it was asked for."""
    asked: list[str] = []

    def dying(name: str) -> Callable[..., Any]:
        real = getattr(obstore, name)

        def call(store: Any, what: Any, *rest: Any, **options: Any) -> Any:
            if f"/{LOCKS}/" not in str(what):
                asked.append(f"{name} {what}")
                if len(asked) >= n:
                    raise Crash
            return real(store, what, *rest, **options)

        return call

    with monkeypatch.context() as patch:
        for name in ("put", "copy", "delete"):
            patch.setattr(obstore, name, dying(name))
        yield asked


def one_write(bucket: Bucket) -> str:
    (one,) = bucket.open().state().timeline.inflight_writes
    return one.timestamp


def of_write(monkeypatch: pytest.MonkeyPatch, bucket: Bucket, session: LocalSession, *, dies: bool = True) -> Sender:
    return Sender(monkeypatch, ".deltacommit", lambda: write(bucket.open(), session, 6, 9_500), dies=dies)


def of_execution(
    monkeypatch: pytest.MonkeyPatch, bucket: Bucket, session: LocalSession, *, dies: bool = True
) -> Sender:
    plan = planned(bucket.open())
    return Sender(monkeypatch, ".commit", lambda: bucket.open().execute_compaction(session, plan.instant), dies=dies)


def pending(bucket: Bucket) -> str:
    (plan,) = bucket.open().state().executable_plans
    return plan.instant


def newest(bucket: Bucket, action: Action) -> str:
    return max(i.timestamp for i in bucket.open().state().timeline.completed(action))


def rolled_back(bucket: Bucket, instant: str) -> object:
    return bucket.open().rollback(instant)


# What is under way, whether its sender dies before it has arrived, and what another process does then.
TAKEN_BACK: dict[str, tuple[Any, bool, Work]] = {
    "recover": (of_write, True, lambda bucket, _: bucket.open().recover()),
    "rollback": (of_write, True, lambda bucket, _: rolled_back(bucket, one_write(bucket))),
    "rollback of a commit": (
        of_write,
        False,
        lambda bucket, _: rolled_back(bucket, newest(bucket, Action.DELTA_COMMIT)),
    ),
    "restore": (of_write, False, lambda bucket, _: bucket.open().restore(newest(bucket, Action.SAVEPOINT))),
    "take over": (
        of_execution,
        True,
        lambda bucket, session: bucket.open().execute_compaction(session, pending(bucket)),
    ),
    "rollback of an attempt": (of_execution, True, lambda bucket, _: rolled_back(bucket, pending(bucket))),
    "unschedule": (of_execution, True, lambda bucket, _: bucket.open().unschedule(pending(bucket))),
    "rollback of a compaction": (
        of_execution,
        False,
        lambda bucket, _: rolled_back(bucket, newest(bucket, Action.COMMIT)),
    ),
}


@pytest.mark.parametrize("version", [9, 6])
@pytest.mark.parametrize("kind", TAKEN_BACK)
def test_a_late_commit_whose_sender_is_dead(
    monkeypatch: pytest.MonkeyPatch, session: LocalSession, kind: str, version: int
) -> None:
    """Whoever takes it back dies at each of its requests. It arrives then; whoever comes next mends the table."""
    under_way, dies, work = TAKEN_BACK[kind]
    n, died = 0, True
    while died:
        n += 1
        with monkeypatch.context() as patch:
            bucket = Bucket(patch, session, version)
            bucket.settings = {"hudi_assets.writers": "stopped"}
            if kind == "restore":
                bucket.open().savepoint()
            before = snapshot(bucket.open())
            sender = under_way(patch, bucket, session, dies=dies)
            bucket.later()
            with dying_at(patch, n) as asked:
                try:
                    work(bucket, session)
                    died = False
                except Crash:
                    pass
            arrives = False
            with suppress(obstore.exceptions.AlreadyExistsError):  # it is there, or on version 6 the other's is
                sender.arrive()
                arrives = True
            bucket.later()
            said = bucket.open().recover()
            where = f"{n}: {asked[-1]}"
            assert died or not arrives or any("arrived after it was taken back" in line for line in said), where
            rows = snapshot(bucket.open())
            if rows != before:  # it came before the note: then it counts
                assert len(rows) == len(before) + 2, where
            assert bucket.open().validate() == (), where
            if not died:
                assert rows == before, where
            for plan in bucket.open().state().executable_plans:
                bucket.open().execute_compaction(session, plan.instant)
            assert snapshot(bucket.open()) == rows, where
            assert bucket.open().validate() == (), where
    assert n > 5


def test_a_commit_that_arrives_during_a_rollback_is_gone_at_its_end(
    monkeypatch: pytest.MonkeyPatch, session: LocalSession
) -> None:
    """Nobody has to recover the table before it can be read."""
    bucket = Bucket(monkeypatch, session)
    bucket.settings = {"hudi_assets.writers": "stopped"}
    before, sender = snapshot(bucket.open()), of_write(monkeypatch, bucket, session)
    bucket.later()
    take_out = RollbackExecutor._take_out

    def late(self: RollbackExecutor, *rest: Any) -> Any:
        sender.arrive()
        return take_out(self, *rest)

    monkeypatch.setattr(RollbackExecutor, "_take_out", late)
    rolled_back(bucket, one_write(bucket))
    assert snapshot(bucket.open()) == before
    assert bucket.open().validate() == ()


def test_a_sender_that_goes_on_asks_for_the_note(monkeypatch: pytest.MonkeyPatch, session: LocalSession) -> None:
    """Another has left it and died. The inflight file is there as it was."""
    bucket = Bucket(monkeypatch, session)
    before, done = snapshot(bucket.open()), bucket.completed()
    left = [1]

    def late(storage: MemoryStorage, path: str, *rest: Any) -> str:
        if path.endswith(".deltacommit") and left:
            left.pop()
            fences = list(bucket.store._fences)
            bucket.later()
            with monkeypatch.context() as patch:
                patch.setattr(Publisher, "withdraw_write", lambda *_: (_ for _ in ()).throw(Crash()))
                with pytest.raises(Crash):
                    bucket.open().recover()
            bucket.later()
            bucket.store._fences[:] = fences
        return _PUT(storage, path, *rest)

    monkeypatch.setattr(MemoryStorage, "_put", late)
    with pytest.raises(LockLost):
        write(bucket.open(), session, 6, 9_500)
    assert bucket.completed() == done
    assert snapshot(bucket.open()) == before


def test_an_execution_that_begins_too_late_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, session: LocalSession
) -> None:
    """Its plan is withdrawn meanwhile: an inflight file of no plan could not be read."""
    bucket = Bucket(monkeypatch, session)
    rows, plan = snapshot(bucket.open()), planned(bucket.open())
    bucket.settings, left = {"hudi_assets.writers": "stopped"}, [1]

    def late(storage: MemoryStorage, path: str, *rest: Any) -> str:
        if path.endswith(".compaction.inflight") and left:
            left.pop()
            fences = list(bucket.store._fences)
            bucket.later()
            bucket.open().unschedule(plan.instant)
            bucket.store._fences[:] = fences
        return _PUT(storage, path, *rest)

    monkeypatch.setattr(MemoryStorage, "_put", late)
    with pytest.raises(LockLost):
        bucket.open().execute_compaction(session, plan.instant)
    assert snapshot(bucket.open()) == rows
    assert bucket.open().validate() == ()
    assert [i for i in bucket.open().state().timeline.instants if not i.is_completed] == []


def test_what_counts_at_a_noted_instant_stays(monkeypatch: pytest.MonkeyPatch, session: LocalSession) -> None:
    """A plan is executed anew, and one that is made again may have the instant of one that is gone."""
    bucket = Bucket(monkeypatch, session)
    bucket.settings = {"hudi_assets.writers": "stopped"}
    rows = snapshot(bucket.open())
    of_execution(monkeypatch, bucket, session)
    instant = pending(bucket)
    bucket.later()
    bucket.open().execute_compaction(session, instant)
    bucket.open().rollback(instant)
    assert planned(bucket.open()).instant == instant
    bucket.open().execute_compaction(session, instant)
    noted = bucket.open()._table.publisher.taken_back.of(instant)
    assert len(noted.executions) == 2
    for _ in range(2):
        bucket.open().recover()
        assert f"{instant} commit" in bucket.completed()
    assert snapshot(bucket.open()) == rows
    assert bucket.open().validate() == ()


def test_a_note_goes_after_a_day_and_its_files_with_it(monkeypatch: pytest.MonkeyPatch, session: LocalSession) -> None:
    bucket = Bucket(monkeypatch, session)
    of_write(monkeypatch, bucket, session)
    bucket.later()
    bucket.open().recover()
    (note,) = bucket.store.list_files(FOLDER)
    taken_back = bucket.open()._table.publisher.taken_back
    stray = min(taken_back.of(note.name).data)
    bucket.open().recover()
    assert bucket.store.list_files(FOLDER) == [note]
    bucket.store.create(stray, b"given its name after all")
    now_ms = bucket.open()._table.now_ms()
    for ms, there in ((DAY_MS - 60_000, True), (DAY_MS + 60_000, False)):
        TakenBack(bucket.store, taken_back.layout, partial(int, now_ms + ms)).forget_late()
        assert bucket.store.exists(stray) is there
        assert bool(bucket.store.list_files(FOLDER)) is there


def test_notes_cost_one_listing_where_there_are_none(monkeypatch: pytest.MonkeyPatch, session: LocalSession) -> None:
    bucket = Bucket(monkeypatch, session)
    taken_back = bucket.open()._table.publisher.taken_back
    asked: list[str] = []
    for name in ("get", "head", "list_with_delimiter", "put", "delete"):
        monkeypatch.setattr(obstore, name, _counted(asked, name))
    assert taken_back.forget_late() == ()
    assert asked == ["list_with_delimiter"]


def _counted(asked: list[str], name: str) -> Callable[..., Any]:
    real = getattr(obstore, name)

    def call(*given: Any, **options: Any) -> Any:
        asked.append(name)
        return real(*given, **options)

    return call


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b'{"whole": true}', b"[" * 99_999])
def test_what_is_no_note_says_nothing(content: bytes) -> None:
    assert Note.decode(content) == Note()
