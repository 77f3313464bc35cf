"""Late data, the learned latency, and when the sensor finds a compaction due. Without Spark."""

from __future__ import annotations

import base64
import io
from typing import Any

import pyarrow as pa
import pytest
from dagster import AssetKey, ExecuteInProcessResult, RunRequest, SkipReason
from PIL import Image

from hudi_assets.catalog.publication import properties_of
from hudi_assets.dagster.checks import find_late
from hudi_assets.dagster.told import PROMISED, highest_promise
from hudi_assets.engine.event_time.lateness import LateLog
from hudi_assets.engine.model import Freshness, Publication
from hudi_assets.engine.model.units import iso
from hudi_assets.reporting import pictures
from tests.dagster.conftest import RASTERIZED, Platform, checks
from tests.dagster.small_source import ms


def _found(result: ExecuteInProcessResult, name: str) -> str:
    (check,) = (one for one in result.get_asset_check_evaluations() if one.check_name == name)
    return str(check.metadata["findings"].value)


def _observation(result: ExecuteInProcessResult) -> dict[str, Any]:
    (observed,) = result.get_asset_observation_events()
    metadata = observed.asset_observation_data.asset_observation.metadata
    return {name: value if name == "cost_curve" else value.value for name, value in metadata.items()}


# -- late data ------------------------------------------------------------------------------------


def test_late_data_fails_a_check_until_it_is_compacted(quick: Platform) -> None:
    quick.attributes = {"freshness_slo": "30h"}
    quick.ingest(0, 1, 2, 3, 4)
    assert checks(quick.compact())["no_late_records"] is True
    promised = quick.metadata("freshness")["freshness"]
    quick.ingest(5)  # with a record of hour 2
    late = quick.table().stats().last_commit
    for _ in range(2):  # also when it looks again: what it had promised before does not go out of mind
        result = quick.run("freshness")
        assert checks(result)["no_late_records"] is False
        found = _found(result, "no_late_records")
        assert f"1 late record of commit {late}" in found
        assert str(iso(ms(2))) in found
        assert ".log." in found
        assert checks(result)["ro_complete_below_freshness"] is True
    assert quick.metadata("freshness")[PROMISED] == promised
    assert quick.metadata("freshness")["freshness"] == iso(ms(2) - 1)
    assert checks(quick.compact())["no_late_records"] is True


def test_late_records_in_words() -> None:
    log = LateLog("city=a/.x.log.1", ms(2), ("20240301000000000", "20240302000000000"), 3)
    combined = LateLog("city=a/.y.log.1", ms(2), (), 0)  # its range covers rows that were combined away
    assert find_late([log, combined]) == [
        f"city=a/.x.log.1: 3 late records of commit 20240301000000000, 20240302000000000, the first of {iso(ms(2))}"
    ]


class _Instance:
    """Knows one materialization."""

    def __init__(self, promised: int | None, instant: str) -> None:
        self._metadata = {"promised_ms": promised, "instant": instant}  # as events of earlier days have it

    def get_latest_materialization_event(self, key: AssetKey) -> Any:
        class Value:
            def __init__(self, value: object) -> None:
                self.value = value

        class Event:
            class asset_materialization:  # noqa: N801
                metadata = {name: Value(value) for name, value in self._metadata.items()}  # noqa: RUF012

        return Event


@pytest.mark.parametrize(
    ("earlier", "instant", "freshness", "now_instant", "expected"),
    [
        (None, "none", 5, None, 5),
        (7, "none", 5, "20240101", 7),
        (7, "20240101", 9, "20240101", 9),
        (7, "20240101", None, "20240102", 7),
        (7, "20240102", 5, "20240101", 5),  # the compaction that the promise rested on was rolled back
        (7, "20240102", None, None, None),
    ],
)
def test_the_highest_promise(
    earlier: int | None, instant: str, freshness: int | None, now_instant: str | None, expected: int | None
) -> None:
    promise = Freshness(freshness, None, None, None, now_instant, None, 0)
    published = properties_of(Publication("/t", promise, None, pa.schema([]), (), "d"))
    found = highest_promise(_Instance(earlier, instant), AssetKey("x"), published)
    assert found == expected


# -- the learned latency --------------------------------------------------------------------------


