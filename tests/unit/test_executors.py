"""Beside Hudi's own table services: whose attempt at a plan is under way, and what is left alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hudi_assets.engine import HudiTable
from hudi_assets.engine.actions.compaction import executor
from hudi_assets.engine.errors import Conflict
from hudi_assets.engine.model import Plan
from hudi_assets.engine.table.settings.config import WRITERS
from hudi_assets.engine.table.settings.merging import TABLE_SERVICES
from hudi_assets.engine.transaction.other_executors import begun_by_us
from hudi_assets.engine.transaction.publish import BEGUN
from tests.races.player import SCHEMA, rows_of
from tests.tables.local_session import LocalSession

ROWS = [{"id": f"k{n}", "ts": 1_000 + n, "v": n} for n in range(4)]


@pytest.fixture(params=[6, 9])
def table(tmp_path: Path, session: LocalSession, request: pytest.FixtureRequest) -> HudiTable:
    made = HudiTable.create(
        str(tmp_path / "t"), SCHEMA, record_key=["id"], ordering_field="ts", buckets=1, table_version=request.param
    )
    made.upsert(session, session.rows(ROWS, SCHEMA))
    return made


def planned(table: HudiTable) -> Plan:
    plan = table.plan_compaction(threshold=5_000)
    assert isinstance(plan, Plan)
    return plan


def inflight(table: HudiTable, instant: str) -> Path:
    return Path(table.path, table._table.layout.timeline_folder, f"{instant}.compaction.inflight")


def foreign_attempt(table: HudiTable, plan: Plan) -> Path:
    """What an execution by Hudi has made so far: an empty inflight file, and a base file."""
    inflight(table, plan.instant).touch()
    file_id = plan.operations[0].file_id
    base = Path(table.path, table._table.layout.base_file_name(file_id, "7-1-7", plan.instant))
    base.write_bytes(b"being written")
    return base


def locked(table: HudiTable, **more: str) -> HudiTable:
    return HudiTable.open(table.path, settings={WRITERS: "locked", **more})


def test_an_execution_of_another_engine_is_left_alone(table: HudiTable, session: LocalSession) -> None:
    plan = planned(table)
    base = foreign_attempt(table, plan)
    with pytest.raises(Conflict, match="Another engine has begun"):
        locked(table).execute_compaction(session, plan.instant)
    assert base.read_bytes() == b"being written"
    assert inflight(table, plan.instant).read_bytes() == b""


@pytest.mark.parametrize("says", [{WRITERS: "stopped"}, {WRITERS: "locked", TABLE_SERVICES: "ours"}])
def test_a_dead_one_is_taken_over_on_its_owners_word(
    table: HudiTable, session: LocalSession, says: dict[str, str]
) -> None:
    plan = planned(table)
    base = foreign_attempt(table, plan)
    HudiTable.open(table.path, settings=says).execute_compaction(session, plan.instant)
    assert not base.exists()
    assert rows_of(table) == {row["id"]: (row["ts"], row["v"]) for row in ROWS}


def test_a_dead_attempt_of_ours_is_gone_on_with(
    table: HudiTable, session: LocalSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = planned(table)
    with monkeypatch.context() as patch:
        patch.setattr(executor, "check_still_ours", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            locked(table).execute_compaction(session, plan.instant)
    assert begun_by_us(table._table.storage, table._table.layout, plan.instant)
    locked(table).execute_compaction(session, plan.instant)
    assert rows_of(table) == {row["id"]: (row["ts"], row["v"]) for row in ROWS}


@pytest.mark.parametrize("how", ["rolled back", "begun again", "base file deleted"])
def test_an_attempt_that_was_taken_from_us_is_not_committed(
    table: HudiTable, session: LocalSession, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """Hudi's services take back what they find inflight, and execute it themselves."""
    plan = planned(table)

    def taken_now(*files: Any) -> None:
        publish(*files)
        path = inflight(table, plan.instant)
        assert path.read_bytes() == BEGUN
        if how == "base file deleted":
            (base,) = Path(table.path).glob(f"*_{plan.instant}.parquet")
            base.unlink()
            return
        path.unlink()
        if how == "begun again":
            path.touch()

    # The last step before the look that decides.
    publish = executor.publish  # type: ignore[attr-defined]
    monkeypatch.setattr(executor, "publish", taken_now)
    with pytest.raises(Conflict, match="taken back our execution"):
        table.execute_compaction(session, plan.instant)
    assert rows_of(table) == {row["id"]: (row["ts"], row["v"]) for row in ROWS}
