"""Required fields inside null structs: Parquet has no place for "nothing" there, so a value stands in. Pure."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa


def with_stand_ins(table: pa.Table) -> pa.Table:
    """The same rows, as pyarrow's Parquet writer takes them.

    Where a struct is null its required fields are null in Arrow too, and the writer refuses that. What stands
    there is not part of any value, so it becomes a zero, an empty text or an empty list.
    """
    columns = [
        pa.chunked_array([_filled(chunk, field) for chunk in column.chunks], type=field.type)
        if _inside_nullable(field)
        else column
        for column, field in zip(table.columns, table.schema, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=table.schema)


def _inside_nullable(field: pa.Field, nullable: bool = False) -> bool:
    """True where a struct that may be null has, at some depth, a field that may not."""
    kind = field.type
    if pa.types.is_struct(kind):
        below = nullable or field.nullable
        return any((below and not child.nullable) or _inside_nullable(child, below) for child in kind)
    if pa.types.is_list(kind):
        return _inside_nullable(kind.value_field)
    return bool(pa.types.is_map(kind)) and _inside_nullable(kind.item_field)


def _filled(array: pa.Array, field: pa.Field, required: bool = False) -> pa.Array:
    """The array with its structs' required fields filled; `required`: without any null of its own."""
    kind = field.type
    mask = None if required or not array.null_count else array.is_null()
    if pa.types.is_struct(kind):
        array = _from_zero(array)
        children = [_filled(array.field(i), kind.field(i), not kind.field(i).nullable) for i in range(kind.num_fields)]
        return pa.StructArray.from_arrays(children, fields=list(kind), mask=mask)
    if pa.types.is_list(kind) and (required or _inside_nullable(field)):
        array = _from_zero(array)
        values = _filled(array.values, kind.value_field)
        return pa.ListArray.from_arrays(array.offsets, values, type=kind, mask=mask)
    if pa.types.is_map(kind) and (required or _inside_nullable(field)):
        array = _from_zero(array)
        items = _filled(array.items, kind.item_field)
        return pa.MapArray.from_arrays(array.offsets, array.keys, items, type=kind, mask=mask)
    return array.fill_null(_zero(kind)) if required and array.null_count else array


def _from_zero(array: pa.Array) -> pa.Array:
    """The same values from offset 0, nulls without anything below them."""
    return array.take(pa.array(range(len(array)), pa.int64())) if array.offset or array.null_count else array


def _zero(kind: pa.DataType) -> pa.Scalar:
    if pa.types.is_string(kind):
        return pa.scalar("", kind)
    if pa.types.is_binary(kind):
        return pa.scalar(b"", kind)
    if pa.types.is_decimal(kind):
        return pa.scalar(Decimal(0), kind)
    # Dates and times are numbers underneath.
    return pa.array([0], pa.int32() if kind.bit_width <= 32 else pa.int64()).cast(kind)[0]
