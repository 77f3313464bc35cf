"""Thrift's values as they are on the wire, without stubs: what is read can be written back as it was, whole.

A generated stub drops each field that its release does not know, so a table that was read and written back by it
would lose what a newer metastore keeps there. It would also cost a second and 130 MB to import.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.Thrift import TMessageType, TType


@dataclass(frozen=True)
class Value:
    """A value with its type on the wire (`TType`); of text, the bytes."""

    kind: int
    data: Any

    @property
    def text(self) -> str:
        return str(self.data.decode())


@dataclass
class Struct:
    """A struct by the numbers of its fields."""

    fields: dict[int, Value] = field(default_factory=dict)

    def text(self, number: int) -> str | None:
        found = self.fields.get(number)
        return None if found is None else found.text

    def struct(self, number: int) -> Struct:
        found: Struct = self.fields[number].data
        return found

    def texts(self, number: int) -> dict[str, str]:
        """A map of texts."""
        found = self.fields.get(number)
        return {} if found is None else {key.decode(): value.decode() for key, value in found.data.items}


@dataclass(frozen=True)
class Items:
    """A list, or a set, of values of one kind."""

    kind: int
    items: tuple[Any, ...]


@dataclass(frozen=True)
class Pairs:
    """A map, in the order in which it was sent."""

    keys: int
    values: int
    items: tuple[tuple[Any, Any], ...]


def text(value: str) -> Value:
    return Value(TType.STRING, value.encode())


def whole(value: int) -> Value:
    """An int of 32 bits."""
    return Value(TType.I32, value)


def flag(value: bool) -> Value:
    return Value(TType.BOOL, value)


def structure(fields: dict[int, Value]) -> Value:
    return Value(TType.STRUCT, Struct(fields))


def structures(found: list[dict[int, Value]]) -> Value:
    return Value(TType.LIST, Items(TType.STRUCT, tuple(Struct(fields) for fields in found)))


def listed(values: Iterable[str]) -> Value:
    """A list of texts."""
    return Value(TType.LIST, Items(TType.STRING, tuple(value.encode() for value in values)))


def nothing_of(kind: int) -> Value:
    """An empty list."""
    return Value(TType.LIST, Items(kind, ()))


def texts(pairs: dict[str, str]) -> Value:
    items = tuple((key.encode(), value.encode()) for key, value in pairs.items())
    return Value(TType.MAP, Pairs(TType.STRING, TType.STRING, items))


@dataclass(frozen=True)
class Answer:
    """What a call gave back: the fields of its result, or the server's refusal of the call itself."""

    result: Struct
    refused: str | None = None


def call(protocol: TBinaryProtocol, method: str, arguments: dict[int, Value]) -> Answer:
    """Send a call and wait for its answer."""
    protocol.writeMessageBegin(method, TMessageType.CALL, 0)
    _write_struct(protocol, Struct(arguments))
    protocol.writeMessageEnd()
    protocol.trans.flush()
    _, kind, _ = protocol.readMessageBegin()
    result = _read_struct(protocol)
    protocol.readMessageEnd()
    return Answer(result, (result.text(1) or "no reason given") if kind == TMessageType.EXCEPTION else None)


def _read_struct(protocol: TBinaryProtocol) -> Struct:
    fields = {}
    protocol.readStructBegin()
    while True:
        _, kind, number = protocol.readFieldBegin()
        if kind == TType.STOP:
            break
        fields[number] = Value(kind, _read(protocol, kind))
        protocol.readFieldEnd()
    protocol.readStructEnd()
    return Struct(fields)


def _write_struct(protocol: TBinaryProtocol, struct: Struct) -> None:
    protocol.writeStructBegin("")
    for number, value in struct.fields.items():
        protocol.writeFieldBegin("", value.kind, number)
        _write(protocol, value.kind, value.data)
        protocol.writeFieldEnd()
    protocol.writeFieldStop()
    protocol.writeStructEnd()


def _read(protocol: TBinaryProtocol, kind: int) -> Any:
    if kind == TType.STRUCT:
        return _read_struct(protocol)
    if kind == TType.MAP:
        keys, values, size = protocol.readMapBegin()
        items = tuple((_read(protocol, keys), _read(protocol, values)) for _ in range(size))
        protocol.readMapEnd()
        return Pairs(keys, values, items)
    if kind in (TType.LIST, TType.SET):
        of, size = protocol.readListBegin()
        found = tuple(_read(protocol, of) for _ in range(size))
        protocol.readListEnd()
        return Items(of, found)
    return getattr(protocol, f"read{_PLAIN[kind]}")()


def _write(protocol: TBinaryProtocol, kind: int, data: Any) -> None:
    if kind == TType.STRUCT:
        _write_struct(protocol, data)
    elif kind == TType.MAP:
        protocol.writeMapBegin(data.keys, data.values, len(data.items))
        for key, value in data.items:
            _write(protocol, data.keys, key)
            _write(protocol, data.values, value)
        protocol.writeMapEnd()
    elif kind in (TType.LIST, TType.SET):
        protocol.writeListBegin(data.kind, len(data.items))
        for item in data.items:
            _write(protocol, data.kind, item)
        protocol.writeListEnd()
    else:
        getattr(protocol, f"write{_PLAIN[kind]}")(data)


_PLAIN = {
    TType.BOOL: "Bool",
    TType.BYTE: "Byte",
    TType.DOUBLE: "Double",
    TType.I16: "I16",
    TType.I32: "I32",
    TType.I64: "I64",
    TType.STRING: "Binary",
}
