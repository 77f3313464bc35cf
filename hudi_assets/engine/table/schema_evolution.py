"""How a table's schema follows the rows that are written: added columns, wider types. Pure.

What may change is what Apache Hudi's writers change by default (HoodieSchemaUtils.deduceWriterSchema,
AvroSchemaUtils.checkValidEvolution) and every reader of theirs then reads rightly.
`docs/reference/schema.md` has the list.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import pyarrow as pa

from hudi_assets.engine.errors import InvalidInput
from hudi_assets.engine.format.avro.project import always_fits, fits
from hudi_assets.engine.format.avro.schema import (
    META_COLUMNS,
    AvroType,
    arrow_to_avro_schema,
    avro_to_arrow_schema,
    is_list,
    parse_avro_schema,
)

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_RESERVED = ("_hoodie_", "_hudi_assets_")
IS_DELETED = "_hoodie_is_deleted"
_CAST = "Cast the rows to the table's type."
_AVRO_OF: Mapping[pa.DataType, str] = {pa.int64(): "long", pa.float32(): "float", pa.float64(): "double"}
_PROMOTIONS: Mapping[pa.DataType, tuple[pa.DataType, ...]] = {
    pa.int32(): (pa.int64(), pa.float32(), pa.float64()),
    pa.int64(): (pa.float32(), pa.float64()),
    pa.float32(): (pa.float64(),),
}
"""Avro's promotions of numbers: a column of the first type may become one of the others."""


def check_columns(schema: pa.Schema) -> None:
    """Refuse, by name, columns of a new table that Apache Hudi's readers could not read."""
    _check_names([field.name for field in schema if field.name not in (IS_DELETED, *META_COLUMNS)], ())
    for field in schema:
        _check_type(field.type, (field.name,))


def evolve(avro_json: str, rows: pa.Schema, fixed: Collection[str] = ()) -> str:
    """The Avro schema (without meta columns) that a table has once rows with these columns are written.

    `avro_json` itself where nothing changes. Columns that the table lacks come last, nullable, also inside structs;
    an int or long becomes the wider number that the rows have; narrower numbers are the table's own type when
    written; a nullable column that the rows lack stays, and is null in them. `InvalidInput`, naming the column and
    both types, for anything else, and for a wider type of a column in `fixed`.
    """
    record = json.loads(avro_json)
    node = parse_avro_schema(avro_json)
    change = _Change(frozenset(fixed), _refers_to_names(record))
    changed = change.record(record, node, list(rows), "", ())
    return avro_json if changed is record else json.dumps(changed, separators=(",", ":"), ensure_ascii=False)


def check_fits(rows: pa.Schema, table: pa.Schema) -> None:
    """Refuse rows, by column, whose values cannot be written as the table's types. Other columns do not count."""
    for field in rows:
        if field.name in table.names and not fits(field.type, table.field(field.name).type):
            raise _unlike(field.name, table.field(field.name).type, field.type)


def by_value(rows: pa.Schema, table: pa.Schema) -> pa.Schema:
    """Those of the table's columns where only the rows' values can tell whether they fit.

    Nulls in required fields of other types, bytes that are no text, digits beyond a timestamp's unit.
    """
    common = [table.field(name) for name in rows.names if name in table.names]
    return pa.schema([field for field in common if not always_fits(rows.field(field.name).type, field.type)])


def with_meta_columns(avro_json: str) -> str:
    """The schema as log blocks and base files carry it: Hudi's meta columns first."""
    record = json.loads(avro_json)
    meta = [{"name": name, "type": ["null", "string"], "doc": "", "default": None} for name in META_COLUMNS]
    fields = [field for field in record["fields"] if field["name"] not in META_COLUMNS]
    return json.dumps({**record, "fields": [*meta, *fields]}, separators=(",", ":"))


def same_types(one: pa.DataType, other: pa.DataType) -> bool:
    """True where two types are one to a reader of Parquet.

    Names of list elements and what may be null do not count: writers of Parquet differ there.
    """
    if pa.types.is_struct(one) and pa.types.is_struct(other):
        names = [field.name for field in one]
        return names == [field.name for field in other] and all(
            same_types(mine.type, theirs.type) for mine, theirs in zip(one, other, strict=True)
        )
    if is_list(one) and is_list(other):
        return same_types(one.value_type, other.value_type)
    if pa.types.is_map(one) and pa.types.is_map(other):
        return same_types(one.key_type, other.key_type) and same_types(one.item_type, other.item_type)
    return bool(one == other)


