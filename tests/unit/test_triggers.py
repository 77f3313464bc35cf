"""When a compaction is due: each trigger at its edge, and the reason in words where it is not."""

from __future__ import annotations

from typing import Any

import pytest

from hudi_assets.engine.actions.compaction.triggers import hold_back, not_due
from hudi_assets.engine.model import Action, Instant, NoPlan, State
from hudi_assets.engine.table.settings.compaction import CompactionSettings, TriggerName
from hudi_assets.engine.timeline.instants import Timeline

DELTA, COMMIT, COMPACTION = Action.DELTA_COMMIT, Action.COMMIT, Action.COMPACTION


def at(minute: int, second: int = 0) -> str:
    return f"2024010112{minute:02d}{second:02d}000"


def timeline(*steps: tuple[str, Action] | tuple[str, Action, State]) -> Timeline:
    instants = []
    for step in steps:
        time, action, state = (*step, State.COMPLETED)[:3]
        instants.append(Instant(time, action, state, ""))
    return Timeline(tuple(sorted(instants, key=lambda i: i.timestamp)))


def deltas(*minutes: int) -> list[tuple[str, Action]]:
    return [(at(minute), DELTA) for minute in minutes]


def reason(trigger: TriggerName, line: Timeline, now: str, **settings: Any) -> str | None:
    found = not_due(line, CompactionSettings(trigger=trigger, **settings), instant=now, timezone="UTC")
    return found.reason if found else None


def test_hudis_defaults() -> None:
    settings = CompactionSettings()
    assert (settings.max_delta_commits, settings.max_delta_seconds) == (5, 3600)


def test_num_commits_counts_those_after_the_last_completed_compaction() -> None:
    four = timeline(*deltas(1, 2, 3), (at(4), COMMIT), *deltas(5, 6, 7, 8))
    assert reason(TriggerName.NUM_COMMITS, four, at(9)) == (
        "4 delta commits since the last compaction; 5 are asked for (hoodie.compact.inline.max.delta.commits)"
    )
    five = timeline(*deltas(1, 2, 3), (at(4), COMMIT), *deltas(5, 6, 7, 8, 9))
    assert reason(TriggerName.NUM_COMMITS, five, at(10)) is None


def test_without_a_compaction_every_delta_commit_counts() -> None:
    one = timeline(*deltas(1))
    assert reason(TriggerName.NUM_COMMITS, one, at(9), max_delta_commits=1) is None
    assert reason(TriggerName.NUM_COMMITS, one, at(9), max_delta_commits=2) == (
        "1 delta commit since the first delta commit; 2 are asked for (hoodie.compact.inline.max.delta.commits)"
    )


@pytest.mark.parametrize("trigger", [t for t in TriggerName if t is not TriggerName.EVENT_TIME])
def test_an_empty_table_is_never_due(trigger: TriggerName) -> None:
    assert (
        reason(trigger, timeline(), at(9), max_delta_commits=0, max_delta_seconds=0) == "there is no delta commit yet"
    )


def test_a_pending_request_counts_for_its_own_trigger_only() -> None:
    line = timeline(*deltas(1, 2, 3), (at(4), COMPACTION, State.REQUESTED), *deltas(5, 6))
    after = TriggerName.NUM_COMMITS_AFTER_LAST_REQUEST
    assert reason(TriggerName.NUM_COMMITS, line, at(9)) is None
    assert reason(after, line, at(9), max_delta_commits=2) is None
    assert reason(after, line, at(9), max_delta_commits=3) == (
        "2 delta commits since the last compaction request; 3 are asked for (hoodie.compact.inline.max.delta.commits)"
    )


def test_without_a_pending_request_the_last_compaction_counts() -> None:
    line = timeline(*deltas(1, 2), (at(4), COMMIT), *deltas(5))
    after = TriggerName.NUM_COMMITS_AFTER_LAST_REQUEST
    assert "1 delta commit since the last compaction;" in (reason(after, line, at(9)) or "")


def test_time_elapsed_is_counted_in_whole_seconds_from_the_last_compaction() -> None:
    line = timeline(*deltas(1), (at(4), COMMIT), *deltas(5))
    trigger = TriggerName.TIME_ELAPSED
    assert reason(trigger, line, at(5, 59), max_delta_seconds=120) == (
        "119 s since the last compaction; 120 s are asked for (hoodie.compact.inline.max.delta.seconds)"
    )
    assert reason(trigger, line, at(6), max_delta_seconds=120) is None


def test_time_elapsed_begins_with_the_first_delta_commit() -> None:
    line = timeline(*deltas(1, 5))
    assert reason(TriggerName.TIME_ELAPSED, line, at(2), max_delta_seconds=60) is None
    assert "59 s since the first delta commit" in (
        reason(TriggerName.TIME_ELAPSED, line, at(1, 59), max_delta_seconds=60) or ""
    )


@pytest.mark.parametrize(
    ("commits", "seconds", "both", "either"),
    [(2, 60, True, True), (3, 60, False, True), (2, 601, False, True), (3, 601, False, False)],
)
def test_number_and_time_together(commits: int, seconds: int, both: bool, either: bool) -> None:
    line = timeline(*deltas(0, 1))
    bounds = {"max_delta_commits": commits, "max_delta_seconds": seconds}
    assert (reason(TriggerName.NUM_AND_TIME, line, at(10), **bounds) is None) == both
    assert (reason(TriggerName.NUM_OR_TIME, line, at(10), **bounds) is None) == either


def test_the_event_time_trigger_waits_for_no_number() -> None:
    assert reason(TriggerName.EVENT_TIME, timeline(), at(9)) is None


@pytest.mark.parametrize(
    ("step", "words"),
    [
        ((at(4), COMPACTION, State.REQUESTED), f"compaction {at(4)} is pending"),
        ((at(4), Action.REPLACE_COMMIT, State.INFLIGHT), f"replacecommit {at(4)} is pending"),
        ((at(4), DELTA, State.INFLIGHT), f"deltacommit {at(4)} is inflight"),
    ],
)
def test_unfinished_work_holds_every_trigger_back(step: tuple[str, Action, State], words: str) -> None:
    assert hold_back(timeline(*deltas(1), step)) == NoPlan(words)


def test_a_dead_planners_guard_holds_nothing_back() -> None:
    line = timeline((at(4), COMPACTION, State.REQUESTED))
    assert hold_back(line, ignore=frozenset([at(4)])) is None
