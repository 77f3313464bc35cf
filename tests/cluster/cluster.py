"""A standalone Spark cluster on this machine: a master, and workers of different host names, all on loopback.

Spark starts a second attempt of a task on another host only: 127.0.0.1 and 127.0.0.2 are two.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyspark

from tests.ports import free_port

WORKERS = 2
_UP_S = 300.0


# `unshare -m` alone may be forbidden, and so may the mount.
HIDE = ("unshare", "-m", "sh", "-c", 'folder=$1; shift; mount -t tmpfs none "$folder" && exec "$@"', "sh")


def can_hide(folder: Path) -> bool:
    """Whether this user may start a process that sees another folder there."""
    try:
        return subprocess.run([*HIDE, str(folder), "true"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


@contextmanager
def cluster(folder: Path, *, hidden: Path | None = None) -> Iterator[str]:
    """The master's URL; its processes end with the block. Logs and work folders are in `folder`.

    `hidden`: a folder that the last worker sees empty, as one that has mounted nothing there.
    """
    port = free_port()
    url = f"spark://127.0.0.1:{port}"
    processes = [_start(folder, "master", "127.0.0.1", "master.Master", "--port", str(port), "--webui-port", "0")]
    try:
        _wait(folder / "master.log", "I have been elected leader", 1)
        for number in range(1, WORKERS + 1):
            args = (
                "--cores",
                "1",
                "--memory",
                "1g",
                "--webui-port",
                "0",
                "--work-dir",
                str(folder / f"w{number}"),
                url,
            )
            before = (*HIDE, str(hidden)) if hidden and number == WORKERS else ()
            processes.append(_start(folder, f"w{number}", f"127.0.0.{number}", "worker.Worker", *args, before=before))
        _wait(folder / "master.log", "Registering worker", WORKERS)
        yield url
    finally:
        for process in reversed(processes):
            process.terminate()
        for process in processes:
            process.wait(30)


def _start(
    folder: Path, name: str, host: str, main: str, *args: str, before: Sequence[str] = ()
) -> subprocess.Popen[bytes]:
    home = Path(pyspark.__file__).parent
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    environment |= {"SPARK_HOME": str(home), "SPARK_LOCAL_IP": host, "SPARK_DAEMON_MEMORY": "256m"}
    command = [*before, str(home / "bin/spark-class"), f"org.apache.spark.deploy.{main}", "--host", host, *args]
    (folder / name).mkdir()
    with (folder / f"{name}.log").open("wb") as log:
        return subprocess.Popen(
            command, cwd=folder / name, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )


def _wait(log: Path, text: str, times: int) -> None:
    end = time.monotonic() + _UP_S
    while log.read_text(errors="replace").count(text) < times:
        if time.monotonic() > end:
            raise TimeoutError(f"{text!r} is not {times} times in {log}:\n{log.read_text(errors='replace')[-2000:]}")
        time.sleep(0.1)
