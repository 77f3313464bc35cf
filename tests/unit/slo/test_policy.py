"""What the policy proposes, and why: one rule at a time."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hudi_assets.engine import InvalidInput, duration, iso
from hudi_assets.engine.actions.compaction.closure import MergeRule
from hudi_assets.engine.actions.compaction.strategy import EventTimeBased, LogSummary
from hudi_assets.engine.model import FileSlice, LogFile, MergeMode, StartNow, WaitUntil
from hudi_assets.engine.slo.learning import learn
from hudi_assets.engine.slo.policy import propose
from hudi_assets.engine.slo.selection import taken
from hudi_assets.engine.slo.values import (
    UNKNOWN,
    Clock,
    Cut,
    Done,
    Group,
    History,
    Log,
    SloTerms,
    View,
)

MINUTE = 60_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR
NOW = 20_000 * DAY + 12 * HOUR
SLO = SloTerms(6 * HOUR)
# A minute for each 6 GB, as steadily as can be, and nothing besides.
STEADY = tuple(Done(NOW - DAY, n * MINUTE, n * 6_000_000_000) for n in range(1, 31))


def log(low_h: float, *, committed_h: float | None = None, high_h: float | None = None) -> Log:
    """Event times in hours before now."""
    low = NOW - round(low_h * HOUR)
    committed = low + 10 * MINUTE if committed_h is None else NOW - round(committed_h * HOUR)
    return Log(committed, low, low if high_h is None else NOW - round(high_h * HOUR), 1_000_000)


def group(name: str, base: int, *logs: Log) -> Group:
    return Group("p", name, base, logs)


def view(*groups: Group, latency: int = 30 * MINUTE, cut: Cut = Cut.PREFIX) -> View:
    return View(groups, latency, cut)


def ask(
    seen: View, terms: SloTerms = SLO, done: tuple[Done, ...] = STEADY, now: int = NOW, publish: int = MINUTE
) -> StartNow | WaitUntil:
    return propose(seen, History(done, 10 * MINUTE, publish), Clock(now), terms)


def starts(seen: View, terms: SloTerms = SLO, done: tuple[Done, ...] = STEADY, now: int = NOW) -> StartNow:
    found = ask(seen, terms, done, now)
    assert isinstance(found, StartNow), found
    return found


def waits(seen: View, terms: SloTerms = SLO, done: tuple[Done, ...] = STEADY, now: int = NOW) -> WaitUntil:
    found = ask(seen, terms, done, now)
    assert isinstance(found, WaitUntil), found
    return found


def test_it_starts_as_late_as_the_slo_allows() -> None:
    seen = view(group("a", 3_000_000_000, log(3)))
    until = waits(seen).until_ms
    due = NOW + 3 * HOUR - 1  # the event is six hours old, and freshness is a millisecond below it
    slowest = learn(STEADY).at_most(6_002_000_000)
    assert slowest > MINUTE
    assert due - MINUTE - slowest - MINUTE <= until <= due - MINUTE - slowest
    assert starts(seen, now=until).in_time
    assert "needs no compaction until" in waits(seen).why
    assert "6,002.0 MB" in waits(seen).why


def test_durations_that_vary_make_it_start_sooner() -> None:
    seen = view(group("a", 30_000_000_000, log(3)))  # ten minutes of work
    varied = tuple(Done(0, one.duration_ms * half // 2, one.size) for one in STEADY[::2] for half in (1, 3))
    # Half as long or half as long again: the worst is five minutes above the mean.
    usual = NOW + 3 * HOUR - 1 - MINUTE - learn(varied).likely(2 * 30_001_000_000)
    assert waits(seen, done=varied).until_ms < usual - 4 * MINUTE


def test_nothing_remains() -> None:
    assert "no log file remains" in waits(view()).why


def test_what_its_file_groups_have_besides_comes_along() -> None:
    found = starts(view(group("a", 10**9, log(5.98), log(3), log(0.6))))
    assert found.threshold == NOW - round(0.6 * HOUR)
    assert found.logs == 3
    assert "takes every remaining log file" in found.why


def test_a_file_group_with_nothing_due_is_put_off() -> None:
    found = starts(view(group("a", 10**9, log(5.98)), group("b", 10**11, log(2))))
    assert found.threshold == NOW - round(5.98 * HOUR)
    assert found.groups == 1
    assert "1 file groups wait" in found.why
    assert found.next_ms is not None
    assert found.next_ms < NOW + 4 * HOUR


def test_a_file_group_that_is_due_soon_comes_along_where_that_saves_a_rewriting() -> None:
    # To empty `a` now, `b` has to come with it; else `a` is rewritten again within the hour.
    found = starts(view(group("a", 10**11, log(5.98), log(5)), group("b", 10**9, log(5.5))))
    assert found.groups == 2
    assert found.logs == 3


def test_two_that_are_due_together_are_begun_in_time_for_both() -> None:
    long = 120_000_000_000  # twenty minutes each
    first = waits(view(group("a", long // 2, log(5)), group("b", long // 2, log(4.99))))
    assert first.until_ms <= NOW + HOUR - 40 * MINUTE


def test_rows_that_came_too_late_are_compacted_at_once_and_alone() -> None:
    late = log(9, committed_h=0.01)
    found = starts(view(group("old", 10**8, late), group("new", 10**11, log(1))))
    assert (found.groups, found.threshold) == (1, NOW - 9 * HOUR)
    assert "broken for them already" in found.why
    assert found.in_time


def test_more_of_them_are_gathered_for_a_quarter_of_the_slo_and_no_longer() -> None:
    done = (*STEADY, Done(NOW - 10 * MINUTE, 5 * MINUTE, 10**9))
    seen = view(group("old", 10**8, log(9, committed_h=0.01)))
    until = waits(seen, done=done).until_ms
    assert NOW + 79 * MINUTE <= until <= NOW + 80 * MINUTE
    starts(seen, done=done, now=until + MINUTE)
    starts(seen, SloTerms(6 * HOUR, late_every_ms=0), done)


def test_late_rows_that_a_plan_did_not_reach_go_at_once() -> None:
    """They were there when the last compaction began: one plan may reach less than was asked for."""
    done = (*STEADY, Done(NOW - 10 * MINUTE, 5 * MINUTE, 10**9))
    starts(view(group("old", 10**8, log(9, committed_h=0.2))), done=done)
    waits(view(group("old", 10**8, log(9, committed_h=0.1))), done=done)


def test_rows_in_time_do_not_wait_for_late_ones() -> None:
    done = (*STEADY, Done(NOW - 10 * MINUTE, 5 * MINUTE, 10**9))
    starts(view(group("old", 10**8, log(9, committed_h=0.01)), group("new", 10**8, log(5.98))), done=done)


def test_unknown_event_times_are_older_than_all() -> None:
    unknown = Log(NOW, UNKNOWN, NOW, 1)
    found = starts(view(group("a", 10**8, unknown), group("b", 10**11, log(1))))
    assert found.threshold == NOW - HOUR - 1
    assert starts(view(group("a", 10**8, unknown))).threshold == NOW - 30 * MINUTE


def test_no_threshold_lies_above_the_watermark() -> None:
    """Else rows of the next commit, in time by the data latency, would lie below what was compacted."""
    found = starts(view(group("a", 10**9, log(5.98), log(3), log(0.2))))
    assert (found.threshold, found.logs) == (NOW - 3 * HOUR, 2)


@pytest.mark.parametrize("cut", Cut)
def test_what_lies_above_the_watermark_is_waited_for_until_the_watermark_is_there(cut: Cut) -> None:
    above = waits(view(group("a", 10**8, log(5.99)), latency=7 * HOUR, cut=cut))
    assert f"the oldest remaining event is of {iso(NOW - round(5.99 * HOUR))}" in above.why
    assert above.until_ms == NOW - round(5.99 * HOUR) + 7 * HOUR
    assert "above the watermark, which lies 7 h behind the clock" in above.why
    assert "no compaction keeps an SLO of 6 h with a data latency of 7 h" in above.why
    starts(view(group("a", 10**8, log(5.99)), latency=7 * HOUR, cut=cut), now=above.until_ms)


def test_a_gap_between_two_starts() -> None:
    done = (*STEADY, Done(NOW - 10 * MINUTE, MINUTE, 10**9))
    found = waits(view(group("a", 10**8, log(5.99))), SloTerms(6 * HOUR, least_gap_ms=30 * MINUTE), done)
    assert found.until_ms == NOW + 20 * MINUTE
    assert "30 min between two compactions" in found.why


def test_bytes_an_hour() -> None:
    done = (*STEADY, Done(NOW - 10 * MINUTE, MINUTE, 10**10))
    found = waits(view(group("a", 10**8, log(5.99))), SloTerms(6 * HOUR, bytes_per_hour=10**10), done)
    assert found.until_ms == NOW + 50 * MINUTE
    assert "the bytes an hour" in found.why


def test_what_bytes_an_hour_cost_is_told() -> None:
    """The SLO is missed for the bound, and its owner sees how much of it was used."""
    done = tuple(Done(NOW - minutes * MINUTE, MINUTE, 10**10) for minutes in (1800, 180, 120, 10))
    found = waits(view(group("a", 10**8, log(5.99))), SloTerms(6 * HOUR, bytes_per_hour=5 * 10**9), done)
    assert found.until_ms == NOW + 110 * MINUTE
    needed = NOW + HOUR // 100 - 1 - MINUTE - learn(done).at_most(2 * 101_000_000)
    late = -(-(found.until_ms - needed) // MINUTE)
    assert f"{duration(late * MINUTE)} later than it is needed" in found.why
    assert (
        f"since {iso(NOW - DAY)} compactions moved 30,000.0 MB, and the bytes an hour allow 120,000.0 MB" in found.why
    )
    by_gap = waits(view(group("a", 10**8, log(5.99))), SloTerms(6 * HOUR, least_gap_ms=HOUR), done)
    assert "the bytes an hour" not in by_gap.why
    put_back = waits(
        view(group("a", 10**8, log(5.99))),
        SloTerms(6 * HOUR, bytes_per_hour=5 * 10**9),
        (Done(NOW + HOUR, MINUTE, 10**10),),
    )
    assert "compactions moved 10,000.0 MB, and the bytes an hour allow 0.0 MB" in put_back.why


def test_hours_of_the_day_that_end_before_it_is_due() -> None:
    seen = view(group("a", 10**8, log(3)))  # due at 15:00
    by_day = SloTerms(6 * HOUR, hours=(8, 14))
    assert NOW + 2 * HOUR - 2 * MINUTE <= waits(seen, by_day).until_ms < NOW + 2 * HOUR
    starts(seen, by_day, now=waits(seen, by_day).until_ms)
    by_night = SloTerms(6 * HOUR, hours=(22, 6))
    found = waits(seen, by_night)
    assert found.until_ms == NOW + 10 * HOUR  # it cannot be kept
    assert "hours of the day" in found.why
    starts(seen, by_night, now=NOW + 11 * HOUR)


def test_bounds_that_the_latency_breaks_are_told() -> None:
    """A latency that is learned is not known when the bounds are stated."""
    done = (*STEADY, Done(NOW - 10 * MINUTE, MINUTE, 10**9))
    seen = view(group("a", 10**8, log(5.99)), latency=2 * HOUR)
    found = waits(seen, SloTerms(6 * HOUR, least_gap_ms=5 * HOUR), done)
    assert "starts are 5 h or more apart (least gap): the freshness lies 7 h behind the clock" in found.why
    assert "no compaction keeps" not in waits(seen, SloTerms(6 * HOUR, least_gap_ms=3 * HOUR), done).why


def test_an_slo_below_the_latency_is_told() -> None:
    found = starts(view(group("a", 10**8, log(7.01)), latency=7 * HOUR))
    assert "no compaction keeps an SLO of 6 h with a data latency of 7 h" in found.why


@pytest.mark.parametrize(
    "wrong", [{"slo_ms": 0}, {"bytes_per_hour": 0}, {"hours": (3, 3)}, {"hours": (3, 25)}, {"hours": (24, 0)}]
)
def test_wrong_terms_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        SloTerms(**({"slo_ms": HOUR} | wrong))  # type: ignore[arg-type]


def test_a_large_backlog_is_compacted_in_parts_so_that_fresh_rows_need_not_wait() -> None:
    # A day of old file groups, each ten minutes of work: together more than half of the SLO.
    old = [group(f"old{n}", 30_000_000_000, log(30 + n, committed_h=0.05)) for n in range(24)]
    found = starts(view(*old, group("new", 10**8, log(0.3))))
    assert found.groups < 24
    assert learn(STEADY).at_most(found.size) <= 3 * HOUR


def test_an_overdue_backlog_goes_in_one_piece() -> None:
    """Ten hours' rows in each file group, as an outage of the daemon leaves them; no compaction was there before.

    In slices every base file would be rewritten for each, and the SLO would be broken for longer.
    """
    logs = [replace(log(10.3 - n / 6, committed_h=10 - n / 6), size=10_000_000) for n in range(60)]
    groups = [group(f"g{n}", 10**9, *logs) for n in range(16)]
    found = starts(view(*groups, latency=2 * HOUR), done=())
    assert found.groups == 16
    assert not found.in_time
    assert NOW - 6 * HOUR < found.threshold <= NOW - 2 * HOUR
    # What it leaves is kept in time after its end.
    ends = NOW + learn(()).at_most(found.size)
    left = view(*[group(g.file_id, g.base_bytes, *g.logs[found.logs // 16 :]) for g in groups], latency=2 * HOUR)
    kept = ask(left, done=(), now=ends)
    assert isinstance(kept, WaitUntil) or kept.in_time


def test_what_is_overdue_does_not_wait_for_what_is_not() -> None:
    """An hour of work in another file group would make it an hour later, whatever it saves."""
    slow = group("slow", 30_000_000_000, log(6.5), log(6.4))
    found = starts(view(slow, group("other", 90_000_000_000, log(4))))
    assert (found.groups, found.logs) == (1, 2)


@pytest.mark.parametrize("size", [1_000_000, 2_000_000_000, 30_000_000_000])
def test_one_compaction_that_took_hours_is_no_rule(size: int) -> None:
    """It was resumed hours after it had begun. A second one counts."""
    usual = tuple(Done(NOW - DAY, MINUTE + n * 1000, 2_000_000_000 + n * 10**7) for n in range(20))
    accident = Done(NOW - DAY, 8 * HOUR, size)
    for place in (0, 10, 20):
        assert learn((*usual[:place], accident, *usual[place:])).at_most(2_000_000_000) < 3 * MINUTE
    assert learn((*usual, accident, accident)).at_most(size) >= 8 * HOUR
    assert learn((*usual[:3], accident)).at_most(size) >= 8 * HOUR  # too few to know


def test_what_takes_longer_with_more_bytes_is_no_accident() -> None:
    large = Done(NOW - DAY, HOUR, 360_000_000_000)
    assert learn((*STEADY[:29], large)).at_most(large.size) >= HOUR
    assert learn((*STEADY[:29], Done(NOW - DAY, 2 * MINUTE, 6_000_000_000))).at_most(6_000_000_000) >= 2 * MINUTE


def test_nobody_asks_again_after_no_time() -> None:
    with pytest.raises(InvalidInput):
        Clock(NOW, 0)


LOGS = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 5)), min_size=1, max_size=7)


@given(LOGS, st.integers(-1, 21), st.sampled_from(Cut))
@example([(5, 0), (3, 2)], 3, Cut.RANGES)  # a tie
@settings(max_examples=200, deadline=None)
def test_a_threshold_takes_what_the_planner_takes(times: list[tuple[int, int]], threshold: int, cut: Cut) -> None:
    files = [LogFile(f"l{n}", "p", "f", "1", n, "", 1, f"l{n}") for n in range(len(times))]
    known = {f"l{n}": LogSummary(low, low + more, 0) for n, (low, more) in enumerate(times)}
    slice_ = FileSlice("p", "f", "1", None, tuple(files))
    rule = MergeRule(MergeMode.EVENT_TIME_ORDERING, by_event_time=cut is Cut.RANGES)
    by_planner, _ = EventTimeBased(threshold, known, rule, whole_slices=cut is Cut.SLICE).filter_log_files(slice_)
    ours = Group("p", "f", 0, tuple(Log(n, low, low + more, 1) for n, (low, more) in enumerate(times)))
    assert [one.committed_ms for one in taken(ours, threshold, cut)] == [one.version for one in by_planner]
