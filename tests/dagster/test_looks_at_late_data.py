"""Where a tick publishes and no run follows: what came late is seen, and what is published is true at any time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from dagster import AssetKey, AssetRecordsFilter, DagsterRunStatus, RunsFilter

from hudi_assets.catalog.places import Found
from hudi_assets.catalog.publication import properties_of
from hudi_assets.catalog.publishing import Form, Names
from hudi_assets.dagster import late
from hudi_assets.dagster.told import PROMISED
from hudi_assets.engine import HudiTable, InvalidInput, iso
from tests.dagster.conftest import FileCatalog, Platform, checks
from tests.dagster.small_source import ms
from tests.dagster.test_looks import Clock
from tests.dagster.ticking import Sensor

LATE = "no_late_records"


class FilePlace:
    """A catalog that is reached without Spark: a file."""

    was_never_used = False
    metastore = "file"
    names = Names("default", "events_ro", "events_rt", Form.SYNCED)

    def __init__(self, file: Path) -> None:
        self.file = file

    def found(self) -> Found | None:
        return Found(json.loads(self.file.read_text()), True) if self.file.exists() else None

    def publish(self, table: HudiTable) -> dict[str, str]:
        found = properties_of(table.publication())
        self.file.write_text(json.dumps(found))
        return found


class PlacedCatalog(FileCatalog):
    def place(self, *, ro: str, rt: str) -> Any:
        return FilePlace(Path(self.file))

    def publish(self, spark: Any, table: HudiTable, freshness: Any = None, *, ro: str, rt: str) -> dict[str, str]:
        return FilePlace(Path(self.file)).publish(table)


@pytest.fixture
def sensor(quick: Platform) -> Sensor:
    """Of a table whose ticks publish by themselves."""
    quick.catalog = PlacedCatalog(file=str(quick.home / "catalog.json"))
    quick.attributes = {"freshness_slo": "30h", "compact_every": "6h"}
    return Sensor(quick)


def says(sensor: Sensor) -> str:
    """The freshness that readers are told."""
    return str(json.loads((sensor.platform.home / "catalog.json").read_text())["hudi_assets.freshness"])


def late_data(sensor: Sensor) -> None:
    sensor.platform.ingest(0, 1, 2, 3, 4)
    assert checks(sensor.platform.compact())[LATE] is True
    sensor.tick()
    sensor.platform.ingest(5)  # with a record of hour 2


def test_a_tick_that_publishes_a_fall_says_what_came_late_until_it_is_compacted(
    sensor: Sensor, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    late_data(sensor)
    promised = sensor.platform.metadata("freshness")[PROMISED]
    sensor.tick()
    assert "the catalog says so now" in sensor.skip  # no run
    assert says(sensor) == iso(ms(2) - 1)
    for _ in range(2):  # and it stays, though what is published is true again
        found = sensor.evaluation(LATE)
        assert found is not None
        assert not found.passed
        assert "1 late record of commit" in str(found.description)
        assert found.metadata["promised"].value == promised
        sensor.tick()
        assert LATE not in sensor.names()  # the log has it
    clock.pass_by(6)
    sensor.tick()
    assert LATE in sensor.names()
    assert sensor.platform.compact(threshold=iso(ms(17))).success
    sensor.tick()
    assert sensor.check(LATE) is True


def test_log_files_are_not_read_again_at_every_tick(
    sensor: Sensor, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    real = HudiTable.late_records

    def reading(table: HudiTable, at: int) -> Any:
        read.append(at)
        return real(table, at)

    monkeypatch.setattr(HudiTable, "late_records", reading)
    late_data(sensor)
    del read[:]
    sensor.tick()
    sensor.tick()
    assert len(read) == 1
    sensor.platform.ingest(6)
    sensor.tick()
    assert len(read) == 1  # a newer commit changes nothing about it within the pace
    clock.pass_by(6)
    sensor.tick()
    assert len(read) == 2


def test_large_log_files_are_named_and_not_read(sensor: Sensor, monkeypatch: pytest.MonkeyPatch) -> None:
    late_data(sensor)
    monkeypatch.setattr(late, "_MOST_BYTES", 10)
    monkeypatch.setattr(HudiTable, "late_records", lambda *_: pytest.fail("it was read"))
    sensor.tick()
    assert "too large to count" in str(sensor.evaluation(LATE).description)  # type: ignore[union-attr]


def test_what_is_published_is_made_true_while_a_run_is_at_work(sensor: Sensor) -> None:
    late_data(sensor)
    sensor.started({"hudi_assets/table": "events"})
    sensor.tick()
    assert "is at work" in sensor.skip
    assert says(sensor) == iso(ms(2) - 1)
    assert sensor.check(LATE) is False


def test_late_data_is_compacted_at_once_though_its_fall_is_published(sensor: Sensor) -> None:
    late_data(sensor)
    sensor.tick()
    sensor.platform.attributes = {"freshness_slo": "13h", "compact_every": "6h"}
    sensor.tick()
    (request,) = sensor.last.run_requests
    assert request.asset_selection is None
    assert "has fallen back from" in request.tags["hudi_assets/reason"]


@pytest.mark.parametrize("problem", [PermissionError(13, "Permission denied"), ValueError("what is this")])
def test_a_catalog_that_cannot_be_asked_keeps_no_compaction_away(
    sensor: Sensor, monkeypatch: pytest.MonkeyPatch, problem: Exception
) -> None:
    def refuse(_: object) -> str:
        raise problem

    monkeypatch.setattr(FilePlace, "found", refuse)
    sensor.platform.ingest(0, 1)
    sensor.tick()
    assert sensor.last.run_requests
    assert str(problem) in sensor.observed["catalog"]
    assert sensor.check("freshness_within_slo") is True


def test_ingestion_by_its_own_job_is_no_maintenance(sensor: Sensor) -> None:
    sensor.platform.attributes = {"ingest": {"cron": "5 * * * *"}}
    sensor.platform.ingest(0, 1)
    job = sensor.platform.definitions().resolve_job_def("events_ingestion")
    run = sensor.instance.create_run_for_job(job, status=DagsterRunStatus.STARTED, tags=dict(job.tags))
    assert not run.asset_selection
    (found,) = sensor.instance.get_runs(RunsFilter(tags={".dagster/pool/hudi_events": "true"}, statuses=[run.status]))
    assert found.run_id == run.run_id
    sensor.tick()
    assert sensor.last.run_requests


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def test_what_is_published_of_a_table_that_is_refused_follows_it_too(
    sensor: Sensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    late_data(sensor)

    def refuse(_: HudiTable) -> None:
        raise InvalidInput("say who writes")

    monkeypatch.setattr(HudiTable, "look", refuse)
    with pytest.raises(InvalidInput, match="say who writes"):
        sensor.tick()
    assert says(sensor) == iso(ms(2) - 1)


def test_what_is_wrong_with_the_catalog_of_a_refused_table_is_in_the_observation(
    sensor: Sensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: HudiTable) -> None:
        raise InvalidInput("say who writes")

    def broken(_: object) -> None:
        raise ValueError("no catalog today")

    sensor.platform.ingest(0, 1)
    monkeypatch.setattr(HudiTable, "look", refuse)
    monkeypatch.setattr(FilePlace, "found", broken)
    with pytest.raises(InvalidInput, match="say who writes"):
        sensor.tick()
    records = AssetRecordsFilter(asset_key=AssetKey(["events", "freshness"]))
    observed = sensor.instance.fetch_observations(records, limit=1).records[0].asset_observation
    assert observed is not None
    assert "no catalog today" in str(observed.metadata["catalog"].value)
