"""A small table with every kind of column, made without Spark."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from hudi_assets.engine import HudiTable
from tests.tables.local_session import LocalSession

HOUR = 3_600_000
SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("at", pa.int64()),
        ("seen", pa.timestamp("us", tz="UTC")),
        ("n", pa.int32()),
        ("many", pa.list_(pa.int64())),
        ("by_name", pa.map_(pa.string(), pa.float64())),
        ("inside", pa.struct([("a", pa.bool_()), ("b", pa.binary())])),
        ("price", pa.decimal128(10, 2)),
        ("day", pa.date32()),
        ("part", pa.string()),
    ]
)


def make_table(path: Path, schema: pa.Schema = SCHEMA, **more: Any) -> HudiTable:
    """Two partitions, one file group in each; its clock is its commits'. `hoodie.table.name` is the folder's."""
    return HudiTable.create(
        str(path),
        schema,
        **{
            "record_key": ["id"],
            "ordering_field": "at",
            "partition_fields": ["part"],
            "buckets": 1,
            "data_latency": "1h",
            **more,
        },
    )


def row(key: str, at: int, part: str = "x", **values: Any) -> dict[str, Any]:
    return {"id": key, "at": at, "part": part, "n": 1, "many": [1], "by_name": [("k", 1.0)], **values}


def write(table: HudiTable, session: LocalSession, *rows: dict[str, Any], clock: int | None = None) -> None:
    """`clock`: epoch ms, for a table whose clock is its commits'."""
    full = [{name: one.get(name) for name in SCHEMA.names} for one in rows]
    time = None if clock is None else datetime.fromtimestamp(clock / 1000, UTC)
    table.upsert(session, session.rows(full, SCHEMA), clock_time=time)


def compacted(table: HudiTable, session: LocalSession, *hours: int) -> HudiTable:
    """A row for each of these hours, and a compaction after each."""
    for hour in hours:
        write(
            table, session, row("a", hour * HOUR), clock=(hour + 1) * HOUR if table.config.clock == "commit" else None
        )
        table.compact(session, threshold=hour * HOUR)
    return table
