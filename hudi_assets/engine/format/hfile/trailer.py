"""The end of an HFile: a protobuf message that says where everything is, and the version. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from hudi_assets.engine.errors import UnsupportedTable
from hudi_assets.engine.format.hfile.blocks import (
    Codec,
    Cursor,
    codec_of,
    corrupt,
    decode_fields,
    encode_fields,
    varint,
)

TRAILER_SIZE: Final = 4096
_MAGIC: Final = b'TRABLK"$'
_COMPARATOR: Final = b"org.apache.hudi.io.storage.HoodieHBaseKVComparator"


class Flavour(Enum):
    """Whose file it is like. HBASE: table version 6, which 0.15.0 reads by HBase's reader. NATIVE: 8 and 9."""

    HBASE = "hbase"
    NATIVE = "native"


class _Field:
    """Numbers of the trailer's fields (TrailerProto)."""

    FILE_INFO_OFFSET = 1
    LOAD_ON_OPEN_OFFSET = 2
    INDEX_BYTES = 3
    TOTAL_BYTES = 4
    DATA_INDEX_COUNT = 5
    META_INDEX_COUNT = 6
    ENTRY_COUNT = 7
    INDEX_LEVELS = 8
    FIRST_DATA_BLOCK = 9
    LAST_DATA_BLOCK = 10
    COMPARATOR = 11
    CODEC = 12
    ENCRYPTION_KEY = 13


@dataclass(frozen=True, slots=True)
class Trailer:
    file_info_offset: int
    load_on_open_offset: int
    index_bytes: int
    total_bytes: int
    data_index_count: int
    meta_index_count: int
    entry_count: int
    last_data_block: int
    codec: Codec
    index_levels: int = 1

    def encode(self, flavour: Flavour) -> bytes:
        hbase = flavour is Flavour.HBASE
        fields: list[tuple[int, int | bytes]] = [
            (_Field.FILE_INFO_OFFSET, self.file_info_offset),
            (_Field.LOAD_ON_OPEN_OFFSET, self.load_on_open_offset),
            (_Field.INDEX_BYTES, self.index_bytes if hbase else self.total_bytes),
            *([(_Field.TOTAL_BYTES, self.total_bytes)] if hbase else []),
            (_Field.DATA_INDEX_COUNT, self.data_index_count),
            (_Field.META_INDEX_COUNT, self.meta_index_count),
            (_Field.ENTRY_COUNT, self.entry_count),
            (_Field.INDEX_LEVELS, self.index_levels),
            (_Field.FIRST_DATA_BLOCK, 0),
            (_Field.LAST_DATA_BLOCK, self.last_data_block),
            (_Field.COMPARATOR, _COMPARATOR),
            (_Field.CODEC, int(self.codec)),
        ]
        message = encode_fields(fields)
        head = _MAGIC + varint(len(message)) + message
        # The version: major in the lower three bytes, minor in the upper one.
        return head.ljust(TRAILER_SIZE - 4, b"\0") + (b"\x03" if hbase else b"\x00") + b"\x00\x00\x03"

    @classmethod
    def decode(cls, data: bytes) -> Trailer:
        cursor = Cursor(data)
        if cursor.take(8) != _MAGIC:
            raise corrupt("it does not end with a trailer")
        if (major := int.from_bytes(data[-3:], "big")) != 3:
            raise UnsupportedTable(f"HFiles of version {major} are not handled.")
        fields = dict(decode_fields(cursor.take(cursor.varint())))
        if fields.get(_Field.ENCRYPTION_KEY):
            raise UnsupportedTable("The HFile is encrypted, which is not handled.")

        def number(field: int, default: int = 0) -> int:
            value = fields.get(field, default)
            if not isinstance(value, int) or value >= 1 << 63:
                raise corrupt(f"field {field} of its trailer is no number")
            return value

        return cls(
            number(_Field.FILE_INFO_OFFSET),
            number(_Field.LOAD_ON_OPEN_OFFSET),
            number(_Field.INDEX_BYTES),
            number(_Field.TOTAL_BYTES),
            number(_Field.DATA_INDEX_COUNT),
            number(_Field.META_INDEX_COUNT),
            number(_Field.ENTRY_COUNT),
            number(_Field.LAST_DATA_BLOCK),
            codec_of(number(_Field.CODEC, Codec.NONE)),
            number(_Field.INDEX_LEVELS, 1),
        )
