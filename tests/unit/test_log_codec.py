"""Blocks of a log file: written, read back, and read past where they are damaged."""

from __future__ import annotations

import json
import struct
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from hudi_assets.engine.errors import CorruptTable, InvalidInput, UnsupportedTable
from hudi_assets.engine.format.log_file.codec import (
    MAGIC,
    BlockType,
    DeleteRecord,
    HeaderKey,
    LogBlock,
    OrderingType,
    decode_deletes,
    encode_block,
    encode_deletes,
    encode_rollback_block,
    min_event_time,
    read_blocks,
    read_headers,
    with_min_event_time,
)

GOLDEN = Path(__file__).parents[1] / "golden"
INSTANT = "20260101000000000"
SCHEMA = '{"type":"record","name":"r","fields":[]}'


def data_block(content: bytes, instant: str = INSTANT) -> bytes:
    return encode_block(BlockType.PARQUET_DATA, {HeaderKey.INSTANT_TIME: instant, HeaderKey.SCHEMA: SCHEMA}, content)


def headers(data: bytes) -> list[LogBlock]:
    return list(read_headers(lambda offset, n: data[offset : offset + n], len(data)))


def frame(body: bytes, *, size: int | None = None, total: int | None = None) -> bytes:
    """A block around `body` (version to footer), with its sizes right unless given."""
    size = len(body) + 8 if size is None else size
    total = size + len(MAGIC) if total is None else total
    return MAGIC + struct.pack(">q", size) + body + struct.pack(">q", total)


# ------------------------------------------------------------------------------------------------ layout


def test_bytes_are_those_of_the_format() -> None:
    written = encode_block(BlockType.COMMAND, {HeaderKey.COMMAND_BLOCK_TYPE: "0"}, b"xy")
    expected = (
        b"#HUDI#"
        + bytes.fromhex("000000000000002b")  # 43 bytes follow
        + bytes.fromhex("00000001 00000000")  # log format version, type
        + bytes.fromhex("00000001 00000003 00000001")
        + b"0"  # header: one entry
        + bytes.fromhex("0000000000000002")
        + b"xy"
        + bytes.fromhex("00000000")  # footer
        + bytes.fromhex("0000000000000031")
    )
    assert written == expected


@pytest.mark.parametrize("kind", [kind for kind in BlockType if kind is not BlockType.CORRUPT])
def test_every_type_reads_back(kind: BlockType) -> None:
    header = {key: f"value of {key} ✈" for key in HeaderKey}
    (block,) = read_blocks(encode_block(kind, header, b"content", {0: "footer"}))
    assert (block.type, dict(block.header), bytes(block.content)) == (kind, header, b"content")
    assert dict(block.footer) == {0: "footer"}
    assert not block.is_corrupt
    assert block.problem is None


def test_rollback_block() -> None:
    (block,) = read_blocks(encode_rollback_block("2", "1"))
    assert (block.type, block.command, block.instant_time, block.target_instant_time) == (
        BlockType.COMMAND,
        0,
        "2",
        "1",
    )


def test_what_no_reader_could_read_is_not_written() -> None:
    with pytest.raises(InvalidInput):
        encode_block(BlockType.CORRUPT, {}, b"")
    with pytest.raises(InvalidInput, match="header key 9"):
        encode_block(BlockType.DELETE, {9: "min"}, b"")


def test_offsets_and_sizes_tile_the_file() -> None:
    parts = [data_block(b"a" * 10), data_block(b""), encode_rollback_block("2", "1")]
    data = b"".join(parts)
    blocks = read_blocks(data)
    assert [(block.offset, block.size) for block in blocks] == [
        (0, len(parts[0])),
        (len(parts[0]), len(parts[1])),
        (len(parts[0]) + len(parts[1]), len(parts[2])),
    ]
    for block in blocks:
        assert data[block.content_offset : block.content_offset + block.content_size] == block.content


def test_content_is_a_view_and_not_a_copy() -> None:
    data = data_block(b"x" * 1000)
    (block,) = read_blocks(data)
    assert isinstance(block.content, memoryview)
    assert block.content.obj is data


def test_a_block_without_instant_says_so() -> None:
    (block,) = read_blocks(encode_block(BlockType.DELETE, {}, b""))
    with pytest.raises(CorruptTable, match="no instant time"):
        _ = block.instant_time
    assert block.schema is None


# ------------------------------------------------------------------------------------------------ headers


def test_headers_are_those_of_the_blocks_without_content() -> None:
    data = data_block(b"a" * 100_000) + data_block(b"b" * 50_000, "2") + encode_rollback_block("3", "2")
    expected = [(b.type, b.header, b.offset, b.size, b.content_offset) for b in read_blocks(data)]
    assert [(b.type, b.header, b.offset, b.size, b.content_offset) for b in headers(data)] == expected
    assert {bytes(block.content) for block in headers(data)} == {b""}


