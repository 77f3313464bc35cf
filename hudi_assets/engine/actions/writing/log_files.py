"""Delta commits: a DataFrame's rows, or deletes, into new log files, one or more per file group.

New records go to log files too, so that the read-optimized view holds nothing no compaction put there.
A group's rows are written in order of event time and rolled at `hoodie.logfile.max.size`; rows at or
below the watermark get log files of their own, so that late data does not drag the rest along.
"""

from __future__ import annotations

import io
import math
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hudi_assets.engine.actions.writing.packing import PARTITION, groups_of
from hudi_assets.engine.errors import Conflict, InvalidInput
from hudi_assets.engine.format.avro import codec as avro_codec
from hudi_assets.engine.format.avro import project as avro_project
from hudi_assets.engine.format.log_file.block_times import BlockTimes, with_block_times
from hudi_assets.engine.format.log_file.codec import BlockType, HeaderKey, encode_block
from hudi_assets.engine.format.log_file.delete_codec import DeleteRecord, encode_deletes
from hudi_assets.engine.format.parquet_distinct import dictionary_columns
from hudi_assets.engine.format.parquet_required import with_stand_ins
from hudi_assets.engine.merging.delete_records import as_deletes, delete_records
from hudi_assets.engine.merging.merge import KEY, Deletes, Rows
from hudi_assets.engine.merging.ordering import ordering_type
from hudi_assets.engine.model import EventTimeRange, MergeMode
from hudi_assets.engine.model.units import EventTimeUnit, range_of, to_micros
from hudi_assets.engine.storage import Storage
from hudi_assets.engine.table.layout.interface import Layout
from hudi_assets.engine.table.layout.names import token_of_once
from hudi_assets.engine.table.log_files.summaries import times_of
from hudi_assets.engine.table.record_keys import bucket_file_id, check_key_type
from hudi_assets.engine.table.settings.config import TableConfig
from hudi_assets.engine.table.slices.listing import PARTITION_FILE
from hudi_assets.engine.table.state import META_COLUMNS
from hudi_assets.engine.timeline.attempts import Staged, stage, write_staged
from hudi_assets.engine.timeline.commit_metadata import WriteStat

META = META_COLUMNS
_COMMIT_ORDER = EventTimeRange(None, None, "deletes in commit order have no event time")


@dataclass(frozen=True, slots=True)
class Target:
    """Where a file group's next log files go: to the slice of `base_instant`, `log_instant` in their names."""

    file_id: str
    base_instant: str
    log_instant: str
    next_version: int
    base_file: str
    log_files: tuple[str, ...]
    is_new: bool


@dataclass(frozen=True)
class WriteSpec:
    """Everything a worker needs to write its share of one delta commit."""

    storage: Storage
    config: TableConfig
    layout: Layout
    instant: str
    schema: pa.Schema  # with meta columns
    avro_schema: str  # with meta columns
    column: str  # event time
    unit: EventTimeUnit
    targets: Mapping[tuple[str, int], Target]  # (partition, bucket) →
    watermark_ms: int | None
    freshness_ms: int | None
    clock_ms: int | None = None

    def target(self, partition: str, bucket: int) -> Target:
        known = self.targets.get((partition, bucket))
        if known is not None:
            return known
        # Derived, not random: a task that runs again names the same file group.
        token = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{self.instant}/{partition}/{bucket}"))
        return Target(bucket_file_id(bucket, token), self.instant, self.instant, 1, "", (), True)


@dataclass(frozen=True, slots=True)
class Written:
    """One file, staged, and how many of the records that came are at or below the published freshness.

    `rows`: how many came, where the file holds others too.
    """

    stat: WriteStat
    staged: Staged
    late_records: int
    rows: int | None = None


