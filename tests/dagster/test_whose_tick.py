"""By what a tick of Dagster's daemon is told from one that somebody tests in the UI: asked of both."""

from __future__ import annotations

import json
import logging
import sys
import time
from pathlib import Path
from typing import Any

from dagster import (
    DagsterInstance,
    DefaultSensorStatus,
    Definitions,
    SensorEvaluationContext,
    SkipReason,
    job,
    op,
    sensor,
)
from dagster._core.remote_origin import InProcessCodeLocationOrigin
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import InProcessWorkspaceLoadTarget
from dagster._daemon.sensor import execute_sensor_iteration
from dagster_graphql.schema import create_schema

from hudi_assets.dagster.aside import is_daemons

TEST_SENSOR = """mutation {
  sensorDryRun(selectorData: {
    repositoryLocationName: "here", repositoryName: "__repository__", sensorName: "asks"
  }, cursor: "") { ... on DryRunInstigationTick { evaluationResult { skipReason error { message } } } }
}"""


@op
def nothing() -> None: ...


@job
def a_job() -> None:
    nothing()


@sensor(job=a_job, minimum_interval_seconds=1, default_status=DefaultSensorStatus.RUNNING)
def asks(context: SensorEvaluationContext) -> SkipReason:
    return SkipReason("the daemon's" if is_daemons(context) else "a test")


defs = Definitions(sensors=[asks], jobs=[a_job])


def test_the_daemons_ticks_are_told_from_tests_in_the_ui(tmp_path: Path) -> None:
    """Also its first one, before any has ended."""
    served = LoadableTargetOrigin(executable_path=sys.executable, python_file=__file__, attribute="defs")
    target = InProcessWorkspaceLoadTarget(InProcessCodeLocationOrigin(served, location_name="here"))
    with (
        DagsterInstance.local_temp(str(tmp_path)) as instance,
        WorkspaceProcessContext(instance, target) as workspace,
    ):
        said = list[str]()
        for _ in range(2):
            tested: Any = create_schema().execute(TEST_SENSOR, context_value=workspace.create_request_context())
            assert not tested.errors, json.dumps(tested.data)
            said.append(tested.data["sensorDryRun"]["evaluationResult"]["skipReason"])
            time.sleep(1.1)  # the sensor's interval
            list(execute_sensor_iteration(workspace, logging.getLogger(), None, None))
            (state,) = instance.all_instigator_state()
            ticks = instance.get_ticks(state.instigator_origin_id, state.selector_id)
            said.append(str(ticks[0].skip_reason))
    assert len(ticks) == 2
    assert said == ["a test", "the daemon's"] * 2
