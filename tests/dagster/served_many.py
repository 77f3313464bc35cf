"""What a code server of Dagster serves to test_many_ticks.py and benchmarks/served_tables.py: one block of many tables.

`MANY_TABLES`: how many there are (3), in the folder `warehouse`. `MANY_SENSOR`: fields of the sensor, as JSON.
`MANY_DEFAULTS`: fields that all tables share, as JSON, over those here, by which nothing is due. `MANY_WRONG`: fields
of single tables, as JSON, by their names. The sensor `heap` tells of this process's memory.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import sys
from typing import Any

from dagster import Definitions, SkipReason, sensor
from dagster.components import build_defs_for_component

from hudi_assets.components import HudiTablesComponent


@sensor(name="heap")
def heap() -> SkipReason:
    """Handlers for the end of the process, and blocks of Python's memory that are in use."""
    gc.collect()
    return SkipReason(json.dumps({"handlers": atexit._ncallbacks(), "blocks": sys.getallocatedblocks()}))


_OWN: dict[str, dict[str, Any]] = json.loads(os.environ.get("MANY_WRONG", "{}"))
_GIVEN: dict[str, Any] = {"external": True, "data_latency": "5h", "compact_every": "1h", "freshness_slo": "9h"}
defs = Definitions.merge(
    build_defs_for_component(
        HudiTablesComponent.model_validate(
            {
                "name": "many",
                "defaults": _GIVEN | json.loads(os.environ.get("MANY_DEFAULTS", "{}")),
                "tables": [
                    {"name": f"t{number}", "path": f"warehouse/t{number}"} | _OWN.get(f"t{number}", {})
                    for number in range(int(os.environ.get("MANY_TABLES", "3")))
                ],
                "sensor": json.loads(os.environ.get("MANY_SENSOR", "{}")),
            }
        )
    ),
    Definitions(sensors=[heap]),
)
