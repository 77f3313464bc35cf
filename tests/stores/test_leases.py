"""The lock of a store: Hudi's own file, a lease that ends, and a holder that changes nothing after it."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from hudi_assets.engine.errors import Conflict, CorruptTable, EnvironmentProblem, InvalidInput, UnsupportedTable
from hudi_assets.engine.storage.remote import Unanswered
from hudi_assets.engine.table.settings.config import WRITERS, TableConfig, parse_config
from hudi_assets.engine.transaction import lease
from hudi_assets.engine.transaction.lease import HUDIS_FILE, RENEWAL, VALIDITY, Lease, LeaseTimes, LockFile
from hudi_assets.engine.transaction.lock import EXECUTE, WRITE, table_lock, write_lock
from hudi_assets.engine.transaction.lock_providers import FILE_SYSTEM, LOCK_PROVIDER, STORAGE_BASED
from tests.stores.memory import MemoryStorage

HUDI = "d3b07384-d113-4ec5-a7c8-d2b5a9d3c1aa"
PROPERTIES = {
    "hoodie.table.name": "t",
    "hoodie.table.type": "MERGE_ON_READ",
    "hoodie.table.version": "9",
    "hoodie.timeline.layout.version": "2",
    "hoodie.table.recordkey.fields": "id",
    "hoodie.record.merge.mode": "COMMIT_TIME_ORDERING",
}


class Clock:
    """Both clocks of a lease, moved by hand."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_ms, self.uptime_ms = 1_800_000_000_000, 5_000.0
        monkeypatch.setattr(lease, "_now_ms", lambda: self.now_ms)
        monkeypatch.setattr(lease, "_uptime_ms", lambda: self.uptime_ms)

    def wait(self, ms: int) -> None:
        self.now_ms += ms
        self.uptime_ms += ms


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


@pytest.fixture
def storage() -> MemoryStorage:
    return MemoryStorage()


def config(**settings: str) -> TableConfig:
    given = {key.replace("__", "."): value for key, value in settings.items()}
    return parse_config({**PROPERTIES, **given}, "memory://bucket/table")


def taken(storage: MemoryStorage, wait_s: float = 0) -> Lease:
    one = Lease(storage, HUDIS_FILE, LeaseTimes())
    one.take(wait_s, lambda held: f"held by {held.owner}")
    return one


def hudis(storage: MemoryStorage, clock: Clock, ms: int, *, expired: bool = False) -> bytes:
    """What Apache Hudi writes, by Jackson: these fields in this order, without a blank."""
    until = clock.now_ms + ms
    data = f'{{"expired":{str(expired).lower()},"validUntil":{until},"owner":"{HUDI}"}}'.encode()
    storage.replace(HUDIS_FILE, data)
    return data


def test_the_file_is_hudis_byte_for_byte(storage: MemoryStorage, clock: Clock) -> None:
    held = taken(storage)
    data = storage.read(".hoodie/.locks/table_lock.json")
    assert data == f'{{"expired":false,"validUntil":{clock.now_ms + 300_000},"owner":"{held.owner}"}}'.encode()
    held.release()
    data = storage.read(".hoodie/.locks/table_lock.json")
    assert data == f'{{"expired":true,"validUntil":{clock.now_ms + 300_000},"owner":"{held.owner}"}}'.encode()
    assert LockFile.decode(data, "") == LockFile(True, clock.now_ms + 300_000, held.owner)


def test_one_holder_at_a_time(storage: MemoryStorage, clock: Clock) -> None:
    first = taken(storage)
    with pytest.raises(Conflict, match=f"held by {first.owner}") as refused:
        taken(storage)
    assert "the lock is free from 2027-01-15T08:05:00+00:00 on" in str(refused.value.hint)
    first.release()
    taken(storage)


def test_it_is_free_half_a_second_after_its_end(storage: MemoryStorage, clock: Clock) -> None:
    data = hudis(storage, clock, 0)
    clock.wait(500)
    with pytest.raises(Conflict, match=f"held by {HUDI}"):
        taken(storage)
    assert storage.read(HUDIS_FILE) == data
    clock.wait(1)
    assert taken(storage).owner.encode() in storage.read(HUDIS_FILE)


def test_what_hudi_released_is_taken(storage: MemoryStorage, clock: Clock) -> None:
    hudis(storage, clock, 300_000, expired=True)
    taken(storage)


