"""A run's session in the Spark that all runs of this machine share."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hudi_assets.engine import (
    EnvironmentProblem,
    check_can_serve,
    check_no_own_spark,
    end_connected_session,
    local_connected_session,
)
from hudi_assets.home import home
from hudi_assets.shared_spark.folder import Running, ServerFolder, folders_in
from hudi_assets.shared_spark.local import LOCAL_SETTINGS
from hudi_assets.shared_spark.wanted import Versions, Wanted, idle_ms

if TYPE_CHECKING:
    from filelock import FileLock
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)
_START_S: Final = 180.0
_END_S: Final = 60.0
_POLL_S: Final = 0.1
_KEPT_S: Final = 7 * 86_400.0  # the log of a server that is gone
_DAMAGED: Final = (OSError, ValueError, KeyError, TypeError)  # a folder that is no server's, or is deleted meanwhile
_USED: Final[dict[str, FileLock]] = {}  # session → what says that this process uses it


@dataclass(frozen=True)
class Server:
    """A server of this home. `versions`: what it runs. `is_current`: this process's programs are the same."""

    folder: ServerFolder
    running: Running
    sessions: int
    versions: Mapping[str, str]
    idle_ms: int
    is_current: bool
    is_ending: bool

    @property
    def address(self) -> str:
        """As Spark writes one."""
        return f"sc://127.0.0.1:{self.running.port}"


def shared_session(settings: Mapping[str, Any] = LOCAL_SETTINGS) -> SparkSession:
    """A new session in the Spark that the runs of this home share, which is started where there is none.

    The session ends with this process, or with `end_session`. What it still does is stopped then.

    Args:
        settings: Spark's, of a Spark on one machine. Runs with other settings have another Spark.

    Raises:
        EnvironmentProblem: Packages or Java are missing, this process has a Spark of its own, or the server does not
            start. Its log is named.
    """
    check_no_own_spark()
    check_can_serve()
    wanted = Wanted.here(settings)
    folder, is_again = _folder(wanted), False
    while True:
        session_id = str(uuid.uuid4())
        with folder.lock():
            running = _running(folder) or _start(folder, wanted, idle_ms())
            used = folder.enter(session_id)
        try:
            session = local_connected_session(
                running.port, running.token, session_id, str(folder.log), folder.has_server
            )
        except BaseException as error:
            used.release()
            if is_again or not isinstance(error, EnvironmentProblem):
                raise
            is_again = True  # its Java may just have been killed, and its port have answered still
        else:
            _USED[session_id] = used
            return session


def end_session(session: SparkSession) -> None:
    """Stop what a session still does, and forget it. The server goes on for the others."""
    end_connected_session(session)
    used = _USED.pop(str(getattr(session, "session_id", None)), None)
    if used is not None:
        used.release()


def start_server(settings: Mapping[str, Any] = LOCAL_SETTINGS, idle: str | None = None) -> tuple[Server, bool]:
    """The server for these settings, and whether it was started now.

    Args:
        settings: Spark's.
        idle: After how long without a session it ends, as 30m. One that runs already keeps its own.
    """
    check_can_serve()
    ends_after, wanted = idle_ms(idle), Wanted.here(settings)
    folder = _folder(wanted)
    with folder.lock():
        running = _running(folder)
        begun = running is None
        running = running or _start(folder, wanted, ends_after)
        return _server(folder, running), begun


def servers() -> list[Server]:
    """The servers of this home that run."""
    found = []
    for folder in folders_in(_root()):
        with contextlib.suppress(*_DAMAGED):
            if folder.has_server():  # else its folder is left alone
                with folder.lock():
                    running = folder.running()
                    if running is not None:
                        found.append(_server(folder, running))
    return found


def stop_server(server: Server, *, now: bool = False) -> bool:
    """End a server, if nobody uses it or with `now`. Else it ends with its last session, and False is returned."""
    folder = server.folder
    with folder.lock():
        running = folder.running()
        if running is not None:
            if folder.used_by() and not now:
                folder.end_when_unused()
                return False
            folder.forget()  # from here on a run starts another one
            _end(folder, running.pid)
            return True
    _wait_for_end(folder, _END_S)
    return True


def _server(folder: ServerFolder, running: Running) -> Server:
    wanted = folder.wanted()
    is_current = wanted["versions"] == asdict(Versions.here())
    used_by = folder.used_by()
    return Server(folder, running, used_by, wanted["versions"], wanted["idle_ms"], is_current, folder.is_ending)


def _root() -> Path:
    return home() / "shared_spark" / _machine()  # machines may share a home


def _machine() -> str:
    """Its name, and what tells it from others of the same name: containers see no other one's processes and ports."""
    told = []
    with contextlib.suppress(OSError):  # not on Linux
        told.append(Path("/proc/sys/kernel/random/boot_id").read_text())
        told += [os.readlink(f"/proc/self/ns/{kind}") for kind in ("net", "pid")]
    return f"{socket.gethostname()}-{hashlib.sha256(repr(told).encode()).hexdigest()[:8]}"


