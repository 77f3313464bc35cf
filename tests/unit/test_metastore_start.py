"""The metastore of a home directory: how long its first start may take, what a start that fails leaves behind, and
that a server which is used goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hudi_assets.catalog import metastore
from hudi_assets.catalog.metastore import Metastore, MetastoreError
from hudi_assets.processes import is_alive

# A Java that says who it is, and does nothing more. It does not heed a signal that asks it to end.
SLOW_JAVA = """#!/bin/sh
trap '' TERM
echo $$ > {pid}
while :; do sleep 0.1; done
"""


class Clock:
    """Stands where the module `time` stands, in the process that waits."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += 1


def started(home: Path, monkeypatch: pytest.MonkeyPatch, *, after: float) -> Any:
    """A server that answers after so many seconds. What is left of it in the end."""
    clock, server = Clock(), SimpleNamespace(ended=False, poll=lambda: None)
    monkeypatch.setattr(metastore, "time", clock)
    monkeypatch.setattr(subprocess, "Popen", lambda *_, **__: server)
    monkeypatch.setattr(Metastore, "is_running", lambda _: clock.now >= after)
    monkeypatch.setattr(metastore, "_end_session", lambda one: setattr(one, "ended", True))
    store = Metastore(home)
    try:
        store._start()
    except MetastoreError as error:
        server.problem = str(error)
    return server


def test_the_first_start_has_the_time_of_its_three_phases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not started(tmp_path, monkeypatch, after=280).ended
    late = started(tmp_path, monkeypatch, after=300)
    assert late.ended
    assert "did not start within 290 s, and was ended" in late.problem


def test_a_later_start_has_the_time_of_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Metastore(tmp_path).database.mkdir(parents=True)
    assert not started(tmp_path, monkeypatch, after=80).ended
    assert started(tmp_path, monkeypatch, after=100).ended


