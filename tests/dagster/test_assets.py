"""The assets of a small table: real runs in process, real Spark, a real table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dagster import AssetKey, DagsterEventType, MetadataValue

from hudi_assets.engine.model.units import iso
from hudi_assets.resources.catalog import Catalog
from tests.dagster.conftest import Platform, checks, materialized
from tests.dagster.small_source import SmallSource, ms

pytestmark = pytest.mark.spark


def number_in(value: MetadataValue[Any]) -> int:
    assert isinstance(value.value, int)
    return value.value


def _pictures(platform: Platform, name: str) -> str:
    return str(platform.metadata(name)["picture"])


def test_a_partition_materialized_again_duplicates_nothing(platform: Platform) -> None:
    platform.ingest(0, 1)
    before = platform.table().snapshot(platform.spark).count()
    instant = platform.table().stats().last_commit
    platform.ingest(0)
    assert platform.metadata("mor_table")["already_committed"] is True
    assert platform.metadata("mor_table")["dagster/row_count"] == 0
    assert platform.table().snapshot(platform.spark).count() == before == 6
    assert platform.table().stats().last_commit == instant


def test_a_batch_out_of_order_does_not_turn_the_clock_back(platform: Platform) -> None:
    platform.ingest(3)
    platform.ingest(1)
    assert platform.table().now_ms() == ms(12)


def test_plan_execution_and_freshness_in_one_run(platform: Platform) -> None:
    platform.ingest(0, 1, 2, 3)
    result = platform.compact()
    assert result.success
    assert materialized(result) == ["compaction_plan", "ro_snapshot", "freshness", "housekeeping"]
    assert checks(result) == dict.fromkeys(
        (
            "no_pre_threshold_logs",
            "carried_over_logs_resolve",
            "files_match_timeline",
            "ro_complete_below_freshness",
            "no_late_records",
            "freshness_within_slo",
        ),
        True,
    )
    found = platform.metadata("ro_snapshot")
    assert found["threshold"] == iso(ms(11))
    assert found["dagster/row_count"] == platform.table().read_optimized(platform.spark).count() == 6
    assert found["logs_compacted"] >= 6
    assert {column.name for column in found["dagster/column_schema"].columns} >= {"id", "city", "event_time"}
    assert len(found["operations"]) == found["operations_count"] == 2
    for name in ("min_event_time_epoch_seconds", "remaining_log_files", "remaining_bytes", "lag_seconds"):
        assert name in found
    assert _pictures(platform, "ro_snapshot").startswith("![event times of the log files](data:image/png")
    assert platform.published()["hudi_assets.freshness"] == iso(ms(11))
    assert platform.published()["hudi_assets.freshness_ms"] == str(ms(11))


def test_views_by_name_read_both_sides(platform: Platform) -> None:
    platform.ingest(0, 1)
    platform.compact(threshold=iso(ms(3)))
    read = platform.spark.table("events_ro").toPandas()
    assert read["event_time"].max().timestamp() * 1000 <= ms(3)
    now = platform.spark.table("events_rt").toPandas()
    assert now["event_time"].max().timestamp() * 1000 == ms(5.25)
    assert sorted(now["id"]) == sorted(read["id"]) == [f"k{n}" for n in range(6)]
    # Every query reads the table as it then stands.
    platform.ingest(2)
    assert platform.spark.table("events_rt").toPandas()["event_time"].max().timestamp() * 1000 == ms(8.25)


def test_nothing_due_is_a_success_with_the_reason_and_what_follows_is_skipped(platform: Platform) -> None:
    platform.ingest(0, 1)
    platform.compact()
    result = platform.compact()
    assert result.success
    assert materialized(result) == []
    skipped = {event.step_key for event in result.all_events if event.event_type is DagsterEventType.STEP_SKIPPED}
    assert "events__read_optimized" in skipped
    (observed,) = result.get_asset_observation_events()
    reason = observed.asset_observation_data.asset_observation.metadata["reason"].value
    assert str(reason).startswith("Nothing to compact: ")
    assert len(str(reason)) > len("Nothing to compact: ") + 5


def test_a_dry_run_shows_the_plan_and_publishes_nothing(platform: Platform) -> None:
    platform.ingest(0, 1)
    files = _files(platform.path)
    result = platform.compact(dry_run=True)
    assert result.success
    assert materialized(result) == []
    (observed,) = result.get_asset_observation_events()
    metadata = observed.asset_observation_data.asset_observation.metadata
    assert number_in(metadata["logs_to_compact"]) > 0
    assert _files(platform.path) == files


def test_a_threshold_in_the_future_fails_the_run_and_changes_nothing(platform: Platform) -> None:
    platform.ingest(0)
    files = _files(platform.path)
    result = platform.compact(threshold=iso(ms(100)))
    assert not result.success
    failure = result.failure_data_for_node("events__compaction_plan")
    assert failure is not None
    assert "future" in str(failure.error)
    assert _files(platform.path) == files


def test_a_latency_from_the_launchpad_sets_the_threshold(platform: Platform) -> None:
    platform.ingest(0, 1)
    platform.compact(data_latency="3h")
    assert platform.metadata("compaction_plan")["threshold"] == iso(ms(3))


def test_a_failed_blocking_check_stops_readers_but_not_the_published_freshness(platform: Platform) -> None:
    """A late record comes between plan and execution: the RO view is incomplete below the threshold."""
    platform.ingest(0, 1, 2, 3, 4)
    platform.compact(threshold=iso(ms(9)))
    assert int(platform.published()["hudi_assets.freshness_ms"]) >= ms(9)
    platform.table().plan_compaction(threshold=ms(12))
    platform.ingest(5)  # with a record of hour 2
    result = platform.run("compaction_plan", "ro_snapshot", "freshness", "reader")
    assert materialized(result)[:3] == ["compaction_plan", "ro_snapshot", "freshness"]
    assert checks(result)["no_pre_threshold_logs"] is False
    assert checks(result)["ro_complete_below_freshness"] is True
    assert platform.read == []
    assert int(platform.published()["hudi_assets.freshness_ms"]) < ms(2)
    assert platform.metadata("freshness")["freshness"] < (iso(ms(2)) or "")


def test_readers_run_when_the_checks_pass(platform: Platform) -> None:
    platform.ingest(0, 1)
    result = platform.run("compaction_plan", "ro_snapshot", "freshness", "reader")
    assert result.success
    assert platform.read == [result.run_id]


def test_runs_of_a_table_share_a_pool(platform: Platform) -> None:
    graph = platform.definitions().resolve_asset_graph()
    pools = {graph.get(AssetKey(["events", n])).pools.__repr__() for n in ("mor_table", "compaction_plan", "freshness")}
    assert pools == {"{'hudi_events'}"}


def test_an_external_table_is_observed(platform: Platform) -> None:
    platform.ingest(0)
    platform.attributes = {"source": None, "external": True}
    definitions = platform.definitions()
    key = AssetKey(["events", "mor_table"])
    assert definitions.resolve_asset_graph().get(key).is_observable
    job = definitions.resolve_implicit_global_asset_job_def()
    result = job.execute_in_process(instance=platform.instance, asset_selection=[key])
    assert result.success
    (observed,) = result.get_asset_observation_events()
    found = observed.asset_observation_data.asset_observation
    assert found.data_version == platform.table().stats().last_commit
    assert number_in(found.metadata["remaining_log_files"]) > 0


def test_publishing_goes_on_after_it_failed(platform: Platform) -> None:
    platform.ingest(0, 1)
    platform.catalog = Catalog(database="no_such_database")
    assert not platform.compact().success
    platform.catalog = Catalog()
    assert platform.run("freshness").success
    assert platform.published()["hudi_assets.freshness_ms"] == str(ms(5))


def test_the_windows_of_a_source_are_the_partitions(platform: Platform) -> None:
    component = platform.component()
    (mor_table,) = [
        a for a in platform.definitions().resolve_asset_graph().asset_nodes if a.key.path[-1] == "mor_table"
    ]
    assert mor_table.partitions_def is not None
    assert mor_table.partitions_def.get_partition_keys() == [b.id for b in SmallSource().batches]
    assert component.source is not None


def _files(path: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in path.rglob("*") if p.is_file()}
