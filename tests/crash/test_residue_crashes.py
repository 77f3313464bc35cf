"""A crash at every storage operation of an execution that writes residue logs: no answer changes, nothing is left."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_assets.engine import HudiTable
from hudi_assets.engine.model import Plan
from hudi_assets.engine.queries.query import read_task
from tests.crash.test_crashes import _at, faults, no_strays
from tests.local_session import LocalSession

THRESHOLD = 2_000
SCHEMA = pa.schema([("id", pa.int64()), ("ts", pa.int64()), ("v", pa.int64())])
Row = tuple[int, int, int]


@pytest.fixture(params=["true", "false"], ids=["exact split", "tombstones"])
def path(request: pytest.FixtureRequest, session: LocalSession, tmp_path: Path) -> Path:
    """Two file groups: logs to compact with rows and deletes above THRESHOLD, and one that is carried over."""
    path = tmp_path / "table"
    HudiTable.create(
        str(path), SCHEMA, record_key=["id"], ordering_field="ts", buckets=2, clock="commit", data_latency="1s"
    )
    properties = path / ".hoodie/hoodie.properties"
    own = f"hudi_assets.table.services=ours\nhudi_assets.exact.split={request.param}\n"
    properties.write_text(properties.read_text() + own)
    table = HudiTable.open(str(path))

    def upsert(*rows: Row) -> None:
        values = [dict(zip(SCHEMA.names, row, strict=True)) for row in rows]
        table.upsert(session, session.rows(values, SCHEMA), clock_time=_at(100_000))  # type: ignore[arg-type]

    upsert(*[(i, 1_000 + i, i) for i in range(8)], (0, 5_000, 10), (1, 5_000, 11))
    deletes = pa.table({"id": [2, 3, 4, 5], "ts": [9_000, 9_000, 1_500, 1_500]})
    table.delete(session, session.frame(deletes), clock_time=_at(100_000))  # type: ignore[arg-type]
    upsert((2, 8_000, 20), (3, 8_000, 21), (6, 8_000, 22), (7, 8_000, 23))
    return path


def rows_of(batches: list[pa.RecordBatch]) -> set[Row]:
    rows = [(r["id"], r["ts"], r["v"]) for batch in batches for r in batch.to_pylist()]
    assert len(rows) == len({row[0] for row in rows})
    return set(rows)


def snapshot(table: HudiTable) -> set[Row]:
    return rows_of([batch for task in table.snapshot_tasks() for batch in read_task(task)])


def read_optimized(table: HudiTable) -> set[Row]:
    batches = []
    for task in table.snapshot_tasks():
        if task.slice.base_file is not None:
            batches += task.reader.read_base(task.slice.base_file).to_batches()
    return rows_of(batches)


def residue_logs(path: Path) -> list[Path]:
    return sorted(path.glob(".*.log.1_0-0-0"))


def test_execute(session: LocalSession, path: Path, tmp_path: Path) -> None:
    table = HudiTable.open(str(path))
    before = snapshot(table)
    plan = table.plan_compaction(threshold=THRESHOLD)
    assert isinstance(plan, Plan)

    def execute(victim: HudiTable) -> object:
        return victim.execute_compaction(session, plan.instant)  # type: ignore[arg-type]

    reference = HudiTable.open(str(shutil.copytree(path, tmp_path / "reference")))
    execute(reference)
    left = [file.read_bytes() for file in residue_logs(Path(reference.path))]
    assert len(left) == 2
    promised, base_rows = reference.freshness().freshness, read_optimized(reference)
    freshness = HudiTable.open(str(path)).freshness().freshness
    for copy, where in faults(path, tmp_path, execute):
        table = HudiTable.open(str(copy))
        assert snapshot(table) == before, where
        if table.pending_plan() is not None:
            # An unfinished residue log promises nothing, and takes nothing back.
            assert table.freshness().freshness == freshness, where
            execute(table)
        assert snapshot(table) == before, where
        assert read_optimized(table) == base_rows, where
        assert table.freshness().freshness == promised, where
        assert [file.read_bytes() for file in residue_logs(copy)] == left, where
        table.recover()
        no_strays(table)


def test_a_torn_residue_log_of_an_attempt_before_is_replaced(session: LocalSession, path: Path) -> None:
    table = HudiTable.open(str(path))
    before = snapshot(table)
    plan = table.plan_compaction(threshold=THRESHOLD)
    assert isinstance(plan, Plan)
    stray = path / f".{plan.operations[0].file_id}_{plan.instant}.log.1_0-0-0"
    stray.write_bytes(b"half a block of a dead attempt")
    assert snapshot(HudiTable.open(str(path))) == before
    assert HudiTable.open(str(path)).freshness() == table.freshness()
    table.execute_compaction(session, plan.instant)  # type: ignore[arg-type]
    assert snapshot(table) == before
    no_strays(table)
