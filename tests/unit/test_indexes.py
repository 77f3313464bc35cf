"""Tables of other indexes than the bucket index: what their base files carry, what is planned and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_assets.engine import HudiTable
from hudi_assets.engine.errors import InvalidInput, UnsupportedTable
from hudi_assets.engine.format.bloom import BloomSettings, serialized
from tests.oracle import bloom as bloom_reference
from tests.tables.local_session import LocalSession
from tests.tables.other_index import compaction_as_insert, of_index, with_random_ids
from tests.tables.steps import compact, rows_in

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("day", pa.string()), ("v", pa.int64())])
FILTER, TYPE = "org.apache.hudi.bloomfilter", "hoodie_bloom_filter_type_code"


def make(path: Path, **options: Any) -> HudiTable:
    return HudiTable.create(
        str(path),
        SCHEMA,
        record_key=["id"],
        ordering_field="ts",
        **{"partition_fields": ["day"], "buckets": 2, **options},
    )


def put(table: HudiTable, session: LocalSession, v: int, *rows: tuple[str, int]) -> str:
    """Upsert (key, event time) rows; their partition follows from the key. The instant."""
    frame = session.rows([{"id": k, "ts": ts, "day": day_of(k), "v": v} for k, ts in rows], SCHEMA)
    done = table.upsert(session, frame)
    assert done.instant is not None
    return done.instant


def remove(table: HudiTable, session: LocalSession, *rows: tuple[str, int]) -> None:
    schema = pa.schema([SCHEMA.field(name) for name in ("id", "ts", "day")])
    frame = session.rows([{"id": k, "ts": ts, "day": day_of(k)} for k, ts in rows], schema)
    table.delete(session, frame)


def day_of(key: str) -> str:
    return "ab"[len(key) % 2]


def snapshot(table: HudiTable) -> dict[str, tuple[int, int]]:
    return rows_of(table.snapshot_tasks())


def rows_of(tasks: list[Any]) -> dict[str, tuple[int, int]]:
    rows = rows_in(tasks)
    assert len(rows) == len({r["id"] for r in rows}), "a key comes twice"
    return {r["id"]: (r["ts"], r["v"]) for r in rows}


def footers(table: HudiTable) -> list[tuple[pa.ChunkedArray, dict[str, str]]]:
    found = []
    for path in table.read_optimized_files():
        with pq.ParquetFile(path) as file:
            keys = file.read(columns=["_hoodie_record_key"], use_threads=False).column(0)
            found.append((keys, {k.decode(): v.decode() for k, v in file.metadata.metadata.items()}))
    assert found
    return found


def simple_table(session: LocalSession, path: Path) -> HudiTable:
    table = make(path)
    put(table, session, 1, ("a", 10), ("bb", 20), ("c", 30), ("dd", 40), ("e", 50))
    put(table, session, 2, ("a", 100), ("bb", 110))
    return table


# ------------------------------------------------------------------------------------- the filter


def test_base_files_carry_the_filter(session: LocalSession, tmp_path: Path) -> None:
    """Also those of file groups that had log files alone."""
    table = with_random_ids(simple_table(session, tmp_path / "t"), tmp_path / "other")
    before = snapshot(table)
    compact(table, session, 60)
    assert snapshot(table) == before
    for keys, footer in footers(table):
        assert footer[FILTER] == serialized(keys, BloomSettings())
        assert footer[TYPE] == "DYNAMIC_V0"
        read = bloom_reference.read(footer[FILTER], footer[TYPE])
        assert all(read.might_contain(key) for key in keys.to_pylist())
        assert footer["hoodie_min_record_key"] == min(keys.to_pylist())


def test_a_bucket_index_needs_none(session: LocalSession, tmp_path: Path) -> None:
    table = simple_table(session, tmp_path / "t")
    compact(table, session, 60)
    assert all(FILTER not in footer and "hoodie_min_record_key" in footer for _, footer in footers(table))


@pytest.mark.parametrize("enabled", ["true", "false"])
def test_the_owners_word_on_filters_counts(enabled: str, session: LocalSession, tmp_path: Path) -> None:
    settings = {"hoodie.parquet.bloom.filter.enabled": enabled, "hoodie.index.bloom.num_entries": "10"}
    for table in (
        HudiTable.open(simple_table(session, tmp_path / "t").path, settings=settings),
        with_random_ids(simple_table(session, tmp_path / "u"), tmp_path / "other", settings),
    ):
        compact(table, session, 60)
        for keys, footer in footers(table):
            wanted = serialized(keys, BloomSettings(entries=10)) if enabled == "true" else None
            assert footer.get(FILTER) == wanted


def test_one_file_group_may_be_named_like_a_bucket_by_chance(session: LocalSession, tmp_path: Path) -> None:
    """Once in 40,000 tables: the filter is in it, unless the settings say that the index is the bucket index."""
    table = make(tmp_path / "t", buckets=1, partition_fields=[])
    put(table, session, 1, ("a", 10))
    properties = tmp_path / "t" / ".hoodie" / "hoodie.properties"
    said = properties.read_text()
    properties.write_text(said.replace("hoodie.index.type=BUCKET\n", ""))
    assert said != properties.read_text()
    compact(HudiTable.open(table.path), session, 60)
    assert all(FILTER in footer for _, footer in footers(table))
    put(table, session, 2, ("b", 100))
    compact(table, session, 200)
    assert all(FILTER not in footer for _, footer in footers(table))


# --------------------------------------------------------------------------------------- planning


def story_of_a_key_that_came_back(session: LocalSession, path: Path) -> HudiTable:
    table = make(path, partition_fields=[], buckets=1)
    put(table, session, 1, ("a", 10), ("b", 20))
    compact(table, session, 30)
    remove(table, session, ("a", 40))
    put(table, session, 2, ("a", 100))
    return table


def test_a_key_with_a_row_left_stays_in_the_base_file(session: LocalSession, tmp_path: Path) -> None:
    """Other indexes look in base files only: with `a` gone there, its next row would go to another file group."""
    bucket = story_of_a_key_that_came_back(session, tmp_path / "t")
    other = with_random_ids(bucket, tmp_path / "other")
    assert (compact(bucket, session, 50).logs_remaining, keys_of_base_files(bucket)) == (1, {"b"})
    before = snapshot(other)
    assert (compact(other, session, 50).logs_remaining, keys_of_base_files(other)) == (0, {"a", "b"})
    assert snapshot(other) == before == {"a": (100, 2), "b": (20, 1)}


def keys_of_base_files(table: HudiTable) -> set[str]:
    return {key for keys, _ in footers(table) for key in keys.to_pylist()}


def test_without_deletes_a_part_is_compacted(session: LocalSession, tmp_path: Path) -> None:
    table = make(tmp_path / "t", partition_fields=[], buckets=1)
    put(table, session, 1, ("a", 10), ("b", 20))
    put(table, session, 2, ("a", 100))
    other = with_random_ids(table, tmp_path / "other")
    before = snapshot(other)
    result = compact(other, session, 50)
    assert (result.logs_compacted, result.logs_remaining) == (1, 1)
    assert snapshot(other) == before
    assert other.freshness().min_event_time == 100


def test_deletes_are_not_left_in_a_residue_log(session: LocalSession, tmp_path: Path) -> None:
    """A tombstone's key is in no base file, and a remaining row of it would be."""
    bucket = story_of_a_key_that_came_back(session, tmp_path / "t")
    other = with_random_ids(bucket, tmp_path / "other", {"hudi_assets.table.services": "ours"})
    assert compact(other, session, 50).logs_remaining == 0
    assert keys_of_base_files(other) == {"a", "b"}


