"""Runs that come to nothing are asked for less and less, whatever writers do; those started by hand are seen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dagster import AssetKey, DagsterRunStatus
from hypothesis import given
from hypothesis import strategies as st

from hudi_assets.dagster import looks
from hudi_assets.dagster.assets import HOUR_MS
from hudi_assets.dagster.attempts import QUICK_ATTEMPTS, Attempt, pause
from hudi_assets.dagster.checks import published_freshness
from tests.dagster.conftest import Platform
from tests.dagster.ticking import Sensor

_MINUTE = 60_000


@pytest.fixture
def sensor(quick: Platform) -> Sensor:
    return Sensor(quick)


# -- the decision -------------------------------------------------------------------------------------

# Minutes until the next tick, and what becomes of the run that it asks for: how many minutes it takes, and its end.
_TICKS = st.lists(st.tuples(st.integers(1, 90), st.integers(0, 120), st.sampled_from([False, False, False, True])))


@given(_TICKS)
def test_at_most_three_in_an_hour_and_never_longer_than_an_hour_between_two(ticks: list[tuple[int, int, bool]]) -> None:
    now, done, started = 0, [], []  # type: ignore[var-annotated]
    for wait, lasts, achieved in ticks:
        now += wait * _MINUTE
        resting = pause(done, now)
        if resting is None:
            started.append((now, achieved))
            done.insert(0, Attempt(now, achieved))
            now += lasts * _MINUTE
        else:
            assert resting.in_vain >= QUICK_ATTEMPTS
            assert now < resting.until_ms <= done[0].at_ms + HOUR_MS  # it does not rest for ever
    in_vain: list[int] = []  # when runs were asked for, since the last that did what it was asked for
    for at, achieved in started:
        within = [earlier for earlier in in_vain if at - earlier < HOUR_MS]
        assert len(within) < QUICK_ATTEMPTS
        assert len(in_vain) < QUICK_ATTEMPTS or not within
        in_vain = [] if achieved else [*in_vain, at]


def test_one_that_did_its_work_ends_the_rest() -> None:
    failed = [Attempt(n * _MINUTE, False) for n in (3, 2, 1)]
    assert pause(failed, 4 * _MINUTE) is not None
    assert pause(failed, 63 * _MINUTE) is None
    assert pause([Attempt(4 * _MINUTE, True), *failed], 5 * _MINUTE) is None
    assert pause(failed[:2], 4 * _MINUTE) is None


# -- ticks --------------------------------------------------------------------------------------------


def asked(sensor: Sensor) -> Any:
    sensor.tick()
    return next(iter(sensor.last.run_requests), None)


def held_back(sensor: Sensor) -> str:
    """What `freshness_within_slo` says of runs, as the event log has it."""
    evaluation = sensor.evaluation("freshness_within_slo")
    assert evaluation is not None
    said = evaluation.metadata.get("runs")
    return "" if said is None else str(said.value)


def test_commits_meanwhile_do_not_make_failures_forgotten(sensor: Sensor, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = []
    for window in range(6):
        sensor.platform.ingest(window)
        request = asked(sensor)
        if request is not None:
            keys.append(request.run_key)
            sensor.ended(request, well=False)
    assert len(keys) == len(set(keys)) == QUICK_ATTEMPTS
    assert "3 runs in a row came to nothing, the next one is asked for at" in sensor.skip
    assert "3 runs in a row" in sensor.observed["runs"]
    assert "3 runs in a row came to nothing" in held_back(sensor)
    later = looks.wall_ms() + HOUR_MS + _MINUTE
    with monkeypatch.context() as patch:
        patch.setattr("hudi_assets.dagster.sensors.wall_ms", lambda: later)
        again = asked(sensor)
    assert again is not None
    sensor.ended(again, well=True)  # and left the table as it was
    sensor.platform.ingest(6)
    assert asked(sensor) is not None
    assert held_back(sensor) == ""


def test_a_check_that_passes_says_that_runs_are_held_back(sensor: Sensor) -> None:
    sensor.platform.attributes = {"freshness_slo": "1000d"}
    sensor.platform.ingest(0, 1)
    for _ in range(QUICK_ATTEMPTS):
        sensor.ended(asked(sensor), well=False)
    for _ in range(2):
        assert asked(sensor) is None
        assert sensor.check("freshness_within_slo")
        assert "3 runs in a row came to nothing" in held_back(sensor)


def test_a_run_by_hand_that_succeeds_ends_the_rest(sensor: Sensor) -> None:
    sensor.platform.ingest(0, 1)
    for _ in range(QUICK_ATTEMPTS):
        sensor.ended(asked(sensor), well=False)
    assert asked(sensor) is None
    assert sensor.platform.compact().success  # as the UI does it: without the table's tag
    sensor.platform.ingest(2, 3, 4)
    assert asked(sensor) is not None


def test_runs_that_succeed_and_change_nothing_come_to_nothing(sensor: Sensor) -> None:
    sensor.platform.ingest(0, 1)
    for _ in range(QUICK_ATTEMPTS):
        sensor.ended(asked(sensor), well=True)
    assert asked(sensor) is None
    sensor.platform.ingest(2)
    assert asked(sensor) is not None


# -- runs by hand -------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [DagsterRunStatus.NOT_STARTED, DagsterRunStatus.STARTED])
@pytest.mark.parametrize("assets", [("ro_snapshot", "freshness"), ("compaction_plan",)])
def test_a_run_by_hand_is_seen(sensor: Sensor, assets: tuple[str, ...], status: DagsterRunStatus) -> None:
    sensor.platform.ingest(0, 1)
    run = sensor.started({}, *assets, status=status)
    assert asked(sensor) is None
    assert f"Run {run[:8]} is at work" in sensor.skip


def test_ingestion_does_not_keep_the_sensor_from_compacting(sensor: Sensor) -> None:
    sensor.platform.ingest(0, 1)
    sensor.started({}, "mor_table")
    assert asked(sensor) is not None


def test_a_plan_by_hand_is_executed_at_the_next_tick(sensor: Sensor) -> None:
    sensor.platform.ingest(0, 1)
    assert sensor.platform.run("compaction_plan").success
    request = asked(sensor)
    assert "is planned and was not finished" in request.tags["hudi_assets/reason"]
    (planned,) = [s for s in (sensor.platform.definitions().assets or []) if "compaction_plan" in str(s.keys)]  # type: ignore[union-attr]
    assert "which the sensor's next tick has executed" in next(iter(planned.descriptions_by_key.values()))  # type: ignore[union-attr]


# -- what is published --------------------------------------------------------------------------------


def test_a_freshness_that_stands_still_on_a_quiet_table_is_published_again(
    sensor: Sensor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.dagster.test_looks import live, write

    table = live(sensor.platform, compact_every="10m", freshness_slo="1h")
    write(table, 9, minutes_ago=70)
    assert sensor.platform.run("compaction_plan", "ro_snapshot", "freshness").success
    key = AssetKey(["events", "freshness"])
    assert published_freshness(sensor.instance, key) is not None
    assert asked(sensor) is None
    event = sensor.instance.get_latest_materialization_event(key)
    assert event is not None
    monkeypatch.setattr("hudi_assets.dagster.sensors.published_freshness", lambda *_: looks.wall_ms() - 50 * _MINUTE)
    assert asked(sensor) is None
    monkeypatch.setattr("hudi_assets.dagster.sensors.published_freshness", lambda *_: looks.wall_ms() - 55 * _MINUTE)
    request = asked(sensor)
    assert request.asset_selection == [key]
    assert "behind the clock, the table's own" in request.tags["hudi_assets/reason"]
