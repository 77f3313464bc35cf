"""The shared Spark as tests have it: small, without a catalog, and in a home of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hudi_assets.shared_spark.sessions import servers, stop_server
from tests.connect.server import ROOT

SETTINGS = {
    "spark.master": "local[2]",
    "spark.driver.memory": "1g",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
}
_LONG_S = 120.0


@contextmanager
def home_at(path: Path) -> Iterator[Path]:
    """A home whose servers end with the block. Set HUDI_ASSETS_HOME to it too."""
    try:
        yield path
    finally:
        for server in servers():
            stop_server(server, now=True)


def begin(home: Path, *work: str, **environment: str) -> subprocess.Popen[str]:
    """A run in a process of its own (`shared_client`)."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.connect.shared_client", *work],
        cwd=ROOT,
        env={**os.environ, "HUDI_ASSETS_HOME": str(home), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def first_line(run: subprocess.Popen[str]) -> dict[str, Any]:
    """What a run prints when it has its session."""
    assert run.stdout is not None
    line = run.stdout.readline()
    assert line, run.communicate()[1]
    found: dict[str, Any] = json.loads(line)
    return found


def wait_until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + _LONG_S
    while not holds():
        assert time.monotonic() < end, "it does not come to be so"
        time.sleep(0.1)


def beats(file: Path) -> bool:
    """Is the task that writes the file alive? Asked for a second."""
    before = file.read_text() if file.exists() else ""
    time.sleep(1.0)
    return file.exists() and file.read_text() != before
