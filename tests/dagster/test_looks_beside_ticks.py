"""Looks beside the ticks: how many at a time, what they report by themselves, and what a tick takes of them."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from logging import getLogger
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from dagster import (
    AssetCheckEvaluation,
    AssetCheckKey,
    AssetKey,
    DagsterInstance,
    DagsterRun,
    DagsterRunStatus,
    RunRequest,
    SensorResult,
)

from hudi_assets.components import HudiTablesComponent
from hudi_assets.dagster import aside as asides
from hudi_assets.dagster import round as rounds
from hudi_assets.dagster import sensors
from hudi_assets.dagster.aside import Aside, memory_of
from hudi_assets.dagster.known import Known, OneTable
from hudi_assets.dagster.round import RoundCursor
from hudi_assets.engine import HudiTable
from tests.dagster.test_lost_ticks import Daemon
from tests.dagster.test_many_tables import Ticks, home, instance

__all__ = ["home", "instance"]

SLO = AssetCheckKey(AssetKey(["t0", "freshness"]), "freshness_within_slo")
FAILS = AssetCheckEvaluation(asset_key=SLO.asset_key, check_name=SLO.name, passed=False)
ASKS = SensorResult(run_requests=[RunRequest(run_key="t0", tags={"hudi_assets/table": "t0"})], asset_events=[FAILS])


def slow(ticks: Ticks, monkeypatch: pytest.MonkeyPatch, *names: str) -> Daemon:
    """The looks at these tables take longer than a tick."""
    daemon = Daemon(ticks, monkeypatch, {})
    daemon.tick()
    daemon.memory.took |= dict.fromkeys(names, 55.0)
    return daemon


def a_run(ticks: Ticks) -> DagsterRun:
    """Of the table t0, at work."""
    job = ticks.definitions.resolve_job_def("shop_compaction")
    tags = {"hudi_assets/table": "t0"}
    return ticks.instance.create_run_for_job(job, tags=tags, status=DagsterRunStatus.STARTED)


def test_a_look_that_a_run_overtook_reports_no_checks(
    home: Path, instance: DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does it ask for a run: what it saw may be over."""
    ticks, see = Ticks(home, instance), sensors.see  # type: ignore[attr-defined]
    (table, *_) = ticks.tables
    resources = SimpleNamespace(
        shop_tables={"t0": HudiTablesComponent(**ticks.block).components()[0]._resource()},
        hudi_catalog=(ticks.definitions.resources or {})["hudi_catalog"],
    )

    def slowly(hudi: HudiTable, *more: Any) -> Any:
        seen = see(hudi, *more)
        ticks.instance.report_run_canceled(a_run(ticks))
        return seen

    monkeypatch.setattr(sensors, "see", slowly)
    sensors.look_and_report(OneTable(Known(instance, datetime.now(UTC)), resources, None, getLogger()), table)
    record = instance.get_latest_asset_check_evaluation_record(SLO)
    assert record is not None
    assert not isinstance(record.evaluation, AssetCheckEvaluation)  # what the run planned
    assert instance.fetch_observations(SLO.asset_key, limit=1).records


