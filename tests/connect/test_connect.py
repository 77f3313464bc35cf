"""Sessions of Spark Connect: what is wrong with one is said before anything is written; the command line uses one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from hudi_assets.engine import EnvironmentProblem, HudiTable, connected_session
from hudi_assets.engine.spark import probe
from hudi_assets.resources import SparkResource
from tests.connect.server import ROOT, connect_server

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(600),
    # A process has sessions of one kind.
    pytest.mark.skipif(os.environ.get("SPARK_SESSION") != "connect", reason="make test-connect runs these"),
]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with connect_server(tmp_path_factory.mktemp("connect"), {"spark.ui.enabled": "false"}) as address:
        yield address


@pytest.fixture
def spark(url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[SparkSession]:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    session = connected_session(url)
    yield session
    session.stop()


def filled(path: Path, spark: SparkSession) -> HudiTable:
    rows = spark.sql("SELECT id, timestamp'2024-05-01 08:00:00' AS at, id * 2 AS v FROM range(10)")
    table = HudiTable.create(str(path), rows.schema, record_key=["id"], ordering_field="at", buckets=2)
    table.upsert(spark, rows)
    table.upsert(spark, rows.selectExpr("id", "at + interval 3 hours AS at", "id * 3 AS v").where("id < 4"))
    return table


def answer(table: HudiTable, spark: SparkSession) -> dict[int, int]:
    return {row["id"]: row["v"] for row in table.snapshot(spark).collect()}


def test_a_table_is_written_compacted_and_read(spark: SparkSession, tmp_path: Path) -> None:
    table = filled(tmp_path / "t", spark)
    right = {id_: id_ * (3 if id_ < 4 else 2) for id_ in range(10)}
    assert answer(table, spark) == right
    table.compact(spark, threshold="2024-05-01T09:00:00Z")
    assert {row["id"]: row["v"] for row in table.read_optimized(spark).collect()} == {i: i * 2 for i in range(10)}
    assert answer(table, spark) == right


def test_the_command_line_has_its_spark_there(url: str, spark: SparkSession, tmp_path: Path) -> None:
    table = filled(tmp_path / "t", spark)
    environment = {**os.environ, "SPARK_REMOTE": url, "JAVA_HOME": "/nowhere"}
    asked = ["compact", table.path, "--threshold", "2024-05-01T09:00:00Z", "--writers", "stopped", "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "hudi_assets.cli", *asked],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)
    assert table.freshness().freshness == 1_714_554_000_000


def test_each_call_makes_a_session_of_its_own(url: str, spark: SparkSession) -> None:
    other = connected_session(url)
    assert other is not spark
    other.stop()
    assert spark.range(2).count() == 2


def test_dagsters_runs_have_theirs_there(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_REMOTE", url)
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    session = SparkResource().spark_session
    assert session.range(3).count() == 3
    session.stop()


def test_workers_of_another_version_are_refused(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe, "version", lambda _: "99.0")
    table = HudiTable.create(
        str(tmp_path / "t"), spark.sql("SELECT 1L AS id, 2L AS at").schema, record_key=["id"], ordering_field="at"
    )
    with pytest.raises(EnvironmentProblem, match=r"workers of the Spark Connect server have hudi-assets .*has 99\.0"):
        table.upsert(spark, spark.sql("SELECT 1L AS id, 2L AS at"))
    assert not list(Path(table.path, ".hoodie").glob("*commit*"))
