"""Closing a selection of a slice's log files, so that merging them now and the rest later changes no answer. Pure.

What is merged early becomes base rows. That is the same as merging all at once only where no remaining record
could have decided otherwise against a log record than against that base row.
`docs/explanation/merge.md` has the rule of each mode.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import compress
from operator import not_
from typing import Final, Protocol

from hudi_assets.engine.model import MergeMode

# Each mode has its rule below. One that is added takes whole slices until it has one, and so does a merge that is not
# known. And so do partial updates: a column is filled by what comes first, and a base row comes last. And so do records
# in which one of several ordering fields is null: what Hudi makes of two of them depends on which ones it compares.
_HAVE_RULES: Final = frozenset(
    {
        MergeMode.EVENT_TIME_ORDERING,
        MergeMode.COMMIT_TIME_ORDERING,
        MergeMode.OVERWRITE_WITH_LATEST,
        MergeMode.EVENT_TIME_ORDERING_0X,
    }
)


class Summary(Protocol):
    """What a selection knows of a log file (strategy.LogSummary)."""

    @property
    def min_event_time(self) -> int | None: ...
    @property
    def max_event_time(self) -> int | None: ...
    @property
    def lowest(self) -> float: ...
    @property
    def highest(self) -> float: ...
    @property
    def deletes(self) -> int | None: ...
    @property
    def barriers(self) -> int: ...
    @property
    def rollbacks(self) -> int: ...
    @property
    def not_merged(self) -> str | None: ...
    @property
    def partial(self) -> bool: ...
    @property
    def nulls(self) -> bool: ...
    @property
    def known(self) -> bool: ...


def _unknown() -> float:
    return math.inf


@dataclass(frozen=True, slots=True)
class MergeRule:
    """What a selection must know of the table's merging.

    `mode`: None where nobody here knows how records are merged. `by_event_time`: the ordering field is the event-time
    field, in a form that sorts as the times do.
    `keeps_tombstones`: the execution writes a residue log, so that no delete is forgotten by a partial merge.
    `finds_keys_in_base_files`: the index of the table's writers does (any but the bucket index).
    `base_highest`: the greatest event time in the slice's base file, infinity where it is unknown. `several_fields`:
    another field decides where two records have the same event time. `fills_gaps`: of what older records of the key
    have.
    """

    mode: MergeMode | None
    by_event_time: bool
    keeps_tombstones: bool = False
    finds_keys_in_base_files: bool = False
    base_highest: Callable[[], float] = _unknown
    several_fields: bool = False
    fills_gaps: bool = False

    def may_exceed(self, one: float, other: float) -> bool:
        """True where a record of the one event time may be greater than one of the other."""
        return one > other or (self.several_fields and one == other)


def close(known: Sequence[Summary], selected: Sequence[bool], rule: MergeRule) -> list[bool]:
    """The selection, enlarged as far as it must be. `known` is in log order; at least one file is selected."""
    if rule.mode is not None and rule.mode.compares_base_rows and rule.by_event_time:
        closed = _close_ranges(known, selected)
    else:
        closed = _close_prefix(selected)
    if all(closed) or not _must_take_whole_slice(known, closed, rule):
        return closed
    return [True] * len(closed)


def _close_prefix(selected: Sequence[bool]) -> list[bool]:
    last = max(i for i, take in enumerate(selected) if take)
    return [i <= last for i in range(len(selected))]


def _close_ranges(known: Sequence[Summary], selected: Sequence[bool]) -> list[bool]:
    """An earlier log joins unless every selected log after it lies wholly below it: then no tie can flip."""
    result = list(selected)
    highest = -math.inf
    for i in reversed(range(len(known))):
        low = known[i].min_event_time
        if not result[i] and highest > -math.inf and (low is None or highest >= low):
            result[i] = True
        if result[i]:
            high = known[i].max_event_time
            if high is None or low is None:
                highest = math.inf
            elif high > highest:
                highest = high
    return result


def _must_take_whole_slice(known: Sequence[Summary], selected: Sequence[bool], rule: MergeRule) -> bool:
    """True where a partial merge would part a rollback from its target, or give another answer than a whole one."""
    if any(s.rollbacks for s in known):
        return True
    if rule.mode not in _HAVE_RULES or any(s.not_merged or s.partial or s.nulls for s in known):
        return True
    if rule.fills_gaps and (rule.mode is not MergeMode.COMMIT_TIME_ORDERING or any(s.deletes != 0 for s in known)):
        # As with partial updates. In commit order the newest value of a column stays, wherever the slice is parted. But
        # a row after a delete is filled from the base row, and from no log record before the delete.
        return True
    taken = list(compress(known, selected))
    if rule.finds_keys_in_base_files and any(s.deletes != 0 for s in taken):
        # The base file would lose a key of which a remaining log file may hold a row: a writer would insert it again.
        return True
    if rule.mode is MergeMode.EVENT_TIME_ORDERING_0X:
        return _a_base_row_may_come_back(known, selected, rule) or _a_remaining_delete_may_decide_otherwise(
            known, selected, rule
        )
    if rule.mode is MergeMode.EVENT_TIME_ORDERING and _a_delete_in_commit_order_may_decide_otherwise(
        known, selected, rule
    ):
        return True
    # A delete in commit order needs no tombstone: what came before it is taken, what comes after it wins anyway.
    deleting = [s for s in taken if s.deletes != s.barriers]
    if not deleting and rule.mode is not MergeMode.OVERWRITE_WITH_LATEST:
        return False
    lowest = min((s.lowest for s in compress(known, map(not_, selected))), default=math.inf)
    if rule.mode is MergeMode.OVERWRITE_WITH_LATEST:
        # A remaining record overwrites the base row whatever its ordering value; against the log record it may lose.
        return not rule.by_event_time or any(s.highest > lowest for s in taken)
    if rule.mode is MergeMode.COMMIT_TIME_ORDERING or rule.keeps_tombstones:
        return False
    # A merged delete leaves no base row. With another ordering field, event times do not say which records it beats.
    return any(not rule.by_event_time or s.deletes is None or s.highest >= lowest for s in deleting)


def _a_base_row_may_come_back(known: Sequence[Summary], selected: Sequence[bool], rule: MergeRule) -> bool:
    """As Hudi 0.x merges: a row after a delete is compared with the base row, which a merge of the delete takes away.

    One in commit order does no harm where no remaining row lies below a base row.
    """
    taken = list(compress(known, selected))
    if any(s.deletes != s.barriers for s in taken):
        return True
    return any(s.deletes for s in taken) and _may_lie_below_a_base_row(compress(known, map(not_, selected)), rule)


def _a_remaining_delete_may_decide_otherwise(
    known: Sequence[Summary], selected: Sequence[bool], rule: MergeRule
) -> bool:
    """As Hudi 0.x merges: a delete ends a base row, and may lose to a log record; the row after it beats it always."""
    first = next((i for i, s in enumerate(known) if not selected[i] and s.deletes != 0), None)
    return first is not None and not _all_is_above(known, selected, first, rule)


def _a_delete_in_commit_order_may_decide_otherwise(
    known: Sequence[Summary], selected: Sequence[bool], rule: MergeRule
) -> bool:
    """As Hudi 1.x merges: a row after one is compared with the base row, which a merge of the delete takes away.

    And a delete with an ordering value right after one is passed over, as long as that one is not merged. A remaining
    one hides the log records before it from the rows after it, but not the base rows that they became.
    """
    remaining = list(compress(known, map(not_, selected)))
    if any(map(_may_have_one_in_commit_order, compress(known, selected))) and (
        any(s.deletes != s.barriers for s in remaining) or _may_lie_below_a_base_row(remaining, rule)
    ):
        return True
    first = next((i for i, s in enumerate(known) if not selected[i] and _may_have_one_in_commit_order(s)), None)
    return first is not None and not _all_is_above(known, selected, first, rule)


def _may_have_one_in_commit_order(summary: Summary) -> bool:
    return summary.deletes is None or summary.barriers > 0


def _may_lie_below_a_base_row(remaining: Iterable[Summary], rule: MergeRule) -> bool:
    lowest = min((s.lowest for s in remaining), default=math.inf)
    return not rule.by_event_time or (lowest < math.inf and rule.may_exceed(rule.base_highest(), lowest))


def _all_is_above(known: Sequence[Summary], selected: Sequence[bool], first: int, rule: MergeRule) -> bool:
    """True where from this log file on nothing is taken, and nothing lies below what is taken."""
    if not rule.by_event_time or any(selected[first:]):
        return False
    highest = max(s.highest for s in compress(known, selected))
    return not any(rule.may_exceed(highest, s.lowest) for s in known[first:])
