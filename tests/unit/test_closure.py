"""What joins a selection whatever the event times say."""

from __future__ import annotations

import pytest

from hudi_assets.engine.compaction.closure import MergeRule, close
from hudi_assets.engine.compaction.strategy import LogSummary
from hudi_assets.engine.model import MergeMode

BY_EVENT_TIME = MergeRule(MergeMode.EVENT_TIME_ORDERING, by_event_time=True)
KEEPING = MergeRule(MergeMode.EVENT_TIME_ORDERING, by_event_time=True, keeps_tombstones=True)
COMMIT_TIME = MergeRule(MergeMode.COMMIT_TIME_ORDERING, by_event_time=False)


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
