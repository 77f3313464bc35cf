"""The event times of a table's log files, and the thresholds of its compactions, as far as they are known.

From write stats of our commits; what was archived, from the memory that is kept beside the table; else from a scan.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from operator import attrgetter
from typing import Final

from hudi_assets.engine.event_time import column_unit
from hudi_assets.engine.event_time.column_unit import column_of, stated_unit
from hudi_assets.engine.event_time.hidden_times import hidden_by_file, of_an_unread_file
from hudi_assets.engine.gc_pause import no_collecting
from hudi_assets.engine.model import NO_THRESHOLD, Action, BaseFile, Instant, LogFile
from hudi_assets.engine.model.column_unit import ColumnUnit, Source
from hudi_assets.engine.model.log_summary import LogSummary, ScannedLog, from_json, to_json
from hudi_assets.engine.model.units import MICROS_OF, EventTimeUnit, in_millis
from hudi_assets.engine.storage import SCRATCH
from hudi_assets.engine.table.files.hidden import Hidden, all_hidden_files, hidden_files
from hudi_assets.engine.table.files.origins import origin_of
from hudi_assets.engine.table.log_files.summaries import scan_summary
from hudi_assets.engine.table.state import TableState
from hudi_assets.engine.timeline.archived_facts import (
    EventTimeMemory,
    HiddenMemory,
    LogMemory,
    Memory,
    newest_batches,
    stated_logs,
    write_memory,
)
from hudi_assets.engine.timeline.checked_json import seal, unseal
from hudi_assets.engine.timeline.commit_metadata import BATCH_ID, EVENT_TIME, WriteStat
from hudi_assets.engine.timeline.instants import WRITES

SUMMARIES: Final = f"{SCRATCH}/event_times.json"
_COUNTS: Final = "counts"
# Summaries of an earlier form are scanned again: they gave partial updates without event time a bound.
_FORM: Final = 2
_PATH: Final = attrgetter("path")
# Archivers keep more completed writes than these, whatever their settings.
_NEVER_ARCHIVED: Final = 2


@dataclass(frozen=True)
class TableTimes:
    """Event times of one reading of a table. Each is computed when it is first asked for, and kept by the reading."""

    state: TableState

    @property
    def unit(self) -> ColumnUnit:
        """The event-time column and how it counts; `InvalidInput` where the settings name none that fits."""
        return self.state.derive(_unit)

    @property
    def column(self) -> tuple[str, EventTimeUnit]:
        """The same, where the unit is known; `InvalidInput` where it is not."""
        known = self.unit
        if known.unit is None:
            raise known.refusal(self.state.storage.base)
        return known.column, known.unit

    @property
    def doubt(self) -> ColumnUnit | None:
        """Why nothing can be promised or chosen on the event times: their unit is unknown, or stated wrongly."""
        return self.state.derive(_doubt)

    @property
    def tag(self) -> str:
        """Column and unit, as our commits state them: ranges and thresholds of another column say nothing."""
        return self.unit.tag

    @property
    def scanned(self) -> Mapping[str, ScannedLog]:
        """What every remaining or hidden log file that is there says by itself: the cache, else a scan."""
        return self.state.derive(_scanned)

    @property
    def ranges(self) -> Mapping[str, LogSummary]:
        """What is known of each remaining log file and hidden file, by path: stats, the cache, else the file itself."""
        return self.state.derive(_ranges)

    @property
    def summaries(self) -> Mapping[str, LogSummary]:
        """The same; all of it unknown where the unit of the event times is, or is wrongly stated."""
        return self.state.derive(_summaries)

    @property
    def last_threshold(self) -> tuple[str, int] | None:
        """(instant, threshold) of the newest completed event-time compaction on this event-time column."""
        return self.state.derive(_last_threshold)

    @property
    def stated_threshold(self) -> tuple[str, int] | None:
        """The same, of the active timeline alone."""
        return self.state.derive(_stated_threshold)

    def remember(self, newest: int = 0) -> None:
        """Keep what the completed writes state, but for the `newest` ones, beyond their archiving."""
        _remember(self, newest)


def _unit(state: TableState) -> ColumnUnit:
    return column_unit.unit_of_table(state, lambda: TableTimes(state).scanned)


def _doubt(state: TableState) -> ColumnUnit | None:
    times = TableTimes(state)
    return times.unit if times.unit.unit is None else column_unit.doubt(state, times.unit, times.ranges)


def _scanned(state: TableState) -> Mapping[str, ScannedLog]:
    hidden = (log for log, one in hidden_by_file(state).items() if isinstance(log, LogFile) and not one.gone)
    return scan(state, (*state.remaining_logs, *hidden))


# -- log files --------------------------------------------------------------------------------


def _ranges(state: TableState) -> Mapping[str, LogSummary]:
    times = TableTimes(state)
    stats = _own_stats(times)
    with suppress(OSError):  # a table that this process may only read keeps no memory
        times.remember(newest=_NEVER_ARCHIVED)
    hidden = hidden_by_file(state)
    logs = (*state.remaining_logs, *hidden)
    with no_collecting(len(logs)):
        found, missing = _of_stats(logs, stats, hidden)
    if missing:
        known = times.unit
        scanned = times.scanned if known.source is Source.VALUES else scan(state, missing)
        found |= {log.path: _in_millis(scanned[log.path].summary, known) for log in missing}
    return found


def _of_stats(
    logs: Iterable[LogFile | BaseFile], stats: Mapping[str, WriteStat], hidden: Mapping[LogFile | BaseFile, Hidden]
) -> tuple[dict[str, LogSummary], list[LogFile]]:
    """What write stats say, by path, and the log files that have to be read."""
    found: dict[str, LogSummary] = {}
    missing: list[LogFile] = []
    for log in logs:
        stat = stats.get(log.path) or stats.get(log.original)
        # A file that grew since (HDFS-like appends) is not what its stat says.
        if (
            stat is None
            or stat.size != log.size
            or (low := stat.min_event_time) is None
            or (high := stat.max_event_time) is None
        ):
            if isinstance(log, LogFile) and not (log in hidden and hidden[log].gone):
                missing.append(log)
            else:
                found[log.path] = of_an_unread_file(hidden[log])
        else:
            found[log.path] = LogSummary.stated(low, high, stat.num_deletes)
    return found, missing


def _summaries(state: TableState) -> Mapping[str, LogSummary]:
    times = TableTimes(state)
    ranges = times.ranges
    problem = times.doubt if ranges else None
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


def _own_stats(times: TableTimes) -> Mapping[str, WriteStat]:
    """Write stats of commits of ours: only those have event times of a known unit and meaning."""
    state = times.state
    bases = [s.base_instant for s in state.view.latest if s.log_files]
    hidden = hidden_files(state)
    behind = [one.delta_commit.timestamp for one in hidden]
    unseen = {one.path for one in hidden if one.is_base}
    if not bases and not behind:
        return {}
    stats = _remembered_stats(times)
    oldest = min([*bases, *behind])
    for instant in state.timeline.completed(*WRITES):
        if instant.timestamp >= oldest:
            commit = state.commit(instant)
            if commit.extra.get(EVENT_TIME) == times.tag:
                logs = [stat for stat in commit.stats if stat.log_version is not None or stat.path in unseen]
                stats.update(zip(map(_PATH, logs), logs, strict=True))
    return stats


def _remembered_stats(times: TableTimes) -> dict[str, WriteStat]:
    """Write stats of archived commits of ours."""
    state = times.state
    oldest = state.archived_facts.oldest
    if not oldest or not state.timeline.is_archived(oldest):
        return {}
    return {
        path: _stat_of(path, log)
        for path, log in state.archived_facts.memory.of(times.tag).logs.items()
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
    schema = state.schema
    # Where nothing is merged here, it need not be a column.
    ordering = state.config.ordering_field if state.config.ordering_field in schema.names else ""
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
        if (body.get("form"), body.get("column"), body.get("kind")) != (_FORM, column, kind):
            return {}
        return {key: ScannedLog(from_json(value), str(last)) for key, (last, *value) in body["logs"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}  # only a cache: what cannot be read is scanned again


def _write_cache(state: TableState, column: str, kind: str, logs: Mapping[str, ScannedLog]) -> None:
    values = {key: [one.last_instant, *to_json(one.summary)] for key, one in logs.items()}
    with suppress(OSError):  # a table that this process may only read is scanned each time
        state.storage.replace(SUMMARIES, seal({"form": _FORM, "column": column, "kind": kind, "logs": values}))


# -- thresholds -------------------------------------------------------------------------------


def _last_threshold(state: TableState) -> tuple[str, int] | None:
    if state.config.event_time_field is None:
        return None
    times, facts = TableTimes(state), state.archived_facts
    stated = times.stated_threshold
    if stated is not None or not facts.thresholds:
        return stated
    remembered = facts.thresholds.get(times.tag)
    return remembered if remembered is not None and state.timeline.is_archived(remembered[0]) else None


def _stated_threshold(state: TableState) -> tuple[str, int] | None:
    times = TableTimes(state)
    for instant in state.timeline.last_completed_first(Action.COMMIT):
        commit = state.commit(instant)
        threshold = commit.threshold if commit.extra.get(EVENT_TIME) == times.tag else None
        if commit.threshold is None:
            # Apache Hudi may have executed our plan: then only the plan knows.
            plan = state.plan(instant.timestamp)
            if plan is not None and plan.extra_metadata.get(EVENT_TIME) == times.tag:
                threshold = plan.threshold if plan.threshold != NO_THRESHOLD else None
        if threshold is not None:
            return instant.timestamp, threshold
    return None


# -- what outlives the archiving of commits ---------------------------------------------------


def archived_batches(state: TableState) -> Mapping[str, str]:
    """batch id → instant, of archived commits."""
    batches = state.archived_facts.memory.batches.items()
    return {batch: instant for batch, instant in batches if state.timeline.is_archived(instant)}


def _remember(times: TableTimes, newest: int) -> None:
    state = times.state
    completed = state.timeline.completed(*WRITES)
    settled = completed[: max(0, len(completed) - newest)]
    if not settled:
        return
    made_from = _made_from(times, settled)
    if made_from == state.archived_facts.made_from:
        return
    memory = state.archived_facts.memory.only(state.timeline.is_committed)
    batches = dict(memory.batches)
    for instant in settled:
        if batch := state.commit(instant).extra.get(BATCH_ID):
            batches[batch] = instant.timestamp
    columns = dict(memory.columns)
    if state.config.event_time_field is not None and times.unit.unit is not None:
        columns[times.tag] = _column_memory(times, settled, memory.of(times.tag))
    write_memory(state.storage, Memory(columns, newest_batches(batches), _origins(state), _hidden(state)), made_from)


def _made_from(times: TableTimes, settled: Iterable[Instant]) -> str:
    """What a memory follows from: it stays the same while this does.

    The log files that remain change only with the timeline, or where somebody puts back what was lost.
    """
    state = times.state
    by_event_time = state.config.event_time_field is not None
    files = (state.timeline_files[i.file_name] for i in settled)
    commits = [(file.name, file.size, file.modified_ms) for file in files]
    stated = (times.tag, times.stated_threshold) if by_event_time else None
    hidden = [log.path for log in all_hidden_files(state)]
    facts = (commits, stated, hidden) if hidden else (commits, stated)
    return hashlib.sha256(repr(facts).encode()).hexdigest()


def _column_memory(times: TableTimes, settled: tuple[Instant, ...], before: EventTimeMemory) -> EventTimeMemory:
    state = times.state
    paths = {path for log in state.remaining_logs for path in (log.path, log.original)}
    paths.update(log.path for log in all_hidden_files(state))
    commits = ((i.timestamp, state.commit(i)) for i in settled)
    logs = {path: log for path, log in before.logs.items() if path in paths}
    logs |= stated_logs(commits, times.tag, paths)
    stated = times.stated_threshold
    is_settled = stated is not None and stated[0] <= settled[-1].timestamp
    return EventTimeMemory(stated if is_settled else before.threshold, logs)


def _origins(state: TableState) -> dict[str, dict[str, str]]:
    """Compaction → carried-over log file → where its bytes first were written, of the log files that remain."""
    found: dict[str, dict[str, str]] = {}
    for log in state.remaining_logs if state.layout.makes_links else ():
        if (origin := origin_of(state, log)) != log.path:
            found.setdefault(log.base_instant, {})[log.path] = origin
    return found


def _hidden(state: TableState) -> dict[str, HiddenMemory]:
    """Also what was written again: that is said by the settings of one process, and may be taken back."""
    return {
        file.path: HiddenMemory(
            file.delta_commit.timestamp,
            file.completion,
            file.stat.size,
            file.behind.timestamp,
            file.behind.action.value,
            file.stat.prev_commit,
        )
        for file in all_hidden_files(state)
    }


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
