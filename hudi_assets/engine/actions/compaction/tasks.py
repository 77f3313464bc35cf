"""Executing a published plan: one task per file group reads, merges and writes a base file."""

from __future__ import annotations

from dataclasses import dataclass

from hudi_assets.engine.actions.compaction.residue import OperationLeaves, ResidueSpec, write_residue
from hudi_assets.engine.format.bloom import BloomSettings
from hudi_assets.engine.merging.passes import DEFAULT_MEMORY, SliceMerge
from hudi_assets.engine.model import Operation, OperationResult
from hudi_assets.engine.spark import session as spark
from hudi_assets.engine.table.base_file_writer import FILE_NAME, ROW_GROUP_BYTES, BaseFileWriter
from hudi_assets.engine.table.layout.interface import Layout
from hudi_assets.engine.table.layout.names import token_of_once
from hudi_assets.engine.table.settings.parquet import BY_DEFAULT, ParquetSettings
from hudi_assets.engine.table.slices.reader import SliceReader
from hudi_assets.engine.table.slices.streams import StoredSlice
from hudi_assets.engine.timeline.attempts import Staged, stage
from hudi_assets.engine.timeline.commit_metadata import WriteStat


@dataclass(frozen=True)
class CompactionSpec:
    """Everything a worker needs to execute one plan's operations."""

    reader: SliceReader
    layout: Layout
    instant: str
    avro_schema: str  # with meta columns
    residue: ResidueSpec | None = None
    bloom: BloomSettings | None = None  # of the filter in the base files' footers; None: they have none
    memory: int = DEFAULT_MEMORY  # bytes; a file group that needs more is merged in passes
    parquet: ParquetSettings = BY_DEFAULT


@dataclass(frozen=True, slots=True)
class Executed:
    """What an operation did, and the write stats of its base file and of its residue log, if it has one.

    `staged`: these files, as the task left them.
    """

    result: OperationResult
    stat: WriteStat
    staged: tuple[Staged, ...]
    residue: WriteStat | None = None


def execute_operation(spec: CompactionSpec, op: Operation) -> Executed:
    """Merge an operation's log files into a new base file, which the driver publishes."""
    reader, storage = spec.reader, spec.reader.storage
    # What a residue log takes is written as it stands: no dictionaries, and all columns.
    leaves = OperationLeaves(spec.residue, op) if spec.residue else None
    slice_ = StoredSlice.open(reader, op.base_file, op.log_files, dictionaries=leaves is None)
    without = FILE_NAME if leaves is None else None
    merge = SliceMerge(slice_, reader.ordering, reader.mode, spec.memory, leaves, without, reader.gaps)
    # The next execution of this plan deletes what this one left.
    token = token_of_once(int(spark.write_token().split("-")[0]))
    name = spec.layout.base_file_name(op.file_id, token, spec.instant)
    path = f"{op.partition}/{name}" if op.partition else name
    staged = stage(spec.instant, path, "CREATE")
    most = min(ROW_GROUP_BYTES, spec.memory // 4)
    with BaseFileWriter(
        storage, staged.at, reader.schema, spec.avro_schema, spec.bloom, most, spec.parquet, name=name
    ) as base_file:
        for rows in merge.rows():
            base_file.write(rows)
    size = base_file.sync()
    left = list(merge.left()) if spec.residue else []
    residue, log = write_residue(storage, left, spec.residue, op, name) if spec.residue and left else (None, None)
    stat = WriteStat(
        path=path,
        partition=op.partition,
        file_id=op.file_id,
        prev_commit=op.base_instant,
        size=size,
        num_writes=base_file.rows,
        logs_compacted=len(op.log_files),
        log_records=merge.log_records,
        log_bytes_compacted=int(op.metrics.get("TOTAL_LOG_FILES_SIZE", 0)),
        log_blocks=slice_.found.seen,
        corrupt_blocks=slice_.found.corrupt,
        rollback_blocks=slice_.found.rollbacks,
    )
    result = OperationResult(
        partition=op.partition,
        file_id=op.file_id,
        base_file=path,
        rows=base_file.rows,
        logs_compacted=len(op.log_files),
        logs_remaining=len(op.carried_over) + (residue is not None),
        log_records=merge.log_records,
        bytes_written=size,
        corrupt_blocks=slice_.found.corrupt,
    )
    return Executed(result, stat, (staged, log) if log else (staged,), residue)