def test_headers_read_past_the_content() -> None:
    data = b"".join(data_block(bytes(2_000_000), str(number)) for number in range(5))
    reads: list[int] = []

    def read_at(offset: int, n: int) -> bytes:
        reads.append(n)
        return data[offset : offset + n]

    assert [block.instant_time for block in read_headers(read_at, len(data))] == list("01234")
    assert len(reads) <= 6
    assert sum(reads) < 150_000


def test_a_schema_longer_than_a_read_is_read_whole() -> None:
    schema = json.dumps({"type": "record", "name": "r", "fields": [], "doc": "d" * 100_000})
    data = encode_block(BlockType.AVRO_DATA, {HeaderKey.INSTANT_TIME: "1", HeaderKey.SCHEMA: schema}, b"c")
    (block,) = headers(data)
    assert block.schema == schema


def test_a_file_shorter_than_listed_is_reported() -> None:
    data = data_block(b"a" * 100_000)
    with pytest.raises(CorruptTable, match="fewer"):
        list(read_headers(lambda offset, n: data[offset : min(offset + n, 50_000)], len(data)))


# ------------------------------------------------------------------------------------------------- damage


def kinds(data: bytes) -> list[BlockType]:
    read = read_blocks(data)
    assert [(b.type, b.offset, b.size, b.problem) for b in headers(data)] == [
        (b.type, b.offset, b.size, b.problem) for b in read
    ]
    assert all((block.problem is not None) == block.is_corrupt for block in read)
    return [block.type for block in read]


GOOD = data_block(b"good", "7")
GOOD_KINDS = [BlockType.PARQUET_DATA]
NO_CONTENT = struct.pack(">ii", 0, 0)


def test_no_bytes_no_blocks() -> None:
    assert read_blocks(b"") == ()
    assert headers(b"") == []


def test_fewer_bytes_than_a_magic_are_passed_over() -> None:
    assert kinds(b"#HUDI") == []
    assert kinds(GOOD + b"xxxxx") == GOOD_KINDS


def test_a_file_of_something_else_is_refused() -> None:
    with pytest.raises(CorruptTable, match="magic"):
        read_blocks(b"PAR1 and more")
    with pytest.raises(CorruptTable, match="magic"):
        headers(b"PAR1 and more")


@pytest.mark.parametrize("cut", range(1, len(GOOD) - len(MAGIC) + 1))
def test_a_block_cut_short_is_skipped_at_the_end_and_in_the_middle(cut: int) -> None:
    broken = GOOD[:-cut]
    assert kinds(GOOD + broken) == [*GOOD_KINDS, BlockType.CORRUPT]
    assert kinds(broken + GOOD) == [BlockType.CORRUPT, *GOOD_KINDS]


@pytest.mark.parametrize(
    "size", [-(2**63), -1, 0, 31, len(GOOD), 10**6, 2**31 - 1, 2**31, 2**32 + len(GOOD) - 14, 2**63 - 1]
)
def test_a_hostile_block_size_is_skipped(size: int) -> None:
    broken = GOOD[:6] + struct.pack(">q", size) + GOOD[14:]
    assert kinds(GOOD + broken + GOOD) == [*GOOD_KINDS, BlockType.CORRUPT, *GOOD_KINDS]
    corrupt = read_blocks(GOOD + broken + GOOD)[1]
    assert (corrupt.offset, corrupt.size) == (len(GOOD), len(broken))


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(struct.pack(">iiiqi", 0, 5, 0, 0, 0), id="version 0"),
        pytest.param(struct.pack(">iiiqi", 2, 5, 0, 0, 0), id="version 2"),
        pytest.param(struct.pack(">iiiqi", 1, 7, 0, 0, 0), id="no such type"),
        pytest.param(struct.pack(">iiiqi", 1, -1, 0, 0, 0), id="negative type"),
        pytest.param(struct.pack(">iiiqi", 1, 2, 0, 0, 0), id="a corrupt block is no block"),
        pytest.param(struct.pack(">iiiqi", 1, 5, 2**31 - 1, 0, 0), id="header count 2^31-1"),
        pytest.param(struct.pack(">iiiqi", 1, 5, -1, 0, 0), id="negative header count"),
        pytest.param(struct.pack(">iiiiiqi", 1, 5, 1, 0, 2**31 - 1, 0, 0), id="header length 2^31-1"),
        pytest.param(struct.pack(">iiiiiqi", 1, 5, 1, 0, -4, 0, 0), id="negative header length"),
        pytest.param(struct.pack(">iiiii", 1, 5, 1, 0, 1) + b"\xff" + bytes(12), id="header not UTF-8"),
        pytest.param(struct.pack(">iiiqi", 1, 5, 0, 2**63 - 1, 0), id="content length 2^63-1"),
        pytest.param(struct.pack(">iiiqi", 1, 5, 0, -1, 0), id="negative content length"),
        pytest.param(struct.pack(">iiiqi", 1, 5, 0, 0, 2**31 - 1), id="footer count 2^31-1"),
        pytest.param(struct.pack(">iiiqi", 1, 5, 0, 0, 0) + b"more", id="bytes after the footer"),
    ],
)
def test_a_sound_frame_around_nonsense_is_skipped_whole(body: bytes) -> None:
    broken = frame(body)
    assert kinds(GOOD + broken + GOOD) == [*GOOD_KINDS, BlockType.CORRUPT, *GOOD_KINDS]
    corrupt = read_blocks(GOOD + broken + GOOD)[1]
    assert (corrupt.offset, corrupt.size) == (len(GOOD), len(broken))
    assert corrupt.problem


