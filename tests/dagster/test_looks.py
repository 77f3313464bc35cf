"""Every look of the sensor is reported: freshness, lag and checks, without a run, and whatever is stuck."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from dagster import (
    AssetCheckKey,
    AssetCheckSeverity,
    AssetKey,
    AssetMaterialization,
    AssetObservation,
    AssetRecordsFilter,
)

from hudi_assets.dagster import looks
from hudi_assets.engine import Conflict, HudiAssetsError, HudiTable, InvalidInput, iso
from hudi_assets.engine.timeline.instants import format_instant
from tests.dagster.conftest import Platform
from tests.dagster.small_source import ms
from tests.dagster.ticking import Sensor
from tests.tables.local_session import LocalSession

SLO = "freshness_within_slo"
THRESHOLD = "no_pre_threshold_logs"
MINUTE = 60_000


class Clock:
    """The system's clock, as the sensor reads it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = int(datetime.now(UTC).timestamp() * 1000)
        monkeypatch.setattr("hudi_assets.dagster.sensors.wall_ms", lambda: self.now)

    def pass_by(self, minutes: float) -> None:
        self.now += int(minutes * MINUTE)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


@pytest.fixture
def sensor(quick: Platform) -> Sensor:
    return Sensor(quick)


def live(platform: Platform, **attributes: Any) -> HudiTable:
    """A table by the system's clock whose records are of a minute ago, two commits."""
    platform.attributes = {"clock": "system", "data_latency": "5m", "compact_every": "10m", "freshness_slo": "1h"}
    platform.attributes = {**platform.attributes, **attributes}
    schema = pa.schema([("id", pa.int64()), ("event_time", pa.timestamp("us", tz="UTC"))])
    table = HudiTable.create(
        str(platform.path), schema, record_key=["id"], ordering_field="event_time", buckets=1, data_latency="5m"
    )
    for number in range(2):
        write(table, number, minutes_ago=1)
    return table


def write(table: HudiTable, number: int, minutes_ago: float) -> None:
    at = datetime.now(UTC) - timedelta(minutes=minutes_ago)
    session = LocalSession()
    table.upsert(session, session.rows([{"id": number, "event_time": at}], table.schema()))


def hang(path: Path, minutes_ago: float) -> Path:
    """Another writer's write that was begun and does not end."""
    instant = format_instant(int((datetime.now(UTC) - timedelta(minutes=minutes_ago)).timestamp() * 1000), "UTC")
    for state in (".requested", ".inflight"):
        file = path / ".hoodie" / f"{instant}.deltacommit{state}"
        file.write_text("")
    return file


# -- what a tick reports ------------------------------------------------------------------------------


def test_a_tick_reports_freshness_lag_and_what_remains(sensor: Sensor) -> None:
    sensor.platform.ingest(0, 1)
    sensor.tick()
    assert sensor.names() == ["freshness", SLO, THRESHOLD]
    stats = sensor.platform.table().stats()
    found = sensor.observed
    assert found["freshness"] == iso(stats.freshness.freshness)
    assert found["lag_seconds"] == (ms(6) - (stats.freshness.freshness or 0)) / 1000
    assert found["min_event_time_epoch_seconds"] == (stats.min_event_time or 0) / 1000
    assert found["remaining_log_files"] == stats.remaining_log_files > 0
    assert found["remaining_bytes"] == stats.remaining_bytes > 0
    assert found["remaining_file_slices"] == stats.remaining_file_slices > 0
    assert found["threshold"] == "none"
    assert found["pending_plan"] == "none"
    assert sensor.check(SLO) is True
    assert sensor.last.run_requests  # and asks for the first compaction beside it


def test_a_compaction_is_seen_at_the_next_tick(sensor: Sensor) -> None:
    sensor.platform.ingest(0, 1)
    sensor.tick()
    before = sensor.observed
    sensor.platform.compact()
    sensor.tick()
    assert sensor.observed["threshold"] == iso(ms(5))
    assert sensor.observed["lag_seconds"] < before["lag_seconds"]
    assert sensor.check(THRESHOLD) is True


def test_what_stands_still_is_reported_at_a_pace(sensor: Sensor, clock: Clock) -> None:
    sensor.platform.ingest(0, 1)
    sensor.platform.compact()
    clock.now = looks.wall_ms()
    sensor.tick()
    assert sensor.names() == ["freshness"]  # the run has just evaluated the checks
    sensor.tick()
    assert sensor.names() == []
    clock.pass_by(4.9)
    assert sensor.tick() == []
    clock.pass_by(0.2)
    sensor.tick()
    assert sensor.names() == ["freshness"]
    clock.pass_by(61)
    sensor.tick()
    assert sensor.names() == ["freshness", SLO, THRESHOLD]


