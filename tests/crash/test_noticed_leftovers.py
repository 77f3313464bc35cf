"""What a crash left is noticed by the cheap look at the table wherever `recover` has to mend it, and only there."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hudi_assets.engine import HudiTable
from hudi_assets.engine.model import Action, Plan
from tests.crash.faulty import DyingStorage, faults
from tests.crash.tables import SCHEMA
from tests.crash.test_housekeeping_crashes import path
from tests.tables.local_session import LocalSession
from tests.tables.steps import at

__all__ = ["path"]  # the fixture
_TEN_MINUTES = 600_000
# Markers hold nothing up, and a heartbeat is no file that a query sees.
_HARMLESS = {"markers"}


def _later(folder: Path) -> HudiTable:
    """The table as it is looked at when the heartbeats of the dead have gone cold."""
    config = HudiTable.open(str(folder)).config
    storage: Any = DyingStorage(str(folder))
    return HudiTable(storage, config, now_ms=lambda: int(time.time() * 1000) + _TEN_MINUTES)


def _plan(table: HudiTable) -> object:
    return table.plan_compaction(threshold=9_200)  # with log files carried over, so with a guard


def _clean(table: HudiTable) -> object:
    return table.clean()


def _roll_back(table: HudiTable) -> object:
    plan = table.pending_plan()
    assert plan is None
    (*_, newest) = table.state().timeline.completed(Action.COMMIT, Action.DELTA_COMMIT)
    return table.rollback(newest.timestamp)


@pytest.mark.parametrize("action", [_plan, _clean, _roll_back])
def test_noticed_where_there_is_something_to_mend(
    path: Path, tmp_path: Path, action: Callable[[HudiTable], object]
) -> None:
    assert _later(path).leftovers() == ()
    noticed = 0
    for folder, died in faults(path, tmp_path, action):
        table = _later(folder)
        said = table.leftovers()
        kinds = {finding.kind for finding in table.validate()} - _HARMLESS
        assert bool(said) == bool(kinds), (died, said, kinds)
        noticed += bool(said)
        table.recover()
        assert _later(folder).leftovers() == (), died
    # Where nothing is carried over, a plan is one file: there, or not.
    links = HudiTable.open(str(path)).state().layout.makes_links
    assert bool(noticed) == (links or action is not _plan)


def test_a_write_is_noticed_once_its_heartbeat_is_cold(path: Path, tmp_path: Path, session: LocalSession) -> None:
    rows = session.rows([{"id": 1, "ts": 9_900, "v": 1}], SCHEMA)

    def write(table: HudiTable) -> object:
        return table.upsert(session, rows, clock_time=at(12_000))

    noticed = 0
    for folder, died in faults(path, tmp_path, write):
        assert HudiTable.open(str(folder)).leftovers() == (), died  # it may live
        table = _later(folder)
        said = table.leftovers()
        assert bool(said) == bool(table.stats().inflight_writes), died
        noticed += bool(said)
        table.recover()
        assert _later(folder).leftovers() == (), died
    assert noticed


def test_a_pending_plan_is_none(path: Path) -> None:
    table = HudiTable.open(str(path))
    assert isinstance(table.plan_compaction(threshold=10_000), Plan)
    assert table.leftovers() == ()
