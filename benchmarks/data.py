"""The rows that everybody writes, as Parquet files: a first load, then upserts; and what is asked about them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hudi_assets.demo.flights import KEY_FIELDS, UPDATE_SCHEMA, FlightStream

UPSERTS = 8
HOUR_MS = 3_600_000
_ROW_GROUP = 50_000
_Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Work:
    """Rows to load and to upsert, and one question about them (SQL, which every engine with Spark is asked)."""

    name: str
    buckets: int
    record_key: tuple[str, ...]
    ordering_field: str
    event_time_unit: str | None
    sums: tuple[str, str]
    greatest: str
    load: Path
    upserts: tuple[Path, ...]
    partition_fields: tuple[str, ...] = ()

    @property
    def expressions(self) -> list[str]:
        return ["count(1)", *(f"sum({name})" for name in self.sums), f"max({self.greatest})"]

    @property
    def columns(self) -> list[str]:
        """The columns that the question needs."""
        return [*self.sums, self.greatest]

    def answer(self, table: pa.Table) -> tuple[Any, ...]:
        """The question's answer from Arrow rows."""
        sums = (pc.sum(table.column(name)).as_py() for name in self.sums)
        return (len(table), *sums, pc.max(table.column(self.greatest)).as_py())


def trips(folder: Path, rows: int, upserts: int = UPSERTS, size: int | None = None) -> Work:
    """`rows` trips of 11 columns, then upserts of `size` (a tenth) of them, spread over all keys, an hour apart.

    The rows of upsert n have event times in hour n since the epoch, those of the first load in hour 0.
    """
    size = size or rows // 10
    steps = {0: np.arange(rows)}
    for step in range(1, upserts + 1):
        steps[step] = (np.arange(size) + step * 1000) * 7 % rows
    return Work(
        name=f"{rows:,} rows of 11 columns in 8 buckets, {upserts} upserts of {size:,}",
        buckets=8,
        record_key=("id",),
        ordering_field="ts",
        event_time_unit="ms",
        sums=("fare", "ts"),
        greatest="note",
        load=_written(folder / "load.parquet", _trips(steps[0], 0)),
        upserts=tuple(
            _written(folder / f"upsert-{step}.parquet", _trips(steps[step], step)) for step in range(1, upserts + 1)
        ),
    )


def _trips(numbers: _Numbers, step: int) -> pa.Table:
    random = np.random.default_rng(step)
    size = len(numbers)
    where = {name: random.random(size) * 360 - 180 for name in ("begin_lat", "begin_lon", "end_lat", "end_lon")}
    return pa.table(
        {
            "id": pc.binary_join_element_wise(
                pa.scalar("trip-"), pc.utf8_lpad(pa.array(numbers).cast(pa.string()), 10, "0"), ""
            ),
            "ts": step * HOUR_MS + numbers * 7919 % HOUR_MS,
            "rider": _named("rider-", numbers % 1000),
            "driver": _named("driver-", numbers % 500),
            "fare": random.random(size) * 100,
            **where,
            "seats": (numbers % 4 + 1).astype(np.int32),
            "note": _hex(random.bytes(size * 16)),
        }
    )


def _named(prefix: str, numbers: _Numbers) -> pa.Array:
    return pc.binary_join_element_wise(pa.scalar(prefix), pa.array(numbers).cast(pa.string()), "")


def _hex(data: bytes, width: int = 32) -> pa.Array:
    """Text of `width` hex digits each: nothing in it compresses to less than half."""
    text = data.hex().encode()
    offsets = np.arange(0, len(text) + 1, width, dtype=np.int32)
    return pa.StringArray.from_buffers(len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(text))


def flights(folder: Path, rows: int, upserts: int = UPSERTS) -> Work:
    """The flights of 2013: what was delivered by the summer, then the rest of the year in upserts.

    `rows` is not asked: the year is as long as it is.
    """
    del rows
    stream = FlightStream(days=368)
    middle = stream.start_ms + (stream.end_ms - stream.start_ms) // 2
    first = stream.delivered(middle)
    rest = stream.delivered(stream.end_ms).slice(len(first))
    cuts = [len(rest) * step // upserts for step in range(upserts + 1)]
    parts = [_newest(rest.slice(low, high - low)) for low, high in pairwise(cuts)]
    loaded = _newest(first)
    return Work(
        name=f"the flights of 2013: {len(loaded):,} loaded, {upserts} upserts of {len(parts[0]):,} or so",
        buckets=2,
        record_key=KEY_FIELDS,
        ordering_field="event_time",
        event_time_unit=None,
        sums=("distance", "dep_delay"),
        greatest="tailnum",
        load=_written(folder / "load.parquet", loaded),
        upserts=tuple(_written(folder / f"upsert-{n}.parquet", part) for n, part in enumerate(parts, 1)),
        partition_fields=("origin",),
    )


def _newest(updates: pa.Table) -> pa.Table:
    """The newest update of each flight: a bulk insert of Hudi takes every row that comes."""
    frame = pl.from_arrow(updates.drop_columns("delivered_at"))
    assert isinstance(frame, pl.DataFrame)
    newest = frame.sort("event_time", maintain_order=True).unique(KEY_FIELDS, keep="last", maintain_order=True)
    return newest.to_arrow().cast(UPDATE_SCHEMA)


WORKS: Mapping[str, Callable[[Path, int, int], Work]] = {"trips": trips, "flights": flights}


def _written(path: Path, table: pa.Table) -> Path:
    # Row groups small enough for each core to get some.
    pq.write_table(table, path, row_group_size=_ROW_GROUP, compression="zstd")
    return path
