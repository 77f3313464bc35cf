"""What runs leave behind, as the sensor's looks take it: their checks, and what they achieved."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from dagster import AssetCheckEvaluation, AssetCheckSeverity, AssetKey, DagsterEventType

from hudi_assets.dagster import housekeeping
from hudi_assets.dagster.assets import partitions_of
from hudi_assets.dagster.attempts import QUICK_ATTEMPTS
from hudi_assets.engine import Conflict, CorruptTable, HudiTable
from tests.dagster.conftest import Platform
from tests.dagster.small_source import SmallSource, ms
from tests.dagster.ticking import Sensor

COMPACTION = ("compaction_plan", "ro_snapshot", "freshness", "housekeeping")


@pytest.fixture
def sensor(quick: Platform) -> Sensor:
    return Sensor(quick)


def asked(sensor: Sensor) -> Any:
    sensor.tick()
    return next(iter(sensor.last.run_requests), None)


def test_compactions_that_succeed_are_asked_for_again_whatever_fails_beside_them(
    sensor: Sensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: HudiTable) -> None:
        raise CorruptTable("no clean today")

    monkeypatch.setattr(HudiTable, "clean", broken)
    for window in range(QUICK_ATTEMPTS + 1):
        sensor.platform.ingest(2 * window, 2 * window + 1)
        request = asked(sensor)
        assert request is not None, sensor.skip
        assert not sensor.platform.run(*COMPACTION, tags=request.tags).success


def test_failures_of_one_kind_keep_no_run_of_another_away(sensor: Sensor) -> None:
    sensor.platform.ingest(0, 1)
    request = asked(sensor)
    of_another = request.tags["hudi_assets/state"].replace(":compact:", ":freshness:")
    for _ in range(QUICK_ATTEMPTS):
        sensor.started({**request.tags, "hudi_assets/state": of_another})
        sensor.ended(replace_state(request, of_another), well=False)
    for run in sensor.instance.get_runs():
        if not run.is_finished:
            sensor.instance.delete_run(run.run_id)
    assert asked(sensor) is not None


def replace_state(request: Any, state: str) -> Any:
    return request.with_replaced_attrs(tags={**request.tags, "hudi_assets/state": state})


def test_what_a_run_called_an_error_stays_one_while_the_next_run_is_created(sensor: Sensor) -> None:
    sensor.platform.attributes = {"freshness_slo": "30h"}
    sensor.platform.ingest(0, 1, 2, 3, 4)
    sensor.platform.compact()
    sensor.platform.ingest(5)  # with a record of hour 2
    key = AssetKey(["events", "ro_snapshot"])
    error = AssetCheckEvaluation(
        asset_key=key, check_name="no_pre_threshold_logs", passed=False, severity=AssetCheckSeverity.ERROR
    )
    sensor.instance.report_runless_asset_event(error)
    definitions = sensor.platform.definitions()
    sensor.instance.create_run_for_job(definitions.resolve_job_def("events_compaction"))
    record = sensor.instance.get_latest_asset_check_evaluation_record(error.asset_check_key)
    assert record is not None
    assert not isinstance(record.evaluation, AssetCheckEvaluation)  # planned
    for run in sensor.instance.get_runs():
        if not run.is_finished:
            sensor.instance.report_run_canceled(run)
    sensor.tick()
    found = sensor.evaluation("no_pre_threshold_logs")
    assert found is not None
    assert found.severity is AssetCheckSeverity.ERROR


def test_a_source_whose_first_window_has_not_ended_has_no_partition_yet() -> None:
    source = SmallSource()
    start = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    name = f"{start:%Y-%m-%dT%H:%M:%SZ}"
    at = round(start.timestamp() * 1000)
    source.batches = [replace(source.batches[0], id=name, start_ms=at, end_ms=at + 3_600_000)]
    assert partitions_of(source).get_partition_keys() == []
    assert start + timedelta(hours=1) > datetime.now(UTC)
    wrong = SmallSource()
    wrong.batches = [replace(batch, start_ms=batch.start_ms + ms(1) - ms(0)) for batch in wrong.batches]
    with pytest.raises(ValueError, match="starts of their windows"):
        partitions_of(wrong)


def test_a_clean_that_is_put_off_is_a_warning_of_the_run(quick: Platform, monkeypatch: pytest.MonkeyPatch) -> None:
    def held(*_: object) -> None:
        raise Conflict("the catalog does not answer")

    monkeypatch.setattr(housekeeping, "publish_and_clean", held)
    quick.ingest(0, 1)
    result = quick.compact()
    assert result.success
    logs = quick.instance.all_logs(result.run_id)
    warnings = [entry.user_message for entry in logs if entry.level == 30 and entry.dagster_event is None]
    assert any("clean was put off: the catalog does not answer" in words for words in warnings), warnings
    assert quick.instance.all_logs(result.run_id, of_type=DagsterEventType.ASSET_MATERIALIZATION)
