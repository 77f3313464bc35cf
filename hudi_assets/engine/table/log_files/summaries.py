"""What selection needs to know of a log file: from its blocks' headers, or where those do not say, its records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from hudi_assets.engine.errors import InvalidInput, UnsupportedTable, located
from hudi_assets.engine.format.log_file.block_times import BlockTimes, block_times, stated_minimum
from hudi_assets.engine.format.log_file.codec import BlockType, LogBlock
from hudi_assets.engine.merging.merge import (
    Deletes,
    LogRecords,
    Rows,
    barriers_of,
    head_columns,
    ordering_column,
)
from hudi_assets.engine.merging.ordering import Ordering, has_nulls, values_of_field
from hudi_assets.engine.merging.winners import flags_of
from hudi_assets.engine.model.log_summary import LogSummary, ScannedLog, Since, Undated
from hudi_assets.engine.model.units import MICROS_OF, EventTimeUnit, in_counts, range_of
from hudi_assets.engine.storage import Storage
from hudi_assets.engine.table.log_files.headers import log_headers
from hudi_assets.engine.table.log_files.reader import (
    APPLIED_PROPERTY,
    StoredBlock,
    block_not_merged,
    column_names,
    count_deleted,
    data_block_table,
    is_partial,
    is_read,
)


def scan_summary(
    storage: Storage, path: str, column: str, unit: EventTimeUnit | None, ordering: Ordering, schema: pa.Schema
) -> ScannedLog:
    """A log file's event times. Blocks of any instant count: that can only widen.

    The content of a block is read only where its header does not tell: in files of other writers, and of older ones.
    Of a column of integers they are its numbers as they are in the file: `unit` only says which headers to believe,
    those of blocks that were written in the unit that is stated now (None: none is stated, so the data tells).
    """
    with located(f"{storage.base}: {path}"):
        return _scan(storage, path, column, unit, ordering, schema)


def _scan(
    storage: Storage, path: str, column: str, unit: EventTimeUnit | None, ordering: Ordering, schema: pa.Schema
) -> ScannedLog:
    by_type = None if unit in MICROS_OF else unit
    found: list[tuple[LogBlock, BlockTimes]] = []
    blocks = list(log_headers(storage, path))
    whole = [block for block in blocks if not block.is_corrupt]
    rollbacks = sum(block.type is BlockType.COMMAND for block in whole)
    not_merged = next(filter(None, map(block_not_merged, whole)), None)
    unread: str | None = None
    nulls = False
    unknown = next((f"the block at byte {block.offset} is damaged" for block in blocks if block.framed), None)
    for block in [] if unknown else whole:
        if block.type is BlockType.COMMAND:
            continue
        # Of several ordering fields a header does not say which are null.
        times = _by_header(block, column, unit) if len(ordering) < 2 else None
        if times is None:
            try:
                records, other = _to_look_at(storage, path, block, schema, ordering, column)
                not_merged = not_merged or other
                nulls = nulls or has_nulls(ordering_column(records, ordering))
                unknown = unknown or _kept_event_times(records, column)
                times = _times_of(records, block, column, by_type, ordering, unit)
            except UnsupportedTable as error:
                # Whatever it holds was committed with it. But partial updates may lack the column.
                unread = unread or str(error)
                unknown = unknown or (f"{path}: {unread}" if is_partial(block) else None)
                times = BlockTimes(f"{column}:{unit}", undated_rows=1, undated_deletes=1)
            except InvalidInput as error:  # a text that is no time: it could be any
                unknown = unknown or f"{path}: {error.what}"
                continue
        found.append((block, times))
    summary = _summary(path, found, rollbacks)
    if unread is not None:
        summary = summary._replace(reason=f"{path}: {unread}")
    if unknown is not None:
        nulls = len(ordering) > 1
        summary = LogSummary(None, None, None, rollbacks, unknown)
    if (not_merged := not_merged or unread) is not None:
        # Nor is it known which of its records are deletes.
        summary = summary._replace(deletes=None, not_merged=not_merged)
    last = max((block.instant_time for block in whole), default="")
    return ScannedLog(summary._replace(partial=any(map(is_partial, whole)), nulls=nulls), last)


def _to_look_at(
    storage: Storage, path: str, block: LogBlock, schema: pa.Schema, ordering: Ordering, column: str
) -> tuple[LogRecords, str | None]:
    if not is_read(block):
        raise UnsupportedTable(block_not_merged(block) or "")
    return StoredBlock(path, block).to_look_at(storage, schema, ordering, (*head_columns(ordering), column))


def _kept_event_times(records: LogRecords, column: str) -> str | None:
    """Why no commit bounds these records: they are partial updates that lack the column. None where they are not."""
    if isinstance(records, Deletes) or records.only is None or column in records.only or not len(records.table):
        return None
    return (
        f"it has partial updates without the column {column}, and a row that they change keeps its event time, "
        "which may be of any age, until it is compacted"
    )


def _by_header(block: LogBlock, column: str, unit: EventTimeUnit | None) -> BlockTimes | None:
    times = None if unit is None else block_times(block, f"{column}:{unit}")
    if times is None or unit not in MICROS_OF:
        return times
    # A header has epoch ms.
    return replace(
        times,
        low=None if times.low is None else in_counts(times.low, unit),
        high=None if times.high is None else in_counts(times.high, unit),
    )


def is_applied(block: LogBlock) -> bool:
    """True for deletes that were merged into the base file already (see `residue`)."""
    return block.schema is not None and APPLIED_PROPERTY in block.schema


def _times_of(
    records: LogRecords,
    block: LogBlock,
    column: str,
    by_type: EventTimeUnit | None,
    ordering: Ordering,
    unit: EventTimeUnit | None,
) -> BlockTimes:
    """A block's event times by its records; by what older headers say of rows that were beaten too."""
    times = times_of(records, column, by_type, ordering)
    # Where nothing was stated, such headers were written in milliseconds.
    written = unit or EventTimeUnit.MILLIS
    stated = stated_minimum(block, f"{column}:{written}")
    if stated is not None and by_type is None:
        stated = in_counts(stated, written)
    if stated is None or times.low is None or stated >= times.low:
        return times
    return replace(times, low=stated)


