"""Gaps: values of a row in whose place an older record of the key gives its own. Hudi 1.x's partial update modes. Pure.

A table of version 9 may state one (`hoodie.table.partial.update.mode`). What is filled, and from what, is as with
records that hold some columns alone (`partial`). Only what lacks a column is told row by row here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

_KEY = "_hoodie_record_key"
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Gaps:
    """What is a gap: a null (`marker` is None, IGNORE_DEFAULTS), or the text that is the marker (FILL_UNAVAILABLE).

    Top-level columns alone have gaps. Hudi 1.2.0 finds no marker in a column of bytes.
    """

    marker: str | None = None

    def of(self, rows: pa.Table) -> dict[str, Flags]:
        """Where the rows' columns have gaps; those that have none are left out."""
        # A key that is the marker's text is a key.
        found = {name: self._in(rows.column(name)) for name in rows.schema.names if name != _KEY}
        return {name: flags for name, flags in found.items() if flags is not None}

    def _in(self, column: pa.ChunkedArray) -> Flags | None:
        if self.marker is None:
            return _flags(pc.is_null(column)) if column.null_count else None
        if not _is_text(column.type):
            return None
        flags = _flags(pc.fill_null(pc.equal(column, pa.scalar(self.marker, column.type)), False))
        return flags if flags.any() else None

    def left(self, kind: pa.DataType, count: int) -> pa.Array:
        """What stands in so many gaps that nothing fills."""
        if self.marker is None or not _is_text(kind):
            return pa.nulls(count, kind)
        return pa.repeat(pa.scalar(self.marker, kind), count)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _flags(mask: pa.ChunkedArray) -> Flags:
    flags: Flags = mask.combine_chunks().to_numpy(zero_copy_only=False)
    return flags.astype(np.bool_, copy=False)
