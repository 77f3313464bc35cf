"""A plan names the partitions in which log files stay: Hudi 1.2 looks for its own next plan there.

Else it looks only into partitions that somebody has written to since the last compaction.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hudi_assets.engine.timeline.compaction_plan import decode_plan, encode_plan
from tests.crash.tables import BATCHES, new_table, planned, write_batches
from tests.tables.local_session import LocalSession


@pytest.mark.parametrize("version", [6, 8, 9])
def test_where_log_files_stay(version: int, session: LocalSession, tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", version)
    write_batches(table, session)
    plan = planned(table)
    taken = {path for operation in plan.operations for path in operation.log_files}
    staying = {log.path for log in table.state().remaining_logs} - taken
    assert staying
    assert plan.left == tuple(sorted({path.rpartition("/")[0] for path in staying}))
    pending = table.pending_plan()
    assert pending is not None
    assert pending.left == plan.left


def test_a_plan_that_takes_all_leaves_none(session: LocalSession, tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", 6)
    write_batches(table, session)
    plan = planned(table, BATCHES[-1][1] + 100)
    assert plan.left == ()
    assert decode_plan(plan.instant, encode_plan(plan), "t").left == ()
    some = decode_plan(plan.instant, encode_plan(replace(plan, left=("", "p=a"))), "t")
    assert some.left == ("", "p=a")
