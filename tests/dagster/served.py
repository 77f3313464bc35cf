"""What a code server of Dagster serves in test_code_server.py: the table `events`, and a look at its own heap.

With `LOOKS` each look is noted in that file, and lasts until there is a file of that name with `.end` after it.
"""

from __future__ import annotations

import gc
import json
import os
import time
from pathlib import Path
from typing import Any

from dagster import Definitions, SkipReason, sensor

from hudi_assets.dagster import sensors
from tests.dagster.conftest import FileCatalog, InProcess, Platform


@sensor(name="heap")
def heap() -> SkipReason:
    """How much is in the oldest generation, which the collector hardly ever looks at; and resident memory, bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return SkipReason(
        json.dumps({"oldest": len(gc.get_objects(generation=2)), "resident": pages * os.sysconf("SC_PAGE_SIZE")})
    )


def _look_long(looks: Path) -> None:
    see = sensors.see  # type: ignore[attr-defined]

    def long(*given: Any) -> Any:
        with looks.open("a") as noted:
            noted.write("look\n")
        while not looks.with_suffix(".end").exists():
            time.sleep(0.05)
        return see(*given)

    sensors.see = long  # type: ignore[attr-defined, assignment]


if _looks := os.environ.get("LOOKS"):
    _look_long(Path(_looks))
_home = Path(os.environ["HUDI_ASSETS_HOME"])
_catalog = FileCatalog(file=str(_home / "catalog.json"))
defs = Definitions.merge(
    Platform(_home, InProcess(), None, catalog=_catalog).definitions(),  # type: ignore[arg-type]  # it runs nothing
    Definitions(sensors=[heap]),
)