def test_the_pace_is_a_field_of_the_block(sensor: Sensor, clock: Clock) -> None:
    sensor.platform.attributes = {"sensor": {"report_every": "1h"}}
    sensor.platform.ingest(0, 1)
    sensor.tick()
    clock.pass_by(59)
    sensor.tick()
    assert sensor.names() == []
    clock.pass_by(2)
    sensor.tick()
    assert "freshness" in sensor.names()


def test_a_replayed_stream_is_reported_by_its_own_clock(sensor: Sensor) -> None:
    sensor.platform.ingest(0, 1)
    sensor.tick()
    sensor.platform.ingest(2)  # three hours later by the table's clock, at once by the wall's
    sensor.tick()
    assert sensor.names() == ["freshness"]


def test_late_records_are_a_warning_until_the_next_compaction(sensor: Sensor) -> None:
    sensor.platform.attributes = {"freshness_slo": "30h"}
    sensor.platform.ingest(0, 1, 2, 3, 4)
    sensor.platform.compact()
    sensor.tick()
    sensor.platform.ingest(5)  # with a record of hour 2
    sensor.tick()
    assert sensor.observed["freshness"] == iso(ms(2) - 1)
    found = sensor.evaluation(THRESHOLD)
    assert found is not None
    assert not found.passed
    assert found.severity is AssetCheckSeverity.WARN
    assert str(iso(ms(2))) in str(found.description)
    sensor.platform.compact()
    sensor.tick()
    assert sensor.check(THRESHOLD) is True


def test_what_a_cursor_of_somebody_else_says_does_no_harm(sensor: Sensor) -> None:
    sensor.platform.ingest(0, 1)
    for cursor in ("", "17", "[]", '{"x": 1}', "not json"):
        sensor.cursor = cursor
        sensor.tick()
        assert "freshness" in sensor.names()


# -- whatever is stuck --------------------------------------------------------------------------------


def test_a_write_that_hangs_breaks_the_slo_and_one_that_ends_mends_it(sensor: Sensor) -> None:
    table = live(sensor.platform)
    hanging = hang(sensor.platform.path, minutes_ago=50)
    sensor.tick()
    assert sensor.check(SLO) is True
    assert 3000 < sensor.observed["lag_seconds"] < 3600
    hanging.unlink()
    Path(str(hanging).replace(".inflight", ".requested")).unlink()
    hanging = hang(sensor.platform.path, minutes_ago=70)
    sensor.tick()
    assert sensor.check(SLO) is False
    assert sensor.observed["lag_seconds"] > 3600
    found = sensor.evaluation(SLO)
    assert found is not None
    assert "behind the clock" in str(found.description)
    assert found.severity is AssetCheckSeverity.ERROR  # what the owner asked for does not hold
    hanging.unlink()
    Path(str(hanging).replace(".inflight", ".requested")).unlink()
    write(table, 3, minutes_ago=1)
    sensor.tick()
    assert sensor.check(SLO) is True


@pytest.mark.parametrize("stuck", ["clustering", "runs"])
def test_what_holds_compactions_back_does_not_hide_that_the_slo_breaks(sensor: Sensor, stuck: str) -> None:
    """A clustering of others that is pending, or Spark that is broken: the records stay in the log files."""
    table = live(sensor.platform)
    write(table, 3, minutes_ago=70)
    if stuck == "clustering":
        instant = format_instant(int(datetime.now(UTC).timestamp() * 1000), "UTC")
        for state in ("requested", "inflight"):
            (sensor.platform.path / ".hoodie" / f"{instant}.replacecommit.{state}").write_text("")
        sensor.tick()
        assert instant in sensor.skip
    else:
        for _ in range(3):
            sensor.tick()
            sensor.ended(sensor.last.run_requests[0], well=False)
        sensor.tick()
        assert "3 runs in a row came to nothing" in sensor.skip
    assert sensor.check(SLO) is False
    assert "behind the clock, allowed are 1 h" in str(sensor.evaluation(SLO).description)  # type: ignore[union-attr]


