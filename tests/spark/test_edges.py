"""Corners where rows were, or could be, lost, doubled, revived or promised wrongly."""

from __future__ import annotations

import itertools
import json
import socket
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from hudi_assets.engine import Conflict, HudiTable, InvalidInput, NoPlan, Plan
from hudi_assets.engine.storage import LocalStorage
from hudi_assets.engine.timeline.instants import format_instant, instant_ms
from hudi_assets.engine.transaction import transaction
from tests.tables.steps import at, compact

pytestmark = pytest.mark.spark
SCHEMA = "k string, p string, ts long, seq long, gone boolean"


def make(path: Path, spark: SparkSession, schema: str = "k string, p string, ts long", **options: object) -> HudiTable:
    arguments: dict[str, object] = {
        "record_key": ["k"],
        "ordering_field": "ts",
        "buckets": 1,
        "clock": "commit",
        **options,
    }
    return HudiTable.create(str(path), spark.createDataFrame([], schema).schema, **arguments)  # type: ignore[arg-type]


def put(
    table: HudiTable,
    spark: SparkSession,
    rows: list[tuple[object, ...]],
    clock: int,
    schema: str = "k string, p string, ts long",
) -> None:
    table.upsert(spark, spark.createDataFrame(rows, schema), clock_time=at(clock))


def keys(frame: object) -> list[str]:
    return sorted(r["k"] for r in frame.select("k").collect())  # type: ignore[attr-defined]


def test_an_old_clean_does_not_start_the_timeline(spark: SparkSession, tmp_path: Path) -> None:
    """Hudi archives cleans by a count of their own: one older than every commit left is normal."""
    table = make(tmp_path / "t", spark)
    put(table, spark, [("a", "p", 1_000)], 2_000)
    put(table, spark, [("b", "p", 1_500)], 2_500)
    first = min((tmp_path / "t/.hoodie").glob("*.deltacommit")).name.split(".")[0]
    for file in (tmp_path / "t/.hoodie").glob(f"{first}.*"):
        file.unlink()  # archived
    (tmp_path / "t/.hoodie/20000101000000000.clean").write_bytes(b"")
    assert keys(HudiTable.open(table.path).snapshot(spark)) == ["a", "b"]


def test_a_delete_by_flag_is_not_forgotten_where_another_field_orders(spark: SparkSession, tmp_path: Path) -> None:
    schema = "k string, ts long, seq long, _hoodie_is_deleted boolean"
    table = make(tmp_path / "t", spark, schema, ordering_field="seq", event_time_field="ts")
    put(table, spark, [("k", 1, 100, True), ("x", 1, 1, False)], 2, schema)
    put(table, spark, [("k", 10, 50, False)], 20, schema)
    assert keys(table.snapshot(spark)) == ["x"]
    compact(table, spark, 5)
    assert keys(table.snapshot(spark)) == ["x"]


def test_a_delete_at_the_epoch_is_compared_as_any_other(spark: SparkSession, tmp_path: Path) -> None:
    table = make(tmp_path / "t", spark)
    put(table, spark, [("k", "p", 100_000), ("x", "p", 100_000)], 200_000)
    gone = spark.createDataFrame([("k", 0)], "k string, ts long")
    table.delete(spark, gone, clock_time=at(300_000))
    before = keys(table.snapshot(spark))
    assert before == ["k", "x"]
    compact(table, spark, 50_000)
    assert keys(table.snapshot(spark)) == before


def test_a_delete_without_ordering_value_deletes_whatever_came_before(spark: SparkSession, tmp_path: Path) -> None:
    table = make(tmp_path / "t", spark)
    put(table, spark, [("k", "p", 100_000), ("x", "p", 100_000)], 200_000)
    table.delete(spark, spark.createDataFrame([("k",)], "k string"), clock_time=at(300_000))
    assert keys(table.snapshot(spark)) == ["x"]
    # It has no event time: by the latency it happened at 300 s, and the rows before it are the older ones.
    found = table.freshness(data_latency="0s")
    assert (found.freshness, [bound.min_event_time for bound in found.bounds]) == (99_999, [300_000])
    compact(table, spark, 300_000)
    assert keys(table.snapshot(spark)) == ["x"]
    assert keys(table.read_optimized(spark)) == ["x"]


def test_of_a_keys_deletes_the_greatest_counts(spark: SparkSession, tmp_path: Path) -> None:
    table = make(tmp_path / "t", spark)
    put(table, spark, [("k", "p", 75), ("x", "p", 1)], 80)
    gone = spark.createDataFrame([("k", 100), ("k", 50)], "k string, ts long")
    table.delete(spark, gone, clock_time=at(110))
    assert keys(table.snapshot(spark)) == ["x"]


