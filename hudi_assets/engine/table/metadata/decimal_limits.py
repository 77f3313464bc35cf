"""Decimals that column statistics of version V1 have no room for, found before anything is written.

They hold 15 digits on each side of the point (DecimalWrapper). 0.15.0 fails its own write of a value beyond that; 1.2.0
leaves such a column out of a V1 index by its type, and says so in the index's definition.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from hudi_assets.engine.format.parquet_footer import leaves
from hudi_assets.engine.storage import Storage
from hudi_assets.engine.table.layout.interface import Layout
from hudi_assets.engine.table.metadata.column_stats import ColumnStatsIndex
from hudi_assets.engine.table.metadata.own_timeline import OwnTimeline
from hudi_assets.engine.table.metadata.partitions import has_metadata_table
from hudi_assets.engine.table.metadata.reader import ValidInstants
from hudi_assets.engine.timeline.instants import Timeline

DIGITS: Final = 15
ROOM: Final = f"{DIGITS} digits on each side of the point"
Columns = Mapping[str, pa.DataType]
"""Type by path: `price`, or `place.price` for a field of a struct."""


def tight_columns(storage: Storage, layout: Layout, timeline: Timeline, schema: pa.Schema) -> Columns:
    """The columns that have statistics of version V1, and may hold a value that these have no room for."""
    wide = {path: kind for path, kind in leaves(schema).items() if pa.types.is_decimal(kind) and not _always_fits(kind)}
    if not wide or not has_metadata_table(storage):
        return {}
    own = OwnTimeline.read(storage, layout)
    index = ColumnStatsIndex.of(storage, layout, own, ValidInstants(own, timeline))
    return {} if index is None else index.decimals_with_wrapper(wide)


def _always_fits(kind: pa.DataType) -> bool:
    return bool(kind.precision - kind.scale <= DIGITS and kind.scale <= DIGITS)


def without_room(rows: pa.Table | pa.RecordBatch, path: str, kind: pa.DataType) -> pa.Array | pa.ChunkedArray:
    """True for each row whose value in a column, one of `tight_columns`, does not fit."""
    name, *fields = path.split(".")
    values = rows.column(name)
    for field in fields:
        values = pc.struct_field(values, field)
    if kind.scale > DIGITS:
        return pc.is_valid(values)
    limit = pa.scalar(Decimal(10**DIGITS), kind)
    return pc.fill_null(pc.greater_equal(pc.abs(pc.cast(values, kind)), limit), False)
