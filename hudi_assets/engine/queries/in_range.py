"""The rows of a file slice that commits of a range wrote, from as few bytes as can show them.

Log blocks of instants up to the range's begin hold no row of the range, nor does a base file whose footer says so:
they can only hold records that win against rows of the range. Where their footers say that none can, they are not
read; else their keys and ordering values are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hudi_assets.engine.format.log_file.codec import BlockType
from hudi_assets.engine.merging.merge import IS_DELETED, Deletes, LogRecords, Rows, barriers_of, head_columns, merge
from hudi_assets.engine.model import MergeMode
from hudi_assets.engine.table.files.past import COMMIT_TIME
from hudi_assets.engine.table.log_files.reader import StoredBlock, find_blocks, is_partial, refuse_columns
from hudi_assets.engine.table.slices.bounds import Bounds, column_bounds, footer_bounds, has_bounds, joined
from hudi_assets.engine.table.slices.reader import SliceReader, SliceTask
from hudi_assets.engine.table.slices.rows import read_slice

_PARQUET_END = 8  # the footer's length and the magic
_MAGIC = b"PAR1"
_UNPACKED = 4  # bytes in Arrow per byte in a log block, more or less


@dataclass(frozen=True, slots=True)
class CommitRange:
    """Rows whose commit time lies in (begin, end]; no end: up to the newest.

    `late`: commits at or before `begin` that were completed after it, where a range is one of completion times.
    """

    begin: str
    end: str | None
    late: tuple[str, ...] = ()

    def of(self, rows: pa.Table) -> pa.Table:
        times = rows.column(COMMIT_TIME)
        inside = pc.greater(times, self.begin)
        if self.late:
            inside = pc.or_(inside, pc.is_in(times, pa.array(self.late, times.type)))
        if self.end is not None:
            inside = pc.and_(inside, pc.less_equal(times, self.end))
        return rows if pc.all(inside).as_py() else rows.filter(inside)


def rows_in_range(reader: SliceReader, task: SliceTask, commits: CommitRange) -> Iterator[pa.Table]:
    """The merged rows of a slice whose commit time lies in the range, in parts, in the reader's columns."""
    wide = replace(reader, columns=tuple(dict.fromkeys((*reader.shown.names, COMMIT_TIME))))
    rows = None if commits.late or _may_hold(wide, task, commits) else _from_logs(wide, task, commits)
    for table in read_slice(wide, task) if rows is None else [rows]:
        yield commits.of(table).select(reader.shown.names)


def _may_hold(reader: SliceReader, task: SliceTask, commits: CommitRange) -> bool:
    """False where the base file's footer says that each of its rows is older than the range."""
    if task.base_file is None:
        return False
    times = footer_bounds(reader.base_footer(task.base_file), COMMIT_TIME, pa.string())
    return times is None or (times.high is not None and times.high > commits.begin)


def _from_logs(reader: SliceReader, task: SliceTask, commits: CommitRange) -> pa.Table | None:
    """The merged rows of the log files, without those of the base file, whose commit times all lie before the range.

    None where they may not fit into the memory, and where partial updates and gaps are filled from base rows.
    """
    blocks = find_blocks(reader.storage, task.log_files, reader.committed).blocks
    if reader.gaps is not None or any(is_partial(stored.block) for stored in blocks):
        return None
    # From the first block on that may hold rows of the range: a row is no newer than its block.
    first = next((n for n, stored in enumerate(blocks) if stored.block.instant_time > commits.begin), len(blocks))
    if sum(stored.block.content_size for stored in blocks) * _UNPACKED > reader.memory:
        return None
    older, newer = blocks[:first], [_records(reader, stored, reader.merged) for stored in blocks[first:]]
    shown = [commits.of(block.table) for block in newer if isinstance(block, Rows)]
    if not any(len(rows) for rows in shown):
        return reader.merged.empty_table()
    if _all_lose(reader, task.base_file, older, shown):
        deletes = [_records(reader, stored, reader.merged) for stored in older if stored.block.type is BlockType.DELETE]
        if reader.mode is not MergeMode.EVENT_TIME_ORDERING or not any(
            barriers_of(block, reader.ordering).any() for block in deletes
        ):
            return _merged(reader, None, [*deletes, *newer])
    heads = pa.schema([field for field in reader.merged if field.name in (*head_columns(reader.ordering), COMMIT_TIME)])
    base = reader.read_base(task.base_file, heads) if task.base_file else None
    records = [_records(reader, stored, heads) for stored in older]
    return _merged(reader, base, [*records, *newer])


