"""The bloom filter in a base file's footer: Hudi's bloom index asks it whether a key may be in the file. Pure.

Byte for byte what Hudi writes for the same keys in the same order (org.apache.hudi.common.bloom:
InternalDynamicBloomFilter, InternalBloomFilter, HashFunction; org.apache.hudi.common.util.hash.MurmurHash;
HoodieBloomFilterWriteSupport for the footer's keys). `docs/reference/indexes.md` has the layout.
"""

from __future__ import annotations

import base64
import math
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Words = npt.NDArray[np.uint32]
Positions = npt.NDArray[np.int64]

FILTER: Final = "org.apache.hudi.bloomfilter"
TYPE_CODE: Final = "hoodie_bloom_filter_type_code"
MIN_KEY: Final = "hoodie_min_record_key"
MAX_KEY: Final = "hoodie_max_record_key"

_VERSION: Final = -1  # InternalFilter: what came before it had no version and another hash
_MURMUR: Final = 1  # Hash.MURMUR_HASH
_MULTIPLIER: Final = np.uint32(0x5BD1E995)
_HEADER: Final = struct.Struct(">iibi")  # version, hashes, hash type, bits
_ROWS: Final = struct.Struct(">iii")  # entries of a row, keys in the last row, rows
_CHUNK: Final = 1 << 16  # keys hashed at a time: their words stay in the processor's cache


class BloomFilterType(StrEnum):
    """BloomFilterTypeCode: one filter of fixed size, or rows of it up to a bound."""

    SIMPLE = "SIMPLE"
    DYNAMIC_V0 = "DYNAMIC_V0"


@dataclass(frozen=True, slots=True)
class BloomSettings:
    """How a filter is sized (HoodieStorageConfig), Hudi's defaults.

    A filter has room for `entries` keys at false positives of `error_rate`; a dynamic one grows by as much again until
    it holds `max_entries`.
    """

    entries: int = 60_000
    error_rate: float = 1e-9
    max_entries: int = 100_000
    type: BloomFilterType = BloomFilterType.DYNAMIC_V0

    @property
    def bits(self) -> int:
        return math.ceil(self.entries * (-math.log(self.error_rate) / (math.log(2) * math.log(2))))

    @property
    def hashes(self) -> int:
        return math.ceil(math.log(2) * self.bits / self.entries)

    @property
    def most_rows(self) -> int:
        """Rows that a dynamic filter grows to; what comes then goes round them."""
        return max(1, math.ceil(self.max_entries / self.entries))


def bloom_footer(keys: pa.ChunkedArray, settings: BloomSettings) -> dict[str, str]:
    """The footer entries of a base file with these record keys, in the file's order.

    A filter without its type is a simple one.
    """
    footer = {FILTER: serialized(keys, settings)}
    if settings.type is not BloomFilterType.SIMPLE:
        footer[TYPE_CODE] = settings.type.value
    return footer


def key_range(keys: pa.ChunkedArray) -> dict[str, str]:
    """The footer entries of the smallest and greatest record key, in Java's order of text."""
    if not len(keys):
        return {MIN_KEY: "", MAX_KEY: ""}
    if any(_may_be_supplementary(chunk) for chunk in keys.chunks):
        texts = keys.to_pylist()
        return {MIN_KEY: min(texts, key=_utf16), MAX_KEY: max(texts, key=_utf16)}
    bounds: Mapping[str, str] = pc.min_max(keys).as_py()
    return {MIN_KEY: bounds["min"], MAX_KEY: bounds["max"]}


def joined_ranges(one: Mapping[str, str] | None, other: Mapping[str, str]) -> Mapping[str, str]:
    """The range of the keys of two parts of a file (None: nothing yet)."""
    if one is None:
        return other
    return {
        MIN_KEY: min(one[MIN_KEY], other[MIN_KEY], key=_utf16),
        MAX_KEY: max(one[MAX_KEY], other[MAX_KEY], key=_utf16),
    }


def _may_be_supplementary(keys: pa.Array) -> bool:
    """True where some text has characters above U+FFFF: there UTF-16, by which Java orders text, and UTF-8 differ.

    In UTF-8 they begin with a byte from 0xF0 on, which stands nowhere else. What a slice leaves out is looked at too.
    """
    data = keys.buffers()[2]
    return data is not None and bool((np.frombuffer(data, np.uint8) >= 0xF0).any())


