"""What joins a selection whatever the event times say."""

from __future__ import annotations

import math
from enum import StrEnum

import pytest

from hudi_assets.engine.actions.compaction.closure import MergeRule, close
from hudi_assets.engine.actions.compaction.strategy import LogSummary
from hudi_assets.engine.model import MergeMode
from hudi_assets.engine.model.log_summary import Since, Undated

BY_EVENT_TIME = MergeRule(MergeMode.EVENT_TIME_ORDERING, by_event_time=True)
KEEPING = MergeRule(MergeMode.EVENT_TIME_ORDERING, by_event_time=True, keeps_tombstones=True)
COMMIT_TIME = MergeRule(MergeMode.COMMIT_TIME_ORDERING, by_event_time=False)


AS_0_X = MergeRule(MergeMode.EVENT_TIME_ORDERING_0X, by_event_time=True)


def log(low: int, high: int, *, rollbacks: int = 0) -> LogSummary:
    return LogSummary(low, high, 0, rollbacks)


def test_another_ordering_field_takes_a_prefix() -> None:
    """Event times that lie apart say nothing about which record wins then."""
    logs = [log(5, 6), log(1, 2), log(7, 8)]
    assert close(logs, [False, True, False], BY_EVENT_TIME) == [False, True, False]
    by_seq = MergeRule(MergeMode.EVENT_TIME_ORDERING, by_event_time=False)
    for rule in (by_seq, COMMIT_TIME):
        assert close(logs, [False, True, False], rule) == [True, True, False]


@pytest.mark.parametrize("rule", [BY_EVENT_TIME, KEEPING, COMMIT_TIME])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_rollback_block_stays_with_its_target(rule: MergeRule, place: int) -> None:
    """The block may be in a file of its own behind its target, which is selected or not: they stay together."""
    logs = [log(1, 2), log(5, 6), log(7, 8)]
    assert close(logs, [True, False, False], rule) == [True, False, False]
    logs[place] = log(logs[place].min_event_time or 0, logs[place].max_event_time or 0, rollbacks=1)
    assert close(logs, [True, False, False], rule) == [True, True, True]


@pytest.mark.parametrize("mode", MergeMode)
@pytest.mark.parametrize("keeps_tombstones", [False, True])
def test_an_index_that_looks_in_base_files_allows_no_lost_key(mode: MergeMode, keeps_tombstones: bool) -> None:
    """A delete takes the whole slice with it: a remaining log file may hold a row of its key."""
    rule = MergeRule(mode, True, keeps_tombstones, finds_keys_in_base_files=True)
    plain, deleting, unknown = log(1, 2), LogSummary(1, 2, 1), LogSummary(1, 2, None)
    later = [log(5, 6), log(7, 8)]
    assert close([plain, *later], [True, False, False], rule) == [True, False, False]
    for first in (deleting, unknown):
        assert close([first, *later], [True, False, False], rule) == [True, True, True]
    # What remains may delete.
    assert close([plain, LogSummary(5, 6, 1)], [True, False], rule) == [True, False]


def deleting(low: int | None, high: int | None) -> LogSummary:
    return LogSummary(low, high, 1)


@pytest.mark.parametrize(
    ("logs", "selected", "taken"),
    [
        # Without deletes 0.x and 1.x merge alike: an earlier log file may stay.
        ([log(5, 6), log(1, 2), log(7, 8)], [False, True, False], [False, True, False]),
        # A remaining row after a merged delete would have brought the base row back.
        ([deleting(1, 2), log(5, 6)], [True, False], [True, True]),
        ([LogSummary(1, 2, None), log(5, 6)], [True, False], [True, True]),
        # A remaining delete below what was merged would end it, where it loses to a log record.
        ([log(1, 6), deleting(5, 7)], [True, False], [True, True]),
        ([log(1, 6), deleting(None, None)], [True, False], [True, True]),
        ([log(1, 5), deleting(5, 7)], [True, False], [True, False]),
        # A row after a remaining delete is compared with the base row.
        ([log(1, 5), deleting(6, 7), log(4, 9)], [True, False, False], [True, True, True]),
        ([log(1, 5), log(4, 9), deleting(6, 7)], [True, False, False], [True, False, False]),
        # A row that is due after a remaining delete would be the base row that it ends.
        ([deleting(5, 6), log(1, 2)], [False, True], [True, True]),
        ([deleting(5, 6), log(2, 2)], [False, True], [True, True]),
    ],
)
def test_deletes_as_hudi_0_x_merges_them(logs: list[LogSummary], selected: list[bool], taken: list[bool]) -> None:
    assert close(logs, selected, AS_0_X) == taken


