"""Avro schemas ↔ Arrow schemas, in the shape that Hudi's Spark writer gives them. Pure.

Arrow types are the plain ones (`string`, `binary`, `list`), never the large ones or dictionaries.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import pyarrow as pa

from hudi_assets.engine.errors import InvalidInput

META_COLUMNS = (
    "_hoodie_commit_time",
    "_hoodie_commit_seqno",
    "_hoodie_record_key",
    "_hoodie_partition_path",
    "_hoodie_file_name",
)
"""HoodieRecord.HOODIE_META_COLUMNS, in the order in which Hudi puts them first."""

_PRIMITIVES: Mapping[str, pa.DataType] = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "bytes": pa.binary(),
}
_LOGICAL: Mapping[tuple[str, str], pa.DataType] = {
    ("int", "date"): pa.date32(),
    ("int", "time-millis"): pa.time32("ms"),
    ("long", "time-micros"): pa.time64("us"),
    ("long", "timestamp-millis"): pa.timestamp("ms", "UTC"),
    ("long", "timestamp-micros"): pa.timestamp("us", "UTC"),
    ("long", "timestamp-nanos"): pa.timestamp("ns", "UTC"),
    ("long", "local-timestamp-millis"): pa.timestamp("ms"),
    ("long", "local-timestamp-micros"): pa.timestamp("us"),
    ("long", "local-timestamp-nanos"): pa.timestamp("ns"),
}
_MAX_DEPTH = 40


@dataclass(frozen=True)
class AvroType:
    """One type of an Avro schema, names resolved, a union with null folded into `nullable`.

    `arrow` is the column type users see. Children: a record's fields, or one ("element"/"value") of an
    array or map.
    """

    kind: str
    arrow: pa.DataType
    nullable: bool = False
    null_first: bool = True
    size: int = 0
    symbols: tuple[str, ...] = ()
    children: tuple[tuple[str, AvroType], ...] = ()

    @property
    def takes_no_bytes(self) -> bool:
        """True if a value may be encoded in no bytes at all: an array of such could claim any length."""
        if self.nullable:
            return False
        if self.kind == "record":
            return all(child.takes_no_bytes for _, child in self.children)
        return self.kind == "null" or (self.kind == "fixed" and self.size == 0)

    def walk(self) -> list[AvroType]:
        return [self] + [node for _, child in self.children for node in child.walk()]


@lru_cache(maxsize=256)
def parse_avro_schema(schema_json: str) -> AvroType:
    """The record type of an Avro schema; InvalidInput, naming the field, for what is not handled."""
    try:
        schema = json.loads(schema_json)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"The Avro schema is not JSON: {error}.") from error
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise InvalidInput("The Avro schema of a table has to be a record.")
    return _Parser().parse(schema, "", ())


class _Parser:
    """Resolves names (Avro allows a type's second use by name) while it walks the JSON."""

    def __init__(self) -> None:
        self._named: dict[str, AvroType | None] = {}

    def parse(self, schema: Any, namespace: str, where: tuple[str, ...]) -> AvroType:
        if len(where) > _MAX_DEPTH:
            raise _refused(where[:3], "is nested too deeply")
        if isinstance(schema, list):
            return self._union(schema, namespace, where)
        if isinstance(schema, str):
            return self._by_name(schema, namespace, where)
        if not isinstance(schema, dict) or "type" not in schema:
            raise _refused(where, f"has a type that is no Avro type: {json.dumps(schema)[:60]}")
        kind = schema["type"]
        if isinstance(kind, (dict, list)):
            return self.parse(kind, namespace, (*where, "type"))
        match kind:
            case "record" | "error":
                return self._record(schema, namespace, where)
            case "enum" | "fixed":
                return self._leaf_named(kind, schema, namespace, where)
            case "array":
                item = self.parse(schema.get("items"), namespace, (*where, "element"))
                if item.takes_no_bytes:
                    raise _refused(where, "is an array of empty values, which is not handled")
                return AvroType("array", pa.list_(_arrow_field("element", item)), children=(("element", item),))
            case "map":
                value = self.parse(schema.get("values"), namespace, (*where, "value"))
                arrow = pa.map_(pa.string(), _arrow_field("value", value))
                return AvroType("map", arrow, children=(("value", value),))
        plain = self._by_name(kind, namespace, where)
        return replace(plain, arrow=_logical(plain, schema))

    def _by_name(self, name: Any, namespace: str, where: tuple[str, ...]) -> AvroType:
        if isinstance(name, str):
            if name in _PRIMITIVES:
                return AvroType(name, _PRIMITIVES[name])
            for full in (name, f"{namespace}.{name}") if "." in name or not namespace else (f"{namespace}.{name}",):
                if full in self._named:
                    found = self._named[full]
                    if found is None:
                        raise _refused(where, f"is the recursive type {name}, which is not handled")
                    return found
        raise _refused(where, f"has the unknown Avro type {str(name)[:60]!r}")

    def _union(self, branches: list[Any], namespace: str, where: tuple[str, ...]) -> AvroType:
        others = [branch for branch in branches if branch != "null"]
        if len(others) != 1 or len(branches) > 2:
            if branches == ["null"]:
                return AvroType("null", pa.null())
            raise _refused(where, "is a union of several types, which is not handled")
        value = self.parse(others[0], namespace, where)
        if len(branches) == 1:
            return value
        if value.kind == "null" or value.nullable:
            raise _refused(where, "is a union that holds null twice")
        return replace(value, nullable=True, null_first=branches[0] == "null")

    def _full_name(self, schema: dict[str, Any], namespace: str, where: tuple[str, ...]) -> tuple[str, str]:
        """The type's full name, and the namespace for what is inside it."""
        name = schema.get("name")
        if not isinstance(name, str) or not name:
            raise _refused(where, "is a named type without a name")
        if "." not in name:
            inner = schema.get("namespace", namespace)
            name = f"{inner}.{name}" if isinstance(inner, str) and inner else name
        return name, name.rpartition(".")[0]

    def _record(self, schema: dict[str, Any], namespace: str, where: tuple[str, ...]) -> AvroType:
        name, inner = self._full_name(schema, namespace, where)
        self._named[name] = None
        children: list[tuple[str, AvroType]] = []
        fields = schema.get("fields")
        for field in fields if isinstance(fields, list) else [None]:
            if not isinstance(field, dict) or not isinstance(field.get("name"), str) or "type" not in field:
                raise _refused(where, "is a record whose fields do not have a name and a type")
            path = (*where, field["name"])
            children.append((field["name"], self.parse(field["type"], inner, path)))
        if len({child for child, _ in children}) < len(children):
            raise _refused(where, "is a record with a field name used twice")
        arrow = pa.struct([_arrow_field(child, node) for child, node in children])
        self._named[name] = found = AvroType("record", arrow, children=tuple(children))
        return found

    def _leaf_named(self, kind: str, schema: dict[str, Any], namespace: str, where: tuple[str, ...]) -> AvroType:
        name, _ = self._full_name(schema, namespace, where)
        if kind == "enum":
            symbols = schema.get("symbols")
            if not isinstance(symbols, list) or not all(isinstance(symbol, str) for symbol in symbols):
                raise _refused(where, "is an enum without symbols")
            found = AvroType("enum", pa.string(), symbols=tuple(symbols))
        else:
            size = schema.get("size")
            if isinstance(size, bool) or not isinstance(size, int) or not 0 <= size < 2**31:
                raise _refused(where, "is a fixed type without a size")
            # Not Arrow's fixed-size binary: nulls there take the size that the schema claims, whatever it is.
            found = AvroType("fixed", pa.binary(), size=size)
            found = replace(found, arrow=_logical(found, schema))
        self._named[name] = found
        return found


def _refused(where: tuple[str, ...], what: str) -> InvalidInput:
    name = ".".join(where) if where else "The schema"
    return InvalidInput(f"Field {name} {what}." if where else f"{name} {what}.")


def _logical(plain: AvroType, schema: dict[str, Any]) -> pa.DataType:
    """The Arrow type of a logical type; an unknown or wrong one is ignored, as Avro asks."""
    logical = schema.get("logicalType")
    if not isinstance(logical, str):
        return plain.arrow
    if logical == "decimal" and plain.kind in ("bytes", "fixed"):
        precision, scale = schema.get("precision"), schema.get("scale", 0)
        if isinstance(precision, int) and isinstance(scale, int) and 0 <= scale <= precision and 0 < precision <= 76:
            return pa.decimal128(precision, scale) if precision <= 38 else pa.decimal256(precision, scale)
        return plain.arrow
    return _LOGICAL.get((plain.kind, logical), plain.arrow)


def avro_to_arrow_schema(schema_json: str) -> pa.Schema:
    """The columns of records with this Avro schema. Enums are strings, fixed is binary."""
    record = parse_avro_schema(schema_json)
    return pa.schema([_arrow_field(name, node) for name, node in record.children])


def _arrow_field(name: str, node: AvroType) -> pa.Field:
    return pa.field(name, node.arrow, node.nullable or node.kind == "null")


# ------------------------------------------------------------------------------------------ Arrow → Avro


def record_name(table_name: str) -> tuple[str, str]:
    """The record name and namespace that Hudi's Spark writer gives a table (AvroConversionUtils).

    What Avro's names cannot hold is `__` there (HoodieAvroUtils.sanitizeName).
    """
    first, rest = table_name[:1], table_name[1:]
    name = re.sub("[^A-Za-z_]", "__", first) + re.sub("[^A-Za-z0-9_]", "__", rest)
    return f"{name}_record", f"hoodie.{name}"


def arrow_to_avro_schema(schema: pa.Schema, name: str, namespace: str) -> str:
    """The Avro schema JSON that Hudi's Spark writer would write for these columns (SchemaConverters).

    Nullable is a union with null first and a null default; timestamps are micros, decimals are fixed; nested
    records and fixed types are named after their path, so that no name is used twice.
    InvalidInput, naming the column, for types that Spark has no Avro form of.
    """
    return json.dumps(_avro_record(list(schema), name, namespace, ()), separators=(",", ":"), ensure_ascii=False)


def _avro_record(fields: list[pa.Field], name: str, namespace: str, where: tuple[str, ...]) -> dict[str, Any]:
    inner = f"{namespace}.{name}" if namespace else name
    entries = []
    for field in fields:
        entry: dict[str, Any] = {"name": field.name}
        entry["type"] = _avro_field_type(field, field.name, inner, (*where, field.name))
        if field.name in META_COLUMNS:
            entry["doc"] = ""  # as HoodieAvroUtils.addMetadataFields leaves it
        if field.nullable:
            entry["default"] = None
        entries.append(entry)
    record: dict[str, Any] = {"type": "record", "name": name}
    if namespace:
        record["namespace"] = namespace
    return {**record, "fields": entries}


def _avro_field_type(field: pa.Field, name: str, namespace: str, where: tuple[str, ...]) -> Any:
    kind = _avro_type(field.type, name, namespace, where)
    return ["null", kind] if field.nullable and kind != "null" else kind


_FROM_ARROW: tuple[tuple[Any, Any], ...] = (
    (pa.types.is_boolean, "boolean"),
    (lambda t: t in (pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint16()), "int"),
    (lambda t: t in (pa.int64(), pa.uint32()), "long"),
    (lambda t: t in (pa.float16(), pa.float32()), "float"),
    (pa.types.is_float64, "double"),
    (lambda t: pa.types.is_string(t) or pa.types.is_large_string(t) or pa.types.is_string_view(t), "string"),
    (lambda t: pa.types.is_binary(t) or pa.types.is_large_binary(t) or pa.types.is_binary_view(t), "bytes"),
    (pa.types.is_date, {"type": "int", "logicalType": "date"}),
    (pa.types.is_time32, {"type": "int", "logicalType": "time-millis"}),
    (pa.types.is_time64, {"type": "long", "logicalType": "time-micros"}),
    (pa.types.is_null, "null"),
)


def _avro_type(kind: pa.DataType, name: str, namespace: str, where: tuple[str, ...]) -> Any:
    for matches, avro in _FROM_ARROW:
        if matches(kind):
            return avro
    if pa.types.is_timestamp(kind):
        logical = "timestamp-micros" if kind.tz is not None else "local-timestamp-micros"
        return {"type": "long", "logicalType": logical}
    if pa.types.is_decimal(kind):
        return {
            "type": "fixed",
            "name": "fixed",
            "namespace": f"{namespace}.{name}",
            "size": decimal_bytes(kind.precision),
            "logicalType": "decimal",
            "precision": kind.precision,
            "scale": kind.scale,
        }
    if pa.types.is_fixed_size_binary(kind):
        return {"type": "fixed", "name": "fixed", "namespace": f"{namespace}.{name}", "size": kind.byte_width}
    if pa.types.is_dictionary(kind):
        return _avro_type(kind.value_type, name, namespace, where)
    if pa.types.is_map(kind):
        if not (pa.types.is_string(kind.key_type) or pa.types.is_large_string(kind.key_type)):
            raise _refused(where, f"is a map with keys of type {kind.key_type}; Avro's map keys are strings")
        return {
            "type": "map",
            "values": _avro_field_type(kind.item_field, name, namespace, (*where, "value")),
        }
    if is_list(kind):
        return {
            "type": "array",
            "items": _avro_field_type(kind.value_field, name, namespace, (*where, "element")),
        }
    if pa.types.is_struct(kind):
        return _avro_record(list(kind), name, namespace, where)
    raise _refused(where, f"has the type {kind}, which Avro cannot hold")


def is_list(kind: pa.DataType) -> bool:
    """True for each of Arrow's types that is an array in Avro."""
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def decimal_bytes(precision: int) -> int:
    """The fewest bytes whose two's complement holds every decimal of this precision."""
    size = 1
    while 2 ** (8 * size - 1) < 10**precision:
        size += 1
    return size


def with_meta_columns(schema: pa.Schema) -> pa.Schema:
    """The schema with Hudi's five meta columns first (nullable strings); each of them once."""
    meta = [pa.field(name, pa.string()) for name in META_COLUMNS]
    return pa.schema([*meta, *(field for field in schema if field.name not in META_COLUMNS)])
