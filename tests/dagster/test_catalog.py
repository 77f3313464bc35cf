"""Publishing in the catalog: one statement for files and properties, seen by other processes at once."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from hudi_assets.catalog.metastore import Metastore
from hudi_assets.catalog.publication import promise_properties
from hudi_assets.catalog.publishing import Form, Names
from hudi_assets.catalog.queries import read_optimized_query
from hudi_assets.catalog.spark_sql import properties_by_spark, publish_by_spark, view_statement
from hudi_assets.engine import PUBLISH_PARTITIONS, Freshness, HudiTable, InvalidInput
from hudi_assets.home import project_root
from tests.tables.local_session import LocalSession

_SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.string())])


def _view(files: list[str], **properties: str) -> str:
    return view_statement("`some_view`", read_optimized_query(_SCHEMA, files), properties)


def _write(path: Path, value: int) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"a": [value], "b": ["x"]}, _SCHEMA), path)
    return str(path)


@pytest.mark.spark
def test_the_view_reads_exactly_the_files_named(tmp_path: Path, spark: SparkSession) -> None:
    odd = [
        "it's",
        "{a",
        "b}",
        "[c",
        "d]",
        "*",
        "?",
        "e`",
        "f,g",
        "j%20k",
        "l m",
        "{a}, [b]*`c`?",
    ]
    names = ["origin=A/f.parquet", *(f"origin={name}/g.parquet" for name in odd)]
    files = [_write(tmp_path / name, n) for n, name in enumerate(names)]
    _write(tmp_path / "origin=A/older.parquet", 99)
    spark.sql(_view(files, freshness="it's \\ now"))
    assert sorted(row.a for row in spark.sql("SELECT a FROM some_view").collect()) == list(range(len(names)))
    assert {r.key: r.value for r in spark.sql("SHOW TBLPROPERTIES some_view").collect()}["freshness"] == "it's \\ now"
    spark.sql(_view(files[:1], freshness="later"))
    assert [row.a for row in spark.sql("SELECT a FROM some_view").collect()] == [0]
    spark.sql("DROP VIEW some_view")


@pytest.mark.spark
def test_partitions_named_for_a_time_of_day(tmp_path: Path, spark: SparkSession) -> None:
    files = [_write(tmp_path / f"hour=05:{n:02d}" / "g.parquet", n) for n in range(3)]
    files.append(_write(tmp_path / "hour=none" / "g.parquet", 3))
    spark.sql(_view(files, freshness="now"))
    assert sorted(row.a for row in spark.sql("SELECT a FROM some_view").collect()) == [0, 1, 2, 3]
    spark.sql("DROP VIEW some_view")


@pytest.mark.spark
def test_without_base_files_the_view_is_empty_and_has_its_columns(spark: SparkSession) -> None:
    spark.sql(_view([], freshness="null"))
    found = spark.table("some_view")
    assert found.dtypes == [("a", "bigint"), ("b", "string")]
    assert found.count() == 0
    spark.sql("DROP VIEW some_view")


def test_properties_name_times_in_both_forms() -> None:
    found = promise_properties(
        Freshness(1000, None, None, 2000, "20240301000000000", None, 3000), "/t", 1_709_251_200_000
    )
    assert found["hudi_assets.freshness"] == "1970-01-01T00:00:01Z"
    assert found["hudi_assets.freshness_ms"] == "1000"
    assert found["hudi_assets.threshold_ms"] == "2000"
    assert found["hudi_assets.instant"] == "20240301000000000"
    assert found["hudi_assets.instant_time"] == "2024-03-01T00:00:00Z"
    assert found["hudi_assets.computed_at"] == "1970-01-01T00:00:03Z"
    unknown = promise_properties(Freshness(None, "log x has no range", None, None, None, None, 3000), "/t", None)
    assert unknown["hudi_assets.freshness"] == "null"
    assert unknown["hudi_assets.reason"] == "log x has no range"


@pytest.fixture
def synced(spark: SparkSession, tmp_path: Path) -> Iterator[HudiTable]:
    """A table in a folder with a space in its name, as `default.synced`, as a sync tool would have made it."""
    table = _made(tmp_path / "a table")
    spark.sql(f"CREATE TABLE synced (a BIGINT) USING parquet LOCATION '{table.path}'")
    yield table
    spark.sql("DROP TABLE IF EXISTS synced")


_SYNCED = Names("default", "synced", "not_there", Form.SYNCED)


@pytest.mark.spark
def test_by_spark_the_promise_stands_in_the_synced_table(spark: SparkSession, synced: HudiTable) -> None:
    properties = publish_by_spark(spark, synced, _SYNCED)
    assert properties_by_spark(spark, "default", "synced").items() >= properties.items()


@pytest.mark.spark
def test_by_spark_the_freshness_of_the_partitions_stands_beside_it(
    spark: SparkSession, synced: HudiTable, session: LocalSession
) -> None:
    wanted = HudiTable.open(synced.path, settings={PUBLISH_PARTITIONS: "true"})
    for value in range(2):  # made, and moved
        synced.upsert(session, session.rows([{"a": value, "b": "x"}], _SCHEMA))
        properties = publish_by_spark(spark, wanted, _SYNCED)
        told = spark.table("synced_freshness").select("partition_path", "freshness_ms", "log_files").collect()
        assert [tuple(row) for row in told] == [
            (one.partition, one.freshness, one.remaining_log_files) for one in wanted.partition_freshness()
        ]
        assert properties_by_spark(spark, "default", "synced_freshness").items() >= properties.items()
    publish_by_spark(spark, synced, _SYNCED)
    assert not spark.catalog.tableExists("synced_freshness")


@pytest.mark.spark
def test_by_spark_another_tables_synced_table_is_refused(
    spark: SparkSession, synced: HudiTable, tmp_path: Path
) -> None:
    before = properties_by_spark(spark, "default", "synced")
    with pytest.raises(InvalidInput, match=f"This is the table at .*{synced.path}, not the one at"):
        publish_by_spark(spark, _made(tmp_path / "other"), _SYNCED)
    assert properties_by_spark(spark, "default", "synced") == before


@pytest.mark.spark
def test_by_spark_a_view_is_no_synced_table(spark: SparkSession, tmp_path: Path) -> None:
    table = _made(tmp_path / "t")
    spark.sql("CREATE VIEW synced AS SELECT 1 AS a")
    try:
        with pytest.raises(InvalidInput, match="no synced table"):
            publish_by_spark(spark, table, _SYNCED)
    finally:
        spark.sql("DROP VIEW synced")


def _made(path: Path) -> HudiTable:
    return HudiTable.create(str(path), _SCHEMA, record_key=["a"], ordering_field="a")


_PUBLISHER = """
import sys
from hudi_assets.resources.spark import SparkResource
spark = SparkResource().spark_session
for line in sys.stdin:
    spark.sql(line)
    print("published", flush=True)
