"""Keys of the metadata table's column_stats records, and which file group has a key. Pure.

A key is three hashes in Base64 (org.apache.hudi.common.util.hash.HashID): of the column and of the partition XXH64, of
the file's name MD5.
"""

from __future__ import annotations

import base64
import hashlib
from functools import lru_cache
from typing import Final

from hudi_assets.engine.table.metadata.records import partition_key

_SEED: Final = 0xFFFFFFFFDABADABA  # an int of Java, with its sign
_MASK: Final = (1 << 64) - 1
_P1: Final = 0x9E3779B185EBCA87
_P2: Final = 0xC2B2AE3D27D4EB4F
_P3: Final = 0x165667B19E3779F9
_P4: Final = 0x85EBCA77C2B2AE63
_P5: Final = 0x27D4EB2F165667C5


def column_key(column: str) -> str:
    """What the keys of a column's records start with."""
    return _short(column)


def stats_key(column: str, partition: str, file_name: str) -> str:
    """The key of a file's record for a column; `partition` is a path."""
    digest = base64.b64encode(hashlib.md5(file_name.encode(), usedforsecurity=False).digest()).decode("ascii")
    return column_key(column) + _short(partition_key(partition)) + digest


def group_of(key: str, groups: int) -> int:
    """The number of the file group that has a key (HoodieTableMetadataUtil.mapRecordKeyToFileGroupIndex)."""
    number = 0
    for letter in key:
        number = (31 * number + ord(letter)) & 0xFFFFFFFF
    return abs(number - (1 << 32) if number >> 31 else number) % groups


@lru_cache(maxsize=4096)
def _short(text: str) -> str:
    return base64.b64encode(xxh64(text.encode()).to_bytes(8, "big")).decode("ascii")


def xxh64(data: bytes, seed: int = _SEED) -> int:
    """XXH64 of some bytes."""
    at, size = 0, len(data)
    if size >= 32:
        lanes = [(seed + _P1 + _P2) & _MASK, (seed + _P2) & _MASK, seed, (seed - _P1) & _MASK]
        while at + 32 <= size:
            lanes = [_round(lane, _word(data, at + 8 * n, 8)) for n, lane in enumerate(lanes)]
            at += 32
        result = sum(_rotate(lane, by) for lane, by in zip(lanes, (1, 7, 12, 18), strict=True)) & _MASK
        for lane in lanes:
            result = ((result ^ _round(0, lane)) * _P1 + _P4) & _MASK
    else:
        result = (seed + _P5) & _MASK
    result = (result + size) & _MASK
    while at + 8 <= size:
        result = (_rotate(result ^ _round(0, _word(data, at, 8)), 27) * _P1 + _P4) & _MASK
        at += 8
    if at + 4 <= size:
        result = (_rotate(result ^ _word(data, at, 4) * _P1 & _MASK, 23) * _P2 + _P3) & _MASK
        at += 4
    for byte in data[at:]:
        result = _rotate(result ^ byte * _P5 & _MASK, 11) * _P1 & _MASK
    result = (result ^ result >> 33) * _P2 & _MASK
    result = (result ^ result >> 29) * _P3 & _MASK
    return result ^ result >> 32


def _round(lane: int, word: int) -> int:
    return _rotate((lane + word * _P2) & _MASK, 31) * _P1 & _MASK


def _rotate(value: int, by: int) -> int:
    return (value << by | value >> 64 - by) & _MASK


def _word(data: bytes, at: int, size: int) -> int:
    return int.from_bytes(data[at : at + size], "little")