def check_fields(schema: pa.Schema, config: TableConfig) -> None:
    """Refuse a schema without the table's key, ordering, event-time or partition columns, by name."""
    needed = {
        "record key": config.record_key,
        "ordering field": config.ordering_fields,
        "event-time field": (config.event_time_field,) if config.event_time_field else (),
        "partition field": config.partition_fields,
    }
    for what, names in needed.items():
        for name in names:
            if name not in schema.names:
                raise InvalidInput(f"The {what} {name!r} is no column.", hint=f"Columns: {', '.join(schema.names)}.")
            if what in ("record key", "partition field"):
                check_key_type(name, schema.field(name).type, what)


# ------------------------------------------------------------------------------------------ in a worker


def write_rows(spec: WriteSpec, batches: Iterator[pa.RecordBatch], token: str) -> list[Written]:
    """Write one Spark partition's rows: for each file group in it, its log files."""
    written: list[Written] = []
    counter = 0
    for partition, bucket, rows in groups_of(batches, spec.config):
        written += group_logs(spec, partition, spec.target(partition, bucket), rows.combine_chunks(), token, counter)
        counter += len(rows)
    return written


def group_logs(
    spec: WriteSpec, partition: str, target: Target, rows: pa.Table, token: str, counter: int
) -> list[Written]:
    """Write one file group's rows as its log files; `counter`: where the sequence numbers of its rows begin."""
    data = avro_project.project(rows, data_schema(spec.schema))
    came_rows = len(rows)
    came = range_of(data.column(spec.column), spec.unit, "this write")
    rows, data = _last_of_batch(rows, data, spec)
    # A row that a later one of the batch replaced counts for every file: any of them may hold the later one.
    replaced = came if len(data) < came_rows else None
    table = with_meta(_by_event_time(data, rows, spec), spec, target, token, counter)
    ensure_partition(spec.storage, partition, spec.instant)
    chunks = enumerate(_chunks(table, spec))
    return [_write_log(spec, partition, target, number, token, chunk, replaced) for number, chunk in chunks]


def data_schema(schema: pa.Schema) -> pa.Schema:
    return pa.schema([field for field in schema if field.name not in META])


def _by_event_time(data: pa.Table, rows: pa.Table, spec: WriteSpec) -> pa.Table:
    """The rows in order of event time, equal ones in the order they came; key and partition path in front."""
    table = data.add_column(0, PARTITION, rows.column(PARTITION)).add_column(0, KEY, rows.column(KEY))
    time = to_micros(data.column(spec.column), spec.unit)
    if time.null_count:
        frame = pl.DataFrame({"time": pl.Series(time.combine_chunks())}).with_row_index("row")
        return table.take(pa.array(frame.sort("time", "row", nulls_last=False)["row"].to_numpy()))
    micros = time.to_numpy()
    return table if (micros[1:] >= micros[:-1]).all() else table.take(pa.array(np.argsort(micros, kind="stable")))


def _last_of_batch(rows: pa.Table, data: pa.Table, spec: WriteSpec) -> tuple[pa.Table, pa.Table]:
    """With commit-time ordering only the last row of a key in the batch counts, wherever its event time lies."""
    if spec.config.merging.mode is not MergeMode.COMMIT_TIME_ORDERING:
        return rows, data
    keys = pl.DataFrame({"key": pl.Series(rows.column(KEY).combine_chunks())}).with_row_index("row")
    last = pa.array(keys.unique("key", keep="last")["row"].sort().to_numpy())
    return rows.take(last), data.take(last)


def _latest_per_key(rows: pa.Table, spec: WriteSpec) -> pa.Table:
    """Of each key the row with the greatest ordering value, the later of equal ones.

    Within one log file only: a row that a newer one in another file beats may be the newest at or below a
    threshold between the two. An exact split may lie between the two within one file: then all are kept.
    """
    if spec.config.merging.exact_split or spec.config.merging.mode is MergeMode.COMMIT_TIME_ORDERING:
        return rows
    if pl.Series(rows.column(KEY).combine_chunks()).n_unique() == len(rows):
        return rows
    frame = pl.DataFrame(
        {
            "key": pl.Series(rows.column(KEY).combine_chunks()),
            "ord": pl.Series(rows.column(spec.config.ordering_field).combine_chunks()),
        }
    ).with_row_index("row")
    last = frame.sort("ord", "row", nulls_last=False).unique("key", keep="last")
    return rows.take(pa.array(last["row"].sort().to_numpy()))


