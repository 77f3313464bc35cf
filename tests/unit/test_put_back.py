"""A compaction that was planned before the clock was put back, and is executed while the same hour goes by again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hudi_assets.engine.errors import Conflict
from hudi_assets.engine.model import Plan
from hudi_assets.engine.transaction.publish import system_now_ms
from tests.tables.local_session import LocalSession
from tests.unit.test_time_zones import FIRST_PASS, HOUR, LOS_ANGELES, MINUTE, SECOND_PASS, Table


def planned(path: Path, session: LocalSession, version: int) -> tuple[Table, Plan, int]:
    """A table with a plan of 00:50, and a commit of another writer at 01:50, in the first pass; and the time now."""
    table, now = Table(path, session, version), system_now_ms()
    table.write(LOS_ANGELES, now - FIRST_PASS + 2 * HOUR)
    table.ahead_ms = FIRST_PASS - HOUR - now
    plan = table.open(LOS_ANGELES).plan_compaction(threshold=1)
    assert isinstance(plan, Plan)
    table.write("Etc/GMT+7", now - FIRST_PASS)
    return table, plan, now


@pytest.mark.parametrize("version", [8, 9])
def test_what_cannot_be_completed_is_not_begun(
    tmp_path: Path, session: LocalSession, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A completion is an instant too: in the second pass it would lie below the timeline's last."""
    some: Any = session
    table, plan, now = planned(tmp_path / "t", session, version)
    table.ahead_ms = SECOND_PASS - now
    before = table.tree()
    with monkeypatch.context() as patch:
        patch.setattr("hudi_assets.engine.spark.session.run_tasks", lambda *_: pytest.fail("the merge was begun"))
        with pytest.raises(Conflict, match="put back") as refused:
            table.open(LOS_ANGELES).execute_compaction(some, plan.instant)
    assert "Try again from" in str(refused.value)
    with pytest.raises(Conflict, match="put back"):
        table.open(LOS_ANGELES).savepoint()
    assert table.tree() == before
    table.ahead_ms = SECOND_PASS + HOUR + MINUTE - now
    table.open(LOS_ANGELES).execute_compaction(some, plan.instant)
    assert {row["id"] for row in table.open(LOS_ANGELES).snapshot(some).rows()} == {1, 2}


def test_version_6_names_no_completion_and_goes_on(tmp_path: Path, session: LocalSession) -> None:
    some: Any = session
    table, plan, now = planned(tmp_path / "t", session, 6)
    table.ahead_ms = SECOND_PASS - now
    table.open(LOS_ANGELES).execute_compaction(some, plan.instant)
    assert {row["id"] for row in table.open(LOS_ANGELES).snapshot(some).rows()} == {1, 2}