def times_of(records: LogRecords, column: str, unit: EventTimeUnit | None, ordering: Ordering) -> BlockTimes:
    """What the records of a block say of their event times; without a unit, in the column's own numbers."""
    barriers = barriers_of(records, ordering)
    if isinstance(records, Rows):
        values, deletes = records.table.column(column), count_deleted(records.table)
    else:
        count = len(records.keys)
        stated = values_of_field(records.ordering, ordering, column)
        values, deletes = pa.nulls(count) if stated is None else stated, count
    undated = flags_of(pc.is_null(values))
    # A delete in commit order counts as one without event time, whatever its row says.
    gone = undated | barriers if isinstance(records, Deletes) else barriers
    covered = range_of(values.drop_null(), unit, "the block") if len(undated) > undated.sum() else None
    return BlockTimes(
        f"{column}:{unit}",
        covered.min if covered else None,
        covered.max if covered else None,
        deletes=deletes,
        barriers=int(barriers.sum()),
        undated_rows=int((undated & ~gone).sum()),
        undated_deletes=int(gone.sum()),
    )


def _summary(path: str, read: Sequence[tuple[LogBlock, BlockTimes]], rollbacks: int) -> LogSummary:
    deletes = sum(times.deletes for _, times in read)
    found = [(block, times) for block, times in read if not is_applied(block)]
    lows = [times.low for _, times in found if times.low is not None]
    highs = [times.high for _, times in found if times.high is not None]
    low, high = min(lows, default=None), max(highs, default=None)
    rows = _since([(block, times) for block, times in found if times.undated_rows])
    gone = _since([(block, times) for block, times in found if times.undated_deletes])
    barriers = sum(times.barriers for _, times in found)
    if rows is None and gone is None:
        if low is None:
            # Nothing in it can be stale: command blocks alone, or deletes that were merged already.
            return LogSummary(None, None, deletes, rollbacks, f"{path} holds no record", records=0)
        return LogSummary(low, high, deletes, rollbacks)
    undated_rows = sum(times.undated_rows for _, times in found)
    reason = f"{path} has {undated_rows} records without event time" if rows else f"{path} has deletes without one"
    return LogSummary(None, None, deletes, rollbacks, reason, barriers=barriers, undated=Undated(rows, gone, low, high))


def _since(blocks: Sequence[tuple[LogBlock, BlockTimes]]) -> Since | None:
    """The oldest of these blocks; its clock time, where each of them states one, is the earliest."""
    if not blocks:
        return None
    clocks = [times.clock_ms for _, times in blocks if times.clock_ms is not None]
    return Since(min(block.instant_time for block, _ in blocks), min(clocks) if len(clocks) == len(blocks) else None)


def event_time_columns(storage: Storage, path: str, column: str) -> Iterator[pa.ChunkedArray]:
    """Every data block's event-time column (as written) of one log file; deletes have none."""
    with located(f"{storage.base}: {path}"):
        for block in log_headers(storage, path):
            if block.is_data and is_read(block) and not is_applied(block):
                content = storage.read_at(path, block.content_offset, block.content_size)
                whole = replace(block, content=content)
                if column in column_names(whole):
                    yield data_block_table(whole, [column]).column(column)