def test_an_exact_split_is_refused_by_name(session: LocalSession, tmp_path: Path) -> None:
    settings = {"hudi_assets.table.services": "ours", "hudi_assets.exact.split": "true"}
    other = with_random_ids(simple_table(session, tmp_path / "t"), tmp_path / "other", settings)
    with pytest.raises(InvalidInput, match="needs the bucket index"):
        other.plan_compaction(threshold=60)
    assert other.pending_plan() is None


# ---------------------------------------------------------------------------------------- writing


def test_writing_is_refused_by_name(session: LocalSession, tmp_path: Path) -> None:
    settings = {"hoodie.bucket.index.num.buckets": "2"}
    other = with_random_ids(simple_table(session, tmp_path / "t"), tmp_path / "other", settings)
    before = snapshot(other)
    with pytest.raises(UnsupportedTable, match="is not a bucket's"):
        put(other, session, 3, ("a", 200))
    with pytest.raises(UnsupportedTable, match="is not a bucket's"):
        remove(other, session, ("a", 200))
    assert snapshot(other) == before


@pytest.mark.parametrize("index", ["GLOBAL_BLOOM", "GLOBAL_SIMPLE", "RECORD_INDEX", "HBASE"])
def test_an_index_that_is_not_written_is_named(index: str, session: LocalSession, tmp_path: Path) -> None:
    table = of_index(make(tmp_path / "t"), index, **{"hoodie.bucket.index.num.buckets": "2"})
    with pytest.raises(UnsupportedTable, match=f"hoodie.index.type={index}"):
        put(table, session, 1, ("a", 200))


