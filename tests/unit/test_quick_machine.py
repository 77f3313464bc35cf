"""Where tests keep their tables, and with which JVMs: what the environment says comes first."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests import quick_machine, spark_classes

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
    assert os.environ["SPARK_LAUNCHER_OPTS"] != ""
    assert os.environ["SPARK_SUBMIT_OPTS"] == os.environ["SPARK_LAUNCHER_OPTS"] + spark_classes.option()


def test_what_the_environment_says_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NAMES:
        monkeypatch.setenv(name, f"my own {name}")
    quick_machine.load()
    assert [os.environ[name] for name in NAMES] == [f"my own {name}" for name in NAMES]


def test_the_tables_of_this_run_are_where_temporary_files_are(tmp_path_factory: pytest.TempPathFactory) -> None:
    base = tmp_path_factory.getbasetemp()
    if "TMPDIR" in os.environ and "pytest-of-" in str(base):  # not where --basetemp says
        assert base.is_relative_to(Path(os.environ["TMPDIR"]).resolve())


def test_a_spark_is_told_of_its_classes_where_they_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = tmp_path / "kept"
    monkeypatch.setattr(spark_classes, "archive", lambda: kept)
    assert spark_classes.option() == ""
    kept.touch()
    assert spark_classes.option().startswith(f" -XX:SharedArchiveFile={kept} ")
    monkeypatch.setattr(spark_classes, "archive", lambda: None)
    assert spark_classes.option() == ""


def test_the_classes_are_those_of_one_java_and_one_pyspark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for name in ("one", "other"):
        java = tmp_path / name / "bin" / "java"
        java.parent.mkdir(parents=True)
        java.touch(mode=0o755)
        monkeypatch.setenv("JAVA_HOME", str(tmp_path / name))
        found.append(spark_classes.archive())
    assert found[0] != found[1]
    assert all(str(file).startswith(f"{sys.prefix}/spark-{version('pyspark')}-") for file in found)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "none"))
    assert spark_classes.archive() is None
