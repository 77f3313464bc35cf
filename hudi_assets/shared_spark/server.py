"""The process of a server: `python -m hudi_assets.shared_spark.server FOLDER`, which `sessions` starts."""

from __future__ import annotations

import logging
import os
import secrets
import signal
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from hudi_assets.engine import ConnectServer
from hudi_assets.shared_spark.folder import Running, ServerFolder
from hudi_assets.shared_spark.local import prepare

log = logging.getLogger(__name__)
_POLL_S: Final = 1.0
_END_S: Final = 30.0
_KEEP_S: Final = 60.0


def serve(folder: ServerFolder) -> None:
    """Serve until nobody has used the server for its idle time, it was told to end, or its Java has ended."""
    serving = folder.serve()
    if serving is None:
        return  # somebody was quicker
    # An exit that passes through `finally`: Spark's Java ends in order.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    wanted, token = folder.wanted(), secrets.token_urlsafe(32)
    server = ConnectServer.start(prepare(wanted["settings"]), token, folder.path)
    try:
        folder.tell(Running(server.port, token, os.getpid(), time.time()))
        _watch(folder, server, wanted["idle_ms"] / 1000)
    finally:
        in_time = threading.Timer(_END_S, _end_at_once)
        in_time.daemon = True
        in_time.start()
        folder.forget()
        server.stop()
        in_time.cancel()


def _end_at_once() -> None:
    """For a Java that does not end: as long as this process lives no other server starts."""
    log.error("Spark does not stop within %.0f s, so its processes are killed.", _END_S)
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


def _watch(folder: ServerFolder, server: ConnectServer, idle_s: float) -> None:
    watch, is_told = _Watch(folder, server, idle_s), False
    while server.is_alive():
        time.sleep(_POLL_S)
        try:
            if watch.is_over():
                return
            is_told = False
        except OSError:  # too many open files, or a disk that is full: the runs go on
            if not is_told:
                log.exception("It cannot be seen who uses this server. It is tried again.")
            is_told = True


class _Watch:
    """Looks who uses the server. What fails for one session ends it for no other."""

    def __init__(self, folder: ServerFolder, server: ConnectServer, idle_s: float) -> None:
        self._folder, self._server, self._idle_s = folder, server, idle_s
        self._last_used, self._shared_is_left = time.monotonic(), False

    def is_over(self) -> bool:
        """Close the sessions whose run has ended. True where the server is to end, and no run finds it any more."""
        if not self._folder.is_there:
            return True
        if self._folder.age_s >= _KEEP_S:
            self._folder.keep()
        with self._folder.lock_at_once() as alone:
            if not alone:
                return False  # somebody comes
            for session_id in self._folder.left_sessions():
                _try(partial(self._server.close, session_id), f"close session {session_id}")
            if self._folder.used_by():
                self._last_used, self._shared_is_left = time.monotonic(), True
                return False
            if self._shared_is_left:
                self._shared_is_left = False
                _try(self._server.forget_shared, "drop what sessions cached")
            if not self._folder.is_ending and time.monotonic() - self._last_used < self._idle_s:
                return False
            self._folder.forget()  # under the lock: whoever comes now starts another one
            return True


def _try(what: Callable[[], None], words: str) -> None:
    try:
        what()
    except Exception:
        log.exception("Spark did not %s.", words)


if __name__ == "__main__":
    serve(ServerFolder(Path(sys.argv[1])))
