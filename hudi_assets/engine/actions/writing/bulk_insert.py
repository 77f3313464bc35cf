"""Base files that a delta commit writes: a bulk insert's, and those of an index that finds keys in base files only."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from hudi_assets.engine.actions.writing.log_files import (
    Target,
    WriteSpec,
    Written,
    data_schema,
    ensure_partition,
    with_meta,
)
from hudi_assets.engine.actions.writing.packing import PARTITION, groups_of
from hudi_assets.engine.format.avro import project as avro_project
from hudi_assets.engine.format.bloom import BloomSettings
from hudi_assets.engine.merging.merge import KEY, Rows, merge
from hudi_assets.engine.model.units import range_of
from hudi_assets.engine.table.base_file_writer import write_base_file
from hudi_assets.engine.table.schema_evolution import IS_DELETED
from hudi_assets.engine.timeline.attempts import stage
from hudi_assets.engine.timeline.commit_metadata import WriteStat


def write_base_rows(
    spec: WriteSpec, bloom: BloomSettings | None, batches: Iterator[pa.RecordBatch], token: str
) -> list[Written]:
    """Write one Spark partition's rows: for each file group in it, all of them new, its first base file."""
    written: list[Written] = []
    counter = 0
    for partition, bucket, rows in groups_of(batches, spec.config):
        ensure_partition(spec.storage, partition, spec.instant)
        target = spec.target(partition, bucket)
        written += group_base(spec, partition, target, rows, token, counter, bloom=bloom)
        counter += len(rows)
    return written


def group_base(
    spec: WriteSpec,
    partition: str,
    target: Target,
    rows: pa.Table,
    token: str,
    counter: int,
    *,
    bloom: BloomSettings | None,
    grown: pa.Table | None = None,
) -> list[Written]:
    """Write rows as a file group's base file, one row per key; nothing where all of a new group's rows are deletes.

    `grown`: the rows of the base file that it takes the place of. `counter`: where the sequence numbers begin.
    """
    data = avro_project.project(rows, data_schema(spec.schema))
    keyed = data.add_column(0, PARTITION, rows.column(PARTITION)).add_column(0, KEY, rows.column(KEY))
    merged = _one_per_key(grown, with_meta(keyed, spec, target, token, counter), spec)
    if grown is None and not len(merged):
        return []
    name = spec.layout.base_file_name(target.file_id, token, spec.instant)
    path = f"{partition}/{name}" if partition else name
    staged = stage(spec.instant, path, "CREATE" if grown is None else "MERGE")
    size = write_base_file(spec.storage, staged.at, merged, spec.avro_schema, bloom, spec.config.parquet, name=name)
    covered = range_of(data.column(spec.column), spec.unit, "this write")
    stat = WriteStat(
        path=path,
        partition=partition,
        file_id=target.file_id,
        prev_commit="null" if grown is None else target.base_instant,
        size=size,
        num_writes=len(merged),
        num_inserts=max(0, len(merged) - (len(grown) if grown is not None else 0)),
        min_event_time=covered.min,
        max_event_time=covered.max,
    )
    # No record is late here: what the read-optimized view holds at once makes no freshness fall back.
    return [Written(stat, staged, 0, len(rows))]


def _one_per_key(grown: pa.Table | None, came: pa.Table, spec: WriteSpec) -> pa.Table:
    """What the table's merge mode makes of the rows; no merge where no two have a key and none is a delete."""
    deletes = IS_DELETED in came.schema.names and pc.any(came.column(IS_DELETED)).as_py()
    if grown is None and not deletes and _differ(came.column(KEY)):
        return came
    return merge(
        grown,
        [Rows(came.combine_chunks())],
        spec.config.ordering_fields,
        spec.schema,
        spec.config.merge_mode(spec.storage.base),
    )


def _differ(keys: pa.ChunkedArray) -> bool:
    return pl.Series(keys).n_unique() == len(keys)
