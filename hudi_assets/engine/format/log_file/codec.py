"""Hudi log files, bytes ↔ blocks. Pure: no file system, no Spark; bytes come in and go out.

The layout is that of org.apache.hudi.common.table.log.HoodieLogFormatWriter, log format version 1, the
same for table versions 6 and 9; `docs/reference/log_format.md` describes it. Damage is recognised as
HoodieLogFileReader does (`isBlockCorrupted`) and skipped to the next magic; each skipped stretch is
yielded as a CORRUPT block so that it can be reported. All integers are big-endian, offsets and sizes are
in bytes.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from types import MappingProxyType

from hudi_assets.engine.errors import CorruptTable, InvalidInput
from hudi_assets.engine.format.log_file.delete_codec import (
    CONTENT_VERSION,
    DeleteRecord,
    OrderingType,
    decode_deletes,
    encode_deletes,
)

__all__ = [
    "CONTENT_VERSION",
    "LOG_FORMAT_VERSION",
    "MAGIC",
    "MIN_EVENT_TIME_PROPERTY",
    "ROLLBACK_BLOCK",
    "BlockType",
    "DeleteRecord",
    "HeaderKey",
    "LogBlock",
    "OrderingType",
    "ReadAt",
    "decode_deletes",
    "encode_block",
    "encode_deletes",
    "encode_rollback_block",
    "min_event_time",
    "read_blocks",
    "read_headers",
    "with_min_event_time",
]

MAGIC = b"#HUDI#"
LOG_FORMAT_VERSION = 1
ROLLBACK_BLOCK = 0
MIN_EVENT_TIME_PROPERTY = "hoodie.min.event.time"

_PREFIX = len(MAGIC) + 8  # magic and the block size, which counts neither of them
_INT = struct.Struct(">i")
_LONG = struct.Struct(">q")
# version, type, an empty header, content length, an empty footer, total length
_SMALLEST_BLOCK = 4 + 4 + 4 + 8 + 4 + 8
_EMPTY: Mapping[int, str] = MappingProxyType({})


class BlockType(IntEnum):
    """HoodieLogBlock.HoodieLogBlockType; the number is the ordinal in the file."""

    COMMAND = 0
    DELETE = 1
    CORRUPT = 2
    AVRO_DATA = 3
    HFILE_DATA = 4
    PARQUET_DATA = 5
    CDC = 6


class HeaderKey(IntEnum):
    """HoodieLogBlock.HeaderMetadataType; the number is the ordinal in the file."""

    INSTANT_TIME = 0
    TARGET_INSTANT_TIME = 1
    SCHEMA = 2
    COMMAND_BLOCK_TYPE = 3
    COMPACTED_BLOCK_TIMES = 4
    RECORD_POSITIONS = 5
    BLOCK_IDENTIFIER = 6
    IS_PARTIAL = 7
    BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS = 8


@dataclass(frozen=True)
class LogBlock:
    """One block, or (type CORRUPT) one stretch of damaged bytes with `problem` saying what is wrong.

    `offset` is where its magic starts, `size` its whole length with magic and total length. `content` is
    empty in blocks from `read_headers`; `content_offset` and `content_size` always say where it is.
    """

    type: BlockType
    header: Mapping[int, str]
    content: bytes | memoryview = field(repr=False)
    footer: Mapping[int, str]
    offset: int
    size: int
    content_offset: int = 0
    content_size: int = 0
    problem: str | None = None
    framed: bool = False  # CORRUPT, although its frame is whole: Hudi fails on such a block, and passes the others by

    @property
    def is_corrupt(self) -> bool:
        return self.type is BlockType.CORRUPT

    @property
    def is_data(self) -> bool:
        return self.type in (BlockType.AVRO_DATA, BlockType.HFILE_DATA, BlockType.PARQUET_DATA, BlockType.CDC)

    @property
    def instant_time(self) -> str:
        """The instant that wrote the block; CorruptTable if there is none (Hudi cannot merge such either)."""
        instant = self.header.get(HeaderKey.INSTANT_TIME)
        if instant is None:
            raise CorruptTable(f"The log block at byte {self.offset} has no instant time.")
        return instant

    @property
    def target_instant_time(self) -> str | None:
        return self.header.get(HeaderKey.TARGET_INSTANT_TIME)

    @property
    def schema(self) -> str | None:
        """The writer's Avro schema as JSON."""
        return self.header.get(HeaderKey.SCHEMA)

    @property
    def command(self) -> int | None:
        """HoodieCommandBlockTypeEnum's ordinal (ROLLBACK_BLOCK is the only one); None if not a command."""
        if self.type is not BlockType.COMMAND:
            return None
        text = self.header.get(HeaderKey.COMMAND_BLOCK_TYPE, "")
        try:
            return int(text)
        except ValueError:
            raise CorruptTable(f"The command block at byte {self.offset} has command {text[:40]!r}.") from None


# ---------------------------------------------------------------------------------------------- writing


