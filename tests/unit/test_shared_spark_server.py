"""The server that runs share, as it starts, hangs, and looks who uses it. Without a Spark."""

from __future__ import annotations

import errno
import shutil
import socket
from pathlib import Path
from typing import cast

import pytest

from hudi_assets.engine import ConnectServer
from hudi_assets.shared_spark import server
from hudi_assets.shared_spark.folder import Running, ServerFolder

RUNNING = Running(port=4711, token="secret", pid=1, started=1.5)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ServerFolder:
    monkeypatch.setenv("HUDI_ASSETS_HOME", str(tmp_path))
    made = ServerFolder(tmp_path / "shared_spark" / socket.gethostname() / "key")
    made.make()
    return made


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
