"""Residue logs go with the attempt, the compaction or the restore that takes them back."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from hudi_assets.engine import HudiTable
from hudi_assets.engine.model import Plan
from tests.crash.faulty import Crash, dying
from tests.crash.tables import planned, snapshot
from tests.crash.test_residue_crashes import path, residue_logs

__all__ = ["path"]  # the fixture


def dies_before_its_commit(path: Path, session: Any, plan: Plan) -> None:
    rehearsal = Path(shutil.copytree(path, path.with_name("rehearsal")))
    victim, storage = dying(rehearsal)
    victim.execute_compaction(session, plan.instant)
    last = next(n for n, op in enumerate(storage.operations, 1) if op.endswith(f"{plan.instant}.commit"))
    with pytest.raises(Crash):
        dying(path, last)[0].execute_compaction(session, plan.instant)
    assert residue_logs(path)


def test_rollback_of_an_attempt(session: Any, path: Path) -> None:
    table = HudiTable.open(str(path))
    before = snapshot(table)
    plan = planned(table)
    dies_before_its_commit(path, session, plan)
    assert table.validate() == ()
    result = table.rollback(plan.instant)
    assert result.still_planned
    assert residue_logs(path) == []
    assert all(table.exists(c.link) for op in plan.operations for c in op.carried_over)
    assert snapshot(table) == before
    assert table.validate() == ()
    table.execute_compaction(session, plan.instant)
    assert snapshot(table) == before


def test_unschedule_of_an_attempt(session: Any, path: Path) -> None:
    table = HudiTable.open(str(path))
    before = snapshot(table)
    plan = planned(table)
    dies_before_its_commit(path, session, plan)
    table.unschedule(plan.instant)
    assert residue_logs(path) == []
    assert snapshot(table) == before
    assert table.validate() == ()


def test_rollback_and_restore_of_a_compaction(session: Any, path: Path) -> None:
    table = HudiTable.open(str(path))
    before = snapshot(table)
    savepoint = table.savepoint()
    for take_back in (table.rollback, lambda _: table.restore(savepoint)):
        plan = planned(table)
        table.execute_compaction(session, plan.instant)
        assert residue_logs(path)
        assert snapshot(table) == before
        take_back(plan.instant)
        assert residue_logs(path) == []
        assert snapshot(table) == before
        assert table.validate() == ()
