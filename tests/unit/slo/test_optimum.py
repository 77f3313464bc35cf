"""The policy beside the best that anybody could do who knows the future, on small feeds."""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hudi_assets.engine.slo.simulation.feed import Feed, Machine
from hudi_assets.engine.slo.simulation.least import least_bytes
from hudi_assets.engine.slo.simulation.outcome import Outcome
from hudi_assets.engine.slo.simulation.policies import Ours
from hudi_assets.engine.slo.simulation.run import simulate
from hudi_assets.engine.slo.values import Cut, Done, SloTerms
from tests.unit.slo.optimum import HOUR, optimum, small_feed

# A byte a millisecond, and nothing besides, so that bytes alone count.
MACHINE = Machine(fixed_ms=0, bytes_per_s=1000, noise=0, publish_ms=1000)
LEARNT = tuple(Done(0, 1000 * n, 1000 * n) for n in range(1, 31))


def ours(feed: Feed, slo_h: int) -> Outcome:
    return simulate(feed, Ours(SloTerms(slo_h * HOUR)), slo_h * HOUR, MACHINE, learnt=LEARNT)


def random_feed(random: Random, late: tuple[int, ...]) -> tuple[Feed, int]:
    slo_h = random.choice([4, 6, 8])
    groups = random.randint(1, 3)
    bases = [random.choice([1000, 1000, 5000, 20_000]) for _ in range(groups)]
    count = random.randint(1, 8)
    arrivals = [(random.randint(0, 14), random.randrange(groups), random.choice(late)) for _ in range(count)]
    return small_feed(arrivals, bases, random.choice(list(Cut)), wide=random.random() < 0.3), slo_h


def ratios(late: tuple[int, ...], cases: int) -> list[float]:
    found = []
    for seed in range(cases):
        feed, slo_h = random_feed(Random(seed), late)
        outcome = ours(feed, slo_h)
        assert outcome.avoidable_min == 0, seed
        found.append(outcome.bytes_moved / optimum(feed, slo_h * HOUR, slo_h * HOUR // 4).moved)
    return sorted(found)


def test_rows_in_time_cost_hardly_more_than_the_optimum() -> None:
    found = ratios((0, 0, 0, 1, 2, 3), 300)
    assert found[0] >= 0.999  # nobody is better than the optimum
    assert sum(found) / len(found) <= 1.01
    assert found[int(0.95 * len(found))] <= 1.2
    assert found[-1] <= 4 / 3 + 0.01


def test_rows_that_come_too_late_cost_more_for_they_are_not_waited_for() -> None:
    found = ratios((0, 0, 1, 3, 10), 200)
    assert sum(found) / len(found) <= 1.1
    assert found[int(0.9 * len(found))] <= 1.2
    assert found[-1] <= 2.01


def test_nobody_who_does_not_know_the_future_is_within_a_third_of_the_optimum() -> None:
    """`a` is due, `b` lies between its log files. What is right to take depends on what comes within the hour."""
    bases, slo = [1000, 1000], 10 * HOUR
    known = [(2, 0, 1), (4, 0, 0), (3, 1, 0)]
    quiet, busy = small_feed(known, bases, Cut.PREFIX), small_feed([*known, (12, 0, 0), (12, 1, 0)], bases, Cut.PREFIX)
    least = [optimum(feed, slo, HOUR).moved for feed in (quiet, busy)]
    assert [round(one / 2000) for one in least] == [2, 3]
    # Whoever takes both groups now pays two more in the busy case; whoever does not pays a third in the quiet one.
    both, apart = (2 / 2, 4 / 3), (3 / 2, 3 / 3)
    assert min(max(both), max(apart)) == 4 / 3
    assert ours(quiet, 10).bytes_moved == math.floor(least[0])


def test_nobody_stays_below_the_least_and_with_one_file_group_it_is_the_optimum() -> None:
    for seed in range(200):
        feed, slo_h = random_feed(Random(seed), (0, 0, 0, 1, 2, 3))
        feed = replace(feed, cut=Cut.PREFIX)
        least, best = least_bytes(feed, slo_h * HOUR, MACHINE), optimum(feed, slo_h * HOUR, HOUR).moved
        assert least is not None
        places = {log.place for commit in feed.commits for log in commit.logs}
        if len(places) == 1:
            assert least == best, seed
        else:
            assert least <= best, seed


def test_of_rows_that_came_too_late_nothing_is_asked() -> None:
    feed, slo_h = random_feed(Random(3), (10,))
    feed = replace(feed, cut=Cut.PREFIX)
    touched = {log.place for commit in feed.commits for log in commit.logs}
    logs = sum(log.size for commit in feed.commits for log in commit.logs)
    assert least_bytes(feed, slo_h * HOUR, MACHINE) == logs + 2 * sum(feed.bases[place] for place in touched)
    assert least_bytes(replace(feed, cut=Cut.RANGES), slo_h * HOUR, MACHINE) is None


ARRIVALS = st.lists(
    st.tuples(st.integers(0, 12), st.integers(0, 2), st.sampled_from([0, 0, 1, 2, 3])), min_size=1, max_size=6
)


@given(ARRIVALS, st.sampled_from([4, 6]), st.sampled_from(Cut), st.tuples(*[st.sampled_from([1000, 9000])] * 3))
@settings(max_examples=60, deadline=None)
def test_no_slo_is_missed_that_somebody_could_have_kept(
    arrivals: list[tuple[int, int, int]], slo_h: int, cut: Cut, bases: tuple[int, ...]
) -> None:
    feed = small_feed(arrivals, bases, cut)
    best = optimum(feed, slo_h * HOUR, HOUR)
    assume(best.moved < math.inf)
    outcome = ours(feed, slo_h)
    assert outcome.missed_min == 0
    assert outcome.bytes_moved <= 2 * best.moved
