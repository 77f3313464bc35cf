"""The bloom filter in a base file's footer, against the slow reference and against filters that Apache Hudi wrote."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_assets.engine.errors import InvalidInput
from hudi_assets.engine.format.bloom import BloomFilterType, BloomSettings, bloom_footer, key_range, serialized
from hudi_assets.engine.table.settings.indexes import IndexSettings, parse_index_settings
from tests.oracle import bloom as slow

KEYS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)


def column(keys: list[str], chunk: int = 1000) -> pa.ChunkedArray:
    parts = [keys[start : start + chunk] for start in range(0, len(keys), chunk)]
    return pa.chunked_array([pa.array(part, pa.string()) for part in parts], pa.string())


@pytest.mark.parametrize("key", ["a", "ab", "abc", "abcd", "abcde", "ä", "ÿþý", "日本🚲", "x" * 101])
def test_every_length_and_sign_of_a_last_byte(key: str) -> None:
    settings = BloomSettings(entries=20, error_rate=1e-4)
    assert serialized(column([key]), settings) == slow.dynamic([key], 20, 1e-4, settings.max_entries)


@given(keys=st.lists(KEYS, max_size=40), chunk=st.integers(1, 15), entries=st.integers(1, 12))
def test_a_simple_filter_is_the_references(keys: list[str], chunk: int, entries: int) -> None:
    settings = BloomSettings(entries=entries, error_rate=0.01, type=BloomFilterType.SIMPLE)
    assert serialized(column(keys, chunk), settings) == slow.simple(keys, entries, 0.01)


@given(
    keys=st.lists(KEYS, max_size=40),
    chunk=st.integers(1, 15),
    entries=st.integers(1, 12),
    max_entries=st.integers(1, 40),
)
def test_a_dynamic_filter_is_the_references(keys: list[str], chunk: int, entries: int, max_entries: int) -> None:
    """Rows are added up to the bound, then the keys go round them."""
    settings = BloomSettings(entries=entries, error_rate=0.01, max_entries=max_entries)
    assert serialized(column(keys, chunk), settings) == slow.dynamic(keys, entries, 0.01, max_entries)


def test_a_slice_of_an_array_is_read_from_its_own_start() -> None:
    settings = BloomSettings(entries=5, error_rate=0.01)
    whole = column(["zero", "one", "two", "three"])
    assert serialized(whole.slice(1, 2), settings) == slow.dynamic(["one", "two"], 5, 0.01, settings.max_entries)


def test_hudis_defaults() -> None:
    settings = BloomSettings()
    assert (settings.bits, settings.hashes) == slow.sizes(60_000, 1e-9) == (2_587_966, 30)
    read = slow.read(serialized(column(["k1", "k2"]), settings), "DYNAMIC_V0")
    assert read.might_contain("k1")
    assert read.might_contain("k2")
    assert not any(read.might_contain(f"other{n}") for n in range(50))


# Written by Apache Hudi 0.15.0 and 1.2.0 into the footer of a file with these keys, in this order.
GOLDEN_KEYS = ["k2", "🚲", "ÿþý", "k1", "k0", "1234", "日本", "12345"]
GOLDEN = {
    "SIMPLE": "/////wAAAAcBAAAAHff9PRc=",
    "DYNAMIC_V0": "/////wAAAAcBAAAAHQAAAAMAAAAFAAAAAv////8AAAAHAQAAAB3zFR0T/////wAAAAcBAAAAHebsOAY=",
}


@pytest.mark.parametrize("kind", GOLDEN)
def test_filters_that_hudi_wrote(kind: str) -> None:
    settings = BloomSettings(entries=3, error_rate=0.01, max_entries=5, type=BloomFilterType(kind))
    assert serialized(column(GOLDEN_KEYS), settings) == GOLDEN[kind]
    read = slow.read(GOLDEN[kind], kind)
    assert all(read.might_contain(key) for key in GOLDEN_KEYS)


def test_a_simple_filter_has_no_type_in_the_footer() -> None:
    """Hudi takes a filter without a type for a simple one, and writes none."""
    keys = column(["a"])
    assert set(bloom_footer(keys, BloomSettings(type=BloomFilterType.SIMPLE))) == {"org.apache.hudi.bloomfilter"}
    assert bloom_footer(keys, BloomSettings())["hoodie_bloom_filter_type_code"] == "DYNAMIC_V0"


@given(st.lists(KEYS, min_size=1, max_size=10))
def test_key_range_is_in_javas_order(keys: list[str]) -> None:
    ordered = sorted(keys, key=lambda key: key.encode("utf-16-be"))
    found = key_range(column(keys))
    assert found == {"hoodie_min_record_key": ordered[0], "hoodie_max_record_key": ordered[-1]}


def test_java_sorts_an_emoji_before_a_private_character() -> None:
    """Not so in UTF-8: Hudi's range would leave out a file that has the key."""
    assert key_range(column(["\ue000", "🚲"])) == {"hoodie_min_record_key": "🚲", "hoodie_max_record_key": "\ue000"}


def test_a_file_without_rows_has_an_empty_range() -> None:
    assert key_range(column([])) == {"hoodie_min_record_key": "", "hoodie_max_record_key": ""}


# ------------------------------------------------------------------------------------------ settings


def test_settings_are_hudis() -> None:
    found = parse_index_settings(
        {
            "hoodie.index.type": "bloom",
            "hoodie.parquet.bloom.filter.enabled": "TRUE",
            "hoodie.index.bloom.num_entries": "100",
            "hoodie.index.bloom.fpp": "0.000000001",
            "hoodie.bloom.index.filter.type": "simple",
            "hoodie.bloom.index.filter.dynamic.max.entries": "500",
        },
        "t",
    )
    assert found == IndexSettings("BLOOM", True, BloomSettings(100, 1e-9, 500, BloomFilterType.SIMPLE))
    assert parse_index_settings({}, "t") == IndexSettings(None, None, BloomSettings())


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("hoodie.index.type", "BTREE"),
        ("hoodie.parquet.bloom.filter.enabled", "yes"),
        ("hoodie.index.bloom.num_entries", "0"),
        ("hoodie.index.bloom.num_entries", "many"),
        ("hoodie.index.bloom.fpp", "0"),
        ("hoodie.index.bloom.fpp", "1"),
        ("hoodie.index.bloom.fpp", "nan"),
        ("hoodie.bloom.index.filter.type", "DYNAMIC_V1"),
        ("hoodie.bloom.index.filter.dynamic.max.entries", "-1"),
        ("hoodie.bloom.index.filter.dynamic.max.entries", "٣"),
    ],
)
def test_what_a_setting_cannot_be(key: str, value: str) -> None:
    with pytest.raises(InvalidInput, match=key):
        parse_index_settings({key: value}, "t")


def test_a_filter_that_java_could_not_address() -> None:
    with pytest.raises(InvalidInput, match="too large"):
        parse_index_settings({"hoodie.index.bloom.num_entries": "100000000"}, "t")
