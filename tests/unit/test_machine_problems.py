"""A full disk or a missing permission is the machine's problem, said in the engine's own words."""

from __future__ import annotations

import errno
import os
import resource
import signal
from pathlib import Path

import pytest

from hudi_assets.engine import EnvironmentProblem
from hudi_assets.engine.spark.session import capture
from hudi_assets.engine.storage import LocalStorage


def test_a_file_that_cannot_grow(tmp_path: Path) -> None:
    """A limit on the size of files is the one fault of a disk that a test can make without being root."""
    storage = LocalStorage(str(tmp_path))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, hard))
    try:
        with pytest.raises(EnvironmentProblem, match="cannot be written") as refused:
            storage.create("a/file", b"x" * 100)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)
    assert "a/file" in str(refused.value)
    assert not storage.exists("a/file")


def test_a_task_s_full_disk_comes_back_as_the_engine_s_error() -> None:
    def full(_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/t/p/base.parquet")

    problem = capture(full, None)
    assert isinstance(problem, EnvironmentProblem)
    assert "/t/p/base.parquet" in str(problem)


def test_a_file_that_is_not_there_stays_what_it_is() -> None:
    with pytest.raises(FileNotFoundError):
        capture(lambda _: Path("/nowhere/at/all").read_bytes(), None)
