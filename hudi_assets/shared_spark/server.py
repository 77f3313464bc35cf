"""The process of a server: `python -m hudi_assets.shared_spark.server FOLDER`, which `sessions` starts."""

from __future__ import annotations

import os
import secrets
import signal
import sys
import time
from pathlib import Path
from typing import Final

from hudi_assets.engine import ConnectServer
from hudi_assets.shared_spark.folder import Running, ServerFolder
from hudi_assets.shared_spark.local import prepare

_POLL_S: Final = 1.0


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
        folder.forget()
        server.stop()


def _watch(folder: ServerFolder, server: ConnectServer, idle_s: float) -> None:
    last_used, shared_is_left = time.monotonic(), False
    while server.is_alive() and folder.path.exists():
        time.sleep(_POLL_S)
        with folder.lock_at_once() as alone:
            if not alone:
                continue  # somebody comes
            for session_id in folder.left_sessions():
                server.close(session_id)
            if folder.used_by():
                last_used, shared_is_left = time.monotonic(), True
                continue
            if shared_is_left:
                server.forget_shared()
                shared_is_left = False
            if folder.is_ending or time.monotonic() - last_used >= idle_s:
                folder.forget()  # under the lock: whoever comes now starts another one
                return


if __name__ == "__main__":
    serve(ServerFolder(Path(sys.argv[1])))
