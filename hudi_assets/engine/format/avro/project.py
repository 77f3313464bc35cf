"""Bringing a table's columns to another schema: order, missing columns, Avro's type promotions. Pure."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from hudi_assets.engine.errors import InvalidInput
from hudi_assets.engine.format.avro.schema import is_list

_INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
_TIME_UNITS = ("s", "ms", "us", "ns")


def project(table: pa.Table, target: pa.Schema) -> pa.Table:
    """The table with exactly the columns of `target`, in its order.

    A missing column becomes nulls; types widen as Avro's schema resolution allows (int → long → float →
    double, text ↔ bytes) and where nothing is lost (smaller integers, finer time units, more decimal
    digits), and integers become text, as Hudi's readers have it; columns that are not in `target` are left
    out. InvalidInput, naming the column, for anything else: a column missing or null that may not be, a
    narrower or another type.
    """
    columns = []
    for field in target:
        found = table.schema.get_all_field_indices(field.name)
        if len(found) > 1:
            raise InvalidInput(f"There are {len(found)} columns named {field.name}.")
        column = table.column(found[0]) if found else None
        columns.append(_column(column, field, table.num_rows, field.name))
    if not columns:
        return pa.table({"": pa.nulls(table.num_rows)}).select([])
    return pa.Table.from_arrays(columns, schema=target)


def _column(column: pa.ChunkedArray | None, field: pa.Field, rows: int, where: str) -> pa.ChunkedArray:
    if column is None:
        if not field.nullable and rows:
            raise InvalidInput(f"Column {where} is missing, and it may not be null.")
        return pa.chunked_array([pa.nulls(rows, field.type)])
    if not field.nullable and column.null_count:
        raise InvalidInput(f"Column {where} has {column.null_count} nulls, and it may not be null.")
    if column.type == field.type and not _has_required(field.type):
        return column
    chunks = [_widen(chunk, field.type, where) for chunk in column.chunks]
    return pa.chunked_array(chunks, type=field.type)


def _has_required(kind: pa.DataType) -> bool:
    """True if a value nested in the type may not be null: Arrow does not check that itself."""
    children = [kind.field(number) for number in range(kind.num_fields)] if pa.types.is_nested(kind) else []
    if pa.types.is_map(kind):
        children = [kind.item_field]
    return any(not child.nullable or _has_required(child.type) for child in children)


def _widen(array: pa.Array, target: pa.DataType, where: str) -> pa.Array:
    source = array.type
    if pa.types.is_dictionary(source):
        array = array.dictionary_decode()
        source = array.type
    if pa.types.is_struct(source) and pa.types.is_struct(target):
        return _widen_struct(array, target, where)
    if is_list(source) and pa.types.is_list(target):
        return _widen_list(array, target, where)
    if pa.types.is_map(source) and pa.types.is_map(target):
        return _widen_map(array, target, where)
    if source == target:
        return array
    if not (fits(source, target) or _as_text(source, target)):
        raise InvalidInput(f"Column {where} has type {source}, which does not fit {target}.")
    try:
        if pa.types.is_float32(source) and pa.types.is_float64(target):
            # Through text, as all of Hudi's readers have it: 0.1 becomes 0.1, not 0.10000000149….
            array = pc.cast(array, pa.string())
        # Not "safe" only where Avro itself lets digits go: a long as a float or double.
        return pc.cast(array, target, safe=not pa.types.is_floating(target))
    except pa.ArrowException as error:
        raise InvalidInput(f"Column {where} does not fit {target}: {error}.") from error


def fits(source: pa.DataType, target: pa.DataType) -> bool:
    """True where values of a plain type can be kept as values of another: it is the same, or wider.

    Finer time units count, and bytes for text: whole units and UTF-8 fit (`always_fits` leaves them out).
    """
    if source == target or pa.types.is_null(source):
        return True
    if target in _INTEGERS:
        return source in _INTEGERS[: _INTEGERS.index(target) + 1] or _fits_unsigned(source, target)
    if pa.types.is_floating(target):
        narrower = pa.types.is_floating(source) and source.bit_width <= target.bit_width
        return bool(pa.types.is_integer(source) or narrower)
    if pa.types.is_decimal(target):
        return bool(
            pa.types.is_decimal(source)
            and target.scale >= source.scale
            and target.precision - target.scale >= source.precision - source.scale
        )
    if pa.types.is_timestamp(target):
        return bool(pa.types.is_timestamp(source) and (source.tz is None) == (target.tz is None))
    if pa.types.is_time(target):
        return bool(pa.types.is_time(source)) and _finer_or_same(source, target)
    if target == pa.date32():
        return bool(pa.types.is_date(source))
    if target in (pa.string(), pa.binary()):
        return _is_text_or_bytes(source)
    return False


def always_fits(source: pa.DataType, target: pa.DataType) -> bool:
    """True where any value of a type can be kept as another's, of those that `fits` or are nested."""
    if pa.types.is_dictionary(source):
        source = source.value_type
    if pa.types.is_nested(target) and not pa.types.is_null(source):
        return source == target and not _has_required(target)
    if pa.types.is_timestamp(target) and pa.types.is_timestamp(source):
        return _finer_or_same(source, target)
    return not (pa.types.is_string(target) and _is_bytes(source))


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(_is_text_or_bytes(kind) and "binary" in str(kind))


