"""HFiles as Hudi writes them: bytes ↔ entries of key and value. Pure; `hfile_blocks` has the blocks.

A file is data blocks (between them, in large files of HBase's writer, index leaves), meta blocks, and then what
a reader loads first: the root index of the data blocks, that of the meta blocks, and the file info; at its end a
trailer of 4096 bytes. Two writers made the files that are around: HBase's (Hudi up to 0.15, and 1.x where told to) and
Hudi's own of 1.x. Either is read. What is written is one of the two, to the byte order of its index keys.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from types import MappingProxyType
from typing import Final

from hudi_assets.engine.errors import InvalidInput, UnsupportedTable
from hudi_assets.engine.format.hfile.blocks import (
    HEADER_SIZE,
    Block,
    BlockKind,
    Codec,
    Cursor,
    IndexEntry,
    corrupt,
    decode_block,
    decode_fields,
    decode_leaf_index,
    decode_root_index,
    encode_block,
    encode_fields,
    encode_root_index,
    row_of,
    varint,
)
from hudi_assets.engine.format.hfile.trailer import TRAILER_SIZE, Flavour, Trailer
from hudi_assets.engine.format.log_file.codec import ReadAt

__all__ = ["BLOCK_SIZE", "TRAILER_SIZE", "Entry", "Flavour", "HFile", "HFileReader", "read_hfile", "write_hfile"]

BLOCK_SIZE: Final = 64 * 1024
SCHEMA: Final = "schema"
MIN_RECORD_KEY: Final = "minRecordKey"
MAX_RECORD_KEY: Final = "maxRecordKey"

Entry = tuple[bytes, bytes]

_PROTOBUF_MAGIC: Final = b"PBUF"
_KEY_TAIL: Final = b"\x00" + struct.pack(">q", 2**63 - 1) + b"\x04"  # no family, the latest timestamp, a put
_NO_MVCC: Final = b"\x00"
_LAST_KEY: Final = "hfile.LASTKEY"
_MOST_LEVELS: Final = 8
_LONGEST_KEY: Final = 2**15 - 1
_NOTHING: Final[Mapping[str, bytes]] = MappingProxyType({})


@dataclass(frozen=True)
class HFile:
    """A whole file. `info` is the file info, `meta` the meta blocks (a base file's `bloomFilter`)."""

    entries: tuple[Entry, ...]
    info: Mapping[str, bytes]
    meta: Mapping[str, bytes]

    @property
    def schema(self) -> str | None:
        """The values' Avro schema as JSON."""
        return _text(self.info.get(SCHEMA))


# ---------------------------------------------------------------------------------------------- writing


def write_hfile(
    entries: Iterable[Entry],
    *,
    schema: str,
    flavour: Flavour,
    meta: Mapping[str, bytes] = _NOTHING,
    info: Mapping[str, bytes] = _NOTHING,
    codec: Codec = Codec.GZIP,
) -> bytes:
    """The bytes of an HFile. Entries are sorted by key; InvalidInput for no entries, equal or unusable keys."""
    ordered = sorted(entries)
    _refuse_keys(ordered)
    parts: list[bytes] = []
    index: list[tuple[bytes, int, int]] = []
    at = 0

    def put(kind: BlockKind, content: bytes) -> tuple[int, int]:
        nonlocal at
        block = encode_block(kind, content, codec)
        parts.append(block)
        at += len(block)
        return at - len(block), len(block)

    cells_size = 0
    for first, cells in _data_blocks(ordered):
        index.append((_index_key(first, flavour), *put(BlockKind.DATA, cells)))
        cells_size += len(cells)
    meta_index = [(name.encode(), *put(BlockKind.META, meta[name])) for name in sorted(meta)]
    root = encode_root_index(index)
    load_on_open, _ = put(BlockKind.ROOT_INDEX, root)
    put(BlockKind.ROOT_INDEX, encode_root_index(meta_index))
    file_info, _ = put(BlockKind.FILE_INFO, _encode_info(_file_info(ordered, schema, flavour, info)))
    trailer = Trailer(
        file_info, load_on_open, len(root), cells_size, len(index), len(meta_index), len(ordered), index[-1][1], codec
    )
    return b"".join((*parts, trailer.encode(flavour)))


def _refuse_keys(ordered: list[Entry]) -> None:
    if not ordered:
        raise InvalidInput("An HFile without entries cannot be written.")
    for key, _ in ordered:
        if not 0 < len(key) <= _LONGEST_KEY:
            raise InvalidInput(f"A key of {len(key)} bytes cannot be in an HFile.")
    for (key, _), (following, _) in pairwise(ordered):
        if key == following:
            raise InvalidInput(f"The key {key[:100]!r} is twice in one HFile.")


def _data_blocks(ordered: list[Entry]) -> Iterator[tuple[bytes, bytes]]:
    """The first key and the cells of each block. A cell that is too large for a block has one of its own."""
    first, cells, size = b"", list[bytes](), 0
    for key, value in ordered:
        cell = b"".join(
            (
                struct.pack(">ii", 2 + len(key) + len(_KEY_TAIL), len(value)),
                struct.pack(">h", len(key)),
                key,
                _KEY_TAIL,
                value,
                _NO_MVCC,
            )
        )
        if cells and size + len(cell) > BLOCK_SIZE:
            yield first, b"".join(cells)
            cells, size = [], 0
        if not cells:
            first = key
        cells.append(cell)
        size += len(cell)
    yield first, b"".join(cells)


def _index_key(key: bytes, flavour: Flavour) -> bytes:
    row = struct.pack(">h", len(key)) + key
    return row + _KEY_TAIL if flavour is Flavour.HBASE else row


def _file_info(ordered: list[Entry], schema: str, flavour: Flavour, info: Mapping[str, bytes]) -> dict[str, bytes]:
    count = len(ordered)
    beside_key = 2 + len(_KEY_TAIL) if flavour is Flavour.HBASE else 0
    return {
        **info,
        "KEY_VALUE_VERSION": struct.pack(">i", 1),
        "MAX_MEMSTORE_TS_KEY": bytes(8),
        "hfile.AVG_KEY_LEN": struct.pack(">i", beside_key + sum(len(key) for key, _ in ordered) // count),
        "hfile.AVG_VALUE_LEN": struct.pack(">i", sum(len(value) for _, value in ordered) // count),
        "hfile.CREATE_TIME_TS": bytes(8),  # as HBase's writer has it for Hudi: the same entries, the same file
        _LAST_KEY: _index_key(ordered[-1][0], flavour),
        SCHEMA: schema.encode(),
    }


def _encode_info(info: Mapping[str, bytes]) -> bytes:
    pairs: list[tuple[int, int | bytes]] = [
        (1, encode_fields([(1, name.encode()), (2, info[name])])) for name in sorted(info)
    ]
    message = encode_fields(pairs)
    return _PROTOBUF_MAGIC + varint(len(message)) + message


# ---------------------------------------------------------------------------------------------- reading


def read_hfile(data: bytes | memoryview) -> HFile:
    """Every entry of an HFile that is there whole."""
    view = memoryview(data).cast("B") if data else memoryview(b"")
    reader = HFileReader(lambda offset, n: view[offset : offset + n], len(view))
    return HFile(tuple(reader), reader.info, {name: reader.meta(name) for name in reader.meta_names})


class HFileReader:
    """One HFile, read where it is asked for: opening it reads its end only.

    CorruptTable for what is no HFile or is torn; UnsupportedTable for codecs and versions that Hudi does not write.
    """

    def __init__(self, read_at: ReadAt, size: int) -> None:
        if size < TRAILER_SIZE:
            raise corrupt(f"{size} bytes are too few")
        self._read_at = read_at
        self._end = size - TRAILER_SIZE
        self._trailer = Trailer.decode(bytes(self._bytes(self._end, TRAILER_SIZE)))
        self._root, meta_index, self.info = self._load_on_open()
        self._metas = {_name(entry.key): entry for entry in meta_index}
        if "hfile.MAX_TAGS_LEN" in self.info:
            raise UnsupportedTable("The HFile's cells have tags, which is not handled.")

    @property
    def schema(self) -> str | None:
        """The values' Avro schema as JSON."""
        return _text(self.info.get(SCHEMA))

    @property
    def meta_names(self) -> tuple[str, ...]:
        return tuple(self._metas)

    def __len__(self) -> int:
        return self._trailer.entry_count

    def __iter__(self) -> Iterator[Entry]:
        """Every entry in the order of the keys. That all are there is known when the last was taken."""
        count, last = 0, b""
        for entry in self._blocks:
            for key, value in self._cells(entry):
                if key < last:
                    raise corrupt("its keys are not in order")
                last = key
                count += 1
                yield key, value
        if count != len(self):
            raise corrupt(f"it has {count} entries and should have {len(self)}")

    def meta(self, name: str) -> bytes:
        """The contents of a meta block; KeyError if there is none of that name."""
        return self._block(self._metas[name], BlockKind.META).content

    def starting_with(self, prefix: bytes) -> Iterator[Entry]:
        """The entries whose key starts with `prefix`; only blocks that may hold such are read."""
        index = self._blocks
        for number, entry in enumerate(index):
            following = index[number + 1].key if number + 1 < len(index) else None
            if following is not None and following < prefix:
                continue
            if entry.key > prefix and not entry.key.startswith(prefix):
                return
            yield from ((key, value) for key, value in self._cells(entry) if key.startswith(prefix))

    def get(self, key: bytes) -> bytes | None:
        """The value of a key; None if it is not there."""
        return next((value for found, value in self.starting_with(key) if found == key), None)

    # ------------------------------------------------------------------------------------------ its parts

    def _bytes(self, offset: int, n: int) -> bytes | memoryview:
        data = self._read_at(offset, n)
        if len(data) != n:
            raise corrupt(f"{n} bytes at byte {offset} are not there")
        return data

    def _load_on_open(self) -> tuple[tuple[IndexEntry, ...], tuple[IndexEntry, ...], Mapping[str, bytes]]:
        trailer = self._trailer
        if not 0 <= trailer.load_on_open_offset <= trailer.file_info_offset <= self._end:
            raise corrupt("its trailer points outside")
        data = memoryview(self._bytes(trailer.load_on_open_offset, self._end - trailer.load_on_open_offset))
        root = decode_block(data, (BlockKind.ROOT_INDEX,), trailer.codec)
        metas = decode_block(data[root.size :], (BlockKind.ROOT_INDEX,), trailer.codec)
        info = data[trailer.file_info_offset - trailer.load_on_open_offset :]
        return (
            decode_root_index(root.content, trailer.data_index_count, rows=True),
            decode_root_index(metas.content, trailer.meta_index_count, rows=False),
            _decode_info(decode_block(info, (BlockKind.FILE_INFO,), trailer.codec).content),
        )

    def _block(self, entry: IndexEntry, *kinds: BlockKind) -> Block:
        if not (0 <= entry.offset <= entry.offset + entry.size <= self._end) or entry.size < HEADER_SIZE:
            raise corrupt("its index points outside")
        block = decode_block(self._bytes(entry.offset, entry.size), kinds, self._trailer.codec)
        if block.size != entry.size:
            raise corrupt("its index has another size for a block than the block")
        return block

    @cached_property
    def _blocks(self) -> tuple[IndexEntry, ...]:
        return tuple(self._data_index())

    def _data_index(self) -> Iterator[IndexEntry]:
        """The data blocks, in order. Each starts behind the one before: so an index cannot go round in circles."""
        levels = self._trailer.index_levels
        if not 0 <= levels <= _MOST_LEVELS:
            raise corrupt(f"its index has {levels} levels")
        left = self._end // HEADER_SIZE
        end = 0
        for entry in self._descend(self._root, levels):
            left -= 1
            if entry.offset < end or left < 0:
                raise corrupt("its index is not in order")
            end = entry.offset + entry.size
            yield entry

    def _descend(self, entries: tuple[IndexEntry, ...], levels: int) -> Iterator[IndexEntry]:
        if levels <= 1:
            yield from entries
            return
        kind = BlockKind.LEAF_INDEX if levels == 2 else BlockKind.INTERMEDIATE_INDEX
        end = 0
        for entry in entries:
            if entry.offset < end:
                raise corrupt("its index is not in order")
            end = entry.offset + entry.size
            yield from self._descend(decode_leaf_index(self._block(entry, kind).content), levels - 1)

    def _cells(self, entry: IndexEntry) -> Iterator[Entry]:
        """Key and value of each cell of a data block (KeyValue of HBase: a put, without family and MVCC version)."""
        content = self._block(entry, BlockKind.DATA).content
        at, end, tail = 0, len(content), len(_KEY_TAIL)
        while at < end:
            if end - at < 8:
                raise corrupt("a cell is torn")
            key_size, value_size = struct.unpack_from(">ii", content, at)
            key_end = at + 8 + key_size
            value_end = key_end + value_size
            if key_size < 3 + tail or value_size < 0 or value_end >= end:
                raise corrupt("a cell does not fit into its block")
            row = row_of(content[at + 8 : key_end])
            if len(row) != key_size - 2 - tail or content[key_end - tail] or content[key_end - 1] != _KEY_TAIL[-1]:
                raise corrupt("a cell is not of the kind that Hudi writes")
            if content[value_end : value_end + 1] != _NO_MVCC:
                raise corrupt("a cell has a version")
            yield row, content[key_end:value_end]
            at = value_end + 1


def _decode_info(content: bytes) -> Mapping[str, bytes]:
    cursor = Cursor(content)
    if cursor.take(4) != _PROTOBUF_MAGIC:
        raise corrupt("its file info is no protobuf message")
    info = {}
    for field, pair in decode_fields(cursor.take(cursor.varint())):
        if field != 1 or not isinstance(pair, bytes):
            continue
        names = dict(decode_fields(pair))
        name, value = names.get(1, b""), names.get(2, b"")
        if not isinstance(name, bytes) or not isinstance(value, bytes):
            raise corrupt("its file info has a number for text")
        info[_name(name)] = value
    return MappingProxyType(info)


def _name(raw: bytes) -> str:
    return _text(raw) or ""


def _text(raw: bytes | None) -> str | None:
    try:
        return None if raw is None else str(raw, "utf-8")
    except UnicodeDecodeError as error:
        raise corrupt("a name in it is no text") from error
