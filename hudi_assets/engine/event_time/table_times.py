"""The event times of a table's log files, and the thresholds of its compactions, as far as they are known.

From write stats of our commits; what was archived, from the memory that is kept beside the table; else from a scan.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from hudi_assets.engine.event_time.column_unit import column_of, stated_unit
from hudi_assets.engine.event_time.inference import ColumnUnit, Source
from hudi_assets.engine.event_time.summary import LogSummary, ScannedLog, from_json, to_json
from hudi_assets.engine.event_time.units import MICROS_OF, EventTimeUnit, in_millis
from hudi_assets.engine.logs.summaries import scan_summary
from hudi_assets.engine.model import NO_THRESHOLD, Action, Instant, LogFile
from hudi_assets.engine.slices.origins import origin_of
from hudi_assets.engine.storage import SCRATCH
from hudi_assets.engine.timeline.commit_metadata import BATCH_ID, EVENT_TIME, WriteStat
from hudi_assets.engine.timeline.instants import WRITES
from hudi_assets.engine.timeline.memory import (
    EventTimeMemory,
    LogMemory,
    Memory,
    newest_batches,
    stated_logs,
    write_memory,
)
from hudi_assets.engine.timeline.sealed import seal, unseal

if TYPE_CHECKING:
    from hudi_assets.engine.state import TableState

SUMMARIES: Final = f"{SCRATCH}/event_times.json"
_COUNTS: Final = "counts"
_PATH: Final = attrgetter("path")
# Archivers keep more completed writes than these, whatever their settings.
_NEVER_ARCHIVED: Final = 2


# -- log files --------------------------------------------------------------------------------


def ranges_of(state: TableState) -> Mapping[str, LogSummary]:
    """What is known of each remaining log file, by path: write stats, else the cache, else the file itself."""
    stats = _own_stats(state)
    with suppress(OSError):  # a table that this process may only read keeps no memory
        remember(state, newest=_NEVER_ARCHIVED)
    found: dict[str, LogSummary] = {}
    missing = []
    for log in state.remaining_logs:
        stat = stats.get(log.path) or stats.get(log.original)
        # A file that grew since (HDFS-like appends) is not what its stat says.
        if (
            stat is None
            or stat.size != log.size
            or (low := stat.min_event_time) is None
            or (high := stat.max_event_time) is None
        ):
            missing.append(log)
        else:
            found[log.path] = LogSummary.stated(low, high, stat.num_deletes)
    if missing:
        known = state.event_time_unit
        scanned = state.scanned if known.source is Source.VALUES else scan(state, missing)
        found |= {log.path: _in_millis(scanned[log.path].summary, known) for log in missing}
    return found


def summaries_of(state: TableState) -> Mapping[str, LogSummary]:
    """The same; all of it unknown where the unit of the event times is, or is wrongly stated."""
    ranges = state.event_time_ranges
    problem = state.event_time_doubt if ranges else None
    return ranges if problem is None else {path: _unknown(summary, problem) for path, summary in ranges.items()}


def _in_millis(scanned: LogSummary, known: ColumnUnit) -> LogSummary:
    """A scan's summary in epoch ms: of integers it has their counts."""
    unit = known.unit
    if unit is None:
        return _unknown(scanned, known)
    if unit not in MICROS_OF:
        return scanned
    undated = scanned.undated
    if undated is not None:
        undated = undated._replace(low=_floored(undated.low, unit), high=_ceiled(undated.high, unit))
    low, high = _floored(scanned.min_event_time, unit), _ceiled(scanned.max_event_time, unit)
    return scanned._replace(min_event_time=low, max_event_time=high, undated=undated)


def _floored(count: int | None, unit: EventTimeUnit) -> int | None:
    return None if count is None else in_millis(count, unit)


def _ceiled(count: int | None, unit: EventTimeUnit) -> int | None:
    return None if count is None else in_millis(count, unit, ceiled=True)


def _unknown(summary: LogSummary, problem: ColumnUnit) -> LogSummary:
    if summary.holds_nothing:
        return summary
    hint = f" {problem.hint}" if problem.hint else ""
    reason = f"{problem.problem}.{hint}".rstrip(".")
    return summary._replace(min_event_time=None, max_event_time=None, reason=reason, undated=None)


def _own_stats(state: TableState) -> Mapping[str, WriteStat]:
    """Write stats of commits of ours: only those have event times of a known unit and meaning."""
    bases = [s.base_instant for s in state.view.latest if s.log_files]
    if not bases:
        return {}
    stats = _remembered_stats(state)
    oldest = min(bases)
    for instant in state.timeline.completed(*WRITES):
        if instant.timestamp >= oldest:
            commit = state.commit(instant)
            if commit.extra.get(EVENT_TIME) == state.event_time_tag:
                logs = [stat for stat in commit.stats if stat.log_version is not None]
                stats.update(zip(map(_PATH, logs), logs, strict=True))
    return stats


def _remembered_stats(state: TableState) -> dict[str, WriteStat]:
    """Write stats of archived commits of ours."""
    oldest = state.kept_memory.oldest
    if not oldest or not state.timeline.is_archived(oldest):
        return {}
    return {
        path: _stat_of(path, log)
        for path, log in state.kept_memory.memory.of(state.event_time_tag).logs.items()
        if state.timeline.is_archived(log.instant)
    }


