"""What a code server of Dagster serves in test_code_server.py: the table `events`, and a look at its own heap."""

from __future__ import annotations

import gc
import json
import os
from pathlib import Path

from dagster import Definitions, SkipReason, sensor

from tests.dagster.conftest import FileCatalog, InProcess, Platform


@sensor(name="heap")
def heap() -> SkipReason:
    """How much is in the oldest generation, which the collector hardly ever looks at; and resident memory, bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return SkipReason(
        json.dumps({"oldest": len(gc.get_objects(generation=2)), "resident": pages * os.sysconf("SC_PAGE_SIZE")})
    )


_home = Path(os.environ["HUDI_ASSETS_HOME"])
_catalog = FileCatalog(file=str(_home / "catalog.json"))
defs = Definitions.merge(
    Platform(_home, InProcess(), None, catalog=_catalog).definitions(),  # type: ignore[arg-type]  # it runs nothing
    Definitions(sensors=[heap]),
)