def encode_block(
    type: BlockType,
    header: Mapping[HeaderKey, str] | Mapping[int, str],
    content: bytes | memoryview,
    footer: Mapping[int, str] = _EMPTY,
) -> bytes:
    """One whole block; a log file is blocks one after the other.

    InvalidInput for what no reader could read back: a CORRUPT block or a header key that Hudi does not have.
    """
    if type is BlockType.CORRUPT:
        raise InvalidInput("A corrupt block cannot be written.")
    unknown = [key for key in header if key not in HeaderKey._value2member_map_]
    if unknown:
        raise InvalidInput(f"Log block header key {unknown[0]} does not exist; Hudi's readers would fail on it.")
    body = b"".join(
        (
            struct.pack(">ii", LOG_FORMAT_VERSION, type),
            _encode_map(header),
            _LONG.pack(len(content)),
            content,
            _encode_map(footer),
        )
    )
    size = len(body) + 8
    # The total length counts what comes before it: magic, size and body.
    return b"".join((MAGIC, _LONG.pack(size), body, _LONG.pack(size + len(MAGIC))))


def encode_rollback_block(instant_time: str, target_instant_time: str) -> bytes:
    """The command block that `instant_time` appends to take back the blocks of `target_instant_time`."""
    header = {
        HeaderKey.INSTANT_TIME: instant_time,
        HeaderKey.TARGET_INSTANT_TIME: target_instant_time,
        HeaderKey.COMMAND_BLOCK_TYPE: str(ROLLBACK_BLOCK),
    }
    return encode_block(BlockType.COMMAND, header, b"")


def _encode_map(entries: Mapping[HeaderKey, str] | Mapping[int, str]) -> bytes:
    parts = [_INT.pack(len(entries))]
    for key, value in sorted(entries.items()):
        text = value.encode("utf-8")
        parts.append(struct.pack(">ii", key, len(text)) + text)
    return b"".join(parts)


# ---------------------------------------------------------------------------------------------- reading

ReadAt = Callable[[int, int], bytes | memoryview]
"""read_at(offset, n): n bytes, fewer only at the end of the file."""


def read_blocks(data: bytes | memoryview) -> tuple[LogBlock, ...]:
    """Every block of a log file; contents are views into `data`, not copies. No bytes, no blocks.

    CorruptTable only if the file does not start with the magic (Hudi refuses it too); other damage is skipped
    and shown as CORRUPT blocks.
    """
    view = memoryview(data).cast("B") if data else memoryview(b"")

    def read_at(offset: int, n: int) -> memoryview:
        return view[offset : offset + n]

    return tuple(_walk(read_at, len(view), with_content=True))


def read_headers(read_at: ReadAt, size: int) -> Iterator[LogBlock]:
    """The blocks of a log file of `size` bytes without their contents, which are seeked past.

    Errors as `read_blocks`.
    """
    return _walk(_Window(read_at, size).read_at, size, with_content=False)


class _Window:
    """Keeps the last two stretches read: a block's head, and its end, which runs into the next block's head.
    So a block costs one read, where each read is a request."""

    SIZE = 16 * 1024
    BEFORE = 64  # the end of a block is read just before the start of the next

    def __init__(self, read_at: ReadAt, size: int) -> None:
        self._read_at = read_at
        self._size = size
        self._kept: list[tuple[int, memoryview]] = []

    def read_at(self, offset: int, n: int) -> memoryview:
        end = max(offset, min(offset + n, self._size))
        for start, stretch in self._kept:
            if start <= offset and end <= start + len(stretch):
                return stretch[offset - start : end - start]
        start = max(0, offset - self.BEFORE)
        wanted = min(max(end - start, self.SIZE), self._size - start)
        stretch = memoryview(self._read_at(start, wanted))
        if len(stretch) < wanted:
            raise CorruptTable(f"The log file has fewer than the {self._size} bytes that were listed.")
        self._kept = [*self._kept[-1:], (start, stretch)]
        return stretch[offset - start : end - start]


class _Damaged(Exception):
    """Bytes inside a block that do not parse; the message says which."""


def _walk(read_at: ReadAt, size: int, *, with_content: bool) -> Iterator[LogBlock]:
    offset = 0
    while offset + len(MAGIC) <= size:
        if read_at(offset, len(MAGIC)) != MAGIC:
            # Only possible at the start: elsewhere a block without a magic after it counts as damaged itself.
            raise CorruptTable("The log file does not start with Hudi's magic #HUDI#: it is no log file.")
        problem, end = _check_frame(read_at, offset, size)
        if problem is None:
            yield _parse(read_at, offset, end, with_content)
        else:
            end = _next_magic(read_at, offset + len(MAGIC), size)
            yield _corrupt(offset, end, problem)
        offset = end


