"""The model of a table counts what a compaction of Hudi reads and writes; what the policies come to on five feeds."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from hudi_assets.engine import InvalidInput
from hudi_assets.engine.slo.simulation.comparison import defaults, fewest
from hudi_assets.engine.slo.simulation.feed import Commit, Feed, Machine, NewLog, machine_of
from hudi_assets.engine.slo.simulation.feeds import DISTRIBUTIONS, START_MS, Scale, feed_of
from hudi_assets.engine.slo.simulation.least import least_bytes
from hudi_assets.engine.slo.simulation.outcome import Life, Outcome, missed
from hudi_assets.engine.slo.simulation.policies import Compact, CompactEvery, HudiTrigger, Later, Ours, Seen
from hudi_assets.engine.slo.simulation.run import simulate
from hudi_assets.engine.slo.values import Cut, Done, Log, SloTerms
from hudi_assets.reporting.pictures import svg
from hudi_assets.reporting.simulations import comparison_figure

MINUTE = 60_000
HOUR = 60 * MINUTE
EXACT = Machine(fixed_ms=MINUTE, bytes_per_s=1e9, noise=0, publish_ms=MINUTE)
SMALL = Scale(days=2, groups=6, sample=150)


def commit(hour: float, *logs: NewLog) -> Commit:
    return Commit(START_MS + round(hour * HOUR), logs)


def new(group: str, hour: float, size: int = 10, growth: int = 7) -> NewLog:
    return NewLog(("p", group), START_MS + round(hour * HOUR), START_MS + round(hour * HOUR), size, growth)


def feed(*commits: Commit, bases: dict[str, int], until_h: float = 20) -> Feed:
    places = {("p", name): size for name, size in bases.items()}
    return Feed("f", commits, places, 30 * MINUTE, START_MS + round(until_h * HOUR), Cut.PREFIX)


class At:
    """Compacts once, at an hour."""

    name = "at"

    def __init__(self, hour: float, threshold_h: float | None = None) -> None:
        self.at = START_MS + round(hour * HOUR)
        self.threshold = None if threshold_h is None else START_MS + round(threshold_h * HOUR)
        self.done = False

    def decide(self, seen: Seen) -> Compact | Later:
        if seen.now_ms < self.at or self.done:
            return Later(self.at)
        self.done = True
        return Compact(self.threshold)


def test_a_base_file_is_read_and_written_whole_for_one_row() -> None:
    one = feed(commit(1, new("a", 0.9)), bases={"a": 1000, "b": 1000})
    found = simulate(one, At(2), 6 * HOUR, EXACT)
    assert (found.bytes_read, found.bytes_written, found.compactions) == (1010, 1007, 1)


def test_base_files_grow_and_the_rest_is_settled_at_the_end() -> None:
    one = feed(commit(1, new("a", 0.9)), commit(3, new("a", 2.9)), bases={"a": 1000})
    found = simulate(one, At(2), 6 * HOUR, EXACT)
    assert (found.bytes_read, found.bytes_written, found.compactions) == (1010 + 1017, 1007 + 1014, 1)
    together = simulate(one, At(4), 6 * HOUR, EXACT)
    assert (together.bytes_read, together.bytes_written) == (1020, 1014)


def test_only_what_a_threshold_takes_is_rewritten() -> None:
    one = feed(commit(1, new("a", 0.5), new("b", 0.9)), bases={"a": 1000, "b": 5000}, until_h=8)
    found = simulate(one, At(2, 0.6), 6 * HOUR, EXACT)
    assert found.bytes_read == 1010 + 5010
    assert found.missed_min == pytest.approx((8 - 6.9) * 60, abs=0.01)  # of `b`, until the end


def test_minutes_are_missed_until_a_compaction_is_published() -> None:
    one = feed(commit(1, new("a", 0.9)), bases={"a": 1000})
    found = simulate(one, At(8), 6 * HOUR, EXACT)
    # Due at 6:54; begun at 8:00, a minute of work and one of publishing.
    assert found.missed_min == pytest.approx(66 + 2, abs=0.01)
    assert found.avoidable_min == found.missed_min


def test_rows_that_came_too_late_are_nobodys_fault() -> None:
    life = Life(Log(START_MS, START_MS - 7 * HOUR, START_MS, 1), START_MS + 10 * MINUTE)
    other = Life(Log(START_MS, START_MS - 5 * HOUR, START_MS, 1), START_MS + HOUR + 15 * MINUTE)
    both, in_time = missed([life, other], 6 * HOUR, MINUTE, START_MS + 10 * HOUR)
    assert (both, in_time) == pytest.approx((10 + 15, 15), abs=0.001)
    overlapping, _ = missed([life, life], 6 * HOUR, MINUTE, START_MS + 10 * HOUR)
    assert overlapping == pytest.approx(10, abs=0.001)


def test_one_compaction_at_a_time() -> None:
    slow = Machine(fixed_ms=5 * HOUR, bytes_per_s=1e9, noise=0, publish_ms=0)
    commits = [commit(n, new("a", n - 0.1)) for n in range(1, 15)]
    assert simulate(feed(*commits, bases={}), HudiTrigger(1), 6 * HOUR, slow).compactions == 3


def test_hudis_triggers_count_as_hudi_does() -> None:
    commits = [commit(n / 6, new("a", n / 6 - 0.1)) for n in range(1, 61)]
    ten_hours = feed(*commits, bases={"a": 10}, until_h=10.2)
    quick = Machine(fixed_ms=1000, bytes_per_s=1e9, noise=0, publish_ms=0)
    assert simulate(ten_hours, HudiTrigger(5), HOUR, quick).compactions == 12
    assert simulate(ten_hours, HudiTrigger(None, HOUR), HOUR, quick).compactions == 8  # an hour and up to ten minutes
    assert simulate(ten_hours, HudiTrigger(5, 30 * MINUTE), HOUR, quick).compactions == 15
    names = [policy.name for policy in defaults()]
    assert names[2:] == ["NUM_COMMITS=5 or TIME_ELAPSED=1 h", "LogFileSize, 2 GB, NUM_COMMITS=5"]


def test_a_plan_has_one_cut_on_versions_8_and_9() -> None:
    """Of `a` the first commit is due and the second stays; of `b` the second one is due."""
    commits = (commit(1, new("a", 0.5)), commit(2, new("a", 1.9), new("b", 0.6)), commit(3, new("b", 2.9)))
    one = replace(feed(*commits, bases={}), cut=Cut.COMMITS)
    found = simulate(one, At(4, 0.7), 6 * HOUR, EXACT)
    assert (found.starts, found.compactions) == (1, 2)
    assert simulate(replace(one, cut=Cut.PREFIX), At(4, 0.7), 6 * HOUR, EXACT).compactions == 1
    assert simulate(one, At(4), 6 * HOUR, EXACT).compactions == 1


class Always:
    """Compacts whenever it is asked, and notes when."""

    name = "always"

    def __init__(self) -> None:
        self.asked: list[tuple[float, int]] = []

    def decide(self, seen: Seen) -> Compact | Later:
        self.asked.append(((seen.now_ms - START_MS) / HOUR, seen.tick_ms // MINUTE))
        return Compact() if seen.view.groups else Later(seen.now_ms + MINUTE)


def test_a_clock_that_stands_still_is_looked_at_after_commits_alone() -> None:
    """No time passes while a compaction runs. How far commits are apart is known once there are two."""
    commits = [commit(n, new("a", n - 0.1)) for n in range(1, 5)]
    still = replace(feed(*commits, bases={}, until_h=5), stands_still=True)
    policy = Always()
    found = simulate(still, policy, 6 * HOUR, EXACT, with_lags=True)
    assert policy.asked == [(1, 10), (2, 60), (3, 60), (4, 60)]
    assert found.compactions == 4
    assert found.lags == tuple((one.at_ms, 30 * MINUTE) for one in commits)


def test_a_machine_is_known_by_what_it_did() -> None:
    sizes = [n * 1_000_000_000 for n in range(1, 11)]
    done = [Done(0, 40_000 + size // 200_000, size) for size in sizes]
    found = machine_of(done)
    assert found is not None
    assert (found.fixed_ms, found.bytes_per_s) == pytest.approx((40_000, 200e6), rel=0.01)
    assert found.noise < 0.01
    assert machine_of(done[:2]) is None
    told = replace(feed(commit(1, new("a", 0.9)), bases={"a": 10}), machine=replace(found, fixed_ms=4 * HOUR, noise=0))
    late = simulate(told, At(2), 2 * HOUR)
    assert late.missed_min == pytest.approx((2 + 4 - 0.9 - 2) * 60 + 0.5, abs=0.1)


def test_an_io_bound_takes_the_slices_with_the_most_log_bytes() -> None:
    one = feed(commit(1, new("a", 0.9, 10), new("b", 0.9, 30), new("c", 0.9, 20)), bases={"b": 100}, until_h=1.5)
    found = simulate(one, HudiTrigger(1, None, 230), HOUR, EXACT)
    rest = simulate(one, HudiTrigger(1, None, 231), HOUR, EXACT)
    assert (found.compactions, rest.compactions) == (1, 1)
    assert found.bytes_read == 160


def test_the_sensors_rule() -> None:
    commits = [commit(n / 6, new("a", n / 6 - 0.1)) for n in range(1, 61)]
    found = simulate(feed(*commits, bases={"a": 10}, until_h=10.2), CompactEvery(2 * HOUR, 6 * HOUR), 6 * HOUR, EXACT)
    assert found.compactions == 5
    late = [*commits[:30], commit(5.05, new("a", -8)), *commits[30:]]
    found = simulate(feed(*late, bases={"a": 10}, until_h=10.2), CompactEvery(2 * HOUR, 6 * HOUR), 6 * HOUR, EXACT)
    assert found.compactions == 6


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_a_feed_is_what_it_says(name: str) -> None:
    made = feed_of(name, SMALL)
    assert made == feed_of(name, SMALL)
    assert made != feed_of(name, SMALL, seed=2)
    assert all(one.low <= one.high < commit.at_ms for commit in made.commits for one in commit.logs)
    rows = sum(one.growth for commit in made.commits for one in commit.logs)
    extra = 0.01 * 30 / 2 if name == "backfill" else 0
    assert rows == pytest.approx(2 * 0.8 * SMALL.day_bytes * (1 + extra), rel=0.02)


def test_no_other_feed() -> None:
    with pytest.raises(InvalidInput, match="no distribution 'x'"):
        feed_of("x")


@cache
def five(slo_h: int) -> dict[str, tuple[Outcome, Outcome | None]]:
    """Ours, and the best of Hudi's with its default numbers that keeps the SLO."""
    found = {}
    for name in DISTRIBUTIONS:
        made, slo = feed_of(name, SMALL), slo_h * HOUR
        ours = simulate(made, Ours(SloTerms(slo)), slo)
        found[name] = ours, fewest([simulate(made, policy, slo) for policy in defaults()], ours, slo)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("slo_h", [1, 6])
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_the_slo_is_kept_for_rows_that_came_in_time(name: str, slo_h: int) -> None:
    assert five(slo_h)[name][0].avoidable_min == 0


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_it_costs_half_of_hudis_best_or_hardly_more_than_anybody_has_to_move(name: str) -> None:
    """What comes late has to be rewritten for all that, and soon."""
    ours, hudi = five(6)[name]
    least = least_bytes(feed_of(name, SMALL), 6 * HOUR)
    assert hudi is not None
    assert least is not None
    assert least <= ours.bytes_moved <= max(hudi.bytes_moved / 2, 1.3 * least)
    assert five(1)[name][1] is None  # none of them keeps an hour


def test_only_what_keeps_the_slo_is_compared_with() -> None:
    ours = Outcome("ours", 1, 1, 50, 50, 60, 0)
    cheap = Outcome("misses", 1, 1, 1, 1, 10, 10)
    lazy = Outcome("leaves late rows for long", 1, 1, 2, 2, 60 + 91, 0)
    dear = Outcome("keeps", 1, 1, 200, 200, 60 + 90, 0)
    assert fewest([cheap, lazy, dear], ours, 6 * HOUR) is dear
    assert fewest([cheap, lazy], ours, 6 * HOUR) is None


def test_late_rows_break_the_slo_no_longer_than_is_stated() -> None:
    ours, _ = five(6)["backfill"]
    # Two hours of backfill, a quarter of the SLO after it, and the compactions.
    assert 0 < ours.missed_min <= 120 + 90 + 30


def test_a_picture() -> None:
    from hudi_assets.engine import compare

    made = feed_of("steady", Scale(days=1, groups=2, sample=48))
    drawn = svg(comparison_figure(compare(made, SloTerms(6 * HOUR), with_lags=True)))
    assert "SLO 6 h" in drawn
    assert "this policy" in drawn