def test_a_start_that_takes_too_long_leaves_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java, pid = tmp_path / "bin" / "java", tmp_path / "pid"
    java.parent.mkdir()
    java.write_text(SLOW_JAVA.format(pid=pid))
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    children: list[subprocess.Popen[bytes]] = []
    popen = subprocess.Popen

    def noted(*arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
        children.append(popen(*arguments, **options))
        return children[-1]

    def wait(seconds: float) -> None:
        time.sleep(0.05)
        if pid.exists() and pid.read_text():
            clock.now += 1000  # it is at work, and has been for too long

    clock = Clock()
    monkeypatch.setattr(clock, "sleep", wait)
    monkeypatch.setattr(metastore, "time", clock)
    monkeypatch.setattr(metastore, "_STOP_SECONDS", 1.0)
    monkeypatch.setattr(subprocess, "Popen", noted)
    with pytest.raises(MetastoreError, match="was ended"):
        Metastore(tmp_path / "home")._start()
    (server,) = children
    assert server.returncode is not None
    until = time.monotonic() + 60
    while is_alive(int(pid.read_text())) and time.monotonic() < until:
        time.sleep(0.05)  # whoever inherits it has to reap it
    assert not is_alive(int(pid.read_text()))
    assert not Metastore(tmp_path / "home").exists


def test_a_draft_of_a_start_that_was_broken_off_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the column for long views would stay as short as Hive makes it."""
    store = Metastore(tmp_path)
    (store.draft / "half").mkdir(parents=True)
    made: list[str] = []

    def launched(opened: Metastore, port: int) -> Any:
        made.append((opened.directory / "conf/hive-site.xml").read_text())
        opened.draft.mkdir()
        return SimpleNamespace(terminate=lambda: None, wait=lambda timeout: 0, poll=lambda: None)

    monkeypatch.setattr(metastore, "_launch", launched)
    monkeypatch.setattr(metastore, "_answers", lambda port: True)
    monkeypatch.setattr(metastore, "_jars", lambda: "")
    monkeypatch.setattr(metastore, "_java", lambda: "true")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: SimpleNamespace(returncode=1, stderr="no"))
    with pytest.raises(MetastoreError, match="could not be widened: no"):
        metastore._create_schema(store)
    assert not Metastore(tmp_path).exists
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: SimpleNamespace(returncode=0))
    metastore._create_schema(store)
    assert store.exists
    assert not (store.database / "half").exists()
    assert all(f"databaseName={store.draft};" in conf for conf in made)


class Java:
    """Ends by itself at a time, where one is given."""

    def __init__(self, clock: Clock, ends: float | None = None) -> None:
        self.clock, self.ends, self.ended_under_lock = clock, ends, False
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.ends is not None and self.clock.now >= self.ends:
            self.returncode = -9
        return self.returncode


class Served:
    """A server's process of its own, that runs here: it takes no time, and its Java is none."""

    def __init__(self, home: Path, patch: pytest.MonkeyPatch, *ends: float) -> None:
        """`ends`: when its Java ends by itself, and each one that comes after it."""
        self.clock, self.locked, self.users_at = Clock(), False, lambda now: True
        self.javas: list[Java] = []
        self._ends = iter(ends)
        self.store = Metastore(home)
        self.store.database.mkdir(parents=True)
        self.store.users.mkdir()
        self.store.port_file.write_text("1234")
        patch.setattr(metastore, "time", self.clock)
        patch.setattr(signal, "signal", lambda *_: None)
        patch.setattr(metastore, "_launch", self._launch)
        patch.setattr(metastore, "_terminate", self._terminate)
        patch.setattr(metastore, "_answers", lambda port: True)
        patch.setattr(Metastore, "is_running", lambda _: False)
        patch.setattr(Metastore, "has_users", lambda _: self.users_at(self.clock.now))
        patch.setattr(Metastore, "lock", lambda _: self._lock())

    def _launch(self, store: Metastore, port: int) -> Java:
        assert port == 1234
        assert not self.javas or self.locked, "somebody else might start one at the same time"
        self.javas.append(Java(self.clock, next(self._ends, None)))
        return self.javas[-1]

    def _terminate(self, java: Java) -> None:
        java.ended_under_lock |= self.locked

    @contextmanager
    def _lock(self) -> Iterator[None]:
        self.locked = True
        yield
        self.locked = False


def test_a_java_that_ends_by_itself_is_started_again_while_it_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    served = Served(tmp_path, monkeypatch, 50, 120)
    served.users_at = lambda now: now < 200
    assert metastore.serve(served.store) == 0
    assert len(served.javas) == 3
    assert "started again" in capsys.readouterr().out


@pytest.mark.parametrize(("ends", "used"), [((5,), True), ((50, 55), True), ((50,), False)])
def test_a_java_that_cannot_run_or_is_not_needed_is_not_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends: tuple[float, ...], used: bool
) -> None:
    served = Served(tmp_path, monkeypatch, *ends)
    served.users_at = lambda now: used or now < 45
    assert metastore.serve(served.store) == -9
    assert len(served.javas) == len(ends)


def test_who_comes_when_the_server_leaves_finds_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is ended under the lock. After it a user would be told of a server that is just about to end."""
    served = Served(tmp_path, monkeypatch)
    served.users_at = lambda now: now < 10
    assert metastore.serve(served.store) == 0
    assert served.javas[0].ended_under_lock


def test_a_disk_that_is_full_for_a_while_ends_no_server_that_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = Served(tmp_path, monkeypatch)

    def users(now: float) -> bool:
        if now == 10:
            raise OSError(28, "No space left on device")
        return now < 100

    served.users_at = users
    with Path("/dev/full").open("w", encoding="utf-8") as its_log:  # which lies on that disk
        monkeypatch.setattr(sys, "stdout", its_log)
        assert metastore.serve(served.store) == 0
        monkeypatch.undo()
        with suppress(OSError):
            its_log.close()
    assert served.clock.now > 100


def test_what_lies_beside_the_users_is_no_user(tmp_path: Path) -> None:
    store = Metastore(tmp_path)
    assert not store.has_users()
    store.users.mkdir(parents=True)
    for name in (".DS_Store", "12 (copy)", str(1 << 80), "-1"):
        (store.users / name).touch()
    assert not store.has_users()
    (store.users / str(os.getpid())).touch()
    assert store.has_users()
    assert (store.users / ".DS_Store").exists()
    assert not (store.users / str(1 << 80)).exists()


def test_why_a_server_ended_is_kept_when_the_next_one_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Metastore(tmp_path)
    store.directory.mkdir(parents=True)
    store.log_file.write_text("the metastore ends: its Java ended")
    started(tmp_path, monkeypatch, after=1)
    assert (store.directory / "server.log.1").read_text() == "the metastore ends: its Java ended"
