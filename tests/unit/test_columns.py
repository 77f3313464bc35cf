"""What is kept as columns comes back as it was: values, types, order."""

from __future__ import annotations

import string
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_assets.engine.columns import Texts, column
from hudi_assets.engine.loaded import Loaded
from hudi_assets.engine.model import LogFile
from hudi_assets.engine.storage import FileInfo, Listing
from hudi_assets.engine.timeline.commit_metadata import CommitMetadata, WriteStat
from hudi_assets.engine.timeline.stat_columns import StatColumns, partitions_of, stats_in, with_columns

TEXT = st.text(st.sampled_from([*string.ascii_letters, "_", ".", "/", "\n", "\0", "é", "\udc80"]), max_size=5)
INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
VALUE = st.one_of(st.none(), st.booleans(), INT64, st.integers(0, 3), st.just(1 << 70), TEXT)


@given(st.one_of(*(st.lists(one, min_size=1, max_size=40) for one in (VALUE, INT64, TEXT, st.sampled_from("ab")))))
@settings(max_examples=100, deadline=None)
def test_a_column_gives_what_it_was_made_of(values: list[Any]) -> None:
    found = list(column(values))
    assert found == values
    assert list(map(type, found)) == list(map(type, values))


def test_one_is_not_true() -> None:
    assert [type(value) for value in column([1, True, 1])] == [int, bool, int]


def test_many_texts_take_few_bytes() -> None:
    texts = [f".0000-1234-5678_{n}.log.1_0-1-0" for n in range(1_000)]
    found = column(texts)
    assert isinstance(found, Texts)
    assert len(found.data) < sum(map(len, texts)) / 4


PARTITION = st.sampled_from(["", "p=a", "p=b", "q/p=a"])


@st.composite
def stats(draw: st.DrawFn) -> WriteStat:
    partition, file_id, own = draw(PARTITION), draw(st.one_of(st.sampled_from(["f-1", "f-2"]), TEXT)), draw(TEXT)
    name = draw(st.sampled_from([f".{file_id}_2026.log.{own}", f"{file_id}_{own}", own]))
    return WriteStat(
        path=f"{partition}/{name}" if partition else name,
        partition=partition,
        file_id=file_id,
        prev_commit=draw(st.sampled_from(["null", "2026"])),
        size=draw(INT64),
        num_writes=draw(st.integers(0, 3)),
        min_event_time=draw(st.one_of(st.none(), INT64)),
        max_event_time=draw(st.one_of(st.none(), INT64)),
        log_version=draw(st.sampled_from([None, 1])),
        base_file=draw(st.one_of(st.none(), st.just(f"{file_id}_base"), TEXT)),
        log_files=draw(st.one_of(st.just((name,)), st.lists(TEXT, max_size=3).map(tuple))),
    )


@given(st.lists(stats(), max_size=30))
@settings(max_examples=100, deadline=None)
def test_write_stats_as_columns_are_the_same(found: list[WriteStat]) -> None:
    columns = StatColumns.of(found)
    assert list(columns) == found
    assert [tuple(map(type, stat)) for stat in columns] == [tuple(map(type, stat)) for stat in found]
    assert columns == tuple(found)
    assert len(columns) == len(found)
    assert partitions_of(columns) == partitions_of(found)
    for partitions in ({"p=a"}, {"", "p=b"}, {"elsewhere"}):
        assert list(stats_in(columns, partitions)) == list(stats_in(found, partitions))


def test_blocks_of_many_stats_keep_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [WriteStat(f"p={n % 7}/f{n}_1.parquet", f"p={n % 7}", f"f{n}", "null", n) for n in range(25_000)]
    columns = StatColumns.of(found)
    assert len(columns.blocks) > 2
    assert columns == tuple(found)
    assert columns[24_999] == found[24_999]
    commit = with_columns(CommitMetadata("UPSERT", tuple(found)))
    assert isinstance(commit.stats, StatColumns)
    assert commit == CommitMetadata("UPSERT", tuple(found))


INFO = st.builds(
    FileInfo,
    st.just(""),
    INT64,
    st.one_of(st.none(), TEXT),
    st.one_of(st.none(), INT64),
    st.integers(0, 3),
    INT64,
    st.booleans(),
    st.one_of(st.none(), TEXT),
)


@given(st.lists(st.tuples(TEXT, INFO), max_size=20), st.sampled_from(["", "p=a/", "a/b/"]))
@settings(max_examples=100, deadline=None)
def test_a_listing_as_columns_is_the_same(named: list[tuple[str, FileInfo]], prefix: str) -> None:
    infos = [info._replace(path=prefix + name) for name, info in named]
    listing = Listing(prefix, list(infos))
    for _ in range(2):
        listing.unload()
        assert len(listing) == len(infos)
        assert list(listing) == infos
        assert [tuple(map(type, info)) for info in listing] == [tuple(map(type, info)) for info in infos]
        assert listing == infos
        assert listing.entries is listing.entries


class Holder:
    """Says whether it has objects."""

    def __init__(self) -> None:
        self.loaded = True

    def unload(self) -> None:
        self.loaded = False


def test_those_that_were_loaded_first_give_their_objects_up() -> None:
    loaded = Loaded(10)
    one, two, three = Holder(), Holder(), Holder()
    loaded.add(one, 4)
    loaded.add(two, 6)
    assert one.loaded
    loaded.add(one, 4)  # again: it is the newest now
    loaded.add(three, 1)
    assert (one.loaded, two.loaded, three.loaded) == (True, False, True)


def test_the_last_one_stays_however_large_it_is() -> None:
    loaded = Loaded(10)
    one = Holder()
    loaded.add(one, 11)
    assert one.loaded
    loaded.add(Holder(), 1)  # which nobody holds
    assert not one.loaded


def test_what_is_gone_does_not_count() -> None:
    loaded = Loaded(10)
    one = Holder()
    loaded.add(one, 1)
    for _ in range(100):
        loaded.add(Holder(), 9)
    assert one.loaded


def test_a_log_file_is_a_tuple_of_eight() -> None:
    """The columns of slices make one by its fields in order."""
    assert LogFile._fields[:2] == ("path", "partition")
    assert len(LogFile._fields) == 8
