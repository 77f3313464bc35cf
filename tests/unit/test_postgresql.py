"""`python -m tests.postgresql`: a signal leaves no server and no folder."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.ports import answers
from tests.postgresql import PostgresMissing, programs

pytestmark = [pytest.mark.slow]
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def _installed() -> None:
    try:
        programs()
    except PostgresMissing as missing:
        pytest.skip(str(missing))


def folder_of(program: int) -> Path | None:
    """Of the server that this process started, or starts: a command below it names the folder."""
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(status.read_text().rpartition(")")[2].split()[1])
            words = (status.parent / "cmdline").read_bytes().decode().split("\0")
        except (OSError, ValueError):
            continue
        if parent == program and "-D" in words:
            return Path(words[words.index("-D") + 1]).parent
    return None


@contextmanager
def started() -> Iterator[subprocess.Popen[str]]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "tests.postgresql"]
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as program:
        try:
            yield program
        finally:
            program.terminate()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_server(number: int) -> None:
    with started() as program:
        assert program.stdout is not None
        port = int(re.findall(r":(\d+)/", program.stdout.readline())[0])
        folder = folder_of(program.pid)
        assert folder is not None
        assert folder.is_dir()
        assert answers(port)
        program.send_signal(number)
        assert program.wait(60) == 0
    assert not answers(port)
    assert not folder.exists()


def test_a_signal_while_it_starts_leaves_nothing() -> None:
    with started() as program:
        for _ in range(1200):
            folder = folder_of(program.pid)
            if folder is not None:
                break
            time.sleep(0.05)
        assert folder is not None
        program.terminate()
        assert program.wait(60) == 1
    assert not folder.exists()