def test_a_total_length_that_does_not_match_is_skipped() -> None:
    body = GOOD[14:-8]
    blocks = read_blocks(frame(body, total=len(body) + 8 + 7) + GOOD)
    assert [block.type for block in blocks] == [BlockType.CORRUPT, *GOOD_KINDS]
    assert "total length" in str(blocks[0].problem)


def test_a_block_that_no_magic_follows_is_damaged_as_for_hudi() -> None:
    # HoodieLogFileReader reads the next magic before it trusts a block, so damage there costs both.
    assert kinds(GOOD + b"#HUDi#" + GOOD[6:] + GOOD) == [BlockType.CORRUPT, *GOOD_KINDS]


def test_a_magic_inside_a_sound_block_is_content() -> None:
    data = data_block(b"..#HUDI#" + GOOD + b"..") + GOOD
    assert kinds(data) == GOOD_KINDS * 2


def test_the_next_magic_is_found_across_the_reads_of_the_scan() -> None:
    for distance in range(16 * 1024 - 20, 16 * 1024 + 4):
        broken = MAGIC + b"\xff" * distance
        assert kinds(broken + GOOD) == [BlockType.CORRUPT, *GOOD_KINDS]


def test_many_magics_take_no_longer_than_their_bytes() -> None:
    blocks = read_blocks(MAGIC * 20_000)
    assert len(blocks) == 20_000
    assert all(block.is_corrupt for block in blocks)
    assert len(headers(MAGIC * 20_000)) == 20_000


# ------------------------------------------------------------------------------------------------ deletes


DELETES = [
    DeleteRecord("natural", ""),
    DeleteRecord("bool", "p=1", True, OrderingType.BOOLEAN),
    DeleteRecord("int", "p=1", -(2**31), OrderingType.INT),
    DeleteRecord("long", "p=1", 2**63 - 1, OrderingType.LONG),
    DeleteRecord("float", "p=1", 1.5, OrderingType.FLOAT),
    DeleteRecord("double", "p=1", 0.1, OrderingType.DOUBLE),
    DeleteRecord("bytes", "p=1", b"\xff", OrderingType.BYTES),
    DeleteRecord("string", "p=✈", "Ü", OrderingType.STRING),
    DeleteRecord("date", "p=1", 19_000, OrderingType.DATE),
    DeleteRecord("decimal", "p=1", Decimal("-123456789012345.123456789012345"), OrderingType.DECIMAL),
    DeleteRecord("time", "p=1", 1, OrderingType.TIME_MICROS),
    DeleteRecord("timestamp", "p=1", 1_700_000_000_000_000, OrderingType.TIMESTAMP_MICROS),
]


def test_every_ordering_type_reads_back() -> None:
    expected = [DeleteRecord(d.record_key, d.partition_path, d.ordering_value, d.resolved_type) for d in DELETES]
    assert decode_deletes(encode_deletes(DELETES)) == expected


def test_delete_bytes_are_those_of_the_format() -> None:
    content = encode_deletes([DeleteRecord("k", "p", 5)])
    # version, length; array of one; key and partition path in branch 1; a long in branch 3; end of the array
    assert content.hex() == "00000003" + "0000000a" + "02" + "02026b" + "020270" + "060a" + "00"


def test_natural_order_is_int_zero_alone() -> None:
    assert DeleteRecord("k", "p").natural_order
    assert not DeleteRecord("k", "p", 0, OrderingType.LONG).natural_order
    assert not DeleteRecord("k", "p", 5).natural_order
    assert DeleteRecord("k", "p", 5).resolved_type is OrderingType.LONG


def test_an_ordering_value_that_is_null_is_natural_order() -> None:
    (record,) = decode_deletes(struct.pack(">ii", 3, 9) + b"\x02\x02\x02k\x02\x02p\x00\x00")
    assert record.natural_order


