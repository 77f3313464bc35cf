"""A tick that takes longer than Dagster waits for is lost, with its events and its cursor: the next one goes on."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from functools import partial
from math import inf
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from dagster import (
    AssetCheckEvaluation,
    AssetCheckKey,
    AssetKey,
    DagsterInstance,
    SensorResult,
    build_sensor_context,
)
from dagster._grpc.utils import default_sensor_grpc_timeout
from dagster.components import build_defs_for_component

from hudi_assets.components import HudiTableComponent
from hudi_assets.dagster import aside as asides
from hudi_assets.dagster import round as rounds
from hudi_assets.dagster import sensors
from hudi_assets.dagster.aside import Memory, begun, sensor_deadline
from hudi_assets.dagster.known import Known
from hudi_assets.dagster.round import RoundCursor
from hudi_assets.engine import EnvironmentProblem
from tests.dagster.test_many_tables import DEFAULTS, Ticks, home, instance

__all__ = ["home", "instance"]


def replaced(result: SensorResult, cursor: str) -> SensorResult:
    return SensorResult(run_requests=result.run_requests, asset_events=result.asset_events, cursor=cursor)


class Daemon:
    """Ticks by a clock that stands but for looks, which take so many seconds; those of over a minute are lost.

    A look beside the ticks takes until `end_aside`; it raises `aside_raises`, where that is given.
    """

    def __init__(self, ticks: Ticks, monkeypatch: pytest.MonkeyPatch, took: dict[str, float]) -> None:
        self.ticks, self.now, self.looked, self.took = ticks, 0.0, [], took  # type: ignore[var-annotated]
        self.seen: set[str] = set()
        self.aside: list[str] = []
        self.aside_raises: BaseException | None = None
        self.aside_finds = SensorResult()
        self._goes_on = threading.Event()
        self._memories: dict[str, Memory] = {}
        monkeypatch.setattr(asides, "_memories", self._memories)
        monkeypatch.setattr("time.monotonic", lambda: self.now)

        def slowly(context: Any, table: Any) -> SensorResult:
            if threading.current_thread() is not threading.main_thread():
                self.aside.append(table.name)
                self._goes_on.wait(60)
                if self.aside_raises is not None:
                    raise self.aside_raises
                return replaced(self.aside_finds, cursor=f"{table.name} aside")
            self.now += took.get(table.name, 1)
            self.looked.append(table.name)
            return SensorResult(cursor=table.name)

        monkeypatch.setattr(rounds, "evaluate_table", slowly)
        monkeypatch.setattr(sensors, "evaluate_table", slowly)

    @property
    def memory(self) -> Memory:
        (memory,) = self._memories.values()
        return memory

    def tick(self) -> list[str]:
        cursor, began, self.looked = self.ticks.cursor, self.now, []
        found: Any = self.ticks.tick()
        self.words = str(found.skip_message)
        if self.now - began > 60:
            self.ticks.cursor = cursor
        else:
            self.seen |= set(self.looked)
        return list(self.looked)

    def end_aside(self, name: str) -> None:
        self._goes_on.set()
        look = self.memory.aside[name]
        while look.ended is None:
            threading.Event().wait(0.01)
        self._goes_on = threading.Event()

    @property
    def cursors(self) -> Mapping[str, str]:
        return RoundCursor.of(self.ticks.cursor).tables


def test_a_table_that_takes_too_long_is_looked_at_beside_the_ticks(
    home: Path, instance: DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon = Daemon(Ticks(home, instance), monkeypatch, {"t0": 90})
    assert daemon.tick() == ["t0"]  # and the daemon never hears of it
    assert daemon.tick() == ["t1", "t2", "t3"]
    assert "4 of 4 tables were looked at" in daemon.words
    assert daemon.cursors["t0"] == "t0"
    for _ in range(2):
        assert daemon.tick() == ["t1", "t2", "t3"]
        assert "at work, and reported by a later tick: t0 for " in daemon.words
    assert daemon.aside == ["t0"]  # one look at a time
    daemon.now += 80
    daemon.end_aside("t0")
    assert daemon.tick() == ["t1", "t2", "t3"]
    assert "4 of 4 tables were looked at" in daemon.words
    assert daemon.cursors["t0"] == "t0 aside"
    daemon.tick()
    assert daemon.aside == ["t0", "t0"]
    daemon.end_aside("t0")  # and it was quick: no longer than the others
    daemon.tick()
    daemon.took["t0"] = 1
    assert daemon.tick() == ["t0", "t1", "t2", "t3"]


def test_what_is_wrong_with_a_look_beside_the_ticks_is_told(
    home: Path, instance: DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon = Daemon(Ticks(home, instance), monkeypatch, {"t0": 90})
    daemon.tick()
    daemon.tick()
    daemon.aside_raises = ValueError("damaged")
    daemon.tick()
    daemon.now += 80
    daemon.end_aside("t0")
    assert daemon.tick() == ["t1", "t2", "t3"]
    assert "1 could not be: t0: damaged" in daemon.words


def test_a_look_that_never_ends_fails_the_tables_check(
    home: Path, instance: DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon = Daemon(Ticks(home, instance), monkeypatch, {"t0": 90})
    check = AssetCheckKey(AssetKey(["t0", "freshness"]), "freshness_within_slo")
    daemon.tick()
    daemon.tick()
    daemon.tick()
    assert instance.get_latest_asset_check_evaluation_record(check) is None
    daemon.now += 600
    daemon.tick()
    assert "t0: The look has been at work for more than 10 minutes" in daemon.words
    record = instance.get_latest_asset_check_evaluation_record(check)
    assert record is not None
    assert isinstance(record.evaluation, AssetCheckEvaluation)
    assert not record.evaluation.passed
    daemon.end_aside("t0")


def test_a_look_beside_the_ticks_has_an_instance_of_its_own(tmp_path: Path) -> None:
    """The one of the tick that began it ends with that tick."""
    with DagsterInstance.local_temp(str(tmp_path)) as lasting:
        made: Any = SimpleNamespace(instance_ref=lasting.get_ref(), instance=lasting)
        asked: list[DagsterInstance] = []

        def look(known: Known) -> SensorResult:
            asked.append(known.instance)
            return SensorResult(cursor=str(known.instance.get_runs_count()))

        memory = Memory()
        tick = memory.begin(None, ["t0"])
        found: Any = memory.look_aside(tick, "t0", partial(begun, made, look))
        while found.ended is None:
            threading.Event().wait(0.01)
        assert found.result().cursor == "0"
        assert asked[0] is not lasting


def test_a_sensor_of_one_table_looks_beside_its_ticks_too(
    home: Path, instance: DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    definitions = build_defs_for_component(HudiTableComponent(name="t0", path=str(home / "t0"), **DEFAULTS))
    (sensor,) = definitions.sensors or []
    now, goes_on = [0.0], threading.Event()
    monkeypatch.setattr(asides, "_memories", {})
    monkeypatch.setattr("time.monotonic", lambda: now[0])

    def slowly(context: Any, table: Any) -> SensorResult:
        if threading.current_thread() is threading.main_thread():
            now[0] += 90
        else:
            goes_on.wait(60)
        return SensorResult(cursor="seen", skip_reason="seen")

    monkeypatch.setattr(sensors, "evaluate_table", slowly)

    def tick(started: float | None = 1.0) -> str:
        context = build_sensor_context(
            instance=instance,
            definitions=definitions,
            resources={key: (definitions.resources or {})[key] for key in ("t0_table", "hudi_catalog")},
            last_sensor_start_time=started,
        )
        return str(sensor.evaluate_tick(context).skip_message)

    assert tick() == "seen"  # the daemon never hears of it
    assert tick() == "seen"  # and takes it now
    assert "The look has been at work for 0 s, longer than a tick may take" in tick()
    now[0] += 70
    assert "The look has been at work for 70 s" in tick()
    look = asides._memories["t0_event_time_trigger"].aside["t0"]
    goes_on.set()
    while look.ended is None:
        threading.Event().wait(0.01)
    assert tick(started=None) == "seen"  # a test in the UI, which throws it away
    assert tick() == "seen"
    assert not asides._memories["t0_event_time_trigger"].aside


def test_what_takes_too_long_together_is_looked_at_in_two_ticks(
    home: Path, instance: DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon = Daemon(Ticks(home, instance), monkeypatch, {"t0": 39, "t1": 25})
    assert daemon.tick() == ["t0", "t1"]
    assert daemon.seen == set()
    assert daemon.tick() == ["t2", "t3", "t0"]
    assert daemon.cursors["t1"] == "t1"  # of the tick before
    assert daemon.tick() == ["t0"]
    assert daemon.tick() == ["t1", "t2", "t3"]


@pytest.mark.parametrize("hangs", [0, 2])
def test_a_catalog_that_hangs_keeps_no_table_from_being_looked_at(
    home: Path, instance: DagsterInstance, monkeypatch: pytest.MonkeyPatch, hangs: int
) -> None:
    """The metastore of a home directory may take 90 seconds to start, and then fail."""
    each = dict.fromkeys(("t0", "t1", "t2", "t3"), 3.0)  # so that each is asked for anew
    daemon, asked = Daemon(Ticks(home, instance), monkeypatch, each), list[float]()

    def silent(known: Any, tables: Any) -> None:
        asked.append(daemon.now)
        if len(asked) > hangs:
            daemon.now += 90
            raise EnvironmentProblem("The metastore has not started.")

    monkeypatch.setattr(Known, "ask_catalogs", silent)
    names = list(each)
    assert daemon.tick() == names[:hangs]
    assert daemon.tick() == [*names[hangs:], *names[:hangs]]
    assert inf not in daemon.memory.took.values()
    assert len(asked) == hangs + 1


def test_a_tick_that_hangs_while_it_asks_is_followed_by_one_that_does_not(
    home: Path, instance: DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is at work still when the next one comes."""
    memory = Memory()
    lost = memory.begin("cursor", ["t0", "t1", "t2"])
    lost.looked += ["t0", "t1"]
    lost.asking = True
    next_ = memory.begin("cursor", ["t0", "t1", "t2"])
    assert next_.asks_not
    assert next_.first == "t2"
    assert not memory.took
    assert not memory.begin("cursor", ["t0", "t1", "t2"]).asks_not


def test_a_tick_in_time_that_leaves_its_cursor_as_it_was_is_not_lost(
    home: Path, instance: DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon = Daemon(Ticks(home, instance), monkeypatch, {})
    for _ in range(3):
        assert daemon.tick() == ["t0", "t1", "t2", "t3"]


def test_looks_that_last_longer_than_dagster_waits_are_refused(home: Path, instance: DagsterInstance) -> None:
    with pytest.raises(ValueError, match=r"less than the 60 s after which Dagster gives a tick up"):
        Ticks(home, instance, sensor={"look_seconds": 60})


def test_the_variable_for_all_of_dagsters_timeouts_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, of_sensors in (("DAGSTER_SENSOR_GRPC_TIMEOUT_SECONDS", "90"), ("DAGSTER_GRPC_TIMEOUT_SECONDS", "30")):
        monkeypatch.delenv("DAGSTER_SENSOR_GRPC_TIMEOUT_SECONDS", raising=False)
        monkeypatch.setenv(name, of_sensors)
        assert sensor_deadline() == default_sensor_grpc_timeout() == int(of_sensors)
