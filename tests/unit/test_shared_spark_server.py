"""The server that runs share, as it starts, hangs, and looks who uses it. Without a Spark."""

from __future__ import annotations

import errno
import os
import shutil
import socket
import subprocess
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from hudi_assets.engine import ConnectServer, EnvironmentProblem
from hudi_assets.shared_spark import server, sessions
from hudi_assets.shared_spark.folder import Running, ServerFolder
from hudi_assets.shared_spark.wanted import Versions, Wanted
from tests.ports import HOST, free_port

RUNNING = Running(port=4711, token="secret", pid=1, started=1.5)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ServerFolder:
    monkeypatch.setenv("HUDI_ASSETS_HOME", str(tmp_path))
    made = ServerFolder(sessions._root() / "key")
    made.make()
    return made


def test_why_a_server_did_not_start_is_said_with_its_log(folder: ServerFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with folder.lock(), pytest.raises(EnvironmentProblem, match="did not start: it said nothing") as refused:
        sessions._start(folder, Wanted.here({}), 1000)
    assert refused.value.where == str(folder.log)


def test_a_process_that_began_before_an_upgrade_starts_no_server(
    folder: ServerFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    upgraded = replace(Versions.installed(), package="99")
    monkeypatch.setattr(Versions, "installed", lambda: upgraded)
    with folder.lock(), pytest.raises(EnvironmentProblem, match="was changed since this process began"):
        sessions._start(folder, Wanted.here({}), 1000)


def test_the_log_that_an_error_named_stays_when_another_server_starts(
    folder: ServerFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    for said in ("the first", "the second"):
        folder.log.write_text(said)
        with folder.lock(), pytest.raises(EnvironmentProblem):
            sessions._start(folder, Wanted.here({}), 1000)
        assert (folder.path / "server.log.1").read_text() == said
    assert folder.log.read_text() == ""


def test_a_server_that_lives_and_does_not_serve_is_called_hung(
    folder: ServerFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "_START_S", 0.3)
    serving = folder.serve()
    for said, hint in ((None, "serving open"), (replace(RUNNING, port=free_port()), "spark stop --now")):
        if said is not None:
            folder.tell(said)
        with pytest.raises(EnvironmentProblem, match="is hung") as refused:
            sessions._running(folder)
        assert refused.value.where == str(folder.log)
        assert hint in str(refused.value)
    assert serving is not None
    serving.release()
    assert sessions._running(folder) is None


def test_a_server_that_was_found_as_it_died_is_replaced_and_asked_for_no_third_time(
    folder: ServerFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, asked = iter((RUNNING, replace(RUNNING, port=1), replace(RUNNING, port=2))), []

    def connected(port: int, *_: object) -> object:
        asked.append(port)
        if port != 1:
            raise EnvironmentProblem("nobody answers")
        return object()

    monkeypatch.setattr(sessions, "check_can_serve", lambda: None)
    monkeypatch.setattr(sessions, "check_no_own_spark", lambda: None)
    monkeypatch.setattr(sessions, "_folder", lambda _: folder)
    monkeypatch.setattr(sessions, "_running", lambda _: next(found))
    monkeypatch.setattr(sessions, "local_connected_session", connected)
    monkeypatch.setattr(sessions, "_USED", {})
    sessions.shared_session()
    assert asked == [4711, 1]
    assert folder.used_by() == 1
    found = iter((RUNNING, RUNNING, RUNNING))
    with pytest.raises(EnvironmentProblem, match="nobody answers"):
        sessions.shared_session()
    assert asked == [4711, 1, 4711, 4711]
    assert folder.used_by() == 1


DEAF = """
import signal, sys, time
from pathlib import Path
from hudi_assets.shared_spark.folder import ServerFolder
serving = ServerFolder(Path(sys.argv[1])).serve()
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("serves", flush=True)
time.sleep(300)
"""


@pytest.mark.slow
def test_a_server_that_does_not_end_in_order_is_killed(folder: ServerFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "_END_S", 1.0)
    words = [sys.executable, "-c", DEAF, str(folder.path)]
    with subprocess.Popen(words, start_new_session=True, stdout=subprocess.PIPE) as deaf:
        try:
            assert deaf.stdout is not None
            assert deaf.stdout.readline() == b"serves\n"
            sessions._end(folder, deaf.pid)
            assert not folder.has_server()
        finally:
            deaf.kill()


class Spark:
    """Stands where the server's Spark stands. `refused`: a session that cannot be closed."""

    def __init__(self, refused: str = "") -> None:
        self.closed: list[str] = []
        self.rounds = 0
        self._refused = refused

    def is_alive(self) -> bool:
        self.rounds += 1
        return self.rounds < 40

    def close(self, session_id: str) -> None:
        if session_id == self._refused:
            raise RuntimeError("Java says no")
        self.closed.append(session_id)

    def forget_shared(self) -> None:
        raise RuntimeError("nor does it forget")


def test_a_session_that_cannot_be_closed_ends_the_server_for_no_other(
    folder: ServerFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_POLL_S", 0.001)
    used, spark = folder.enter("used"), Spark("bad")
    for left in ("bad", "good"):
        folder.enter(left).release()
    server._watch(folder, cast(ConnectServer, spark), 60)
    assert (spark.closed, spark.rounds) == (["good"], 40)
    used.release()
    last = Spark()
    server._watch(folder, cast(ConnectServer, last), 0)
    assert last.closed == ["used"]


def test_a_system_that_refuses_a_look_does_not_end_the_server(
    folder: ServerFolder, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(_: ServerFolder) -> int:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(server, "_POLL_S", 0.001)
    monkeypatch.setattr(ServerFolder, "used_by", full)
    spark = Spark()
    server._watch(folder, cast(ConnectServer, spark), 0)
    assert spark.rounds == 40
    assert caplog.text.count("It is tried again") == 1


def test_a_server_whose_folder_is_gone_ends(folder: ServerFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_POLL_S", 0.001)
    shutil.rmtree(folder.path)
    spark = Spark()
    server._watch(folder, cast(ConnectServer, spark), 60)
    assert spark.rounds == 1


def of_java(*, ended: int | None = None, stopped: bool = False, port: int) -> ConnectServer:
    java = SimpleNamespace(sc=lambda: SimpleNamespace(isStopped=lambda: stopped))
    gateway = SimpleNamespace(proc=SimpleNamespace(poll=lambda: ended))
    made = ConnectServer.__new__(ConnectServer)
    made.port, made._spark = port, SimpleNamespace(sparkContext=SimpleNamespace(_gateway=gateway, _jsc=java))
    return made


def test_a_server_lives_while_its_spark_does_and_listens() -> None:
    with socket.socket() as listener:
        listener.bind((HOST, 0))
        listener.listen()
        port = listener.getsockname()[1]
        assert of_java(port=port).is_alive()
        assert not of_java(port=port, ended=137).is_alive()
        assert not of_java(port=port, stopped=True).is_alive()
    assert not of_java(port=port).is_alive()


LONG_AGO = time.time() - 8 * 86_400


def made(path: Path, versions: Versions | None = None, *, is_old: bool = False) -> ServerFolder:
    one = ServerFolder(path)
    one.make()
    one.write_wanted({"versions": asdict(versions or Versions.here())})
    if is_old:
        os.utime(path, (LONG_AGO, LONG_AGO))
    return one


def test_who_starts_lets_servers_of_other_versions_end_and_old_folders_go(folder: ServerFolder) -> None:
    there = folder.path.parent
    kept = [made(there / "same"), made(there / "other", replace(Versions.here(), package="0.0"), is_old=True)]
    serving = [one.serve() for one in kept]
    os.utime(there / "other", (LONG_AGO, LONG_AGO))
    made(there / "old", is_old=True)
    made(there / "late")
    of_another_machine = [made(there.parent / "gone" / "old", is_old=True), made(there.parent / "gone" / "new")]
    sessions._let_others_end(Versions.here())
    ending = {one.name: ServerFolder(one).is_ending for one in there.iterdir()}
    assert ending == {"same": False, "other": True, "late": False, "key": False}
    assert [one.is_there for one in of_another_machine] == [False, True]
    assert None not in serving


def test_a_server_that_lives_is_not_old(folder: ServerFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_POLL_S", 0.001)
    with folder.lock():  # its file is there
        os.utime(folder.path, (LONG_AGO, LONG_AGO))
    server._watch(folder, cast(ConnectServer, Spark()), 60)
    assert folder.age_s < 60


def test_what_lies_beside_servers_stops_nobody(folder: ServerFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    there = folder.path.parent
    (there / "a stray file").touch()
    (there.parent / "another").touch()
    (there / "empty").mkdir()
    damaged, serving = {"no JSON": "{", "no versions": "{}", "a list": "[]"}, []
    for name, text in damaged.items():
        one = made(there / name)
        serving.append(one.serve())
        one.tell(RUNNING)
        (one.path / "wanted.json").write_text(text)
    theirs = made(there / "theirs", replace(Versions.here(), package="0.0"))
    serving.append(theirs.serve())
    theirs.tell(RUNNING)
    lstat = Path.lstat

    def seen(path: Path) -> os.stat_result:
        found = list(lstat(path))
        if path == theirs.path:
            found[4] = os.getuid() + 1
        return os.stat_result(found)

    monkeypatch.setattr(Path, "lstat", seen)
    assert sessions.servers() == []
    sessions._let_others_end(Versions.here())
    assert not theirs.is_ending
    assert None not in serving


def test_containers_of_one_name_have_servers_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    here = sessions._root()
    assert sessions._root() == here
    monkeypatch.setattr(os, "readlink", lambda _: "pid:[another]")
    assert sessions._root() != here
    assert here.name.startswith(socket.gethostname())