def test_a_holder_that_ends_is_waited_for(storage: MemoryStorage) -> None:
    first = taken(storage)
    threading.Timer(0.3, first.release).start()
    taken(storage, wait_s=20)


def test_renewing_moves_the_end_on(storage: MemoryStorage, clock: Clock) -> None:
    held = taken(storage)
    clock.wait(200_000)
    held.renew()
    assert json.loads(storage.read(HUDIS_FILE))["validUntil"] == clock.now_ms + 300_000
    clock.wait(299_000)
    with pytest.raises(Conflict):
        taken(storage)


def test_a_lost_lease_is_noticed_and_left_alone(storage: MemoryStorage, clock: Clock) -> None:
    held = taken(storage)
    clock.wait(300_501)
    other = taken(storage)
    theirs = storage.read(HUDIS_FILE)
    for _ in range(2):
        with pytest.raises(Conflict, match="was taken from this process"):
            held.renew()
        with pytest.raises(Conflict, match="was taken from this process"):
            held.fence()
    held.release()
    assert storage.read(HUDIS_FILE) == theirs
    other.release()
    with pytest.raises(Conflict):
        held.renew()


def test_a_lease_that_ended_and_nobody_took_goes_on(storage: MemoryStorage, clock: Clock) -> None:
    held = taken(storage)
    clock.wait(10_000_000)
    held.fence()
    assert json.loads(storage.read(HUDIS_FILE)) == {
        "expired": False,
        "validUntil": clock.now_ms + 300_000,
        "owner": held.owner,
    }


def test_the_fence_asks_the_store_once_half_of_the_lease_is_gone(storage: MemoryStorage, clock: Clock) -> None:
    held = taken(storage)
    before = storage.read_with_version(HUDIS_FILE)
    clock.wait(150_000)
    held.fence()
    assert storage.read_with_version(HUDIS_FILE) == before
    clock.wait(1)
    held.fence()
    assert storage.read_with_version(HUDIS_FILE) != before


@pytest.mark.parametrize("which", ["now_ms", "uptime_ms"])
def test_either_clock_ends_a_lease(storage: MemoryStorage, clock: Clock, which: str) -> None:
    """The wall's may be put back, and the other one may stand still in a machine that is asleep."""
    held = taken(storage)
    before = storage.read(HUDIS_FILE)
    setattr(clock, which, getattr(clock, which) + 150_001)
    if which == "uptime_ms":
        clock.now_ms -= 1_000_000
    held.fence()
    assert storage.read(HUDIS_FILE) != before


def test_no_change_after_a_lost_lease(storage: MemoryStorage, clock: Clock) -> None:
    storage.create("f", b"1")
    storage.create("d/f", b"1")
    stream = storage.open_new("g")
    stream.write(b"2")
    _, version = storage.read_with_version("f")
    changes: list[Callable[[], Any]] = [
        lambda: storage.create("h", b""),
        lambda: storage.replace("f", b""),
        lambda: storage.replace_if("f", b"2", version),
        lambda: storage.touch("f"),
        lambda: storage.delete("f"),
        lambda: storage.delete_tree("d"),
        lambda: storage.copy("f", "h"),
        lambda: storage.publish("f", "h"),
        stream.close,
    ]
    with held_for(storage, WRITE):
        clock.wait(300_501)
        taken(storage)
        for change in changes:
            with pytest.raises(Conflict, match="was taken from this process"):
                change()
    assert (storage.read("f"), storage.read("d/f")) == (b"1", b"1")
    assert not storage.exists("h")
    assert not storage.exists("g")
    storage.create("h", b"")  # who holds none is not asked


def held_for(storage: MemoryStorage, name: str, **settings: str) -> Any:
    return table_lock(storage, name, config=config(**settings), wait_s=0, action="holds it for a test")


def test_a_change_that_arrived_late_is_not_acknowledged(storage: MemoryStorage, clock: Clock) -> None:
    put = storage._put

    def late(path: str, *rest: Any) -> str:
        if path == "f":
            clock.wait(300_501)
            taken(storage)
        return put(path, *rest)

    storage._put = late  # type: ignore[method-assign, assignment]
    with held_for(storage, WRITE), pytest.raises(Conflict, match="was taken from this process"):
        storage.create("f", b"")