def _as_text(source: pa.DataType, target: pa.DataType) -> bool:
    """True for what a column holds in older files where Hudi's writer has made text of an integer column."""
    return source in (pa.int32(), pa.int64()) and bool(pa.types.is_string(target))


def _fits_unsigned(source: pa.DataType, target: pa.DataType) -> bool:
    return pa.types.is_unsigned_integer(source) and bool(source.bit_width < target.bit_width)


def _finer_or_same(source: pa.DataType, target: pa.DataType) -> bool:
    return _TIME_UNITS.index(source.unit) <= _TIME_UNITS.index(target.unit)


def _is_text_or_bytes(kind: pa.DataType) -> bool:
    tests = (
        pa.types.is_string,
        pa.types.is_large_string,
        pa.types.is_string_view,
        pa.types.is_binary,
        pa.types.is_large_binary,
        pa.types.is_binary_view,
        pa.types.is_fixed_size_binary,
    )
    return any(test(kind) for test in tests)


def _mask(array: pa.Array) -> pa.Array | None:
    return array.is_null() if array.null_count else None


def _child(values: pa.Array, field: pa.Field, where: str) -> pa.Array:
    if not field.nullable and values.null_count:
        raise InvalidInput(f"Column {where} has {values.null_count} nulls, and it may not be null.")
    return _widen(values, field.type, where)


def _unsliced(array: pa.Array) -> pa.Array:
    """The same values from offset 0: the parts of a sliced array are those of the whole."""
    return array if array.offset == 0 else array.take(pa.array(range(len(array)), pa.int64()))


def _widen_struct(array: pa.Array, target: pa.DataType, where: str) -> pa.Array:
    array = _unsliced(array)
    present = array.filter(array.is_valid()) if array.null_count else array
    children = []
    for field in target:
        index = array.type.get_field_index(field.name)
        path = f"{where}.{field.name}"
        if index < 0:
            children.append(_column(None, field, len(array), path).combine_chunks())
            continue
        if not field.nullable and pc.struct_field(present, index).null_count:
            raise InvalidInput(f"Column {path} has nulls, and it may not be null.")
        children.append(_widen(pc.struct_field(array, index), field.type, path))
    if not children:
        return pa.array([{} if valid else None for valid in array.is_valid().to_pylist()], target)
    return pa.StructArray.from_arrays(children, fields=list(target), mask=_mask(array))


def _widen_list(array: pa.Array, target: pa.DataType, where: str) -> pa.Array:
    if not pa.types.is_list(array.type):
        array = pc.cast(array, pa.list_(array.type.value_field))
    array = _unsliced(array)
    used = array.values.slice(0, array.offsets[len(array)].as_py()) if len(array) else array.values[:0]
    values = _child(used, target.value_field, f"{where}.element")
    return pa.ListArray.from_arrays(array.offsets, values, type=target, mask=_mask(array))


def _widen_map(array: pa.Array, target: pa.DataType, where: str) -> pa.Array:
    array = _unsliced(array)
    keys = _widen(array.keys, target.key_type, f"{where}.key")
    items = _child(array.items, target.item_field, f"{where}.value")
    return pa.MapArray.from_arrays(array.offsets, keys, items, type=target, mask=_mask(array))
