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
from hudi_assets.engine.slo.values import Clock, Done, History, Log, commit_gap

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

    `machine`: in place of the one that the feed tells of.

    At the end all that remains is compacted once more: no policy is better for what it left undone.
    """
    machine = machine or feed.machine or Machine()
    run = _Run(feed, policy, machine, Random(seed), list(learnt))
    run.go()
    run.settle()
    lives = run.lives()
    minutes, avoidable = missed(lives, slo_ms, machine.publish_ms, feed.until_ms)
    times = [one.at_ms for one in feed.commits]
    looks = times if feed.stands_still else range(times[0], feed.until_ms, 2 * MINUTE_MS)
    return Outcome(
        policy=policy.name,
        starts=len(run.done) - len(learnt),
        compactions=run.plans,
        bytes_read=run.read,
        bytes_written=run.written,
        missed_min=minutes,
        avoidable_min=avoidable,
        lags=lags(lives, feed.latency_ms, looks) if with_lags else (),
    )


@dataclass
class _Run:
    feed: Feed
    policy: Policy
    machine: Machine
    random: Random
    done: list[Done] = field(default_factory=list)
    plans: int = 0
    read: int = 0
    written: int = 0
    _events: list[tuple[int, int, int]] = field(default_factory=list)
    _logs: list[Log] = field(default_factory=list)
    _published: dict[int, int] = field(default_factory=dict)
    _plan: Mapping[Place, tuple[Log, ...]] | None = None
    _cost: Bytes = field(default_factory=lambda: Bytes(0, 0))
    _commits: int = 0
    _seen: int = 0
    _last_end: int = 0

    def __post_init__(self) -> None:
        self.table = Table(self.feed.bases, self.feed.cut, self.feed.latency_ms)
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
                self._seen += 1
            if self._plan is None and (kind == _COMMIT or not self.feed.stands_still):
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
        gap = commit_gap([one.at_ms for one in self.feed.commits[max(0, self._seen - _REMEMBERED) : self._seen]])
        history = History(tuple(self.done[-_REMEMBERED:]), gap, self.machine.publish_ms)
        tick = Clock(now).tick_ms
        tick = max(tick, gap) if self.feed.stands_still else tick
        seen = Seen(self.table.view(), history, now, self._commits, self._last_end, after_commit, tick)
        choice = self.policy.decide(seen)
        if not isinstance(choice, Compact):
            if choice.until_ms is not None and choice.until_ms > now and not self.feed.stands_still:
                heapq.heappush(self._events, (choice.until_ms, _ASK, 0))
            return
        plan = self.table.take(choice.threshold, choice.places)
        if not plan:
            return
        self._plan, self._cost = plan, self.table.cost(plan)
        self.plans += self.table.plans(plan)
        machine, varies = self.machine, math.exp(self.random.gauss(0, self.machine.noise))
        taken = round((machine.fixed_ms + self._cost.both / machine.bytes_per_s * 1000) * varies)
        self.done.append(Done(now, taken, self._cost.both))
        heapq.heappush(self._events, (now if self.feed.stands_still else now + taken, _END, 0))
        self._commits = 0

    def _end(self, now: int) -> None:
        plan, self._plan = self._plan or {}, None
        self.table.merge(plan)
        self.read, self.written = self.read + self._cost.read, self.written + self._cost.written
        self._last_end = now
        for logs in plan.values():
            for log in logs:
                self._published[id(log)] = now if self.feed.stands_still else now + self.machine.publish_ms
