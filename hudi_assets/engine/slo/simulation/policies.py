"""Policies that a simulation can follow: ours, this project's sensor with `compact_every`, and Hudi's triggers."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Protocol

from hudi_assets.engine.model.proposals import StartNow
from hudi_assets.engine.model.units import duration
from hudi_assets.engine.slo.policy import propose
from hudi_assets.engine.slo.simulation.feed import Place
from hudi_assets.engine.slo.values import Clock, History, SloTerms, View


@dataclass(frozen=True, slots=True)
class Seen:
    """What a policy sees. `commits`: those since the last completed compaction. `last_end_ms`: when that was.

    `tick_ms`: until somebody asks again at the latest.
    """

    view: View
    history: History
    now_ms: int
    commits: int
    last_end_ms: int
    after_commit: bool
    tick_ms: int


@dataclass(frozen=True, slots=True)
class Compact:
    """Up to a threshold, or whole slices without one; of these places alone, or of all."""

    threshold: int | None = None
    places: frozenset[Place] | None = None


@dataclass(frozen=True, slots=True)
class Later:
    """Ask again then, and after each commit."""

    until_ms: int | None = None


class Policy(Protocol):
    @property
    def name(self) -> str: ...
    def decide(self, seen: Seen) -> Compact | Later: ...


@dataclass(frozen=True)
class Ours:
    """`propose`, asked at each commit and when a wait is over."""

    terms: SloTerms
    name: str = "this policy"

    def decide(self, seen: Seen) -> Compact | Later:
        found = propose(seen.view, seen.history, Clock(seen.now_ms, seen.tick_ms), self.terms)
        return Compact(found.threshold) if isinstance(found, StartNow) else Later(found.until_ms)


@dataclass
class CompactEvery:
    """The sensor's rule: when the threshold moves by so much, and at once where late rows break the SLO."""

    every_ms: int
    slo_ms: int
    _last: int | None = None
    _told: float = field(default=-math.inf)

    @property
    def name(self) -> str:
        return f"compact_every {duration(self.every_ms)}"

    def decide(self, seen: Seen) -> Compact | Later:
        threshold = seen.now_ms - seen.view.latency_ms
        lowest = min((log.low for group in seen.view.groups for log in group.logs), default=None)
        if lowest is None or lowest > threshold:
            return Later()
        freshness = min(threshold, lowest - 1)
        fallen = freshness < self._told and seen.now_ms - freshness > self.slo_ms
        self._told = max(self._told, freshness)
        if not fallen and self._last is not None and threshold - self._last < self.every_ms:
            return Later()
        self._last = threshold
        return Compact(threshold)


@dataclass(frozen=True)
class HudiTrigger:
    """Hudi's, asked after each commit: whole slices. Commits, seconds, or either; some of the slices with a bound.

    `target_io`: bytes, of LogFileSizeBasedCompactionStrategy.
    """

    commits: int | None = None
    elapsed_ms: int | None = None
    target_io: int | None = None

    @property
    def name(self) -> str:
        parts = [
            "" if self.commits is None else f"NUM_COMMITS={self.commits}",
            "" if self.elapsed_ms is None else f"TIME_ELAPSED={duration(self.elapsed_ms)}",
        ]
        trigger = " or ".join(filter(None, parts))
        return trigger if self.target_io is None else f"LogFileSize, {self.target_io / 1e9:g} GB, {trigger}"

    def decide(self, seen: Seen) -> Compact | Later:
        by_number = self.commits is not None and seen.commits >= self.commits
        by_time = self.elapsed_ms is not None and seen.now_ms - seen.last_end_ms >= self.elapsed_ms
        if not seen.after_commit or not (by_number or by_time):
            return Later()
        return Compact() if self.target_io is None else Compact(None, self._largest(seen.view, self.target_io))

    @staticmethod
    def _largest(view: View, target_io: int) -> frozenset[Place]:
        """The slices with the most log bytes, until the bound is used up; the one that reaches it too."""
        sizes = {(g.partition, g.file_id): (sum(log.size for log in g.logs), g.base_bytes) for g in view.groups}
        taken, left = set(), target_io
        for place in sorted(sizes, key=lambda one: (-sizes[one][0], one)):
            if left <= 0:
                break
            taken.add(place)
            logs, base = sizes[place]
            left -= logs + 2 * base
        return frozenset(taken)
