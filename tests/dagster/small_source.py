"""A small stream: eight windows of three hours from 2024-03-01, a few keys, one record that comes late."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pyarrow as pa

START = datetime(2024, 3, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("city", pa.string()),
        ("value", pa.int64()),
        ("event_time", pa.timestamp("us", tz="UTC")),
    ]
)


def at(hours: float) -> datetime:
    return START + hours * HOUR


def ms(hours: float) -> int:
    return int(at(hours).timestamp() * 1000)


@dataclass(frozen=True)
class Window:
    index: int
    id: str
    start_ms: int
    end_ms: int


class SmallSource:
    """In window n: a record of each of six keys every hour. Window 5 also delivers one of hour 2."""

    schema = SCHEMA

    def __init__(self, late: bool = True) -> None:
        self.late = late
        self.batches = [Window(n, at(3 * n).strftime("%Y-%m-%dT%H:%M:%SZ"), ms(3 * n), ms(3 * n + 3)) for n in range(8)]

    def rows(self, batch: Window) -> pa.Table:
        first = 3 * batch.index
        hours = [first + 0.25, first + 1.25, first + 2.25]
        rows = [
            {"id": f"k{key}", "city": "ab"[key % 2], "value": int(100 * hour), "event_time": at(hour)}
            for hour in hours
            for key in range(6)
        ]
        if self.late and batch.index == 5:
            rows.append({"id": "late", "city": "a", "value": -1, "event_time": at(2)})
        return pa.Table.from_pylist(rows, SCHEMA)
