"""Which log files an event-time compaction takes, and when one is due. Pure.

The selection starts from the RFC's set, the log files whose minimum event time is at or below the
threshold, and is closed so that no query can change its answer: what remains must not be able to tie
with, lose to or revive against what was merged below it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from .compaction_plan import STRATEGY
from .event_time import iso
from .file_view import FileView
from .model import CarryOver, FileSlice, LogFile, NoPlan, Operation, Plan
from .timeline import Timeline

_MB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class LogSummary:
    """What selection knows of a log file without its data. Event times epoch ms, None where unknown.

    `deletes` counts delete records (None: unknown); `rollbacks` command blocks that roll an instant back.
    """

    min_event_time: int | None
    max_event_time: int | None
    deletes: int | None
    rollbacks: int = 0
    reason: str | None = None
    records: int | None = None

    @property
    def known(self) -> bool:
        return self.min_event_time is not None and self.max_event_time is not None

    @property
    def holds_nothing(self) -> bool:
        """True for a log file of command blocks alone."""
        return self.records == 0


Summaries = Mapping[str, LogSummary]


def filter_log_files(
    slice_: FileSlice, threshold: int, summaries: Summaries, *, ordered_by_event_time: bool
) -> tuple[tuple[LogFile, ...], tuple[LogFile, ...]]:
    """(to compact, to remain) of a slice's log files, each in log order.

    `summaries`: by log path. `ordered_by_event_time`: the ordering field is the event-time field; where
    it is not, only a prefix of the slice's logs can be merged without changing an answer.
    """
    logs = slice_.log_files
    known = [summaries[log.path] for log in logs]
    selected = [s.min_event_time is None or s.min_event_time <= threshold for s in known]
    if not any(selected):
        return (), logs
    selected = _close_ranges(known, selected) if ordered_by_event_time else _close_prefix(selected)
    if not all(selected) and _must_take_whole_slice(known, selected, ordered_by_event_time):
        selected = [True] * len(logs)
    chosen = tuple(log for log, take in zip(logs, selected, strict=True) if take)
    remain = tuple(log for log, take in zip(logs, selected, strict=True) if not take)
    return chosen, remain


def _close_prefix(selected: Sequence[bool]) -> list[bool]:
    last = max(i for i, take in enumerate(selected) if take)
    return [i <= last for i in range(len(selected))]


def _close_ranges(known: Sequence[LogSummary], selected: Sequence[bool]) -> list[bool]:
    """An earlier log joins unless every selected log after it lies wholly below it: then no tie can flip."""
    result = list(selected)
    highest = -math.inf
    for i in reversed(range(len(known))):
        low = known[i].min_event_time
        if not result[i] and highest > -math.inf and (low is None or highest >= low):
            result[i] = True
        if result[i]:
            high = known[i].max_event_time
            highest = max(highest, math.inf if high is None or not known[i].known else high)
    return result


def _must_take_whole_slice(known: Sequence[LogSummary], selected: Sequence[bool], ordered_by_event_time: bool) -> bool:
    """True where a merged delete could be forgotten too early, or a rollback parted from its target."""
    if any(s.rollbacks for s in known):
        return True
    lows = [s.min_event_time for s, take in zip(known, selected, strict=True) if not take]
    lowest = min((low for low in lows if low is not None), default=math.inf)
    for summary, take in zip(known, selected, strict=True):
        if take and summary.deletes != 0:
            high = summary.max_event_time
            # With another ordering field, event times do not say which records the delete beats.
            if not ordered_by_event_time or high is None or summary.deletes is None or high >= lowest:
                return True
    return False


def trigger(timeline: Timeline, *, ignore: frozenset[str] = frozenset()) -> NoPlan | None:
    """EVENT_TIME_TRIGGER: strictly one compaction at a time, and none beside an unfinished write.

    A log file that an unfinished write puts into the old slice after the plan is published would be
    lost on version 6.
    """
    for instant in timeline.pending_services:
        if instant.timestamp in ignore:
            continue
        return NoPlan(f"{instant.action} {instant.timestamp} is pending")
    for instant in timeline.inflight_writes:
        return NoPlan(f"{instant.action} {instant.timestamp} is {instant.state}")
    return None


CarryOverNames = Callable[[FileSlice, tuple[LogFile, ...], str], tuple[CarryOver, ...]]


def plan(
    view: FileView,
    summaries: Summaries,
    *,
    instant: str,
    threshold: int,
    ordered_by_event_time: bool,
    carry_over: CarryOverNames,
    extra_metadata: Mapping[str, str],
) -> Plan | NoPlan:
    """The compaction plan at `instant` for `threshold` (epoch ms), or why there is none."""
    operations = []
    for slice_ in view.latest:
        chosen, remain = filter_log_files(slice_, threshold, summaries, ordered_by_event_time=ordered_by_event_time)
        if chosen:
            carried = carry_over(slice_, remain, instant)
            operations.append(_operation(slice_, chosen, carried))
    if not operations:
        remaining = sum(len(s.log_files) for s in view.latest)
        return NoPlan(f"no log file has an event time at or below {iso(threshold)} ({remaining} log files remain)")
    return Plan(instant, threshold, tuple(operations), STRATEGY, dict(extra_metadata))


def _operation(slice_: FileSlice, chosen: tuple[LogFile, ...], carried: tuple[CarryOver, ...]) -> Operation:
    base_size = slice_.base_file.size if slice_.base_file else 0
    log_size = sum(log.size for log in chosen)
    # Java's executor needs every one of these (CompactionStrategy.captureMetrics).
    metrics = {
        "TOTAL_LOG_FILES": float(len(chosen)),
        "TOTAL_LOG_FILES_SIZE": float(log_size),
        "TOTAL_IO_READ_MB": float((base_size + log_size) // _MB),
        "TOTAL_IO_WRITE_MB": float((base_size or log_size) // _MB),
        "TOTAL_IO_MB": float((base_size + log_size) // _MB + (base_size or log_size) // _MB),
    }
    return Operation(
        partition=slice_.partition,
        file_id=slice_.file_id,
        base_instant=slice_.base_instant,
        base_file=slice_.base_file.path if slice_.base_file else None,
        log_files=tuple(log.path for log in chosen),
        carried_over=carried,
        metrics=metrics,
    )