def with_meta(table: pa.Table, spec: WriteSpec, target: Target, token: str, start: int) -> pa.Table:
    size = len(table)
    numbers = pa.array(np.arange(start, start + size)).cast(pa.string())
    meta = {
        META[0]: pa.repeat(pa.scalar(spec.instant), size),
        META[1]: pc.binary_join_element_wise(f"{spec.instant}_{token.split('-')[0]}", numbers, "_"),
        META[4]: pa.repeat(pa.scalar(target.file_id), size),
    }
    columns = [meta[name] if name in meta else table.column(name) for name in spec.schema.names]
    return pa.Table.from_arrays(columns, schema=spec.schema)


def _chunks(table: pa.Table, spec: WriteSpec) -> Iterator[pa.Table]:
    """Cut rows (in order of event time) at the watermark and at the log file size."""
    cut = 0
    if spec.watermark_ms is not None:
        micros = to_micros(table.column(spec.column), spec.unit)
        cut = pc.sum(pc.less_equal(micros, spec.watermark_ms * 1000)).as_py() or 0
    for part in (table.slice(0, cut), table.slice(cut)):
        if len(part):
            pieces = max(1, math.ceil(part.nbytes / spec.config.log_file_max_size))
            step = math.ceil(len(part) / pieces)
            for start in range(0, len(part), step):
                yield part.slice(start, step)


def _write_log(
    spec: WriteSpec,
    partition: str,
    target: Target,
    number: int,
    token: str,
    rows: pa.Table,
    replaced: EventTimeRange | None,
) -> Written:
    # The range covers every row that came, also one that a newer row of its key beats here: the promise is
    # about that one too, and is kept only when this file is compacted.
    covered = replaced or range_of(rows.column(spec.column), spec.unit, "this write")
    late = count_late(rows.column(spec.column), spec)
    rows = _latest_per_key(rows, spec)
    times = _times(Rows(rows), spec, covered)
    if times.undated_deletes:
        covered = _COMMIT_ORDER
    block = encode_data_block(rows, spec.avro_schema, spec.instant, times, spec.config.log_block_format)
    stat, staged = _put_log(spec, partition, target, number, token, block)
    stat = stat._replace(
        num_writes=len(rows),
        num_inserts=len(rows) if target.is_new else 0,
        num_updates=0 if target.is_new else len(rows),
        num_deletes=times.deletes,
        min_event_time=covered.min,
        max_event_time=covered.max,
    )
    return Written(stat, staged, late)


def count_late(event_times: pa.ChunkedArray, spec: WriteSpec) -> int:
    """Records at or below the freshness that is published: they make it fall back."""
    if spec.freshness_ms is None:
        return 0
    return pc.sum(pc.less_equal(to_micros(event_times, spec.unit), spec.freshness_ms * 1000)).as_py() or 0


def _times(records: Rows | Deletes, spec: WriteSpec, covered: EventTimeRange) -> BlockTimes:
    """What a block's header says; `covered`: the range of what came, also of records that it does not hold."""
    times = times_of(records, spec.column, spec.unit, spec.config.ordering_fields)
    if covered.known:
        times = replace(times, low=covered.min, high=covered.max)
    return replace(times, clock_ms=spec.clock_ms)


def encode_data_block(rows: pa.Table, avro: str, instant: str, times: BlockTimes, block_format: str) -> bytes:
    """A data block in Parquet or Avro, with its records' event times in its SCHEMA header."""
    header = {HeaderKey.INSTANT_TIME: instant, HeaderKey.SCHEMA: with_block_times(avro, times, instant)}
    if block_format == "avro":
        return encode_block(BlockType.AVRO_DATA, header, avro_codec.encode_records(rows, avro))
    out = io.BytesIO()
    pq.write_table(with_stand_ins(rows), out, compression="zstd", use_dictionary=dictionary_columns(rows))
    return encode_block(BlockType.PARQUET_DATA, header, out.getvalue())