def test_ranges_of_another_event_time_column_are_not_believed(spark: SparkSession, tmp_path: Path) -> None:
    schema = "k string, ts long, arr long"
    table = make(tmp_path / "t", spark, schema, data_latency="0s", clock="system")
    table.upsert(spark, spark.createDataFrame([("k", 2_000_000_000_000, 100_000)], schema))
    by_arrival = HudiTable.open(table.path, settings={"hoodie.payload.event.time.field": "arr"})
    assert by_arrival.freshness().freshness == 99_999
    assert isinstance(by_arrival.plan_compaction(threshold=150_000, dry_run=True), Plan)


def test_text_does_not_sort_as_its_times_do(spark: SparkSession, tmp_path: Path) -> None:
    schema = "k string, ts string"
    table = make(tmp_path / "t", spark, schema)
    put(table, spark, [("y", "1970-01-01T00:00:01Z")], 2_000, schema)
    gone = spark.createDataFrame([("k", "1970-01-01T00:00:01Z")], schema)
    table.delete(spark, gone, clock_time=at(2_500))
    put(table, spark, [("k", "1970-01-01T00:00:01.500Z")], 3_000, schema)  # '.' sorts before 'Z'
    before = keys(table.snapshot(spark))
    compact(table, spark, 1_000)
    assert keys(table.snapshot(spark)) == before


def test_a_delete_flag_that_the_table_does_not_have_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    table = make(tmp_path / "t", spark)
    with pytest.raises(InvalidInput, match="_hoodie_is_deleted"):
        put(table, spark, [("k", "p", 1, True)], 2, "k string, p string, ts long, _hoodie_is_deleted boolean")


def test_a_snapshot_can_be_written_back(spark: SparkSession, tmp_path: Path) -> None:
    table = make(tmp_path / "t", spark)
    put(table, spark, [("k", "p", 1)], 2)
    table.upsert(spark, table.snapshot(spark), clock_time=at(3))
    assert keys(table.snapshot(spark)) == ["k"]


def test_nothing_is_written_beside_a_pending_clustering(spark: SparkSession, tmp_path: Path) -> None:
    table = make(tmp_path / "t", spark)
    put(table, spark, [("k", "p", 1)], 2)
    (tmp_path / "t/.hoodie/20260101000000000.replacecommit.requested").write_bytes(b"")
    with pytest.raises(Conflict, match="replacecommit"):
        put(table, spark, [("l", "p", 1)], 3)
    reason = table.plan_compaction(threshold=1)
    assert isinstance(reason, NoPlan)
    assert "replacecommit 20260101000000000 is pending" in reason.reason


@pytest.mark.parametrize("value", ["[x]", "{y}", "a*b", "a?b", "50%", "é ü", "_u", ".h", None, ""])
def test_partition_values_are_names_not_patterns(spark: SparkSession, tmp_path: Path, value: str | None) -> None:
    table = make(tmp_path / "t", spark, partition_fields=["p"])
    put(table, spark, [("k", value, 1), ("l", "other", 1)], 2)
    compact(table, spark, 1)
    assert keys(table.snapshot(spark)) == ["k", "l"]
    assert keys(table.read_optimized(spark)) == ["k", "l"]


def test_a_key_that_hudis_versions_place_differently_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    table = make(tmp_path / "t", spark)
    with pytest.raises(InvalidInput, match="bucket index"):
        put(table, spark, [("10:30", "p", 1)], 2)


def test_a_partition_file_in_the_base_files_format_counts(spark: SparkSession, tmp_path: Path) -> None:
    table = make(tmp_path / "t", spark, partition_fields=["p"])
    put(table, spark, [("k", "p", 1)], 2)
    file = tmp_path / "t/p=p/.hoodie_partition_metadata"
    file.rename(file.with_name(".hoodie_partition_metadata.parquet"))
    assert keys(table.snapshot(spark)) == ["k"]


