"""The file with the freshness of each partition: what stands in it."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_assets.catalog.partition_table import parquet_bytes
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
