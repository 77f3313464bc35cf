"""The content of delete blocks (org.apache.hudi.common.table.log.block.HoodieDeleteBlock), content version 3.

int32 version, int32 length, then one Avro HoodieDeleteRecordList: per record its key, its partition path and
its ordering value, wrapped in a record that names the value's type (HoodieAvroUtils.wrapValueIntoAvro).
"""

from __future__ import annotations

import io
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Any, TypeAlias

import fastavro

from hudi_assets.engine.errors import CorruptTable, InvalidInput, UnsupportedTable

# HoodieLogBlock.version: the version that data and delete contents start with.
CONTENT_VERSION = 3

OrderingValue: TypeAlias = bool | int | float | str | bytes | Decimal | tuple[Any, ...]

_PACKAGE = "org.apache.hudi.avro.model."
# DecimalWrapper carries every decimal at this precision and scale.
_DECIMAL_PRECISION, _DECIMAL_SCALE = 30, 15


class OrderingType(StrEnum):
    """The type of an ordering value. Java compares values of one type only: with another, the delete wins."""

    BOOLEAN = "boolean"
    INT = "int"
    LONG = "long"
    FLOAT = "float"
    DOUBLE = "double"
    BYTES = "bytes"
    STRING = "string"
    DATE = "date"
    DECIMAL = "decimal"
    TIME_MICROS = "time-micros"
    TIMESTAMP_MICROS = "timestamp-micros"
    LOCAL_DATE = "local-date"
    ARRAY = "array"


# In the order of the union's branches after null: the branch number is part of the format.
_WRAPPERS: tuple[tuple[str, OrderingType, str], ...] = (
    ("BooleanWrapper", OrderingType.BOOLEAN, "boolean"),
    ("IntWrapper", OrderingType.INT, "int"),
    ("LongWrapper", OrderingType.LONG, "long"),
    ("FloatWrapper", OrderingType.FLOAT, "float"),
    ("DoubleWrapper", OrderingType.DOUBLE, "double"),
    ("BytesWrapper", OrderingType.BYTES, "bytes"),
    ("StringWrapper", OrderingType.STRING, "string"),
    ("DateWrapper", OrderingType.DATE, "int"),
    ("DecimalWrapper", OrderingType.DECIMAL, "bytes"),
    ("TimeMicrosWrapper", OrderingType.TIME_MICROS, "long"),
    ("TimestampMicrosWrapper", OrderingType.TIMESTAMP_MICROS, "long"),
)
_NAME_OF = {kind: _PACKAGE + name for name, kind, _ in _WRAPPERS}
_KIND_OF = {name: kind for kind, name in _NAME_OF.items()} | {
    _PACKAGE + "LocalDateWrapper": OrderingType.LOCAL_DATE,
    _PACKAGE + "ArrayWrapper": OrderingType.ARRAY,
}


@dataclass(frozen=True, slots=True)
class DeleteRecord:
    """One deleted key.

    `ordering_value` is the bare number for dates (days), times and timestamps (µs, UTC); text, bytes or a
    Decimal for the rest; of several ordering fields (ARRAY) pairs of a value and its type. The default, int 0,
    is Hudi's "natural order": such a delete wins over every earlier record. `ordering_type` None means: int
    for 0, else by the Python type (a whole number is a long, a float a double).
    """

    record_key: str
    partition_path: str
    ordering_value: OrderingValue = 0
    ordering_type: OrderingType | None = None

    @property
    def natural_order(self) -> bool:
        """True if it deletes whatever came before, without comparing."""
        return self.resolved_type is OrderingType.INT and self.ordering_value == 0

    @property
    def resolved_type(self) -> OrderingType:
        return self.ordering_type or _type_of(self.ordering_value)


def _type_of(value: object) -> OrderingType:
    match value:
        case bool():
            return OrderingType.BOOLEAN
        case int():
            return OrderingType.LONG if value else OrderingType.INT
        case float():
            return OrderingType.DOUBLE
        case str():
            return OrderingType.STRING
        case bytes():
            return OrderingType.BYTES
        case Decimal():
            return OrderingType.DECIMAL
    raise InvalidInput(f"An ordering value cannot be a {type(value).__name__}.")


def _record(name: str, *fields: tuple[str, Any]) -> dict[str, Any]:
    return {
        "type": "record",
        "name": _PACKAGE + name,
        "fields": [{"name": field, "type": kind} for field, kind in fields],
    }


def _schema(with_arrays: bool) -> Any:
    """HoodieDeleteRecordList. Hudi 1.x added a last branch, ArrayWrapper, for several ordering fields."""
    branches: list[Any] = ["null", *(_record(name, ("value", kind)) for name, _, kind in _WRAPPERS)]
    if with_arrays:
        wrapped = ["null", *_NAME_OF.values(), _record("LocalDateWrapper", ("value", "int"))]
        branches.append(_record("ArrayWrapper", ("wrappedValues", ["null", {"type": "array", "items": wrapped}])))
    delete = _record(
        "HoodieDeleteRecord",
        ("recordKey", ["null", "string"]),
        ("partitionPath", ["null", "string"]),
        ("orderingVal", branches),
    )
    return fastavro.parse_schema(
        _record("HoodieDeleteRecordList", ("deleteRecordList", {"type": "array", "items": delete}))
    )


