"""A table's life on a real Spark: random rounds against a list of events, and input that is refused."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as sf

from hudi_assets.engine import HudiAssetsError, HudiTable, InvalidInput, NoPlan, Plan
from hudi_assets.engine.format.log_file.codec import min_event_time, read_blocks
from tests.tables.steps import at, compact

pytestmark = pytest.mark.spark
SCHEMA = "id string, part string, ts long, v long"
KEYS = [f"k{i}" for i in range(12)]


def new_table(path: Path, spark: SparkSession, **options: object) -> HudiTable:
    settings: dict[str, object] = {"partition_fields": ["part"], "buckets": 2, "clock": "commit"}
    schema = spark.createDataFrame([], SCHEMA).schema
    return HudiTable.create(
        str(path),
        schema,
        record_key=["id"],
        ordering_field="ts",
        **{**settings, **options},  # type: ignore[arg-type]
    )


def rows(frame: object) -> dict[str, tuple[int, int]]:
    collected = frame.select("id", "ts", "v").collect()  # type: ignore[attr-defined]
    assert len(collected) == len({r["id"] for r in collected}), "a key came twice"
    return {r["id"]: (r["ts"], r["v"]) for r in collected}


class Oracle:
    """Every event in the order of its commit; the truth by the plainest rule."""

    def __init__(self) -> None:
        self.events: list[tuple[str, int, int | None]] = []

    def state(self) -> dict[str, tuple[int, int | None]]:
        state: dict[str, tuple[int, int | None]] = {}
        for key, ts, value in self.events:
            if key not in state or ts >= state[key][0]:
                state[key] = (ts, value)
        return state

    def snapshot(self) -> dict[str, tuple[int, int]]:
        return {key: (ts, v) for key, (ts, v) in self.state().items() if v is not None}

    def broken_promises(self, view: dict[str, tuple[int, int]], freshness: int) -> list[str]:
        """Keys whose newest event at or below `freshness` the read-optimized view does not show."""
        newest: dict[str, tuple[int, int | None]] = {}
        for key, ts, value in self.events:
            if ts <= freshness and (key not in newest or ts >= newest[key][0]):
                newest[key] = (ts, value)
        wrong = []
        for key, (ts, value) in newest.items():
            shown = view.get(key)
            later = [e for e in self.events if e[0] == key and e[1] > ts]
            if value is None:
                fine = shown is None or any(shown == e[1:] for e in later)
            else:
                fine = (shown is not None and shown[0] >= ts) or any(e[2] is None for e in later)
            if not fine:
                wrong.append(f"{key}: {shown} although {ts} → {value} is at or below {freshness}")
        return wrong


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "block_format"),
    [
        (1, "parquet"),
        pytest.param(2, "avro", marks=pytest.mark.thorough),
        pytest.param(3, "parquet", marks=pytest.mark.thorough),
    ],
)
def test_random_rounds(spark: SparkSession, tmp_path: Path, seed: int, block_format: str) -> None:
    rng = random.Random(seed)
    table = new_table(tmp_path / "t", spark, data_latency="2s", log_block_format=block_format)
    oracle, clock, compactions = Oracle(), 10_000, 0
    deleted_at: dict[str, int] = {}
    for step in range(14):
        clock += 1_000
        if rng.random() < 0.2 and oracle.snapshot():
            gone = rng.sample(sorted(oracle.snapshot()), 1)
            ts = clock - 500
            keys = [(key, "p" + key[-1], ts) for key in gone]
            table.delete(spark, spark.createDataFrame(keys, "id string, part string, ts long"), clock_time=at(clock))
            oracle.events += [(key, ts, None) for key in gone]
            deleted_at.update(dict.fromkeys(gone, ts))
        else:
            picked = rng.sample(KEYS, rng.randint(1, 6))
            batch = []
            for key in picked:
                # Late now and then, but never older than a delete: what Hudi does then depends on
                # whether a full compaction has forgotten the tombstone.
                lateness = rng.choice([100, 700, 1_500, 6_000])
                ts = max(clock - lateness, deleted_at.get(key, 0) + 1)
                batch.append((key, "p" + key[-1], ts, step))
            result = table.upsert(spark, spark.createDataFrame(batch, SCHEMA), clock_time=at(clock))
            assert result.rows == len(batch)
            oracle.events += [(key, ts, v) for key, _, ts, v in batch]
        assert rows(table.snapshot(spark)) == oracle.snapshot()
        if step % 3 == 2:
            plan = table.plan_compaction()
            assert rows(table.snapshot(spark)) == oracle.snapshot()
            if isinstance(plan, Plan):
                table.execute_compaction(spark, plan.instant)
                compactions += 1
                assert rows(table.snapshot(spark)) == oracle.snapshot()
                threshold = table.freshness().threshold
                assert threshold is not None
                assert oracle.broken_promises(rows(table.read_optimized(spark)), threshold) == []
        fresh = table.freshness().freshness
        if fresh is not None:
            assert oracle.broken_promises(rows(table.read_optimized(spark)), fresh) == []
    assert compactions >= 3


def test_late_record_makes_freshness_fall_back_and_the_next_compaction_repairs_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = new_table(tmp_path / "t", spark, data_latency="1s")
    table.upsert(spark, spark.createDataFrame([("k1", "p", 5_000, 1)], SCHEMA), clock_time=at(10_000))
    compact(table, spark)
    assert table.freshness().freshness == 9_000
    late = table.upsert(spark, spark.createDataFrame([("k2", "p", 3_000, 1)], SCHEMA), clock_time=at(11_000))
    assert late.late_records == 1
    assert table.freshness().freshness == 2_999
    compact(table, spark)
    assert table.freshness().freshness == 10_000


def test_nothing_is_in_the_read_optimized_view_before_a_compaction(spark: SparkSession, tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", spark)
    table.upsert(spark, spark.createDataFrame([("k1", "p", 5, 1)], SCHEMA), clock_time=at(10))
    assert rows(table.read_optimized(spark)) == {}
    assert rows(table.snapshot(spark)) == {"k1": (5, 1)}


def test_a_batch_is_written_once(spark: SparkSession, tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", spark)
    frame = spark.createDataFrame([("k1", "p", 5, 1)], SCHEMA)
    first = table.upsert(spark, frame, clock_time=at(10), batch_id="b")
    again = table.upsert(spark, frame, clock_time=at(10), batch_id="b")
    assert (again.instant, again.rows) == (first.instant, 0)
    assert list(table.committed_batches()) == ["b"]


def test_the_minimum_event_time_stands_in_every_block_header(spark: SparkSession, tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", spark, buckets=1, partition_fields=[])
    table.upsert(spark, spark.createDataFrame([("a", "p", 7, 1), ("b", "p", 5, 1)], SCHEMA), clock_time=at(10))
    (log,) = table.state().remaining_logs
    blocks = read_blocks((tmp_path / "t" / log.path).read_bytes())
    assert [min_event_time(block.schema) for block in blocks] == [5]


def test_late_rows_get_log_files_of_their_own(spark: SparkSession, tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", spark, buckets=1, partition_fields=[], data_latency="1s")
    batch = [("a", "p", 3_000, 1), ("b", "p", 9_500, 1)]
    table.upsert(spark, spark.createDataFrame(batch, SCHEMA), clock_time=at(10_000))
    bars = [(bar.min_event_time, bar.max_event_time) for bar in table.log_bars()]
    assert bars == [(3_000, 3_000), (9_500, 9_500)]
    plan = table.plan_compaction()
    assert isinstance(plan, Plan)
    (operation,) = plan.operations
    assert (len(operation.log_files), len(operation.carried_over)) == (1, 1)


def test_log_files_roll_in_order_of_event_time(spark: SparkSession, tmp_path: Path) -> None:
    new_table(tmp_path / "t", spark, buckets=1, partition_fields=[])
    table = HudiTable.open(str(tmp_path / "t"), settings={"hoodie.logfile.max.size": "2000"})
    batch = [(f"k{i}", "p", 1_000 + (i * 37) % 100, i) for i in range(100)]
    result = table.upsert(spark, spark.createDataFrame(batch, SCHEMA), clock_time=at(10_000))
    assert result.log_files > 2
    bars = [(bar.min_event_time, bar.max_event_time) for bar in table.log_bars()]
    for (_, high), (low, _) in itertools.pairwise(bars):
        assert high is not None
        assert low is not None
        assert high <= low
    assert len(rows(table.snapshot(spark))) == 100


def test_due_compaction_says_why_not(spark: SparkSession, tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", spark, data_latency="1s")
    nothing = table.due_compaction()
    assert isinstance(nothing, NoPlan)
    table.upsert(spark, spark.createDataFrame([("k1", "p", 5_000, 1)], SCHEMA), clock_time=at(10_000))
    plan = table.plan_compaction()
    assert isinstance(plan, Plan)
    pending = table.due_compaction()
    assert isinstance(pending, NoPlan)
    assert pending.reason == f"compaction {plan.instant} is pending"


def test_a_dry_run_writes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", spark)
    table.upsert(spark, spark.createDataFrame([("k1", "p", 5, 1)], SCHEMA), clock_time=at(10))
    before = files(tmp_path)
    assert isinstance(table.plan_compaction(threshold=8, dry_run=True), Plan)
    assert files(tmp_path) == before


# ------------------------------------------------------------------------------------------- wrong input


def files(folder: Path) -> set[tuple[str, int]]:
    return {(str(f), f.stat().st_size) for f in folder.rglob("*") if f.is_file() and ".lock" not in f.name}


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        ([("id string, part string, ts long, v long", (None, "p", 1, 1))], "record key"),
        ([("id string, part string, ts long, v long", ("", "p", 1, 1))], "record key"),
        ([("id string, part string, ts long, v long", ("a", "p", None, 1))], "ts"),
        ([("id string, part string, v long", ("a", "p", 1))], "'ts' is no column"),
        ([("id string, part string, ts string, v long", ("a", "p", "x", 1))], "ts"),
        ([("id string, part string, ts long, v string", ("a", "p", 1, "x"))], "v"),
        ([("id string, part string, ts long, V long", ("a", "p", 1, 1))], "'V'"),
        ([("id string, part string, ts long, v long", ("a", "p/q", 1, 1))], "partition value"),
    ],
)
def test_rows_that_do_not_fit_are_refused_and_nothing_changes(
    spark: SparkSession, tmp_path: Path, frame: list[tuple[str, tuple[object, ...]]], words: str
) -> None:
    table = new_table(tmp_path / "t", spark)
    before = files(tmp_path)
    ((schema, row),) = frame
    with pytest.raises(InvalidInput, match=words):
        table.upsert(spark, spark.createDataFrame([row], schema), clock_time=at(10))
    assert files(tmp_path) == before


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"event_time_field": "when"}, "'when' is no column"),
        ({"event_time_field": "flag"}, "cannot be an event time"),
        ({"event_time_unit": "days"}, "does not fit"),
        ({"partition_fields": ["x"]}, "'x' is no column"),
        ({"buckets": 0}, "buckets"),
        ({"data_latency": "soon"}, "duration"),
        ({"clock": "sundial"}, "sundial"),
        ({"table_version": 7}, "Table version 7"),
    ],
)
def test_wrong_settings_are_refused_and_nothing_is_made(tmp_path: Path, options: dict[str, object], words: str) -> None:
    schema = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("flag", pa.bool_())])
    path = tmp_path / "t"
    arguments: dict[str, object] = {"record_key": ["id"], "ordering_field": "ts", **options}
    with pytest.raises(HudiAssetsError, match=words):
        HudiTable.create(str(path), schema, **arguments)  # type: ignore[arg-type]
    assert not path.exists()


def test_a_threshold_in_the_future_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", spark)
    table.upsert(spark, spark.createDataFrame([("k1", "p", 5, 1)], SCHEMA), clock_time=at(10))
    before = files(tmp_path)
    with pytest.raises(InvalidInput, match="future"):
        table.plan_compaction(threshold=11)
    assert files(tmp_path) == before


def test_types_come_back_as_they_went_in(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.range(3).select(
        sf.col("id"),
        sf.expr("timestamp_micros(1700000000000001 + id)").alias("ts"),
        sf.expr("timestamp_ntz'2024-02-29 12:00:00.000001'").alias("ntz"),
        sf.expr("date'1969-12-31'").alias("d"),
        sf.expr("cast(-1.25 as decimal(20,4))").alias("dec"),
        sf.expr("array(1, null, 3)").alias("arr"),
        sf.expr("map('ключ', array(1.5))").alias("m"),
        sf.expr("named_struct('a', 'x', 'b', named_struct('c', true))").alias("st"),
        sf.expr("cast('bytes' as binary)").alias("bin"),
        sf.expr("if(id = 1, null, '😀 text')").alias("s"),
        sf.expr("cast(1.5 as float)").alias("f"),
        sf.expr("cast(null as double)").alias("nothing"),
    )
    for block_format in ("parquet", "avro"):
        table = HudiTable.create(
            str(tmp_path / block_format),
            frame.schema,
            record_key=["id"],
            ordering_field="ts",
            buckets=1,
            log_block_format=block_format,
        )
        table.upsert(spark, frame)
        wanted = sorted(frame.collect(), key=lambda r: r["id"])

        def same(view: DataFrame, wanted: list[Row] = wanted) -> None:
            got = view.select(*frame.columns).orderBy("id").collect()
            assert got == wanted

        same(table.snapshot(spark))
        compact(table, spark, data_latency="0s")
        same(table.snapshot(spark))
        same(table.read_optimized(spark))


def test_a_row_that_a_newer_one_of_its_batch_beats_is_promised_too(spark: SparkSession, tmp_path: Path) -> None:
    """Both updates of a key come in one batch: the older one is in no file, and still was ingested."""
    table = new_table(tmp_path / "t", spark, buckets=1, partition_fields=[], data_latency="1s")
    batch = [("k", "p", 8_000, 1), ("k", "p", 8_500, 2), ("k", "p", 9_200, 3), ("k", "p", 9_800, 4)]
    table.upsert(spark, spark.createDataFrame(batch, SCHEMA), clock_time=at(10_000))
    # Cut at the watermark, 9 000: of each side the newest.
    assert [(b.min_event_time, b.max_event_time) for b in table.log_bars()] == [(8_000, 8_500), (9_200, 9_800)]
    table.upsert(spark, spark.createDataFrame([("l", "p", 10_300, 1)], SCHEMA), clock_time=at(10_400))
    assert table.freshness().freshness == 7_999
    compact(table, spark, 9_000)
    assert rows(table.read_optimized(spark)) == {"k": (8_500, 2)}
    assert table.freshness().freshness == 9_199
    second = table.plan_compaction()  # threshold 9 400, between the two rows of one log file
    assert isinstance(second, Plan)
    table.execute_compaction(spark, second.instant)
    assert rows(table.read_optimized(spark)) == {"k": (9_800, 4)}
    assert table.freshness().freshness == 9_400