def test_buckets_are_not_written_as_another_index(session: LocalSession, tmp_path: Path) -> None:
    """A new file group beside the buckets would hide its keys from every writer with the bucket index."""
    table = simple_table(session, tmp_path / "t")
    properties = tmp_path / "t" / ".hoodie" / "hoodie.properties"
    properties.write_text(properties.read_text().replace("hoodie.index.type=BUCKET\n", "hoodie.index.type=SIMPLE\n"))
    with pytest.raises(InvalidInput, match="as the bucket index names them"):
        put(HudiTable.open(table.path), session, 3, ("a", 200))


# ------------------------------------------------------------------ base files of delta commits


def grown(session: LocalSession, tmp_path: Path) -> tuple[HudiTable, list[str]]:
    """Two base files by delta commits, as Hudi's inserts write and grow them, and a log file; the three instants."""
    table = make(tmp_path / "t", partition_fields=[], buckets=1)
    put(table, session, 1, ("a", 10), ("b", 20))
    first = compact(table, session, 30).instant
    put(table, session, 2, ("b", 60), ("c", 70))
    second = compact(table, session, 80).instant
    third = put(table, session, 3, ("a", 90))
    for instant in (first, second):
        compaction_as_insert(tmp_path / "t", instant)
    return with_random_ids(table, tmp_path / "other"), [first, second, third]


def test_the_past_of_a_file_group_that_inserts_let_grow(session: LocalSession, tmp_path: Path) -> None:
    table, (first, second, third) = grown(session, tmp_path)
    assert snapshot(table) == {"a": (90, 3), "b": (60, 2), "c": (70, 2)}
    assert rows_of(table.time_travel_tasks(first)) == {"a": (10, 1), "b": (20, 1)}
    assert rows_of(table.time_travel_tasks(second)) == {"a": (10, 1), "b": (60, 2), "c": (70, 2)}
    assert rows_of(table.read_optimized_tasks()) == {"a": (10, 1), "b": (60, 2), "c": (70, 2)}
    compact(table, session, 95)
    assert rows_of(table.time_travel_tasks(third)) == {"a": (90, 3), "b": (60, 2), "c": (70, 2)}
    assert rows_of(table.time_travel_tasks(first)) == {"a": (10, 1), "b": (20, 1)}
    assert not table.validate()


def test_a_delta_commits_base_file_is_rolled_back(session: LocalSession, tmp_path: Path) -> None:
    table, (_, second, third) = grown(session, tmp_path)
    assert table.rollback(third).files_deleted == 1
    assert rows_of(table.read_optimized_tasks()) == {"a": (10, 1), "b": (60, 2), "c": (70, 2)}
    assert table.rollback(second).files_deleted == 1
    assert not list((tmp_path / "other").glob(f"*_{second}.parquet"))
    # The log file that the second base file was made of is the first slice's again: in Hudi's life there is none.
    assert rows_of(table.read_optimized_tasks()) == {"a": (10, 1), "b": (20, 1)}
    assert not table.validate()


def test_the_cleaner_leaves_the_newest_base_file(session: LocalSession, tmp_path: Path) -> None:
    table, (first, second, _) = grown(session, tmp_path)
    before = snapshot(table)
    table.clean(policy="KEEP_LATEST_FILE_VERSIONS", retained=1)
    assert not list((tmp_path / "other").glob(f"*_{first}.parquet"))
    assert list((tmp_path / "other").glob(f"*_{second}.parquet"))
    assert snapshot(table) == before
    with pytest.raises(InvalidInput):
        table.time_travel_tasks(first)


def test_inserts_into_base_files_hold_no_freshness_up(session: LocalSession, tmp_path: Path) -> None:
    table, _ = grown(session, tmp_path)
    assert table.freshness().min_event_time == 90
    compact(table, session, 95)
    assert table.freshness().min_event_time is None
