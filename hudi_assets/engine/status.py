"""Looking at a table: numbers, log files with their ranges, what is carried over. Reads only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TypeVar

import pyarrow as pa

from hudi_assets.engine.event_time.commit_bound import bounded_summaries, bounds_used
from hudi_assets.engine.event_time.freshness import compute_freshness, lowest_of
from hudi_assets.engine.event_time.hidden_times import hidden_by_file, hidden_rows
from hudi_assets.engine.event_time.lateness import data_latency_ms, no_latency_reason
from hudi_assets.engine.event_time.table_times import TableTimes
from hudi_assets.engine.model import (
    Action,
    BaseFile,
    CarryOver,
    Freshness,
    LogBar,
    LogFile,
    PartitionFreshness,
    Plan,
    PublishedPartitions,
    Stats,
)
from hudi_assets.engine.model.column_unit import ColumnUnit
from hudi_assets.engine.model.log_summary import LogSummary
from hudi_assets.engine.model.units import Latency, to_micros
from hudi_assets.engine.storage import FileInfo
from hudi_assets.engine.table.files.missing import missing_files
from hudi_assets.engine.table.files.origins import carried_over_at
from hudi_assets.engine.table.files.orphans import Orphans
from hudi_assets.engine.table.log_files.summaries import event_time_columns
from hudi_assets.engine.table.slices.parts import Counts
from hudi_assets.engine.table.state import TableState

File = TypeVar("File", LogFile, BaseFile | LogFile)


def freshness_of(state: TableState, latency: Latency | None = None) -> Freshness:
    """What the read-optimized view promises; `latency` instead of the table's own data latency."""
    latency_ms = data_latency_ms(state, latency)
    summaries = bounded_summaries(state, latency)
    hidden, untold = hidden_rows(state, summaries, latency_ms)
    missing = next((f"{one.path}: {one.what}" for one in missing_files(state)), None)
    deciding = TableTimes(state).deciding_logs
    rests_on = (*deciding, *hidden_by_file(state))
    return compute_freshness(
        deciding,
        summaries,
        now_ms=state.now_ms,
        oldest_unfinished_ms=state.oldest_unfinished_ms,
        data_latency_ms=latency_ms,
        last_threshold=TableTimes(state).last_threshold,
        no_latency_reason=no_latency_reason(state, latency),
        missing=missing or _unknown_times(state, summaries, rests_on) or untold,
        column=state.config.event_time_field,
        bounds=bounds_used(deciding, summaries, latency_ms),
        unit=column_unit(state),
        hidden=hidden,
    )


def partition_freshness_of(state: TableState, latency: Latency | None = None) -> tuple[PartitionFreshness, ...]:
    """What the read-optimized view of each partition promises, the one that is furthest behind first.

    As `freshness_of`, with the files of one partition: what remains, is hidden or is gone in another does not count.
    """
    of_table = freshness_of(state, latency)
    latency_ms, known = data_latency_ms(state, latency), bounded_summaries(state, latency)
    files = _by_partition(state.remaining_logs)
    hidden = _by_partition(hidden_by_file(state))
    gone: dict[str, str] = {}
    for one in missing_files(state):
        gone.setdefault(one.path.rpartition("/")[0], f"{one.path}: {one.what}")
    found = []
    for partition in {*state.listing, *files, *hidden, *gone}:
        logs, unseen = files.get(partition, []), hidden.get(partition, [])
        lowest, unknown = lowest_of((*logs, *unseen), known, latency_ms)
        reason = gone.get(partition) or _unknown_times(state, known, (*logs, *unseen)) or unknown
        mark = of_table.watermark
        if mark is None:
            reason = reason or of_table.reason
        freshness = None
        if reason is None and mark is not None:
            freshness = mark if lowest is None else min(mark, lowest - 1)
        behind = freshness is None or freshness < (mark or 0)
        size = sum(log.size for log in logs)
        found.append(PartitionFreshness(partition, freshness, reason, behind, len(logs), size))
    return tuple(sorted(found, key=lambda one: (one.freshness is not None, one.freshness or 0, one.partition)))


def published_partitions_of(state: TableState) -> PublishedPartitions | None:
    """The promise of each partition as a catalog is told it; None unless the table's settings ask for that."""
    if not state.config.publishes_partitions:
        return None
    of_table = freshness_of(state)
    return PublishedPartitions(
        partitions=partition_freshness_of(state),
        watermark=of_table.watermark,
        instant=state.timeline.last_write,
        computed_at=of_table.computed_at,
    )


def _by_partition(files: Iterable[File]) -> dict[str, list[File]]:
    found: dict[str, list[File]] = {}
    for file in files:
        found.setdefault(file.partition, []).append(file)
    return found


