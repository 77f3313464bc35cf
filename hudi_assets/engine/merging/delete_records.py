"""Ordering values of deletes: between the ordering column's Arrow type and what Java compares. Pure.

Java compares a delete's ordering value with a row's only when both have one class, and takes a row's
value raw from Avro: a timestamp is a long in its column's unit, a date a LocalDate.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from hudi_assets.engine.errors import UnsupportedTable
from hudi_assets.engine.format.log_file.delete_codec import DeleteRecord, OrderingType
from hudi_assets.engine.merging.merge import Deletes

_MICROS_PER = {"s": 1_000_000, "ms": 1000, "us": 1}


def delete_records(keys: Sequence[str], partition: str, ordering: pa.ChunkedArray) -> list[DeleteRecord]:
    """Deletes that carry the given ordering values; a null one is a delete in commit order."""
    kind = _ordering_type(ordering.type)
    raw = ordering.cast(pa.int64()) if pa.types.is_timestamp(ordering.type) else ordering
    raw = raw.cast(pa.int32()) if pa.types.is_date32(ordering.type) else raw
    return [
        DeleteRecord(key, partition) if value is None else DeleteRecord(key, partition, value, kind)
        for key, value in zip(keys, raw.to_pylist(), strict=True)
    ]


def _ordering_type(type_: pa.DataType) -> OrderingType | None:
    if pa.types.is_timestamp(type_) or pa.types.is_int64(type_):
        return OrderingType.LONG
    if pa.types.is_integer(type_):
        return OrderingType.INT
    if pa.types.is_date32(type_):
        return OrderingType.DATE
    if pa.types.is_float32(type_):
        return OrderingType.FLOAT
    return None  # by the Python type


def as_deletes(records: Sequence[DeleteRecord], type_: pa.DataType | None) -> Deletes:
    """A delete block's records with ordering values in the ordering column's Arrow type, of several ones in a struct.

    `type_` None: the table has no ordering field, so all of them are deletes in commit order.
    """
    keys = pa.array([record.record_key for record in records], pa.string())
    if type_ is None:
        return Deletes(keys, pa.nulls(len(records), pa.int64()))
    if pa.types.is_struct(type_):
        return Deletes(keys, _structs(records, type_))
    values = [
        None if record.natural_order else _raw(record.ordering_value, record.ordering_type, type_) for record in records
    ]
    return Deletes(keys, _stored(values, type_))


def _stored(values: Sequence[object], type_: pa.DataType) -> pa.Array:
    storage = _storage_type(type_)
    try:
        ordering = pa.array(values, storage)
        return ordering if storage == type_ else ordering.cast(type_)
    except (pa.ArrowException, TypeError, OverflowError) as error:
        raise UnsupportedTable(
            f"A delete has an ordering value that the column, which is {type_}, does not hold: {error}.",
            hint="Let the engine that wrote it compact it.",
        ) from error


def _structs(records: Sequence[DeleteRecord], type_: pa.StructType) -> pa.Array:
    """Values of several ordering fields. In one that is not of Integers, Hudi's default, the Integer 0, is a null."""
    fields = list(type_)
    rows = [_values(record, fields) for record in records]
    columns = [_stored([row and row[n] for row in rows], field.type) for n, field in enumerate(fields)]
    return pa.StructArray.from_arrays(columns, fields=fields, mask=pa.array([row is None for row in rows], pa.bool_()))


def _values(record: DeleteRecord, fields: Sequence[pa.Field]) -> list[object] | None:
    if record.natural_order:
        return None
    found = record.ordering_value
    if record.ordering_type is not OrderingType.ARRAY or not isinstance(found, tuple) or len(found) != len(fields):
        raise UnsupportedTable(
            f"The delete of {record.record_key!r} has not the values of all {len(fields)} ordering fields.",
            hint="Its block was written when the table had others. Let the engine that wrote it compact it.",
        )
    return [_value(record, value, kind, field) for (value, kind), field in zip(found, fields, strict=True)]


def _value(record: DeleteRecord, value: object, kind: OrderingType, field: pa.Field) -> object:
    compared = _compared_type(field.type)
    if kind is compared:
        return _raw(value, kind, field.type)
    if kind is OrderingType.INT and value == 0:
        return None
    # Java compares values of one class only: of two the delete wins here, and there Hudi fails.
    raise UnsupportedTable(
        f"The delete of {record.record_key!r} has a {kind} as value of the ordering field {field.name}, which is "
        f"{field.type}: Hudi does not compare it with a row's.",
        hint="Let the engine that wrote it compact it.",
    )


def _compared_type(type_: pa.DataType) -> OrderingType | None:
    """By what type of a delete's value, of several, Hudi 1.2 compares it with a row's (tried); None where it fails."""
    if pa.types.is_timestamp(type_) or pa.types.is_int64(type_):
        return OrderingType.LONG
    of = (
        (pa.types.is_int32, OrderingType.INT),
        (pa.types.is_string, OrderingType.STRING),
        (pa.types.is_decimal, OrderingType.DECIMAL),
        (pa.types.is_float64, OrderingType.DOUBLE),
        (pa.types.is_float32, OrderingType.FLOAT),
        (pa.types.is_boolean, OrderingType.BOOLEAN),
    )
    return next((kind for matches, kind in of if matches(type_)), None)


def _storage_type(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(type_):
        return pa.int64()
    return pa.int32() if pa.types.is_date32(type_) else type_


def _raw(value: object, kind: OrderingType | None, type_: pa.DataType) -> object:
    if pa.types.is_timestamp(type_) and isinstance(value, int):
        if kind is OrderingType.TIMESTAMP_MICROS:
            return value // _MICROS_PER[type_.unit]
        return value
    if pa.types.is_integer(type_) and isinstance(value, float):
        return int(value)
    if pa.types.is_string(type_) and not isinstance(value, str):
        return str(value)
    return value
