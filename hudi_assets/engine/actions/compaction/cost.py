"""What each possible threshold would cost, and how fresh the table would be then. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from hudi_assets.engine.actions.compaction.candidates import Candidate, WholeCandidate, metrics_of
from hudi_assets.engine.actions.compaction.strategy import EventTimeBased
from hudi_assets.engine.errors import InvalidInput
from hudi_assets.engine.model import FileSlice
from hudi_assets.engine.table.slices.file_view import FileView


@dataclass(frozen=True, slots=True)
class CostPoint:
    """The compaction that `plan_compaction(threshold=threshold)` would plan. Times epoch ms.

    `bytes_to_rewrite` is what it reads: the base files that it replaces and the log files that it merges.
    `freshness` is the table's afterwards (with an exact split: at least), None where none could be promised.
    """

    threshold: int
    bytes_to_rewrite: int
    log_files: int
    file_groups: int
    freshness: int | None


def cost_curve(
    view: FileView,
    strategy: EventTimeBased,
    *,
    base_file_size: int,
    now_ms: int,
    watermark_of: Callable[[int], int | None],
    points: int,
) -> tuple[CostPoint, ...]:
    """At most `points` of the thresholds at which the selection changes, up to now, oldest first.

    Thinned before anything is chosen: the first, the last, and others so that about as many thresholds lie
    between each two. `watermark_of` gives the watermark after a compaction that claims a threshold.
    Selection of a slice changes only where one of its own minima is crossed, so the effort is that of
    each log file's slice once per point that reaches it.
    """
    if points < 1:
        raise InvalidInput(f"A cost curve has {points} points.", hint="Ask for at least 1.")
    sweep = _Sweep([_Slice(s, strategy) for s in view.latest if s.log_files])
    thresholds = sorted({low for one in sweep.slices for low in one.minima if low <= now_ms})
    result = []
    for threshold in _thinned(thresholds, points):
        at = replace(strategy, threshold=threshold)
        sweep.advance(at, base_file_size)
        result.append(_point(sweep, at, watermark_of))
    return tuple(result)


def _thinned(values: Sequence[int], points: int) -> list[int]:
    if len(values) <= points:
        return list(values)
    if points == 1:
        return [values[-1]]
    last = len(values) - 1
    return [values[round(i * last / (points - 1))] for i in range(points)]


class _Slice:
    """One file slice under the sweep: what would be chosen of it now, and the lowest of what would remain."""

    def __init__(self, slice_: FileSlice, strategy: EventTimeBased) -> None:
        self.slice_ = slice_
        known = [strategy.summaries[log.path] for log in slice_.log_files]
        self.lows = {
            log.path: math.inf if s.holds_nothing else -math.inf if (low := s.counts_from) is None else low
            for log, s in zip(slice_.log_files, known, strict=True)
        }
        self.minima = [low for s in known if (low := s.counts_from) is not None]
        self.always = any(s.counts_from is None for s in known)
        self.candidate: WholeCandidate | None = None
        self.lowest = self.lowest_of_all = min(self.lows.values())

    def choose(self, strategy: EventTimeBased, base_file_size: int) -> None:
        chosen, remain = strategy.filter_log_files(self.slice_)
        metrics = metrics_of(self.slice_, chosen, base_file_size)
        self.candidate = WholeCandidate(self.slice_, chosen, metrics) if chosen else None
        self.lowest = min((self.lows[log.path] for log in remain), default=math.inf)


@dataclass
class _Sweep:
    """The slices at a threshold that only rises."""

    slices: list[_Slice]
    _due: list[tuple[float, int]] = field(default_factory=list)
    _next: int = 0

    def __post_init__(self) -> None:
        due: Iterable[tuple[float, int]] = (
            (low, i) for i, one in enumerate(self.slices) for low in (*one.minima, *([-math.inf] * one.always))
        )
        self._due = sorted(due)

    def advance(self, strategy: EventTimeBased, base_file_size: int) -> None:
        crossed = set()
        while self._next < len(self._due) and self._due[self._next][0] <= strategy.threshold:
            crossed.add(self._due[self._next][1])
            self._next += 1
        for index in crossed:
            self.slices[index].choose(strategy, base_file_size)


def _point(sweep: _Sweep, strategy: EventTimeBased, watermark_of: Callable[[int], int | None]) -> CostPoint:
    found = [one.candidate for one in sweep.slices if one.candidate is not None]
    taken = strategy.order_and_filter(found)
    groups = {(one.partition, one.file_id) for one in taken}
    left_out = [one for one in found if (one.partition, one.file_id) not in groups]
    lowest = min(
        (
            one.lowest if (one.slice_.partition, one.slice_.file_id) in groups else one.lowest_of_all
            for one in sweep.slices
        ),
        default=math.inf,
    )
    claimed = strategy.threshold_of(left_out)
    watermark = watermark_of(claimed)
    freshness = None
    if watermark is not None and lowest != -math.inf:
        freshness = watermark if lowest == math.inf else min(watermark, int(lowest) - 1)
        if any(strategy.splits(one, claimed) for one in taken):
            # What remains of a split log file is above the threshold; how far, only its data says.
            freshness = min(freshness, claimed)
    return CostPoint(
        threshold=strategy.threshold,
        bytes_to_rewrite=sum(_bytes(one) for one in taken),
        log_files=sum(one.number for one in taken),
        file_groups=len(taken),
        freshness=freshness,
    )


def _bytes(candidate: Candidate) -> int:
    whole = candidate.whole
    base = whole.slice_.base_file.size if whole.slice_.base_file else 0
    return base + sum(log.size for log in whole.chosen)
