"""Hudi's lock in ZooKeeper, on a real server, beside Curator's own: who waits for whom, what a holder's death frees."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from hudi_assets.engine import HudiTable
from hudi_assets.engine.errors import Conflict, EnvironmentProblem, LockLost
from hudi_assets.engine.storage import LocalStorage
from hudi_assets.engine.table.settings.config import WRITERS
from hudi_assets.engine.transaction.lock import write_lock
from hudi_assets.engine.transaction.lock_providers import LOCK_PROVIDER, ZOOKEEPER
from hudi_assets.engine.transaction.zookeeper import BASE_PATH, LOCK_KEY, SESSION, URL, ZooKeeperLock
from tests.ports import free_port
from tests.races.player import SCHEMA, create, rows_of
from tests.tables.local_session import LocalSession
from tests.zookeeper.servers import ZooKeeper, curator, zookeeper

SESSION_MS = 1_000
"""ZooKeeper ends a session that was silent for so long at its next tick."""
ENDED_S = 2.0
pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def lock(server: ZooKeeper, request: pytest.FixtureRequest) -> ZooKeeperLock:
    return ZooKeeperLock(server.url, f"/locks/{request.node.name}", SESSION_MS, 5_000, "a table")


@pytest.fixture
def table(lock: ZooKeeperLock, tmp_path: Path, session: LocalSession) -> HudiTable:
    """A table of one row. Its writers have the lock."""
    made = create(tmp_path / "t")
    made.upsert(session, session.rows([{"id": "k1", "ts": 1_000, "v": 1}], SCHEMA))
    return HudiTable.open(made.path, settings=settings(lock))


def settings(lock: ZooKeeperLock) -> dict[str, str]:
    folder, _, name = lock.path.rpartition("/")
    own = {URL: lock.hosts, BASE_PATH: folder, LOCK_KEY: name, SESSION: str(SESSION_MS)}
    return {WRITERS: "locked", LOCK_PROVIDER: ZOOKEEPER, **own}


def write(table: HudiTable, session: LocalSession, ts: int) -> None:
    table.upsert(session, session.rows([{"id": "k1", "ts": ts, "v": ts}], SCHEMA))


def test_curator_waits_for_us(lock: ZooKeeperLock) -> None:
    with curator(lock.hosts, lock.path) as theirs:
        with lock.held(1, "works") as check:
            assert theirs.ask("take 300") == "held by another"
            theirs.send("take 30000")
            time.sleep(0.3)
            check()
        assert theirs.answer() == "taken"


def test_we_wait_for_curator(lock: ZooKeeperLock) -> None:
    with curator(lock.hosts, lock.path) as theirs:
        assert theirs.ask("take 1000") == "taken"
        begun = time.monotonic()
        with (
            pytest.raises(Conflict, match=r"Another process holds .*: 127\.0\.0\.1 since 20") as lost,
            lock.held(1, ""),
        ):
            pass
        assert 0.9 < time.monotonic() - begun < 3
        assert lock.path in str(lost.value)
        with ThreadPoolExecutor(1) as pool:
            taken = pool.submit(_hold, lock, 30.0)
            time.sleep(0.3)
            assert not taken.done()
            assert theirs.ask("free") == "free"
            taken.result()


def _hold(lock: ZooKeeperLock, wait_s: float) -> None:
    with lock.held(wait_s, "works") as check:
        check()


@pytest.mark.thorough
def test_we_wait_in_all_for_no_longer_than_was_asked(lock: ZooKeeperLock) -> None:
    """Whoever stands before us gives up after a while, one after another: kazoo begins to count anew at each."""
    with ExitStack() as stack:
        holder, *row = [stack.enter_context(curator(lock.hosts, lock.path)) for _ in range(3)]
        assert holder.ask("take 1000") == "taken"
        for n, waiting in enumerate(row):
            waiting.send(f"take {1_500 - 600 * n}")
            time.sleep(0.2)
        begun = time.monotonic()
        with pytest.raises(Conflict), lock.held(1.2, "works"):
            pass
        assert time.monotonic() - begun < 1.7


def test_the_loser_hears_what_our_process_does(lock: ZooKeeperLock) -> None:
    with lock.held(1, "cleans"), pytest.raises(Conflict, match=rf"hudi-assets cleans \(process {os.getpid()} on .*\)"):
        _hold(lock, 0)


def test_a_free_lock_is_taken_whatever_the_wait(lock: ZooKeeperLock) -> None:
    for _ in range(3):
        _hold(lock, 0)


@pytest.mark.thorough
def test_whoever_is_killed_holds_nothing_once_its_session_has_ended(lock: ZooKeeperLock, table: HudiTable) -> None:
    with curator(lock.hosts, lock.path, SESSION_MS) as theirs:
        assert theirs.ask("take 1000") == "taken"
        theirs.process.kill()
        _hold(lock, SESSION_MS / 1000 + ENDED_S)
    with about_to_publish(table, lock) as ours, curator(lock.hosts, lock.path) as theirs:
        ours.kill()
        assert theirs.ask(f"take {SESSION_MS + 1000 * ENDED_S:.0f}") == "taken"


@contextmanager
def about_to_publish(table: HudiTable, lock: ZooKeeperLock) -> Iterator[subprocess.Popen[str]]:
    """A process of ours that holds the lock, has written its files, and asks next whether the lock is still its own."""
    command = [sys.executable, "-m", "tests.zookeeper.holder", table.path, json.dumps(settings(lock))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "about to publish\n"
        try:
            yield process
        finally:
            process.kill()


def test_whoever_was_stopped_for_longer_than_its_session_publishes_nothing(
    lock: ZooKeeperLock, table: HudiTable, session: LocalSession
) -> None:
    with about_to_publish(table, lock) as ours, curator(lock.hosts, lock.path) as theirs:
        assert theirs.ask("take 300") == "held by another"
        ours.send_signal(signal.SIGSTOP)
        assert theirs.ask(f"take {SESSION_MS + 1000 * ENDED_S:.0f}") == "taken"
        ours.send_signal(signal.SIGCONT)
        said, _ = ours.communicate("\n", timeout=30)
        assert "its session in ZooKeeper has ended" in said
        assert "published" not in said
        assert rows_of(table) == {"k1": (1_000, 1)}
        assert theirs.ask("free") == "free"
    write(table, session, 6_000)
    assert rows_of(table) == {"k1": (6_000, 6_000)}


@pytest.mark.thorough
def test_whoever_was_stopped_for_less_publishes(lock: ZooKeeperLock, table: HudiTable) -> None:
    with about_to_publish(table, lock) as ours:
        ours.send_signal(signal.SIGSTOP)
        time.sleep(SESSION_MS / 4000)
        ours.send_signal(signal.SIGCONT)
        said, _ = ours.communicate("\n", timeout=30)
        assert said.endswith("published\n")
    assert rows_of(table) == {"k1": (5_000, 5)}


def test_every_change_holds_the_lock(lock: ZooKeeperLock, table: HudiTable, session: LocalSession) -> None:
    with curator(lock.hosts, lock.path) as theirs:
        assert theirs.ask("take 1000") == "taken"
        taken = write_lock(LocalStorage(table.path), table.config, wait_s=0)
        with pytest.raises(Conflict, match="Another process holds Hudi's lock"), taken:
            pass
        assert theirs.ask("free") == "free"
    write(table, session, 7_000)
    assert rows_of(table) == {"k1": (7_000, 7_000)}


# -- the server's own faults ------------------------------------------------------------------------


def test_without_a_server_nothing_begins(lock: ZooKeeperLock) -> None:
    nobody = ZooKeeperLock(f"127.0.0.1:{free_port()}", lock.path, SESSION_MS, 500, "a table")
    with pytest.raises(EnvironmentProblem, match="does not answer"):
        _hold(nobody, 1)


def test_a_server_that_is_silent_for_a_session_frees_nothing_and_lets_nothing_be_published(
    tmp_path: Path,
) -> None:
    with zookeeper() as own:
        lock = ZooKeeperLock(own.url, "/locks/t", SESSION_MS, 5_000, "a table")
        begun = 0.0
        with lock.held(1, "works") as check:
            own.process.send_signal(signal.SIGSTOP)
            begun = time.monotonic()
            with pytest.raises(LockLost):
                check()
            assert time.monotonic() - begun < 5
        own.process.send_signal(signal.SIGCONT)


@pytest.mark.thorough
def test_a_server_that_falls_silent_while_we_wait(tmp_path: Path) -> None:
    with zookeeper() as own, curator(own.url, "/locks/t") as theirs:
        assert theirs.ask("take 1000") == "taken"
        lock = ZooKeeperLock(own.url, "/locks/t", SESSION_MS, 5_000, "a table")
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(_hold, lock, 2.0)
            time.sleep(0.5)
            own.process.send_signal(signal.SIGSTOP)
            with pytest.raises((Conflict, EnvironmentProblem)):
                waiting.result(timeout=30)
        own.process.send_signal(signal.SIGCONT)


# -- contention -------------------------------------------------------------------------------------


def _count(lock: ZooKeeperLock, file: Path, times: int) -> None:
    for _ in range(times):
        with lock.held(60, "counts") as check:
            seen = int(file.read_text())
            time.sleep(0.002)
            check()
            file.write_text(str(seen + 1))


@pytest.mark.thorough
def test_eight_processes_of_both_kinds_never_hold_it_together(lock: ZooKeeperLock, tmp_path: Path) -> None:
    file = tmp_path / "number"
    file.write_text("0")
    fork = multiprocessing.get_context("fork")
    ours = [fork.Process(target=_count, args=(lock, file, 25)) for _ in range(4)]
    with ExitStack() as stack:
        theirs = [stack.enter_context(curator(lock.hosts, lock.path)) for _ in range(4)]
        for process in ours:
            process.start()
        for one in theirs:
            one.send(f"count {file} 25")
        for process in ours:
            process.join(60)
            assert process.exitcode == 0
        assert [one.answer() for one in theirs] == ["counted"] * 4
    assert file.read_text() == "200"