def test_commit_metadata_has_what_java_reads(spark: SparkSession, tmp_path: Path) -> None:
    table = make(tmp_path / "t", spark)
    put(table, spark, [("a", "p", 1)], 10)
    put(table, spark, [("b", "p", 5)], 10)
    plan = table.plan_compaction(threshold=1)
    assert isinstance(plan, Plan)
    table.execute_compaction(spark, plan.instant)
    body = json.loads((tmp_path / f"t/.hoodie/{plan.instant}.commit").read_text())
    stats = body["partitionToWriteStats"][""]
    assert [s["path"].endswith(".parquet") for s in stats] == [False, True]  # the base file's last
    assert (stats[0]["minEventTime"], stats[0]["maxEventTime"]) == (5, 5)
    assert body["compacted"] is True
    assert body["extraMetadata"]["hudi_assets.threshold"] == "1"


def test_hudis_lock_is_honoured_and_taken(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = make(tmp_path / "t", spark)
    put(table, spark, [("k", "p", 1)], 2)
    shared = HudiTable.open(table.path, settings={"hudi_assets.writers": "locked"})
    lock = tmp_path / "t/.hoodie/lock"
    lock.write_text('{"lockThreadName": "a Java writer"}')
    monkeypatch.setattr(transaction, "LOCK_WAIT_S", 0.2)
    with pytest.raises(Conflict, match="Hudi's lock"):
        shared.plan_compaction(threshold=1)
    assert lock.read_text() == '{"lockThreadName": "a Java writer"}'
    dead = {"owner": "hudi-assets", "host": socket.gethostname(), "table": table.path}
    lock.write_text(json.dumps(dead))  # left by a process of ours that died
    assert isinstance(shared.plan_compaction(threshold=1), Plan)
    assert not lock.exists()


def test_another_bucket_count_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    table = make(tmp_path / "t", spark, buckets=4)
    rows: list[tuple[object, ...]] = [(f"k{i}", "p", 1) for i in range(8)]
    put(table, spark, rows, 2)
    with pytest.raises(InvalidInput, match=r"num\.buckets=4, not 8"):
        HudiTable.open(table.path, settings={"hoodie.bucket.index.num.buckets": "8"})
    properties = tmp_path / "t/.hoodie/hoodie.properties"
    kept = [line for line in properties.read_text().splitlines() if "num.buckets" not in line]
    properties.write_text("\n".join(kept))  # as a table of Hudi's own: it states no count
    guessed = HudiTable.open(table.path, settings={"hoodie.bucket.index.num.buckets": "8"})
    with pytest.raises(InvalidInput, match="belong elsewhere"):
        put(guessed, spark, rows, 3)
    known = HudiTable.open(table.path, settings={"hoodie.bucket.index.num.buckets": "4"})
    put(known, spark, rows, 3)
    assert len(keys(known.snapshot(spark))) == 8


def test_a_java_writers_request_is_left_alone(spark: SparkSession, tmp_path: Path) -> None:
    table = make(tmp_path / "t", spark)
    put(table, spark, [("k", "p", 1)], 2)
    request = tmp_path / "t/.hoodie/20260101000000000.deltacommit.requested"
    request.write_bytes(b"")
    assert table.recover() == ()
    with pytest.raises(Conflict, match="20260101000000000"):
        put(table, spark, [("k", "p", 2)], 3)
    assert request.exists()


def test_freshness_counts_from_before_the_table_was_read(spark: SparkSession, tmp_path: Path) -> None:
    table = make(tmp_path / "t", spark, clock="system", data_latency="0s")
    ticking = itertools.count(5_000_000_000_000, 1_000)
    slow = HudiTable(LocalStorage(table.path), table.config, now_ms=lambda: next(ticking))
    assert slow.freshness().freshness == 5_000_000_000_000


def test_a_half_written_base_file_beside_the_committed_one_is_not_read(spark: SparkSession, tmp_path: Path) -> None:
    table = make(tmp_path / "t", spark)
    put(table, spark, [("k", "p", 1)], 2)
    compact(table, spark, 1)
    (base,) = table.state().view.base_files
    for token in ("0-0-0", "9-9-9"):
        (tmp_path / "t" / base.name.replace(f"_{base.write_token}_", f"_{token}_")).write_bytes(b"PAR1")
    assert keys(table.read_optimized(spark)) == ["k"]
    assert keys(table.snapshot(spark)) == ["k"]


@pytest.mark.parametrize("zone", ["Asia/Shanghai", "America/New_York"])
def test_instants_are_in_the_tables_timezone(zone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        now = 1_700_000_000_123
        assert format_instant(now, "UTC") == "20231114221320123"
        assert format_instant(now, "LOCAL") != "20231114221320123"
        for timezone in ("UTC", "LOCAL"):
            assert instant_ms(format_instant(now, timezone), timezone) == now
    finally:
        monkeypatch.undo()
        time.tzset()
