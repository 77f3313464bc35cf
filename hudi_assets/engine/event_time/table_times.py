"""The event times of a table's log files, and the thresholds of its compactions, as far as they are known.

From write stats of our commits; what was archived, from the memory that is kept beside the table; else from a scan.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Final

from hudi_assets.engine.event_time import column_unit
from hudi_assets.engine.event_time.column_unit import column_of, ordering_of, stated_unit
from hudi_assets.engine.event_time.hidden_times import hidden_by_file, of_an_unread_file
from hudi_assets.engine.event_time.ranges import KnownOfLogs, Oldest, RangesOfParts, not_usual, oldest, spread
from hudi_assets.engine.event_time.remembering import remember, remembered_stats
from hudi_assets.engine.gc_pause import no_collecting
from hudi_assets.engine.model import NO_THRESHOLD, Action, BaseFile, LogFile
from hudi_assets.engine.model.column_unit import ColumnUnit, Source
from hudi_assets.engine.model.log_summary import LogSummary, ScannedLog, from_json, to_json
from hudi_assets.engine.model.units import MICROS_OF, EventTimeUnit, in_millis
from hudi_assets.engine.storage import SCRATCH
from hudi_assets.engine.table.files.hidden import Hidden, hidden_files
from hudi_assets.engine.table.log_files.summaries import scan_summary
from hudi_assets.engine.table.slices.parts import Part, few_at_once
from hudi_assets.engine.table.state import TableState
from hudi_assets.engine.timeline.checked_json import seal, unseal
from hudi_assets.engine.timeline.commit_metadata import EVENT_TIME, WriteStat
from hudi_assets.engine.timeline.instants import WRITES
from hudi_assets.engine.timeline.stat_columns import stats_in

SUMMARIES: Final = f"{SCRATCH}/event_times.json"
_COUNTS: Final = "counts"
# Summaries of an earlier form are scanned again: they gave partial updates without event time a bound.
_FORM: Final = 2
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
    def deciding_logs(self) -> tuple[LogFile, ...]:
        """Remaining log files by which a freshness goes: of each partition the oldest one, or all if one is undated."""
        return self.state.derive(_deciding)

    @property
    def made_by(self) -> Hashable:
        """What event times follow from, beside a partition's files and the commits that name them."""
        return self.state.derive(_made_by)

    @property
    def oldest(self) -> Mapping[str, int]:
        """The least event time (epoch ms) of each partition in which every remaining log file has one."""
        return self.state.derive(_oldest_of_partitions)

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
        remember(self, newest)


def _unit(state: TableState) -> ColumnUnit:
    return column_unit.unit_of_table(state, lambda: TableTimes(state).scanned)


def _doubt(state: TableState) -> ColumnUnit | None:
    times = TableTimes(state)
    return times.unit if times.unit.unit is None else column_unit.doubt(state, times.unit, _odd_ranges(state))


def _odd_ranges(state: TableState) -> Mapping[str, LogSummary]:
    """Of the ranges all that an event time of may be far off: nearly always none."""
    ranges = TableTimes(state).ranges
    files = [file.path for file in hidden_by_file(state)]
    for part in state.parts.values():
        found = _spread_of(state, part)
        if part.has_logs and (found is None or not column_unit.is_plausible(*found, state.read_at_ms)):
            files += [log.path for log in part.remaining_logs]
    return {path: ranges[path] for path in files}


def _oldest_of_partitions(state: TableState) -> Mapping[str, int]:
    times = TableTimes(state)
    if not times.ranges or times.doubt is not None:
        return {}
    found = {partition: _spread_of(state, part) for partition, part in state.parts.items()}
    return {partition: spread[0] for partition, spread in found.items() if spread is not None}


def _spread_of(state: TableState, part: Part) -> tuple[int, int] | None:
    return part.tell(spread, lambda: spread(part.remaining_logs, TableTimes(state).ranges), state.derive(_made_by))


def _deciding(state: TableState) -> tuple[LogFile, ...]:
    times = TableTimes(state)
    if not times.ranges or times.doubt is not None:
        return state.remaining_logs
    found = ((state.parts[partition], _oldest_of(state, state.parts[partition])) for partition in sorted(state.parts))
    return tuple(chain.from_iterable(part.remaining_logs if one is None else one[:1] for part, one in found))


def _oldest_of(state: TableState, part: Part) -> Oldest:
    return part.tell(oldest, lambda: oldest(part.remaining_logs, TableTimes(state).ranges), state.derive(_made_by))


def _scanned(state: TableState) -> Mapping[str, ScannedLog]:
    hidden = (log for log, one in hidden_by_file(state).items() if isinstance(log, LogFile) and not one.gone)
    return scan(state, (*state.remaining_logs, *hidden))


# -- log files --------------------------------------------------------------------------------


def _ranges(state: TableState) -> Mapping[str, LogSummary]:
    times = TableTimes(state)
    with suppress(OSError):  # a table that this process may only read keeps no memory
        times.remember(newest=_NEVER_ARCHIVED)
    by = state.derive(_made_by)
    known: dict[str, KnownOfLogs] = {}
    near: dict[str, LogSummary] = {}
    gone: dict[str, LogSummary] = {}
    for partition, part in state.parts.items():
        if (told := part.is_told(KnownOfLogs, by)) is not None:
            known[partition] = told
    for parts in few_at_once(part for partition, part in state.parts.items() if partition not in known):
        made = _ranges_of(times, parts)
        for part in parts:
            known[part.partition] = part.tell(KnownOfLogs, partial(made.__getitem__, part.partition), by)
            _settle(part, known[part.partition], by)
        for partition in made.keys() - state.parts.keys():  # of hidden files whose partition is gone
            gone.update(made[partition].of(()))
    for partition, part in state.parts.items():
        if first := _settle(part, known[partition], by):
            near[first[0].path] = first[1]
    return RangesOfParts(state.parts, known, near, gone)


