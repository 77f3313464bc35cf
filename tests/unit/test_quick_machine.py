"""Where tests keep their tables, and with which JVMs: what the environment says comes first."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests import quick_machine

NAMES = ("TMPDIR", "SPARK_SUBMIT_OPTS", "SPARK_LAUNCHER_OPTS")


@pytest.mark.parametrize(("free_gb", "in_memory"), [(0.06, False), (8, True)])
def test_tables_are_in_memory_where_there_is_room(
    free_gb: float, in_memory: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in NAMES:
        monkeypatch.setenv(name, "")  # so that it is put back
        monkeypatch.delenv(name)
    monkeypatch.setattr(tempfile, "tempdir", "chosen before")
    monkeypatch.setattr(quick_machine, "_MEMORY", tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=int(free_gb * 1024**3)))
    quick_machine.load()
    assert os.environ.get("TMPDIR") == (str(tmp_path / f"hudi-assets-{os.getuid()}") if in_memory else None)
    assert tempfile.gettempdir() == os.environ.get("TMPDIR", "chosen before")
    assert os.environ["SPARK_SUBMIT_OPTS"] == os.environ["SPARK_LAUNCHER_OPTS"] != ""


def test_what_the_environment_says_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NAMES:
        monkeypatch.setenv(name, f"my own {name}")
    quick_machine.load()
    assert [os.environ[name] for name in NAMES] == [f"my own {name}" for name in NAMES]


def test_the_tables_of_this_run_are_where_temporary_files_are(tmp_path_factory: pytest.TempPathFactory) -> None:
    base = tmp_path_factory.getbasetemp()
    if "TMPDIR" in os.environ and "pytest-of-" in str(base):  # not where --basetemp says
        assert base.is_relative_to(Path(os.environ["TMPDIR"]).resolve())