@pytest.mark.parametrize("name", [WRITE, EXECUTE])
def test_the_loser_hears_who_holds_a_lock_and_what_for(storage: MemoryStorage, name: str) -> None:
    with held_for(storage, name), pytest.raises(Conflict) as lost, held_for(storage, name):
        pass
    for word in (f"table's {name} lock", "process ", "holds it for a test", "since 20", "free from 20"):
        assert word in str(lost.value)
    with held_for(storage, name):
        pass


def test_the_two_locks_are_two(storage: MemoryStorage) -> None:
    with held_for(storage, EXECUTE), held_for(storage, WRITE):
        pass


def test_another_engines_holder_is_told_by_its_owner(storage: MemoryStorage, clock: Clock) -> None:
    with held_for(storage, WRITE):
        pass
    hudis(storage, clock, 100_000)
    with pytest.raises(Conflict, match=f"owner {HUDI}"), held_for(storage, WRITE):
        pass


def test_a_thread_renews_it(storage: MemoryStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LeaseTimes, "of", lambda *_: LeaseTimes(60_000, 10))
    with held_for(storage, WRITE):
        first = storage.read(HUDIS_FILE)
        _until(lambda: storage.read(HUDIS_FILE) != first)


def test_the_thread_goes_on_after_an_error_and_ends_once_the_lock_is_lost(
    storage: MemoryStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LeaseTimes, "of", lambda *_: LeaseTimes(60_000, 10))
    replace_if, errors = storage.replace_if, [Unanswered(121, "no answer"), Unanswered(121, "no answer")]

    def failing(path: str, data: bytes, version: str) -> str:
        if errors:
            raise errors.pop()
        return replace_if(path, data, version)

    storage.replace_if = failing  # type: ignore[method-assign]
    with held_for(storage, WRITE):
        first = storage.read(HUDIS_FILE)
        _until(lambda: storage.read(HUDIS_FILE) != first)
        (thread,) = (one for one in threading.enumerate() if one.name == "lease")
        storage.replace(HUDIS_FILE, b'{"expired":false,"validUntil":1,"owner":"another"}')
        _until(lambda: not thread.is_alive())
        with pytest.raises(Conflict, match="was taken from this process"):
            storage.create("f", b"")
    assert b"another" in storage.read(HUDIS_FILE)


def _until(there: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not there():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"expired":false,"owner":"x"}',
        b'{"expired":0,"validUntil":1,"owner":"x"}',
        b"[" * 99_999,
    ],
)
def test_a_file_that_is_none_is_nobodys_to_overwrite(storage: MemoryStorage, content: bytes) -> None:
    storage.create(HUDIS_FILE, content)
    with pytest.raises(CorruptTable, match="lock's file cannot be read"):
        taken(storage)
    assert storage.read(HUDIS_FILE) == content


def test_fields_to_come_are_passed_over() -> None:
    data = b'{"expired": true, "more": [1], "owner": "x", "validUntil": 12}'
    assert LockFile.decode(data, "") == LockFile(True, 12, "x")


@contextmanager
def lost_answers(storage: MemoryStorage, *, done: bool) -> Iterator[None]:
    """The next put is answered by nothing."""
    put, left = storage._put, [1]

    def losing(*asked: Any) -> str:
        if left:
            left.pop()
            if done:
                put(*asked)
            raise Unanswered(121, "no answer")
        return put(*asked)

    storage._put = losing  # type: ignore[method-assign, assignment]
    yield
    storage._put = put  # type: ignore[method-assign]


@pytest.mark.parametrize("done", [True, False])
def test_lost_answers(storage: MemoryStorage, done: bool) -> None:
    with lost_answers(storage, done=done):
        held = taken(storage)
    with lost_answers(storage, done=done):
        held.renew()
    with lost_answers(storage, done=done):
        held.release()
    with lost_answers(storage, done=done):
        taken(storage)  # over the file that is there


@pytest.mark.parametrize(
    ("settings", "times"),
    [
        ({}, (300_000, 30_000)),
        ({VALIDITY: "10", RENEWAL: "1"}, (10_000, 1_000)),
        ({VALIDITY: "600"}, (600_000, 30_000)),
    ],
)
def test_its_times_are_hudis_settings(settings: dict[str, str], times: tuple[int, int]) -> None:
    assert LeaseTimes.of(config(**settings), "t") == LeaseTimes(*times)


