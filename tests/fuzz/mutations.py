"""Damage: what a broken disk, a torn write or somebody's malice makes of bytes."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

HOSTILE_NUMBERS = (
    *(0, 1, -1, 127, 128, 255, 256, 65_535, 65_536),
    *(2**31 - 1, 2**31, -(2**31), 2**32, 2**40, 2**62, 2**63 - 1, -(2**63)),
)
HOSTILE_TEXT = (
    *("", ".", "..", "../../outside", "/etc/passwd", "a/../../../outside", "p=a/../../x", "nul\0nul", "\ud800"),
    *(".hoodie", ".hoodie/hoodie.properties", "%2e%2e/x", "x" * 100_000, "-1", "9" * 40, "NaN", "null", "٣", "🦀"),
)
HOSTILE_VALUES: tuple[Any, ...] = (
    *(None, True, [], {}, 0, -1, 1.5, 2**31, 2**63, -(2**63) - 1, 10**400, 1e308),
    *([[]], {"": {}}, ["x"], [None], {"a": None}, *HOSTILE_TEXT),
)

Mutation = Callable[[random.Random, bytes], bytes]


def flip(rng: random.Random, data: bytes) -> bytes:
    """One to eight bytes, each changed in one bit or wholly."""
    out = bytearray(data)
    for _ in range(rng.randint(1, 8)):
        at = rng.randrange(len(out))
        out[at] = out[at] ^ (1 << rng.randrange(8)) if rng.random() < 0.5 else rng.randrange(256)
    return bytes(out)


def cut_end(rng: random.Random, data: bytes) -> bytes:
    return data[: rng.randrange(len(data))]


def cut_middle(rng: random.Random, data: bytes) -> bytes:
    start = rng.randrange(len(data))
    return data[:start] + data[start + rng.randint(1, 200) :]


def insert(rng: random.Random, data: bytes) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + rng.randbytes(rng.randint(1, 64)) + data[at:]


def repeat(rng: random.Random, data: bytes) -> bytes:
    start = rng.randrange(len(data))
    end = min(len(data), start + rng.randint(1, 400))
    return data[:end] + data[start:end] * rng.randint(1, 3) + data[end:]


def blank(rng: random.Random, data: bytes) -> bytes:
    start = rng.randrange(len(data))
    end = min(len(data), start + rng.randint(1, 64))
    return data[:start] + bytes([rng.choice((0, 255))]) * (end - start) + data[end:]


def big_endian(rng: random.Random, data: bytes) -> bytes:
    """A hostile size where a log file or an Avro block keeps one."""
    return _put(rng, data, _wrapped(rng.choice(HOSTILE_NUMBERS), rng.choice((4, 8)), "big"))


def little_endian(rng: random.Random, data: bytes) -> bytes:
    return _put(rng, data, _wrapped(rng.choice(HOSTILE_NUMBERS), rng.choice((4, 8)), "little"))


def varint(rng: random.Random, data: bytes) -> bytes:
    """A hostile number in Avro's (and Thrift's) variable-length form, in the place of a byte."""
    number = rng.choice(HOSTILE_NUMBERS)
    value, out = ((number << 1) ^ (number >> 63)) & (2**64 - 1), bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    at = rng.randrange(len(data))
    return data[:at] + bytes(out) + data[at + rng.choice((0, 1, len(out))) :]


def _wrapped(number: int, width: int, order: Any) -> bytes:
    return (number % 2 ** (8 * width)).to_bytes(width, order)


def _put(rng: random.Random, data: bytes, new: bytes) -> bytes:
    at = rng.randrange(max(1, len(data) - len(new) + 1))
    return data[:at] + new + data[at + len(new) :]


BYTES: tuple[Mutation, ...] = (
    *(flip, flip, cut_end, cut_middle, insert, repeat, blank),
    *(big_endian, big_endian, little_endian, varint, varint),
)


def damage(rng: random.Random, data: bytes) -> tuple[str, bytes]:
    """One kind of damage, by name."""
    if not data:
        return "bytes for none", rng.randbytes(rng.randint(1, 100))
    mutation = rng.choice(BYTES)
    return mutation.__name__, mutation(rng, data)


def damage_json(rng: random.Random, data: bytes) -> tuple[str, bytes]:
    """One place of a JSON document replaced by a hostile value, or its text damaged."""
    kind = rng.random()
    if kind < 0.05:
        return "nested deeply", rng.choice((b"[" * 200_000, b'{"a":' * 200_000))
    if kind < 0.1:
        return "hostile document", json.dumps(rng.choice(HOSTILE_VALUES)).encode()
    if kind < 0.3:
        return damage(rng, data)
    try:
        body = json.loads(data)
    except ValueError:
        return damage(rng, data)
    places: list[tuple[Any, Any]] = []

    def collect(node: Any) -> None:
        items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
        for key, value in items:
            places.append((node, key))
            collect(value)

    collect(body)
    node, key = rng.choice(places)
    value = rng.choice(HOSTILE_VALUES)
    if isinstance(node, dict) and rng.random() < 0.2:
        node[rng.choice(HOSTILE_TEXT)] = node.pop(key)
        return f"key {key}", json.dumps(body).encode()
    node[key] = value
    return f"{key}={str(value)[:40]!r}", json.dumps(body).encode()