def test_a_look_beside_the_ticks_reports_by_itself(
    home: Path, instance: DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be long until a tick comes, or a run may find something else meanwhile."""
    daemon = slow(Ticks(home, instance), monkeypatch, "t0")
    daemon.aside_finds = ASKS
    daemon.tick()
    daemon.end_aside("t0")
    record = instance.get_latest_asset_check_evaluation_record(SLO)
    assert record is not None
    found: Any = daemon.ticks.tick()
    assert [one.run_key for one in found.run_requests] == ["t0"]
    assert not found.asset_events


@pytest.mark.parametrize("why", ["a run is at work", "a run was at work", "it was long ago"])
def test_a_run_that_is_due_no_more_is_not_asked_for(
    home: Path, instance: DagsterInstance, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    daemon = slow(Ticks(home, instance), monkeypatch, "t0")
    daemon.aside_finds = ASKS
    daemon.tick()
    daemon.end_aside("t0")
    if why != "it was long ago":
        run = a_run(daemon.ticks)
        if why == "a run was at work":
            instance.report_run_canceled(run)
    else:
        daemon.now += 301
    found: Any = daemon.ticks.tick()
    assert not found.run_requests
    assert daemon.cursors["t0"] == "t0 aside"


@pytest.mark.parametrize(("takes", "interval"), [(35, 60), (1, 600)])
def test_a_look_that_has_ended_is_taken_by_the_next_tick(
    home: Path, instance: DagsterInstance, monkeypatch: pytest.MonkeyPatch, takes: float, interval: int
) -> None:
    """Whichever table is next in the round, and however long it is until the next tick."""
    names = [f"t{number}" for number in range(30)]
    tables = [{"name": name, "path": str(home / "t0")} for name in names]
    ticks = Ticks(home, instance, tables=tables, sensor={"minimum_interval_seconds": interval})
    daemon = slow(ticks, monkeypatch, "t0")
    daemon.took |= dict.fromkeys(names, takes)
    daemon.aside_finds = ASKS
    while not daemon.aside:
        daemon.tick()
    daemon.end_aside("t0")
    daemon.now += interval
    found: Any = daemon.ticks.tick()
    assert [one.run_key for one in found.run_requests] == ["t0"]


def test_what_a_lost_tick_took_is_there_again(
    home: Path, instance: DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon = slow(Ticks(home, instance), monkeypatch, "t0")
    daemon.aside_finds = ASKS
    daemon.tick()
    daemon.end_aside("t0")
    daemon.took["t2"] = 90
    assert daemon.tick() == ["t1", "t2"]  # and it is lost
    daemon.took["t2"] = 1
    found: Any = daemon.ticks.tick()
    assert [one.run_key for one in found.run_requests] == ["t0"]


def test_a_test_in_the_ui_leaves_to_the_daemon_what_a_look_has_found(
    home: Path, instance: DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dagster throws away what "Test sensor" finds, and shows it."""
    ticks = Ticks(home, instance)
    daemon = slow(ticks, monkeypatch, "t0")
    daemon.aside_finds = ASKS
    ticks.evaluated(started=None)
    assert daemon.aside == ["t0"]
    daemon.end_aside("t0")
    for found in (ticks.evaluated(started=None), ticks.evaluated(started=None), ticks.tick()):
        assert [one.run_key for one in found.run_requests or []] == ["t0"]
    assert not daemon.memory.aside


def test_a_test_in_the_ui_ends_no_tick_of_the_daemon(
    home: Path, instance: DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does it hide that one was lost."""
    daemon = Daemon(Ticks(home, instance), monkeypatch, {"t1": 90})
    real = rounds.evaluate_table  # type: ignore[attr-defined]

    def tested(context: Any, table: Any) -> SensorResult:
        with monkeypatch.context() as within:
            within.setattr(rounds, "evaluate_table", lambda *_: SensorResult())
            daemon.ticks.evaluated(started=None)
        return real(context, table)

    monkeypatch.setattr(rounds, "evaluate_table", tested)
    assert daemon.tick() == ["t0", "t1"]  # and it is lost
    assert daemon.tick() == ["t2", "t3", "t0"]
    assert daemon.cursors["t1"] == "t1"


def test_a_tick_that_was_given_up_takes_nothing_more(
    home: Path, instance: DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dagster lets its thread run to the end."""
    daemon = slow(Ticks(home, instance), monkeypatch, "t3")
    daemon.tick()
    began = daemon.memory.begin
    real, looked = rounds.evaluate_table, list[str]()  # type: ignore[attr-defined]

    def given_up(context: Any, table: Any) -> SensorResult:
        looked.append(table.name)
        daemon.end_aside("t3")
        began("of a later tick", ["t0"])
        return real(context, table)

    monkeypatch.setattr(rounds, "evaluate_table", given_up)
    daemon.tick()
    assert looked == ["t0"]
    assert "t3" in daemon.memory.aside
    assert RoundCursor.of(daemon.ticks.cursor).next == "t1"


def test_few_looks_are_at_work_beside_the_ticks_at_a_time(
    home: Path, instance: DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon = slow(Ticks(home, instance), monkeypatch, "t0", "t1", "t2", "t3")
    daemon.tick()
    assert daemon.aside == ["t0", "t1"]
    assert "waiting for these: t2, t3" in daemon.words
    daemon.now += 80
    daemon.end_aside("t0")
    daemon.end_aside("t1")
    daemon.tick()
    daemon.tick()
    assert sorted(daemon.aside[2:]) == ["t2", "t3"]  # and not those again that come first
    assert "waiting for these: t0, t1" in daemon.words
    daemon.now += 600  # these hang, and nobody waits for them
    daemon.tick()
    assert sorted(daemon.aside[4:]) == ["t0", "t1"]
    for name in ("t0", "t1", "t2", "t3"):
        daemon.end_aside(name)


def test_few_looks_are_at_work_beside_the_ticks_of_all_sensors_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asides, "_memories", {})
    memories = [memory_of(f"sensor{number}") for number in range(3)]
    found = [
        memory.look_aside(memory.begin(None, ["t0"]), "t0", lambda hung: Aside(0.0, hung + time.monotonic()))
        for memory in memories
    ]
    assert [look is not None for look in found] == [True, True, False]
    (first, *_) = found
    assert first is not None
    first.ended = 1.0
    (*_, last) = memories
    assert last.look_aside(last.begin(None, ["t0"]), "t0", lambda hung: Aside(0.0, hung)) is not None


@pytest.mark.parametrize("stops", [SystemExit("stop"), GeneratorExit()])
def test_a_look_that_is_broken_off_is_a_problem_of_its_table(
    home: Path, instance: DagsterInstance, monkeypatch: pytest.MonkeyPatch, stops: BaseException
) -> None:
    daemon = slow(Ticks(home, instance), monkeypatch, "t0")
    daemon.aside_raises = stops
    daemon.tick()
    daemon.end_aside("t0")
    daemon.tick()
    assert "1 could not be: t0: The look was broken off" in daemon.words
    record = instance.get_latest_asset_check_evaluation_record(SLO)
    assert record is not None
    assert isinstance(record.evaluation, AssetCheckEvaluation)
    assert not record.evaluation.passed


def test_a_problem_of_long_ago_is_left_to_the_next_look(
    home: Path, instance: DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon = slow(Ticks(home, instance), monkeypatch, "t0")
    daemon.aside_raises = ValueError("damaged")
    daemon.tick()
    look = daemon.memory.aside["t0"]
    daemon.end_aside("t0")
    assert look.problem is not None
    assert look.problem.__traceback__ is None
    daemon.now += 301
    daemon.tick()
    assert "could not be" not in daemon.words


def test_a_database_that_is_locked_is_a_problem_of_one_table(
    home: Path, instance: DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    def locked(*_: Any) -> None:
        raise OSError("database is locked")

    daemon = slow(Ticks(home, instance), monkeypatch, "t0")
    daemon.tick()
    monkeypatch.setattr(rounds, "report_failure", locked)
    daemon.now += 601
    assert daemon.tick() == ["t1", "t2", "t3"]
    assert "1 could not be: t0: database is locked" in daemon.words
    daemon.end_aside("t0")
    daemon.tick()
    monkeypatch.setattr(rounds, "begun", locked)
    daemon.memory.took["t0"] = 55
    assert daemon.tick() == ["t1", "t2", "t3"]


def test_a_look_hangs_when_it_takes_twice_as_long_as_the_last_one(
    home: Path, instance: DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon = slow(Ticks(home, instance), monkeypatch, "t0")
    daemon.memory.took["t0"] = 720
    daemon.tick()
    daemon.now += 1400
    daemon.tick()
    assert "could not be" not in daemon.words
    daemon.now += 60
    daemon.tick()
    assert "t0: The look has been at work for more than 20 minutes" in daemon.words
    daemon.end_aside("t0")


def test_a_slow_database_makes_no_table_slow(
    home: Path, instance: DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon, asked = Daemon(Ticks(home, instance), monkeypatch, {}), []

    def slowly(*_: Any) -> None:
        asked.append(daemon.now)
        daemon.now += 52
        raise OSError("database is locked")

    monkeypatch.setattr(rounds.Known, "ask", slowly)  # type: ignore[attr-defined]
    daemon.tick()
    assert daemon.memory.took["t0"] == 1
    assert len(asked) == 1
    assert RoundCursor.of(daemon.ticks.cursor).next == "t1"


def test_a_locked_database_is_asked_once_in_a_tick(
    home: Path, instance: DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def locked(_: Any, tables: Any) -> None:
        asked.append(tables)
        raise OSError("database is locked")

    monkeypatch.setattr(rounds.Known, "ask", locked)  # type: ignore[attr-defined]
    daemon = Daemon(Ticks(home, instance), monkeypatch, {})
    assert daemon.tick() == ["t0", "t1", "t2", "t3"]
    assert len(asked) == 1


def test_so_many_are_asked_for_at_once_as_are_looked_at_then(
    home: Path, instance: DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    real = rounds.Known.ask  # type: ignore[attr-defined]

    def counted(known: Any, tables: Any) -> None:
        asked.append(len(tables))
        real(known, tables)

    monkeypatch.setattr(rounds.Known, "ask", counted)  # type: ignore[attr-defined]
    daemon = Daemon(Ticks(home, instance), monkeypatch, dict.fromkeys(("t0", "t1", "t2", "t3"), 3))
    daemon.tick()
    assert asked == [4, 2, 2, 1]