_WRITE_SCHEMA = _schema(with_arrays=False)
_READ_SCHEMA = _schema(with_arrays=True)


def encode_deletes(records: Sequence[DeleteRecord]) -> bytes:
    """The content of a delete block; InvalidInput, naming the key, for a value that its type cannot hold."""
    rows = [
        {
            "recordKey": record.record_key,
            "partitionPath": record.partition_path,
            "orderingVal": _wrap(record),
        }
        for record in records
    ]
    buffer = io.BytesIO()
    try:
        fastavro.schemaless_writer(buffer, _WRITE_SCHEMA, {"deleteRecordList": rows})
    except (ValueError, TypeError, OverflowError, AttributeError) as error:
        raise InvalidInput(f"These deletes cannot be written: {error}.") from error
    data = buffer.getvalue()
    return struct.pack(">ii", CONTENT_VERSION, len(data)) + data


_INT_BITS = {
    OrderingType.INT: 31,
    OrderingType.DATE: 31,
    OrderingType.LONG: 63,
    OrderingType.TIME_MICROS: 63,
    OrderingType.TIMESTAMP_MICROS: 63,
}


def _wrap(record: DeleteRecord) -> tuple[str, dict[str, Any]]:
    kind, value = record.resolved_type, record.ordering_value
    if kind not in _NAME_OF:
        raise InvalidInput(f"An ordering value of type {kind} cannot be written.", where=record.record_key)
    wrapped: Any = value
    if kind in _INT_BITS:
        bound = 1 << _INT_BITS[kind]
        if not isinstance(value, int) or not -bound <= value < bound:
            raise InvalidInput(f"The ordering value {value!r} is no {kind}.", where=record.record_key)
    elif kind is OrderingType.DECIMAL:
        wrapped = _decimal_bytes(value, record.record_key)
    return _NAME_OF[kind], {"value": wrapped}


def _decimal_bytes(value: object, key: str) -> bytes:
    if not isinstance(value, Decimal) or not value.is_finite():
        raise InvalidInput(f"The ordering value {value!r} is no decimal.", where=key)
    sign, digits, exponent = value.as_tuple()
    shift = int(exponent) + _DECIMAL_SCALE
    unscaled = int("".join(map(str, digits)))
    whole, rest = divmod(unscaled, 10**-shift) if shift < 0 else (unscaled * 10**shift, 0)
    if rest or whole >= 10**_DECIMAL_PRECISION:
        raise InvalidInput(
            f"The ordering value {value} does not fit Hudi's decimal({_DECIMAL_PRECISION},{_DECIMAL_SCALE}).",
            where=key,
        )
    signed: int = -whole if sign else whole
    # Java's BigInteger.toByteArray: the shortest two's complement with room for the sign.
    return signed.to_bytes((signed + (signed < 0)).bit_length() // 8 + 1, "big", signed=True)


def decode_deletes(content: bytes | memoryview) -> list[DeleteRecord]:
    """The deletes in a delete block's content.

    UnsupportedTable for content versions 1 and 2 (Java- or Kryo-serialised objects, Hudi before 0.11);
    CorruptTable for anything that is not a delete block's content.
    """
    if len(content) < 8:
        raise CorruptTable("A delete block's content ends within its version and length.")
    version, length = struct.unpack_from(">ii", content)
    if version in (1, 2):
        raise UnsupportedTable(
            f"A delete block of content version {version} holds serialised Java objects.",
            hint="Run a full compaction with Apache Hudi 0.11 or later first.",
        )
    if version != CONTENT_VERSION or length != len(content) - 8:
        raise CorruptTable(f"A delete block's content has version {version} and length {length}.")
    body = io.BytesIO(content[8:])
    try:
        rows: Any = fastavro.schemaless_reader(body, _READ_SCHEMA, None, return_record_name=True)
        records = [_unwrap(row) for row in rows["deleteRecordList"]]
    except (
        EOFError,
        ValueError,
        IndexError,
        TypeError,
        KeyError,
        OverflowError,
        struct.error,
        MemoryError,
    ) as error:
        raise CorruptTable(f"A delete block's content does not parse: {error}.") from error
    if body.tell() != length:
        raise CorruptTable(f"{length - body.tell()} bytes follow the deletes in a delete block.")
    return records


def _unwrap(row: dict[str, Any]) -> DeleteRecord:
    key, partition = row["recordKey"], row["partitionPath"]
    if key is None:
        raise ValueError("a record key is null")
    value, kind = _unwrap_value(row["orderingVal"])
    return DeleteRecord(key, partition or "", value, kind)


def _unwrap_value(wrapped: tuple[str, dict[str, Any]] | None) -> tuple[OrderingValue, OrderingType]:
    if wrapped is None:
        return 0, OrderingType.INT
    name, fields = wrapped
    kind = _KIND_OF[name]
    if kind is OrderingType.ARRAY:
        return tuple(map(_unwrap_value, fields["wrappedValues"] or ())), kind
    value = fields["value"]
    if kind is OrderingType.DECIMAL:
        unscaled = int.from_bytes(value, "big", signed=True)
        if abs(unscaled) >= 10**_DECIMAL_PRECISION:
            raise ValueError(f"a decimal has more than {_DECIMAL_PRECISION} digits")
        digits = tuple(map(int, str(abs(unscaled))))
        return Decimal((int(unscaled < 0), digits, -_DECIMAL_SCALE)), kind
    return value, kind
