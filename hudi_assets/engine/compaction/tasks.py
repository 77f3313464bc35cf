"""Executing a published plan: one task per file group reads, merges and writes a base file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_assets.engine import spark
from hudi_assets.engine.avro import project as avro_project
from hudi_assets.engine.compaction.residue import ResidueSpec, merge_and_leave, write_residue
from hudi_assets.engine.errors import CorruptTable, InvalidInput, UnsupportedTable
from hudi_assets.engine.indexes.bloom import BloomSettings, bloom_footer, key_range
from hudi_assets.engine.layout.seam import Layout
from hudi_assets.engine.logs.reader import (
    NOT_READ_WIDER,
    CommittedInstants,
    LogScan,
    read_parquet,
    refuse_columns,
    scan_logs,
)
from hudi_assets.engine.merging.merge import KEY, LogRecords, merge
from hudi_assets.engine.model import MergeMode, Operation, OperationResult
from hudi_assets.engine.schema.required import with_stand_ins
from hudi_assets.engine.storage import Storage
from hudi_assets.engine.timeline.commit_metadata import WriteStat
from hudi_assets.engine.timeline.publish import marker_path

FILE_NAME = "_hoodie_file_name"
_ROW_GROUP_ROWS = 1 << 20
# From this release on Spark's files have dates of the proleptic Gregorian calendar, as ours do. In files that name no
# release, Spark 3 refuses dates before 1582 and timestamps before 1900: they may be of the Julian one.
_CALENDAR_OF_SPARK = "3.1.0"


@dataclass(frozen=True)
class SliceReader:
    """What is needed to read and merge file slices of one table, on any machine."""

    storage: Storage
    schema: pa.Schema  # with meta columns
    ordering: str  # empty where the table has no ordering field
    committed: CommittedInstants
    mode: MergeMode = MergeMode.EVENT_TIME_ORDERING

    def read(self, base_file: str | None, log_files: tuple[str, ...]) -> tuple[pa.Table, LogScan]:
        """The merged rows of a base file and log files, and what the logs held."""
        base, scan = self.scan(base_file, log_files)
        return merge(base, scan.records, self.ordering, self.schema, self.mode), scan

    def scan(self, base_file: str | None, log_files: tuple[str, ...]) -> tuple[pa.Table | None, LogScan]:
        """The rows of a base file, and the records of log files, before they are merged."""
        base = self.read_base(base_file) if base_file else None
        return base, scan_logs(self.storage, log_files, self.schema, self.ordering, self.committed)

    def read_base(self, path: str) -> pa.Table:
        """A base file's rows in the table's schema."""
        try:
            with self.storage.open(path) as file:
                table = read_parquet(file)
        except FileNotFoundError:
            raise CorruptTable(
                "A base file is missing.", where=f"{self.storage.base}: {path}", hint="Was it cleaned?"
            ) from None
        except CorruptTable as error:
            raise CorruptTable(error.what, where=f"{self.storage.base}: {path}") from error
        refuse_columns(table.schema.names, f"{self.storage.base}: {path}")
        try:
            return avro_project.project(table, self.schema)
        except InvalidInput as error:
            where = f"{self.storage.base}: {path}"
            raise UnsupportedTable(error.what, where=where, hint=NOT_READ_WIDER) from error


@dataclass(frozen=True)
class CompactionSpec:
    """Everything a worker needs to execute one plan's operations."""

    reader: SliceReader
    layout: Layout
    instant: str
    avro_schema: str  # with meta columns
    residue: ResidueSpec | None = None
    bloom: BloomSettings | None = None  # of the filter in the base files' footers; None: they have none


@dataclass(frozen=True, slots=True)
class Executed:
    """What an operation did, and the write stats of its base file and of its residue log, if it has one."""

    result: OperationResult
    stat: WriteStat
    residue: WriteStat | None = None


def execute_operation(spec: CompactionSpec, op: Operation) -> Executed:
    """Merge an operation's log files into a new base file; a marker stands before the file does."""
    base, scan = spec.reader.scan(op.base_file, op.log_files)
    left: list[LogRecords] = []
    if spec.residue is None:
        rows = merge(base, scan.records, spec.reader.ordering, spec.reader.schema, spec.reader.mode)
    else:
        rows, left = merge_and_leave(base, scan.records, spec.reader.ordering, spec.reader.schema, spec.residue, op)
    name = spec.layout.base_file_name(op.file_id, spark.write_token(), spec.instant)
    path = f"{op.partition}/{name}" if op.partition else name
    rows = rows.set_column(
        rows.schema.get_field_index(FILE_NAME),
        rows.schema.field(FILE_NAME),
        pa.repeat(pa.scalar(name), len(rows)),
    )
    storage = spec.reader.storage
    storage.create(marker_path(spec.instant, path, "CREATE"), b"")
    size = write_base_file(storage, path, rows, spec.avro_schema, spec.bloom)
    residue = write_residue(storage, left, spec.residue, op, name) if spec.residue and left else None
    stat = WriteStat(
        path=path,
        partition=op.partition,
        file_id=op.file_id,
        prev_commit=op.base_instant,
        size=size,
        num_writes=len(rows),
        logs_compacted=len(op.log_files),
        log_records=scan.log_records,
        log_bytes_compacted=int(op.metrics.get("TOTAL_LOG_FILES_SIZE", 0)),
        log_blocks=scan.blocks,
        corrupt_blocks=scan.corrupt_blocks,
        rollback_blocks=scan.rollback_blocks,
    )
    result = OperationResult(
        partition=op.partition,
        file_id=op.file_id,
        base_file=path,
        rows=len(rows),
        logs_compacted=len(op.log_files),
        logs_remaining=len(op.carried_over) + (residue is not None),
        log_records=scan.log_records,
        bytes_written=size,
        corrupt_blocks=scan.corrupt_blocks,
    )
    return Executed(result, stat, residue)


def write_base_file(storage: Storage, path: str, rows: pa.Table, avro_schema: str, bloom: BloomSettings | None) -> int:
    """Write a zstd Parquet base file with Hudi's footer keys; its size in bytes.

    The keys are those of org.apache.hudi.avro.HoodieAvroWriteSupport, and Spark's own, for the calendar.
    """
    keys = rows.column(KEY)
    footer = {
        "parquet.avro.schema": avro_schema,
        **key_range(keys),
        **(bloom_footer(keys, bloom) if bloom else {}),
        "org.apache.spark.version": _CALENDAR_OF_SPARK,
    }
    with storage.open_new(path) as file, pq.ParquetWriter(file, rows.schema, compression="zstd") as writer:
        writer.add_key_value_metadata(footer)
        writer.write_table(with_stand_ins(rows), row_group_size=_ROW_GROUP_ROWS)
    storage.sync(path)
    storage.sync(path.rpartition("/")[0])
    return storage.size(path)


@dataclass(frozen=True, slots=True)
class SliceTask:
    """One file slice to read for a query."""

    base_file: str | None
    log_files: tuple[str, ...]


def read_slice(reader: SliceReader, task: SliceTask) -> Iterator[pa.RecordBatch]:
    """A file slice's merged rows as record batches."""
    rows, _ = reader.read(task.base_file, task.log_files)
    yield from rows.to_batches(max_chunksize=1 << 16)
