"""Records without event time: what their commit says of when they happened.

A delete without ordering value (SQL DELETE, `operation=delete`) has no event time, nor has a row whose column is null.
But the watermark believes that every event is committed at most a data latency after it happened. By the same word,
what was committed at c happened at c less the data latency or later. That bound stands for the event time that is
missing: in the freshness, and in the selection of log files. An owner who says that a delete counts at its commit makes
it c itself.

No commit bounds a change of a row that keeps its event time: that may be of any age, and the view shows the row as it
was. So it is with partial updates that lack the column (their summary says so), and where a null means "keep".

c is the request of the commit, its instant: the watermark is counted back from the oldest unfinished request too, and a
write's records were there when it was completed, which is later. In a replayed stream it is the commit's clock time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from hudi_assets.engine.errors import CorruptTable
from hudi_assets.engine.event_time.hidden_times import hidden_by_file
from hudi_assets.engine.event_time.lateness import data_latency_ms
from hudi_assets.engine.event_time.ranges import Over
from hudi_assets.engine.event_time.table_times import TableTimes
from hudi_assets.engine.model import BoundRule, CommitBound, LogFile
from hudi_assets.engine.model.log_summary import Bound, LogSummary, Since, Summaries, Undated
from hudi_assets.engine.model.units import Latency
from hudi_assets.engine.table.state import TableState
from hudi_assets.engine.timeline.instants import WRITES, instant_ms

_SECONDS: Final = 14
_KEPT: Final = (
    "by the merge of this table a null may leave the event time that the row has, which may be of any age, "
    "until it is compacted"
)


def bounded_summaries(state: TableState, given: Latency | None = None) -> Summaries:
    """The table's summaries, with bounds for log files whose records have no event time.

    `given`: the data latency of this call, in place of the table's own.
    """
    times = TableTimes(state)
    summaries = times.summaries
    files = (*times.deciding_logs, *hidden_by_file(state))
    undated = {file.path: s for file in files if (s := summaries[file.path]).undated is not None}
    if not undated:
        return summaries
    bounds = _Bounds(state, data_latency_ms(state, given))
    return Over({path: bounds.on(summary) for path, summary in undated.items()}, summaries)


def bounds_used(logs: Iterable[LogFile], summaries: Summaries, latency_ms: int | None) -> tuple[CommitBound, ...]:
    """By which rule, for how many log files and from when on the bounds of these stand."""
    found: dict[BoundRule, list[int]] = {}
    for log in logs:
        bound = summaries[log.path].bound
        if bound is not None:
            found.setdefault(bound.rule, []).append(bound.at)
    return tuple(
        CommitBound(rule, latency_ms if rule is BoundRule.LATENCY else None, len(found[rule]), min(found[rule]))
        for rule in sorted(found)
    )


@dataclass(frozen=True)
class _Bounds:
    state: TableState
    latency_ms: int | None

    def on(self, summary: LogSummary) -> LogSummary:
        """The summary of a log file with records without event time; with the bound for the file, if there is one."""
        if summary.undated is None:
            return summary
        if summary.undated.rows is not None and self.state.config.merging.null_may_keep:
            return summary._replace(undated=None, reason=f"{summary.reason}, and {_KEPT}")
        return summary._replace(bound=self._of(summary.undated))

    def _of(self, undated: Undated) -> Bound | None:
        """None where one of the file's records may have happened at any time."""
        found = []
        if undated.rows is not None:
            found.append(self._less_latency(undated.rows))
        if undated.deletes is not None:
            at_commit = self.state.config.deletes_count_at_commit and not self._has_other_event_times
            found.append(self._at_commit(undated.deletes) if at_commit else self._less_latency(undated.deletes))
        known = [bound for bound in found if bound is not None]
        if len(known) < len(found):
            return None
        lowest = min(known)
        return lowest if undated.low is None else lowest._replace(at=min(lowest.at, undated.low))

    @property
    def _has_other_event_times(self) -> bool:
        """True where deletes may have an event time that is not read, as one of several ordering values."""
        config = self.state.config
        return config.merging.not_merged is not None and len(config.ordering_fields) != 1

    def _less_latency(self, since: Since) -> Bound | None:
        at = self._committed_ms(since)
        if at is None or self.latency_ms is None:
            return None
        return Bound(at - self.latency_ms, BoundRule.LATENCY)

    def _at_commit(self, since: Since) -> Bound | None:
        at = self._committed_ms(since)
        return None if at is None else Bound(at, BoundRule.COMMIT)

    def _committed_ms(self, since: Since) -> int | None:
        if self.state.config.clock == "system":
            # In another zone than the writers' nobody knows when they committed.
            return None if self.state.zone_problem else requested_ms(since.instant, self.state.config.timezone)
        return since.clock_ms if since.clock_ms is not None else self._clock_times.get(since.instant)

    @cached_property
    def _clock_times(self) -> Mapping[str, int]:
        """Of commits on the active timeline: older log files of ours do not say."""
        found = {}
        for instant in self.state.timeline.completed(*WRITES):
            clock_ms = self.state.commit(instant).clock_time
            if clock_ms is not None:
                found[instant.timestamp] = clock_ms
        return found


def requested_ms(instant: str, timezone: str) -> int | None:
    """The earliest time, epoch ms, that an instant can stand for; None where it is no time at all."""
    try:
        ms = instant_ms(instant, timezone)
    except CorruptTable:
        return None
    if ms <= 0:
        return None
    # Of an hour that comes twice when daylight saving ends, `instant_ms` has taken the first.
    return ms - (ms % 1000 if len(instant) == _SECONDS else 0)
