"""A query lists its files; before it reads them a rollback deletes those of an unfinished write."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hudi_assets.engine import Conflict, HudiTable
from hudi_assets.engine.queries.query import ReadTask, read_task
from tests.crash.faulty import faults
from tests.crash.tables import batch, new_table
from tests.tables.steps import at


def values(tasks: list[ReadTask]) -> dict[int, int]:
    return {row["id"]: row["v"] for task in tasks for rows in read_task(task) for row in rows.to_pylist()}


def files(path: Path) -> set[Path]:
    return {file.relative_to(path) for file in path.glob(".*.log.*")}


@pytest.mark.parametrize("version", [6, 9])
def test_the_files_of_a_dead_write_go_while_a_query_reads(version: int, session: Any, tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", version)
    table.upsert(session, batch(0, 1_000), clock_time=at(1_000))
    before, known = values(table.snapshot_tasks()), files(tmp_path / "t")
    gone = 0

    def upsert(victim: HudiTable) -> None:
        victim.upsert(session, batch(2, 2_000), clock_time=at(2_000))

    for path, died in faults(tmp_path / "t", tmp_path, upsert):
        victim = HudiTable.open(str(path))
        if victim.state().timeline.inflight_writes:
            tasks, since = victim.snapshot_tasks(), victim.incremental_tasks("earliest")
            new = files(path) - known
            for name in new:
                (path / name).unlink()
            gone += len(new)
            assert values(tasks) == values(since) == before, died
    assert gone


@pytest.mark.parametrize("version", [6, 9])
def test_a_file_of_a_commit_that_goes_is_missed(version: int, session: Any, tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", version)
    table.upsert(session, batch(0, 1_000), clock_time=at(1_000))
    tasks = table.snapshot_tasks()
    (tmp_path / "t" / min(files(tmp_path / "t"))).unlink()
    with pytest.raises(Conflict, match=r"deleted while a query was reading.*\.log\..*Ask again"):
        values(tasks)
