"""Drives a Dagster instance from one process: launches runs and ticks sensors, all real, all recorded.

Dagster's daemon evaluates sensors and starts a process per run, and with it a Spark per run. For a replay of
hundreds of runs this driver calls the daemon's own sensor evaluation and lets the instance launch runs in
this process, one after the other. Runs, ticks and check results are kept in the instance at DAGSTER_HOME,
where the UI shows them.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TextIO

from dagster import AssetKey, DagsterInstance, DagsterRun, DagsterRunStatus, RunsFilter
from dagster._core.definitions.selector import JobSubsetSelector
from dagster._core.instance.ref import InstanceRef
from dagster._core.remote_origin import InProcessCodeLocationOrigin
from dagster._core.remote_representation.code_location import CodeLocation
from dagster._core.remote_representation.external import RemoteRepository, RemoteSensor
from dagster._core.scheduler.instigation import InstigatorTick, SensorInstigatorData, TickStatus
from dagster._core.storage.tags import PARTITION_NAME_TAG
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import InProcessWorkspaceLoadTarget
from dagster._daemon.sensor import execute_sensor_iteration

from hudi_assets.home import project_root
from hudi_assets.processes import is_alive

LOCATION = "hudi_assets"
_MODULE = "hudi_assets.definitions"
_ASSET_JOB = "__ASSET_JOB"
_PID_TAG = "hudi_assets/driver_pid"

DAGSTER_YAML = """# Written by hudi-assets when there was none; yours to change.
concurrency:
  pools:
    granularity: run
    default_limit: 1 # each table is a pool: runs on one table never overlap
  runs:
    max_concurrent_runs: 4
    tag_concurrency_limits:
      - key: hudi_assets/table
        value: {applyLimitPerUniqueValue: true}
        limit: 1
run_monitoring:
  enabled: true # a run whose process died is marked as failed, and the sensor tries again
telemetry:
  enabled: false
nux:
  enabled: false
"""

# Same storage as the UI's instance; only who runs the runs differs.
_IN_THIS_PROCESS = {
    "run_launcher": {
        "module": "dagster._core.launcher.sync_in_memory_run_launcher",
        "class": "SyncInMemoryRunLauncher",
    },
    "run_coordinator": {"module": "dagster._core.run_coordinator", "class": "DefaultRunCoordinator"},
    # Capturing a step's output starts processes, each time.
    "compute_logs": {
        "module": "dagster._core.storage.noop_compute_log_manager",
        "class": "NoOpComputeLogManager",
    },
}


@dataclass(frozen=True)
class Tick:
    """One evaluation of the sensor: the runs that it launched, or why it launched none."""

    status: TickStatus
    runs: tuple[DagsterRun, ...]
    reason: str | None


def prepare_instance(directory: Path) -> None:
    """Make the instance's directory and its dagster.yaml, unless there is one."""
    directory.mkdir(parents=True, exist_ok=True)
    settings = directory / "dagster.yaml"
    if not settings.exists():
        settings.write_text(DAGSTER_YAML, "utf-8")


