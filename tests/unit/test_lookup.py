"""Writes of ours where the index looks keys up: which file gets a row."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_assets.engine import HudiTable
from hudi_assets.engine.errors import CorruptTable, InvalidInput
from hudi_assets.engine.model import CommitResult, Plan
from tests.tables.local_session import LocalSession
from tests.tables.other_index import of_index, with_random_ids
from tests.tables.steps import rows_in

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("day", pa.string()), ("v", pa.int64())])
NO_GROWTH = {"hoodie.parquet.small.file.limit": "0"}


def make(path: Path, index: str = "SIMPLE", **settings: str) -> HudiTable:
    created = HudiTable.create(str(path), SCHEMA, record_key=["id"], ordering_field="ts", partition_fields=["day"])
    return of_index(created, index, **{"hoodie.index.bloom.num_entries": "20", **settings})


def put(table: HudiTable, session: LocalSession, v: int, *rows: tuple[str, int], day: str = "a") -> CommitResult:
    frame = session.rows([{"id": k, "ts": ts, "day": day, "v": v} for k, ts in rows], SCHEMA)
    return table.upsert(session, frame)


def remove(table: HudiTable, session: LocalSession, *rows: tuple[str, int], day: str = "a") -> CommitResult:
    schema = pa.schema([SCHEMA.field(name) for name in ("id", "ts", "day")])
    frame = session.rows([{"id": k, "ts": ts, "day": day} for k, ts in rows], schema)
    return table.delete(session, frame)


def snapshot(table: HudiTable) -> list[tuple[str, int, int]]:
    return rows_of(table.snapshot_tasks())


def rows_of(tasks: list[Any]) -> list[tuple[str, int, int]]:
    rows = rows_in(tasks)
    return sorted((r["id"], r["ts"], r["v"]) for r in rows)


def base_files(table: HudiTable) -> list[list[str]]:
    """The keys of each current base file."""
    found = []
    for path in table.read_optimized_files():
        with pq.ParquetFile(path) as file:
            found.append(file.read(columns=["_hoodie_record_key"], use_threads=False).column(0).to_pylist())
    return sorted(found)


def logs(table: HudiTable) -> list[str]:
    return sorted(path.name for path in Path(table.path).rglob(".*.log.*"))


def test_new_keys_go_to_base_files_and_known_ones_to_logs(session: LocalSession, tmp_path: Path) -> None:
    table = make(tmp_path / "t", **NO_GROWTH)
    first = put(table, session, 1, ("x", 10), ("y", 20))
    assert (first.rows, first.log_files, first.min_event_time, first.max_event_time) == (2, 0, 10, 20)
    second = put(table, session, 2, ("y", 30), ("z", 40))
    assert (second.rows, second.log_files) == (2, 1)
    assert base_files(table) == [["x", "y"], ["z"]]
    assert len(logs(table)) == 1
    assert snapshot(table) == [("x", 10, 1), ("y", 30, 2), ("z", 40, 2)]
    assert rows_of(table.read_optimized_tasks()) == [("x", 10, 1), ("y", 20, 1), ("z", 40, 2)]
    assert table.freshness().min_event_time == 30
    assert not table.validate()


def test_a_small_file_grows(session: LocalSession, tmp_path: Path) -> None:
    """Rows of its own keys are merged in with the new ones; the version before stays for time travel."""
    table = make(tmp_path / "t", "BLOOM")
    first = put(table, session, 1, ("x", 10), ("y", 20))
    second = put(table, session, 2, ("x", 5), ("y", 30), ("z", 40))
    assert (second.rows, second.log_files) == (3, 0)
    assert base_files(table) == [["x", "y", "z"]]
    assert logs(table) == []
    assert snapshot(table) == [("x", 10, 1), ("y", 30, 2), ("z", 40, 2)]
    assert rows_of(table.time_travel_tasks(first.instant or "")) == [("x", 10, 1), ("y", 20, 1)]
    assert rows_of(table.incremental_tasks(first.instant or "")) == [("y", 30, 2), ("z", 40, 2)]
    table.rollback(second.instant or "")
    assert snapshot(table) == [("x", 10, 1), ("y", 20, 1)]
    assert not table.validate()


def test_the_commit_names_the_file_that_grew(session: LocalSession, tmp_path: Path) -> None:
    """Else the file group would seem to begin with the next version, and a past without it to be complete."""
    table = make(tmp_path / "t")
    first = put(table, session, 1, ("x", 10))
    second = put(table, session, 2, ("y", 20))
    table.clean(policy="KEEP_LATEST_FILE_VERSIONS", retained=1)
    assert len(list(Path(table.path).rglob("*.parquet"))) == 1
    assert rows_of(table.time_travel_tasks(second.instant or "")) == [("x", 10, 1), ("y", 20, 2)]
    with pytest.raises(InvalidInput):
        table.time_travel_tasks(first.instant or "")


def test_a_file_with_log_files_does_not_grow(session: LocalSession, tmp_path: Path) -> None:
    """On version 6 its log files would stay behind in the slice before."""
    table = make(tmp_path / "t")
    put(table, session, 1, ("x", 10))
    put(table, session, 2, ("x", 30))
    put(table, session, 3, ("y", 40))
    assert base_files(table) == [["x"], ["y"]]
    assert snapshot(table) == [("x", 30, 2), ("y", 40, 3)]


def test_a_file_in_a_pending_plan_does_not_grow(session: LocalSession, tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    put(table, session, 1, ("x", 10))
    put(table, session, 2, ("x", 30))
    plan = table.plan_compaction(threshold=35)
    assert isinstance(plan, Plan)
    put(table, session, 3, ("x", 50), ("y", 40))
    assert base_files(table) == [["x"], ["y"]]
    table.execute_compaction(session, plan.instant)
    assert snapshot(table) == [("x", 50, 3), ("y", 40, 3)]
    assert rows_of(table.read_optimized_tasks()) == [("x", 30, 2), ("y", 40, 3)]


def test_many_new_keys_are_spread_over_file_groups(session: LocalSession, tmp_path: Path) -> None:
    table = make(tmp_path / "t", **NO_GROWTH, **{"hoodie.parquet.max.file.size": "1000"})
    rows = [(f"k{n:03d}", n) for n in range(100)]
    put(table, session, 1, *rows)
    files = base_files(table)
    assert len(files) > 3
    assert sorted(key for keys in files for key in keys) == [key for key, _ in rows]


def test_rows_of_one_new_key_are_combined(session: LocalSession, tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    done = put(table, session, 1, ("x", 30), ("x", 10), ("y", 5))
    assert (done.rows, done.min_event_time, done.max_event_time) == (3, 5, 30)
    assert snapshot(table) == [("x", 30, 1), ("y", 5, 1)]


def test_the_same_key_in_two_partitions_is_two_rows(session: LocalSession, tmp_path: Path) -> None:
    """Keys are looked up in their own partition, as these indexes of Hudi do."""
    table = make(tmp_path / "t")
    put(table, session, 1, ("x", 10), day="a")
    put(table, session, 2, ("x", 20), day="b")
    put(table, session, 3, ("x", 30), day="a")
    assert snapshot(table) == [("x", 20, 2), ("x", 30, 3)]


def test_deletes_of_keys_that_are_not_there_write_nothing(session: LocalSession, tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    put(table, session, 1, ("x", 10), ("y", 20))
    assert remove(table, session, ("x", 30), ("nobody", 30)).log_files == 1
    assert remove(table, session, ("nobody", 40)).log_files == 0
    assert snapshot(table) == [("y", 20, 1)]


def test_a_deleted_key_is_found_until_it_leaves_the_base_file(session: LocalSession, tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    put(table, session, 1, ("x", 10), ("y", 20))
    remove(table, session, ("x", 30))
    put(table, session, 2, ("x", 40))
    assert base_files(table) == [["x", "y"]]
    assert snapshot(table) == [("x", 40, 2), ("y", 20, 1)]


def test_keys_in_log_files_alone_are_found(session: LocalSession, tmp_path: Path) -> None:
    """As a writer whose index sees log files leaves them."""
    created = HudiTable.create(
        str(tmp_path / "t"), SCHEMA, record_key=["id"], ordering_field="ts", partition_fields=["day"], buckets=2
    )
    put(created, session, 1, ("x", 10), ("y", 20), ("z", 30))
    table = with_random_ids(created, tmp_path / "other", {"hoodie.index.type": "SIMPLE"})
    before = len(logs(table))
    put(table, session, 2, ("x", 40), ("y", 50), ("new", 60))
    assert len(logs(table)) > before
    assert base_files(table) == [["new"]]
    assert snapshot(table) == [("new", 60, 2), ("x", 40, 2), ("y", 50, 2), ("z", 30, 1)]


def test_a_key_in_two_file_groups_is_refused(session: LocalSession, tmp_path: Path) -> None:
    """Nothing of the write stays."""
    made = make(tmp_path / "made", **NO_GROWTH)
    put(made, session, 1, ("x", 10))
    first = Path(made.read_optimized_files()[0])
    done = put(made, session, 2, ("y", 10))
    (second,) = {Path(file) for file in made.read_optimized_files()} - {first}
    path = Path(shutil.copytree(made.path, tmp_path / "t"))
    commit = path / ".hoodie" / f"{done.instant}.deltacommit"
    sizes = f'"fileSizeInBytes":{second.stat().st_size}', f'"fileSizeInBytes":{first.stat().st_size}'
    assert sizes[0] in commit.read_text()
    commit.write_text(commit.read_text().replace(*sizes))
    shutil.copy(first, path / second.relative_to(made.path))
    table = HudiTable.open(str(path))
    files = sorted(path.rglob("*"))
    with pytest.raises(CorruptTable, match="'x' is in several file groups"):
        put(table, session, 3, ("x", 30), ("q", 40))
    assert [f for f in sorted(path.rglob("*")) if ".aux" not in f.parts and f not in files] == []


def test_an_unreadable_base_file_is_named(session: LocalSession, tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    put(table, session, 1, ("x", 10))
    file = Path(table.read_optimized_files()[0])
    file.write_bytes(b"\0" * file.stat().st_size)
    with pytest.raises(CorruptTable, match="keys cannot be read"):
        put(table, session, 3, ("x", 30))
