"""A server's folder, `<home>/shared_spark/MACHINE/KEY`, by which runs and server know of each other.

Who is alive is told by locks of the operating system, which it frees when their holder dies. A number of a process
that was given to another one can deceive nobody.

- `lock`: who starts, joins or leaves, one at a time.
- `serving`: the server has it for as long as it lives.
- `server.json`: where the server listens, and the token that it knows its clients by. For its owner's eyes alone.
- `server.log`, and `server.log.1` of the server before.
- `wanted.json`: what it was started with.
- `sessions/ID`: a run has it for as long as it uses session ID.
- `ending`: the server ends with its last session.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from hudi_assets.engine import EnvironmentProblem

_LOCK_S = 300.0  # somebody else's start
_ASKED_S = 2.0  # who asks whether a lock is free has it for a moment


@dataclass(frozen=True)
class Running:
    """A server that runs. `started`: seconds since 1970."""

    port: int
    token: str = field(repr=False)
    pid: int
    started: float


@dataclass(frozen=True)
class ServerFolder:
    """One server's folder."""

    path: Path

    @property
    def log(self) -> Path:
        """What the server and its Java print."""
        return self.path / "server.log"

    def begin_log(self) -> None:
        """The log of the server before stays, as `server.log.1`: an error may have named it. Ask under `lock`."""
        with contextlib.suppress(FileNotFoundError):
            self.log.replace(self.log.with_name("server.log.1"))

    @property
    def _state(self) -> Path:
        return self.path / "server.json"

    @property
    def _ending(self) -> Path:
        return self.path / "ending"

    @property
    def _sessions(self) -> Path:
        return self.path / "sessions"

    @property
    def age_s(self) -> float:
        """Since something happened there. A server says about every minute that it lives (`keep`)."""
        return time.time() - self.path.stat().st_mtime

    def keep(self) -> None:
        """For others it is not old."""
        os.utime(self.path)

    def make(self) -> None:
        """For its owner's eyes: the token is here, and settings may hold passwords."""
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._sessions.mkdir(exist_ok=True)

    @property
    def is_there(self) -> bool:
        """False once somebody has deleted it."""
        return self._sessions.exists()

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Alone with the folder. Raises `EnvironmentProblem` where another's start does not come to an end."""
        with _translated(self.path), _lock(self.path / "lock", _LOCK_S):
            yield

    @contextmanager
    def lock_at_once(self) -> Iterator[bool]:
        """Alone with the folder; False where somebody else is."""
        lock = _lock(self.path / "lock", 0)
        try:
            lock.acquire()
        except Timeout:
            yield False
            return
        try:
            yield True
        finally:
            lock.release()

    # -- the server's side ---------------------------------------------------------------------------

    def serve(self) -> FileLock | None:
        """Become its server; None where it has one."""
        lock = _lock(self.path / "serving", _ASKED_S)
        try:
            lock.acquire()
        except Timeout:
            return None
        self.forget()
        return lock

    def tell(self, running: Running) -> None:
        """From here on runs find the server."""
        self._write(self._state, asdict(running))

    def forget(self) -> None:
        """From here on no run finds it."""
        self._state.unlink(missing_ok=True)
        self._ending.unlink(missing_ok=True)

    def left_sessions(self) -> Iterator[str]:
        """Sessions whose run has ended: each is there once. Ask under `lock`."""
        for file in self._sessions.iterdir():
            if _is_free(file):
                file.unlink(missing_ok=True)
                yield file.name

    # -- the runs' side ------------------------------------------------------------------------------

    def running(self) -> Running | None:
        """The server that runs, if one does. Ask under `lock`."""
        if not self.has_server():
            return None
        try:
            return Running(**json.loads(self._state.read_text("utf-8")))
        except (OSError, ValueError, TypeError):
            return None

    def has_server(self) -> bool:
        """True while a server lives, also one that starts or ends."""
        return not _is_free(self.path / "serving")

    def enter(self, session_id: str) -> FileLock:
        """Use the server until the lock is freed. Ask under `lock`. A server that was asked to end stays then."""
        self._ending.unlink(missing_ok=True)
        lock = _lock(self._sessions / session_id, 0)
        lock.acquire()
        return lock

    def used_by(self) -> int:
        """How many sessions runs have. Ask under `lock`."""
        return sum(not _is_free(file) for file in self._sessions.iterdir())

    def end_when_unused(self) -> None:
        """Ask the server to end with its last session."""
        self._ending.touch()

    @property
    def is_ending(self) -> bool:
        """True where it was asked to."""
        return self._ending.exists()

    # -- what it was started with --------------------------------------------------------------------

    def write_wanted(self, wanted: dict[str, Any]) -> None:
        """For the server that is about to start."""
        self._write(self.path / "wanted.json", wanted)

    def wanted(self) -> dict[str, Any]:
        """As it was written."""
        found: dict[str, Any] = json.loads((self.path / "wanted.json").read_text("utf-8"))
        return found

    def _write(self, file: Path, value: dict[str, Any]) -> None:
        """At once, and for its owner alone."""
        draft = file.with_suffix(f".{os.getpid()}")
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as out:
            json.dump(value, out)
        draft.replace(file)


def folders_in(root: Path) -> Iterator[ServerFolder]:
    """The folders of this user's servers. What else lies there is nobody's server."""
    try:
        paths = sorted(root.iterdir())
    except OSError:
        return
    for path in paths:
        with contextlib.suppress(OSError):
            found = path.lstat()
            if stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid():
                yield ServerFolder(path)


def _lock(file: Path, timeout: float) -> FileLock:
    # Not of one thread: a run's end is not always in the thread of its begin.
    return FileLock(str(file), timeout=timeout, thread_local=False)


def _is_free(file: Path) -> bool:
    """Asked by a shared lock: of two who ask at once, none takes the other for the holder."""
    try:
        with file.open("rb") as asked:
            fcntl.flock(asked, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return True
    except BlockingIOError:
        return False
    return True


@contextmanager
def _translated(path: Path) -> Iterator[None]:
    try:
        yield
    except Timeout as error:
        raise EnvironmentProblem(
            f"Another run has been starting the shared Spark for {_LOCK_S:.0f} s.",
            where=str(path / "server.log"),
            hint="Read that log, and end what hangs there.",
        ) from error
