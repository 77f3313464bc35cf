"""The blocks of HFiles (HBase's format, version 3) as Hudi uses it: bytes ↔ contents. Pure.

A block is a header of 33 bytes, its contents as the file's codec has them, and its checksums. Sizes are in
bytes, integers big-endian. Everything read is checked against the bytes that are there: what a file claims never
decides how much memory is taken. `docs/reference/metadata_table.md` has the layout.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, IntEnum
from functools import cache
from itertools import pairwise
from typing import Final

from hudi_assets.engine.errors import CorruptTable, UnsupportedTable

HEADER_SIZE: Final = 33
BYTES_PER_CHECKSUM: Final = 16 * 1024
MOST_INFLATED: Final = 256 << 20

_HEADER: Final = struct.Struct(">8siiqBii")
_GZIP: Final = 31
_BEST_RATIO: Final = 1032  # DEFLATE cannot do better
_FIRST_OF_A_CHAIN: Final = -1


class BlockKind(Enum):
    """HFileBlockType; the value is the magic."""

    DATA = b"DATABLK*"
    META = b"METABLKc"
    ROOT_INDEX = b"IDXROOT2"
    INTERMEDIATE_INDEX = b"IDXINTE2"
    LEAF_INDEX = b"IDXLEAF2"
    FILE_INFO = b"FILEINF2"


class Codec(IntEnum):
    """org.apache.hudi.io.hfile.HFileCompressionCodec: the ones that Hudi can be told to write."""

    GZIP = 1
    NONE = 2


class _Checksum(IntEnum):
    NONE = 0
    CRC32 = 1
    CRC32C = 2


def corrupt(what: str) -> CorruptTable:
    return CorruptTable(f"The HFile cannot be read: {what}.")


# ---------------------------------------------------------------------------------------------- blocks


def encode_block(kind: BlockKind, content: bytes, codec: Codec) -> bytes:
    """One block without checksums: their bytes are there, as zeros, as in the files of Hudi 1.x.

    The size of the contents leaves the checksums out. Hudi's native reader takes them off it once more and so
    starts no record in that many last bytes: the writer keeps blocks small enough for it not to matter.
    """
    payload = _gzip(content) if codec is Codec.GZIP else content
    with_header = HEADER_SIZE + len(payload)
    checksums = 4 * _chunks(with_header, BYTES_PER_CHECKSUM)
    header = _HEADER.pack(
        kind.value,
        len(payload) + checksums,
        len(content),
        _FIRST_OF_A_CHAIN,
        _Checksum.NONE,
        BYTES_PER_CHECKSUM,
        with_header,
    )
    return b"".join((header, payload, bytes(checksums)))


def _gzip(content: bytes) -> bytes:
    deflate = zlib.compressobj(6, zlib.DEFLATED, _GZIP)
    return deflate.compress(content) + deflate.flush()


def _chunks(size: int, per_checksum: int) -> int:
    return -(-size // per_checksum)


@dataclass(frozen=True, slots=True)
class Block:
    """A block's contents, unpacked, and its whole size on disk."""

    kind: BlockKind
    content: bytes
    size: int


def decode_block(data: bytes | memoryview, kinds: tuple[BlockKind, ...], codec: Codec) -> Block:
    """The block that `data` starts with; CorruptTable if it is none of `kinds`, or torn."""
    if len(data) < HEADER_SIZE:
        raise corrupt("it ends within a block's header")
    magic, on_disk, unpacked, _, checksum, per_checksum, with_header = _HEADER.unpack_from(data)
    kind = next((kind for kind in kinds if kind.value == magic), None)
    if kind is None:
        raise corrupt(f"a block starts with {bytes(magic)!r}")
    if on_disk < 0 or HEADER_SIZE + on_disk > len(data):
        raise corrupt(f"a block of {on_disk} bytes does not fit")
    if not HEADER_SIZE <= with_header <= HEADER_SIZE + on_disk or unpacked < 0:
        raise corrupt("the sizes in a block's header contradict each other")
    payload = memoryview(data)[HEADER_SIZE:with_header]
    if codec is Codec.NONE:
        _verify(memoryview(data)[: HEADER_SIZE + on_disk], with_header, checksum, per_checksum)
        content = bytes(payload)
        if unpacked not in (len(payload), on_disk):
            raise corrupt("the sizes in a block's header contradict each other")
    else:
        content = _gunzip(payload, unpacked)
    return Block(kind, content, HEADER_SIZE + on_disk)


def _gunzip(payload: memoryview, size: int) -> bytes:
    if size > min(MOST_INFLATED, _BEST_RATIO * len(payload) + 64):
        raise corrupt(f"{len(payload)} packed bytes claim to hold {size}")
    inflate = zlib.decompressobj(_GZIP)
    try:
        # One byte more than is claimed shows that more is there.
        content = inflate.decompress(payload, size + 1)
    except zlib.error as error:
        raise corrupt(f"a block cannot be unpacked ({error})") from error
    if len(content) != size or not inflate.eof or inflate.unused_data:
        raise corrupt("a block does not unpack to the size that it claims")
    return content


def _verify(block: memoryview, with_header: int, kind: int, per_checksum: int) -> None:
    """The checksums of an unpacked block. gzip has its own, and reading is for whole blocks only."""
    if kind == _Checksum.NONE:
        return
    if kind not in (_Checksum.CRC32, _Checksum.CRC32C) or per_checksum <= 0:
        raise corrupt(f"a block has checksums of type {kind} over {per_checksum} bytes")
    count = _chunks(with_header, per_checksum)
    if len(block) - with_header != 4 * count:
        raise corrupt(f"a block has {len(block) - with_header} bytes of checksums instead of {4 * count}")
    stored = struct.unpack(f">{count}I", block[with_header:])
    for number, expected in enumerate(stored):
        chunk = block[number * per_checksum : min((number + 1) * per_checksum, with_header)]
        if (zlib.crc32(chunk) if kind == _Checksum.CRC32 else crc32c(chunk)) != expected:
            raise corrupt("a block does not agree with its checksums")