def encode_delete_block(deletes: Sequence[DeleteRecord], avro: str, instant: str, times: BlockTimes) -> bytes:
    """A delete block, with its records' event times in its SCHEMA header."""
    header = {HeaderKey.INSTANT_TIME: instant, HeaderKey.SCHEMA: with_block_times(avro, times, instant)}
    return encode_block(BlockType.DELETE, header, encode_deletes(deletes))


def _put_log(
    spec: WriteSpec, partition: str, target: Target, number: int, token: str, block: bytes
) -> tuple[WriteStat, Staged]:
    version = target.next_version + number
    if spec.storage.capabilities.late_requests:
        token = token_of_once(int(token.split("-")[0]))
    name = spec.layout.log_file_name(target.file_id, target.log_instant, version, token)
    path = f"{partition}/{name}" if partition else name
    staged = stage(spec.instant, path, spec.layout.log_marker)
    write_staged(spec.storage, staged, block)
    stat = WriteStat(
        path=path,
        partition=partition,
        file_id=target.file_id,
        prev_commit=target.base_instant,
        size=len(block),
        log_version=version,
        base_file=target.base_file,
        log_files=(*target.log_files, name),
    )
    return stat, staged


def ensure_partition(storage: Storage, partition: str, instant: str) -> None:
    """Hudi takes a directory for a partition only with this file in it (HoodiePartitionMetadata)."""
    path = f"{partition}/{PARTITION_FILE}" if partition else PARTITION_FILE
    if storage.exists(path):
        return
    depth = len(partition.split("/")) if partition else 0
    body = f"#partition metadata\ncommitTime={instant}\npartitionDepth={depth}\n"
    try:
        storage.create(path, body.encode())
    except Conflict:
        return  # another task of this commit wrote it


def write_deletes(spec: WriteSpec, batches: Iterator[pa.RecordBatch], token: str) -> list[Written]:
    """Write one Spark partition's deletes: for each file group in it, a log file with a delete block."""
    written = []
    for partition, bucket, rows in groups_of(batches, spec.config):
        target = spec.target(partition, bucket)
        if target.is_new:
            continue  # the table has no such file group, so no such key
        ensure_partition(spec.storage, partition, spec.instant)
        written.append(delete_log(spec, partition, target, token, rows))
    return written


def _greatest_per_key(records: Iterable[DeleteRecord]) -> dict[str, DeleteRecord]:
    """Of each key the delete with the greatest ordering value; one in commit order beats them all."""

    def rank(record: DeleteRecord) -> tuple[bool, Any]:
        return (True, 0) if record.natural_order else (False, record.ordering_value)

    return {record.record_key: record for record in sorted(records, key=rank)}


def delete_log(spec: WriteSpec, partition: str, target: Target, token: str, rows: pa.Table) -> Written:
    ordering = spec.config.ordering_field
    keys = rows.column(KEY).to_pylist()
    came = _COMMIT_ORDER  # of those with an event time
    late = 0
    records = [DeleteRecord(key, partition) for key in keys]
    if ordering in rows.schema.names:
        field = spec.schema.field(ordering)
        column = avro_project.project(rows.select([ordering]), pa.schema([field])).column(ordering)
        records = delete_records(keys, partition, column)
        if ordering == spec.column:
            dated = column.filter(pa.array([not record.natural_order for record in records], pa.bool_()))
            came = range_of(dated, spec.unit, "this write")
            late = count_late(dated, spec)
    # As with rows: an exact split may lie between two deletes of a key.
    last = records if spec.config.merging.exact_split else list(_greatest_per_key(records).values())
    times = _times(as_deletes(last, ordering_type(spec.schema, spec.config.ordering_fields)), spec, came)
    covered = _COMMIT_ORDER if times.undated_deletes else came
    block = encode_delete_block(last, spec.avro_schema, spec.instant, times)
    stat, staged = _put_log(spec, partition, target, 0, token, block)
    stat = stat._replace(num_deletes=len(last), min_event_time=covered.min, max_event_time=covered.max)
    return Written(stat, staged, late)
