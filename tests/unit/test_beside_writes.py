"""Planning beside a writer that is always at work."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from hudi_assets.engine import HudiTable
from hudi_assets.engine.actions.compaction import planning
from hudi_assets.engine.errors import InvalidInput
from hudi_assets.engine.model import NoPlan, Plan
from hudi_assets.engine.table.settings.config import QUERY_GRACE, WRITERS
from hudi_assets.engine.table.settings.merging import TABLE_SERVICES
from hudi_assets.engine.timeline.commit_metadata import CommitMetadata
from tests.machine.table_under_test import Ticking
from tests.races.player import SCHEMA
from tests.tables.local_session import LocalSession

ROWS = [{"id": f"k{n}", "ts": 1_000 + n, "v": n} for n in range(4)]


def made(path: Path, session: LocalSession, version: int) -> HudiTable:
    table = HudiTable.create(
        str(path), SCHEMA, record_key=["id"], ordering_field="ts", buckets=1, table_version=version
    )
    table.upsert(session, session.rows(ROWS, SCHEMA))
    beside = {WRITERS: "locked", TABLE_SERVICES: "ours", QUERY_GRACE: "0s", "hoodie.clean.automatic": "false"}
    opened = HudiTable.open(table.path, settings=beside)
    return HudiTable(opened._table.storage, opened.config, now_ms=Ticking(table.now_ms()))


def begun(table: HudiTable) -> str:
    """A write of another engine that has begun."""
    instant = table._table.publisher.new_instant(table.state().timeline)
    table._table.publisher.begin_write(instant, CommitMetadata("UPSERT", ()))
    return instant


def test_on_version_9_a_write_holds_nothing_back(tmp_path: Path, session: LocalSession) -> None:
    table = made(tmp_path / "t", session, 9)
    writing = begun(table)
    plan = table.plan_compaction(threshold=5_000)
    assert isinstance(plan, Plan)
    assert plan.instant < writing


def test_on_version_6_a_plan_waits_for_a_moment_between_two_writes(tmp_path: Path, session: LocalSession) -> None:
    table = made(tmp_path / "t", session, 6)
    writing = begun(table)
    # What the sensor asks: the run that it requests is the one that waits.
    assert isinstance(table.plan_compaction(threshold=5_000, dry_run=True), Plan)
    end = threading.Timer(0.3, lambda: table._table.publisher.withdraw_write(writing))
    end.start()
    plan = table.plan_compaction(threshold=5_000)
    end.join()
    assert isinstance(plan, Plan)
    assert table.stats().inflight_writes == ()


def test_on_version_6_it_gives_up_with_the_reason(
    tmp_path: Path, session: LocalSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = made(tmp_path / "t", session, 6)
    writing = begun(table)
    monkeypatch.setattr(planning, "_GAP_WAIT_S", 0.1)
    found = table.plan_compaction(threshold=5_000)
    assert isinstance(found, NoPlan)
    assert writing in found.reason
    assert table.stats().pending == ()


@pytest.mark.parametrize("version", [6, 9])
def test_on_version_6_it_is_said_how_others_write(tmp_path: Path, session: LocalSession, version: int) -> None:
    stated = made(tmp_path / "t", session, version)
    table = HudiTable(stated._table.storage, replace(stated.config, writers=None), now_ms=Ticking(stated.now_ms()))
    if version == 6:
        with pytest.raises(InvalidInput, match="Nothing says how other engines write"):
            table.plan_compaction(threshold=5_000)
    else:
        assert isinstance(table.plan_compaction(threshold=5_000), Plan)
