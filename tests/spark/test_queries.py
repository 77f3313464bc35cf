"""Time travel and incremental queries: what they take and refuse, what they read, and both on a real Spark."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from hudi_assets.engine import HudiTable, InvalidInput
from hudi_assets.engine.queries.query import ReadTask, read_task
from hudi_assets.engine.spark import java_classes as spark_java
from hudi_assets.engine.spark import session as spark_session
from hudi_assets.engine.timeline.instants import instant_ms
from tests.tables import steps
from tests.tables.local_session import LocalSession
from tests.tables.steps import at, created

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("ts", pa.int64()), ("v", pa.int64())])
BEGIN = "hoodie.datasource.read.begin.instanttime"
END = "hoodie.datasource.read.end.instanttime"
TYPE = "hoodie.datasource.query.type"
needs_data_source = pytest.mark.skipif(
    find_spec("pyspark.sql.datasource") is None, reason="Spark has Python data sources since 4.0"
)


def new_table(path: Path) -> HudiTable:
    return HudiTable.create(
        str(path), SCHEMA, record_key=["id"], ordering_field="ts", partition_fields=["part"], buckets=1, clock="commit"
    )


def batch(*rows: tuple[str, int, int]) -> pa.Table:
    return pa.Table.from_pylist([{"id": i, "part": "p" + i[-1], "ts": ts, "v": v} for i, ts, v in rows], SCHEMA)


def write(table: HudiTable, session: Any, clock: int, *rows: tuple[str, int, int]) -> str:
    found = batch(*rows)
    if isinstance(session, LocalSession):
        frame: Any = session.frame(found)
    else:
        # Spark 3.5 takes no Arrow table.
        frame = session.createDataFrame(
            [tuple(row.values()) for row in found.to_pylist()], spark_session.spark_schema(SCHEMA)
        )
    instant = table.upsert(session, frame, clock_time=at(clock)).instant
    assert instant is not None
    return instant


def compact(table: HudiTable, session: Any, latency: int) -> str:
    return steps.compact(table, session, data_latency=latency).instant


def values(tasks: list[ReadTask]) -> dict[str, int]:
    # As Spark has it: a task crosses to a worker.
    shipped = pickle.loads(pickle.dumps(tasks))
    return {row["id"]: row["v"] for task in shipped for b in read_task(task) for row in b.to_pylist()}


def shown(frame: Any) -> dict[str, int]:
    return {row["id"]: row["v"] for row in frame.collect()}


# ------------------------------------------------------------------------------- on a real Spark


@pytest.mark.classic
@pytest.mark.spark
def test_spark_reads_the_columns_that_a_plan_needs(spark: SparkSession, tmp_path: Path) -> None:
    table = new_table(tmp_path / "t")
    first = write(table, spark, 10_000, ("k0", 1_000, 1), ("k1", 1_000, 1))
    compact(table, spark, 8_000)
    write(table, spark, 20_000, ("k0", 11_000, 2), ("k2", 11_000, 5))
    frame = table.snapshot(spark)

    def columns_read(asked: Any) -> set[str]:
        text: str = asked._jdf.queryExecution().executedPlan().toString()
        fields = text.partition("ReadSchema: struct<")[2].partition(">")[0]
        return {field.partition(":")[0] for field in fields.split(",")} - {""}

    total = frame.where("part <> 'p1'").selectExpr("sum(v)")
    assert columns_read(total) == {"part", "v"}
    assert total.collect()[0][0] == 7
    assert columns_read(frame.selectExpr("count(1)")) == set()
    assert frame.count() == 3
    assert [row.asDict() for row in frame.orderBy("id").select("v", "id").limit(2).collect()] == [
        {"v": 2, "id": "k0"},
        {"v": 1, "id": "k1"},
    ]
    assert frame.schema == spark.createDataFrame([], frame.schema).schema
    assert table.incremental(spark, first).agg({"v": "sum"}).collect()[0][0] == 7
    joined = frame.alias("a").join(frame.alias("b"), on="id").selectExpr("sum(a.v + b.ts)")
    assert joined.collect()[0][0] == 8 + 23_000
    frame.createOrReplaceTempView("now")
    found = spark.sql("SELECT part, max(ts) AS ts FROM now GROUP BY part ORDER BY part").collect()
    assert [tuple(row) for row in found] == [("p0", 11_000), ("p1", 1_000), ("p2", 11_000)]


def plan_of(frame: Any) -> str:
    """What Spark would run for a DataFrame."""
    return str(frame._jdf.queryExecution().executedPlan().toString())


def three_partitions(path: Path, session: Any) -> HudiTable:
    """Rows k0, k1, k2 in base files of three partitions, newer versions of them in log files."""
    table = new_table(path)
    for clock, v in ((10_000, 1), (20_000, 2)):
        write(table, session, clock, *((f"k{n}", clock - 9_000, v) for n in range(3)))
        if v == 1:
            compact(table, session, 5_000)
    return table


@pytest.mark.classic
@pytest.mark.spark
@pytest.mark.parametrize(
    ("where", "answer"),
    [
        ("part = 'p0'", {"k0": 2}),
        ("part > 'p1x'", {"k2": 2}),
        ("part NOT LIKE 'p1%' AND v < 10", {"k0": 2, "k2": 2}),
        ("part IN ('p2', 'p0', 'x') OR part IS NULL", {"k0": 2, "k2": 2}),
        ("part LIKE 'p0%' AND (id = 'k0' OR part = 'p1')", {"k0": 2}),
        ("part = 'x'", {}),
    ],
)
def test_partitions_that_a_filter_leaves_out_are_not_opened(
    where: str, answer: dict[str, int], spark: SparkSession, tmp_path: Path
) -> None:
    table = three_partitions(tmp_path / "t", spark)
    first = min(i.timestamp for i in table.state().timeline.instants)
    frames = [table.snapshot(spark), table.incremental(spark, first), table.time_travel(spark, datetime.now(UTC))]
    assert [shown(frame.where(where)) for frame in frames] == [answer] * 3
    for file in (tmp_path / "t/part=p1").iterdir():
        file.unlink()
    assert [shown(frame.where(where)) for frame in frames] == [answer] * 3
    frames[0].createOrReplaceTempView("now")
    assert spark.sql(f"SELECT count(*) FROM now WHERE {where}").collect()[0][0] == len(answer)
    with pytest.raises(PySparkException, match="deleted while a query was reading"):
        frames[0].where("part <= 'p1' OR v = 7").collect()


@pytest.mark.classic
@pytest.mark.spark
def test_base_files_that_a_filter_leaves_out_are_not_opened(spark: SparkSession, tmp_path: Path) -> None:
    table = three_partitions(tmp_path / "t", spark)
    frame = table.read_optimized(spark)
    frame.createOrReplaceTempView("now")
    for file in (tmp_path / "t/part=p1").iterdir():
        file.unlink()
    for where, answer in (
        ("part = 'p0'", {"k0": 1}),
        ("part < 'p05' OR id = 'k9' AND part = 'p2'", {"k0": 1}),
        ("part IN ('p2', 'x') AND length(id) = 2", {"k2": 1}),
        ("part = 'x'", {}),
    ):
        assert shown(frame.where(where)) == answer
        assert spark.sql(f"SELECT count(*) FROM now WHERE {where}").collect()[0][0] == len(answer)
    with pytest.raises(Py4JJavaError, match="/part=p1/"):
        frame.where("part <= 'p1'").collect()


@pytest.mark.classic
@pytest.mark.spark
def test_the_read_optimized_view_is_sparks_own_reader_on_its_base_files(spark: SparkSession, tmp_path: Path) -> None:
    table = three_partitions(tmp_path / "t", spark)
    frame = table.read_optimized(spark)
    files = [f"file:{path}" for path in sorted((tmp_path / "t").rglob("*.parquet"))]
    theirs = spark.read.schema(frame.schema).option("recursiveFileLookup", "true").parquet(*files)
    assert sorted(frame.inputFiles()) == sorted(theirs.inputFiles())
    shown_of_files = ("id", "_metadata.file_path", "_metadata.file_size", "_metadata.file_modification_time")
    assert sorted(frame.select(*shown_of_files).collect()) == sorted(theirs.select(*shown_of_files).collect())
    plan = plan_of(frame.where("ts > 0").selectExpr("sum(v)"))
    assert "Batched: true" in plan
    assert "PushedFilters: [IsNotNull(ts), GreaterThan(ts,0)]" in plan


@pytest.mark.spark
def test_a_condition_on_files_is_none_on_a_column_of_that_name(spark: SparkSession, tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("file_name", pa.string())])
    table = HudiTable.create(
        str(tmp_path / "t"), schema, record_key=["id"], ordering_field="ts", partition_fields=["file_name"], buckets=1
    )
    rows = [("k0", 1_000, "a"), ("k1", 1_000, "b")]
    table.bulk_insert(spark, spark.createDataFrame(rows, "id string, ts bigint, file_name string"))
    frame = table.read_optimized(spark)
    (file,) = (tmp_path / "t/file_name=a").glob("*.parquet")
    assert [row.id for row in frame.where(f"_metadata.file_name = '{file.name}'").collect()] == ["k0"]
    assert [row.id for row in frame.where("file_name = 'b'").collect()] == ["k1"]


@pytest.mark.classic
@pytest.mark.spark
def test_what_is_cached_serves_later_queries_of_the_same_files(spark: SparkSession, tmp_path: Path) -> None:
    table = three_partitions(tmp_path / "t", spark)
    kept = table.read_optimized(spark).cache()
    try:
        assert kept.count() == 3
        assert "InMemoryTableScan" in plan_of(table.read_optimized(spark))
        compact(table, spark, 5_000)
        assert "InMemoryTableScan" not in plan_of(table.read_optimized(spark))
        assert shown(table.read_optimized(spark)) == {"k0": 2, "k1": 2, "k2": 2}
    finally:
        kept.unpersist()


@pytest.mark.classic
@pytest.mark.spark
def test_rows_without_a_value(spark: SparkSession, tmp_path: Path) -> None:
    table = three_partitions(tmp_path / "t", spark)
    none = [("k9", None, 15_000, 3)]
    table.upsert(
        spark, spark.createDataFrame(none, "id string, part string, ts bigint, v bigint"), clock_time=at(30_000)
    )
    frame = table.snapshot(spark)
    assert shown(frame.where("part IS NULL")) == {"k9": 3}
    assert shown(frame.where("part <=> null OR part = 'p0'")) == {"k9": 3, "k0": 2}
    assert shown(frame.where("NOT part <=> 'p0'")) == {"k9": 3, "k1": 2, "k2": 2}
    assert frame.where("part IS NULL").rdd.getNumPartitions() == 1


@pytest.mark.classic
@pytest.mark.spark
def test_an_index_over_all_partitions_may_leave_rows_in_another(spark: SparkSession, tmp_path: Path) -> None:
    table = three_partitions(tmp_path / "t", spark)
    assert table.snapshot(spark).where("part = 'p0'").rdd.getNumPartitions() == 1
    properties = tmp_path / "t/.hoodie/hoodie.properties"
    properties.write_text(properties.read_text().replace("hoodie.index.type=BUCKET", "hoodie.index.type=GLOBAL_SIMPLE"))
    frame = HudiTable.open(table.path).snapshot(spark).where("part = 'p0'")
    assert frame.rdd.getNumPartitions() == 2
    assert shown(frame) == {"k0": 2}


@pytest.mark.classic
@pytest.mark.spark
def test_a_spark_that_cannot_prune_reads_all_columns(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = new_table(tmp_path / "t")
    write(table, spark, 10_000, ("k0", 1_000, 1), ("k1", 1_000, 1))
    monkeypatch.setitem(spark_java._COMPILED, spark.sparkContext, spark_java.Compiled({}, {}))
    frame = table.snapshot(spark)
    assert "MapInArrow" in plan_of(frame)
    assert shown(frame.select("v", "id")) == {"k0": 1, "k1": 1}
    assert frame.count() == 2
    compact(table, spark, 5_000)
    assert shown(table.read_optimized(spark).where("part = 'p0'")) == {"k0": 1}


@pytest.mark.spark
def test_both_queries(spark: SparkSession, tmp_path: Path) -> None:
    table = new_table(tmp_path / "t")
    first = write(table, spark, 10_000, ("k0", 1_000, 1), ("k1", 1_000, 1))
    second = write(table, spark, 20_000, ("k0", 11_000, 2), ("k2", 11_000, 2))
    done = compact(table, spark, 15_000)
    third = write(table, spark, 30_000, ("k1", 21_000, 3))

    assert shown(table.time_travel(spark, first)) == {"k0": 1, "k1": 1}
    assert shown(table.time_travel(spark, second)) == {"k0": 2, "k1": 1, "k2": 2}
    assert shown(table.time_travel(spark, done)) == {"k0": 2, "k1": 1, "k2": 2}
    assert shown(table.time_travel(spark, "20000101000000")) == {}
    assert shown(table.incremental(spark, first, done)) == {"k0": 2, "k2": 2}
    assert shown(table.incremental(spark, "earliest")) == {"k0": 2, "k1": 3, "k2": 2}
    assert table.incremental(spark, first).schema == table.snapshot(spark).schema
    assert shown(table.snapshot(spark)) == {"k0": 2, "k1": 3, "k2": 2}
    assert shown(table.read_optimized(spark)) == {"k0": 1, "k1": 1}
    assert third > done


@needs_data_source
@pytest.mark.spark
def test_the_data_source(spark: SparkSession, tmp_path: Path) -> None:
    table = new_table(tmp_path / "t")
    first = write(table, spark, 10_000, ("k0", 1_000, 1), ("k1", 1_000, 1))
    second = write(table, spark, 20_000, ("k0", 11_000, 2), ("k2", 11_000, 2))
    compact(table, spark, 15_000)
    write(table, spark, 30_000, ("k1", 21_000, 3))

    def read(**options: str) -> dict[str, int]:
        return shown(spark.read.format("hudi_assets").options(**options).load(table.path))

    assert read() == {"k0": 2, "k1": 3, "k2": 2}
    assert read(**{"as.of.instant": first}) == {"k0": 1, "k1": 1}
    assert read(**{TYPE: "incremental", BEGIN: second}) == {"k1": 3}
    assert read(**{TYPE: "incremental", BEGIN: first, END: second}) == {"k0": 2, "k2": 2}
    assert read(**{TYPE: "read_optimized"}) == {"k0": 1, "k1": 1}


@pytest.mark.spark
def test_some_columns(spark: SparkSession, tmp_path: Path) -> None:
    table = new_table(tmp_path / "t")
    first = write(table, spark, 10_000, ("k0", 1_000, 1), ("k1", 1_000, 1))
    compact(table, spark, 8_000)
    write(table, spark, 20_000, ("k0", 11_000, 2))
    names = ["v", "id"]
    for frame, expected in (
        (table.snapshot(spark, columns=names), {"k0": 2, "k1": 1}),
        (table.read_optimized(spark, columns=names), {"k0": 1, "k1": 1}),
        (table.time_travel(spark, first, columns=names), {"k0": 1, "k1": 1}),
        (table.incremental(spark, first, columns=names), {"k0": 2}),
    ):
        assert frame.columns == names
        assert shown(frame) == expected
    none = table.incremental(spark, "29990101000000", columns=names)
    assert (none.columns, none.count()) == (names, 0)


@needs_data_source
@pytest.mark.spark
def test_some_columns_of_the_data_source(spark: SparkSession, tmp_path: Path) -> None:
    table = new_table(tmp_path / "t")
    write(table, spark, 10_000, ("k0", 1_000, 1), ("k1", 1_000, 1))
    write(table, spark, 20_000, ("k0", 11_000, 2))
    names = ["v", "id"]
    source = spark.read.format("hudi_assets")
    frame = source.option("columns", "v, id").load(table.path)
    assert (frame.columns, shown(frame)) == (names, {"k0": 2, "k1": 1})
    frame = spark.read.format("hudi_assets").schema("v bigint").load(table.path)
    assert sorted(row["v"] for row in frame.collect()) == [1, 2]
    with pytest.raises(Exception, match="no column 'w'"):
        source.option("columns", "w").load(table.path).collect()


@pytest.mark.spark
def test_both_queries_where_compactions_are_planned_at_past_instants(spark: SparkSession, tmp_path: Path) -> None:
    table = at_version_9(tmp_path / "t")
    first = write(table, spark, 10_000, ("k0", 1_000, 1), ("k1", 1_000, 1))
    second = write(table, spark, 20_000, ("k0", 11_000, 2), ("k2", 11_000, 2))
    done = compact(table, spark, 15_000)
    assert first < done < second
    times = table.state().timeline.completions

    assert shown(table.time_travel(spark, first)) == {"k0": 1, "k1": 1}
    assert shown(table.time_travel(spark, done)) == {"k0": 1, "k1": 1}
    assert shown(table.time_travel(spark, second)) == {"k0": 2, "k1": 1, "k2": 2}
    assert shown(table.incremental(spark, first, done)) == {"k0": 1, "k1": 1}
    assert shown(table.incremental(spark, times[first], times[second])) == {"k0": 2, "k2": 2}
    assert shown(table.incremental(spark, times[second])) == {}
    assert shown(table.read_optimized(spark)) == {"k0": 1, "k1": 1}


# ------------------------------------------------------------------------------- what is taken and refused


def test_forms_of_an_instant(session: LocalSession, tmp_path: Path) -> None:
    table = new_table(tmp_path / "t")
    first = write(table, session, 10_000, ("k0", 1_000, 1))
    second = write(table, session, 20_000, ("k0", 11_000, 2))
    moment = datetime.fromtimestamp(instant_ms(first, "UTC") / 1000, UTC)
    text = moment.isoformat(timespec="milliseconds")
    for form in (first, moment, text, text.replace("+00:00", "Z"), f" {first} "):
        assert values(table.time_travel_tasks(form)) == {"k0": 1}, form
    assert values(table.time_travel_tasks("2999-01-01")) == {"k0": 2}
    assert values(table.time_travel_tasks("2000-01-01")) == {}
    assert values(table.incremental_tasks(moment)) == {"k0": 2}
    assert values(table.incremental_tasks("000", second)) == {"k0": 2}


def test_ranges(session: LocalSession, tmp_path: Path) -> None:
    table = new_table(tmp_path / "t")
    first = write(table, session, 10_000, ("k0", 1_000, 1))
    second = write(table, session, 20_000, ("k0", 11_000, 2))
    with pytest.raises(InvalidInput, match="after its end"):
        table.incremental_tasks(second, first)
    with pytest.raises(InvalidInput, match="The end 'later' is not a point in time"):
        table.incremental_tasks(first, "later")
    assert values(table.incremental_tasks(first, first)) == {}
    assert values(table.incremental_tasks(second)) == {}
    # As of the first commit the key was there, and the second had not replaced it.
    assert values(table.incremental_tasks("000", first)) == {"k0": 1}


def test_a_late_row_that_lost_is_in_no_range(session: LocalSession, tmp_path: Path) -> None:
    """Hudi shows it while its log file is read alone; here a range is made of rows that the table held."""
    table = new_table(tmp_path / "t")
    first = write(table, session, 10_000, ("k0", 9_000, 1))
    late = write(table, session, 20_000, ("k0", 1_000, 2))
    assert values(table.incremental_tasks(first, late)) == {}
    compact(table, session, 0)
    assert values(table.incremental_tasks(first, late)) == {}


def test_groups_that_no_commit_of_the_range_touched_are_not_read(session: LocalSession, tmp_path: Path) -> None:
    table = new_table(tmp_path / "t")
    write(table, session, 10_000, *((f"k{n}", 1_000, 1) for n in range(5)))
    second = write(table, session, 20_000, ("k1", 11_000, 2))
    compact(table, session, 0)
    third = write(table, session, 30_000, ("k3", 21_000, 3))
    assert len(table.snapshot_tasks()) == 5
    assert len(table.incremental_tasks("000")) == 5
    assert len(table.incremental_tasks(second)) == 1, "a compaction touches no group"
    assert len(table.incremental_tasks(second, third)) == 1
    assert values(table.incremental_tasks(second)) == {"k3": 3}


def test_past_the_archive_every_group_is_read(session: LocalSession, tmp_path: Path) -> None:
    """Of a range that begins before the active timeline nobody knows which groups it touched."""
    table = new_table(tmp_path / "t")
    first = write(table, session, 10_000, ("k0", 1_000, 1))
    second = write(table, session, 20_000, ("k1", 11_000, 2))
    third = write(table, session, 30_000, ("k2", 21_000, 3))
    for t in (first, second):
        for file in (tmp_path / "t/.hoodie").glob(f"{t}.*"):
            file.unlink()
    assert values(table.incremental_tasks(first, third)) == {"k1": 2, "k2": 3}
    assert len(table.incremental_tasks(third)) == 0


def test_cleaned_history_names_the_earliest_instant_left(session: LocalSession, tmp_path: Path) -> None:
    table = new_table(tmp_path / "t")
    first = write(table, session, 10_000, ("k0", 1_000, 1))
    second = write(table, session, 20_000, ("k0", 11_000, 2))
    done = compact(table, session, 0)
    third = write(table, session, 30_000, ("k0", 21_000, 3))
    again = compact(table, session, 0)
    table.savepoint(second)
    table.clean(policy="KEEP_LATEST_FILE_VERSIONS", retained=1)
    for gone in (done, third):
        with pytest.raises(InvalidInput) as refused:
            table.time_travel_tasks(gone)
        assert f"earliest instant left is {again}" in str(refused.value)
        assert f"savepoints answer too: {second}" in str(refused.value)
        with pytest.raises(InvalidInput, match="was cleaned"):
            table.incremental_tasks("000", gone)
    assert values(table.time_travel_tasks(first)) == {"k0": 1}
    assert values(table.time_travel_tasks(second)) == {"k0": 2}
    assert values(table.time_travel_tasks(again)) == {"k0": 3}
    # The range's end counts, not its begin: what the table holds now is there.
    assert values(table.incremental_tasks(second)) == {"k0": 3}


def test_an_unfinished_write_is_not_seen_in_its_future(session: LocalSession, tmp_path: Path) -> None:
    table = new_table(tmp_path / "t")
    write(table, session, 10_000, ("k0", 1_000, 1))
    second = write(table, session, 20_000, ("k0", 11_000, 2))
    (tmp_path / f"t/.hoodie/{second}.deltacommit").unlink()
    assert values(table.time_travel_tasks("2999-01-01")) == {"k0": 1}
    assert values(table.incremental_tasks("000")) == {"k0": 1}


@needs_data_source
def test_options_of_the_data_source_that_do_not_fit(session: LocalSession, tmp_path: Path) -> None:
    from pyspark_hudi_assets import AS_OF, query_tasks

    table = new_table(tmp_path / "t")
    t = write(table, session, 10_000, ("k0", 1_000, 1))
    for options, words in (
        ({BEGIN: t}, "needs hoodie.datasource.query.type=incremental"),
        ({TYPE: "incremental"}, "needs hoodie.datasource.read.begin.instanttime"),
        ({TYPE: "incremental", BEGIN: t, AS_OF: t}, "goes with a snapshot query"),
        ({TYPE: "cdc"}, "hoodie.datasource.query.type is 'cdc'"),
        ({AS_OF: "then"}, "is not a point in time"),
    ):
        with pytest.raises(InvalidInput, match=words):
            query_tasks(table, options)
    assert values(query_tasks(table, {TYPE: "snapshot"})) == {"k0": 1}


def test_columns_that_cannot_be_asked_for(session: LocalSession, tmp_path: Path) -> None:
    table = new_table(tmp_path / "t")
    t = write(table, session, 10_000, ("k0", 1_000, 1))
    for columns, words in (
        (["id", "w"], "The table has no column 'w'"),
        (["id", "v", "id"], "Column 'id' is asked for twice"),
        ([], "No column is asked for"),
        ("id", "columns is the text 'id'"),
    ):
        for ask in (
            lambda columns=columns: table.snapshot_tasks(columns=columns),
            lambda columns=columns: table.read_optimized_tasks(columns=columns),
            lambda columns=columns: table.time_travel_tasks(t, columns=columns),
            lambda columns=columns: table.incremental_tasks("000", columns=columns),
        ):
            with pytest.raises(InvalidInput, match=words):
                ask()


# ------------------------------------------------------------------------------- versions 8 and 9


def recompleted(path: Path, instant: str, completion: str) -> None:
    """The same write, completed at another time."""
    folder = path / ".hoodie/timeline"
    (done,) = folder.glob(f"{instant}_*")
    done.rename(folder / f"{instant}_{completion}{done.suffix}")


def at_version_9(path: Path) -> HudiTable:
    return HudiTable.create(
        str(path), SCHEMA, record_key=["id"], ordering_field="ts", buckets=1, clock="commit", table_version=9
    )


def test_a_range_of_completion_times_misses_no_write(session: LocalSession, tmp_path: Path) -> None:
    """Of two writers at once the first requested is completed last: after the first range was read."""
    table = at_version_9(tmp_path / "t")
    first = write(table, session, 10_000, ("k0", 1_000, 1), ("k1", 1_000, 1))
    slow = write(table, session, 20_000, ("k0", 11_000, 2))
    fast = write(table, session, 20_000, ("k1", 11_000, 3))
    times = table.state().timeline.completions
    read_to = times[fast]
    done = str(int(read_to) + 1)
    recompleted(tmp_path / "t", slow, done)
    assert values(table.incremental_tasks("000", times[first])) == {"k0": 1, "k1": 1}
    assert values(table.incremental_tasks(times[first], read_to)) == {"k1": 3}
    assert values(table.incremental_tasks("000", read_to)) == {"k0": 1, "k1": 3}
    assert values(table.incremental_tasks(read_to, done)) == {"k0": 2}
    assert values(table.incremental_tasks(read_to)) == {"k0": 2}
    # Time travel goes by requested times.
    assert values(table.time_travel_tasks(slow)) == {"k0": 2, "k1": 1}
    compact(table, session, 0)
    assert values(table.incremental_tasks(times[first], read_to)) == {"k1": 3}
    assert values(table.incremental_tasks(read_to)) == {"k0": 2}
    assert values(table.time_travel_tasks(slow)) == {"k0": 2, "k1": 1}


def test_completion_times_of_archived_writes(session: LocalSession, tmp_path: Path) -> None:
    """A range that begins before them needs the archived timeline; so does the cut of their log files."""
    from hudi_assets.engine.timeline.archive.kind import TimelineFile

    table = at_version_9(tmp_path / "t")
    write(table, session, 10_000, ("k0", 1_000, 1))
    slow = write(table, session, 20_000, ("k1", 11_000, 2))
    fast = write(table, session, 20_000, ("k2", 11_000, 3))
    read_to = table.state().timeline.completions[fast]
    done = str(int(read_to) + 1)
    recompleted(tmp_path / "t", slow, done)
    write(table, session, 30_000, ("k3", 21_000, 4))
    state = table.state()
    files = []
    for file in sorted((tmp_path / "t/.hoodie/timeline").iterdir()):
        instant = state.layout.parse_instant(file.name)
        if instant is not None and instant.timestamp <= fast:
            files.append(TimelineFile(instant, file.read_bytes(), None, file.name))
            file.unlink()
    state.layout.archive(state.config.properties).add(state.storage, files)
    assert table.state().completion_of(slow) == done
    assert values(table.incremental_tasks(read_to)) == {"k1": 2, "k3": 4}
    assert values(table.snapshot_tasks()) == {"k0": 1, "k1": 2, "k2": 3, "k3": 4}


def test_a_group_that_begins_later_hides_no_past(session: LocalSession, tmp_path: Path) -> None:
    """Its log file's name does not say that there was nothing before; nothing else is in doubt, so it is answered."""
    how = {"partition_fields": ["part"], "buckets": 1, "data_latency": None, "table_version": 9}
    table = created(tmp_path / "t", SCHEMA, clock="commit", **how)
    first = write(table, session, 10_000, ("k0", 1_000, 1))
    second = write(table, session, 20_000, ("k0", 11_000, 2))
    done = compact(table, session, 0)
    third = write(table, session, 30_000, ("k1", 21_000, 3))
    assert done < third
    assert values(table.time_travel_tasks(first)) == {"k0": 1}
    assert values(table.time_travel_tasks(second)) == {"k0": 2}
    assert values(table.incremental_tasks("000", second)) == {"k0": 1}
