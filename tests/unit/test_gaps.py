"""Tables of version 9 with a partial update mode: what is planned, merged, refused by name and not written."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_assets.engine import HudiTable, Plan, UnsupportedTable
from hudi_assets.engine.model import Action
from hudi_assets.engine.past.rewriting import view_of
from hudi_assets.engine.slo.values import Cut
from hudi_assets.engine.timeline.commit_avro import decode_commit, encode_commit
from hudi_assets.engine.timeline.commit_metadata import SCHEMA as SCHEMA_KEY
from tests.tables.local_session import Frame, LocalSession
from tests.unit.test_any_table import (
    COMMIT_TIME,
    HOUR,
    HUDI,
    PARTIAL,
    SCHEMA,
    every_look,
    made,
    made_at,
    opened,
    other_writers_block,
    rows,
    stating,
)

NULLS: Mapping[str, str | None] = {"hoodie.table.partial.update.mode": "IGNORE_DEFAULTS"}
MARKER = "b"  # what a row of SCHEMA has in its column p
MARKERS: Mapping[str, str | None] = {
    "hoodie.table.partial.update.mode": "FILL_UNAVAILABLE",
    "hoodie.record.merge.property.hoodie.write.partial.update.unavailable.value": MARKER,
}
DELETES = pa.schema([("id", pa.string()), ("p", pa.string())])
MODES = pytest.mark.parametrize("mode", [{}, COMMIT_TIME], ids=["by event time", "by commit time"])


def with_gaps(session: LocalSession, tmp_path: Path, *stated: Mapping[str, str | None]) -> HudiTable:
    table = made(session, tmp_path / "t", 9)
    for one in stated:
        stating(table, one)
    return opened(made_at(tmp_path))


def row_of_a(rows: Frame) -> list[dict[str, object]]:
    return [row for row in rows.toArrow().select(SCHEMA.names).to_pylist() if row["id"] == "a"]


@MODES
def test_a_null_is_filled_in_every_query_and_by_the_compaction(
    mode: Mapping[str, str | None], session: LocalSession, tmp_path: Path
) -> None:
    """The newest row of the key has none in `n`: those before it have 0."""
    table = with_gaps(session, tmp_path, mode, NULLS)
    other_writers_block(table, {}, changed={"ts": 9 * HOUR, "n": None}, alone=True)
    expected = [{"id": "a", "ts": 9 * HOUR, "p": "a", "n": 0}]
    table = opened(table)
    instant, before = (one.completion or "" for one in table.state().timeline.completed(Action.DELTA_COMMIT)[:-3:-1])

    def answers(table: HudiTable) -> list[list[dict[str, object]]]:
        return [
            row_of_a(table.snapshot(session)),
            row_of_a(table.snapshot(session, columns=SCHEMA.names)),
            row_of_a(table.time_travel(session, instant)),
            row_of_a(table.incremental(session, "000")),
            row_of_a(table.incremental(session, before)),  # the rows that fill it lie before this range
        ]

    assert answers(table) == [expected] * 5
    plan = table.plan_compaction()
    assert isinstance(plan, Plan)
    table.execute_compaction(session, plan.instant)
    assert answers(opened(table)) == [expected] * 5
    assert row_of_a(opened(table).read_optimized(session)) == expected


@MODES
def test_a_marker_is_filled_and_a_null_is_not(
    mode: Mapping[str, str | None], session: LocalSession, tmp_path: Path
) -> None:
    """In the other partition each row has the marker in `p`: there is nothing else to fill it with."""
    table = with_gaps(session, tmp_path, mode, MARKERS)
    other_writers_block(table, {}, changed={"ts": 9 * HOUR, "n": None, "p": MARKER}, alone=True)
    expected = {("a", 9 * HOUR, "a", None), ("b", 5 * HOUR + 1, "b", 1)}

    def shown(found: Frame) -> set[tuple[object, ...]]:
        return {tuple(row[name] for name in SCHEMA.names) for row in found.toArrow().to_pylist()}

    table = opened(table)
    assert shown(table.snapshot(session)) == expected
    plan = table.plan_compaction()
    assert isinstance(plan, Plan)
    table.execute_compaction(session, plan.instant)
    assert shown(opened(table).read_optimized(session)) == expected


def test_in_event_order_slices_are_taken_whole(session: LocalSession, tmp_path: Path) -> None:
    table = with_gaps(session, tmp_path, NULLS)
    assert view_of(table.state(), "1h").cut is Cut.SLICE
    plan = table.plan_compaction(threshold=2 * HOUR + 10)
    assert isinstance(plan, Plan)
    assert [len(op.carried_over) + 10 * len(op.log_files) for op in plan.operations] == [30, 30]


@pytest.mark.parametrize("deletes", [False, True])
def test_in_commit_order_slices_are_parted_where_nothing_is_deleted(
    deletes: bool, session: LocalSession, tmp_path: Path
) -> None:
    table = with_gaps(session, tmp_path, COMMIT_TIME, NULLS)
    assert view_of(table.state(), "1h").cut is Cut.COMMITS
    if deletes:
        table.delete(session, session.rows([{"id": "a", "p": "a"}], DELETES))
    plan = opened(table).plan_compaction(threshold=2 * HOUR + 10)
    assert isinstance(plan, Plan)
    taken = {op.partition: len(op.log_files) for op in plan.operations}
    # A plan with an earlier instant cannot take the slice with the delete as a whole, so it waits.
    assert taken == ({} if deletes else {"p=a": 2}) | {"p=b": 2}


@pytest.mark.parametrize("gaps", [NULLS, MARKERS], ids=["IGNORE_DEFAULTS", "FILL_UNAVAILABLE"])
def test_rows_are_not_written_and_deletes_are(
    gaps: Mapping[str, str | None], session: LocalSession, tmp_path: Path
) -> None:
    table = with_gaps(session, tmp_path, gaps)
    every_look(table)
    for write in (table.upsert, table.bulk_insert):
        with pytest.raises(UnsupportedTable, match=r"has a partial update mode .* its rows are not written here"):
            write(session, rows(session, 6))
    table.delete(session, session.rows([{"id": "a", "p": "a"}], DELETES))
    assert row_of_a(opened(table).snapshot(session)) == []


def test_another_default_than_null_is_not_merged_here(session: LocalSession, tmp_path: Path) -> None:
    """Hudi compares Java's objects with it."""
    table = with_gaps(session, tmp_path, NULLS)
    schema = json.loads(table.state().avro_schema)
    next(field for field in schema["fields"] if field["name"] == "n").update(type=["long", "null"], default=0)
    evolved = json.dumps(schema)
    for file in Path(table.path, ".hoodie/timeline").glob("*_*commit"):
        commit = decode_commit(file.read_bytes(), file.name)
        file.write_bytes(encode_commit(replace(commit, extra={**commit.extra, SCHEMA_KEY: evolved})))
    table = opened(table)
    for call in (table.plan_compaction, lambda: table.snapshot(session)):
        with pytest.raises(UnsupportedTable, match=r"The column n has the default 0\."):
            call()
    assert isinstance(opened(table, **HUDI).plan_compaction(), Plan)
    stating(table, MARKERS)
    assert len(opened(table).snapshot(session).toArrow()) == 2


def test_partial_updates_of_merge_into_are_not_merged_beside_it(session: LocalSession, tmp_path: Path) -> None:
    """Hudi merges them by a rule that knows no partial update mode."""
    table = with_gaps(session, tmp_path, NULLS)
    other_writers_block(table, PARTIAL, ["_hoodie_commit_time", "_hoodie_record_key", "ts"], changed={"ts": 9 * HOUR})
    with pytest.raises(UnsupportedTable, match="partial updates, which are not merged here in such a table"):
        opened(table).plan_compaction()
    with pytest.raises(UnsupportedTable, match="beside a partial update mode are not merged here"):
        opened(table).snapshot(session).toArrow()
    assert isinstance(opened(table, **HUDI).plan_compaction(), Plan)
