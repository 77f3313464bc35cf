"""A first load into base files: what the views, the freshness and the history make of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_assets.engine import HudiTable
from hudi_assets.engine.errors import InvalidInput
from hudi_assets.engine.model import Action, CommitResult
from hudi_assets.engine.queries.query import ReadTask
from hudi_assets.engine.transaction.clean import CleanResult
from tests.tables.local_session import LocalSession
from tests.tables.metadata import switch_on
from tests.tables.other_index import of_index
from tests.tables.steps import compact, rows_in

SCHEMA = pa.schema(
    [("id", pa.string()), ("ts", pa.int64()), ("p", pa.string()), ("v", pa.int64()), ("_hoodie_is_deleted", pa.bool_())]
)
Row = tuple[str, int, str, int]


def make(path: Path, version: int = 9, *, partitioned: bool = True, **options: Any) -> HudiTable:
    return HudiTable.create(
        str(path),
        SCHEMA,
        record_key=["id"],
        ordering_field=None if options.get("merge_mode") == "COMMIT_TIME_ORDERING" else "ts",
        partition_fields=["p"] if partitioned else [],
        buckets=3,
        table_version=version,
        data_latency="0s",
        event_time_field="ts",
        **options,
    )


def frame(session: LocalSession, *rows: tuple[Any, ...]) -> Any:
    names = SCHEMA.names
    return session.rows([dict(zip(names, (*row, False)[:5], strict=True)) for row in rows], SCHEMA)


def load(table: HudiTable, session: LocalSession, *rows: tuple[Any, ...], **options: Any) -> CommitResult:
    return table.bulk_insert(session, frame(session, *rows), **options)


def rows_of(tasks: Sequence[ReadTask]) -> list[Row]:
    found = rows_in(tasks)
    return sorted((r["id"], r["ts"], r["p"], r["v"]) for r in found)


FIRST: list[Row] = [(f"k{n}", 100 + n, "a" if n % 2 else "b", n) for n in range(40)]


@pytest.mark.parametrize("metadata_table", [False, True], ids=["metadata-off", "metadata-on"])
@pytest.mark.parametrize("partitioned", [True, False], ids=["partitioned", "flat"])
@pytest.mark.parametrize("version", [6, 8, 9])
def test_all_views_hold_the_rows_at_once(
    session: LocalSession, tmp_path: Path, version: int, partitioned: bool, metadata_table: bool
) -> None:
    table = make(tmp_path / "t", version, partitioned=partitioned)
    if metadata_table:
        switch_on(table)
        table = HudiTable.open(table.path)
    done = load(table, session, *FIRST)
    assert (done.rows, done.log_files, done.late_records) == (40, 0, 0)
    assert (done.min_event_time, done.max_event_time) == (100, 139)
    assert done.base_files == len(table.read_optimized_files()) == (6 if partitioned else 3)
    assert done.instant is not None
    expected = sorted(FIRST)
    for tasks in (
        table.snapshot_tasks(),
        table.read_optimized_tasks(),
        table.time_travel_tasks(done.instant),
        table.incremental_tasks("earliest"),
    ):
        assert rows_of(tasks) == expected
    assert not table.validate()
    assert not table.leftovers()
    # No log file is behind: the promise is the clock's.
    freshness = table.freshness()
    assert freshness.freshness == freshness.watermark
    assert freshness.min_event_time is None


@pytest.mark.parametrize("version", [6, 9])
def test_upserts_and_compactions_go_on_from_it(session: LocalSession, tmp_path: Path, version: int) -> None:
    table = make(tmp_path / "t", version)
    first = load(table, session, *FIRST).instant
    table.upsert(session, frame(session, ("k1", 500, "a", 99), ("new", 501, "a", 1)))
    now = sorted([*(r for r in FIRST if r[0] != "k1"), ("k1", 500, "a", 99), ("new", 501, "a", 1)])
    assert rows_of(table.snapshot_tasks()) == now
    assert rows_of(table.read_optimized_tasks()) == sorted(FIRST)
    assert table.freshness().min_event_time == 500
    compact(table, session, 1_000)
    assert rows_of(table.read_optimized_tasks()) == now
    assert first is not None
    assert rows_of(table.time_travel_tasks(first)) == sorted(FIRST)
    no_grace = HudiTable.open(table.path, settings={"hudi_assets.query.grace": "0s"})
    cleaned = no_grace.clean(policy="KEEP_LATEST_FILE_VERSIONS", retained=1)
    assert isinstance(cleaned, CleanResult)
    assert rows_of(table.snapshot_tasks()) == now
    assert not table.validate()


def test_the_commit_says_what_hudi_says(session: LocalSession, tmp_path: Path) -> None:
    table = make(tmp_path / "t", 6, partitioned=False)
    load(table, session, ("x", 5, "a", 1), ("y", 7, "a", 2))
    state = table.state()
    (instant,) = state.timeline.instants
    commit = state.commit(instant)
    assert (instant.action, commit.operation) == (Action.DELTA_COMMIT, "BULK_INSERT")
    for stat in commit.stats:
        assert (stat.prev_commit, stat.log_version, stat.num_updates) == ("null", None, 0)
        assert stat.num_inserts == stat.num_writes > 0
        with pq.ParquetFile(Path(table.path, stat.path)) as file:
            assert file.metadata.num_rows == stat.num_writes
            named = file.read(columns=["_hoodie_file_name"], use_threads=False).column(0).unique().to_pylist()
            assert named == [stat.path]
            assert b"hoodie_min_record_key" in file.metadata.metadata


@pytest.mark.parametrize(
    ("mode", "kept"), [("EVENT_TIME_ORDERING", ("x", 30, "a", 1)), ("COMMIT_TIME_ORDERING", ("x", 20, "a", 2))]
)
def test_one_row_of_a_key_is_written(session: LocalSession, tmp_path: Path, mode: str, kept: Row) -> None:
    table = make(tmp_path / "t", merge_mode=mode)
    rows = [("x", 10, "a", 0), ("x", 30, "a", 1), ("x", 20, "a", 2), ("y", 1, "a", 3), ("x", 4, "b", 4)]
    assert load(table, session, *rows).rows == 5
    assert rows_of(table.read_optimized_tasks()) == sorted([kept, ("y", 1, "a", 3), ("x", 4, "b", 4)])


def test_deletes_among_the_rows_leave_no_row(session: LocalSession, tmp_path: Path) -> None:
    table = make(tmp_path / "t", partitioned=False)
    load(table, session, ("x", 10, "a", 0), ("x", 20, "a", 1, True), ("y", 1, "a", 2))
    assert rows_of(table.read_optimized_tasks()) == rows_of(table.snapshot_tasks()) == [("y", 1, "a", 2)]
    other = make(tmp_path / "other", partitioned=False)
    assert load(other, session, ("x", 10, "a", 0, True)).base_files == 0
    assert rows_of(other.snapshot_tasks()) == []
    assert not other.validate()


@pytest.mark.parametrize("version", [6, 9])
def test_file_groups_with_rows_are_refused(session: LocalSession, tmp_path: Path, version: int) -> None:
    """And those without are written: a partition that is new, and one whose upsert was taken back."""
    table = make(tmp_path / "t", version)
    table.upsert(session, frame(session, ("x", 1, "a", 1)))
    before = table.state().timeline.instants
    with pytest.raises(InvalidInput, match=r"bucket \d of partition 'p=a'.*holds rows") as caught:
        load(table, session, ("x", 2, "a", 2), ("z", 2, "b", 2))
    assert "Upsert" in (caught.value.hint or "")
    assert table.state().timeline.instants == before
    assert not Path(table.path, "p=b").exists()
    load(table, session, ("z", 2, "b", 2))
    taken_back = table.upsert(session, frame(session, ("w", 3, "c", 3))).instant
    assert taken_back is not None
    table.rollback(taken_back)
    load(table, session, ("w", 4, "c", 4))
    assert rows_of(table.snapshot_tasks()) == [("w", 4, "c", 4), ("x", 1, "a", 1), ("z", 2, "b", 2)]
    with pytest.raises(InvalidInput, match="holds rows"):
        load(table, session, ("z", 5, "b", 5))
    assert not table.validate()


def test_faulty_rows_are_refused_before_anything_is_written(session: LocalSession, tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    with pytest.raises(InvalidInput, match="1 of 2 rows have no record key"):
        load(table, session, ("x", 1, "a", 1), ("", 1, "a", 1))
    with pytest.raises(InvalidInput, match="ts"):
        load(table, session, ("x", None, "a", 1))
    assert table.state().timeline.instants == ()
    assert [path.name for path in Path(table.path).iterdir()] == [".hoodie"]


def test_exact_split_tables_are_refused(session: LocalSession, tmp_path: Path) -> None:
    created = make(tmp_path / "t", 6)
    table = HudiTable.open(created.path, settings={"hudi_assets.exact.split": "true"})
    with pytest.raises(InvalidInput, match="exact split"):
        load(table, session, ("x", 1, "a", 1))


def test_a_batch_is_loaded_once(session: LocalSession, tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    first = load(table, session, ("x", 1, "a", 1), batch_id="first")
    again = load(table, session, ("x", 1, "a", 1), batch_id="first")
    assert (again.instant, again.rows) == (first.instant, 0)
    assert len(table.read_optimized_files()) == 1


@pytest.mark.parametrize("version", [6, 9])
def test_it_can_be_taken_back_and_restored_to(session: LocalSession, tmp_path: Path, version: int) -> None:
    table = make(tmp_path / "t", version)
    gone = load(table, session, ("x", 1, "a", 1)).instant
    assert gone is not None
    table.rollback(gone)
    assert rows_of(table.snapshot_tasks()) == []
    assert list(Path(table.path).rglob("*.parquet")) == []
    load(table, session, *FIRST)
    saved = table.savepoint()
    table.upsert(session, frame(session, ("k1", 500, "a", 99)))
    table.restore(saved)
    assert rows_of(table.snapshot_tasks()) == rows_of(table.read_optimized_tasks()) == sorted(FIRST)
    assert not table.validate()


@pytest.mark.parametrize("index", ["SIMPLE", "BLOOM"])
def test_where_keys_are_looked_up(session: LocalSession, tmp_path: Path, index: str) -> None:
    """Rows go to base files of the size limit there, and a partition that holds rows is refused."""
    table = of_index(make(tmp_path / "t"), index, **{"hoodie.index.bloom.num_entries": "20"})
    load(table, session, *FIRST)
    assert rows_of(table.read_optimized_tasks()) == sorted(FIRST)
    with pytest.raises(InvalidInput, match=r"partition 'p=a' holds rows"):
        load(table, session, ("other", 1, "a", 1))
    load(table, session, ("other", 1, "c", 1))
    table.upsert(session, frame(session, ("k1", 500, "a", 99)))
    assert ("k1", 500, "a", 99) in rows_of(table.snapshot_tasks())
    assert len(rows_of(table.snapshot_tasks())) == 41
    assert not table.validate()
