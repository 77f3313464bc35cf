"""Servers that a test starts on the loopback, and stops after it."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.ports import answers

_START_SECONDS = 180
_STOP_SECONDS = 60


@contextmanager
def serving(command: Sequence[str], log: Path, port: int, stop: Sequence[str] = ()) -> Iterator[None]:
    """It answers on `port`. `stop`: a command that ends it; without one it is asked by a signal."""
    with log.open("wb") as written:
        process = subprocess.Popen(command, stdout=written, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        try:
            deadline = time.monotonic() + _START_SECONDS
            while not answers(port):
                if process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"{command[0]} did not start: {log.read_text('utf-8', 'replace')[-2000:]}")
                time.sleep(0.2)
            yield
        finally:
            if stop and process.poll() is None:
                subprocess.run(stop, check=False, capture_output=True, timeout=120)
            else:
                process.terminate()
            try:
                process.wait(timeout=_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
