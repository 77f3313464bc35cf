"""Schemas on Spark itself: what its DataFrames bring, and what its Parquet reader makes of older base files."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from hudi_assets.catalog.queries import read_optimized_query
from hudi_assets.engine import HudiTable, InvalidInput
from hudi_assets.engine.spark.session import spark_schema
from tests.tables.schemas import EVOLUTIONS, TYPES
from tests.tables.steps import at, compact

pytestmark = pytest.mark.spark

TOP = {name: change for name, change in EVOLUTIONS.items() if change.evolves}


def make(path: Path, schema: Any, **options: Any) -> HudiTable:
    arguments = {"record_key": ["k"], "ordering_field": "ts", "buckets": 1, "clock": "commit", **options}
    return HudiTable.create(str(path), schema, **arguments)


def put(table: HudiTable, spark: SparkSession, rows: pa.Table) -> None:
    # Without a schema Spark takes a local timestamp for one with a zone.
    frame = spark.createDataFrame(rows, spark_schema(rows.schema))
    table.upsert(spark, frame, clock_time=at(1_000))


def texts(frame: Any) -> dict[str, dict[str, str]]:
    rows = frame.toArrow().to_pylist()
    return {row["k"]: {name: repr(value) for name, value in row.items() if name[0] == "c"} for row in rows}


def view_of(table: HudiTable) -> str:
    """What the catalog's view of the base files selects."""
    groups = table.read_optimized_groups()
    return " UNION ALL ".join(read_optimized_query(table.schema(), files, columns) for files, columns in groups)


def test_every_change_at_once(spark: SparkSession, tmp_path: Path) -> None:
    """One column per change: old rows in a base file, new ones in a log file, then all in a base file."""
    head = {"k": pa.array(["old"]), "ts": pa.array([1], pa.int64())}
    old = {f"c{n}": pa.array([c.old], c.before) for n, c in enumerate(TOP.values()) if c.before is not None}
    new = {f"c{n}": pa.array([c.new], c.after) for n, c in enumerate(TOP.values())}
    seen = {f"c{n}": repr(pa.array([c.seen], c.after)[0].as_py()) for n, c in enumerate(TOP.values())}
    first = pa.table({**head, **old})
    table = make(tmp_path / "t", first.schema)
    put(table, spark, first)
    compact(table, spark, 1)
    put(table, spark, pa.table({"k": ["new"], "ts": pa.array([5], pa.int64()), **new}))
    expected = {"old": seen, "new": {name: repr(value[0].as_py()) for name, value in new.items()}}
    assert texts(table.snapshot(spark)) == expected
    assert texts(table.read_optimized(spark)) == {"old": seen}
    assert texts(spark.sql(view_of(table))) == {"old": seen}
    compact(table, spark, 5)
    assert texts(spark.sql(view_of(table))) == expected
    assert texts(table.read_optimized(spark)) == expected


def test_sparks_own_reader_reads_older_base_files_without_a_new_column(spark: SparkSession, tmp_path: Path) -> None:
    table = make(tmp_path / "t", spark.createDataFrame([], "k string, ts long").schema)
    put(table, spark, pa.table({"k": ["a"], "ts": [1]}))
    compact(table, spark, 1)
    put(table, spark, pa.table({"k": ["b"], "ts": [5], "c": ["x"]}))
    frame = table.read_optimized(spark)
    assert texts(frame) == {"a": {"c": "None"}}
    assert frame.inputFiles(), "read through the engine, where Spark can read the file itself"


def test_every_type_comes_back_from_spark(spark: SparkSession, tmp_path: Path) -> None:
    longest = max(len(values) for _, values in TYPES.values())
    columns = {
        f"c{n}": pa.array([*values, *[values[0]] * (longest - len(values))], kind)
        for n, (kind, values) in enumerate(TYPES.values())
    }
    rows = pa.table({"k": [f"k{n}" for n in range(longest)], "ts": pa.array(range(longest), pa.int64()), **columns})
    table = make(tmp_path / "t", rows.schema)
    put(table, spark, rows)
    expected = {f"k{n}": {name: repr(column[n].as_py()) for name, column in columns.items()} for n in range(longest)}
    assert texts(table.snapshot(spark)) == expected
    compact(table, spark, longest)
    assert texts(table.read_optimized(spark)) == expected


@pytest.mark.parametrize("value", ["a:b", "a/b", "..", "a\0b", "é" * 130])
def test_partition_values_that_name_no_folder_are_refused(value: str, spark: SparkSession, tmp_path: Path) -> None:
    table = make(
        tmp_path / "t", spark.createDataFrame([], "k string, ts long, p string").schema, partition_fields=["p"]
    )
    with pytest.raises(InvalidInput, match="partition value in p that is one folder's name"):
        put(table, spark, pa.table({"k": ["a", "b"], "ts": [1, 1], "p": ["x", value]}))
    assert not list((tmp_path / "t").glob("p=*"))


def test_encoded_partition_values(spark: SparkSession, tmp_path: Path) -> None:
    schema = spark.createDataFrame([], "k string, ts long, p string, q date").schema
    table = make(tmp_path / "t", schema, partition_fields=["p", "q"], url_encode=True, hive_style=False)
    day = datetime(2024, 2, 29, tzinfo=UTC).date()
    odd = ["a:b", "a/b", "50%", "a=b", "x\ty", "日本", None]
    keys = [f"k{n}" for n in range(len(odd))]
    put(table, spark, pa.table({"k": keys, "ts": [1] * len(odd), "p": odd, "q": [day] * len(odd)}))
    compact(table, spark, 1)
    rows = table.read_optimized(spark).toArrow().to_pylist()
    assert {row["k"]: row["p"] for row in rows} == dict(zip(keys, odd, strict=True))
    assert {row["_hoodie_partition_path"] for row in rows} == {
        f"{text}/2024-02-29"
        for text in ("a%3Ab", "a%2Fb", "50%25", "a%3Db", "x%09y", "日本", "__HIVE_DEFAULT_PARTITION__")
    }
