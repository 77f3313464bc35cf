"""The greatest event time in a base file, by its footer: what it does not say is unknown."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_assets.engine.model import BaseFile, FileSlice
from hudi_assets.engine.model.units import EventTimeUnit
from hudi_assets.engine.storage import LocalStorage
from hudi_assets.engine.table.files.base_times import BaseTimes

AT = datetime(2026, 1, 1, 12, 0, 0, 1500, UTC)
MS = 1_767_268_800_000


def highest(folder: Path, values: pa.Array, unit: EventTimeUnit, column: str = "ts", **options: Any) -> float:
    pq.write_table(
        pa.table({"id": [str(n) for n in range(len(values))], "ts": values}), folder / "b.parquet", **options
    )
    base = BaseFile("b.parquet", "", "f", "1", "0-0-0", 1)
    return BaseTimes(LocalStorage(str(folder)), column, unit).highest(FileSlice("", "f", "1", base))


@pytest.mark.parametrize(
    ("values", "unit", "expected"),
    [
        (pa.array([5, 9, 7]), EventTimeUnit.MILLIS, 9),
        (pa.array([5, None, 7]), EventTimeUnit.SECONDS, 7000),
        (pa.array([5, 1001], pa.int32()), EventTimeUnit.MICROS, 2),
        (pa.array([None, None], pa.int64()), EventTimeUnit.MILLIS, -math.inf),
        (pa.array([], pa.int64()), EventTimeUnit.MILLIS, -math.inf),
        (pa.array([AT], pa.timestamp("us", "UTC")), EventTimeUnit.TIMESTAMP, MS + 2),
        (pa.array([AT], pa.timestamp("us")), EventTimeUnit.TIMESTAMP, MS + 2),
        (pa.array([date(2026, 1, 1)]), EventTimeUnit.DATE, MS - 43_200_000),
    ],
)
def test_it_is_that_of_the_rows(tmp_path: Path, values: pa.Array, unit: EventTimeUnit, expected: float) -> None:
    assert highest(tmp_path, values, unit, row_group_size=2) == expected


def test_what_the_footer_does_not_say_is_unknown(tmp_path: Path) -> None:
    assert highest(tmp_path, pa.array([5]), EventTimeUnit.MILLIS, write_statistics=False) == math.inf
    assert highest(tmp_path, pa.array([5]), EventTimeUnit.MILLIS, column="other") == math.inf
    assert highest(tmp_path, pa.array([AT]), EventTimeUnit.TIMESTAMP, use_deprecated_int96_timestamps=True) == math.inf
    times = BaseTimes(LocalStorage(str(tmp_path)), "ts", EventTimeUnit.MILLIS)
    assert times.highest(FileSlice("", "f", "1", None)) == -math.inf
    (tmp_path / "b.parquet").write_bytes(b"damage")
    assert times.highest(FileSlice("", "f", "1", BaseFile("b.parquet", "", "f", "1", "0-0-0", 6))) == math.inf
