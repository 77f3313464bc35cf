"""A table's columns as Spark and Hive write their types, from Arrow's. Needs no PySpark."""

from __future__ import annotations

import json
import re
from typing import Any

import pyarrow as pa

from hudi_assets.engine import UnsupportedTable

# Spark's name in JSON, and in SQL and Hive.
_PLAIN = (
    (pa.types.is_boolean, "boolean", "boolean"),
    (pa.types.is_int8, "byte", "tinyint"),
    (pa.types.is_int16, "short", "smallint"),
    (pa.types.is_int32, "integer", "int"),
    (pa.types.is_int64, "long", "bigint"),
    (pa.types.is_float32, "float", "float"),
    (pa.types.is_float64, "double", "double"),
    (pa.types.is_date32, "date", "date"),
    (pa.types.is_string, "string", "string"),
    (pa.types.is_large_string, "string", "string"),
    (pa.types.is_binary, "binary", "binary"),
    (pa.types.is_large_binary, "binary", "binary"),
    (pa.types.is_fixed_size_binary, "binary", "binary"),
)
# Where Hive has no such type, Spark leaves this in its place and goes by its own schema alone.
NO_HIVE_COLUMNS = [("col", "array<string>", "from deserializer")]
_HIVE_NAME = re.compile(r"\w+")
_LONGEST_HIVE_TYPE = 4000


def sql_type(kind: pa.DataType) -> str:
    """As in Spark's SQL."""
    if pa.types.is_struct(kind):
        return f"struct<{','.join(f'{field.name}:{sql_type(field.type)}' for field in kind)}>"
    if pa.types.is_list(kind):
        return f"array<{sql_type(kind.value_type)}>"
    if pa.types.is_map(kind):
        return f"map<{sql_type(kind.key_type)},{sql_type(kind.item_type)}>"
    name = _plain(kind)
    return next((sql for _, json_name, sql in _PLAIN if json_name == name), name)


def schema_json(schema: pa.Schema) -> str:
    """As Spark keeps a schema in a catalog. Every column may be null: a view's do."""
    return json.dumps(_struct(schema), separators=(",", ":"))


def hive_columns(schema: pa.Schema) -> list[tuple[str, str, str | None]]:
    """Name, type and comment of each column for Hive, or `NO_HIVE_COLUMNS`."""
    if not all(_in_hive(field) for field in schema):
        return list(NO_HIVE_COLUMNS)
    return [(field.name, sql_type(field.type), None) for field in schema]


def _in_hive(field: pa.Field, depth: int = 0) -> bool:
    kind = field.type
    if depth and not _HIVE_NAME.fullmatch(field.name):
        return False
    if pa.types.is_struct(kind):
        return all(_in_hive(inner, depth + 1) for inner in kind) and len(sql_type(kind)) < _LONGEST_HIVE_TYPE
    if pa.types.is_list(kind):
        return _in_hive(pa.field("item", kind.value_type), depth)
    if pa.types.is_map(kind):
        return _in_hive(pa.field("key", kind.key_type), depth) and _in_hive(pa.field("value", kind.item_type), depth)
    return _plain(kind) != "timestamp_ntz"


def _json(kind: pa.DataType) -> Any:
    if pa.types.is_struct(kind):
        return _struct(kind)
    if pa.types.is_list(kind):
        return {"type": "array", "elementType": _json(kind.value_type), "containsNull": True}
    if pa.types.is_map(kind):
        key, value = _json(kind.key_type), _json(kind.item_type)
        return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}
    return _plain(kind)


def _struct(fields: Any) -> dict[str, Any]:
    listed = [{"name": f.name, "type": _json(f.type), "nullable": True, "metadata": {}} for f in fields]
    return {"type": "struct", "fields": listed}


def _plain(kind: pa.DataType) -> str:
    if pa.types.is_timestamp(kind):
        return "timestamp_ntz" if kind.tz is None else "timestamp"
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    for is_kind, name, _ in _PLAIN:
        if is_kind(kind):
            return name
    raise UnsupportedTable(
        f"A column of type {kind} cannot be published: Spark's SQL has no such type.",
        hint="Publish tables that Hudi synced instead (--synced, tables: synced).",
    )
