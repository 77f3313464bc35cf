"""Columns of plain types → the bytes of an Avro data block's records, a column at a time. Pure.

A record is its length and then, column after column, a few cells of bytes: the branch of a union with
null, the length of a text, the value. Each kind of cell is made for all rows at once and then put where it belongs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_assets.engine.format.avro.schema import AvroType

Bytes = npt.NDArray[np.uint8]
Sizes = npt.NDArray[np.int64]

_ROWS_AT_ONCE = 50_000  # bounds what is made of a table's rows at a time
_PLAIN = ("boolean", "int", "long", "float", "double", "string", "bytes")


@dataclass(frozen=True)
class _Cells:
    """One cell per row: how many bytes it takes (none for a null's value), and all rows' bytes in a row."""

    sizes: Sizes
    data: Bytes


def is_plain(record: AvroType) -> bool:
    """True if `encode_plain` knows every type of the record."""
    return all(_knows(node) for _, node in record.children) and bool(record.children)


def _knows(node: AvroType) -> bool:
    if pa.types.is_decimal(node.arrow):
        return node.kind == "fixed" and 0 < node.size <= node.arrow.byte_width
    return node.kind in _PLAIN


def encode_plain(table: pa.Table, record: AvroType) -> bytes:
    """Every record with its 4-byte length in front. ValueError where a decimal does not fit its fixed size."""
    parts = []
    for start in range(0, table.num_rows, _ROWS_AT_ONCE):
        rows = table.slice(start, _ROWS_AT_ONCE).combine_chunks()
        cells: list[_Cells] = []
        for column, (_, node) in zip(rows.columns, record.children, strict=True):
            cells += _column(column.combine_chunks(), node)
        parts.append(_interleave(cells, rows.num_rows))
    return b"".join(parts)


def _interleave(cells: list[_Cells], rows: int) -> bytes:
    lengths = np.zeros(rows, np.int64)
    for cell in cells:
        lengths += cell.sizes
    if rows and int(lengths.max()) >= 2**31:
        raise ValueError("a record is longer than 2 GiB")
    framed = [_Cells(np.full(rows, 4), lengths.astype(">i4").view(np.uint8)), *cells]
    joined = pc.binary_join_element_wise(*map(_as_binary, framed), pa.scalar(b"", pa.large_binary()))
    data = joined.buffers()[2] or pa.py_buffer(b"")
    return bytes(data.slice(0, int(lengths.sum()) + 4 * rows).to_pybytes())


def _as_binary(cell: _Cells) -> pa.Array:
    offsets = np.zeros(len(cell.sizes) + 1, np.int64)
    np.cumsum(cell.sizes, out=offsets[1:])
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(cell.data))]
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(cell.sizes), buffers)


def _column(array: pa.Array, node: AvroType) -> list[_Cells]:
    """The cells of one column. Values are made for the rows that have one, then spread over all."""
    valid = array.is_valid().to_numpy(zero_copy_only=False)
    cells = [_spread(cell, valid) for cell in _values(array.drop_null() if array.null_count else array, node)]
    if not node.nullable:
        return cells
    # Branch numbers are zigzag: 0 is 0x00, 1 is 0x02.
    branch = np.where(valid == node.null_first, np.uint8(2), np.uint8(0))
    return [_Cells(np.ones(len(array), np.int64), branch.astype(np.uint8)), *cells]


def _spread(cell: _Cells, valid: npt.NDArray[np.bool_]) -> _Cells:
    sizes = np.zeros(len(valid), np.int64)
    sizes[valid] = cell.sizes
    return _Cells(sizes, cell.data)


def _values(array: pa.Array, node: AvroType) -> list[_Cells]:
    if pa.types.is_decimal(node.arrow):
        return [_decimals(array, node.size)]
    match node.kind:
        case "boolean":
            return [_fixed(array.to_numpy(zero_copy_only=False).astype(np.uint8))]
        case "int" | "long":
            physical = array.cast(pa.int32() if node.kind == "int" else pa.int64())
            return [_varints(physical.to_numpy(zero_copy_only=False).astype(np.int64))]
        case "float":
            return [_fixed(array.to_numpy(zero_copy_only=False).astype("<f4"))]
        case "double":
            return [_fixed(array.to_numpy(zero_copy_only=False).astype("<f8"))]
    offsets = np.frombuffer(array.buffers()[1], np.int32, len(array) + 1, array.offset * 4).astype(np.int64)
    data = np.frombuffer(array.buffers()[2] or b"", np.uint8)[offsets[0] : offsets[-1]]
    sizes = np.diff(offsets)
    return [_varints(sizes), _Cells(sizes, data)]


def _fixed(values: npt.NDArray[Any]) -> _Cells:
    return _Cells(np.full(len(values), values.itemsize), values.view(np.uint8))


def _varints(values: npt.NDArray[np.int64]) -> _Cells:
    """Avro's int and long: zigzag, seven bits to a byte, lowest first, the top bit on all but the last."""
    zigzag = ((values << 1) ^ (values >> 63)).view(np.uint64)
    widest = int(zigzag.max()).bit_length() if len(zigzag) else 0
    places = np.arange(max(1, -(-widest // 7)), dtype=np.uint64)
    rest = zigzag[:, None] >> (places * np.uint64(7))
    used = (rest > 0) | (places == 0)
    sizes = used.sum(axis=1, dtype=np.int64)
    more = np.arange(len(places)) < (sizes - 1)[:, None]
    septets = (rest & np.uint64(0x7F)).astype(np.uint8) | np.where(more, np.uint8(0x80), np.uint8(0))
    return _Cells(sizes, septets[used])


def _decimals(array: pa.Array, size: int) -> _Cells:
    """Arrow's little-endian decimals as big-endian two's complement of `size` bytes."""
    width = array.type.byte_width
    raw = np.frombuffer(array.buffers()[1] or b"", np.uint8, len(array) * width, array.offset * width)
    wide = raw.reshape(len(array), width)[:, ::-1]
    sign = np.where(wide[:, width - size] >= 0x80, np.uint8(0xFF), np.uint8(0))
    if (wide[:, : width - size] != sign[:, None]).any():
        raise ValueError(f"a decimal does not fit {size} bytes")
    return _Cells(np.full(len(array), size), np.ascontiguousarray(wide[:, width - size :]).reshape(-1))
