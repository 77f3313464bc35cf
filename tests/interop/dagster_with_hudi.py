"""Compact an external table by its Dagster assets with `executor: hudi`, in Hudi's environment (PySpark 3.5).

    HUDI_BUNDLE=BUNDLE.jar HUDI_ASSETS_HOME=HOME python dagster_with_hudi.py PATH THRESHOLD key=value…

Prints as JSON on its last line: whether the run succeeded, what it materialized, the metadata of `ro_snapshot`, what
the checks say, and the errors.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent


def main(path: str, threshold: str, settings: dict[str, Any]) -> dict[str, object]:
    from dagster import AssetKey, DagsterInstance, Definitions, in_process_executor
    from dagster.components import build_defs_for_component

    from hudi_assets.components import HudiTableComponent
    from hudi_assets.resources import Catalog, SparkResource

    component = HudiTableComponent(
        name="events",
        path=path,
        external=True,
        executor="hudi",
        writers="stopped",
        settings=settings,
        spark_resource="spark",
        catalog_resource="catalog",
    )
    spark = SparkResource()
    definitions = Definitions.merge(
        build_defs_for_component(component),
        Definitions(executor=in_process_executor, resources={"spark": spark, "catalog": Catalog()}),
    )
    with DagsterInstance.ephemeral() as instance:
        done = definitions.resolve_implicit_global_asset_job_def().execute_in_process(
            instance=instance,
            asset_selection=[AssetKey(["events", name]) for name in ("compaction_plan", "ro_snapshot", "freshness")],
            run_config={"ops": {"events__compaction_plan": {"config": {"threshold": threshold}}}},
            raise_on_error=False,
        )
        shown = instance.get_latest_materialization_event(AssetKey(["events", "ro_snapshot"]))
        made = None if shown is None else shown.asset_materialization
        assert shown is None or made is not None
        metadata = {} if made is None else made.metadata
        return {
            "success": done.success,
            "materialized": [e.asset_key.path[-1] for e in done.get_asset_materialization_events() if e.asset_key],
            "metadata": {name: repr(value.value) for name, value in metadata.items() if name != "picture"},
            "checks": {one.check_name: one.passed for one in done.get_asset_check_evaluations()},
            "errors": [_words(event.event_specific_data) for event in done.all_events if event.is_step_failure],
        }


def _words(failure: Any) -> list[str]:
    """The messages of an error and of what it came from."""
    error, words = failure.error, []
    while error is not None:
        words.append(error.message[:1500])
        error = error.cause
    return words


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    given = dict(one.split("=", 1) for one in sys.argv[3:])
    print(json.dumps(main(sys.argv[1], sys.argv[2], given)))
