"""HFiles: those that Hudi wrote are read, what is written here has their layout, and damage is told."""

from __future__ import annotations

import importlib.util
import random
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from hudi_assets.engine.errors import CorruptTable, HudiAssetsError, InvalidInput, UnsupportedTable
from hudi_assets.engine.format.hfile import blocks as hfile_blocks
from hudi_assets.engine.format.hfile.blocks import (
    HEADER_SIZE,
    BlockKind,
    Codec,
    Cursor,
    IndexEntry,
    crc32c,
    decode_block,
    decode_leaf_index,
    encode_block,
    encode_root_index,
    hadoop_varint,
)
from hudi_assets.engine.format.hfile.file import TRAILER_SIZE, Flavour, HFileReader, read_hfile, write_hfile

GOLDEN = Path(__file__).parents[1] / "golden"
FILES = sorted(file.name for file in GOLDEN.glob("hfile_*.hfile"))
SCHEMA = '{"type":"record","name":"x","fields":[]}'
MIB = 1 << 20


def made_by() -> ModuleType:
    """The script that made the golden files: it knows what is in them."""
    spec = importlib.util.spec_from_file_location("make_hfiles", GOLDEN / "make_hfiles.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


MADE = made_by()
ENTRIES = tuple((key.encode(), value) for key, value in MADE.entries())


def reader_of(data: bytes, reads: list[tuple[int, int]] | None = None) -> HFileReader:
    def read_at(offset: int, n: int) -> bytes:
        if reads is not None:
            reads.append((offset, n))
        return data[offset : offset + n]

    return HFileReader(read_at, len(data))


# ------------------------------------------------------------------------------------- files that Hudi wrote


def test_there_are_golden_files_of_both_writers() -> None:
    assert FILES == [
        "hfile_0_15_gz.hfile",
        "hfile_0_15_none.hfile",
        "hfile_1_2_gzip.hfile",
        "hfile_1_2_none.hfile",
    ]


@pytest.mark.parametrize("name", FILES)
def test_golden_files_are_read(name: str) -> None:
    found = read_hfile((GOLDEN / name).read_bytes())
    assert found.entries == ENTRIES
    assert found.schema == MADE.SCHEMA
    assert found.meta["golden"].endswith(MADE.META)  # behind its length, by HBase's writer


@pytest.mark.parametrize("name", FILES)
def test_every_key_of_a_golden_file_is_found(name: str) -> None:
    reader = reader_of((GOLDEN / name).read_bytes())
    assert len(reader) == len(ENTRIES)
    assert all(reader.get(key) == value for key, value in ENTRIES)
    assert [reader.get(key) for key in (b"a", b"key-0005", b"key-149x", b"zz", b"")] == [None] * 5


@pytest.mark.parametrize("name", FILES)
def test_keys_with_a_prefix_are_found(name: str) -> None:
    reader = reader_of((GOLDEN / name).read_bytes())
    for prefix in (b"key-01", b"key-1", b"l", b"p=", b"q", b""):
        assert tuple(reader.starting_with(prefix)) == tuple(e for e in ENTRIES if e[0].startswith(prefix))


def test_golden_files_have_several_blocks_and_those_of_hbase_levels_of_index() -> None:
    for name in FILES:
        data = (GOLDEN / name).read_bytes()
        assert data.count(BlockKind.DATA.value) > 10
        assert (BlockKind.LEAF_INDEX.value in data) == name.startswith("hfile_0_15")
        assert (BlockKind.INTERMEDIATE_INDEX.value in data) == name.startswith("hfile_0_15")


@pytest.mark.parametrize("name", FILES)
def test_a_cut_golden_file_is_refused(name: str) -> None:
    data = (GOLDEN / name).read_bytes()
    for size in (*range(0, len(data), 97), len(data) - 1, len(data) - TRAILER_SIZE):
        with pytest.raises(CorruptTable):
            read_hfile(data[:size])


@pytest.mark.parametrize("name", [name for name in FILES if "1_2_none" not in name])
def test_no_flipped_bit_changes_an_entry(name: str) -> None:
    """Packed blocks have gzip's checksum, HBase's have their own; 1.x's unpacked ones have none."""
    data = (GOLDEN / name).read_bytes()
    rng = random.Random(7)
    refused = 0
    for _ in range(600):
        damaged = bytearray(data)
        damaged[rng.randrange(len(data) - TRAILER_SIZE + 250)] ^= 1 << rng.randrange(8)
        try:
            found = read_hfile(bytes(damaged))
        except HudiAssetsError:
            refused += 1
        else:
            assert found.entries == ENTRIES
    assert refused > 400


# ------------------------------------------------------------------------------------------- what is written


@pytest.mark.parametrize("flavour", Flavour)
@pytest.mark.parametrize("codec", Codec)
def test_what_is_written_reads_back(flavour: Flavour, codec: Codec) -> None:
    rng = random.Random(1)
    entries = [(f"k{number:05d}".encode(), rng.randbytes(rng.randrange(200))) for number in range(3000)]
    entries += [("é日本🚲".encode(), b""), (b"x" * 3000, b"long key"), (b"large", rng.randbytes(2 * MIB)), (b"m", b"")]
    data = write_hfile(
        reversed(entries), schema=SCHEMA, flavour=flavour, codec=codec, meta={"bloomFilter": b"abc"}, info={"i": b"1"}
    )
    found = read_hfile(data)
    assert found.entries == tuple(sorted(entries))
    assert (found.schema, found.meta, found.info["i"]) == (SCHEMA, {"bloomFilter": b"abc"}, b"1")


@pytest.mark.parametrize(
    ("name", "flavour"), [("hfile_0_15_gz.hfile", Flavour.HBASE), ("hfile_1_2_gzip.hfile", Flavour.NATIVE)]
)
def test_file_info_is_that_of_the_writer_it_is_like(name: str, flavour: Flavour) -> None:
    theirs = read_hfile((GOLDEN / name).read_bytes())
    ours = read_hfile(write_hfile(theirs.entries, schema=MADE.SCHEMA, flavour=flavour))
    assert {k: v for k, v in ours.info.items() if k != "hfile.CREATE_TIME_TS"} == {
        k: v for k, v in theirs.info.items() if k != "hfile.CREATE_TIME_TS"
    }


def test_the_same_entries_make_the_same_bytes() -> None:
    pair = [(b"a", b"1"), (b"b", b"2")]
    made = {write_hfile(order, schema=SCHEMA, flavour=Flavour.HBASE) for order in (pair, pair[::-1])}
    assert len(made) == 1


def test_blocks_stay_below_the_size_at_which_hudis_reader_loses_records() -> None:
    """It starts no record in as many last bytes of a block as there are checksums on disk."""
    rng = random.Random(2)
    entries = [(b"%06d" % number, rng.randbytes(rng.choice((0, 30, 70_000)))) for number in range(2500)]
    data = write_hfile(entries, schema=SCHEMA, flavour=Flavour.NATIVE, codec=Codec.NONE)
    at = blocks = 0
    while data[at : at + 8] == BlockKind.DATA.value:
        on_disk, content = struct.unpack_from(">ii", data, at + 8)
        checksums = on_disk - content
        cell_sizes, cell = [], at + HEADER_SIZE
        while cell < at + HEADER_SIZE + content:
            key_size, value_size = struct.unpack_from(">ii", data, cell)
            cell_sizes.append(8 + key_size + value_size + 1)
            cell += cell_sizes[-1]
        assert checksums < cell_sizes[-1] or len(cell_sizes) == 1
        at += HEADER_SIZE + on_disk
        blocks += 1
    assert blocks > 10


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ([], "without entries"),
        ([(b"a", b"1"), (b"a", b"2")], "twice"),
        ([(b"", b"1")], "0 bytes"),
        ([(b"k" * 32768, b"1")], "32768 bytes"),
    ],
)
def test_what_no_reader_could_read_is_not_written(entries: list[tuple[bytes, bytes]], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        write_hfile(entries, schema=SCHEMA, flavour=Flavour.HBASE)


def test_a_lookup_reads_the_end_of_the_file_and_one_block() -> None:
    entries = [(b"%08d" % number, bytes(100)) for number in range(20_000)]
    data = write_hfile(entries, schema=SCHEMA, flavour=Flavour.NATIVE, codec=Codec.NONE)
    reads: list[tuple[int, int]] = []
    reader = reader_of(data, reads)
    opened = len(reads)
    assert reader.get(b"00012345") == bytes(100)
    assert len(reads) - opened <= 2
    assert sum(n for _, n in reads) < len(data) // 10


# ------------------------------------------------------------------------------------------ hostile files


def written(codec: Codec = Codec.NONE) -> bytes:
    return write_hfile([(b"a", b"1"), (b"b", b"2")], schema=SCHEMA, flavour=Flavour.HBASE, codec=codec)


def replaced(data: bytes, old: bytes, new: bytes) -> bytes:
    assert data.count(old) >= 1
    return data.replace(old, new, 1)


def test_a_block_that_claims_more_than_it_can_hold_is_refused() -> None:
    packed = bytearray(written(Codec.GZIP))
    struct.pack_into(">i", packed, 12, 2**31 - 1)
    with pytest.raises(CorruptTable, match="claim to hold"):
        read_hfile(bytes(packed))


def test_a_bomb_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    block = encode_block(BlockKind.DATA, bytes(2 * MIB), Codec.GZIP)
    assert len(decode_block(bytes(block), (BlockKind.DATA,), Codec.GZIP).content) == 2 * MIB
    monkeypatch.setattr(hfile_blocks, "MOST_INFLATED", MIB)
    with pytest.raises(CorruptTable, match="claim to hold"):
        decode_block(bytes(block), (BlockKind.DATA,), Codec.GZIP)


def test_a_block_that_unpacks_to_more_than_it_says_is_refused() -> None:
    block = bytearray(encode_block(BlockKind.DATA, bytes(1000), Codec.GZIP))
    struct.pack_into(">i", block, 12, 999)
    with pytest.raises(CorruptTable, match="does not unpack"):
        decode_block(bytes(block), (BlockKind.DATA,), Codec.GZIP)


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: replaced(data, b"DATABLK*", b"METABLKc"),
        lambda data: replaced(data, b"IDXROOT2", b"IDXLEAF2"),
        lambda data: replaced(data, b"PBUF", b"PBUX"),
        lambda data: replaced(data, b'TRABLK"$', b'TRABLK"!'),
        lambda data: replaced(data, b"\x00\x01b", b"\x00\x01A"),  # keys out of order
        lambda data: replaced(data, b"\x00\x01b", b"\x00\x02b"),  # a row longer than its key
        lambda data: replaced(data, b"\x00\x00\x00\x0d\x00\x00\x00\x01", b"\x7f\xff\xff\xff\x00\x00\x00\x01"),
        lambda data: replaced(data, b"\x00\x00\x00\x0d\x00\x00\x00\x01", b"\x00\x00\x00\x0d\xff\xff\xff\xff"),
    ],
)
def test_what_contradicts_itself_is_refused(damage: Callable[[bytes], bytes]) -> None:
    with pytest.raises(CorruptTable):
        read_hfile(damage(written()))