def _utf16(text: str) -> bytes:
    return text.encode("utf-16-be", "surrogatepass")


# ----------------------------------------------------------------------------------------- the filter


def serialized(keys: pa.ChunkedArray, settings: BloomSettings) -> str:
    """A filter that holds the keys, in Hudi's Base64 text."""
    count = len(keys)
    dynamic = settings.type is BloomFilterType.DYNAMIC_V0
    rows = min(settings.most_rows, max(1, math.ceil(count / settings.entries))) if dynamic else 1
    filled = np.zeros((rows, settings.bits), np.bool_)
    for first, positions in _positions(keys, settings):
        owners = _owners(np.arange(first, first + len(positions)), rows, settings) if rows > 1 else None
        if owners is None:
            filled[0, positions.ravel()] = True
        else:
            filled[owners[:, None], positions] = True
    header = _HEADER.pack(_VERSION, settings.hashes, _MURMUR, settings.bits)
    parts = [header + np.packbits(row, bitorder="little").tobytes() for row in filled]
    if dynamic:
        last = count - settings.entries * (rows - 1)
        parts.insert(0, header + _ROWS.pack(settings.entries, last, rows))
    return base64.b64encode(b"".join(parts)).decode("ascii")


def _owners(numbers: Positions, rows: int, settings: BloomSettings) -> Positions:
    """The row that each key goes to, by the key's number in the file (getActiveStandardBF)."""
    over = numbers - settings.entries * rows
    # Beyond the bound the first key goes to the first row, and the round begins there with the second.
    return np.where(over < 0, numbers // settings.entries, np.maximum(over - 1, 0) % rows)


def _positions(keys: pa.ChunkedArray, settings: BloomSettings) -> Iterator[tuple[int, Positions]]:
    """(number of the first key, one line of bit positions per key), chunk by chunk."""
    first = 0
    for chunk in keys.cast(pa.large_binary()).chunks:
        for start in range(0, len(chunk), _CHUNK):
            part = chunk.slice(start, _CHUNK)
            yield first, _hashed(part, settings)
            first += len(part)


def _hashed(keys: pa.LargeBinaryArray, settings: BloomSettings) -> Positions:
    """Bit positions of each key: one line of `settings.hashes` each."""
    offsets = np.frombuffer(keys.buffers()[1], np.int64)[keys.offset : keys.offset + len(keys) + 1]
    data = np.frombuffer(keys.buffers()[2] or b"", np.uint8)
    lengths = np.diff(offsets)
    result = np.empty((len(keys), settings.hashes), np.int64)
    for length in np.unique(lengths):
        which = np.flatnonzero(lengths == length)
        letters = data[offsets[which][:, None] + np.arange(length)]
        result[which] = _same_length(letters, int(length), settings)
    return result


def _same_length(letters: npt.NDArray[np.uint8], length: int, settings: BloomSettings) -> Positions:
    """As `_hashed`, for keys of one length. Each hash is the seed of the next; what a key's bytes add is the same."""
    whole = length // 4 * 4
    # Little-endian words, mixed; then the bytes that are left, sign-extended and in MurmurHash's own order of Hudi.
    words = np.ascontiguousarray(letters[:, :whole]).view("<u4").T * _MULTIPLIER
    words = (words ^ (words >> np.uint32(24))) * _MULTIPLIER
    rest = letters[:, whole:].astype(np.int8).astype(np.int32).view(np.uint32)
    tail = np.zeros(len(letters), np.uint32)
    for back in range(1, length - whole + 1):
        tail ^= rest[:, -back] << np.uint32(8 * (back - 1))
    hashes = np.zeros(len(letters), np.uint32)
    result = np.empty((len(letters), settings.hashes), np.int64)
    for number in range(settings.hashes):
        hashes = hashes ^ np.uint32(length)
        for word in words:
            hashes = hashes * _MULTIPLIER ^ word
        if length > whole:
            hashes = (hashes ^ tail) * _MULTIPLIER
        hashes ^= hashes >> np.uint32(13)
        hashes *= _MULTIPLIER
        hashes ^= hashes >> np.uint32(15)
        # Java's % has the dividend's sign: its absolute value is the remainder of the absolute value.
        result[:, number] = np.abs(hashes.view(np.int32).astype(np.int64)) % settings.bits
    return result
