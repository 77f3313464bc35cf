"""A crash at every storage operation of an execution that writes residue logs: no answer changes, nothing is left."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_assets.engine import HudiTable
from tests.crash.faulty import faults
from tests.crash.tables import SCHEMA, Row, Rows, new_table, no_strays, planned, rows_of, snapshot
from tests.tables.local_session import LocalSession
from tests.tables.steps import at


@pytest.fixture(params=["true", "false"], ids=["exact split", "tombstones"])
def path(request: pytest.FixtureRequest, session: LocalSession, tmp_path: Path) -> Path:
    """Two file groups: logs to compact with rows and deletes above THRESHOLD, and one that is carried over."""
    path = tmp_path / "table"
    own = {"hudi_assets.table.services": "ours", "hudi_assets.exact.split": request.param}
    table = new_table(path, **own)

    def upsert(*rows: Row) -> None:
        values = [dict(zip(SCHEMA.names, row, strict=True)) for row in rows]
        table.upsert(session, session.rows(values, SCHEMA), clock_time=at(100_000))

    upsert(*[(i, 1_000 + i, i) for i in range(8)], (0, 5_000, 10), (1, 5_000, 11))
    deletes = pa.table({"id": [2, 3, 4, 5], "ts": [9_000, 9_000, 1_500, 1_500]})
    table.delete(session, session.frame(deletes), clock_time=at(100_000))
    upsert((2, 8_000, 20), (3, 8_000, 21), (6, 8_000, 22), (7, 8_000, 23))
    return path


def read_optimized(table: HudiTable) -> Rows:
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
    plan = planned(table)

    def execute(victim: HudiTable) -> object:
        return victim.execute_compaction(session, plan.instant)

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
    plan = planned(table)
    stray = path / f".{plan.operations[0].file_id}_{plan.instant}.log.1_0-0-0"
    stray.write_bytes(b"half a block of a dead attempt")
    assert snapshot(HudiTable.open(str(path))) == before
    assert HudiTable.open(str(path)).freshness() == table.freshness()
    table.execute_compaction(session, plan.instant)
    assert snapshot(table) == before
    no_strays(table)