"""


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.timeout(600)
def test_a_second_process_sees_what_the_first_publishes(tmp_path: Path) -> None:
    """A session that stays open publishes a view with more files than Hive's schema allows; spark-sql,
    started with nothing but its SPARK_CONF_DIR, reads it meanwhile. Without users the metastore ends."""
    metastore = Metastore(tmp_path)
    environment = {**os.environ, "HUDI_ASSETS_HOME": str(tmp_path), "PYTHONPATH": str(project_root())}
    environment.pop("SPARK_CONF_DIR", None)
    files = [_write(tmp_path / f"data/{n:0120d}.parquet", n) for n in range(300)]
    assert len(_view(files)) > 32_700
    publisher = subprocess.Popen(
        [sys.executable, "-c", _PUBLISHER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment,
        cwd=tmp_path,
    )
    assert publisher.stdin is not None
    assert publisher.stdout is not None
    try:
        publisher.stdin.write(_view(files, freshness="now") + "\n")
        publisher.stdin.flush()
        assert publisher.stdout.readline() == "published\n"
        assert _spark_sql(metastore, "SELECT count(*), sum(a) FROM some_view") == f"300\t{sum(range(300))}"
        assert "freshness\tnow" in _spark_sql(metastore, "SHOW TBLPROPERTIES some_view")
    finally:
        publisher.stdin.close()
        publisher.wait(timeout=60)
    deadline = time.monotonic() + 90
    while metastore.is_running() and time.monotonic() < deadline:
        time.sleep(1)
    assert not metastore.is_running()


def _spark_sql(metastore: Metastore, statement: str) -> str:
    bin_directory = Path(sys.executable).parent
    environment = {
        **{key: value for key, value in os.environ.items() if not key.startswith(("SPARK", "PYSPARK"))},
        "SPARK_CONF_DIR": str(metastore.spark_conf_dir),
        "PATH": f"{bin_directory}{os.pathsep}{os.environ['PATH']}",
    }
    done = subprocess.run(
        [str(bin_directory / "spark-sql"), "--master", "local[2]", "-e", statement],
        capture_output=True,
        text=True,
        env=environment,
        cwd=metastore.home,
        timeout=240,
        check=True,
    )
    return done.stdout.strip()
