"""The table's YAML block at work: its sensor decides, its job runs, as Dagster's daemon would have it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dagster import (
    AssetKey,
    DagsterInstance,
    Definitions,
    ResourceDefinition,
    build_sensor_context,
    in_process_executor,
)
from dagster.components import build_defs_for_component

from hudi_assets.components import HudiTableComponent
from hudi_assets.engine import HudiTable
from tests.dagster.conftest import FileCatalog


class _Session:
    def __init__(self, session: Any) -> None:
        self.spark_session = session


@dataclass(frozen=True)
class Done:
    """What a tick came to: the reason for no run, or a run and the log files that it compacted."""

    skipped: str | None
    failure: str | None = None
    logs_compacted: int = 0


class Maintenance:
    """The definitions of one table on an instance of its own."""

    def __init__(self, session: Any, instance: DagsterInstance, folder: Path, block: Mapping[str, Any]) -> None:
        self._instance = instance
        self._component = HudiTableComponent(**block, spark_resource="spark", catalog_resource="catalog")
        self._catalog = FileCatalog(file=str(folder / "catalog.json"))
        resources = {"spark": ResourceDefinition.hardcoded_resource(_Session(session)), "catalog": self._catalog}
        shared = Definitions(executor=in_process_executor, resources=resources)
        self._definitions = Definitions.merge(build_defs_for_component(self._component), shared)

    def table(self) -> HudiTable:
        return self._component._resource().open()

    def tick(self) -> Done:
        """Evaluate the sensor; execute the run that it asks for."""
        (sensor,) = self._definitions.sensors or []
        resources = {f"{self._component.name}_table": self._component._resource(), "catalog": self._catalog}
        context = build_sensor_context(
            instance=self._instance, definitions=self._definitions, resources=resources, last_sensor_start_time=1.0
        )
        found = sensor.evaluate_tick(context)
        if not found.run_requests:
            return Done(found.skip_message or "no reason")
        (request,) = found.run_requests
        job = self._definitions.resolve_job_def(f"{self._component.name}_compaction")
        result = job.execute_in_process(
            instance=self._instance,
            asset_selection=request.asset_selection,
            run_config=dict(request.run_config),
            tags=dict(request.tags),
            raise_on_error=False,
        )
        snapshot = AssetKey([self._component.name, "ro_snapshot"])
        logs = 0
        for event in result.get_asset_materialization_events():
            if event.asset_key == snapshot:
                logs = int(str(event.materialization.metadata["logs_compacted"].value))
        # A check may fail after the compaction: of late data, say.
        return Done(None, None if result.success else _failure(result), logs)


def _failure(result: Any) -> str:
    said = []
    for event in result.get_step_failure_events():
        error = event.step_failure_data.error
        while error is not None and error.cause is not None:
            error = error.cause
        said.append(f"{event.step_key}: {error.message if error else '?'}")
    failed = [check for check in result.get_asset_check_evaluations() if not check.passed]
    said += [f"check {check.check_name}: {check.metadata}" for check in failed]
    return "; ".join(said) or "no step failed"
