"""Hudi's keys in the settings of a process: followed by either name, refused where they are not followed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_assets.engine import HudiTable
from hudi_assets.engine.actions.cleaning.plan import Retention, retention
from hudi_assets.engine.errors import InvalidInput, UnsupportedTable
from hudi_assets.engine.model.cleans import CleaningPolicy
from tests.tables.local_session import Frame

SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.string()), ("ts", pa.int64()), ("p", pa.string())])


@pytest.fixture
def path(tmp_path: Path) -> str:
    table = HudiTable.create(
        str(tmp_path / "t"), SCHEMA, record_key=["a", "b"], ordering_field="ts", partition_fields=["p"]
    )
    return table.path


def retained(path: str, settings: Mapping[str, str]) -> Retention:
    config = HudiTable.open(path, settings=settings).config
    return retention(config.properties, None, None, path)


def add_to_table(path: str, **properties: str) -> None:
    file = Path(path, ".hoodie/hoodie.properties")
    file.write_text(file.read_text() + "".join(f"{key.replace('_', '.')}={v}\n" for key, v in properties.items()))


@pytest.mark.parametrize("prefix", ["hoodie.clean", "hoodie.cleaner"])
def test_the_cleaners_keys_have_two_names(path: str, prefix: str) -> None:
    """1.x's name and 0.x's."""
    assert retained(path, {f"{prefix}.commits.retained": "60"}) == Retention(CleaningPolicy.KEEP_LATEST_COMMITS, 60)
    settings = {f"{prefix}.policy": "KEEP_LATEST_FILE_VERSIONS", f"{prefix}.fileversions.retained": "7"}
    assert retained(path, settings) == Retention(CleaningPolicy.KEEP_LATEST_FILE_VERSIONS, 7)
    settings = {f"{prefix}.policy": "KEEP_LATEST_BY_HOURS", f"{prefix}.hours.retained": "5"}
    assert retained(path, settings) == Retention(CleaningPolicy.KEEP_LATEST_BY_HOURS, 5)


def test_the_new_name_counts_where_both_are_stated(path: str) -> None:
    both = {"hoodie.clean.commits.retained": "60", "hoodie.cleaner.commits.retained": "5"}
    assert retained(path, both).retained == 60


def test_what_is_given_counts_before_the_tables_own(path: str) -> None:
    add_to_table(path, hoodie_clean_commits_retained="60")
    assert retained(path, {}).retained == 60
    assert retained(path, {"hoodie.cleaner.commits.retained": "5"}).retained == 5


@pytest.mark.parametrize(
    ("key", "value", "same"),
    [
        ("hoodie.clean.max.commits", "8", "1"),
        ("hoodie.clean.trigger.max.commits", "8", "1"),
        ("hoodie.clean.partition.filter.regex", "2024.*", None),
        ("hoodie.cleaner.partition.filter.selected", "p=a", None),
        ("hoodie.archive.beyond.savepoint", "true", "false"),
        ("hoodie.partition.ttl.inline", "true", "false"),
        ("hoodie.compaction.partition.path.regex", "2024.*", None),
        ("hoodie.bucket.index.partition.expressions", "p=a,8", None),
    ],
)
def test_what_is_not_followed_is_refused_by_name(path: str, key: str, value: str, same: str | None) -> None:
    with pytest.raises(InvalidInput, match=rf"{key}={value.replace('*', '[*]')} is not followed"):
        HudiTable.open(path, settings={key: value})
    if same is not None:
        HudiTable.open(path, settings={key: same})
    # In the table's own properties it is whoever's who wrote it there: the table stays readable.
    add_to_table(path, **{key.replace(".", "_"): value})
    HudiTable.open(path)


@pytest.mark.parametrize(
    ("key", "same", "other"),
    [
        ("hoodie.datasource.write.recordkey.field", "a, b", "a"),
        ("hoodie.datasource.write.partitionpath.field", "p:SIMPLE", "b"),
        ("hoodie.datasource.write.precombine.field", "ts", "a"),
        ("hoodie.datasource.write.table.type", "MERGE_ON_READ", "COPY_ON_WRITE"),
        ("hoodie.write.record.merge.mode", "EVENT_TIME_ORDERING", "COMMIT_TIME_ORDERING"),
        ("hoodie.write.table.version", "6", "9"),
    ],
)
def test_a_writers_option_that_contradicts_the_table_is_refused(path: str, key: str, same: str, other: str) -> None:
    add_to_table(path, hoodie_record_merge_mode="EVENT_TIME_ORDERING")
    HudiTable.open(path, settings={key: same})
    with pytest.raises(InvalidInput, match=f"{key} is {other}, and the table has"):
        HudiTable.open(path, settings={key: other})


def test_our_services_alone_beside_a_writer_that_compacts(path: str) -> None:
    ours = {"hudi_assets.table.services": "ours"}
    HudiTable.open(path, settings={**ours, "hoodie.compact.inline": "false"})
    with pytest.raises(InvalidInput, match=r"hoodie\.compact\.inline=true that one does"):
        HudiTable.open(path, settings={**ours, "hoodie.compact.inline": "true"})
    HudiTable.open(path, settings={"hoodie.compact.inline": "true"})


def test_rows_are_not_placed_in_buckets_of_another_kind(session: Any, path: str) -> None:
    """A part of the key is hashed, or partitions have counts of their own: a key would be in two file groups."""
    rows = Frame(pa.Table.from_pylist([{"a": 1, "b": "x", "ts": 1, "p": "q"}], SCHEMA))
    properties = Path(path, ".hoodie/hoodie.properties")
    kept = properties.read_text()
    properties.write_text(kept.replace("hash.field=a,b", "hash.field=a"))
    with pytest.raises(UnsupportedTable, match=r"told by hoodie\.bucket\.index\.hash\.field=a, not"):
        HudiTable.open(path).upsert(session, rows)
    properties.write_text(kept)
    counts = Path(path, ".hoodie/.bucket_index/partition_bucket_index_meta")
    counts.mkdir(parents=True)
    with pytest.raises(UnsupportedTable, match="bucket counts of their own"):
        HudiTable.open(path).upsert(session, rows)
    counts.rmdir()
    HudiTable.open(path).upsert(session, rows)
