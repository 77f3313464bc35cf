"""Residue logs: tombstones that outlive a partial compaction, and the exact split."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from hudi_assets.engine import HudiTable
from hudi_assets.engine.errors import InvalidInput
from hudi_assets.engine.model import Action, NoPlan, Plan
from hudi_assets.engine.table.layout.names import log_version
from tests.spark.test_merge_modes import compact, delete, make, read_optimized, shown, snapshot, upsert
from tests.tables.local_session import LocalSession
from tests.tables.steps import at

STRATEGIES = "org.apache.hudi.table.action.compact.strategy"
OURS = {"hudi_assets.table.services": "ours"}
EXACT = {**OURS, "hudi_assets.exact.split": "true"}


def opened(path: Path, settings: dict[str, str], mode: str = "EVENT_TIME_ORDERING", **options: object) -> HudiTable:
    make(path, mode, **options)
    return HudiTable.open(str(path), settings=settings)


def residue_logs(table: HudiTable) -> list[str]:
    return [log.path for log in table.state().remaining_logs if log.name.endswith(".log.1_0-0-0")]


def minimum(table: HudiTable) -> int | None:
    return table.stats().min_event_time


# ------------------------------------------------------------------------------------------- tombstones


@pytest.mark.parametrize("log_block_format", ["parquet", "avro"])
def test_a_tombstone_outlives_a_partial_compaction(
    session: LocalSession, tmp_path: Path, log_block_format: str
) -> None:
    table = opened(tmp_path / "t", OURS, log_block_format=log_block_format)
    upsert(table, session, ("a", 1, "1"), ("b", 1, "1"), ("c", 1, "1"))
    delete(table, session, ("a", 7), ("b", 1))
    upsert(table, session, ("c", 1, "2", True))
    upsert(table, session, ("a", 5, "3"), ("d", 6, "3"))  # a: late, and deleted at 7
    before = snapshot(table, session)
    assert before == {("d", 6, "3")}
    plan = compact(table, session, 4)
    # The delete's log reaches above the remaining one, and still the slice is parted.
    (carried,) = (c for op in plan.operations for c in op.carried_over)
    assert log_version(carried.link) > 1  # the residue log's, which comes first
    assert snapshot(table, session) == before
    assert read_optimized(table, session) == set()
    assert len(residue_logs(table)) == 1
    # The tombstone at 1 is forgotten: nothing as old remains.
    stats = {s.path: s for s in table.state().commit(table.state().timeline.completed(Action.COMMIT)[0]).stats}
    residue = stats[residue_logs(table)[0]]
    assert (residue.num_deletes, residue.num_writes, residue.min_event_time, residue.max_event_time) == (1, 0, 7, 7)
    assert minimum(table) == 5  # not held up by the tombstone
    # Everything merged: the tombstone is forgotten with the records it could meet.
    compact(table, session, 7)
    assert residue_logs(table) == []
    assert snapshot(table, session) == read_optimized(table, session) == before
    upsert(table, session, ("a", 6, "4"))
    assert ("a", 6, "4") in snapshot(table, session)


def test_a_tombstone_stays_through_several_compactions_and_a_re_insert(session: LocalSession, tmp_path: Path) -> None:
    table = opened(tmp_path / "t", OURS)
    upsert(table, session, ("a", 1, "1"), ("b", 1, "1"))
    delete(table, session, ("a", 50), ("b", 50))
    upsert(table, session, ("x", 10, "x"), ("a", 30, "late"))
    upsert(table, session, ("y", 20, "y"), ("b", 60, "again"))
    upsert(table, session, ("z", 40, "z"))
    before = snapshot(table, session)
    assert before == {("x", 10, "x"), ("y", 20, "y"), ("z", 40, "z"), ("b", 60, "again")}
    for threshold in (1, 10, 20, 40):
        compact(table, session, threshold)
        assert snapshot(table, session) == before, threshold
        if residue_logs(table):
            upsert(table, session, ("a", threshold + 1, "later still, and older than the delete"))
            assert snapshot(table, session) == before, threshold
    compact(table, session, 100)
    assert snapshot(table, session) == read_optimized(table, session) == before


def test_shared_services_take_the_whole_slice(session: LocalSession, tmp_path: Path) -> None:
    table = opened(tmp_path / "t", {})
    upsert(table, session, ("a", 1, "1"), ("b", 1, "1"))
    delete(table, session, ("a", 7), ("b", 1))
    upsert(table, session, ("a", 5, "3"))
    assert compact(table, session, 4).operations[0].carried_over == ()
    assert residue_logs(table) == []
    assert snapshot(table, session) == set()


def test_tombstones_where_another_field_orders(session: LocalSession, tmp_path: Path) -> None:
    """They have no event time: they hold nothing up, and are no reason to compact."""
    schema = pa.schema(
        [("id", pa.string()), ("ts", pa.int64()), ("seq", pa.int64()), ("_hoodie_is_deleted", pa.bool_())]
    )
    HudiTable.create(
        str(tmp_path / "t"), schema, record_key=["id"], ordering_field="seq", event_time_field="ts", buckets=1,
        clock="commit", data_latency="1s",
    )  # fmt: skip
    table = HudiTable.open(str(tmp_path / "t"), settings=OURS)

    def write(*rows: tuple[str, int, int, bool | None]) -> None:
        values = [dict(zip(schema.names, row, strict=True)) for row in rows]
        table.upsert(session, session.rows(values, schema), clock_time=at(100_000))

    def rows() -> set[tuple[str, int]]:
        return {(r["id"], r["seq"]) for r in table.snapshot(session).toArrow().to_pylist()}

    write(("a", 1, 1, None), ("b", 1, 1, None), ("c", 1, 1, None))
    frame = pa.table({"id": ["a"], "seq": [5]})
    table.delete(session, session.frame(frame), clock_time=at(100_000))
    write(("b", 1, 5, True))
    write(("a", 9, 4, None), ("b", 9, 4, None), ("c", 9, 4, None))
    assert rows() == {("c", 4)}
    compact(table, session, 1)
    assert rows() == {("c", 4)}
    assert len(residue_logs(table)) == 1
    assert minimum(table) == 9
    assert table.freshness().reason is None
    assert [t for _, times in table.log_event_times() for t in times.to_pylist()] == [9, 9, 9]
    nothing = table.plan_compaction(threshold=8)
    assert isinstance(nothing, NoPlan)
    write(("d", 8, 1, None))
    compact(table, session, 9)
    assert rows() == {("c", 4), ("d", 1)}
    assert residue_logs(table) == []


@pytest.mark.parametrize("mode", ["COMMIT_TIME_ORDERING", "OVERWRITE_WITH_LATEST"])
def test_other_modes_need_no_residue(session: LocalSession, tmp_path: Path, mode: str) -> None:
    table = opened(tmp_path / "t", OURS, mode)
    upsert(table, session, ("a", 1, "1"), ("b", 1, "1"))
    upsert(table, session, ("a", 2, "2", True), ("b", 2, "2", True))
    upsert(table, session, ("a", 5, "3"))
    before = snapshot(table, session)
    assert before == {("a", 5, "3")}
    assert compact(table, session, 2).operations[0].carried_over
    assert residue_logs(table) == []
    assert snapshot(table, session) == before


# ------------------------------------------------------------------------------------------- exact split


@pytest.mark.parametrize("log_block_format", ["parquet", "avro"])
def test_an_exact_split_lets_no_record_above_the_threshold_in(
    session: LocalSession, tmp_path: Path, log_block_format: str
) -> None:
    table = opened(tmp_path / "t", EXACT, log_block_format=log_block_format)
    # One log file each; every one reaches above the first threshold.
    upsert(table, session, ("a", 1, "1"), ("b", 1, "1"), ("c", 1, "1"), ("d", 9, "1"))
    upsert(table, session, ("a", 3, "2"), ("a", 8, "3"), ("b", 2, "2"), ("e", 9, "2"))
    upsert(table, session, ("b", 9, "gone", True), ("c", 2, "gone", True), ("f", 4, "3"))
    delete(table, session, ("d", None))
    before = snapshot(table, session)
    assert before == {("a", 8, "3"), ("e", 9, "2"), ("f", 4, "3")}
    instant = compact(table, session, 3).instant
    assert snapshot(table, session) == before
    assert read_optimized(table, session) == {("a", 3, "2"), ("b", 2, "2")}
    assert len(residue_logs(table)) == 1
    assert table.freshness().freshness == 3
    rows = table.snapshot(session).toArrow().to_pylist()
    assert all(row["_hoodie_commit_time"] < instant for row in rows)
    # The same again: what is left lies above.
    assert isinstance(table.plan_compaction(threshold=3), NoPlan)
    compact(table, session, 4)
    assert snapshot(table, session) == before
    assert read_optimized(table, session) == {("a", 3, "2"), ("b", 2, "2"), ("f", 4, "3")}
    assert table.freshness().freshness == 7
    compact(table, session, 9)
    assert snapshot(table, session) == before
    assert read_optimized(table, session) == {*before, ("d", 9, "1")}
    # The delete of d has no event time: by the latency it happened at 99 s or later.
    assert table.freshness().freshness == 98_999
    compact(table, session, 99_000)
    assert snapshot(table, session) == read_optimized(table, session) == before
    assert residue_logs(table) == []


def test_rows_of_one_batch_on_both_sides_of_the_split(session: LocalSession, tmp_path: Path) -> None:
    table = opened(tmp_path / "t", EXACT)
    upsert(table, session, ("a", 5, "5"), ("a", 1, "1"), ("a", 3, "3"))
    assert snapshot(table, session) == {("a", 5, "5")}
    for threshold in (1, 3, 5):
        compact(table, session, threshold)
        assert read_optimized(table, session) == {("a", threshold, str(threshold))}
        assert snapshot(table, session) == {("a", 5, "5")}


def test_deletes_of_one_batch_on_both_sides_of_the_split(session: LocalSession, tmp_path: Path) -> None:
    table = opened(tmp_path / "t", EXACT)
    upsert(table, session, ("a", 1, "1"), ("b", 1, "1"))
    delete(table, session, ("a", 5), ("a", 2), ("b", 5))
    assert snapshot(table, session) == set()
    compact(table, session, 3)
    assert read_optimized(table, session) == {("b", 1, "1")}
    assert snapshot(table, session) == set()


def test_writes_beside_a_pending_exact_split(session: LocalSession, tmp_path: Path) -> None:
    """Nothing is carried over, so the writer's first log file of the new slice has the residue log's version."""
    table = opened(tmp_path / "t", EXACT)
    upsert(table, session, ("a", 1, "1"), ("a", 5, "5"), ("b", 6, "6"))
    plan = table.plan_compaction(threshold=3)
    assert isinstance(plan, Plan)
    assert plan.operations[0].carried_over == ()
    upsert(table, session, ("a", 5, "ties, and comes later"), ("c", 2, "late"))
    before = snapshot(table, session)
    assert before == {("a", 5, "ties, and comes later"), ("b", 6, "6"), ("c", 2, "late")}
    table.execute_compaction(session, plan.instant)
    assert snapshot(table, session) == before
    assert read_optimized(table, session) == {("a", 1, "1")}
    assert table.freshness().freshness == 1


def test_time_travel_and_incremental_see_the_residue_log_as_what_it_was(session: LocalSession, tmp_path: Path) -> None:
    table = opened(tmp_path / "t", EXACT)
    upsert(table, session, ("a", 1, "1"), ("b", 5, "1"))
    upsert(table, session, ("a", 6, "2"), ("c", 2, "2"))
    delete(table, session, ("b", 7))
    instants = [i.timestamp for i in table.state().timeline.completed(Action.DELTA_COMMIT)]

    def answers() -> list[set[tuple[str, int, str]]]:
        travelled = [shown(table.time_travel(session, i).toArrow()) for i in instants]
        ranges = [("000", i) for i in instants] + [(i, "99991231235959999") for i in instants]
        between = [shown(table.incremental(session, b, e).toArrow()) for b, e in ranges]
        return [*travelled, *between]

    before = answers()
    instant = compact(table, session, 2).instant
    assert answers() == before
    now = shown(table.time_travel(session, instant).toArrow())
    assert now == snapshot(table, session) == {("a", 6, "2"), ("c", 2, "2")}


@pytest.mark.parametrize(
    ("settings", "mode", "words"),
    [
        ({"hudi_assets.exact.split": "true"}, "EVENT_TIME_ORDERING", "needs hudi_assets.table.services=ours"),
        (EXACT, "OVERWRITE_WITH_LATEST", "needs EVENT_TIME_ORDERING"),
        (EXACT, "COMMIT_TIME_ORDERING", "needs EVENT_TIME_ORDERING"),
        ({**EXACT, "hoodie.payload.event.time.field": "other"}, "EVENT_TIME_ORDERING", "on the event-time field"),
    ],
)
def test_an_exact_split_that_cannot_be_right_is_not_planned(
    session: LocalSession, tmp_path: Path, settings: dict[str, str], mode: str, words: str
) -> None:
    schema = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("other", pa.int64())])
    fields = {"event_time_field": "ts"} if mode == "COMMIT_TIME_ORDERING" else {"ordering_field": "ts"}
    HudiTable.create(str(tmp_path / "t"), schema, record_key=["id"], buckets=1, merge_mode=mode, **fields)  # type: ignore[arg-type]
    table = HudiTable.open(str(tmp_path / "t"), settings=settings)
    for dry_run in (True, False):
        with pytest.raises(InvalidInput, match=words):
            table.plan_compaction(threshold=5, dry_run=dry_run)


def test_another_strategy_has_no_threshold_to_split_at(tmp_path: Path) -> None:
    table = opened(tmp_path / "t", {**EXACT, "hoodie.compaction.strategy": f"{STRATEGIES}.UnBoundedCompactionStrategy"})
    with pytest.raises(InvalidInput, match="needs the event-time strategy"):
        table.plan_compaction()


def test_text_event_times_are_not_split(session: LocalSession, tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.string()), ("ts", pa.string())])
    HudiTable.create(str(tmp_path / "t"), schema, record_key=["id"], ordering_field="ts", buckets=1)
    with pytest.raises(InvalidInput, match="not text"):
        HudiTable.open(str(tmp_path / "t"), settings=EXACT).plan_compaction(threshold=5)


@pytest.mark.spark
def test_an_exact_split_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    table = opened(tmp_path / "t", EXACT)
    rows = [("a", 1, "1", None), ("a", 5, "5", None), ("b", 6, "6", None)]
    frame = spark.createDataFrame(rows, "id string, ts long, v string, _hoodie_is_deleted boolean")
    table.upsert(spark, frame, clock_time=at(100_000))
    compact(table, spark, 3)
    assert shown(table.read_optimized(spark).toArrow()) == {("a", 1, "1")}
    assert shown(table.snapshot(spark).toArrow()) == {("a", 5, "5"), ("b", 6, "6")}
