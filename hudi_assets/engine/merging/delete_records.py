"""Ordering values of deletes: between the ordering column's Arrow type and what Java compares. Pure.

Java compares a delete's ordering value with a row's only when both have one class, and takes a row's
value raw from Avro: a timestamp is a long in its column's unit, a date a LocalDate.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

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
    """A delete block's records with ordering values in the ordering column's Arrow type.

    `type_` None: the table has no ordering field, so all of them are deletes in commit order.
    """
    if type_ is None:
        keys = pa.array([record.record_key for record in records], pa.string())
        return Deletes(keys, pa.nulls(len(records), pa.int64()))
    values = [None if record.natural_order else _raw(record, type_) for record in records]
    storage = _storage_type(type_)
    ordering = pa.array(values, storage)
    return Deletes(
        pa.array([record.record_key for record in records], pa.string()),
        ordering if storage == type_ else ordering.cast(type_),
    )


def _storage_type(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(type_):
        return pa.int64()
    return pa.int32() if pa.types.is_date32(type_) else type_


def _raw(record: DeleteRecord, type_: pa.DataType) -> object:
    value = record.ordering_value
    if pa.types.is_timestamp(type_) and isinstance(value, int):
        if record.ordering_type is OrderingType.TIMESTAMP_MICROS:
            return value // _MICROS_PER[type_.unit]
        return value
    if pa.types.is_integer(type_) and isinstance(value, float):
        return int(value)
    if pa.types.is_string(type_) and not isinstance(value, str):
        return str(value)
    return value
