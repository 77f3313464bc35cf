"""Avro object container files of the timeline (plans, cleans, rollbacks, savepoints), checked before they are read.

A container brings its own schema, so damaged or hostile bytes decide what a reader does: an array of nulls can
claim any length in no bytes, a recursive type nests until the stack ends, a compressed block can hold anything.
Hudi's own files have none of these, so they are refused. What is left costs memory in proportion to the file.
"""

from __future__ import annotations

import json
import zlib
from typing import Any, Final

from hudi_assets.engine.errors import CorruptTable

_MAGIC: Final = b"Obj\x01"
_SYNC_SIZE: Final = 16
_MAX_DEPTH: Final = 40
_MOST_INFLATED: Final = 256 << 20
_PRIMITIVES: Final = frozenset({"boolean", "int", "long", "float", "double", "string", "bytes"})


class _Unsafe(Exception):
    """What is wrong with a container, in words."""


def checked(data: bytes, what: str, where: str) -> bytes:
    """The bytes of a container, when they are safe to read; `CorruptTable` otherwise.

    `what` names the file's kind for the message ("compaction plan"). That every record can be decoded is not said.
    """
    try:
        _check(data)
    except (_Unsafe, ValueError, RecursionError, zlib.error) as error:
        raise CorruptTable(f"The {what} cannot be parsed: {error}.", where=where) from error
    return data


def checked_schema(schema: Any) -> Any:
    """An Avro schema as JSON has it, when data of it is safe to read; ValueError otherwise."""
    try:
        _SchemaWalk().visit(schema, "", 0)
    except _Unsafe as error:
        raise ValueError(str(error)) from error
    return schema


def _check(data: bytes) -> None:
    cursor = _Cursor(data)
    if cursor.take(len(_MAGIC)) != _MAGIC:
        raise _Unsafe("it is no Avro file")
    header = _header(cursor)
    _SchemaWalk().visit(json.loads(header.get("avro.schema", b"")), "", 0)
    codec = header.get("avro.codec", b"null")
    if codec not in (b"null", b"deflate"):
        raise _Unsafe(f"codec {codec[:20]!r} is not used by Hudi")
    cursor.take(_SYNC_SIZE)
    inflated = 0
    while not cursor.at_end:
        count, size = cursor.long(), cursor.long()
        block = cursor.take(size)
        cursor.take(_SYNC_SIZE)
        if codec == b"deflate":
            size = _inflated_size(block, _MOST_INFLATED - inflated)
            inflated += size
        # Every record takes a byte at least: see _SchemaWalk.
        if not 0 <= count <= size:
            raise _Unsafe(f"{count} records do not fit into {size} bytes")


def _header(cursor: _Cursor) -> dict[str, bytes]:
    header: dict[str, bytes] = {}
    while count := cursor.long():
        if count < 0:
            cursor.long()  # the size in bytes of a block of entries
            count = -count
        if count > cursor.left:
            raise _Unsafe(f"{count} header entries do not fit")
        for _ in range(count):
            key = cursor.take(cursor.long())
            header[str(key, "utf-8")] = cursor.take(cursor.long())
    return header


def _inflated_size(block: bytes, most: int) -> int:
    """The size of a deflated block; the whole is never held."""
    inflate, size, rest = zlib.decompressobj(-15), 0, block
    while rest:
        size += len(inflate.decompress(rest, 1 << 20))
        if size > most:
            raise _Unsafe(f"a compressed block holds more than {most} bytes")
        rest = inflate.unconsumed_tail
    return size


class _Cursor:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def left(self) -> int:
        return len(self._data) - self._at

    @property
    def at_end(self) -> bool:
        return self.left == 0

    def take(self, n: int) -> bytes:
        if not 0 <= n <= self.left:
            raise _Unsafe(f"a length of {n} at byte {self._at} does not fit")
        self._at += n
        return self._data[self._at - n : self._at]

    def long(self) -> int:
        """Avro's variable-length zigzag integer, of ten bytes at most."""
        value = 0
        for shift in range(0, 70, 7):
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return (value >> 1) ^ -(value & 1)
        raise _Unsafe(f"the number at byte {self._at} does not end")


class _SchemaWalk:
    """Refuses recursive types, types nested too deeply, and types whose values may take no bytes."""

    def __init__(self) -> None:
        self._done: set[str] = set()

    def visit(self, schema: Any, namespace: str, depth: int) -> None:
        if depth > _MAX_DEPTH:
            raise _Unsafe("its schema is nested too deeply")
        match schema:
            case str():
                self._name(schema, namespace)
            case list():
                for branch in schema:
                    if branch != "null":
                        self.visit(branch, namespace, depth + 1)
            case {"type": ("record" | "error") as kind, "fields": list(fields)}:
                self._record(schema, kind, fields, namespace, depth)
            case {"type": "array", "items": inner} | {"type": "map", "values": inner}:
                self.visit(inner, namespace, depth + 1)
            case {"type": "enum" | "fixed"}:
                if schema["type"] == "fixed" and not _positive(schema.get("size")):
                    raise _Unsafe("its schema has a fixed type without a size")
                self._done.add(_full_name(schema, namespace))
            case {"type": inner} if inner not in ("record", "error", "array", "map"):
                self.visit(inner, namespace, depth + 1)
            case _:
                raise _Unsafe("its schema is no Avro schema")

    def _record(self, schema: dict[str, Any], kind: str, fields: list[Any], namespace: str, depth: int) -> None:
        if not fields:
            raise _Unsafe(f"its schema has a {kind} without fields")
        name = _full_name(schema, namespace)
        for field in fields:
            if not isinstance(field, dict) or "type" not in field:
                raise _Unsafe("its schema has a field without a type")
            self.visit(field["type"], name.rpartition(".")[0], depth + 1)
        # Known from here on only: a use inside itself would be recursion.
        self._done.add(name)

    def _name(self, name: str, namespace: str) -> None:
        if name in _PRIMITIVES or name in self._done or f"{namespace}.{name}" in self._done:
            return
        raise _Unsafe(f"its schema uses the type {name[:60]!r}, which is recursive, empty or not known")


def _full_name(schema: dict[str, Any], namespace: str) -> str:
    name = schema.get("name")
    if not isinstance(name, str):
        raise _Unsafe("its schema has a type without a name")
    inner = schema.get("namespace", namespace)
    return f"{inner}.{name}" if "." not in name and isinstance(inner, str) and inner else name


def _positive(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1 << 31
