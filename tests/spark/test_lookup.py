"""Writes that find their keys, in Spark's own tasks."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from hudi_assets.engine import HudiTable
from tests.tables.other_index import of_index
from tests.tables.steps import compact

pytestmark = pytest.mark.spark
SCHEMA = "id string, ts long, p string, v long"


def rows(table: HudiTable, spark: SparkSession) -> list[tuple[str, int, int]]:
    return sorted((r["id"], r["ts"], r["v"]) for r in table.snapshot(spark).collect())


def test_updates_inserts_deletes_and_a_compaction(spark: SparkSession, tmp_path: Path) -> None:
    created = HudiTable.create(
        str(tmp_path / "t"),
        spark.createDataFrame([], SCHEMA).schema,
        record_key=["id"],
        ordering_field="ts",
        partition_fields=["p"],
    )
    table = of_index(created, "BLOOM", **{"hoodie.index.bloom.num_entries": "100"})
    first = [(f"k{n}", 10 + n, "ab"[n % 2], 1) for n in range(10)]
    table.upsert(spark, spark.createDataFrame(first, SCHEMA))
    second = [(f"k{n}", 100 + n, "ab"[n % 2], 2) for n in (1, 2, 10, 11)]
    table.upsert(spark, spark.createDataFrame(second, SCHEMA))
    third = table.upsert(spark, spark.createDataFrame([("k3", 203, "b", 3)], SCHEMA))
    assert (third.rows, third.log_files) == (1, 1)
    gone = table.delete(
        spark, spark.createDataFrame([("k4", 300, "a"), ("k99", 300, "a")], "id string, ts long, p string")
    )
    assert gone.log_files == 1
    expected = {key: (ts, v) for key, ts, _, v in (*first, *second, ("k3", 203, "b", 3)) if key != "k4"}
    assert rows(table, spark) == sorted((key, *row) for key, row in expected.items())
    compact(table, spark, 250)
    assert rows(table, spark) == sorted((key, *row) for key, row in expected.items())
    assert len(table.read_optimized_files()) == 2