def _merged(reader: SliceReader, base: pa.Table | None, records: Sequence[LogRecords]) -> pa.Table:
    """The merge. What lacks columns is none of the range's, so that nulls stand in for them."""
    schema = reader.merged
    whole = [block if isinstance(block, Deletes) else Rows(_filled(block.table, schema)) for block in records]
    return merge(None if base is None else _filled(base, schema), whole, reader.ordering, schema, reader.mode)


def _filled(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    columns = [
        rows.column(field.name) if field.name in rows.schema.names else pa.nulls(len(rows), field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _records(reader: SliceReader, stored: StoredBlock, schema: pa.Schema) -> LogRecords:
    return stored.records(reader.storage, schema, reader.ordering)


def _all_lose(
    reader: SliceReader, base_file: str | None, older: Sequence[StoredBlock], shown: Sequence[pa.Table]
) -> bool:
    """True where every older row surely loses to each row of the range of its key.

    All or none of them: a delete in commit order among the older ones hides rows that are older still. And by 1.x's
    rules a row after one decides whether a delete is passed over: no data block may have one then (delete blocks are
    read).
    """
    if reader.mode is MergeMode.COMMIT_TIME_ORDERING:
        return True
    # Of several ordering fields, bounds of one say little.
    if len(reader.ordering) != 1 or not has_bounds((field := reader.schema.field(reader.ordering[0])).type):
        return False
    columns = [rows.column(field.name) for rows in shown if len(rows)]
    if any(column.null_count for column in columns):
        return False  # a null loses to everything
    least = joined(column_bounds(column) for column in columns).low
    return all(
        bounds is not None and (bounds.high is None or bounds.high <= least)
        for bounds in _ordering_bounds(reader, base_file, older, field)
    )


def _ordering_bounds(
    reader: SliceReader, base_file: str | None, older: Sequence[StoredBlock], field: pa.Field
) -> Iterable[Bounds | None]:
    for stored in older:
        if stored.block.type is BlockType.PARQUET_DATA:
            footer = _block_footer(reader, stored)
            told = footer is not None and not _may_delete(reader, footer)
            yield footer_bounds(footer, field.name, field.type) if told else None
        elif stored.block.is_data:
            yield None
    if base_file and reader.mode.compares_base_rows:
        yield footer_bounds(reader.base_footer(base_file), field.name, field.type)


def _may_delete(reader: SliceReader, footer: pq.FileMetaData) -> bool:
    """True where a data block may have a delete in commit order, in a mode that asks: a row that says it is deleted."""
    if reader.mode is not MergeMode.EVENT_TIME_ORDERING or IS_DELETED not in footer.schema.names:
        return False
    said = footer_bounds(footer, IS_DELETED, pa.bool_())
    return said is None or bool(said.high)


def _block_footer(reader: SliceReader, stored: StoredBlock) -> pq.FileMetaData | None:
    """A Parquet block's footer; None where it does not read as one (who reads the block says what is wrong)."""
    end = stored.block.content_offset + stored.block.content_size
    size = int.from_bytes(reader.storage.read_at(stored.path, end - _PARQUET_END, 4), "little")
    if not 0 < size <= stored.block.content_size - _PARQUET_END:
        return None
    footer = reader.storage.read_at(stored.path, end - _PARQUET_END - size, size + _PARQUET_END)
    try:
        metadata = pq.read_metadata(pa.BufferReader(_MAGIC + footer))
        refuse_columns(metadata.schema.to_arrow_schema().names, f"{reader.storage.base}: {stored.path}")
        return metadata
    except (pa.ArrowException, OSError):
        return None
