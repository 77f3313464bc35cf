"""At which instant a compaction is planned, and what that makes of its selection. Pure.

Where logs are carried over (version 6), at a new one: any selection will do. Where slices are cut by completion
times (versions 8 and 9), at a past instant C: what completed before C is compacted, what was requested after
it is in the new slice by itself. So of each file group a prefix is taken, and no log file of it may have been
written across C; file groups that need another C wait for another plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property

from hudi_assets.engine.model import Action, FileSlice, LogFile
from hudi_assets.engine.table.layout.interface import CompletionOf, Span
from hudi_assets.engine.timeline.instants import WRITES, Timeline, moved_instant


@dataclass(frozen=True, slots=True)
class NewInstant:
    """Planned at a new instant: every selection goes."""

    instant: str

    def considered(self, slice_: FileSlice) -> FileSlice:
        return slice_

    def settle(self, slice_: FileSlice, chosen: Sequence[LogFile]) -> tuple[LogFile, ...]:
        del slice_
        return tuple(chosen)

    def span(self, slice_: FileSlice, settled: tuple[LogFile, ...]) -> Span:
        del slice_, settled
        return "", "~"

    def place(self, spans: Sequence[Span]) -> tuple[str, frozenset[int]]:
        return self.instant, frozenset(range(len(spans)))


@dataclass(frozen=True)
class PastInstant:
    """Planned at a past instant.

    `floor`: the plan's instant lies above it, so that it is not before the active timeline's start (Hudi would take
    it for the start, and what is older for uncommitted). `ceiling`: the requested time of the oldest unfinished
    write: what it adds has to be in the new slice. `taken`: instants that are on the timeline.
    """

    completion_of: CompletionOf
    floor: str
    ceiling: str | None
    taken: frozenset[str]

    def considered(self, slice_: FileSlice) -> FileSlice:
        """Without log files of unfinished writes (their commits come after the plan) and of dead ones."""
        committed = (log for log in slice_.log_files if self.completion_of(log.base_instant) is not None)
        return replace(slice_, log_files=tuple(committed))

    def settle(self, slice_: FileSlice, chosen: Sequence[LogFile]) -> tuple[LogFile, ...]:
        low = self._low(slice_, chosen)
        while (crossing := self._crossing(slice_, low)) is not None:
            low = max(low, crossing)
        if not self._fits(low):
            low = self._lower(slice_)
        return tuple(log for log in slice_.log_files if (self.completion_of(log.base_instant) or "~") <= low)

    def span(self, slice_: FileSlice, settled: tuple[LogFile, ...]) -> Span:
        return self._low(slice_, settled), self._high(slice_, settled)

    def place(self, spans: Sequence[Span]) -> tuple[str, frozenset[int]]:
        """The instant that the most pressing selection needs, and all that it suits.

        The one whose remaining log files begin first is the most pressing: no later instant suits it.
        """
        end = min((high for _, high in spans), default="~")
        suited = [n for n, (low, _) in enumerate(spans) if self._free(low) < end]
        latest = max(spans[n][0] for n in suited)
        return self._free(latest), frozenset(suited)

    def _low(self, slice_: FileSlice, logs: Sequence[LogFile]) -> str:
        """The plan's instant has to lie above this."""
        completions = (self.completion_of(log.base_instant) or "" for log in logs)
        return max([self.floor, slice_.base_instant, *completions])

    def _high(self, slice_: FileSlice, logs: Sequence[LogFile]) -> str:
        """The plan's instant has to lie below this."""
        taken = {log.path for log in logs}
        kept = (log.base_instant for log in slice_.log_files if log.path not in taken)
        return min([*kept, self.ceiling or "~"], default="~")

    def _crossing(self, slice_: FileSlice, low: str) -> str | None:
        """The completion of a log file that was requested below an instant above `low`, and completed later."""
        instant = self._free(low)
        for log in slice_.log_files:
            completion = self.completion_of(log.base_instant)
            if completion is not None and log.base_instant <= instant and completion > low:
                return completion
        return None

    def _fits(self, low: str) -> bool:
        return self.ceiling is None or self._free(low) < self.ceiling

    def _lower(self, slice_: FileSlice) -> str:
        """The greatest cut below the ceiling that no log file of the slice crosses; "" where there is none."""
        least = self._low(slice_, ())
        completions = {self.completion_of(log.base_instant) or "" for log in slice_.log_files}
        for low in sorted((c for c in completions if c >= least), reverse=True):
            if self._fits(low) and self._crossing(slice_, low) is None:
                return low
        return ""

    def _free(self, low: str) -> str:
        """The first instant above `low` that is on no timeline."""
        found = self._freed.get(low)
        instant = low
        while found is None:
            # By the text, which Hudi orders by: a clock that is put back would lead below `low`.
            instant = moved_instant(instant, 1)
            if instant not in self.taken:
                self._freed[low] = found = instant
        return found

    @cached_property
    def _freed(self) -> dict[str, str]:
        """`_free`'s answers: there are many file slices, and few commits."""
        return {}


def past_instant(timeline: Timeline, completion_of: CompletionOf) -> PastInstant:
    """The placement that a timeline with completion times allows."""
    first = next((i for i in timeline.instants if i.timestamp == timeline.start), None)
    unfinished = [i.timestamp for i in timeline.pending(*WRITES, Action.LOG_COMPACTION, Action.CLUSTERING)]
    return PastInstant(
        completion_of=cache(completion_of),
        floor=(first.completion or first.timestamp) if first else "",
        ceiling=min(unfinished, default=None),
        taken=frozenset(i.timestamp for i in timeline.instants),
    )
