"""How long a compaction of so many bytes takes, by those of the past."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Final

from hudi_assets.engine.slo.values import Done

# Before anything was learnt: Spark's start, and 50 MB a second. It may take twice that.
_FIXED_MS: Final = 60_000.0
_MS_PER_BYTE: Final = 1 / 50_000
_UNLEARNT: Final = 1.0
_LATEST: Final = 30
_ENOUGH: Final = 3
# Of so many compactions one may be an accident: resumed hours later, or beside a machine's failure.
_MANY: Final = 5
_ACCIDENT: Final = 3


@dataclass(frozen=True, slots=True)
class Speed:
    """A compaction takes `fixed_ms` and `ms_per_byte`; `spread`: how much longer it may take, as a share."""

    fixed_ms: float
    ms_per_byte: float
    spread: float

    @property
    def fixed_size(self) -> float:
        """The bytes that could be moved in the time that each compaction takes besides."""
        return self.fixed_ms / self.ms_per_byte if self.ms_per_byte > 0 else 0.0

    def likely(self, size: int) -> float:
        return self.fixed_ms + self.ms_per_byte * size

    def at_most(self, size: int) -> int:
        """The upper quantile."""
        return round(self.likely(size) * (1 + self.spread))


def learn(done: Sequence[Done]) -> Speed:
    """A line through the latest compactions, and what they stray from it: all of them, and more where they are few.

    One that took several times as long as the others let expect is left out. A second one like it counts.
    """
    known: Sequence[Done] = [one for one in done[-_LATEST:] if one.duration_ms > 0]
    if not known:
        return Speed(_FIXED_MS, _MS_PER_BYTE, _UNLEARNT)
    if len(known) >= _MANY:
        known = _without_accident(known)
    return _learnt(known)


def _without_accident(known: Sequence[Done]) -> Sequence[Done]:
    """All but the one that is furthest beyond what the others let expect, if it is far beyond.

    It may have drawn the line of all to itself, so the longest one is asked about too, and the longest by its bytes.
    """
    line = Speed(*_line([one.size for one in known], [one.duration_ms for one in known]), 0)
    numbers = range(len(known))
    suspects = {
        max(numbers, key=lambda number: known[number].duration_ms),
        max(numbers, key=lambda number: known[number].duration_ms / max(1, known[number].size)),
        max(numbers, key=lambda number: known[number].duration_ms / max(1.0, line.likely(known[number].size))),
    }
    worst, rest = float(_ACCIDENT), known
    for number in sorted(suspects):
        others = [*known[:number], *known[number + 1 :]]
        beyond = known[number].duration_ms / max(1, _learnt(others).at_most(known[number].size))
        if beyond > worst:
            worst, rest = beyond, others
    return rest


def _learnt(known: Sequence[Done]) -> Speed:
    fixed, slope = _line([one.size for one in known], [one.duration_ms for one in known])
    line = Speed(fixed, slope, 0)
    stray = [one.duration_ms / max(1.0, line.likely(one.size)) - 1 for one in known]
    count = len(known)
    deviation = sqrt(sum(s * s for s in stray) / max(1, count - 2))
    few = _UNLEARNT / count
    return Speed(fixed, slope, max(2 * deviation * sqrt(1 + 1 / count), max(stray)) + few)


def _line(sizes: Sequence[int], times: Sequence[int]) -> tuple[float, float]:
    """(at zero bytes, per byte), neither negative."""
    count, mean_size, mean_time = len(sizes), sum(sizes) / len(sizes), sum(times) / len(times)
    spread = sum((size - mean_size) ** 2 for size in sizes)
    if count >= _ENOUGH and spread > 0:
        pairs = zip(sizes, times, strict=True)
        slope = max(0.0, sum((size - mean_size) * (time - mean_time) for size, time in pairs) / spread)
        fixed = mean_time - slope * mean_size
        if fixed >= 0:
            return fixed, slope
    if mean_size <= 0:
        return mean_time, 0.0
    fixed = min(_FIXED_MS, min(times))
    return fixed, (mean_time - fixed) / mean_size