class _Change:
    """One walk along an Avro schema and the columns of some rows. Unchanged parts are returned as they are."""

    def __init__(self, fixed: frozenset[str], shared: bool) -> None:
        self._fixed = fixed
        # A type that is used again by its name would change in both places.
        self._shared = shared

    def record(
        self, record: dict[str, Any], node: AvroType, rows: list[pa.Field], namespace: str, where: tuple[str, ...]
    ) -> dict[str, Any]:
        found = _by_name(rows, where)
        full = _full_name(record, namespace)
        fields = []
        for entry, (name, child) in zip(record["fields"], node.children, strict=True):
            field = found.pop(name, None)
            if name in META_COLUMNS and not where:
                fields.append(entry)
                continue
            if field is None and not child.nullable:
                raise InvalidInput(
                    f"Column {_path((*where, name))} is missing, and it may not be null.", hint="Give it in each row."
                )
            kind = entry["type"] if field is None else self.type(entry["type"], child, field.type, full, (*where, name))
            fields.append(entry if kind is entry["type"] else {**entry, "type": kind})
        added = self._added(list(found.values()), [name for name, _ in node.children], full, where)
        same = not added and all(new is old for new, old in zip(fields, record["fields"], strict=True))
        return record if same else {**record, "fields": [*fields, *added]}

    def _added(self, fields: list[pa.Field], known: list[str], namespace: str, where: tuple[str, ...]) -> list[Any]:
        if not fields:
            return []
        if where and self._shared:
            raise InvalidInput(
                f"Column {_path((*where, fields[0].name))} is not in the table, and {_path(where)} is of a named type "
                "that the schema uses twice."
            )
        _check_names([field.name for field in fields], where, known)
        for field in fields:
            _check_type(field.type, (*where, field.name))
        nullable = pa.schema([field.with_nullable(True) for field in fields])
        parent, _, name = namespace.rpartition(".")
        added: list[Any] = json.loads(arrow_to_avro_schema(nullable, name, parent))["fields"]
        return added

    def type(self, avro: Any, node: AvroType, rows: pa.DataType, namespace: str, where: tuple[str, ...]) -> Any:
        """The Avro type (JSON value) of a column that has type `rows` in the rows."""
        if isinstance(avro, list):
            branches = [
                branch if branch == "null" else self.type(branch, node, rows, namespace, where) for branch in avro
            ]
            return avro if all(new is old for new, old in zip(branches, avro, strict=True)) else branches
        if pa.types.is_dictionary(rows):
            rows = rows.value_type
        if isinstance(avro, dict) and isinstance(avro["type"], (dict, list)):
            inner = self.type(avro["type"], node, rows, namespace, where)
            return avro if inner is avro["type"] else {**avro, "type": inner}
        if isinstance(avro, dict):
            nested = self._nested(avro, node, rows, namespace, where)
            if nested is not None:
                return nested
        if _fits(rows, node):
            return avro
        return self._wider(avro, node, rows, where)

    def _nested(
        self, avro: dict[str, Any], node: AvroType, rows: pa.DataType, namespace: str, where: tuple[str, ...]
    ) -> dict[str, Any] | None:
        if node.kind == "record" and pa.types.is_struct(rows):
            return self.record(avro, node, list(rows), namespace, where)
        if node.kind == "array" and is_list(rows):
            key, item, part = "items", rows.value_field, "element"
        elif node.kind == "map" and pa.types.is_map(rows):
            key, item, part = "values", rows.item_field, "value"
        else:
            return None
        kind = self.type(avro[key], node.children[0][1], item.type, namespace, (*where, part))
        return avro if kind is avro[key] else {**avro, key: kind}

    def _wider(self, avro: Any, node: AvroType, rows: pa.DataType, where: tuple[str, ...]) -> Any:
        plain = _plain(rows)
        known = avro if isinstance(avro, str) else avro["type"] if "logicalType" not in avro else None
        if plain not in _PROMOTIONS.get(node.arrow, ()) or known not in ("int", "long", "float"):
            raise _refused(where, node, rows, _CAST)
        if len(where) > 1:
            raise _refused(
                where, node, rows, "Types inside structs, arrays and maps stay: Hudi cannot read them wider."
            )
        if where[0] in self._fixed:
            raise _refused(where, node, rows, "The type of a key, partition, ordering or event-time column stays.")
        return _AVRO_OF[plain] if isinstance(avro, str) else {**avro, "type": _AVRO_OF[plain]}