def test_a_run_at_work_keeps_no_table_from_being_seen(sensor: Sensor) -> None:
    live(sensor.platform)
    sensor.tick()
    sensor.started({"hudi_assets/table": "events"})
    hang(sensor.platform.path, minutes_ago=70)
    sensor.tick()
    assert "is at work" in sensor.skip
    assert sensor.check(SLO) is False
    assert THRESHOLD not in sensor.names()  # the run looks at it itself


@pytest.mark.parametrize("problem", [Conflict("somebody plans"), InvalidInput("say who writes")])
def test_what_keeps_from_planning_keeps_from_no_report(
    sensor: Sensor, monkeypatch: pytest.MonkeyPatch, problem: HudiAssetsError
) -> None:
    live(sensor.platform)
    hang(sensor.platform.path, minutes_ago=70)

    def refuse(_: HudiTable) -> None:
        raise problem

    monkeypatch.setattr(HudiTable, "look", refuse)
    if isinstance(problem, Conflict):
        sensor.tick()
        assert "somebody plans" in sensor.skip
    else:
        with pytest.raises(InvalidInput, match="say who writes"):
            sensor.tick()
    found = sensor.evaluation(SLO)
    assert found is not None
    assert not found.passed
    assert "behind the clock" in str(found.description)


def test_a_table_that_is_refused_does_not_look_well_and_its_numbers_go_on(
    sensor: Sensor, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = live(sensor.platform)
    instance, key = sensor.instance, AssetKey(["events", "freshness"])

    def refuse(_: HudiTable) -> None:
        raise InvalidInput("say who writes")

    def observed() -> list[Any]:
        found = instance.fetch_observations(AssetRecordsFilter(asset_key=key), limit=10).records
        return [one.asset_observation.metadata["remaining_log_files"].value for one in found if one.asset_observation]

    with monkeypatch.context() as patch:
        patch.setattr(HudiTable, "look", refuse)
        for _ in range(3):
            with pytest.raises(InvalidInput, match="say who writes"):
                sensor.tick()
        assert sensor.check(SLO) is False
        assert "it cannot be compacted: say who writes" in str(sensor.evaluation(SLO).description)  # type: ignore[union-attr]
        history = instance.event_log_storage.get_asset_check_execution_history(AssetCheckKey(key, SLO), limit=10)
        assert len(history) == 1
        assert len(observed()) == 1
        write(table, 4, minutes_ago=1)
        clock.pass_by(6)
        with pytest.raises(InvalidInput, match="say who writes"):
            sensor.tick()
        assert observed() == [3, 2]
    sensor.tick()
    assert sensor.check(SLO) is True


def test_a_table_of_others_without_a_commit_breaks_the_slo_and_is_observed(sensor: Sensor) -> None:
    """Nothing states its columns yet, so nobody knows what a view of it should name."""
    live(sensor.platform, source=None, external=True, writers="stopped")
    shutil.rmtree(sensor.platform.path)
    schema = pa.schema([("id", pa.int64()), ("event_time", pa.timestamp("us", tz="UTC"))])
    HudiTable.create(str(sensor.platform.path), schema, record_key=["id"], ordering_field="event_time", buckets=1)
    properties = sensor.platform.path / ".hoodie" / "hoodie.properties"
    lines = properties.read_text().splitlines()
    properties.write_text("\n".join(line for line in lines if "create.schema" not in line) + "\n")
    table = HudiTable.open(str(sensor.platform.path))
    assert table.view_digest() == table.look().view_digest == ""
    sensor.tick()
    assert sensor.observed["remaining_log_files"] == 0
    assert sensor.check(SLO) is not None


def test_a_table_that_cannot_be_read_breaks_the_slo_once(sensor: Sensor, clock: Clock) -> None:
    live(sensor.platform)
    sensor.tick()
    (sensor.platform.path / ".hoodie" / "hoodie.properties").write_text("hoodie.table.name=events\n")
    for _ in range(3):
        with pytest.raises(HudiAssetsError):
            sensor.tick()
    assert sensor.check(SLO) is False
    key = sensor.evaluation(SLO).asset_check_key  # type: ignore[union-attr]
    history = sensor.instance.event_log_storage.get_asset_check_execution_history(key, limit=10)
    assert len(history) == 2
    clock.now = looks.wall_ms()
    clock.pass_by(6)
    with pytest.raises(HudiAssetsError):
        sensor.tick()
    assert len(sensor.instance.event_log_storage.get_asset_check_execution_history(key, limit=10)) == 3


# -- paths and latencies ------------------------------------------------------------------------------


@pytest.mark.parametrize(("made", "says"), [(None, "no such folder"), ("folder", "no Hudi table")])
def test_a_mistyped_path_of_others_fails_the_tick(sensor: Sensor, tmp_path: Path, made: str | None, says: str) -> None:
    live(sensor.platform)
    sensor.platform.attributes = {"source": None, "external": True, "path": "warehouse/evnts", "writers": "stopped"}
    if made:
        (tmp_path / "warehouse" / "evnts").mkdir()
    with pytest.raises(InvalidInput, match=says) as error:
        sensor.tick()
    assert "Correct `path` in the block of the table events" in str(error.value)
    assert str(tmp_path / "warehouse" / "evnts") in str(error.value)
    assert sensor.check(SLO) is False


def test_a_table_of_ours_is_not_there_yet_and_later_it_is_gone(sensor: Sensor) -> None:
    sensor.tick()
    assert "no table events yet" in sensor.skip
    sensor.platform.ingest(0)
    sensor.tick()
    shutil.rmtree(sensor.platform.path)
    with pytest.raises(InvalidInput, match="was written before, and is gone") as error:
        sensor.tick()
    assert "wipe the materializations of events/mor_table" in str(error.value)
    sensor.instance.wipe_assets([AssetKey(["events", "mor_table"])])
    sensor.tick()
    assert "no table events yet" in sensor.skip


def test_a_folder_of_something_else_is_no_table_of_ours(sensor: Sensor) -> None:
    sensor.platform.path.mkdir(parents=True)
    sensor.tick()
    assert "yet" in sensor.skip
    (sensor.platform.path / "notes.txt").write_text("mine")
    with pytest.raises(InvalidInput, match="holds something else"):
        sensor.tick()


def test_a_table_without_a_latency_fails_the_tick_and_says_the_cure(sensor: Sensor) -> None:
    live(sensor.platform)
    properties = sensor.platform.path / ".hoodie" / "hoodie.properties"
    lines = properties.read_text().splitlines()
    properties.write_text("\n".join(line for line in lines if "data.latency" not in line) + "\n")
    sensor.platform.attributes = {**sensor.platform.attributes, "data_latency": None}
    with pytest.raises(InvalidInput, match="no data latency") as error:
        sensor.tick()
    assert "`data_latency`, as `2h`, or `auto`" in str(error.value)
    assert sensor.check(SLO) is False  # nor is there a freshness
    sensor.platform.attributes = {**sensor.platform.attributes, "data_latency": "auto"}
    sensor.tick()  # may be learned yet, or is


# -- tables of others ---------------------------------------------------------------------------------


def test_a_table_of_others_is_observed_when_it_has_a_new_commit(sensor: Sensor, clock: Clock) -> None:
    table = live(sensor.platform, source=None, external=True, writers="stopped")

    def versions() -> list[str]:
        found = [e for e in sensor.reported if isinstance(e, AssetObservation) and e.asset_key.path[-1] == "mor_table"]
        return [event.tags["dagster/data_version"] for event in found if event.tags]

    sensor.tick()
    assert versions() == [table.stats().last_commit]
    record = sensor.instance.get_latest_data_version_record(AssetKey(["events", "mor_table"]))
    assert record is not None
    sensor.tick()
    assert versions() == []
    write(table, 7, minutes_ago=1)
    clock.pass_by(6)
    sensor.tick()
    assert versions() == [table.stats().last_commit]


# -- events of earlier days ---------------------------------------------------------------------------


def test_events_of_earlier_days_are_read(sensor: Sensor) -> None:
    sensor.platform.ingest(0, 1)
    sensor.platform.compact()
    key = AssetKey(["events", "freshness"])
    old = {"freshness": iso(ms(9)), "freshness_ms": ms(9), "promised_ms": ms(9), "instant": "20240301000000000"}
    sensor.instance.report_runless_asset_event(AssetMaterialization(key, metadata=old))
    sensor.tick()
    (request,) = sensor.last.run_requests
    assert request.asset_selection == [key]
    assert "fallen back" in request.tags["hudi_assets/reason"]


def test_the_cursor_is_small(sensor: Sensor) -> None:
    sensor.platform.ingest(0, 1)
    sensor.tick()
    assert len(sensor.cursor or "") < 400
    assert json.loads(sensor.cursor or "")["freshness"]