def test_a_learned_latency_shows_its_evidence(quick: Platform) -> None:
    quick.attributes = {"data_latency": "auto"}
    quick.ingest(0, 1)
    assert quick.compact().success
    for name in ("compaction_plan", "freshness"):
        found = quick.metadata(name)
        # Every log file's oldest record is of the first quarter of an hour of its window of three.
        assert found["learned_latency_ms"] == ms(2.75) - ms(0)
        assert "log files of 2 commits with 18 records" in found["learned_from"]
    assert quick.metadata("compaction_plan")["threshold"] == iso(ms(6) - (ms(2.75) - ms(0)))


def test_a_stated_latency_has_no_evidence_to_show(quick: Platform) -> None:
    quick.ingest(0, 1)
    quick.compact()
    assert "learned_latency" not in quick.metadata("freshness")
    asked = quick.compact(data_latency="auto", dry_run=True)
    assert _observation(asked)["reason"]


# -- what a dry run shows -------------------------------------------------------------------------


def test_a_dry_run_shows_what_each_threshold_would_cost(quick: Platform, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "png", RASTERIZED)
    quick.ingest(0, 1)
    found = _observation(quick.compact(dry_run=True))
    rows = [record.data for record in found["cost_curve"].records]
    assert [row["log_files"] for row in rows] == sorted(row["log_files"] for row in rows)
    stats = quick.table().stats()
    assert rows[-1]["log_files"] == stats.remaining_log_files > 0
    assert rows[-1]["bytes_to_rewrite"] == stats.remaining_bytes
    encoded = str(found["cost_picture"]).split("base64,")[1].rstrip(")")
    with Image.open(io.BytesIO(base64.b64decode(encoded))) as image:
        assert image.width > 500


def test_a_dry_run_without_a_plan_still_shows_the_costs(quick: Platform) -> None:
    quick.ingest(0, 1)
    found = _observation(quick.compact(threshold="2024-02-01T00:00:00Z", dry_run=True))
    assert found["reason"].startswith("Nothing to compact: ")
    assert found["cost_curve"].records


# -- strategies and triggers ----------------------------------------------------------------------


def test_hudis_strategy_is_planned_executed_and_finished_by_the_platform(quick: Platform) -> None:
    settings = {"hoodie.compaction.strategy": "LogFileSizeBasedCompactionStrategy"}
    quick.attributes = {"settings": settings}
    quick.ingest(0, 1)
    logs = quick.table().stats().remaining_log_files
    waiting = quick.tick()
    assert isinstance(waiting, SkipReason)
    assert "2 delta commits" in str(waiting.skip_message)
    quick.attributes = {"settings": settings | {"hoodie.compact.inline.max.delta.commits": "2"}}
    request = quick.tick()
    assert isinstance(request, RunRequest)
    assert "NUM_COMMITS" in request.tags["hudi_assets/reason"]
    # Between plan and execution the run dies: the next one goes on with the plan.
    assert quick.run("compaction_plan").success
    assert quick.metadata("compaction_plan")["threshold"] == "none"
    again = quick.tick()
    assert isinstance(again, RunRequest)
    assert "not finished" in again.tags["hudi_assets/reason"]
    result = quick.compact()
    assert result.success
    assert quick.metadata("ro_snapshot")["logs_compacted"] == logs > 0
    assert quick.table().pending_plan() is None


def test_a_counting_trigger_asks_as_soon_as_it_is_due(quick: Platform) -> None:
    quick.ingest(0, 1)
    quick.compact()
    quick.ingest(2)
    assert isinstance(quick.tick(), SkipReason)  # the threshold has moved by three hours of the six
    counting = {"hoodie.compact.inline.trigger.strategy": "NUM_COMMITS"}
    quick.attributes = {"settings": counting | {"hoodie.compact.inline.max.delta.commits": "1"}}
    assert isinstance(quick.tick(), RunRequest)


def test_a_bounded_plan_is_followed_by_the_next_until_event_time_is_reached(quick: Platform) -> None:
    quick.attributes = {"settings": {"hoodie.compaction.daybased.target.partitions": "1"}}
    quick.ingest(0, 1, 2, 3)
    thresholds: list[Any] = []
    while isinstance(quick.tick(), RunRequest):
        assert quick.compact().success
        thresholds.append(quick.metadata("ro_snapshot").get("threshold_ms"))
        assert len(thresholds) < 5
    assert thresholds == sorted(thresholds)
    assert len(thresholds) == 2  # a partition each
    assert quick.table().freshness().freshness == ms(11)
