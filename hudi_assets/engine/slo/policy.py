"""The rule: as late as the SLO allows, and then up to the threshold that leads to the fewest bytes. Pure.

Each log file has a time at which it must be in a base file that is published: its least event time plus the SLO. The
latest start that keeps all of them follows from how long compactions took. What waits is dealt to this compaction and
later ones so that they rewrite as little as possible: a file group that has nothing due yet waits for more rows, unless
it has to be touched now anyway.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from hudi_assets.engine.model.proposals import Proposal, StartNow, WaitUntil
from hudi_assets.engine.slo import words
from hudi_assets.engine.slo.bounds import earliest, last_open
from hudi_assets.engine.slo.learning import learn
from hudi_assets.engine.slo.levels import Part, Work, due_of, levels_of
from hudi_assets.engine.slo.values import Clock, History, SloTerms, View


def propose(view: View, history: History, clock: Clock, terms: SloTerms) -> Proposal:
    """What the table needs now. Ask again after each commit, and when a wait is over.

    It is not to be asked while a compaction is planned or at work.
    """
    now, tick = clock.now_ms, clock.tick_ms
    work = _work(view, history, terms, now)
    if not work.levels:
        return WaitUntil(now + terms.slo_ms, 0, "no log file remains with event times up to now")
    # Nothing has to start sooner than one compaction of everything: until then nothing needs to be weighed.
    needed, best = last_open(terms, work.start_of_all), None
    within = work
    if needed < now + tick:
        # A threshold above the watermark would promise what rows can still break that come in time.
        within = _work(view, history, terms, now - view.latency_ms)
        if not within.levels:
            return _wait_for_watermark(view, work, now)
        best = _best(within, _peace(view, history, within), clock)
        needed = last_open(terms, best.start)
    free, bound = earliest(terms, history.done[-1] if history.done else None, now)
    if best is None or needed >= now + tick:
        until = min(max(needed - tick // 2, now + tick // 2), now + terms.slo_ms)
        return WaitUntil(max(int(until), free), work.size, words.can_wait(work, int(needed)))
    if free > now:
        held = words.bound_holds(work, best.size, bound or "", free, needed)
        if terms.bytes_per_hour is not None and history.done:
            held += words.used_of_bytes(history, terms.bytes_per_hour, now)
        return WaitUntil(free, work.size, words.with_reach(held, view, terms))
    return _start(view, within, best, clock)


def _wait_for_watermark(view: View, work: Work, now: int) -> WaitUntil:
    until = max(now + 1, work.levels[0].oldest + view.latency_ms)
    return WaitUntil(until, work.size, words.with_reach(words.above_watermark(work, view), view, work.terms))


def _start(view: View, work: Work, best: Part, clock: Clock) -> StartNow:
    taken = work.levels[: best.upto + 1]
    groups = {number for level in taken for number in level.sizes}
    then = work.latest[best.upto + 1]
    next_ms = None if then == math.inf else int(then)
    in_time = best.start >= clock.now_ms - clock.tick_ms
    left = words.left_out(work.groups - len(groups), work.size - best.size)
    why = words.starts(work, best.size, left, next_ms, in_time=in_time)
    return StartNow(
        threshold=taken[-1].threshold,
        size=best.size,
        groups=len(groups),
        logs=sum(level.logs for level in taken),
        next_ms=next_ms,
        in_time=in_time,
        why=words.with_reach(why, view, work.terms),
    )


def _work(view: View, history: History, terms: SloTerms, reach: int) -> Work:
    speed = learn(history.done)
    half = (terms.slo_ms - view.latency_ms - history.publish_ms) / 2
    return Work(
        levels=levels_of(view, terms, history, reach),
        bases=tuple(group.base_bytes for group in view.groups),
        terms=terms,
        speed=speed,
        publish_ms=history.publish_ms,
        # Rows that come meanwhile wait for its end, and then for a compaction of their own. Where even that of a single
        # row takes longer, parts would not help.
        longest_ms=half if half > speed.at_most(0) else math.inf,
    )


def _peace(view: View, history: History, work: Work) -> float:
    """For how long a file group that is emptied needs no compaction, by how late rows in time came so far."""
    logs = (log for group in view.groups for log in group.logs)
    lateness = [log.committed_ms - log.low for log in logs if due_of(log, work.terms, history)[0] < math.inf]
    usual = max(0, round(median(lateness))) if lateness else view.latency_ms
    return max(1, work.terms.slo_ms - usual - work.publish_ms - work.speed.at_most(0) + history.commit_gap_ms)


@dataclass(frozen=True, slots=True)
class _Rest:
    """The best that can be done with the work from a level on: its cost in bytes, and when it begins."""

    cost: float
    begins: float


def _best(work: Work, peace: float, clock: Clock) -> Part:
    """The first compaction of those that together rewrite the least.

    Where nothing keeps the SLO any more: of those after which it is kept again the soonest.

    What a group's last compaction starts later than now is worth a share of its base file: its next one is later too.
    """
    highest = {number: at for at, level in enumerate(work.levels) for number in level.sizes}
    rest = [_Rest(0.0, math.inf)] * (len(work.levels) + 1)
    for first in reversed(range(1, len(work.levels))):
        rest[first] = min(_costs(work, first, highest, rest, peace, clock), key=lambda one: one.cost)

    overdue = work.latest[0] <= clock.now_ms - clock.tick_ms

    def too_late(part: Part) -> int:
        late = work.kept_again(part, clock) - clock.now_ms if overdue else clock.now_ms - part.start
        return max(0, int(late)) // clock.tick_ms

    found = _costs(work, 0, highest, rest, peace, clock)
    ranked = zip(work.parts[0], found, strict=True)
    return min(ranked, key=lambda one: (too_late(one[0]), one[1].cost, -one[0].upto))[0]


def _costs(
    work: Work, first: int, highest: dict[int, int], rest: Sequence[_Rest], peace: float, clock: Clock
) -> list[_Rest]:
    """Of each first compaction from a level on, with the best that can follow."""
    touched: set[int] = set()
    found = []
    for part in work.parts[first]:
        touched |= work.levels[part.upto].sizes.keys()
        then = rest[part.upto + 1]
        begins = min(part.start, then.begins)
        later = min(1.0, max(0.0, begins - clock.now_ms) / peace)
        cost = 0.0
        for number in touched:
            cost += 2 * work.bases[number] * (1 - later * (highest[number] <= part.upto))
        found.append(_Rest(cost + work.speed.fixed_size + then.cost, begins))
    return found
