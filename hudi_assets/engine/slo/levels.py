"""What waits, by the thresholds that would take it, and the latest start that each part of it allows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

from hudi_assets.engine.slo.bounds import last_open, spacing
from hudi_assets.engine.slo.learning import Speed
from hudi_assets.engine.slo.selection import taken_from
from hudi_assets.engine.slo.values import UNKNOWN, Clock, Cut, History, Log, SloTerms, View

_MOST: Final = 24


@dataclass(frozen=True, slots=True)
class Level:
    """Log files that a threshold takes, and the one before it does not.

    `oldest`: the least threshold that takes any of them. `due`: when the first of those that came in time has to be
    published. `late`: when those are to be compacted that came when the SLO was broken already. Infinity where there
    are none. `sizes`: log bytes by the group's number.
    """

    threshold: int
    oldest: int
    due: float
    late: float
    sizes: dict[int, int]
    logs: int


class Part(NamedTuple):
    """A compaction of the levels from one on up to `upto`: its bytes, and its latest start with what comes after it."""

    upto: int
    size: int
    start: float


def due_of(log: Log, terms: SloTerms, history: History) -> tuple[float, float]:
    """(when it has to be published, infinity); or (infinity, when it is to be compacted) where it came too late."""
    in_time = log.low - 1 + terms.slo_ms
    if in_time >= log.committed_ms + history.publish_ms:
        return in_time, math.inf
    last = history.done[-1].begun_ms if history.done else log.committed_ms
    if log.committed_ms <= last:
        return math.inf, log.committed_ms  # the last compaction left it: one plan may reach less than was asked for
    return math.inf, max(log.committed_ms, last + terms.late_gap_ms)


def levels_of(view: View, terms: SloTerms, history: History, reach_ms: int) -> tuple[Level, ...]:
    """At most a few dozen, so that a table of any size takes the same time. The first holds the oldest files alone.

    Event times after `reach_ms` are no thresholds.
    """
    logs = sorted(
        (
            (at, number, log)
            for number, group in enumerate(view.groups)
            for at, log in zip(taken_from(group, view.cut), group.logs, strict=True)
            if at <= reach_ms
        ),
        key=lambda one: one[:2],
    )
    found, first = [], 0
    for top in _thinned(sorted({at for at, _, _ in logs})):
        due = late = math.inf
        sizes: dict[int, int] = {}
        begun, oldest = first, top
        while first < len(logs) and logs[first][0] <= top:
            at, number, log = logs[first]
            oldest = min(oldest, at)
            one_due, one_late = due_of(log, terms, history)
            due, late = min(due, one_due), min(late, one_late)
            sizes[number] = sizes.get(number, 0) + log.size
            first += 1
        if top == UNKNOWN or view.cut is Cut.SLICE:  # no threshold is as old, or none up to the next one takes more
            top = logs[first][0] - 1 if first < len(logs) else reach_ms
        found.append(Level(top, top if oldest == UNKNOWN else oldest, due, late, sizes, first - begun))
    return tuple(found)


def _thinned(thresholds: list[int]) -> list[int]:
    """The first and the last, and others evenly between them."""
    if len(thresholds) <= _MOST:
        return thresholds
    last = len(thresholds) - 1
    return [thresholds[round(n * last / (_MOST - 1))] for n in range(_MOST)]


@dataclass(frozen=True)
class Work:
    """All that waits, the oldest event times first. `longest_ms`: what is longer keeps fresh rows waiting."""

    levels: tuple[Level, ...]
    bases: tuple[int, ...]
    terms: SloTerms
    speed: Speed
    publish_ms: int
    longest_ms: float

    @property
    def groups(self) -> int:
        return len(self._touched)

    @cached_property
    def size(self) -> int:
        """Of one compaction that takes everything."""
        logs = sum(size for level in self.levels for size in level.sizes.values())
        return 2 * (logs + sum(self.bases[number] for number in self._touched))

    @property
    def start_of_all(self) -> float:
        """The latest start of one compaction that takes everything."""
        due, late = min(level.due for level in self.levels), min(level.late for level in self.levels)
        return min(due - self.publish_ms - self.speed.at_most(self.size), late)

    @cached_property
    def _touched(self) -> set[int]:
        return {number for level in self.levels for number in level.sizes}

    @cached_property
    def latest(self) -> list[float]:
        """The latest start of the work from each level on, with as many compactions as it takes; infinity after all.

        From the last level back: each compaction starts so that it, and those after it, end in time.
        """
        found = [math.inf] * (len(self.levels) + 1)
        for first in reversed(range(len(self.levels))):
            found[first] = max(part.start for part in self._parts(first, found))
        return found

    @cached_property
    def parts(self) -> list[list[Part]]:
        """What could be the first compaction of the work from each level on."""
        return [self._parts(first, self.latest) for first in range(len(self.levels))]

    def kept_again(self, part: Part, clock: Clock) -> float:
        """When nothing is left that is overdue, if this part goes first, now, and what follows as soon as can be."""
        begins = [math.inf] * (len(self.levels) + 1)  # the earliest start of what remains from a level on
        taken_ms = self.speed.at_most(part.size)
        ends: float = clock.now_ms + taken_ms
        if self.latest[part.upto + 1] > ends - clock.tick_ms:
            return ends
        begins[part.upto + 1] = clock.now_ms + spacing(self.terms, taken_ms, part.size)
        found = math.inf
        for first in range(part.upto + 1, len(self.levels)):
            if begins[first] < found:
                for then in self.parts[first]:
                    taken_ms = self.speed.at_most(then.size)
                    ends = begins[first] + taken_ms
                    if self.latest[then.upto + 1] > ends - clock.tick_ms:
                        found = min(found, ends)
                    free = begins[first] + spacing(self.terms, taken_ms, then.size)
                    begins[then.upto + 1] = min(begins[then.upto + 1], free)
        return found

    def _parts(self, first: int, latest: list[float]) -> list[Part]:
        touched: set[int] = set()
        size, due, late = 0, math.inf, math.inf
        found: list[Part] = []
        for number in range(first, len(self.levels)):
            level = self.levels[number]
            due, late = min(due, level.due), min(late, level.late)
            size += 2 * (sum(level.sizes.values()) + sum(self.bases[n] for n in level.sizes.keys() - touched))
            touched |= level.sizes.keys()
            taken_ms = self.speed.at_most(size)
            if found and taken_ms > self.longest_ms:
                break
            start = min(due - self.publish_ms - taken_ms, late)
            then = latest[number + 1] if latest[number + 1] == math.inf else last_open(self.terms, latest[number + 1])
            found.append(Part(number, size, min(start, then - spacing(self.terms, taken_ms, size))))
        return found
