"""Hudi's bloom filters key by key, slowly: what `engine/format/bloom.py` has to equal, and the reading of a filter."""

from __future__ import annotations

import base64
import math
import struct
from collections.abc import Iterable
from dataclasses import dataclass

_MASK = 0xFFFFFFFF
_M = 0x5BD1E995


def _signed(value: int, bits: int = 32) -> int:
    return value - (1 << bits) if value >> (bits - 1) else value


def murmur(data: bytes, seed: int) -> int:
    """MurmurHash 2 of Hudi, a signed 32-bit number. Of the last one to three bytes the very last counts lowest."""
    h = (seed ^ len(data)) & _MASK
    whole = len(data) - len(data) % 4
    for start in range(0, whole, 4):
        k = int.from_bytes(data[start : start + 4], "little") * _M & _MASK
        k = (k ^ k >> 24) * _M & _MASK
        h = (h * _M & _MASK) ^ k
    left = len(data) - whole
    if left:
        for back in range(1, left + 1):
            h ^= _signed(data[-back], 8) << 8 * (back - 1) & _MASK
        h = h * _M & _MASK
    h ^= h >> 13
    h = h * _M & _MASK
    h ^= h >> 15
    return _signed(h)


def places(key: str, hashes: int, bits: int) -> list[int]:
    data, seed, found = key.encode(), 0, []
    for _ in range(hashes):
        seed = murmur(data, seed & _MASK)
        found.append(abs(math.fmod(seed, bits)))
    return [int(place) for place in found]


def sizes(entries: int, error_rate: float) -> tuple[int, int]:
    """(bits, hashes)."""
    bits = math.ceil(entries * (-math.log(error_rate) / (math.log(2) * math.log(2))))
    return bits, math.ceil(math.log(2) * bits / entries)


def _row(filled: set[int], hashes: int, bits: int) -> bytes:
    body = bytearray((bits + 7) // 8)
    for place in filled:
        body[place // 8] |= 1 << place % 8
    return struct.pack(">iibi", -1, hashes, 1, bits) + bytes(body)


def simple(keys: Iterable[str], entries: int, error_rate: float) -> str:
    bits, hashes = sizes(entries, error_rate)
    filled = {place for key in keys for place in places(key, hashes, bits)}
    return base64.b64encode(_row(filled, hashes, bits)).decode()


def dynamic(keys: Iterable[str], entries: int, error_rate: float, max_entries: int) -> str:
    """As InternalDynamicBloomFilter adds them, one after the other."""
    bits, hashes = sizes(entries, error_rate)
    rows: list[set[int]] = [set()]
    current, over = 0, -1
    for key in keys:
        if over >= 0:
            row = rows[over % len(rows)]
            over += 1
        elif current < entries:
            row = rows[-1]
        elif len(rows) * entries < max_entries:
            rows.append(set())
            row, current = rows[-1], 0
        else:
            row, over = rows[0], 0
        row.update(places(key, hashes, bits))
        current += 1
    head = struct.pack(">iibi", -1, hashes, 1, bits) + struct.pack(">iii", entries, current, len(rows))
    return base64.b64encode(head + b"".join(_row(row, hashes, bits) for row in rows)).decode()


@dataclass(frozen=True)
class Read:
    """A filter as a reader has it."""

    hashes: int
    bits: int
    rows: tuple[bytes, ...]

    def might_contain(self, key: str) -> bool:
        wanted = places(key, self.hashes, self.bits)
        return any(all(row[place // 8] >> place % 8 & 1 for place in wanted) for row in self.rows)


def read(text: str, kind: str) -> Read:
    """A filter from its text. `kind`: SIMPLE or DYNAMIC_V0."""
    data = base64.b64decode(text)
    head = 13
    if kind == "DYNAMIC_V0":
        _, hashes, _, bits, _, _, count = struct.unpack_from(">iibiiii", data)
        start = 25
    else:
        _, hashes, _, bits = struct.unpack_from(">iibi", data)
        start, count = 0, 1
    size = (bits + 7) // 8
    rows = []
    for number in range(count):
        at = start + number * (head + size)
        assert struct.unpack_from(">iibi", data, at) == (-1, hashes, 1, bits)
        rows.append(data[at + head : at + head + size])
    assert len(data) == start + count * (head + size)
    return Read(hashes, bits, tuple(rows))
