"""Ingestion: a run of several windows, windows that come again, and the schedule that asks for what is missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from dagster import AssetKey, DagsterRunStatus, RunRequest, ScheduleEvaluationContext, build_schedule_context

from hudi_assets.components import HudiTableComponent, SourceModel
from hudi_assets.dagster.ingestion import INGESTION_TAG, oldest_missing
from tests.dagster import small_source
from tests.dagster.conftest import Platform
from tests.dagster.small_source import SmallSource, at

KEY = AssetKey(["events", "mor_table"])
RANGE = ("dagster/asset_partition_range_start", "dagster/asset_partition_range_end")


def window(number: int) -> str:
    return at(3 * number).strftime("%Y-%m-%dT%H:%M:%SZ")


def ingest(platform: Platform, first: int, last: int, *, again: bool = False) -> Any:
    """One run of these windows."""
    tags = dict(zip(RANGE, (window(first), window(last)), strict=True))
    config = {"ops": {"events__mor_table": {"config": {"again": True}}}} if again else None
    return platform.run("mor_table", tags=tags, run_config=config)


def materializations(platform: Platform) -> dict[str, dict[str, Any]]:
    """Partition → metadata of its newest materialization."""
    found = {}
    for record in platform.instance.fetch_materializations(KEY, limit=100, ascending=True).records:
        event = record.asset_materialization
        assert event is not None
        found[event.partition or ""] = {name: value.value for name, value in event.metadata.items()}
    return found


def test_a_run_of_many_windows_commits_each_by_itself_in_order(quick: Platform) -> None:
    assert ingest(quick, 0, 3).success
    batches = quick.table().committed_batches()
    assert list(batches) == [window(n) for n in range(4)]
    assert list(batches.values()) == sorted(batches.values())
    found = materializations(quick)
    assert list(found) == [window(n) for n in range(4)]
    assert {metadata["instant"] for metadata in found.values()} == set(batches.values())
    assert all(metadata["dagster/row_count"] == 6 or metadata["rows_delivered"] == 18 for metadata in found.values())


def test_a_backfill_over_windows_that_are_there_writes_what_is_missing(quick: Platform) -> None:
    quick.ingest(1)
    assert ingest(quick, 0, 2).success
    found = materializations(quick)
    assert [found[window(n)]["already_committed"] for n in range(3)] == [False, True, False]
    assert len(quick.table().committed_batches()) == 3


def test_a_window_comes_again_only_where_that_is_asked_for(quick: Platform, monkeypatch: pytest.MonkeyPatch) -> None:
    quick.ingest(0, 1)
    before = quick.table().stats().last_commit
    changed = SmallSource.rows

    def more(self: SmallSource, batch: Any) -> pa.Table:
        rows = changed(self, batch)
        late = {"id": "new", "city": "a", "value": 7, "event_time": at(0.5)}
        return pa.concat_tables([rows, pa.Table.from_pylist([late], small_source.SCHEMA)])

    monkeypatch.setattr(SmallSource, "rows", more)
    assert ingest(quick, 0, 0).success
    assert quick.table().stats().last_commit == before
    result = ingest(quick, 0, 0, again=True)
    assert result.success
    batches = quick.table().committed_batches()
    (repeated,) = set(batches) - {window(0), window(1)}
    assert repeated == f"{window(0)}#{result.run_id[:8]}"
    assert materializations(quick)[window(0)]["batch"] == repeated
    table = quick.table_with_settings()
    rows = table.snapshot(quick.spark).toArrow().to_pylist()
    ids = [row["id"] for row in rows]
    assert sorted(ids) == sorted(set(ids))
    assert "new" in ids


def test_a_repetition_of_a_window_that_was_never_committed_is_the_window(quick: Platform) -> None:
    assert ingest(quick, 0, 0, again=True).success
    assert list(quick.table().committed_batches()) == [window(0)]


# ------------------------------------------------------------------------------- the schedule


def tick(platform: Platform, now: datetime, **ingest: Any) -> Any:
    platform.attributes = {**platform.attributes, "ingest": {"cron": "5 * * * *", **ingest}}
    definitions = platform.definitions()
    (schedule,) = definitions.schedules or []
    with pytest.MonkeyPatch.context() as patch:
        # An instance in memory has no reference, by which a context finds it.
        patch.setattr(ScheduleEvaluationContext, "instance", property(lambda _: platform.instance))
        assert callable(schedule)  # none that waits for its assets' partitions
        return schedule(build_schedule_context(scheduled_execution_time=now))


def test_the_schedule_asks_for_the_windows_that_have_ended(quick: Platform) -> None:
    found = tick(quick, at(7))
    assert isinstance(found, RunRequest)
    assert [found.tags[name] for name in RANGE] == [window(0), window(1)]
    assert quick.run("mor_table", tags=found.tags).success
    assert "Every window that has ended" in tick(quick, at(8)).skip_message
    found = tick(quick, at(24), most_windows=3)
    assert [found.tags[name] for name in RANGE] == [window(2), window(4)]


def test_the_schedule_fills_a_gap_first(quick: Platform) -> None:
    quick.ingest(0, 2)
    found = tick(quick, at(24))
    assert [found.tags[name] for name in RANGE] == [window(1), window(1)]


def test_the_schedule_waits_for_its_own_run(quick: Platform) -> None:
    quick.attributes = {"ingest": {"cron": "5 * * * *"}}
    job = quick.definitions().resolve_job_def("events_ingestion")
    assert job.tags[INGESTION_TAG] == "events"
    quick.instance.create_run_for_job(job, status=DagsterRunStatus.STARTED, tags=dict(job.tags))
    assert "is ingesting into events" in tick(quick, at(7)).skip_message


def test_only_whole_stretches_and_ended_windows_are_missing() -> None:
    batches: Sequence[Any] = SmallSource().batches
    names = [batch.id for batch in batches]
    now = batches[5].end_ms

    def missing(done: set[str], most: int = 100) -> list[str]:
        return [batch.id for batch in oldest_missing(batches, done, now, most)]

    assert missing(set()) == names[:6]
    assert missing({names[0], names[3]}) == names[1:3]
    assert missing(set(names[:6])) == []
    assert missing(set(), 2) == names[:2]


class Endless(SmallSource):
    """Windows of an hour, from a day ago until in a year."""

    def __init__(self) -> None:
        start = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(days=1)
        first = SmallSource().batches[0]
        moments = [start + timedelta(hours=n) for n in range(24 * 366)]
        times = [round(moment.timestamp() * 1000) for moment in moments]
        self.batches = [
            replace(first, index=n, id=f"{moments[n]:%Y-%m-%dT%H:%M:%SZ}", start_ms=ms, end_ms=ms + 3_600_000)
            for n, ms in enumerate(times)
        ]
        self.late = False


def test_windows_that_are_still_to_come_are_no_partitions_yet(quick: Platform) -> None:
    quick.attributes = {"source": SourceModel(type="tests.dagster.test_ingestion.Endless")}
    found = tick(quick, datetime.now(UTC))
    (asset,) = [a for a in quick.definitions().assets or [] if KEY in getattr(a, "keys", ())]
    assert 23 <= len(asset.partitions_def.get_partition_keys()) <= 25  # type: ignore[union-attr]
    assert isinstance(found, RunRequest)


def test_what_ingests_needs_a_source() -> None:
    with pytest.raises(ValueError, match="there is no `source`"):
        HudiTableComponent(name="t", path="t", external=True, ingest={"cron": "5 * * * *"})  # type: ignore[arg-type]
