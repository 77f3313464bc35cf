"""Log files of random blocks: they read back whole, and damage costs no more than Hudi lets it cost."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from hudi_assets.engine.errors import CorruptTable, UnsupportedTable
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
    read_blocks,
    read_headers,
)

# A hang shows; a busy machine does not.

TYPES = st.sampled_from([kind for kind in BlockType if kind is not BlockType.CORRUPT])
# Text that is UTF-8 can hold, magic included.
TEXT = st.text(max_size=20) | st.just("#HUDI#")
HEADERS = st.dictionaries(st.sampled_from(list(HeaderKey)), TEXT, max_size=4)
CONTENT = st.binary(max_size=60) | st.binary(max_size=20).map(lambda tail: MAGIC + tail)
BLOCKS = st.builds(encode_block, TYPES, HEADERS, CONTENT, st.dictionaries(st.integers(0, 3), TEXT, max_size=2))
FILES = st.lists(BLOCKS, min_size=1, max_size=5)


def facts(block: LogBlock) -> tuple[Any, ...]:
    return (
        block.type,
        dict(block.header),
        dict(block.footer),
        block.offset,
        block.size,
        block.content_offset,
    )


def headers(data: bytes) -> list[LogBlock]:
    return list(read_headers(lambda offset, n: data[offset : offset + n], len(data)))


@given(st.lists(st.tuples(TYPES, HEADERS, CONTENT), max_size=5))
def test_blocks_read_back(parts: list[tuple[BlockType, dict[HeaderKey, str], bytes]]) -> None:
    data = b"".join(encode_block(*part) for part in parts)
    read = read_blocks(data)
    assert [(b.type, b.header, bytes(b.content)) for b in read] == parts
    assert [facts(b) for b in headers(data)] == [facts(b) for b in read]


@st.composite
def damaged(draw: st.DrawFn) -> tuple[list[bytes], bytes, int, int]:
    """Blocks, their file with one stretch changed, and where the change starts and ends (in the old file)."""
    blocks = draw(FILES)
    data = b"".join(blocks)
    start = draw(st.integers(0, len(data) - 1))
    end = draw(st.integers(start + 1, min(len(data), start + 24)))
    put = draw(st.binary(max_size=24))
    return blocks, data[:start] + put + data[end:], start, end


@settings(max_examples=400)
@given(damaged())
def test_blocks_away_from_the_damage_are_still_found(case: tuple[list[bytes], bytes, int, int]) -> None:
    blocks, data, start, end = case
    try:
        read = read_blocks(data)
    except CorruptTable:
        # Only a file whose first bytes are no magic is refused whole.
        assert data[: len(MAGIC)] != MAGIC
        return
    assert [facts(b) for b in headers(data)] == [facts(b) for b in read]
    found = {(b.offset, data[b.offset : b.offset + b.size]) for b in read if not b.is_corrupt}
    shift = len(data) - sum(map(len, blocks))
    offset = 0
    for number, block in enumerate(blocks):
        stop = offset + len(block)
        # A block before the damage needs the magic after it, too.
        needed = stop + (len(MAGIC) if number + 1 < len(blocks) else 0)
        if needed <= start:
            assert (offset, block) in found
        elif offset >= end and not _swallowed(read, offset + shift):
            assert (offset + shift, block) in found
        offset = stop


def _swallowed(read: tuple[LogBlock, ...], offset: int) -> bool:
    """True where the damage made a sound block out of bytes that run over `offset`: no reader can tell."""
    return any(b.offset < offset < b.offset + b.size and not b.is_corrupt for b in read)


@settings(max_examples=400)
@given(FILES, st.data())
def test_a_file_cut_anywhere_keeps_its_whole_blocks(blocks: list[bytes], data: st.DataObject) -> None:
    whole = b"".join(blocks)
    cut = data.draw(st.integers(0, len(whole)))
    read = read_blocks(whole[:cut])
    ends = [sum(map(len, blocks[: n + 1])) for n in range(len(blocks))]
    complete = sum(1 for end in ends if end <= cut)
    rest = cut - (ends[complete - 1] if complete else 0)
    assert [b.is_corrupt for b in read[:complete]] == [False] * complete
    # Magics inside the cut block start stretches of their own; what is left of it is corrupt in any case.
    assert all(b.is_corrupt for b in read[complete:])
    assert (len(read) > complete) == (rest >= len(MAGIC))


@settings(max_examples=400)
@given(st.lists(st.sampled_from([MAGIC, b"\x00\x00\x00\x00", b"\xff", b"\x01", b"\x7f"]) | st.binary(max_size=9)))
@example([MAGIC, b"\x00" * 8, MAGIC])
def test_any_bytes_are_read_to_their_end(parts: list[bytes]) -> None:
    data = MAGIC + b"".join(parts)
    read = read_blocks(data)
    position = 0
    for block in read:
        assert block.offset == position
        assert block.size > 0
        position += block.size
    assert len(data) - position < len(MAGIC)
    assert [facts(b) for b in headers(data)] == [facts(b) for b in read]


ORDERING: st.SearchStrategy[tuple[Any, OrderingType]] = st.one_of(
    st.tuples(st.booleans(), st.just(OrderingType.BOOLEAN)),
    st.tuples(st.integers(-(2**31), 2**31 - 1), st.sampled_from([OrderingType.INT, OrderingType.DATE])),
    st.tuples(
        st.integers(-(2**63), 2**63 - 1),
        st.sampled_from([OrderingType.LONG, OrderingType.TIME_MICROS, OrderingType.TIMESTAMP_MICROS]),
    ),
    st.tuples(st.floats(width=32, allow_nan=False), st.just(OrderingType.FLOAT)),
    st.tuples(st.floats(allow_nan=False), st.just(OrderingType.DOUBLE)),
    st.tuples(st.binary(), st.just(OrderingType.BYTES)),
    st.tuples(st.text(), st.just(OrderingType.STRING)),
    st.tuples(st.decimals(-(10**15) + 1, 10**15 - 1, places=15, allow_nan=False), st.just(OrderingType.DECIMAL)),
)
DELETES = st.lists(
    st.builds(
        lambda key, partition, ordering: DeleteRecord(key, partition, *ordering),
        st.text(),
        st.text(),
        ORDERING,
    ),
    max_size=6,
)


@given(DELETES)
def test_deletes_read_back(records: list[DeleteRecord]) -> None:
    assert decode_deletes(encode_deletes(records)) == records


@settings(max_examples=400)
@given(DELETES, st.data())
def test_damaged_deletes_are_corrupt_or_other_deletes(records: list[DeleteRecord], data: st.DataObject) -> None:
    content = bytearray(encode_deletes(records))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(content[: data.draw(st.integers(0, len(content)))]) if data.draw(st.booleans()) else content
    with suppress(CorruptTable, UnsupportedTable):
        decode_deletes(bytes(cut))
