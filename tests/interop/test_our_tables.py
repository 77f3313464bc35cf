"""Tables that our engine writes and compacts, read by everybody else after every step."""

from __future__ import annotations

from functools import partial
from operator import add
from pathlib import Path

import pytest

from scripts.hudi_client import Hudi
from tests.interop.readers import History, Readers, same_incremental, same_time_travel
from tests.interop.tables import Shape, compacted, copy_of, frame, planned, rows

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]

SHAPES = {
    "parquet-partitioned": Shape(),
    "avro-partitioned": Shape(log_block_format="avro"),
    "parquet-flat-complex-key": Shape(record_key=("id", "region"), partition_fields=()),
    "avro-complex-key-no-hive-style": Shape(log_block_format="avro", record_key=("id", "region"), hive_style=False),
    "parquet-two-partition-fields": Shape(partition_fields=("p", "region"), buckets=1),
    "parquet-timestamp-ordering": Shape(ordering_field="at"),
    "avro-timestamp-ordering": Shape(ordering_field="at", log_block_format="avro"),
}
IN_SLICE = ("avro-complex-key-no-hive-style",)


def _shapes() -> list[object]:
    return [
        pytest.param(shape, id=name, marks=() if name in IN_SLICE else pytest.mark.slow)
        for name, shape in SHAPES.items()
    ]


@pytest.mark.parametrize("shape", _shapes())
def test_every_reader_agrees_after_every_step(shape: Shape, path: Path, readers: Readers) -> None:
    spark = readers.spark
    table = shape.create(path)
    table.upsert(spark, frame(spark, rows(range(12), lambda n: n, 0, null_items=True)))
    first = readers.agree(table, "first upsert")
    assert len(first["snapshot"]) == 12
    assert not first["read_optimized"], "nothing may be in the RO view before a compaction"

    # Updates, new keys, a late update that loses and a tie that wins.
    table.upsert(spark, frame(spark, rows([0, 1, 2, 12, 13], lambda n: 20 + n, 1, null_items=True)))
    table.upsert(spark, frame(spark, rows([0, 3], lambda n: n, 2, null_items=True)))
    table.delete(spark, frame(spark, shape.keys_of(rows([4, 13], lambda n: 50, 3))))
    before = readers.agree(table, "updates and deletes")
    assert len(before["snapshot"]) == 12

    plan = planned(table, 11)
    pending = readers.agree(table, "plan pending")
    assert pending == before
    table.upsert(spark, frame(spark, rows([1, 14], lambda n: 60 + n, 4, null_items=True)))
    beside = readers.agree(table, "upsert beside the pending plan", hudi_rs=False)
    assert len(beside["snapshot"]) == 13

    result = table.execute_compaction(spark, plan.instant)
    done = readers.agree(table, "plan executed")
    assert done["snapshot"] == beside["snapshot"]
    assert result.logs_compacted > 0
    assert result.logs_remaining > 0, "nothing was carried over, so this tests too little"
    assert done["read_optimized"]

    table.upsert(spark, frame(spark, rows([2, 5, 15], lambda n: 90 + n, 5, null_items=True)))
    readers.agree(table, "upsert after the compaction")
    compacted(table, spark, 70)
    compacted(table, spark, 1000)
    last = readers.agree(table, "everything compacted")
    assert last["snapshot"] == last["read_optimized"]


@pytest.mark.slow
@pytest.mark.parametrize("release", ["0.15.0", "1.2.0"])
@pytest.mark.parametrize("log_block_format", ["parquet", "avro"])
def test_time_travel_and_incremental_do_not_change(
    release: str, log_block_format: str, path: Path, readers: Readers
) -> None:
    """Pending, executed, and executed once more: answers of Hudi equal those of the uncompacted table."""
    spark = readers.spark
    hudi = readers.hudi[release]
    shape = Shape(log_block_format=log_block_format, buckets=1)
    table = shape.create(path)
    for mark, (numbers, start) in enumerate([(range(9), 0), ([0, 1, 2], 30), ([3, 4, 5], 60), ([1, 9], 90)]):
        table.upsert(spark, frame(spark, rows(numbers, partial(add, start), mark)))
    before = History(hudi, copy_of(path))
    after = History(hudi, path)

    plan = planned(table, 35)
    same_time_travel(before, after)
    result = table.execute_compaction(spark, plan.instant)
    assert result.logs_remaining > 0
    assert plan.instant in after.instants()
    same_time_travel(before, after)
    same_incremental(before, after)
    compacted(table, spark, 64)
    same_time_travel(before, after)
    same_incremental(before, after)


def test_hudi_sees_our_timeline(path: Path, readers: Readers, hudi_0_15: Hudi) -> None:
    spark = readers.spark
    table = Shape().create(path)
    written = table.upsert(spark, frame(spark, rows(range(6), lambda n: n, 0)))
    table.upsert(spark, frame(spark, rows([0], lambda n: 40, 1)))
    plan = planned(table, 10)
    assert hudi_0_15.timeline(path)[-1] == (plan.instant, "compaction", "REQUESTED")
    table.execute_compaction(spark, plan.instant)
    timeline = hudi_0_15.timeline(path)
    assert timeline[0] == (written.instant, "deltacommit", "COMPLETED")
    assert timeline[-1] == (plan.instant, "commit", "COMPLETED")
