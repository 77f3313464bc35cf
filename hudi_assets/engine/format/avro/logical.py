"""Avro values with and without their logical types, in Arrow: vectorised, nested types included. Pure.

"Raw" is what Avro encodes: dates, times and timestamps as their numbers, decimals as two's complement
bytes, enums as symbol numbers.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_assets.engine.format.avro.schema import AvroType


def raw_avro(node: AvroType, path: str, *, logical: bool = False) -> Any:
    """The Avro schema (JSON value) of a type without logical types; named types get names from `path`.

    `logical` keeps decimals and enums, for encoding from Python values.
    """
    kind: Any = node.kind
    match node.kind:
        case "enum" if not logical:
            kind = "int"
        case "enum":
            kind = {"type": "enum", "name": f"{path}_enum", "symbols": list(node.symbols)}
        case "fixed":
            kind = {"type": "fixed", "name": f"{path}_fixed", "size": node.size}
        case "array":
            kind = {"type": "array", "items": raw_avro(node.children[0][1], f"{path}_0", logical=logical)}
        case "map":
            kind = {"type": "map", "values": raw_avro(node.children[0][1], f"{path}_0", logical=logical)}
        case "record":
            fields = [
                {"name": name, "type": raw_avro(child, f"{path}_{number}", logical=logical)}
                for number, (name, child) in enumerate(node.children)
            ]
            kind = {"type": "record", "name": f"{path}_record", "fields": fields}
    if logical and pa.types.is_decimal(node.arrow):
        plain = kind if isinstance(kind, dict) else {"type": kind}
        kind = {
            **plain,
            "logicalType": "decimal",
            "precision": node.arrow.precision,
            "scale": node.arrow.scale,
        }
    if node.nullable:
        return ["null", kind] if node.null_first else [kind, "null"]
    return kind


_RAW = {"enum": pa.int32(), "int": pa.int32(), "long": pa.int64(), "fixed": pa.binary(), "bytes": pa.binary()}


def raw_arrow(node: AvroType) -> pa.DataType:
    """The Arrow type of `raw_avro`'s values."""
    match node.kind:
        case "array":
            child = node.children[0][1]
            return pa.list_(pa.field("element", raw_arrow(child), child.nullable))
        case "map":
            child = node.children[0][1]
            return pa.map_(pa.string(), pa.field("value", raw_arrow(child), child.nullable))
        case "record":
            return pa.struct([pa.field(name, raw_arrow(child), child.nullable) for name, child in node.children])
    return _RAW.get(node.kind, node.arrow)


def from_raw(column: pa.ChunkedArray, node: AvroType) -> pa.ChunkedArray:
    """A raw column as the type users see; pa.ArrowException or ValueError for values it cannot hold."""
    return pa.chunked_array([_from_raw(chunk, node) for chunk in column.chunks], type=node.arrow)


def _from_raw(array: pa.Array, node: AvroType) -> pa.Array:
    match node.kind:
        case "record":
            return _struct(array, node)
        case "array":
            values = _from_raw(array.values, node.children[0][1])
            offsets = array.offsets.cast(pa.int32())
            return pa.ListArray.from_arrays(offsets, values, type=node.arrow, mask=_mask(array))
        case "map":
            items = _from_raw(array.items, node.children[0][1])
            keys = array.keys.cast(pa.string())
            return pa.MapArray.from_arrays(array.offsets, keys, items, type=node.arrow, mask=_mask(array))
        case "enum":
            symbols = pa.array(node.symbols, pa.string())
            return pa.DictionaryArray.from_arrays(array, symbols).dictionary_decode()
    if pa.types.is_decimal(node.arrow):
        return _decimals(array.cast(pa.large_binary()), node.arrow)
    cast = array if array.type == node.arrow else array.cast(node.arrow)
    if pa.types.is_time(node.arrow):
        cast.validate(full=True)  # a time of day past midnight
    return cast


def _mask(array: pa.Array) -> pa.Array | None:
    return array.is_null() if array.null_count else None


def _struct(array: pa.Array, node: AvroType) -> pa.Array:
    if not node.children:
        return pa.array([{} if valid else None for valid in array.is_valid().to_pylist()], node.arrow)
    # Flattened, a null record's fields are nulls; what stands there otherwise is no value.
    parts = array.flatten()
    children = [_from_raw(parts[number], child) for number, (_, child) in enumerate(node.children)]
    return pa.StructArray.from_arrays(children, fields=list(node.arrow), mask=_mask(array))


def _decimals(array: pa.Array, target: pa.DataType) -> pa.Array:
    """Big-endian two's complement of any length → Arrow decimals, without a Python value per row."""
    width, rows = target.byte_width, len(array)
    filled = array.fill_null(b"\x00") if array.null_count else array
    offsets = np.frombuffer(filled.buffers()[1], np.int64, rows + 1, filled.offset * 8)
    start, stop = (int(offsets[0]), int(offsets[-1])) if rows else (0, 0)
    data = np.frombuffer(filled.buffers()[2] or b"", np.uint8)[start:stop]
    lengths = np.diff(offsets)
    if rows and (int(lengths.min()) < 1 or int(lengths.max()) > width):
        raise ValueError(f"a decimal takes {int(lengths.min())} to {int(lengths.max())} bytes")
    starts = offsets[:-1] - start
    negative = data[starts] >= 0x80
    wide = np.where(negative[:, None], np.uint8(0xFF), np.uint8(0)).repeat(width, axis=1)
    row = np.repeat(np.arange(rows), lengths)
    within = np.arange(len(data)) - np.repeat(starts, lengths)
    wide[row, np.repeat(width - lengths, lengths) + within] = data
    little_endian = np.ascontiguousarray(wide[:, ::-1])
    validity = pc.is_valid(array).buffers()[1] if array.null_count else None
    decimals = pa.Array.from_buffers(target, rows, [validity, pa.py_buffer(little_endian)])
    decimals.validate(full=True)  # more digits than the precision has
    return decimals


def python_values(column: pa.ChunkedArray, node: AvroType) -> list[Any]:
    """A column's values as fastavro takes them for `raw_avro(logical=True)`: times as numbers, maps as dicts."""
    return [value for chunk in column.chunks for value in _python_values(chunk, node)]


def _python_values(array: pa.Array, node: AvroType) -> list[Any]:
    valid = array.is_valid().to_pylist()
    match node.kind:
        case "record":
            names = [name for name, _ in node.children]
            parts = [
                _python_values(part, child) for part, (_, child) in zip(array.flatten(), node.children, strict=True)
            ]
            rows = zip(*parts, strict=True) if parts else [()] * len(array)
            return [dict(zip(names, row, strict=True)) if ok else None for row, ok in zip(rows, valid, strict=True)]
        case "array" | "map":
            child = node.children[0][1]
            ends = array.offsets.to_pylist()
            spans = [slice(*span) for span in pairwise(ends)]
            items = _python_values(array.values if node.kind == "array" else array.items, child)
            if node.kind == "array":
                return [items[span] if ok else None for span, ok in zip(spans, valid, strict=True)]
            keys = array.keys.to_pylist()
            pairs = [dict(zip(keys[span], items[span], strict=True)) for span in spans]
            return [pair if ok else None for pair, ok in zip(pairs, valid, strict=True)]
        case "int" | "long":
            array = array.cast(_RAW[node.kind])
    values: list[Any] = array.to_pylist()
    return values
