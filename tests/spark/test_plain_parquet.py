"""Which DataFrames are plain Parquet files, read by the workers: the same rows, in the same order, as from Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from hudi_assets.engine import HudiTable, InvalidInput
from hudi_assets.engine.spark import session as spark_session
from hudi_assets.engine.spark.parquet import plain_files

pytestmark = [pytest.mark.spark, pytest.mark.classic]
SCHEMA = pa.schema(
    [("id", pa.string()), ("ts", pa.int64()), ("small", pa.int8()), ("real", pa.float32()), ("yes", pa.bool_())]
)


def rows(first: int, count: int) -> pa.Table:
    numbers = range(first, first + count)
    columns = {
        "id": [f"key {n} é" if n % 7 else None for n in numbers],
        "ts": list(numbers),
        "small": [n % 100 for n in numbers],
        "real": [n / 3 for n in numbers],
        "yes": [None if n % 5 == 0 else n % 2 == 0 for n in numbers],
    }
    return pa.table(columns, SCHEMA)


@pytest.fixture
def files(spark: SparkSession, tmp_path: Path) -> Iterator[Path]:
    """Two files of many row groups, which Spark cuts into more splits than it has files."""
    folder = tmp_path / "it's 100% rows é"
    folder.mkdir()
    pq.write_table(rows(0, 2_000), folder / "a.parquet", row_group_size=90)
    pq.write_table(rows(2_000, 900), folder / "b.parquet", row_group_size=400)
    spark.conf.set("spark.sql.files.maxPartitionBytes", "7000")
    yield folder
    spark.conf.unset("spark.sql.files.maxPartitionBytes")


def plainly(frame: DataFrame) -> pa.Table | None:
    """A DataFrame's rows as workers read them."""
    found = plain_files(frame, spark_session.schema_of(frame), 2)
    if found is None:
        return None
    batches = [batch for task in range(len(found.tasks)) for batch in found.read(task)]
    return pa.Table.from_batches(batches, found.schema)


def test_rows_come_as_from_spark(spark: SparkSession, files: Path) -> None:
    frame = spark.read.parquet(str(files))
    found = plain_files(frame, spark_session.schema_of(frame), 2)
    assert found is not None
    assert len(found.tasks) > 4
    assert frame.rdd.getNumPartitions() > 2
    for chosen in (frame, frame.select("ts", "id"), frame.drop("real")):
        plain = plainly(chosen)
        assert plain is not None
        assert plain.to_pylist() == [row.asDict() for row in chosen.collect()]


def test_the_rows_of_each_task_are_worked_on_once(spark: SparkSession, files: Path) -> None:
    frame = spark.read.parquet(str(files)).select("ts")
    found = spark_session.map_rows(frame, lambda batches: [n for b in batches for n in b.column("ts").to_pylist()])
    assert [n for part in found for n in part] == [row["ts"] for row in frame.collect()]


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda frame: frame.where("ts > 5"), id="filter"),
        pytest.param(lambda frame: frame.withColumnRenamed("ts", "at"), id="renamed"),
        pytest.param(lambda frame: frame.selectExpr("id", "ts + 1 as ts"), id="computed"),
        pytest.param(lambda frame: frame.selectExpr("id", "_metadata.file_path as file"), id="metadata"),
        pytest.param(lambda frame: frame.limit(7), id="limit"),
        pytest.param(lambda frame: frame.distinct(), id="distinct"),
        pytest.param(lambda frame: frame.union(frame), id="union"),
        pytest.param(lambda frame: frame.repartition(3), id="moved"),
        pytest.param(lambda frame: frame.orderBy("ts"), id="sorted"),
        pytest.param(lambda frame: frame.sample(0.5, seed=1), id="sample"),
        pytest.param(lambda frame: frame.localCheckpoint(), id="checkpoint"),
    ],
)
def test_what_spark_does_to_rows_is_left_to_spark(
    spark: SparkSession, files: Path, make: Callable[[DataFrame], DataFrame]
) -> None:
    assert plainly(make(spark.read.parquet(str(files)))) is None


def test_rows_that_spark_keeps_come_from_there(spark: SparkSession, files: Path) -> None:
    frame = spark.read.parquet(str(files))
    assert plainly(frame) is not None
    frame.persist()
    try:
        assert plainly(spark.read.parquet(str(files))) is None
    finally:
        frame.unpersist()


def test_other_reads_of_files_are_left_to_spark(spark: SparkSession, files: Path, tmp_path: Path) -> None:
    assert plainly(spark.read.schema("id string, ts bigint, more int").parquet(str(files))) is None
    assert plainly(spark.read.schema("id string, TS bigint").parquet(str(files))) is None
    assert plainly(spark.read.schema("id string, ts decimal(20, 0)").parquet(str(files))) is None
    assert plainly(spark.read.option("mergeSchema", "true").parquet(str(files))) is None
    assert plainly(spark.read.option("recursiveFileLookup", "true").parquet(str(files))) is None
    spark.conf.set("spark.sql.files.ignoreCorruptFiles", "true")
    try:
        assert plainly(spark.read.parquet(str(files))) is None
    finally:
        spark.conf.unset("spark.sql.files.ignoreCorruptFiles")
    for name, column in {"time": pa.array([1], pa.timestamp("us", "UTC")), "list": pa.array([[1]])}.items():
        pq.write_table(pa.table({"id": ["a"], name: column}), tmp_path / f"{name}.parquet")
        assert plainly(spark.read.parquet(str(tmp_path / f"{name}.parquet"))) is None
        assert plainly(spark.read.parquet(str(tmp_path / f"{name}.parquet")).select("id")) is not None
    (tmp_path / "of/p=1").mkdir(parents=True)
    pq.write_table(rows(0, 5), tmp_path / "of/p=1/a.parquet")
    assert plainly(spark.read.parquet(str(tmp_path / "of"))) is None
    spark.read.parquet(str(files)).write.json(str(tmp_path / "json"))
    assert plainly(spark.read.schema("id string").json(str(tmp_path / "json"))) is None


def test_a_file_that_is_not_as_it_was_listed_is_left_to_spark(spark: SparkSession, files: Path) -> None:
    frame = spark.read.parquet(str(files))
    pq.write_table(rows(0, 10), files / "a.parquet")
    assert plainly(frame) is None
    (files / "a.parquet").unlink()
    assert plainly(frame) is None


def test_a_load_from_files_is_the_load_from_spark(spark: SparkSession, files: Path, tmp_path: Path) -> None:
    """And a faulty row is found in them."""
    frame = spark.read.parquet(str(files))
    chosen = ["ts", "small", "real"]
    answers = []
    for name, source in {"plain": frame.select(chosen), "spark": frame.select(chosen).where("ts >= 0")}.items():
        table = HudiTable.create(
            str(tmp_path / name),
            pa.schema([SCHEMA.field(n) for n in chosen]),
            record_key=["small"],
            ordering_field="ts",
            event_time_unit="ms",
            buckets=3,
            data_latency="0s",
        )
        table.bulk_insert(spark, source)
        answers.append(sorted(row["ts"] for row in table.snapshot(spark).select("ts").collect()))
    assert answers[0] == answers[1] == list(range(2_800, 2_900))
    table = HudiTable.create(str(tmp_path / "t"), SCHEMA, record_key=["id"], ordering_field="ts", event_time_unit="ms")
    with pytest.raises(InvalidInput, match="415 of 2900 rows have no record key"):
        table.bulk_insert(spark, frame)
    assert table.state().timeline.instants == ()
