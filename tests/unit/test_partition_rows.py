"""The file with the freshness of each partition: what stands in it."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_assets.catalog.partition_table import lowered, parquet_bytes
from hudi_assets.engine import PartitionFreshness, PublishedPartitions


def rows_of(data: bytes) -> list[dict[str, object]]:
    table = pq.read_table(pa.BufferReader(data))
    micros = table.set_column(1, "freshness", table["freshness"].cast(pa.int64()))
    found: list[dict[str, object]] = micros.to_pylist()
    return found


@pytest.mark.parametrize(
    ("ms", "micros"),
    [
        (1, 1000),
        (-(2**63), None),
        (2**63 - 1, None),
        (-9_223_372_036_854_776, None),
        (-9_223_372_036_854_775, -9_223_372_036_854_775_000),
        (9_223_372_036_854_775, 9_223_372_036_854_775_000),
        (9_223_372_036_854_776, None),
        (None, None),
    ],
)
def test_a_freshness_that_no_timestamp_reaches_is_a_number_alone(ms: int | None, micros: int | None) -> None:
    """An event time that stands for none, as the least number of all, must not stop a publication."""
    read = PublishedPartitions((PartitionFreshness("p", ms, None, True, 1, 7),), None, "20240301000000000", 9)
    (row,) = rows_of(parquet_bytes(read))
    assert (row["freshness_ms"], row["freshness"]) == (ms, micros)


def _read(**freshness: int | None) -> PublishedPartitions:
    rows = tuple(PartitionFreshness(name, ms, None, True, 1, 7) for name, ms in freshness.items())
    return PublishedPartitions(rows, None, "20240301000000000", 9)


@pytest.mark.parametrize(
    ("now", "published", "told"),
    [
        ({"a": 5}, {}, None),
        ({"a": 5, "b": 1}, {"a": 5}, None),
        ({"a": 5}, {"a": None}, None),
        ({"a": None}, {"a": None}, None),
        ({"a": 4}, {"a": 5}, {"a": 4}),
        ({"a": None}, {"a": 5}, {"a": None}),
        ({}, {"a": 5}, {}),
        ({"a": 4, "b": 9}, {"a": 5, "b": 8}, {"a": 4, "b": 8}),
        ({"a": 4, "b": 9}, {"a": 5, "b": None}, {"a": 4, "b": None}),
        ({"a": 4, "b": 9}, {"a": 5}, {"a": 4}),
        ({"b": 9}, {"a": None, "b": 8}, None),
    ],
)
def test_before_the_views_no_promise_is_higher_than_both(
    now: dict[str, int | None], published: dict[str, int | None], told: dict[str, int | None] | None
) -> None:
    found = lowered(_read(**now), published)
    assert (None if found is None else {one.partition: one.freshness for one in found.partitions}) == told
    for one in found.partitions if found else ():
        assert one.reason == ("it is being published" if one.freshness is None and now[one.partition] else None)