def test_a_file_whose_index_leaves_a_block_out_is_refused() -> None:
    entries = [(b"%04d" % number, bytes(1000)) for number in range(100)]
    data = bytearray(write_hfile(entries, schema=SCHEMA, flavour=Flavour.NATIVE, codec=Codec.NONE))
    blocks = data.index(b"\x28\x02\x30\x00", data.index(b'TRABLK"$')) + 1
    data[blocks] = 1
    with pytest.raises(CorruptTable, match="should have 100"):
        read_hfile(bytes(data))


def test_an_index_of_any_number_of_levels_ends() -> None:
    """A root that leads to itself, a leaf to its root: no way through them is walked twice."""
    data = bytearray(written())
    at = data.index(b'TRABLK"$')
    levels = data.index(b"\x40\x01\x48", at) + 1
    for number in (0, 2, 3, 8, 9, 127):
        data[levels] = number
        if number == 0:
            assert len(read_hfile(bytes(data)).entries) == 2
            continue
        with pytest.raises(CorruptTable):
            read_hfile(bytes(data))


def test_a_leaf_that_leads_back_is_refused() -> None:
    leaf = struct.pack(">i", 2) + struct.pack(">iii", 0, 15, 30)
    leaf += 2 * (struct.pack(">qi", 0, 60) + b"\x00\x01a")
    assert len(decode_leaf_index(leaf)) == 2
    with pytest.raises(CorruptTable):
        decode_leaf_index(leaf[:-1])
    with pytest.raises(CorruptTable):
        decode_leaf_index(struct.pack(">i", 2**31 - 1) + leaf[4:])


