"""What a compaction takes: what every strategy answers, and event-time selection. Pure.

The selection starts from the RFC's set, the log files whose minimum event time is at or below the
threshold, and is closed so that no query can change its answer: what remains must not be able to tie
with, lose to or revive against what was merged below it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import compress
from operator import not_
from typing import Protocol

from hudi_assets.engine.actions.compaction.candidates import (
    Candidate,
    SlicesOf,
    WholeCandidate,
    in_few_bytes,
    metrics_of,
)
from hudi_assets.engine.actions.compaction.closure import MergeRule, close
from hudi_assets.engine.model import NO_THRESHOLD, CarryOver, FileSlice, LogFile, NoPlan, Operation, Plan
from hudi_assets.engine.model.log_summary import LogSummary as LogSummary
from hudi_assets.engine.model.log_summary import Summaries as Summaries
from hudi_assets.engine.model.plans import StrategyName
from hudi_assets.engine.model.units import iso
from hudi_assets.engine.table.layout.interface import Placement
from hudi_assets.engine.table.slices.file_view import FileView

_NO_LOGS: tuple[LogFile, ...] = ()


def _unknown(slice_: FileSlice) -> float:
    return math.inf


def filter_log_files(
    slice_: FileSlice, threshold: int, summaries: Summaries, rule: MergeRule
) -> tuple[tuple[LogFile, ...], tuple[LogFile, ...]]:
    """(to compact, to remain) of a slice's log files, each in log order. `summaries`: by log path."""
    logs = slice_.log_files
    known = [summaries[log.path] for log in logs]
    selected = [((low := s.counts_from) is None or low <= threshold) and not s.holds_tombstones_only for s in known]
    if not any(selected):
        return (), logs
    selected = close(known, selected, rule)
    return tuple(compress(logs, selected)), tuple(compress(logs, map(not_, selected)))


class CompactionStrategy(Protocol):
    """What a compaction takes (org.apache.hudi.table.action.compact.strategy.CompactionStrategy).

    Asked in this order: which partitions, which log files of each slice (the RFC's addition), and which
    of the slices in which order.
    """

    @property
    def name(self) -> str: ...
    def filter_partition_paths(self, partitions: Sequence[str]) -> list[str]: ...
    def filter_log_files(self, slice_: FileSlice) -> tuple[tuple[LogFile, ...], tuple[LogFile, ...]]: ...
    def needed(self, slice_: FileSlice) -> tuple[LogFile, ...]:
        """What of a slice must be taken, where not all of what `filter_log_files` says can be."""
        ...

    def closed(self, slice_: FileSlice, chosen: Sequence[LogFile]) -> tuple[LogFile, ...]:
        """`chosen` and what else of the slice must be taken with it, so that no answer changes."""
        ...

    def lowest_of(self, chosen: Iterable[LogFile]) -> float:
        """What keeps a plan without these from a greater threshold: of a candidate it is kept (`Candidate.lowest`)."""
        ...

    def order_and_filter(self, candidates: Sequence[Candidate]) -> list[Candidate]: ...
    def threshold_of(self, left_out: Sequence[Candidate]) -> int:
        """The threshold that a plan without these may claim, epoch ms, or NO_THRESHOLD."""
        ...

    def nothing(self, view: FileView, candidates: Sequence[Candidate]) -> str:
        """Why there is no plan, in words."""
        ...


