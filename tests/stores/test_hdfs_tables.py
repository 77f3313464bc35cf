"""Tables in HDFS, changed from here: the same answers as of the same steps on a disk."""

from __future__ import annotations

import time
import uuid
from pathlib import Path
from typing import Any

import pytest

from hudi_assets.engine import HudiTable, NoPlan, open_storage
from hudi_assets.engine.model import Action
from hudi_assets.engine.storage.hdfs_folder import HOLDERS
from hudi_assets.engine.transaction import lease
from hudi_assets.engine.transaction.heartbeat import Heartbeats
from tests.crash import faulty
from tests.crash.faulty import Crash, DyingStorage
from tests.crash.tables import BATCHES, THRESHOLD, batch, planned, snapshot, write
from tests.stores.hdfs import Hdfs
from tests.stores.test_changes import SETTINGS, live, new_table
from tests.stores.test_several_processes import SHORT, check_players, completed, go_on, stopped
from tests.tables.local_session import LocalSession
from tests.tables.steps import at


def new_path(hdfs: Hdfs) -> str:
    return f"{hdfs.uri}/tables/{uuid.uuid4().hex}"


@pytest.mark.parametrize("version", [6, pytest.param(8, marks=pytest.mark.thorough), 9])
def test_every_kind_of_change(version: int, hdfs: Hdfs, session: LocalSession, tmp_path: Path) -> None:
    path = new_path(hdfs)
    table = new_table(path, version)
    assert live(table, session) == live(new_table(str(tmp_path / "t"), version), session)
    assert snapshot(HudiTable.open(path)) == snapshot(table)
    kinds = {instant.action for instant in table.state().timeline.instants}
    assert {Action.CLEAN, Action.DELTA_COMMIT} <= kinds


@pytest.mark.parametrize("version", [9, pytest.param(6, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("seconds", [6, pytest.param(60, marks=pytest.mark.thorough)])
def test_two_writers_and_two_planners(hdfs: Hdfs, seconds: float, version: int) -> None:
    check_players(hdfs, new_table(new_path(hdfs), version), seconds)


def one_batch(hdfs: Hdfs, session: LocalSession, version: int) -> HudiTable:
    path = new_path(hdfs)
    new_table(path, version)
    table = HudiTable.open(path, settings=SHORT)
    table.upsert(session, batch(0, 1_000), clock_time=at(2_000))
    return table


@pytest.mark.parametrize("version", [9, pytest.param(6, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("is_killed", [False, True])
def test_a_writer_that_was_stopped_commits_nothing(
    is_killed: bool, version: int, hdfs: Hdfs, session: LocalSession
) -> None:
    """Right before the request that names its commit."""
    table = one_batch(hdfs, session, version)
    with stopped(hdfs, table.path, "write", "in the very request") as process:
        if is_killed:
            process.kill()
        began = time.monotonic()
        table.upsert(session, batch(6, 1_000), clock_time=at(3_000))  # waits for the lease, then takes back
        assert time.monotonic() - began > 5
        rows, done = snapshot(table), completed(table)
        assert len(rows) == 12
        assert is_killed or "was taken from this process" in go_on(process)
    assert snapshot(table) == rows
    assert completed(table) == done
    table.recover()
    assert table.validate() == ()
    assert table._table.storage.list_directories(f"{HOLDERS}/table_lock") == []


@pytest.mark.parametrize("version", [9, pytest.param(6, marks=pytest.mark.thorough)])
def test_an_execution_that_was_stopped_commits_nothing(version: int, hdfs: Hdfs, session: LocalSession) -> None:
    table = one_batch(hdfs, session, version)
    rows, plan = snapshot(table), planned(table)
    with stopped(hdfs, table.path, plan.instant, "in the very request") as process:
        table.execute_compaction(session, plan.instant)
        done = completed(table)
        assert go_on(process).startswith("refused")
    assert completed(table) == done
    assert snapshot(table) == rows
    table.recover()
    assert table.validate() == ()


# ---------------------------------------------------------------------------------- a crash before an operation


def compact(table: HudiTable, session: Any) -> None:
    plan = table.pending_plan() or table.plan_compaction(threshold=THRESHOLD)
    if not isinstance(plan, NoPlan):
        table.execute_compaction(session, plan.instant)


DIES: dict[str, Any] = {"write": lambda table, session: write(table, session, 6, 9_500), "compact": compact}


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("action", DIES)
@pytest.mark.parametrize("every", [21, pytest.param(2, marks=pytest.mark.thorough)])
def test_a_crash_before_an_operation(
    every: int, action: str, version: int, hdfs: Hdfs, session: LocalSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At each `every`-th: nothing is lost or doubled, and what is asked for again is done."""
    later = 0
    now_ms = lease._now_ms
    monkeypatch.setattr(lease, "_now_ms", lambda: now_ms() + later)  # whoever comes next waits for no lease
    monkeypatch.setattr(Heartbeats, "is_alive", lambda *_: False)
    monkeypatch.setattr(faulty, "LocalStorage", open_storage)
    n, done = 1 - every, False
    while not done:
        n += every
        path = new_path(hdfs)
        table = new_table(path, version)
        for first, ts in BATCHES:
            write(table, session, first, ts)
        before = snapshot(table)
        wanted = before
        if action == "write":
            wanted = {row for row in before if row[0] < 6} | {(i, 9_500 + i, i * 10 + 9_500) for i in range(6, 12)}
        storage: Any = DyingStorage(path, n)
        try:
            DIES[action](HudiTable(storage, HudiTable.open(path, settings=SETTINGS).config), session)
            done = True
        except Crash:
            pass
        later += 600_000
        after = HudiTable.open(path, settings=SETTINGS)
        after.recover()
        assert snapshot(after) in ([wanted] if done else [before, wanted]), n
        DIES[action](after, session)
        assert snapshot(after) == wanted, n
        assert after.validate() == (), n
    assert n > every
