"""Breakages that some test must notice, each with the quickest tests that should.

A module for each part of the project. `BREAKAGES` are all of them.
"""

from __future__ import annotations

from tests.mutation.breakages import (
    actions,
    any_table,
    catalog,
    checkpoints,
    cli,
    dagster,
    engine,
    event_time,
    format,
    gaps,
    glue,
    hdfs,
    hidden_base_files,
    hidden_rows,
    kept_looks,
    leases,
    locks,
    merging,
    ordering_fields,
    partial_updates,
    partition_tables,
    platform,
    reading,
    repeated_keys,
    shared_spark,
    slo,
    spark,
    table,
    timeline,
    version_6,
)
from tests.mutation.breakages.breakage import Breakage

__all__ = ["BREAKAGES", "Breakage"]

BREAKAGES: tuple[Breakage, ...] = (
    *actions.BREAKAGES,
    *any_table.BREAKAGES,
    *catalog.BREAKAGES,
    *checkpoints.BREAKAGES,
    *cli.BREAKAGES,
    *dagster.BREAKAGES,
    *engine.BREAKAGES,
    *event_time.BREAKAGES,
    *format.BREAKAGES,
    *gaps.BREAKAGES,
    *glue.BREAKAGES,
    *hdfs.BREAKAGES,
    *hidden_base_files.BREAKAGES,
    *hidden_rows.BREAKAGES,
    *kept_looks.BREAKAGES,
    *leases.BREAKAGES,
    *locks.BREAKAGES,
    *merging.BREAKAGES,
    *ordering_fields.BREAKAGES,
    *partial_updates.BREAKAGES,
    *partition_tables.BREAKAGES,
    *platform.BREAKAGES,
    *reading.BREAKAGES,
    *repeated_keys.BREAKAGES,
    *shared_spark.BREAKAGES,
    *slo.BREAKAGES,
    *spark.BREAKAGES,
    *table.BREAKAGES,
    *timeline.BREAKAGES,
    *version_6.BREAKAGES,
)
