"""The look of a tick that Dagster gave up goes on in its thread, and a later tick takes what it found."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from dagster import (
    AssetCheckEvaluation,
    AssetObservation,
    DagsterInstance,
    RunRequest,
    SensorResult,
    build_sensor_context,
)
from dagster.components import build_defs_for_component

from hudi_assets.components import HudiTableComponent
from hudi_assets.dagster import aside as asides
from hudi_assets.dagster import round as rounds
from hudi_assets.dagster import sensors
from hudi_assets.dagster.round import RoundCursor
from tests.dagster.test_looks_beside_ticks import FAILS, SLO, a_run
from tests.dagster.test_many_tables import DEFAULTS, Ticks, home, instance

__all__ = ["home", "instance"]

SEEN = AssetObservation(SLO.asset_key)


class SlowFirst:
    """The first look at t0 is at work until `end`, in whatever thread; by a clock that stands else."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, found: SensorResult) -> None:
        self.now, self.looked, self.found = 0.0, list[str](), found
        self.problem: Exception | None = None
        self.begun, self._goes_on = threading.Event(), threading.Event()
        monkeypatch.setattr(asides, "_memories", {})
        monkeypatch.setattr("time.monotonic", lambda: self.now)
        for module in (rounds, sensors):
            monkeypatch.setattr(module, "evaluate_table", self._look)

    def _look(self, _: Any, table: Any) -> SensorResult:
        self.looked.append(table.name)
        if self.looked.count("t0") > 1 or table.name != "t0":
            return SensorResult(cursor=f"{table.name} again", skip_reason="seen again")
        self.begun.set()
        assert self._goes_on.wait(60)
        if self.problem is not None:
            raise self.problem
        return self.found

    def lost(self, tick: Callable[[], Any]) -> threading.Thread:
        """A tick that the daemon gives up after a minute; its thread goes on."""

        def work() -> None:
            with contextlib.suppress(Exception):  # nobody hears of it
                tick()

        thread = threading.Thread(target=work)
        thread.start()
        assert self.begun.wait(60)
        self.now += 61
        return thread

    def end(self, thread: threading.Thread) -> None:
        self._goes_on.set()
        thread.join(60)
        assert not thread.is_alive()


def asks() -> SensorResult:
    request = RunRequest(run_key="t0", tags={"hudi_assets/table": "t0"})
    return SensorResult(run_requests=[request], asset_events=[SEEN, FAILS], cursor="t0 seen")


def one_table(home: Path, instance: DagsterInstance) -> Callable[[], Any]:
    definitions = build_defs_for_component(HudiTableComponent(name="t0", path=str(home / "t0"), **DEFAULTS))
    (sensor,) = definitions.sensors or []

    def tick() -> Any:
        context = build_sensor_context(
            instance=instance,
            definitions=definitions,
            resources={key: (definitions.resources or {})[key] for key in ("t0_table", "hudi_catalog")},
            last_sensor_start_time=1.0,
        )
        return sensor.evaluate_tick(context)

    return tick


def last_check(instance: DagsterInstance) -> AssetCheckEvaluation | None:
    record = instance.get_latest_asset_check_evaluation_record(SLO)
    found = None if record is None else record.evaluation
    return found if isinstance(found, AssetCheckEvaluation) else None


def observed(instance: DagsterInstance) -> int:
    return len(instance.fetch_observations(SLO.asset_key, limit=10).records)


def test_the_first_look_of_a_large_table_is_made_once(
    home: Path, instance: DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a restart of the code server, which knows nothing yet of how long it takes."""
    slow, tick = SlowFirst(monkeypatch, asks()), one_table(home, instance)
    lost = slow.lost(tick)
    assert "The look has been at work for 61 s" in str(tick().skip_message)
    slow.now += 30
    assert observed(instance) == 0
    slow.end(lost)
    assert observed(instance) == 1  # by itself: it may be long until a tick comes
    assert last_check(instance) is not None
    found = tick()
    assert [one.run_key for one in found.run_requests] == ["t0"]
    assert (found.cursor, list(found.asset_events)) == ("t0 seen", [])
    assert slow.looked == ["t0"]
    assert asides._memories["t0_event_time_trigger"].is_slow("t0")  # the next one is made beside the ticks


def test_a_tick_that_comes_after_its_end_takes_it_too(
    home: Path, instance: DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, tick = SlowFirst(monkeypatch, asks()), one_table(home, instance)
    slow.end(slow.lost(tick))
    assert [one.run_key for one in tick().run_requests] == ["t0"]
    assert slow.looked == ["t0"]


def test_a_lost_look_that_fails_is_told_by_a_later_tick(
    home: Path, instance: DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, tick = SlowFirst(monkeypatch, asks()), one_table(home, instance)
    slow.problem = ValueError("damaged")
    lost = slow.lost(tick)
    tick()
    slow.end(lost)
    with pytest.raises(ValueError, match="damaged"):
        tick()
    check = last_check(instance)
    assert check is not None
    assert "damaged" in str(check.description)


def test_a_lost_look_that_a_run_overtook_reports_no_check(
    home: Path, instance: DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks = Ticks(home, instance)
    slow = SlowFirst(monkeypatch, asks())
    lost = slow.lost(ticks.evaluated)
    instance.report_run_canceled(a_run(ticks))
    slow.end(lost)
    assert observed(instance) == 1
    assert last_check(instance) is None
    found: Any = ticks.tick()
    assert not found.run_requests
    assert RoundCursor.of(ticks.cursor).tables["t0"] == "t0 seen"


def test_of_many_tables_the_others_are_looked_at_meanwhile(
    home: Path, instance: DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks = Ticks(home, instance)
    slow = SlowFirst(monkeypatch, asks())
    lost = slow.lost(ticks.evaluated)
    found: Any = ticks.tick()
    assert "at work, and reported by a later tick: t0 for 61 s" in str(found.skip_message)
    slow.end(lost)
    found = ticks.tick()
    assert [one.run_key for one in found.run_requests] == ["t0"]
    assert slow.looked.count("t0") == 1
    assert slow.looked.count("t1") == 2


def test_what_a_test_in_the_ui_looks_at_for_too_long_is_not_kept(
    home: Path, instance: DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dagster threw that tick away, and nobody reports it."""
    ticks = Ticks(home, instance)
    slow = SlowFirst(monkeypatch, asks())
    slow.end(slow.lost(lambda: ticks.evaluated(started=None)))
    assert observed(instance) == 0
    ticks.tick()
    assert slow.looked.count("t0") == 2