def _unknown_times(
    state: TableState, summaries: Mapping[str, LogSummary], files: Iterable[LogFile | BaseFile]
) -> str | None:
    """Why it is not known when writes began that a freshness rests on; None where it is, or rests on none.

    The oldest unfinished one bounds the watermark, a commit those of its records that have no event time. `files`: on
    which it rests.
    """
    undated = (summaries[file.path] for file in files)
    rests = bool(state.timeline.inflight_writes) or any(
        s.min_event_time is None and not s.holds_nothing for s in undated
    )
    if not rests or state.zone_problem is None:
        return None
    return f"when its writes began is not known: {state.zone_problem}"


def column_unit(state: TableState) -> ColumnUnit | None:
    """How the event-time column counts; None where there is none, or no schema yet."""
    if state.config.event_time_field is None or state.timeline.last_write is None:
        return None
    return TableTimes(state).doubt or TableTimes(state).unit


def stats_of(state: TableState) -> Stats:
    """The table in numbers: the RFC's metrics among them."""
    freshness = freshness_of(state)
    compactions = state.timeline.last_completed_first(Action.COMMIT)
    found = [part.counts for part in state.parts.values()]
    counts = Counts(*map(sum, zip(*found, strict=True))) if found else Counts()
    return Stats(
        table_version=state.config.table_version,
        freshness=freshness,
        file_groups=counts.file_groups,
        base_files=counts.base_files,
        base_bytes=counts.base_bytes,
        remaining_file_slices=counts.remaining_slices,
        remaining_log_files=counts.remaining_logs,
        remaining_bytes=counts.remaining_bytes,
        min_event_time=freshness.min_event_time,
        pending=tuple(plan.instant for plan in state.executable_plans),
        last_compaction=compactions[0].timestamp if compactions else None,
        last_commit=state.timeline.last_write,
        inflight_writes=tuple(i.timestamp for i in state.timeline.inflight_writes),
        orphans=Orphans(state).paths,
    )


def log_bars(state: TableState, plan: Plan | None) -> tuple[LogBar, ...]:
    """The remaining log files with their ranges, and those of `plan` marked as compacted."""
    summaries = bounded_summaries(state)
    bars = [_bar(summaries[log.path], log) for log in state.remaining_logs]
    if plan is None:
        return tuple(bars)
    taken = {path for op in plan.operations for path in op.log_files}
    marked = [replace(bar, compacted=True) if _path(bar) in taken else bar for bar in bars]
    gone = taken - {_path(bar) for bar in marked}
    return (*_compacted_bars(state, gone), *marked)


def _bar(summary: LogSummary, log: LogFile) -> LogBar:
    return LogBar(log.name, log.partition, summary.counts_from, summary.max_event_time, log.size, False)


def _path(bar: LogBar) -> str:
    return f"{bar.partition}/{bar.name}" if bar.partition else bar.name


def _compacted_bars(state: TableState, paths: set[str]) -> Iterator[LogBar]:
    """Bars of log files that a completed compaction merged, from the commits that wrote them."""
    for _, commit in state.commits_newest_first():
        for stat in commit.stats:
            if stat.path in paths and stat.log_version is not None:
                name = stat.path.rsplit("/", 1)[-1]
                yield LogBar(name, stat.partition, stat.min_event_time, stat.max_event_time, stat.size, True)


def carried_over(state: TableState) -> tuple[CarryOver, ...]:
    """The carried-over log files of the current slices and pending plans, link and first original.

    Those that the timeline names and that the folder shows, be it as a link to nothing: one may lack the other.
    """
    found = {c.link: c for plan in state.pending_plans for op in plan.operations for c in op.carried_over}
    current = {(s.partition, s.file_id): s.base_instant for s in state.view.latest}
    for instant in sorted(set(current.values())):
        for link, target in carried_over_at(state, instant).items():
            log = state.layout.parse_log_file(FileInfo(link, 0), link.rpartition("/")[0])
            if log is not None and current.get((log.partition, log.file_id)) == instant:
                found[link] = CarryOver(link, target)
    for log in state.remaining_logs:
        if log.original != log.path:
            found.setdefault(log.path, CarryOver(log.path, log.original))
    targets = {link.path: link.link_target for link in state.broken_links}
    for one in missing_files(state):
        if gone := targets.get(one.path):
            found.setdefault(one.path, CarryOver(one.path, gone))
    return tuple(found[link] for link in sorted(found))


def log_event_times(state: TableState) -> Iterator[tuple[LogFile, pa.ChunkedArray]]:
    """Per remaining log file, the event times (epoch ms) in its data blocks, read anew from the data.

    Where a bound stands for those that are null, it stands here too.
    """
    column, unit = TableTimes(state).column
    summaries = bounded_summaries(state)
    for log in state.remaining_logs:
        bound = summaries[log.path].counts_from
        micros = [to_micros(c, unit) for c in event_time_columns(state.storage, log.path, column)]
        values = [bound if v is None else v // 1000 for part in micros for v in part.to_pylist()]
        yield log, pa.chunked_array([pa.array(values, pa.int64())])