@pytest.mark.parametrize(
    "record",
    [
        DeleteRecord("k", "p", 2**31, OrderingType.INT),
        DeleteRecord("k", "p", 2**63, OrderingType.LONG),
        DeleteRecord("k", "p", "5", OrderingType.LONG),
        DeleteRecord("k", "p", 5, OrderingType.DECIMAL),
        DeleteRecord("k", "p", Decimal("1e-16")),
        DeleteRecord("k", "p", Decimal("1e20")),
        DeleteRecord("k", "p", Decimal("nan")),
        DeleteRecord("k", "p", (1, 2), OrderingType.ARRAY),
        DeleteRecord("k", "p", datetime(2026, 1, 1, tzinfo=UTC)),  # type: ignore[arg-type]
    ],
)
def test_an_ordering_value_that_its_type_cannot_hold_is_refused(record: DeleteRecord) -> None:
    with pytest.raises(InvalidInput):
        encode_deletes([record])


@pytest.mark.parametrize("version", [1, 2])
def test_java_serialised_deletes_are_refused_by_name(version: int) -> None:
    with pytest.raises(UnsupportedTable, match=f"version {version}"):
        decode_deletes(struct.pack(">ii", version, 4) + b"\xac\xed\x00\x05")


def test_deletes_that_do_not_parse_are_corrupt() -> None:
    content = encode_deletes(DELETES)
    longer = struct.pack(">ii", 3, 2) + b"\x00x"  # the length counts a byte after the list's end
    for broken in (b"", content[:7], content[:-1], content + b"x", longer, struct.pack(">ii", 4, 1) + b"\x00"):
        with pytest.raises(CorruptTable):
            decode_deletes(broken)


# --------------------------------------------------------------------------- event time in the header


def test_the_minimum_event_time_stays_out_of_the_way_of_the_schema() -> None:
    marked = with_min_event_time(SCHEMA, 1357016400000)
    assert min_event_time(marked) == 1357016400000
    assert json.loads(marked) == {**json.loads(SCHEMA), "hoodie.min.event.time": 1357016400000}
    assert min_event_time(with_min_event_time(marked, -5)) == -5


@pytest.mark.parametrize("value", ["null", '"5"', "1.5", "true", "[]", str(2**63)])
def test_a_minimum_that_is_no_long_counts_as_absent(value: str) -> None:
    assert min_event_time(f'{{"type":"record","hoodie.min.event.time":{value}}}') is None


def test_a_header_without_a_readable_schema_has_no_minimum() -> None:
    for schema in (None, "", SCHEMA, '"hoodie.min.event.time"', "{hoodie.min.event.time", "[" * 100_000):
        assert min_event_time(schema) is None


# --------------------------------------------------------------------- written by Apache Hudi 0.15.0


@pytest.mark.parametrize("name", json.loads((GOLDEN / "manifest.json").read_text())["avro"])
def test_hudis_blocks_read_whole_and_write_back_in_the_same_form(name: str) -> None:
    data = (GOLDEN / name).read_bytes()
    (block,) = read_blocks(data)
    assert block.size == len(data)
    assert set(block.header) == {HeaderKey.INSTANT_TIME, HeaderKey.SCHEMA}
    again = encode_block(block.type, block.header, block.content, block.footer)
    # Hudi's order of header entries is that of a Java hash map; ours is by key. All else is equal.
    start, end = 6 + 8 + 4 + 4, block.content_offset - 8
    assert (again[:start], again[end:]) == (data[:start], data[end:])
    assert sorted(again[start:end]) == sorted(data[start:end])


def test_hudis_deletes_read_and_write_back_to_the_byte() -> None:
    for block_format in ("avro", "parquet"):
        deleted = []
        for number in (1, 2):
            (block,) = read_blocks((GOLDEN / f"hudi_0_15_{block_format}_{number}.log").read_bytes())
            assert block.type is BlockType.DELETE
            deleted += decode_deletes(block.content)
            assert encode_deletes(deleted[-1:]) == block.content
        assert deleted == [
            # The delete operation writes no ordering value; _hoodie_is_deleted writes the row's.
            DeleteRecord("extreme", "", 0, OrderingType.INT),
            DeleteRecord("nulls", "", 1500, OrderingType.LONG),
        ]


def test_a_whole_block_that_cannot_be_read_is_told_from_a_torn_one() -> None:
    block = bytearray(encode_block(BlockType.AVRO_DATA, {HeaderKey.INSTANT_TIME: "1"}, b"content"))
    torn = read_blocks(bytes(block[:-3]))
    block[22:26] = (10**9).to_bytes(4, "big")  # the header's entry count, in a frame that stays whole
    (whole,) = read_blocks(bytes(block))
    assert whole.is_corrupt
    assert whole.framed
    assert [b.framed for b in torn] == [False]
