"""HFiles of random entries: they read back whole, and no damage ends in anything but the engine's own errors."""

from __future__ import annotations

from contextlib import suppress

from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_assets.engine.errors import CorruptTable, UnsupportedTable
from hudi_assets.engine.format.hfile.blocks import Codec
from hudi_assets.engine.format.hfile.file import Flavour, HFileReader, read_hfile, write_hfile

# A hang shows; a busy machine does not.
SCHEMA = '{"type":"record","name":"x","fields":[]}'

KEYS = st.binary(min_size=1, max_size=300) | st.text(min_size=1, max_size=20).map(lambda text: text.encode("utf-8"))
VALUES = st.binary(max_size=100) | st.integers(0, 100_000).map(bytes)
ENTRIES = st.dictionaries(KEYS, VALUES, min_size=1, max_size=40)
FLAVOURS = st.sampled_from(list(Flavour))
CODECS = st.sampled_from(list(Codec))


@given(ENTRIES, FLAVOURS, CODECS)
def test_entries_read_back(entries: dict[bytes, bytes], flavour: Flavour, codec: Codec) -> None:
    data = write_hfile(entries.items(), schema=SCHEMA, flavour=flavour, codec=codec)
    assert read_hfile(data).entries == tuple(sorted(entries.items()))
    reader = HFileReader(lambda offset, n: data[offset : offset + n], len(data))
    assert {key: reader.get(key) for key in entries} == entries


@given(ENTRIES, KEYS)
def test_a_prefix_finds_what_starts_with_it(entries: dict[bytes, bytes], prefix: bytes) -> None:
    data = write_hfile(entries.items(), schema=SCHEMA, flavour=Flavour.NATIVE)
    reader = HFileReader(lambda offset, n: data[offset : offset + n], len(data))
    for start in (prefix, prefix[:1]):
        expected = {key: value for key, value in entries.items() if key.startswith(start)}
        assert dict(reader.starting_with(start)) == expected


@settings(max_examples=300)
@given(
    ENTRIES,
    CODECS,
    st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.binary(min_size=1, max_size=8)), min_size=1, max_size=4),
)
def test_damage_is_told(entries: dict[bytes, bytes], codec: Codec, damage: list[tuple[float, bytes]]) -> None:
    """Where nothing has a checksum a value may be another one; nothing else may happen."""
    data = bytearray(write_hfile(entries.items(), schema=SCHEMA, flavour=Flavour.HBASE, codec=codec))
    for place, patch in damage:
        at = int(place * len(data))
        data[at : at + len(patch)] = patch
    with suppress(CorruptTable, UnsupportedTable):
        found = read_hfile(data)  # type: ignore[arg-type]
        assert sum(len(key) + len(value) for key, value in found.entries) < len(data) + (1 << 20) * len(entries)


@given(st.binary(max_size=9000))
def test_anything_else_is_refused(data: bytes) -> None:
    with suppress(CorruptTable, UnsupportedTable):
        read_hfile(data)


@given(ENTRIES, st.floats(0, 1, exclude_max=True))
def test_a_cut_file_is_refused(entries: dict[bytes, bytes], place: float) -> None:
    data = write_hfile(entries.items(), schema=SCHEMA, flavour=Flavour.NATIVE)
    with suppress(CorruptTable):
        read_hfile(data[: int(place * len(data))])
        raise AssertionError("a cut file was read")