def _fits(rows: pa.DataType, node: AvroType) -> bool:
    """True where the rows' values can be written as the table's type."""
    if node.kind == "record" or pa.types.is_nested(rows):
        return bool(pa.types.is_null(rows))
    return bool(fits(rows, node.arrow))


def _plain(rows: pa.DataType) -> pa.DataType | None:
    """A number's type as Avro has it; None for what is no number."""
    if not (pa.types.is_integer(rows) or pa.types.is_floating(rows)) or rows == pa.uint64():
        return None
    schema = avro_to_arrow_schema(arrow_to_avro_schema(pa.schema([pa.field("x", rows)]), "x", ""))
    return schema.field("x").type


def _refused(where: tuple[str, ...], node: AvroType, rows: pa.DataType, hint: str) -> InvalidInput:
    return _unlike(_path(where), node.arrow, rows, hint)


def _unlike(path: str, table: pa.DataType, rows: pa.DataType, hint: str = _CAST) -> InvalidInput:
    return InvalidInput(f"Column {path} is {table} in the table and {rows} in the rows.", hint=hint)


def _by_name(rows: Iterable[pa.Field], where: tuple[str, ...]) -> dict[str, pa.Field]:
    found: dict[str, pa.Field] = {}
    for field in rows:
        if field.name in found:
            raise InvalidInput(
                f"The rows have column {_path((*where, field.name))} twice.", hint="Name each column once."
            )
        found[field.name] = field
    return found


def _check_names(names: Iterable[str], where: tuple[str, ...], known: Iterable[str] = ()) -> None:
    """Names that Avro has, and that Spark, which does not heed case, can tell apart."""
    seen = {name.lower(): name for name in known}
    for name in names:
        path = _path((*where, name))
        if not _NAME.fullmatch(name):
            raise InvalidInput(
                f"A column cannot be named {path!r}.",
                hint="Avro's names are of letters A to Z, digits and underscores, and begin with no digit.",
            )
        if name.startswith(_RESERVED) and not where:
            raise InvalidInput(
                f"The table has no column {path!r}, and names with {_RESERVED} are taken.", hint="Give it another name."
            )
        if name.lower() in seen:
            raise InvalidInput(
                f"Columns {_path((*where, seen[name.lower()]))!r} and {path!r} have one name to Spark.",
                hint="Give one of them another name.",
            )
        seen[name.lower()] = name


def _check_type(kind: pa.DataType, where: tuple[str, ...]) -> None:
    """Refuse types that Spark has no column of, so that Apache Hudi cannot read the table."""
    if pa.types.is_null(kind):
        raise InvalidInput(f"Column {_path(where)} has no type: all its values are null.", hint="Cast it to one.")
    if pa.types.is_time(kind) or pa.types.is_decimal256(kind) or kind == pa.uint64():
        raise InvalidInput(
            f"Column {_path(where)} is {kind}, which Apache Hudi cannot read in Spark.", hint="Cast it to another type."
        )
    if pa.types.is_struct(kind):
        if not kind.num_fields:
            raise InvalidInput(
                f"Column {_path(where)} is a struct without fields, which Parquet cannot hold.", hint="Leave it out."
            )
        _check_names([field.name for field in kind], where)
        for field in kind:
            _check_type(field.type, (*where, field.name))
    elif is_list(kind):
        _check_type(kind.value_type, (*where, "element"))
    elif pa.types.is_map(kind):
        _check_type(kind.item_type, (*where, "value"))


def _path(where: tuple[str, ...]) -> str:
    return ".".join(where)


def _full_name(record: dict[str, Any], namespace: str) -> str:
    name: str = record.get("name", "record")
    space = record.get("namespace", namespace)
    return name if "." in name or not space else f"{space}.{name}"


def _refers_to_names(schema: Any) -> bool:
    """True where some type of an Avro schema is a name that stands for a record, enum or fixed above."""
    primitive = {"null", "boolean", "int", "long", "float", "double", "string", "bytes"}
    if isinstance(schema, str):
        return schema not in primitive
    if isinstance(schema, list):
        return any(_refers_to_names(branch) for branch in schema)
    match schema["type"]:
        case "record" | "error":
            return any(_refers_to_names(field["type"]) for field in schema["fields"])
        case "array":
            return _refers_to_names(schema["items"])
        case "map":
            return _refers_to_names(schema["values"])
        case "enum" | "fixed":
            return False
    return _refers_to_names(schema["type"])