def _settle(part: Part, known: KnownOfLogs, by: Hashable) -> Oldest:
    """Tell what every look and plan asks of the event times of a partition: its oldest log file."""
    part.tell(not_usual, lambda: not_usual(part.remaining_logs, known.of(part.remaining_logs)), by)
    part.tell(spread, lambda: spread(part.remaining_logs, known.of(part.remaining_logs)), by)
    return part.tell(oldest, lambda: oldest(part.remaining_logs, known.of(part.remaining_logs)), by)


def _made_by(state: TableState) -> Hashable:
    hidden = tuple((file, one.gone) for file, one in hidden_by_file(state).items())
    return TableTimes(state).unit if state.view.number_of_logs or hidden else None, hidden


def _ranges_of(times: TableTimes, parts: Sequence[Part]) -> Mapping[str, KnownOfLogs]:
    """By partition: what is known of the remaining log files of these, and of the hidden files."""
    state, hidden = times.state, hidden_by_file(times.state)
    found = {part.partition: _still_known(part, state.derive(_made_by)) for part in parts}
    files: dict[str, list[LogFile | BaseFile]] = {
        part.partition: [log for log in part.remaining_logs if log.path not in found[part.partition]] for part in parts
    }
    for file in hidden:
        if file.partition in found or file.partition not in state.parts:
            files.setdefault(file.partition, []).append(file)
    stats = _own_stats(times, chain.from_iterable(files.values())) if any(files.values()) else {}
    missing: dict[str, list[LogFile]] = {}
    with no_collecting(sum(map(len, files.values()))):
        for partition, logs in files.items():
            stated, missing[partition] = _of_stats(logs, stats, hidden)
            found[partition] = {**found.get(partition, {}), **stated}
    if unread := list(chain.from_iterable(missing.values())):
        known = times.unit
        scanned = times.scanned if known.source is Source.VALUES else scan(state, unread)
        for log in unread:
            found[log.partition][log.path] = _in_millis(scanned[log.path].summary, known)
    return {one: KnownOfLogs(ranges, frozenset(log.path for log in missing[one])) for one, ranges in found.items()}


def _still_known(part: Part, by: Hashable) -> dict[str, LogSummary]:
    """Of a partition that changed what commits stated of the log files that are as they were."""
    told, logs_before = part.was_told(KnownOfLogs, by), part.logs_before
    part.before.clear()
    if told is None:
        return {}
    before, ranges = {log.path: log for log in logs_before}, told.of(logs_before)
    logs = (log.path for log in part.remaining_logs if before.get(log.path) == log)
    return {path: ranges[path] for path in logs if path in ranges and path not in told.scanned}


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


def _own_stats(times: TableTimes, files: Iterable[LogFile | BaseFile]) -> Mapping[str, WriteStat]:
    """Write stats of commits of ours for some files: only those have event times of a known unit and meaning."""
    state = times.state
    if len(state.config.ordering_fields) > 1:
        return {}  # a stat does not say which of them are null
    hidden = hidden_files(state)
    bases = [part.oldest_base for part in state.parts.values() if part.oldest_base is not None]
    behind = [one.delta_commit.timestamp for one in hidden]
    if not bases and not behind:
        return {}
    since = min([*bases, *behind])
    unseen = {one.path for one in hidden if one.is_base}
    asked = {path for file in files for path in (file.path, file.original)}
    partitions = {path.rpartition("/")[0] for path in asked}
    found: dict[str, WriteStat] = {}
    for instant in reversed(state.timeline.completed(*WRITES)):
        if len(found) == len(asked) or instant.timestamp < since:
            break
        commit = state.commit(instant)
        if commit.extra.get(EVENT_TIME) == times.tag:
            # Of a log file that was appended to the last one tells.
            stats = stats_in(commit.stats, partitions)
            here = [stat for stat in stats if stat.path in asked and stat.path not in found]
            found.update((stat.path, stat) for stat in here if stat.log_version is not None or stat.path in unseen)
    return found if len(found) == len(asked) else {**remembered_stats(times), **found}


def scan(state: TableState, logs: Iterable[LogFile]) -> dict[str, ScannedLog]:
    """What log files themselves say, by headers or records, kept beside the table: log files never change.

    Of a column of integers it is their counts: they hold whatever unit is stated, and tell one that is not.
    """
    column, by_type = column_of(state)
    kind = by_type or _COUNTS
    stated = stated_unit(state)
    unit = stated.unit if stated else None
    schema = state.schema
    ordering = ordering_of(state)
    if len(ordering) > 1:
        kind = f"{kind} by {','.join(ordering)}"
    known = _read_cache(state, column, kind)
    fresh = 0
    result = {}
    for log in logs:
        key = f"{log.original}:{log.size}"
        if key not in known:
            known[key] = scan_summary(state.storage, log.path, column, unit, ordering, schema)
            fresh += 1
        result[log.path] = known[key]
    if fresh:
        # Also of what was not asked for now, and remains.
        others = (f"{log.original}:{log.size}" for log in state.remaining_logs)
        kept = {key: known[key] for key in others if key in known}
        _write_cache(state, column, kind, kept | {f"{g.original}:{g.size}": result[g.path] for g in logs})
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
