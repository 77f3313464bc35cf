"""Actions that follow each other: what one leaves behind must not mislead the next."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_assets.engine import HudiTable, InvalidInput, Plan
from hudi_assets.engine.actions.archiving.archive import ArchiveResult
from tests.tables.local_session import LocalSession

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("seq", pa.int64()), ("v", pa.int32())])
WIDE = SCHEMA.set(3, pa.field("v", pa.int64()))
SMALL = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.cleaner.commits.retained": "1"}


class Table:
    """A table with one file group, driven by event times alone."""

    def __init__(self, path: Path, session: LocalSession) -> None:
        self.path, self.session = path, session
        HudiTable.create(
            str(path), SCHEMA, record_key=["id"], ordering_field="ts", buckets=1, clock="commit", data_latency="1s"
        )

    def open(self, **settings: str) -> HudiTable:
        return HudiTable.open(str(self.path), settings={**SMALL, **settings})

    def write(self, key: str, ts: int, *, schema: pa.Schema = SCHEMA, v: int = 0, batch: str | None = None) -> Any:
        rows = self.session.rows([{"id": key, "ts": ts, "seq": 10 * ts, "v": v}], schema)
        clock = datetime.fromtimestamp((ts + 1_000) / 1000, UTC)
        return self.open().upsert(self.session, rows, clock_time=clock, batch_id=batch)

    def plan(self, threshold: int) -> Plan:
        plan = self.open().plan_compaction(threshold=threshold)
        assert isinstance(plan, Plan)
        return plan

    def compact(self, threshold: int) -> str:
        plan = self.plan(threshold)
        self.open().execute_compaction(self.session, plan.instant)
        return plan.instant

    @property
    def keys(self) -> list[str]:
        return sorted(row["id"] for row in self.open().snapshot(self.session).rows())

    @property
    def read_optimized(self) -> list[str]:
        return sorted(row["id"] for row in self.open().read_optimized(self.session).rows())


@pytest.fixture
def table(session: LocalSession, tmp_path: Path) -> Table:
    return Table(tmp_path / "t", session)


def test_a_batch_that_was_taken_back_can_be_written_again_also_after_archiving(table: Table) -> None:
    table.write("a", 1_000)
    lost = table.write("lost", 2_000, batch="b").instant
    later = [table.write(f"c{i}", 3_000 + i).instant for i in range(2)]
    table.open().freshness()
    for instant in (*reversed(later), lost):
        table.open().rollback(instant)
    for number in range(8):
        table.write(f"d{number}", 4_000 + number)
    assert isinstance(table.open().archive(), ArchiveResult)
    assert "b" not in table.open().committed_batches()
    assert table.write("lost", 5_000, batch="b").rows == 1
    assert "lost" in table.keys


def test_a_threshold_that_was_taken_back_does_not_come_back_with_archiving(table: Table) -> None:
    first = table.write("a", 1_000).instant
    table.open().savepoint(first)
    table.write("b", 2_000)
    table.compact(2_500)
    later = [table.write(f"c{i}", 3_000 + i).instant for i in range(2)]
    assert later
    table.open().freshness()
    table.open().restore(first)
    table.open().delete_savepoint(first)
    for number in range(8):
        table.write(f"d{number}", 4_000 + number)
    assert isinstance(table.open().archive(), ArchiveResult)
    assert table.open().freshness().threshold is None


def test_the_last_write_that_is_not_archived_stays(table: Table) -> None:
    for number in range(8):
        table.write(f"a{number}", 1_000 + number)
    assert isinstance(table.open().archive(), ArchiveResult)
    kept = len(list((table.path / ".hoodie").glob("*.deltacommit")))
    for _ in range(kept - 1):
        table.open().rollback(table.open().stats().last_commit or "")
    with pytest.raises(InvalidInput, match="only write that is not archived"):
        table.open().rollback(table.open().stats().last_commit or "")
    taken_back = kept - 1
    assert taken_back >= 1
    assert table.keys == [f"a{n}" for n in range(8 - taken_back)]


def test_a_compaction_that_was_planned_before_a_savepoint_keeps_the_schema_of_then(table: Table) -> None:
    table.write("a", 1_000, v=1)
    table.write("b", 2_000, v=2)
    plan = table.plan(1_500)
    saved = table.write("s", 3_000, v=3).instant
    table.open().savepoint(saved)
    table.write("w", 4_000, schema=WIDE, v=1 << 40)
    table.open().execute_compaction(table.session, plan.instant)
    assert table.keys == ["a", "b", "s", "w"]
    table.open().restore(saved)
    assert table.open().schema().field("v").type == pa.int32()
    assert (table.keys, table.read_optimized) == (["a", "b", "s"], ["a"])
    table.compact(2_500)
    assert table.read_optimized == ["a", "b"]


def test_a_plan_is_executed_with_the_event_times_that_it_was_made_by(table: Table) -> None:
    for number in range(3):
        table.write(f"a{number}", 1_000 * (number + 1))
    plan = table.plan(1_500)
    other = table.open(**{"hoodie.payload.event.time.field": "seq"})
    with pytest.raises(InvalidInput, match="goes by the event times of ts"):
        other.execute_compaction(table.session, plan.instant)
    table.open().execute_compaction(table.session, plan.instant)
    assert table.open().freshness().freshness == 1_999


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("hoodie.table.recordkey.fields", "v"),
        ("hoodie.table.precombine.field", "seq"),
        ("hoodie.compaction.payload.class", "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload"),
        ("hoodie.bucket.index.num.buckets", "7"),
        ("hudi_assets.clock", "system"),
        ("hudi_assets.exact.spilt", "true"),
    ],
)
def test_settings_that_would_make_another_table_are_refused(table: Table, key: str, value: str) -> None:
    with pytest.raises(InvalidInput, match=key):
        table.open(**{key: value})
    same = (table.path / ".hoodie/hoodie.properties").read_text()
    stated = dict(line.split("=", 1) for line in same.splitlines() if "=" in line)
    if key in stated:
        table.open(**{key: stated[key]})