def test_deletes_as_hudi_0_x_merges_them_with_another_ordering_field() -> None:
    by_seq = MergeRule(MergeMode.EVENT_TIME_ORDERING_0X, by_event_time=False)
    assert close([log(1, 2), log(5, 6)], [True, False], by_seq) == [True, False]
    assert close([log(1, 2), deleting(5, 6)], [True, False], by_seq) == [True, True]


def barring(deletes: int = 1) -> LogSummary:
    """A log file of one delete in commit order, and maybe others."""
    return LogSummary(None, None, deletes, barriers=1, undated=Undated(None, Since("1")))


@pytest.mark.parametrize("keeps_tombstones", [False, True])
@pytest.mark.parametrize(
    ("logs", "selected", "taken", "base_highest"),
    [
        # A remaining row below a base row: that one is back as long as the delete is not merged.
        ([barring(), log(5, 6)], [True, False], [True, False], 5),
        ([barring(), log(5, 6)], [True, False], [True, True], 6),
        ([barring(), log(5, 6)], [True, False], [True, True], math.inf),
        ([LogSummary(None, None, None), log(5, 6)], [True, False], [True, True], 6),
        # Rows beside the delete, above what remains, are no deletes that a remaining row could meet.
        (
            [LogSummary(None, None, 1, barriers=1, undated=Undated(None, Since("1"), 4, 9)), log(5, 6)],
            [True, False],
            [True, False],
            5,
        ),
        # Nothing remains that a base row could be compared with.
        ([barring(), barring()], [True, False], [True, False], math.inf),
        # A remaining delete with an ordering value is passed over as long as the other is not merged.
        ([barring(), deleting(5, 6)], [True, False], [True, True], 0),
        ([barring(), barring(2)], [True, False], [True, True], 0),
        # A remaining one ends the log records before it, and not the base rows that they become.
        ([log(1, 5), barring(), log(5, 6)], [True, False, False], [True, False, False], math.inf),
        ([log(1, 6), barring(), log(5, 6)], [True, False, False], [True, True, True], 0),
        ([log(1, 6), LogSummary(None, None, None)], [True, False], [True, True], 0),
        ([log(1, 6), log(5, 6), barring()], [True, False, False], [True, False, False], 0),
    ],
)
def test_deletes_in_commit_order_as_hudi_1_x_merges_them(
    logs: list[LogSummary], selected: list[bool], taken: list[bool], base_highest: float, keeps_tombstones: bool
) -> None:
    rule = MergeRule(MergeMode.EVENT_TIME_ORDERING, True, keeps_tombstones, base_highest=lambda: base_highest)
    assert close(logs, selected, rule) == taken


def test_deletes_in_commit_order_with_another_ordering_field() -> None:
    """Event times say nothing about which row lies below another."""
    rule = MergeRule(MergeMode.EVENT_TIME_ORDERING, by_event_time=False, base_highest=lambda: 0)
    assert close([barring(), log(5, 6)], [True, False], rule) == [True, True]
    assert close([log(1, 2), barring(), log(5, 6)], [True, False, False], rule) == [True, True, True]


class _Later(StrEnum):
    """A merge mode that somebody has just added."""

    FIRST_RECORD_WINS = "FIRST_RECORD_WINS"

    @property
    def compares_base_rows(self) -> bool:
        return False


def test_a_mode_without_a_rule_takes_the_whole_slice() -> None:
    rule = MergeRule(_Later.FIRST_RECORD_WINS, by_event_time=True)  # type: ignore[arg-type]
    assert close([log(1, 2), log(5, 6)], [True, False], rule) == [True, True]