@cache
def _crc32c_table() -> tuple[int, ...]:
    """The Castagnoli polynomial, bits reversed."""
    table = []
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return tuple(table)


def crc32c(data: bytes | memoryview) -> int:
    table, value = _crc32c_table(), 0xFFFFFFFF
    for byte in bytes(data):
        value = table[(value ^ byte) & 0xFF] ^ value >> 8
    return value ^ 0xFFFFFFFF


# ------------------------------------------------------------------------------------- the root index


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """Where a block is. `key` is the row of its first key, or any row between the block before and it."""

    key: bytes
    offset: int
    size: int


def encode_root_index(entries: list[tuple[bytes, int, int]]) -> bytes:
    """Entries of (key as it is to stand there, offset, size)."""
    return b"".join(struct.pack(">qi", offset, size) + hadoop_varint(len(key)) + key for key, offset, size in entries)


def decode_root_index(content: bytes, count: int, *, rows: bool) -> tuple[IndexEntry, ...]:
    """`count` entries; behind them HBase may have put where the middle key is. `rows`: keys are HBase keys."""
    cursor = Cursor(content)
    if not 0 <= count <= len(content) // 13:
        raise corrupt(f"an index of {len(content)} bytes cannot have {count} entries")
    entries = []
    for _ in range(count):
        offset, size = struct.unpack(">qi", cursor.take(12))
        key = cursor.take(cursor.hadoop_varint())
        entries.append(IndexEntry(row_of(key) if rows else key, offset, size))
    return tuple(entries)


def decode_leaf_index(content: bytes) -> tuple[IndexEntry, ...]:
    """A leaf or intermediate index: a table of relative offsets, then the entries (HFileLeafIndexBlock)."""
    if len(content) < 8:
        raise corrupt("it ends within an index")
    count = struct.unpack_from(">i", content)[0]
    if not 0 <= count <= len(content) // 18:
        raise corrupt(f"an index of {len(content)} bytes cannot have {count} entries")
    offsets = struct.unpack_from(f">{count + 1}i", content, 4)
    body = memoryview(content)[4 + 4 * (count + 1) :]
    entries = []
    for start, end in pairwise(offsets):
        if not 0 <= start <= end - 14 or end > len(body):
            raise corrupt("the entries of an index do not fit")
        offset, size = struct.unpack_from(">qi", body, start)
        entries.append(IndexEntry(row_of(bytes(body[start + 12 : end])), offset, size))
    return tuple(entries)


def row_of(key: bytes) -> bytes:
    """The row of an HBase key: its length in two bytes, and itself. In the files of 1.x that is all there is."""
    size = int.from_bytes(key[:2], "big")
    if len(key) < 2 or not len(key) - 2 >= size > 0:
        raise corrupt("a key is shorter than it says")
    return key[2 : 2 + size]


# --------------------------------------------------------------------------------- numbers and messages


class Cursor:
    """Reads on and on, never past the end."""

    def __init__(self, data: bytes | memoryview, at: int = 0) -> None:
        self._data = data
        self.at = at

    @property
    def at_end(self) -> bool:
        return self.at >= len(self._data)

    def take(self, n: int) -> bytes:
        if not 0 <= n <= len(self._data) - self.at:
            raise corrupt(f"a length of {n} does not fit")
        self.at += n
        return bytes(self._data[self.at - n : self.at])

    def varint(self) -> int:
        """Protobuf's: seven bits to a byte, lowest first."""
        value = 0
        for shift in range(0, 70, 7):
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise corrupt("a number does not end")

    def hadoop_varint(self) -> int:
        """WritableUtils.readVLong, for numbers ≥ 0."""
        first = struct.unpack("b", self.take(1))[0]
        if first >= 0:
            return int(first)
        if first < -120 or first >= -112:
            raise corrupt("a length is below zero")
        return int.from_bytes(self.take(-112 - first), "big")


def hadoop_varint(number: int) -> bytes:
    """WritableUtils.writeVLong, for numbers ≥ 0."""
    if number < 128:
        return bytes([number])
    size = (number.bit_length() + 7) // 8
    return struct.pack("b", -112 - size) + number.to_bytes(size, "big")


def varint(number: int) -> bytes:
    """Protobuf's variable-length integer, for numbers ≥ 0."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def encode_fields(fields: list[tuple[int, int | bytes]]) -> bytes:
    """A protobuf message of numbers and byte strings."""
    parts = []
    for number, value in fields:
        if isinstance(value, int):
            parts.append(varint(number << 3) + varint(value))
        else:
            parts.append(varint(number << 3 | 2) + varint(len(value)) + value)
    return b"".join(parts)


def decode_fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a protobuf message, in the order in which they stand there."""
    cursor = Cursor(message)
    while not cursor.at_end:
        tag = cursor.varint()
        match tag & 7:
            case 0:
                yield tag >> 3, cursor.varint()
            case 2:
                yield tag >> 3, cursor.take(cursor.varint())
            case kind:
                raise corrupt(f"a message has a field of type {kind}")


def codec_of(number: int) -> Codec:
    try:
        return Codec(number)
    except ValueError:
        raise UnsupportedTable(
            f"The HFile is compressed by codec {number}, which is not handled.",
            hint="Set hoodie.hfile.compression.algorithm to gzip or none and let Hudi write the file anew.",
        ) from None
