"""The freshness after each write, told back from the log files that remain now.

What remained after a write is what remained after the next one, less what that one wrote, and with the log files that
it compacted. So it is known as far back as commits and plans are on the active timeline. The data latency is today's,
and writes that were in progress then are not seen: the freshness that was published may have been lower.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from hudi_assets.engine.event_time.commit_bound import bounded_summaries
from hudi_assets.engine.event_time.freshness import watermark
from hudi_assets.engine.event_time.hidden_times import hidden_by_file
from hudi_assets.engine.event_time.lateness import data_latency_ms
from hudi_assets.engine.event_time.table_times import TableTimes
from hudi_assets.engine.model import Action, Instant, PastFreshness
from hudi_assets.engine.past.compactions import completed_ms, past_compactions
from hudi_assets.engine.table.state import TableState
from hudi_assets.engine.timeline.commit_metadata import EVENT_TIME


@dataclass(frozen=True, slots=True)
class _Log:
    """`lowest`: its minimum event time; None where that is not known. `empty`: it holds no rows.

    `hidden`: it bounds the freshness and does not remain.
    """

    lowest: int | None
    size: int
    empty: bool = False
    hidden: bool = False


@dataclass(slots=True)
class _Remaining:
    """Log files that remain, by the path where their bytes first were written, and the smallest event time in them."""

    logs: dict[str, _Log] = field(default_factory=dict)
    size: int = 0
    count: int = 0
    _unknown: int = 0
    _lowest: list[tuple[int, str]] = field(default_factory=list)

    def add(self, path: str, log: _Log) -> None:
        self.remove(path)
        self.logs[path] = log
        self._sum(log, 1)
        if log.lowest is not None:
            heapq.heappush(self._lowest, (log.lowest, path))
        elif not log.empty:
            self._unknown += 1

    def remove(self, path: str) -> None:
        log = self.logs.pop(path, None)
        if log is not None:
            self._sum(log, -1)
            self._unknown -= log.lowest is None and not log.empty

    def _sum(self, log: _Log, sign: int) -> None:
        if not log.hidden:
            self.size += sign * log.size
            self.count += sign

    def freshness(self, mark: int | None) -> int | None:
        """With this watermark; None without one, and where an event time is not known."""
        while self._lowest and not self._stands(*self._lowest[0]):
            heapq.heappop(self._lowest)
        if mark is None or self._unknown:
            return None
        return min(mark, self._lowest[0][0] - 1) if self._lowest else mark

    def _stands(self, lowest: int, path: str) -> bool:
        log = self.logs.get(path)
        return log is not None and log.lowest == lowest


@dataclass(frozen=True)
class _Past:
    """What is needed of the reading, found once."""

    state: TableState
    roots: Mapping[str, str]
    stated: Mapping[str, _Log]
    clocks: Mapping[str, int]
    marks: Mapping[str, int]
    latency: int | None

    def root(self, path: str) -> str:
        for _ in self.roots:
            if path not in self.roots:
                break
            path = self.roots[path]
        return path

    def mark(self, at_ms: int, instant: str | None) -> int | None:
        """The watermark: by the data latency, else by the last threshold up to an instant's write."""
        if self.latency is not None:
            return watermark(at_ms, None, self.latency)
        return self.marks.get(instant or "")


def past_freshness(state: TableState) -> tuple[PastFreshness, ...]:
    """Around each delta commit and compaction since the last write of another kind, oldest first."""
    return tuple(reversed(tuple(back_in_time(state))))


def back_in_time(state: TableState) -> Iterator[PastFreshness]:
    """The same, newest first, as far as somebody asks."""
    writes = _writes(state)
    past = _past(state, writes)
    remaining = _now(past)
    for number in range(len(writes) - 1, -1, -1):
        instant, earlier = writes[number], writes[number - 1].timestamp if number else None
        at = past.clocks.get(instant.timestamp)
        if at is None:
            return
        after = remaining.freshness(past.mark(at, instant.timestamp))
        count, size = remaining.count, remaining.size
        _undo(past, remaining, instant)
        before = remaining.freshness(past.mark(at, earlier))
        is_compaction = instant.action is Action.COMMIT
        yield PastFreshness(instant.timestamp, is_compaction, at, before, after, count, size)


def _writes(state: TableState) -> list[Instant]:
    """In the order in which they were completed. What replaced or restored file groups ends what can be told back."""
    other = [i.timestamp for i in state.timeline.completed(Action.REPLACE_COMMIT, Action.RESTORE)]
    writes = state.timeline.completed(Action.COMMIT, Action.DELTA_COMMIT)
    told = [i for i in writes if not other or i.timestamp > max(other)]
    return sorted(told, key=lambda i: (completed_ms(state, i), i.timestamp))


def _past(state: TableState, writes: list[Instant]) -> _Past:
    roots: dict[str, str] = {}
    stated: dict[str, _Log] = {}
    tag = TableTimes(state).tag if state.config.event_time_field else None
    for instant in writes:
        plan = state.plan(instant.timestamp) if instant.action is Action.COMMIT else None
        for op in plan.operations if plan else ():
            roots |= {
                carried.link: carried.made_from for carried in op.carried_over if carried.made_from != carried.link
            }
        commit = state.commit(instant)
        known = tag is not None and commit.extra.get(EVENT_TIME) == tag
        for stat in commit.stats:
            if stat.log_version is not None:
                stated[stat.path] = _Log(stat.min_event_time if known else None, stat.size)
    return _Past(state, roots, stated, _clocks(state, writes), _thresholds(state, writes), data_latency_ms(state))


def _now(past: _Past) -> _Remaining:
    remaining = _Remaining()
    summaries = bounded_summaries(past.state)
    hidden = hidden_by_file(past.state)
    for log in (*past.state.remaining_logs, *hidden):
        known = summaries[log.path]
        entry = _Log(known.counts_from, log.size, known.holds_nothing, hidden=log in hidden)
        remaining.add(past.root(log.path), entry)
    return remaining


def _undo(past: _Past, remaining: _Remaining, instant: Instant) -> None:
    """What remained before a write, from what did after it."""
    for stat in past.state.commit(instant).stats:
        remaining.remove(stat.path)  # a carried-over one is known by another path, and was there before
    if instant.action is Action.DELTA_COMMIT:
        return
    plan = past.state.plan(instant.timestamp)
    for path in (path for op in plan.operations for path in op.log_files) if plan else ():
        root = past.root(path)
        remaining.add(root, past.stated.get(root) or past.stated.get(path) or _Log(None, 0))


def _clocks(state: TableState, writes: list[Instant]) -> dict[str, int]:
    """When each was completed by the table's clock: in a replayed stream the last delta commit's up to then."""
    if state.config.clock == "system":
        return {instant.timestamp: completed_ms(state, instant) for instant in writes}
    clocks: dict[str, int] = {}
    last = None
    for instant in writes:
        stated = state.commit(instant).clock_time
        last = last if stated is None else max(stated, last or stated)
        if last is not None:  # else the commit that stated it is archived
            clocks[instant.timestamp] = last
    return clocks


def _thresholds(state: TableState, writes: list[Instant]) -> dict[str, int]:
    """The last threshold that was compacted up to when each write was completed."""
    of = {one.instant: one.threshold for one in past_compactions(state)}
    found: dict[str, int] = {}
    last = None
    for instant in writes:
        last = of.get(instant.timestamp) or last
        if last is not None:
            found[instant.timestamp] = last
    return found
