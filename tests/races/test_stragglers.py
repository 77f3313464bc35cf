"""A log file that another engine's writer puts into the old slice beside a plan that it had not seen."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hudi_assets.engine import HudiTable
from hudi_assets.engine.errors import Conflict
from hudi_assets.engine.model import Plan
from tests.races.player import SCHEMA, create, rows_of
from tests.tables.local_session import LocalSession
from tests.tables.steps import compact


def _upsert(table: HudiTable, session: LocalSession, key: str, ts: int, v: int) -> str:
    instant = table.upsert(session, session.rows([{"id": key, "ts": ts, "v": v}], SCHEMA)).instant
    assert instant is not None
    return instant


def _planned(table: HudiTable, session: LocalSession) -> Plan:
    for number, key in enumerate("abcdef"):
        _upsert(table, session, key, 1_000 + number, number)
        _upsert(table, session, key, 9_000 + number, number)
    plan = table.plan_compaction(threshold=5_000)
    assert isinstance(plan, Plan)
    return plan


def _move_to_old_slice(table: HudiTable, instant: str, plan: Plan) -> Path:
    """What a write appended beside the plan, as if its writer had not seen the plan."""
    root = Path(table.path)
    commit = root / f".hoodie/{instant}.deltacommit"
    (stat,) = (stat for group in json.loads(commit.read_text())["partitionToWriteStats"].values() for stat in group)
    (op,) = (op for op in plan.operations if op.file_id == stat["fileId"])
    version = len(op.log_files) + len(op.carried_over) + 1
    name = f".{op.file_id}_{op.base_instant}.log.{version}_9-9-9"
    (root / stat["path"]).rename(root / name)
    commit.write_text(commit.read_text().replace(stat["path"], name))
    return root / name


def test_a_plan_that_would_lose_a_row_is_not_executed(session: LocalSession, tmp_path: Path) -> None:
    table = create(tmp_path / "t")
    plan = _planned(table, session)
    late = _upsert(table, session, "a", 20_000, 99)
    straggler = _move_to_old_slice(table, late, plan)
    table = HudiTable.open(table.path)
    assert rows_of(table)["a"] == (20_000, 99), "both slices are read while the plan is pending"
    with pytest.raises(Conflict, match=r"landed in the old slice.*Unschedule") as refused:
        table.execute_compaction(session, plan.instant)
    assert straggler.name in str(refused.value)
    assert table.stats().pending == (plan.instant,)
    assert rows_of(table)["a"] == (20_000, 99)

    table.unschedule(plan.instant)
    assert rows_of(table)["a"] == (20_000, 99)
    compact(table, session, 5_000)
    assert rows_of(table)["a"] == (20_000, 99)


def test_a_failed_write_in_the_old_slice_holds_nothing_up(session: LocalSession, tmp_path: Path) -> None:
    table = create(tmp_path / "t")
    plan = _planned(table, session)
    late = _upsert(table, session, "a", 20_000, 99)
    _move_to_old_slice(table, late, plan)
    for ending in ("deltacommit", "deltacommit.inflight", "deltacommit.requested"):
        (Path(table.path) / f".hoodie/{late}.{ending}").unlink()
    table = HudiTable.open(table.path)
    assert rows_of(table)["a"] == (9_000, 0)
    table.execute_compaction(session, plan.instant)
    assert rows_of(table)["a"] == (9_000, 0)


def test_what_is_appended_beside_the_plan_holds_nothing_up(session: LocalSession, tmp_path: Path) -> None:
    table = create(tmp_path / "t")
    plan = _planned(table, session)
    _upsert(table, session, "a", 20_000, 99)
    table.execute_compaction(session, plan.instant)
    assert rows_of(table)["a"] == (20_000, 99)
