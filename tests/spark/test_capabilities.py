"""What a session is and lacks is said once; the classes in Java compile for this Spark."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

from hudi_assets import catalog
from hudi_assets.engine import EnvironmentProblem
from hudi_assets.engine.actions.compaction.hudi_executor import check_session
from hudi_assets.engine.spark import capabilities as subject
from hudi_assets.engine.spark import java_classes
from hudi_assets.engine.spark.capabilities import Capabilities, Kind, capabilities

JAVA = Path(java_classes.__file__).with_name("java")


@pytest.mark.classic
@pytest.mark.spark
def test_a_classic_session_lacks_nothing(spark: SparkSession) -> None:
    assert capabilities(spark) == Capabilities(Kind.CLASSIC)


@pytest.mark.classic
@pytest.mark.spark
def test_what_is_missing_is_said_once_and_as_a_warning(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delitem(subject._KNOWN, spark, raising=False)
    lacking = java_classes.Compiled({}, {"Slices": "no Janino"})
    monkeypatch.setitem(java_classes._COMPILED, spark.sparkContext, lacking)
    with caplog.at_level(logging.WARNING):
        first, second = capabilities(spark), capabilities(spark)
    del subject._KNOWN[spark]
    assert first == second
    assert "Slices: no Janino" in first.missing[0]
    assert [record.getMessage() for record in caplog.records] == list(first.missing)


def test_hudis_own_classes_are_not_called_through_spark_connect() -> None:
    connected = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})()
    assert capabilities(connected).kind is Kind.CONNECT
    with pytest.raises(EnvironmentProblem, match="Spark Connect") as refused:
        check_session(connected)
    assert "classic session" in (refused.value.hint or "")


# Spark itself needs no javac. CI has one, so there it must not be left out.
needs_javac = pytest.mark.skipif(shutil.which("javac") is None and "CI" not in os.environ, reason="needs a JDK's javac")


def compiled(folder: Path, sources: Iterable[Path]) -> set[str]:
    """The names of the classes that javac makes of sources, with this PySpark's jars."""
    jars = Path(pyspark.__file__).parent / "jars"
    command = ["javac", "-proc:none", "-nowarn", "-d", str(folder), "-cp", f"{jars}/*", *map(str, sources)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return {path.stem.partition("$")[0] for path in folder.rglob("*.class")}


@needs_javac
def test_the_classes_compile_for_this_spark(tmp_path: Path) -> None:
    scala_2_12 = any((Path(pyspark.__file__).parent / "jars").glob("scala-library-2.12*"))
    sources = []
    for name in java_classes._NAMES:
        text = (JAVA / f"{name}.java").read_text("utf-8")
        sources.append(tmp_path / f"{name}.java")
        sources[-1].write_text(text.replace(java_classes._SEQ, "scala.collection.Seq") if scala_2_12 else text, "utf-8")
    assert compiled(tmp_path / "classes", sources) == set(java_classes._NAMES)
    assert {path.stem for path in JAVA.glob("*.java")} == set(java_classes._NAMES)


@needs_javac
def test_the_metastores_class_compiles(tmp_path: Path) -> None:
    folder = Path(catalog.__file__).parent / "java"
    assert compiled(tmp_path, folder.glob("*.java")) == {path.stem for path in folder.glob("*.java")} != set()