def test_another_version_or_codec_is_named() -> None:
    data = bytearray(written())
    data[-1] = 2
    with pytest.raises(UnsupportedTable, match="version 2"):
        read_hfile(bytes(data))
    data = bytearray(written())
    data[data.index(b"\x60\x02\x00", data.index(b'TRABLK"$')) + 1] = 3
    with pytest.raises(UnsupportedTable, match="codec 3"):
        read_hfile(bytes(data))


# --------------------------------------------------------------------------------------------- small parts


def test_crc32c_is_castagnolis() -> None:
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(b"123456789") != zlib.crc32(b"123456789")


@pytest.mark.parametrize(
    ("number", "expected"), [(0, "00"), (127, "7f"), (128, "8f80"), (255, "8fff"), (256, "8e0100"), (70000, "8d011170")]
)
def test_hadoops_numbers(number: int, expected: str) -> None:
    assert hadoop_varint(number).hex() == expected
    assert Cursor(bytes.fromhex(expected)).hadoop_varint() == number


def test_index_entries_of_long_keys_read_back() -> None:
    key = b"\x01\x2c" + b"k" * 300
    content = encode_root_index([(key, 5, 7)])
    assert hfile_blocks.decode_root_index(content, 1, rows=True) == (IndexEntry(b"k" * 300, 5, 7),)
