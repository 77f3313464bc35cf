"""What a table's commits and log files say of late records: the learned latency, and which came too late."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

import pyarrow as pa
import pyarrow.compute as pc

from hudi_assets.engine.errors import UnsupportedTable, located
from hudi_assets.engine.event_time.column_unit import is_doubtful, ordering_of
from hudi_assets.engine.event_time.latency import LATEST_COMMITS, LogEvidence, ObservedLatency, observe
from hudi_assets.engine.event_time.table_times import TableTimes
from hudi_assets.engine.format.log_file.codec import BlockType, LogBlock, read_blocks
from hudi_assets.engine.merging.merge import Deletes
from hudi_assets.engine.merging.ordering import Values, values_of_field
from hudi_assets.engine.model import Action, LogFile
from hudi_assets.engine.model.units import EventTimeUnit, parse_latency, to_micros
from hudi_assets.engine.table.log_files.reader import block_records, column_names, data_block_table, is_read
from hudi_assets.engine.table.settings.config import AUTO, DATA_LATENCY
from hudi_assets.engine.table.state import TableState
from hudi_assets.engine.timeline.commit_metadata import EVENT_TIME, WriteStat
from hudi_assets.engine.timeline.instants import instant_ms

NO_EVIDENCE = (
    f"the data latency is learned ({DATA_LATENCY}=auto), but none of the last {LATEST_COMMITS} delta commits "
    "says when its records happened"
)


def observed_latency(state: TableState) -> ObservedLatency | None:
    """The latency that the latest delta commits show, at the table's quantile; None without evidence."""
    return observe(_evidence(state), state.config.latency_quantile)


def lateness_of(state: TableState) -> tuple[tuple[int, int], ...]:
    """(ms, records) of each log file of the latest delta commits: how late its records came at the most."""
    return tuple(
        (max(0, one.commit_ms - one.min_event_time), max(1, one.records))
        for one in _evidence(state)
        if one.min_event_time is not None
    )


def data_latency_ms(state: TableState, given: timedelta | str | int | None = None) -> int | None:
    """The data latency: given for this call, else the owner's word, or learned; None where there is neither."""
    if _is_learned(state, given):
        learned = observed_latency(state)
        return learned.latency_ms if learned is not None else None
    return state.config.data_latency_ms if given is None else parse_latency(given)


def no_latency_reason(state: TableState, given: timedelta | str | int | None = None) -> str | None:
    """Why there is no data latency, where it should be learned; None elsewhere."""
    if not _is_learned(state, given):
        return None
    doubt = TableTimes(state).doubt if state.view.number_of_logs else None
    if doubt is not None:
        return doubt.problem
    return NO_EVIDENCE if _tells_time(state) else f"the data latency cannot be learned: {state.zone_problem}"


def _is_learned(state: TableState, given: timedelta | str | int | None) -> bool:
    return state.config.data_latency_auto if given is None else given == AUTO


def _evidence(state: TableState) -> Iterator[LogEvidence]:
    """Ours from write stats; of tables that others write, what scans say of the logs that remain."""
    if not _tells_time(state):
        return
    summaries = None
    for instant in state.timeline.completed(Action.DELTA_COMMIT)[-LATEST_COMMITS:]:
        commit = state.commit(instant)
        when = commit.clock_time if state.config.clock == "commit" else _requested(state, instant.timestamp)
        if when is None:
            continue
        own = commit.extra.get(EVENT_TIME) == TableTimes(state).tag
        for stat in commit.stats:
            if stat.log_version is None:
                continue
            low = stat.min_event_time if own and not _is_doubtful(state, stat) else None
            if low is None:
                summaries = _by_path(state) if summaries is None else summaries
                low = summaries.get(stat.path)
            yield LogEvidence(instant.timestamp, when, low, stat.num_writes or stat.num_deletes)


def _tells_time(state: TableState) -> bool:
    """Whether it is known when commits were made."""
    return state.config.clock == "commit" or state.zone_problem is None


def _is_doubtful(state: TableState, stat: WriteStat) -> bool:
    low, high = stat.min_event_time, stat.max_event_time
    return low is not None and high is not None and is_doubtful(TableTimes(state).unit, low, high, state.read_at_ms)


def _requested(state: TableState, timestamp: str) -> int:
    # In an hour that comes twice: the latency that is learned is rather too long.
    return instant_ms(timestamp, state.config.timezone, second_pass=True)


def _by_path(state: TableState) -> dict[str, int | None]:
    summaries = TableTimes(state).summaries
    return {
        path: summaries[log.path].min_event_time for log in state.remaining_logs for path in (log.path, log.original)
    }


# ------------------------------------------------------------------------------- records that came too late


@dataclass(frozen=True, slots=True)
class LateLog:
    """A remaining log file with records at or below a published freshness. `file` is table-relative.

    `instants` are the delta commits that brought them, `records` counts them, deletes included;
    `min_event_time` is the file's, epoch ms.
    """

    file: str
    min_event_time: int
    instants: tuple[str, ...]
    records: int


def late_records(state: TableState, freshness_ms: int) -> tuple[LateLog, ...]:
    """Every remaining log file that reaches back to a freshness that was published, the oldest first.

    At that time nothing remained at or below it, so whatever does now came late. Reads those files.
    """
    found = []
    summaries = TableTimes(state).summaries
    for log in state.remaining_logs:
        low = summaries[log.path].min_event_time
        if low is not None and low <= freshness_ms:
            by_instant = _late_by_instant(state, log, freshness_ms)
            found.append(LateLog(log.path, low, tuple(sorted(by_instant)), sum(by_instant.values())))
    return tuple(sorted(found, key=lambda late: (late.min_event_time, late.file)))


def _late_by_instant(state: TableState, log: LogFile, freshness_ms: int) -> dict[str, int]:
    """Instant → records at or below the freshness, in blocks that readers see."""
    where = f"{state.storage.base}: {log.path}"
    with located(where):
        return _count_late(state, log, where, freshness_ms)


def _count_late(state: TableState, log: LogFile, where: str, freshness_ms: int) -> dict[str, int]:
    column, unit = TableTimes(state).column
    counts: dict[str, int] = {}
    for block in read_blocks(state.storage.read(log.path)):
        if block.is_corrupt:
            continue
        if block.type is BlockType.COMMAND:
            counts.pop(block.target_instant_time or "", None)
            continue
        if block.instant_time not in state.committed:
            continue
        if not is_read(block):
            continue
        if block.is_data:
            dated = column in column_names(block)
            late = _count(data_block_table(block, [column]).column(column), unit, freshness_ms) if dated else 0
        else:
            late = 0
            times = _times_of_deletes(block, state, column, where)
            late = 0 if times is None else _count(times, unit, freshness_ms)
        if late:
            counts[block.instant_time] = counts.get(block.instant_time, 0) + late
    return counts


def _times_of_deletes(block: LogBlock, state: TableState, column: str, where: str) -> Values | None:
    ordering = ordering_of(state)
    if column not in ordering:
        return None
    try:
        records = block_records(block, state.schema, ordering, where)
    except UnsupportedTable:  # values that are not merged here
        return None
    return values_of_field(records.ordering, ordering, column) if isinstance(records, Deletes) else None


def _count(values: pa.Array | pa.ChunkedArray, unit: EventTimeUnit, freshness_ms: int) -> int:
    limit = pa.scalar((freshness_ms + 1) * 1000, pa.int64())
    return int(pc.sum(pc.less(to_micros(values, unit), limit)).as_py() or 0)