class Driver:
    """The instance at `directory` and the code location `hudi_assets`, both in this process."""

    def __init__(self, directory: Path, log: TextIO) -> None:
        """`log` takes what Dagster prints while it runs; the same is kept in the instance."""
        prepare_instance(directory)
        self._printed = log
        os.environ["DAGSTER_HOME"] = str(directory)
        self.instance = DagsterInstance.from_ref(InstanceRef.from_dir(str(directory), overrides=_IN_THIS_PROCESS))
        origin = InProcessCodeLocationOrigin(
            LoadableTargetOrigin(
                executable_path=sys.executable, module_name=_MODULE, working_directory=str(project_root())
            ),
            location_name=LOCATION,
        )
        self._workspace = WorkspaceProcessContext(self.instance, InProcessWorkspaceLoadTarget(origin))
        self._log = logging.getLogger("hudi_assets.demo.driver")

    def __enter__(self) -> Driver:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._workspace.__exit__(kind, error, trace)
        self.instance.dispose()

    def fail_abandoned_runs(self) -> int:
        """Mark the runs as failed whose driver is gone: they would hold their table for ever."""
        unfinished = [DagsterRunStatus.NOT_STARTED, DagsterRunStatus.STARTING, DagsterRunStatus.STARTED]
        abandoned = [
            run
            for run in self.instance.get_runs(RunsFilter(statuses=unfinished))
            if _PID_TAG in run.tags and not is_alive(int(run.tags[_PID_TAG]))
        ]
        for run in abandoned:
            self.instance.report_run_failed(run, "The process that ran it is gone.")
        return len(abandoned)

    def materialize(self, assets: Sequence[AssetKey], partition: str | None = None) -> DagsterRun:
        """Run these assets (and their checks), and return the finished run, whatever its status."""
        location, repository = self._location()
        job = location.get_job(
            JobSubsetSelector(
                location_name=location.name,
                repository_name=repository.name,
                job_name=_ASSET_JOB,
                op_selection=None,
                asset_selection=list(assets),
            )
        )
        plan = location.get_execution_plan(
            job, run_config={}, step_keys_to_execute=None, known_state=None, instance=self.instance
        )
        tags = {**(job.run_tags or {}), _PID_TAG: str(os.getpid())}
        run = self.instance.create_run(
            job_name=_ASSET_JOB,
            run_id=None,
            run_config={},
            resolved_op_selection=job.resolved_op_selection,
            step_keys_to_execute=None,
            status=DagsterRunStatus.NOT_STARTED,
            op_selection=None,
            root_run_id=None,
            parent_run_id=None,
            tags={**tags, **({PARTITION_NAME_TAG: partition} if partition else {})},
            job_snapshot=job.job_snapshot,
            execution_plan_snapshot=plan.execution_plan_snapshot,
            parent_job_snapshot=job.parent_job_snapshot,
            remote_job_origin=job.get_remote_origin(),
            job_code_origin=job.get_python_origin(),
            asset_selection=frozenset(assets),
            asset_check_selection=None,
            asset_graph=repository.asset_graph,
        )
        with redirect_stdout(self._printed), redirect_stderr(self._printed):
            self.instance.submit_run(run.run_id, self._workspace.create_request_context())
        return self._finished(run.run_id)

    def tick(self, sensor_name: str) -> Tick:
        """Evaluate the sensor as the daemon does, now, and run what it asks for.

        The daemon's evaluation covers every running sensor of the location; the answer is about this one.
        """
        _, repository = self._location()
        sensor = repository.get_sensor(sensor_name)
        self._forget_last_tick(sensor)
        with redirect_stdout(self._printed), redirect_stderr(self._printed):
            errors = list(
                execute_sensor_iteration(
                    self._workspace, self._log, threadpool_executor=None, submit_threadpool_executor=None
                )
            )
        newest: Sequence[InstigatorTick] = self.instance.get_ticks(
            sensor.get_remote_origin_id(), sensor.selector_id, limit=1
        )
        if not newest:
            raise RuntimeError(f"the sensor {sensor_name} did not tick: is it switched off? {errors}")
        tick = newest[0]
        runs = tuple(self._finished(run_id) for run_id in tick.run_ids if self.instance.has_run(run_id))
        reason = tick.error.message if tick.error else tick.skip_reason
        return Tick(tick.status, runs, reason)

    def _forget_last_tick(self, sensor: RemoteSensor) -> None:
        """The replay's clock runs faster than the wall's: the sensor's minimum interval does not apply."""
        state = self.instance.get_instigator_state(sensor.get_remote_origin_id(), sensor.selector_id)
        if state is not None and isinstance(state.instigator_data, SensorInstigatorData):
            data = state.instigator_data._replace(last_tick_timestamp=None, last_tick_start_timestamp=None)
            self.instance.update_instigator_state(state.with_data(data))

    def _location(self) -> tuple[CodeLocation, RemoteRepository]:
        location = self._workspace.create_request_context().get_code_location(LOCATION)
        (repository,) = location.get_repositories().values()
        return location, repository

    def _finished(self, run_id: str) -> DagsterRun:
        run = self.instance.get_run_by_id(run_id)
        if run is None:
            raise RuntimeError(f"run {run_id} is not in the instance")
        return run