def _check_frame(read_at: ReadAt, offset: int, size: int) -> tuple[str | None, int]:
    """What is wrong with the block's frame (None if nothing), and the block's end.

    The tests and their order are those of HoodieLogFileReader.isBlockCorrupted.
    """
    start = offset + _PREFIX
    if start > size:
        return "the file ends within the block size", size
    block_size = _LONG.unpack(read_at(offset + len(MAGIC), 8))[0]
    if block_size < _SMALLEST_BLOCK:
        return f"the block size {block_size} is too small for a block", size
    end = start + block_size
    if end > size:
        return f"the block size {block_size} runs past the end of the file", size
    total = _LONG.unpack(read_at(end - 8, 8))[0]
    if total != block_size + len(MAGIC):
        return f"the total length {total} at its end does not match the block size {block_size}", size
    following = read_at(end, len(MAGIC))
    # Fewer bytes than a magic at the end of the file are passed over, as Hudi does.
    if len(following) == len(MAGIC) and following != MAGIC:
        return "no magic follows the block", size
    return None, end


def _next_magic(read_at: ReadAt, start: int, size: int) -> int:
    """The offset of the first magic at or after `start`, or `size`."""
    step = _Window.SIZE
    while start < size:
        found = bytes(read_at(start, step)).find(MAGIC)
        if found >= 0:
            return start + found
        start += step - len(MAGIC) + 1
    return size


def _corrupt(offset: int, end: int, problem: str) -> LogBlock:
    return LogBlock(BlockType.CORRUPT, {}, b"", {}, offset, end - offset, problem=problem)


def _parse(read_at: ReadAt, offset: int, end: int, with_content: bool) -> LogBlock:
    """The block in a sound frame. Where Hudi would fail on its inside, a CORRUPT block that says so."""
    try:
        cursor = _Cursor(read_at, offset + _PREFIX, end - 8)
        if (version := cursor.int32()) != LOG_FORMAT_VERSION:
            raise _Damaged(f"log format version {version} is not {LOG_FORMAT_VERSION}")
        kind = cursor.int32()
        if kind not in BlockType._value2member_map_ or kind == BlockType.CORRUPT:
            raise _Damaged(f"there is no block type {kind}")
        header = cursor.string_map()
        content_size = cursor.int64()
        content_offset = cursor.skip(content_size)
        footer = cursor.string_map()
        if cursor.position != cursor.end:
            raise _Damaged(f"{cursor.end - cursor.position} bytes follow the footer")
    except _Damaged as damage:
        return replace(_corrupt(offset, end, str(damage)), framed=True)
    content = read_at(content_offset, content_size) if with_content else b""
    return LogBlock(BlockType(kind), header, content, footer, offset, end - offset, content_offset, content_size)


class _Cursor:
    """Reads values between two offsets; every size is checked before it is used."""

    def __init__(self, read_at: ReadAt, start: int, end: int) -> None:
        self._read_at = read_at
        self.position = start
        self.end = end

    def skip(self, n: int) -> int:
        """Moves on by `n` bytes; where it was."""
        position = self.position
        if n < 0 or n > self.end - position:
            raise _Damaged(f"a length of {n} at byte {position} does not fit into the block")
        self.position = position + n
        return position

    def take(self, n: int) -> bytes | memoryview:
        return self._read_at(self.skip(n), n)

    def int32(self) -> int:
        value: int = _INT.unpack(self.take(4))[0]
        return value

    def int64(self) -> int:
        value: int = _LONG.unpack(self.take(8))[0]
        return value

    def string_map(self) -> Mapping[int, str]:
        count = self.int32()
        if count < 0 or count * 8 > self.end - self.position:
            raise _Damaged(f"{count} header entries do not fit into the block")
        entries: dict[int, str] = {}
        for _ in range(count):
            key = self.int32()
            text = self.take(self.int32())
            try:
                entries[key] = str(text, "utf-8")
            except UnicodeDecodeError:
                raise _Damaged(f"header entry {key} is not UTF-8") from None
        return entries


# ------------------------------------------------------------------------------ event time in the header


def with_min_event_time(schema_json: str, milliseconds: int) -> str:
    """The Avro schema with the smallest event time of the block's records (epoch ms, UTC) as a property.

    A property of its own in the schema is the one place that every reader of Hudi reads past: an
    unknown header key makes them fail.
    """
    schema = json.loads(schema_json)
    if not isinstance(schema, dict):
        raise InvalidInput("A log block's schema has to be an Avro record.")
    schema[MIN_EVENT_TIME_PROPERTY] = int(milliseconds)
    return json.dumps(schema, separators=(",", ":"), ensure_ascii=False)


def min_event_time(schema_json: str | None) -> int | None:
    """What `with_min_event_time` wrote, epoch ms; None where the writer left nothing (readable) there."""
    if schema_json is None or MIN_EVENT_TIME_PROPERTY not in schema_json:
        return None
    try:
        schema = json.loads(schema_json)
    except (ValueError, RecursionError):
        return None
    value = schema.get(MIN_EVENT_TIME_PROPERTY) if isinstance(schema, dict) else None
    if isinstance(value, bool) or not isinstance(value, int) or not -(2**63) <= value < 2**63:
        return None
    return value
