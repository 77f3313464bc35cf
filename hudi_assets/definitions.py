"""The code location: what `hudi_assets/defs` declares, plus what all of it shares. Wiring only."""

from __future__ import annotations

from pathlib import Path

from dagster import Definitions, in_process_executor, load_from_defs_folder

from resources import CATALOG, SPARK

# In process, so that all steps of a run share one Spark.
defs = Definitions.merge(
    load_from_defs_folder(path_within_project=Path(__file__).parent),
    Definitions(
        executor=in_process_executor,
        resources={"spark": SPARK, "catalog": CATALOG},
    ),
)