def _folder(wanted: Wanted) -> ServerFolder:
    folder = ServerFolder(_root() / wanted.key)
    folder.make()
    return folder


def _running(folder: ServerFolder) -> Running | None:
    """The server that can be used; waits for one that starts or ends. Under the folder's lock.

    Raises:
        EnvironmentProblem: One lives and does not serve. No other can start in its folder.
    """
    end = time.monotonic() + _START_S
    while folder.has_server():
        running = folder.running()
        if running is not None and _answers(running.port):
            return running
        if time.monotonic() > end:
            raise _hung(folder, running)
        time.sleep(_POLL_S)  # it starts, ends, or is about to notice that its Java is gone
    return None


def _hung(folder: ServerFolder, running: Running | None) -> EnvironmentProblem:
    which, end = "The shared Spark", f"the process that has {folder.path / 'serving'} open"
    if running is not None:
        which, end = f"The shared Spark of process {running.pid}", "it with hudi-assets spark stop --now"
    what = f"{which} is hung: it lives, and has not served for {_START_S:.0f} s."
    return EnvironmentProblem(what, where=str(folder.log), hint=f"End {end}.")


def _start(folder: ServerFolder, wanted: Wanted, ends_after_ms: int) -> Running:
    """Start a server, and wait until it serves. Under the folder's lock."""
    if Versions.installed() != wanted.versions:
        raise EnvironmentProblem(
            "hudi-assets, or what it needs, was changed since this process began, and a server would have the new one.",
            hint="Start this process again.",
        )
    _let_others_end(wanted.versions)
    folder.write_wanted(
        {"settings": dict(wanted.settings), "versions": asdict(wanted.versions), "idle_ms": ends_after_ms}
    )
    folder.forget()  # what a server said that was killed is not the next one's word
    log.info("Starting a Spark that all runs share; its log is %s.", folder.log)
    folder.begin_log()
    with folder.log.open("ab") as out:
        server = subprocess.Popen(
            [sys.executable, "-m", "hudi_assets.shared_spark.server", str(folder.path)],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C in the terminal ends a run, not the server
            cwd=folder.path,
        )
    end = time.monotonic() + _START_S
    while time.monotonic() < end:
        running = folder.running()
        if running is not None:
            return running
        if server.poll() is not None and not folder.has_server():
            raise _not_started(folder, "The Spark that all runs share did not start")
        time.sleep(_POLL_S)
    _end(folder, server.pid)
    raise _not_started(folder, f"The Spark that all runs share did not start within {_START_S:.0f} s")


def _not_started(folder: ServerFolder, what: str) -> EnvironmentProblem:
    lines = [line for line in folder.log.read_text("utf-8", "replace").splitlines() if line.strip()]
    hint = "Read that log. Without HUDI_ASSETS_SHARED_SPARK each run has a Spark of its own."
    return EnvironmentProblem(f"{what}: {lines[-1] if lines else 'it said nothing'}.", where=str(folder.log), hint=hint)


def _let_others_end(versions: Versions) -> None:
    """Servers of other versions end with their last session: nobody comes to them any more. Old folders go.

    What is damaged, or goes meanwhile, is left alone: others start servers too.
    """
    for other in folders_in(_root()):
        with contextlib.suppress(*_DAMAGED):
            if other.has_server() and other.wanted()["versions"] != asdict(versions):
                other.end_when_unused()
    for machine in folders_in(_root().parent):
        for other in folders_in(machine.path):
            with contextlib.suppress(*_DAMAGED):
                _forget_old(other)


def _forget_old(folder: ServerFolder) -> None:
    """Of all machines that share the home. Their locks may not be seen here, so a server says by time that it lives."""
    if folder.age_s > _KEPT_S and not folder.has_server():
        with folder.lock_at_once() as alone:
            if alone and not folder.has_server():
                shutil.rmtree(folder.path, ignore_errors=True)


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _end(folder: ServerFolder, pid: int) -> None:
    """End a server. One that does not end in order is killed, with its Java."""
    _send(pid, signal.SIGTERM)
    try:
        _wait_for_end(folder, _END_S)
    except EnvironmentProblem:
        _send(pid, signal.SIGKILL)
        _wait_for_end(folder, _END_S)


def _send(pid: int, what: signal.Signals) -> None:
    """To the server's process; to kill, to all of its group, which `_start` has begun."""
    with contextlib.suppress(ProcessLookupError):
        if what == signal.SIGKILL and os.getpgid(pid) == pid:
            os.killpg(pid, what)
        else:
            os.kill(pid, what)


def _wait_for_end(folder: ServerFolder, longest_s: float) -> None:
    end = time.monotonic() + longest_s
    while folder.has_server():
        if time.monotonic() > end:
            raise EnvironmentProblem(f"The shared Spark does not end within {longest_s:.0f} s.", where=str(folder.log))
        time.sleep(_POLL_S)