@pytest.mark.parametrize(
    "settings",
    [{VALIDITY: "9", RENEWAL: "1"}, {VALIDITY: "299"}, {VALIDITY: "x"}, {RENEWAL: "0"}, {RENEWAL: "9" * 5000}],
)
def test_times_that_hudi_refuses_are_refused(settings: dict[str, str]) -> None:
    with pytest.raises(InvalidInput, match=r"hoodie\.write\.lock\.storage"):
        LeaseTimes.of(config(**settings), "t")


@pytest.mark.parametrize("given", [{}, {LOCK_PROVIDER: STORAGE_BASED}])
def test_beside_locked_writers_it_is_hudis_lock_and_no_other(storage: MemoryStorage, given: dict[str, str]) -> None:
    with write_lock(storage, config(**{WRITERS: "locked", **given}), wait_s=0) as held:
        assert not storage.exists(".hoodie/lock")
        held.check()
        storage.replace(HUDIS_FILE, b'{"expired":false,"validUntil":1,"owner":"another"}')
        with pytest.raises(Conflict, match="was taken from this process"):
            held.check()


@pytest.mark.parametrize("provider", [FILE_SYSTEM, "com.example.OurLockProvider"])
def test_other_locks_are_refused_by_name(storage: MemoryStorage, provider: str) -> None:
    settings = config(**{WRITERS: "locked", LOCK_PROVIDER: provider})
    lock = write_lock(storage, settings, wait_s=0)
    with pytest.raises(UnsupportedTable, match=provider.rpartition(".")[2]) as refused, lock:
        pass
    assert STORAGE_BASED in str(refused.value.hint)
    assert not storage.exists(HUDIS_FILE)


def test_a_store_that_is_gone_is_said(storage: MemoryStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(path: str) -> None:
        raise Unanswered(121, "the store does not answer")

    monkeypatch.setattr(storage, "read_with_version", gone)
    with pytest.raises(EnvironmentProblem, match="the store does not answer"), held_for(storage, WRITE):
        pass


def test_a_lock_whose_holder_cannot_be_named_is_released(
    storage: MemoryStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(path: str, data: bytes) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(storage, "replace", interrupted)
        with pytest.raises(KeyboardInterrupt), held_for(storage, WRITE):
            pass
    with held_for(storage, WRITE):
        pass


@pytest.mark.parametrize("ask", ["renew", "release"])
def test_a_lease_is_not_lost_to_oneself(
    storage: MemoryStorage, clock: Clock, monkeypatch: pytest.MonkeyPatch, ask: str
) -> None:
    """A renewal was written, and neither its answer nor the look after it came."""
    held = taken(storage)
    first = storage.read(HUDIS_FILE)
    clock.wait(1)
    with lost_with_the_look_after_it(storage, monkeypatch), pytest.raises(OSError):
        held.renew()
    assert storage.read(HUDIS_FILE) != first
    clock.wait(1)
    getattr(held, ask)()
    said = LockFile.decode(storage.read(HUDIS_FILE), "")
    assert (said.owner, said.expired) == (held.owner, ask == "release")


def test_what_was_taken_without_an_answer_is_ours(storage: MemoryStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    one = Lease(storage, HUDIS_FILE, LeaseTimes())
    with lost_with_the_look_after_it(storage, monkeypatch):
        one.take(5, lambda held: f"held by {held.owner}")
    one.fence()
    one.release()
    assert LockFile.decode(storage.read(HUDIS_FILE), "").expired


@contextmanager
def lost_with_the_look_after_it(storage: MemoryStorage, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    put, left = storage._put, [1]

    def written(path: str) -> None:
        raise Unanswered(121, "no answer")

    def losing(*asked: Any) -> str:
        done = put(*asked)
        if left:
            left.pop()
            raise Unanswered(121, "no answer")
        return done

    with monkeypatch.context() as patch:
        patch.setattr(storage, "_put", losing)
        patch.setattr(storage, "_written", written)
        yield


def test_threads_that_ask_at_once_renew_once(storage: MemoryStorage, clock: Clock) -> None:
    held, put, renewed = taken(storage), storage._put, []

    def slow(path: str, *rest: Any) -> str:
        renewed.append(path)
        time.sleep(0.1)
        return put(path, *rest)

    storage._put = slow  # type: ignore[method-assign, assignment]
    clock.wait(150_001)
    threads = [threading.Thread(target=held.fence) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert renewed == [HUDIS_FILE]
