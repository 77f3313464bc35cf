"""Which columns a Parquet file holds as dictionaries: those whose values repeat. Pure."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

_SAMPLE = 2_000
_DISTINCT = 0.8
"""Of so many values, spread over the rows, this share may differ. A dictionary of keys is built and thrown away again:
it takes longer than all else that writing does, and makes the file larger."""


def dictionary_columns(table: pa.Table) -> list[str]:
    """What `use_dictionary` of pyarrow's Parquet writer takes. Columns inside nested ones are in it always."""
    size = len(table)
    rows = np.linspace(0, size - 1, _SAMPLE).astype(np.int64) if size > _SAMPLE else None
    found: list[str] = []
    for name, column in zip(table.schema.names, table.columns, strict=True):
        if pa.types.is_nested(column.type):
            found += _leaves(name, column.type)
        elif pa.types.is_dictionary(column.type) or _repeats(column if rows is None else _taken(column, rows)):
            found.append(name)
    return found


def _taken(column: pa.ChunkedArray, rows: npt.NDArray[np.int64]) -> pa.ChunkedArray:
    """The values of some rows, ascending, chunk by chunk: of a whole column Arrow makes one chunk first."""
    ends = np.cumsum([len(chunk) for chunk in column.chunks])
    cuts = [0, *np.searchsorted(rows, ends).tolist()]
    taken = [
        chunk.take(pa.array(rows[cuts[n] : cuts[n + 1]] - (ends[n] - len(chunk))))
        for n, chunk in enumerate(column.chunks)
        if cuts[n + 1] > cuts[n]
    ]
    return pa.chunked_array(taken, column.type)


def _repeats(values: pa.ChunkedArray) -> bool:
    if pa.types.is_boolean(values.type) or pa.types.is_null(values.type):
        return True
    found = len(values) - values.null_count
    return bool(pc.count_distinct(values, mode="only_valid").as_py() <= max(1, _DISTINCT * found))


def _leaves(path: str, kind: pa.DataType) -> Iterator[str]:
    """The paths of a nested column's leaves in Parquet."""
    if pa.types.is_struct(kind):
        for field in kind:
            yield from _leaves(f"{path}.{field.name}", field.type)
    elif pa.types.is_map(kind):
        yield from _leaves(f"{path}.key_value.key", kind.key_type)
        yield from _leaves(f"{path}.key_value.value", kind.item_type)
    elif pa.types.is_nested(kind):
        yield from _leaves(f"{path}.list.element", kind.value_type)
    else:
        yield path
