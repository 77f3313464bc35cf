"""A crash at every storage operation of a write, a plan and an execution: no answer changes, and the
next run repairs the table by itself.

Spark's tasks run in the test's process here, because a crash inside a worker cannot be placed otherwise;
what they do is the code that workers run.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from hudi_assets.engine import HudiTable
from hudi_assets.engine.model import CompactionResult, Plan
from tests.crash.faulty import faults
from tests.crash.tables import THRESHOLD, batch, carried_by, no_strays, planned, snapshot
from tests.tables.local_session import LocalSession
from tests.tables.steps import at, with_properties


def _links(table: HudiTable) -> list[str]:
    """Log files of an instant that is on no timeline: carried over for a plan that is not published."""
    state = table.state()
    known = {i.timestamp for i in state.timeline.instants}
    logs = [state.layout.parse_log_file(f, "") for files in state.listing.values() for f in files]
    return [log.path for log in logs if log is not None and log.base_instant not in known]


def test_write(session: LocalSession, path: Path, tmp_path: Path) -> None:
    before = snapshot(HudiTable.open(str(path)))
    rows = batch(3, 9_500)

    def write(table: HudiTable) -> None:
        table.upsert(session, rows, clock_time=at(20_000), batch_id="b")

    reference = HudiTable.open(str(shutil.copytree(path, tmp_path / "reference")))
    write(reference)
    done = snapshot(reference)
    assert done != before
    for copy, where in faults(path, tmp_path, write):
        table = HudiTable.open(str(copy))
        assert snapshot(table) in (before, done), where
        write(table)  # the next run: repairs by itself, and is the same batch
        assert snapshot(table) == done, where
        table.recover()
        no_strays(table)
        # The dead attempt's would count as committed once the timeline's start has passed it.
        assert len(table.state().remaining_logs) == len(reference.state().remaining_logs), where


@pytest.mark.parametrize(
    ("path", "mode"), [(6, "hardlink"), (6, "symlink"), (6, "copy"), (9, "auto")], indirect=["path"]
)
def test_plan(session: LocalSession, path: Path, tmp_path: Path, mode: str) -> None:
    before = snapshot(with_properties(HudiTable.open(str(path)), carried_by(mode)))

    for copy, where in faults(path, tmp_path, planned):
        table = HudiTable.open(str(copy))
        assert snapshot(table) == before, where
        if table.pending_plan() is None:
            if _links(table):
                # Apache Hudi's archiver would make a slice of them, were it not held back.
                assert table.state().guards, where
            # A look (the sensor's) is not held up by what the dead planner left.
            assert isinstance(table.plan_compaction(threshold=THRESHOLD, dry_run=True), Plan), where
        table.recover()
        assert snapshot(table) == before, where
        pending = table.pending_plan()
        if pending is None:
            no_strays(table)
            pending = planned(table)
        table.execute_compaction(session, pending.instant)
        assert snapshot(table) == before, where
        assert all(table.exists(c.link) for c in table.carried_over())
        no_strays(table)


def test_execute(session: LocalSession, path: Path, tmp_path: Path) -> None:
    table = HudiTable.open(str(path))
    before = snapshot(table)
    plan = planned(table)

    def execute(victim: HudiTable) -> CompactionResult:
        return victim.execute_compaction(session, plan.instant)

    for copy, where in faults(path, tmp_path, execute):
        table = HudiTable.open(str(copy))
        assert snapshot(table) == before, where
        if table.pending_plan() is not None:
            execute(table)
        assert snapshot(table) == before, where
        table.recover()
        no_strays(table)
        assert table.stats().pending == ()
