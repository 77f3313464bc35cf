"""What a code server of Dagster serves to a real daemon in test_daemon.py: live tables that others write.

`events`: nothing is due; its sensor ticks every second. `still`: its sensor is off, so nobody publishes its freshness.
`DAEMON_TABLES`: how many more there are like `events` (0). `DAEMON_DUE`: the name of one
that is to be compacted at once.
`DAEMON_REPORT_EVERY`: how often they report what stands still (5m).
"""

from __future__ import annotations

import os
from typing import Any

from dagster import Definitions, in_process_executor
from dagster.components import build_defs_for_component

from hudi_assets.components import HudiTableComponent
from tests.dagster.alerts import documented
from tests.dagster.ticking import MORE


def block(name: str, **fields: Any) -> Definitions:
    given = {"external": True, "writers": "stopped", "data_latency": "5s", "path": f"warehouse/{name}", "name": name}
    return build_defs_for_component(HudiTableComponent.model_validate(given | fields))


_TICKING: dict[str, Any] = {
    "compact_every": "30m",
    "freshness_slo": "1h",
    "sensor": {"minimum_interval_seconds": 1, "report_every": os.environ.get("DAEMON_REPORT_EVERY", "5m")},
}
_DUE = [name for name in [os.environ.get("DAEMON_DUE")] if name]
_alerts = documented()
defs = Definitions.merge(
    *[block(name, **_TICKING) for name in ("events", *MORE)],
    block("still", compact_every="10s", freshness_slo="61s", sensor={"minimum_interval_seconds": 1, "running": False}),
    *[block(name, **_TICKING | {"compact_every": "10s"}) for name in _DUE],
    Definitions(sensors=[_alerts["check_alerts"], _alerts["run_alerts"]], executor=in_process_executor),
)
