"""Making a table with an exact split: both settings are the table's, or it is refused before anything is written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_assets.engine import HudiTable
from hudi_assets.engine.errors import InvalidInput
from tests.tables.local_session import LocalSession
from tests.tables.steps import compact

SCHEMA = pa.schema([("id", pa.int64()), ("ts", pa.int64()), ("at", pa.string())])


def create(path: Path, **asked: Any) -> HudiTable:
    asked = {"ordering_field": "ts", "buckets": 1, **asked}
    return HudiTable.create(str(path), SCHEMA, record_key=["id"], exact_split=True, **asked)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"table_version": 8}, "not possible on table version 8"),
        ({"table_version": 9}, "not possible on table version 9"),
        ({"event_time_field": "at", "event_time_unit": "iso"}, "on the event-time field"),
        ({"ordering_field": "at", "event_time_field": "at", "event_time_unit": "iso"}, "not text"),
        (
            {"merge_mode": "COMMIT_TIME_ORDERING", "ordering_field": None, "event_time_field": "ts"},
            "needs EVENT_TIME_ORDERING",
        ),
    ],
)
def test_where_it_cannot_be_nothing_is_made(tmp_path: Path, asked: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        create(tmp_path / "t", **asked)
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize("version", [6, 8, 9])
def test_the_timelines_folder_is_there(tmp_path: Path, version: int) -> None:
    """Hudi opens no table without it (tried: 1.2.0 neither reads nor writes an empty one)."""
    table = HudiTable.create(str(tmp_path / "t"), SCHEMA, record_key=["id"], ordering_field="ts", table_version=version)
    assert (tmp_path / "t" / table.state().layout.timeline_folder).is_dir()


def test_every_process_knows_of_it(tmp_path: Path, session: LocalSession) -> None:
    create(tmp_path / "t")
    table = HudiTable.open(str(tmp_path / "t"))
    rows = [{"id": 1, "ts": 1_000, "at": ""}, {"id": 2, "ts": 9_000, "at": ""}]
    table.upsert(session, session.rows(rows, SCHEMA))
    compact(table, session, 5_000)
    shown = table.read_optimized(session).toArrow().to_pylist()
    assert [row["id"] for row in shown] == [1]
