"""Why nothing is compacted is told by `freshness_within_slo`, and the check fails when the SLO is broken meanwhile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dagster import AssetCheckEvaluation

from hudi_assets.dagster import looks, unseen
from hudi_assets.engine import Conflict, HudiTable
from tests.dagster.conftest import Platform
from tests.dagster.test_looks import SLO, Clock, clock, hang, live, write
from tests.dagster.ticking import Sensor

__all__ = ["clock"]

PARTIAL = "org.apache.hudi.common.model.PartialUpdateAvroPayload"


@pytest.fixture
def sensor(quick: Platform) -> Sensor:
    return Sensor(quick)


@pytest.fixture(autouse=True)
def new_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unseen, "_seen", {})


def told(sensor: Sensor) -> AssetCheckEvaluation:
    found = sensor.evaluation(SLO)
    assert found is not None
    return found


def not_merged_here(path: Path) -> None:
    """As of a writer with another payload: a plan is possible, and is executed by Hudi alone."""
    properties = path / ".hoodie" / "hoodie.properties"
    kept = [line for line in properties.read_text().splitlines() if "payload.class" not in line]
    properties.write_text("\n".join([*kept, f"hoodie.compaction.payload.class={PARTIAL}"]) + "\n")


def test_what_no_compaction_would_merge_is_told_before_and_after_the_slo_is_broken(sensor: Sensor) -> None:
    table = live(sensor.platform)
    write(table, 3, minutes_ago=10)
    sensor.tick()
    assert (told(sensor).passed, told(sensor).description) == (True, None)
    not_merged_here(sensor.platform.path)
    sensor.tick()  # at once, not an hour later
    assert told(sensor).passed
    assert "no compaction is planned: " in str(told(sensor).description)
    assert "PartialUpdateAvroPayload" in str(told(sensor).description)
    assert SLO not in {event.check_name for event in sensor.tick() if isinstance(event, AssetCheckEvaluation)}
    sensor.platform.attributes = {**sensor.platform.attributes, "compact_every": "1m", "freshness_slo": "9m"}
    sensor.tick()
    assert not told(sensor).passed
    words = str(told(sensor).description)
    assert "behind the clock, allowed are 9 min; no compaction is planned: " in words
    assert "PartialUpdateAvroPayload" in words


def test_a_conflict_that_keeps_from_planning_is_told(sensor: Sensor, monkeypatch: pytest.MonkeyPatch) -> None:
    live(sensor.platform)

    def refuse(_: HudiTable) -> None:
        raise Conflict("somebody plans")

    monkeypatch.setattr(HudiTable, "look", refuse)
    sensor.tick()
    assert told(sensor).passed
    assert "no compaction is planned: somebody plans" in str(told(sensor).description)


def test_an_slo_that_is_broken_is_told_with_what_the_sensor_waits_for(sensor: Sensor) -> None:
    table = live(sensor.platform)
    write(table, 3, minutes_ago=70)
    sensor.tick()
    assert "allowed are 1 h; asks for a run: first compaction, up to " in str(told(sensor).description)


def test_a_write_that_hangs_is_named(sensor: Sensor) -> None:
    live(sensor.platform)
    hanging = hang(sensor.platform.path, minutes_ago=70)
    sensor.tick()
    assert f"allowed are 1 h; deltacommit {hanging.name.split('.')[0]} is inflight" in str(told(sensor).description)


@pytest.mark.parametrize("restarted", [False, True])
def test_looks_that_cannot_be_made_fail_the_check_when_the_clock_passes_the_slo(
    sensor: Sensor, clock: Clock, monkeypatch: pytest.MonkeyPatch, restarted: bool
) -> None:
    live(sensor.platform)
    clock.now = looks.wall_ms()
    sensor.tick()

    def changing(*_: Any) -> None:
        raise Conflict("somebody is changing it")

    if restarted:
        unseen._seen.clear()
    with monkeypatch.context() as patch:
        patch.setattr("hudi_assets.dagster.sensors.see", changing)
        clock.pass_by(50)
        assert sensor.tick() == []
        assert told(sensor).passed
        clock.pass_by(61 if restarted else 11)
        sensor.tick()
        assert "somebody is changing it" in sensor.skip
        assert not told(sensor).passed
        assert "behind the clock, allowed are 1 h, by the last look of " in str(told(sensor).description)
        assert "none was possible since: somebody is changing it" in str(told(sensor).description)
    sensor.tick()
    assert told(sensor).passed


def test_a_clock_of_commits_stands_still_while_nobody_can_look(
    sensor: Sensor, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    sensor.platform.ingest(0, 1)
    sensor.tick()

    def changing(*_: Any) -> None:
        raise Conflict("somebody is changing it")

    monkeypatch.setattr("hudi_assets.dagster.sensors.see", changing)
    for _ in range(2):
        clock.pass_by(60 * 24 * 365)
        assert sensor.tick() == []
    assert told(sensor).passed
