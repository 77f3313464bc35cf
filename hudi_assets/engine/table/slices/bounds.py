"""The smallest and largest value of a column, as Parquet footers say it: rows that need not be read. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq


@dataclass(frozen=True, slots=True)
class Bounds:
    """Every value that is not null lies in [low, high]; both None where there is no such value."""

    low: Any
    high: Any


def has_bounds(kind: pa.DataType) -> bool:
    """True for types whose statistics sort as the merge compares them: whole numbers, dates and times.

    Not floating point: statistics leave NaN out.
    """
    return bool(pa.types.is_signed_integer(kind) or kind == pa.date32() or pa.types.is_timestamp(kind))


def footer_bounds(footer: pq.FileMetaData, column: str, kind: pa.DataType) -> Bounds | None:
    """A column's bounds over all row groups, whole numbers as they are stored, text as text; None where not known.

    Not known either where the file has the column in another type than `kind`, or does not have it.
    """
    index = footer.schema.to_arrow_schema().get_field_index(column)
    if index < 0 or footer.schema.to_arrow_schema().field(index).type != kind:
        return None
    number = next(n for n in range(len(footer.schema)) if footer.schema.column(n).path == column)
    parts = []
    for group in range(footer.num_row_groups):
        chunk = footer.row_group(group).column(number)
        known = chunk.statistics
        if known is None or not (known.has_min_max or (known.has_null_count and known.null_count == chunk.num_values)):
            return None
        if known.has_min_max:
            parts.append(Bounds(_value(known.min_raw), _value(known.max_raw)))
    return joined(parts)


def _value(raw: Any) -> Any:
    return raw.decode("utf-8", "replace") if isinstance(raw, bytes) else raw


def column_bounds(column: pa.ChunkedArray) -> Bounds:
    """A column's bounds, as `footer_bounds` has them."""
    kind = column.type
    if kind == pa.date32():
        column = column.cast(pa.int32())
    elif pa.types.is_timestamp(kind):
        column = column.cast(pa.int64())
    found = pc.min_max(column).as_py()
    return Bounds(found["min"], found["max"])


def joined(parts: Iterable[Bounds]) -> Bounds:
    """The bounds of all of them together."""
    known = [part for part in parts if part.low is not None]
    if not known:
        return Bounds(None, None)
    return Bounds(min(part.low for part in known), max(part.high for part in known))