def scan(state: TableState, logs: Iterable[LogFile]) -> dict[str, ScannedLog]:
    """What log files themselves say, by headers or records, kept beside the table: log files never change.

    Of a column of integers it is their counts: they hold whatever unit is stated, and tell one that is not.
    """
    column, by_type = column_of(state)
    kind = by_type or _COUNTS
    stated = stated_unit(state)
    unit = stated.unit if stated else None
    known = _read_cache(state, column, kind)
    fresh = 0
    result = {}
    ordering, schema = state.config.ordering_field, state.schema
    for log in logs:
        key = f"{log.original}:{log.size}"
        if key not in known:
            known[key] = scan_summary(state.storage, log.path, column, unit, ordering, schema)
            fresh += 1
        result[log.path] = known[key]
    if fresh:
        _write_cache(state, column, kind, {f"{g.original}:{g.size}": result[g.path] for g in logs})
    return result


def _read_cache(state: TableState, column: str, kind: str) -> dict[str, ScannedLog]:
    try:
        body = unseal(state.storage.read(SUMMARIES))
        if body.get("column") != column or body.get("kind") != kind:
            return {}
        return {key: ScannedLog(from_json(value), str(last)) for key, (last, *value) in body["logs"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}  # only a cache: what cannot be read is scanned again


def _write_cache(state: TableState, column: str, kind: str, logs: Mapping[str, ScannedLog]) -> None:
    values = {key: [one.last_instant, *to_json(one.summary)] for key, one in logs.items()}
    with suppress(OSError):  # a table that this process may only read is scanned each time
        state.storage.replace(SUMMARIES, seal({"column": column, "kind": kind, "logs": values}))


# -- thresholds -------------------------------------------------------------------------------


def last_threshold_of(state: TableState) -> tuple[str, int] | None:
    """(instant, threshold) of the newest completed event-time compaction on this event-time column."""
    if state.config.event_time_field is None:
        return None
    stated = state.stated_threshold
    if stated is not None or not state.kept_memory.thresholds:
        return stated
    remembered = state.kept_memory.thresholds.get(state.event_time_tag)
    return remembered if remembered is not None and state.timeline.is_archived(remembered[0]) else None


def stated_threshold_of(state: TableState) -> tuple[str, int] | None:
    """The same, of the active timeline alone."""
    for instant in state.timeline.last_completed_first(Action.COMMIT):
        commit = state.commit(instant)
        threshold = commit.threshold if commit.extra.get(EVENT_TIME) == state.event_time_tag else None
        if commit.threshold is None:
            # Apache Hudi may have executed our plan: then only the plan knows.
            plan = state.plan(instant.timestamp)
            if plan is not None and plan.extra_metadata.get(EVENT_TIME) == state.event_time_tag:
                threshold = plan.threshold if plan.threshold != NO_THRESHOLD else None
        if threshold is not None:
            return instant.timestamp, threshold
    return None


# -- what outlives the archiving of commits ---------------------------------------------------


def archived_batches_of(state: TableState) -> Mapping[str, str]:
    """batch id → instant, of archived commits."""
    batches = state.kept_memory.memory.batches.items()
    return {batch: instant for batch, instant in batches if state.timeline.is_archived(instant)}


def remember(state: TableState, newest: int = 0) -> None:
    """Keep what the completed writes state, but for the `newest` ones, beyond their archiving."""
    completed = state.timeline.completed(*WRITES)
    settled = completed[: max(0, len(completed) - newest)]
    if not settled:
        return
    made_from = _made_from(state, settled)
    if made_from == state.kept_memory.made_from:
        return
    memory = state.kept_memory.memory.only(state.timeline.is_committed)
    batches = dict(memory.batches)
    for instant in settled:
        if batch := state.commit(instant).extra.get(BATCH_ID):
            batches[batch] = instant.timestamp
    columns = dict(memory.columns)
    if state.config.event_time_field is not None and state.event_time_unit.unit is not None:
        columns[state.event_time_tag] = _column_memory(state, settled, memory.of(state.event_time_tag))
    write_memory(state.storage, Memory(columns, newest_batches(batches), _origins(state)), made_from)


def _made_from(state: TableState, settled: Iterable[Instant]) -> str:
    """What a memory follows from: it stays the same while this does.

    The log files that remain change only with the timeline, or where somebody puts back what was lost.
    """
    by_event_time = state.config.event_time_field is not None
    files = (state.timeline_files[i.file_name] for i in settled)
    commits = [(file.name, file.size, file.modified_ms) for file in files]
    stated = (state.event_time_tag, state.stated_threshold) if by_event_time else None
    return hashlib.sha256(repr((commits, stated)).encode()).hexdigest()


def _column_memory(state: TableState, settled: tuple[Instant, ...], before: EventTimeMemory) -> EventTimeMemory:
    paths = {path for log in state.remaining_logs for path in (log.path, log.original)}
    commits = ((i.timestamp, state.commit(i)) for i in settled)
    logs = {path: log for path, log in before.logs.items() if path in paths}
    logs |= stated_logs(commits, state.event_time_tag, paths)
    stated = state.stated_threshold
    is_settled = stated is not None and stated[0] <= settled[-1].timestamp
    return EventTimeMemory(stated if is_settled else before.threshold, logs)


def _origins(state: TableState) -> dict[str, dict[str, str]]:
    """Compaction → carried-over log file → where its bytes first were written, of the log files that remain."""
    found: dict[str, dict[str, str]] = {}
    for log in state.remaining_logs if state.layout.carries_logs_over else ():
        if (origin := origin_of(state, log)) != log.path:
            found.setdefault(log.base_instant, {})[log.path] = origin
    return found


def _stat_of(path: str, log: LogMemory) -> WriteStat:
    return WriteStat(
        path=path,
        partition=path.rpartition("/")[0],
        file_id="",
        prev_commit="",
        size=log.size,
        num_deletes=log.deletes,
        min_event_time=log.min_event_time,
        max_event_time=log.max_event_time,
    )
