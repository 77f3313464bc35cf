"""The metastore of a home directory: how long its first start may take, and what a start that fails leaves behind."""

from __future__ import annotations

import subprocess
import time
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
