"""A file of the table that is gone: no query answers less without a word, and nothing is planned over it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_assets.engine import HudiTable, Plan
from hudi_assets.engine.errors import CorruptTable
from tests.tables.local_session import LocalSession
from tests.tables.steps import at, compact, created

SCHEMA = pa.schema([("id", pa.int64()), ("ts", pa.int64())])


@pytest.fixture
def table(session: LocalSession, tmp_path: Path) -> HudiTable:
    """One file group: a base file, and a log file on it."""
    table = created(tmp_path / "t", SCHEMA, buckets=1, clock="commit")
    table.upsert(session, session.rows([{"id": 1, "ts": 1_000}], SCHEMA), clock_time=at(2_000))
    compact(table, session)
    table.upsert(session, session.rows([{"id": 2, "ts": 2_000}], SCHEMA), clock_time=at(4_000))
    return table


def asked(table: HudiTable, session: LocalSession) -> dict[str, Callable[[], Any]]:
    return {
        "snapshot": lambda: table.snapshot(session),
        "read optimized": lambda: table.read_optimized(session),
        "time travel": lambda: table.time_travel(session, "29990101000000"),
        "incremental": lambda: table.incremental(session, "earliest"),
        "dry run": lambda: table.plan_compaction(dry_run=True),
        "plan": table.plan_compaction,
    }


@pytest.mark.parametrize("pattern", ["*.parquet", ".*.log.*"])
@pytest.mark.parametrize("cut", [False, True])
def test_a_file_that_is_gone_or_short(session: LocalSession, table: HudiTable, pattern: str, cut: bool) -> None:
    newest = max(Path(table.path).glob(pattern), key=lambda p: p.stat().st_mtime_ns)
    if cut:
        newest.write_bytes(newest.read_bytes()[:-1])
    else:
        newest.unlink()
    for what, ask in asked(table, session).items():
        with pytest.raises(CorruptTable, match="missing or short") as refused:
            ask()
        assert newest.name in str(refused.value), what


def test_what_was_compacted_may_be_gone(session: LocalSession, table: HudiTable) -> None:
    oldest = min(Path(table.path).glob(".*.log.*"), key=lambda p: p.stat().st_mtime_ns)
    oldest.unlink()
    assert {row["id"] for row in table.snapshot(session).rows()} == {1, 2}
    assert isinstance(table.plan_compaction(), Plan)
