"""A table as a simulation knows it: file groups with base and log files, and what a compaction makes of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from hudi_assets.engine.slo.selection import taken
from hudi_assets.engine.slo.simulation.feed import Commit, NewLog, Place
from hudi_assets.engine.slo.values import Cut, Group, Log, View


@dataclass(frozen=True, slots=True)
class Bytes:
    read: int
    written: int

    @property
    def both(self) -> int:
        return self.read + self.written


@dataclass
class Slice:
    """A file group's newest slice. `logs` beside what is known of each."""

    base: int
    logs: list[tuple[Log, NewLog]] = field(default_factory=list)


@dataclass
class Table:
    """Base files are rewritten whole, whatever is merged into them. Log files are carried over by link, for nothing."""

    bases: Mapping[Place, int]
    cut: Cut
    latency_ms: int
    slices: dict[Place, Slice] = field(default_factory=dict)
    _groups: dict[Place, Group] = field(default_factory=dict)

    def commit(self, commit: Commit) -> list[Log]:
        """The log files as they are seen from now on."""
        made = []
        for new in commit.logs:
            slice_ = self.slices.setdefault(new.place, Slice(self.bases.get(new.place, 0)))
            log = Log(commit.at_ms, new.low, new.high, new.size)
            slice_.logs.append((log, new))
            made.append(log)
            self._groups.pop(new.place, None)
        return made

    def view(self) -> View:
        return View(tuple(self._group(p) for p, s in self.slices.items() if s.logs), self.latency_ms, self.cut)

    def take(self, threshold: int | None, places: frozenset[Place] | None = None) -> dict[Place, tuple[Log, ...]]:
        """What a plan takes: up to a threshold, or whole slices where there is none; of these places, or of all."""
        found = {}
        for place, slice_ in self.slices.items():
            if slice_.logs and (places is None or place in places):
                group = self._group(place)
                logs = group.logs if threshold is None else taken(group, threshold, self.cut)
                if logs:
                    found[place] = logs
        return found

    def plans(self, taken: Mapping[Place, tuple[Log, ...]]) -> int:
        """How many it takes, one after the other.

        On versions 8 and 9 one instant cuts all file groups of a plan: after what it takes of each, and before what it
        leaves. Those that need a later one wait for the next plan, as the planner has it.
        """
        found, left = 1, dict(taken)
        while self.cut is Cut.COMMITS:
            end = min((self._next_commit(place, logs) for place, logs in left.items()), default=math.inf)
            left = {place: logs for place, logs in left.items() if logs[-1].committed_ms >= end}
            if not left:
                break
            found += 1
        return found

    def _next_commit(self, place: Place, logs: tuple[Log, ...]) -> float:
        """Of the first log file that stays behind these."""
        held = self._group(place).logs
        return held[len(logs)].committed_ms if len(logs) < len(held) else math.inf

    def cost(self, plan: Mapping[Place, tuple[Log, ...]]) -> Bytes:
        read = written = 0
        for place, logs in plan.items():
            slice_ = self.slices[place]
            read += slice_.base + sum(log.size for log in logs)
            written += slice_.base + self._growth(slice_, logs)
        return Bytes(read, written)

    def merge(self, plan: Mapping[Place, tuple[Log, ...]]) -> None:
        """It is completed: the base files have grown, and other log files than these remain."""
        for place, logs in plan.items():
            slice_ = self.slices[place]
            slice_.base = max(0, slice_.base + self._growth(slice_, logs))
            gone = {id(log) for log in logs}
            slice_.logs = [one for one in slice_.logs if id(one[0]) not in gone]
            self._groups.pop(place, None)

    def _group(self, place: Place) -> Group:
        found = self._groups.get(place)
        if found is None:
            slice_ = self.slices[place]
            found = self._groups[place] = Group(*place, slice_.base, tuple(log for log, _ in slice_.logs))
        return found

    @staticmethod
    def _growth(slice_: Slice, logs: tuple[Log, ...]) -> int:
        gone = {id(log) for log in logs}
        return sum(new.growth for log, new in slice_.logs if id(log) in gone)
