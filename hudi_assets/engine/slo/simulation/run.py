"""A policy over a feed: commits come, the policy is asked, compactions run one at a time and are published."""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Final

from hudi_assets.engine.model.units import MINUTE_MS
from hudi_assets.engine.slo.simulation.feed import Feed, Machine, Place
from hudi_assets.engine.slo.simulation.outcome import Life, Outcome, lags, missed
from hudi_assets.engine.slo.simulation.policies import Compact, Policy, Seen
from hudi_assets.engine.slo.simulation.table import Bytes, Table
from hudi_assets.engine.slo.values import Done, History, Log

# At one time a compaction ends first, then a commit comes, and then somebody asks.
_END, _COMMIT, _ASK = range(3)
_REMEMBERED: Final = 30


def simulate(
    feed: Feed,
    policy: Policy,
    slo_ms: int,
    machine: Machine | None = None,
    *,
    seed: int = 1,
    learnt: Sequence[Done] = (),
    with_lags: bool = False,
) -> Outcome:
    """What the policy does with the feed. The same seed gives the same durations. `learnt`: compactions of before.

    At the end all that remains is compacted once more: no policy is better for what it left undone.
    """
    machine = machine or Machine()
    run = _Run(feed, policy, machine, Random(seed), list(learnt))
    run.go()
    run.settle()
    lives = run.lives()
    minutes, avoidable = missed(lives, slo_ms, machine.publish_ms, feed.until_ms)
    drawn = lags(lives, feed.latency_ms, feed.commits[0].at_ms, feed.until_ms, 2 * MINUTE_MS) if with_lags else ()
    return Outcome(policy.name, len(run.done) - len(learnt), run.read, run.written, minutes, avoidable, drawn)


@dataclass
class _Run:
    feed: Feed
    policy: Policy
    machine: Machine
    random: Random
    done: list[Done] = field(default_factory=list)
    read: int = 0
    written: int = 0
    _events: list[tuple[int, int, int]] = field(default_factory=list)
    _logs: list[Log] = field(default_factory=list)
    _published: dict[int, int] = field(default_factory=dict)
    _plan: Mapping[Place, tuple[Log, ...]] | None = None
    _cost: Bytes = field(default_factory=lambda: Bytes(0, 0))
    _commits: int = 0
    _last_end: int = 0

    def __post_init__(self) -> None:
        self.table = Table(self.feed.bases, self.feed.cut, self.feed.latency_ms)
        gaps = [b.at_ms - a.at_ms for a, b in zip(self.feed.commits, self.feed.commits[1:], strict=False)]
        self._gap = sorted(gaps)[len(gaps) // 2] if gaps else MINUTE_MS
        self._last_end = self.feed.commits[0].at_ms if self.feed.commits else 0
        self._events = [(commit.at_ms, _COMMIT, number) for number, commit in enumerate(self.feed.commits)]
        heapq.heapify(self._events)

    def go(self) -> None:
        while self._events and self._events[0][0] <= self.feed.until_ms:
            now, kind, number = heapq.heappop(self._events)
            if kind == _END:
                self._end(now)
            elif kind == _COMMIT:
                self._logs += self.table.commit(self.feed.commits[number])
                self._commits += 1
            if self._plan is None:
                self._ask(now, after_commit=kind == _COMMIT)

    def settle(self) -> None:
        """The compaction that is under way ends, and the rest is compacted. Nobody waits for it any more."""
        if self._plan is not None:
            self._end(self.feed.until_ms)
        rest = self.table.take(None)
        cost = self.table.cost(rest)
        self.table.merge(rest)
        self.read, self.written = self.read + cost.read, self.written + cost.written

    def lives(self) -> list[Life]:
        """Of every log file; those that were never compacted are published after the end."""
        return [Life(log, self._published.get(id(log), self.feed.until_ms + 1)) for log in self._logs]

    def _ask(self, now: int, *, after_commit: bool) -> None:
        history = History(tuple(self.done[-_REMEMBERED:]), self._gap, self.machine.publish_ms)
        seen = Seen(self.table.view(), history, now, self._commits, self._last_end, after_commit)
        choice = self.policy.decide(seen)
        if not isinstance(choice, Compact):
            if choice.until_ms is not None and choice.until_ms > now:
                heapq.heappush(self._events, (choice.until_ms, _ASK, 0))
            return
        plan = self.table.take(choice.threshold, choice.places)
        if not plan:
            return
        self._plan, self._cost = plan, self.table.cost(plan)
        varies = math.exp(self.random.gauss(0, self.machine.noise))
        taken = round((self.machine.fixed_ms + self._cost.both / self.machine.bytes_per_s * 1000) * varies)
        self.done.append(Done(now, taken, self._cost.both))
        heapq.heappush(self._events, (now + taken, _END, 0))
        self._commits = 0

    def _end(self, now: int) -> None:
        plan, self._plan = self._plan or {}, None
        self.table.merge(plan)
        self.read, self.written = self.read + self._cost.read, self.written + self._cost.written
        self._last_end = now
        for logs in plan.values():
            for log in logs:
                self._published[id(log)] = now + self.machine.publish_ms
