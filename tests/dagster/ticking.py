"""A sensor's ticks as the daemon makes them: the cursor is kept, and what a tick reports goes into the event log."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dagster import (
    AssetCheckEvaluation,
    AssetCheckKey,
    AssetKey,
    AssetObservation,
    DagsterInstance,
    DagsterRunStatus,
    build_sensor_context,
)

from tests.dagster.conftest import Platform

# Tables beside those of the test with a real daemon.
MORE = [f"more{number}" for number in range(int(os.environ.get("DAEMON_TABLES", "0")))]


@dataclass
class Sensor:
    """The sensor of the table `events`."""

    platform: Platform
    cursor: str | None = None
    last: Any = None
    reported: list[Any] = field(default_factory=list)

    @property
    def instance(self) -> DagsterInstance:
        return self.platform.instance

    def tick(self) -> list[Any]:
        """What was reported. A tick that fails raises, and leaves the cursor as it was."""
        definitions = self.platform.definitions()
        (sensor,) = definitions.sensors or []
        context = build_sensor_context(
            instance=self.instance,
            definitions=definitions,
            cursor=self.cursor,
            resources={"events_table": self.platform.component()._resource(), "catalog": self.platform.catalog},
            last_sensor_start_time=1.0,
        )
        self.last = sensor.evaluate_tick(context)
        self.cursor = self.last.cursor
        self.reported = list(self.last.asset_events)
        for event in self.reported:
            self.instance.report_runless_asset_event(event)
        return self.reported

    @property
    def skip(self) -> str:
        assert not self.last.run_requests
        return str(self.last.skip_message)

    @property
    def observed(self) -> dict[str, Any]:
        """The metadata of the one observation of `freshness` in the last tick."""
        (found,) = [e for e in self.reported if isinstance(e, AssetObservation) and e.asset_key.path[-1] == "freshness"]
        return {name: value.value for name, value in found.metadata.items()}

    def names(self) -> list[str]:
        """What the last tick reported: names of checks, and of assets that were observed."""
        return sorted(
            e.check_name if isinstance(e, AssetCheckEvaluation) else e.asset_key.path[-1] for e in self.reported
        )

    def check(self, name: str) -> bool | None:
        """The check as the event log has it."""
        found = self.evaluation(name)
        return None if found is None else found.passed

    def evaluation(self, name: str) -> AssetCheckEvaluation | None:
        asset = "ro_snapshot" if name == "no_pre_threshold_logs" else "freshness"
        key = AssetCheckKey(AssetKey(["events", asset]), name)
        record = self.instance.get_latest_asset_check_evaluation_record(key)
        found = record.evaluation if record else None
        return found if isinstance(found, AssetCheckEvaluation) else None

    def started(
        self, tags: Mapping[str, str], *assets: str, status: DagsterRunStatus = DagsterRunStatus.STARTED
    ) -> str:
        """A run in this state: of the table's job, or as the UI makes one of single assets."""
        definitions = self.platform.definitions()
        job = definitions.resolve_implicit_global_asset_job_def() if assets else None
        keys = frozenset(AssetKey(["events", name]) for name in assets)
        run = self.instance.create_run_for_job(
            job.get_subset(asset_selection=set(keys)) if job else definitions.resolve_job_def("events_compaction"),
            tags=dict(tags),
            status=status,
            asset_selection=keys or None,
        )
        return run.run_id

    def ended(self, request: Any, *, well: bool) -> None:
        """The run that was asked for has ended."""
        self.started(request.tags, status=DagsterRunStatus.SUCCESS if well else DagsterRunStatus.FAILURE)