@dataclass(frozen=True)
class EventTimeBased:
    """This project's strategy: every log file with event times at or below the threshold (epoch ms).

    Bounds cut the plan from the oldest event time on: at most `target_partitions` partitions, and file
    slices until their I/O (MB) uses `target_io` up (Hudi's rule: the slice that crosses it is the last).
    `exact_split`: the execution leaves records above the threshold that the plan claims out of base files.
    `whole_slices`: of a slice with something to take all is taken. Its base file is rewritten anyway, and then nothing
    of it is due until rows come that are newer than the whole compaction. `oldest`: the least event time of the
    partitions in which each log file has one. `rule`: of every slice, but for `base_highest`: the greatest event time
    in a slice's base file, infinity where it is unknown.
    """

    threshold: int
    summaries: Summaries
    rule: MergeRule
    target_io: int | None = None
    target_partitions: int | None = None
    exact_split: bool = False
    base_highest: Callable[[FileSlice], float] = _unknown
    whole_slices: bool = False
    oldest: Mapping[str, int] = field(default_factory=dict)
    name: str = StrategyName.EVENT_TIME.class_name

    def filter_partition_paths(self, partitions: Sequence[str]) -> list[str]:
        """All but those in which nothing is due: there may be many, and none of their slices is looked at."""
        return [one for one in partitions if self.oldest.get(one, self.threshold) <= self.threshold]

    def filter_log_files(self, slice_: FileSlice) -> tuple[tuple[LogFile, ...], tuple[LogFile, ...]]:
        needed, remain = self._filtered(slice_)
        # What holds nothing is taken along, but is no reason to rewrite what can wait.
        due = self.whole_slices and any(not self.summaries[log.path].holds_nothing for log in needed)
        return (slice_.log_files, _NO_LOGS) if due else (needed, remain)

    def needed(self, slice_: FileSlice) -> tuple[LogFile, ...]:
        return self._filtered(slice_)[0]

    def _filtered(self, slice_: FileSlice) -> tuple[tuple[LogFile, ...], tuple[LogFile, ...]]:
        return filter_log_files(slice_, self.threshold, self.summaries, self._rule_of(slice_))

    def _rule_of(self, slice_: FileSlice) -> MergeRule:
        return replace(self.rule, base_highest=partial(self.base_highest, slice_))

    def closed(self, slice_: FileSlice, chosen: Sequence[LogFile]) -> tuple[LogFile, ...]:
        known = [self.summaries[log.path] for log in slice_.log_files]
        taken = close(known, [log in chosen for log in slice_.log_files], self._rule_of(slice_))
        return tuple(log for log, take in zip(slice_.log_files, taken, strict=True) if take)

    def order_and_filter(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """Oldest event time first; a slice with unknown ones comes before all."""
        oldest_first = sorted(candidates, key=lambda c: (self.lowest(c), c.partition, c.file_id))
        # Nothing can be claimed without those, and an exact split needs a claim: no bound leaves them out.
        needed = [c for c in oldest_first if self.exact_split and self.lowest(c) == -math.inf]
        return [*needed, *self._bounded(oldest_first[len(needed) :])]

    def _bounded(self, oldest_first: list[Candidate]) -> list[Candidate]:
        if self.target_partitions is not None:
            partitions = list(dict.fromkeys(c.partition for c in oldest_first))[: max(1, self.target_partitions)]
            oldest_first = [c for c in oldest_first if c.partition in partitions]
        return oldest_first if self.target_io is None else within_io(oldest_first, self.target_io)

    def lowest(self, candidate: Candidate) -> float:
        """The smallest event time among the chosen log files; -inf where unknown, inf where they hold nothing."""
        return candidate.lowest(self.lowest_of)

    def lowest_of(self, chosen: Iterable[LogFile]) -> float:
        lowest = math.inf
        for log in chosen:
            summary = self.summaries[log.path]
            if not summary.holds_nothing:
                low = summary.counts_from
                if low is None:
                    return -math.inf
                if low < lowest:
                    lowest = low
        return lowest

    def splits(self, candidate: Candidate, claimed: int) -> bool:
        """True where an exact split may leave records of a chosen log file above the claimed threshold."""
        highs = [self.summaries[log.path].max_event_time for log in candidate.whole.chosen]
        return self.exact_split and any(high is None or high > claimed for high in highs)

    def threshold_of(self, left_out: Sequence[Candidate]) -> int:
        """The largest time up to which every log file is in the plan; NO_THRESHOLD where that is unknown."""
        lowest = min((self.lowest(candidate) for candidate in left_out), default=math.inf)
        if lowest == -math.inf:
            return NO_THRESHOLD
        return self.threshold if lowest == math.inf else min(self.threshold, int(lowest) - 1)

    def nothing(self, view: FileView, candidates: Sequence[Candidate]) -> str:
        return (
            f"no log file has an event time at or below {iso(self.threshold)} ({view.number_of_logs} log files remain)"
        )


def within_io(candidates: Sequence[Candidate], target_io: int) -> list[Candidate]:
    """Candidates in order until their I/O reaches the bound (BoundedIOCompactionStrategy), in MB.

    The one that reaches it is taken too, so a plan is never empty for being too large.
    """
    taken: list[Candidate] = []
    left = target_io
    for candidate in candidates:
        taken.append(candidate)
        left -= int(candidate.metrics["TOTAL_IO_MB"])
        if left <= 0:
            break
    return taken


def _settled(
    slice_: FileSlice, chosen: tuple[LogFile, ...], strategy: CompactionStrategy, placement: Placement
) -> tuple[LogFile, ...]:
    """What the plan takes so that it can stand on the timeline and no answer changes; empty where it cannot."""
    while chosen:  # closed itself
        settled = placement.settle(slice_, chosen)
        if not settled or settled == chosen:
            return settled
        closed = strategy.closed(slice_, settled)
        if set(closed) <= set(settled):
            return settled
        if set(closed) <= set(chosen):
            return ()  # it was tried: a write in progress is in the way
        chosen = closed
    return ()


CarryOverNames = Callable[[FileSlice, tuple[LogFile, ...], str], tuple[CarryOver, ...]]


def plan(
    view: FileView,
    strategy: CompactionStrategy,
    *,
    placement: Placement,
    partitions: Sequence[str],
    base_file_size: int,
    carry_over: CarryOverNames,
    extra_metadata: Mapping[str, str],
) -> Plan | NoPlan:
    """The compaction plan, or why there is none.

    `partitions`: all of the table's. `base_file_size` (bytes) is what a slice without a base file is
    expected to write (hoodie.parquet.max.file.size).
    """
    found, held = candidates(view, strategy, placement, partitions, base_file_size)
    taken = strategy.order_and_filter(found)
    if not taken:
        return NoPlan(_held_back(held) if held and not found else strategy.nothing(view, found))
    instant, suited = placement.place([one.span for one in taken])
    taken = [one for n, one in enumerate(taken) if n in suited]
    groups = {(one.partition, one.file_id) for one in taken}
    left_out = [one for one in found if (one.partition, one.file_id) not in groups]
    return Plan(
        instant,
        strategy.threshold_of([*left_out, *held]),
        _operations(taken, lambda slice_, remain: carry_over(slice_, remain, instant)),
        strategy.name,
        dict(extra_metadata),
    )


def _held_back(held: Sequence[Candidate]) -> str:
    logs = sum(one.number for one in held)
    return f"{logs} log files are due, and a write in progress overlaps with them"


def candidates(
    view: FileView,
    strategy: CompactionStrategy,
    placement: Placement,
    partitions: Sequence[str],
    base_file_size: int,
) -> tuple[list[Candidate], list[Candidate]]:
    """What each file slice would give to a compaction, in the order of the strategy's partitions.

    And what of it a write in progress holds back.
    """
    found: list[Candidate] = []
    held: list[Candidate] = []
    for partition in dict.fromkeys(strategy.filter_partition_paths(partitions)):
        # One partition after the other: only the candidates of all are there at once, in few bytes.
        slices = SlicesOf(view, partition, placement.considered)
        for place, slice_ in slices:
            chosen, late = _chosen(slice_, strategy, placement)
            for some, several in ((chosen, found), (late, held)):
                if some:
                    metrics = metrics_of(slice_, some, base_file_size)
                    whole = WholeCandidate(slice_, some, metrics, placement.span(slice_, some))
                    several.append(in_few_bytes(slices, place, whole, strategy.lowest_of(some), base_file_size))
    return found, held


def _chosen(
    slice_: FileSlice, strategy: CompactionStrategy, placement: Placement
) -> tuple[tuple[LogFile, ...], tuple[LogFile, ...]]:
    """What a plan takes of a slice, and what a write in progress holds back of it."""
    chosen, rest = strategy.filter_log_files(slice_)
    settled = _settled(slice_, chosen, strategy, placement)
    if settled == chosen and len(chosen) + len(rest) == len(slice_.log_files):
        return settled, _NO_LOGS
    needed = strategy.needed(slice_)
    if not set(needed) <= set(settled):
        settled = _settled(slice_, needed, strategy, placement)
    taken = set(settled)
    return settled, tuple(log for log in needed if log not in taken)


def _operations(
    taken: Sequence[Candidate], carry_over: Callable[[FileSlice, tuple[LogFile, ...]], tuple[CarryOver, ...]]
) -> tuple[Operation, ...]:
    """In the order of the plan; made one partition after the other, since each has to make its slices for it."""
    places: dict[str, list[int]] = {}
    for n, one in enumerate(taken):
        places.setdefault(one.partition, []).append(n)
    made: dict[int, Operation] = {}
    for several in places.values():
        for n in several:
            whole = taken[n].whole
            made[n] = _operation(whole, carry_over(whole.slice_, whole.remain))
    return tuple([made[n] for n in range(len(taken))])


def _operation(candidate: WholeCandidate, carried: tuple[CarryOver, ...]) -> Operation:
    slice_ = candidate.slice_
    return Operation(
        partition=slice_.partition,
        file_id=slice_.file_id,
        base_instant=slice_.base_instant,
        base_file=slice_.base_file.path if slice_.base_file else None,
        log_files=tuple([log.path for log in candidate.chosen]),
        carried_over=carried,
        metrics=candidate.metrics,
    )
