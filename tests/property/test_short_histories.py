"""Every short history of a key as Hudi 1.2.0 merges it (tests/interop/test_merge_rules.py), compacted in every part.

A log file for each record, a base row or none, every threshold between. Deletes without ordering value are due where
the threshold reaches what bounds them.
"""

from __future__ import annotations

import math
from itertools import product

import pytest

from hudi_assets.engine.model import MergeMode
from tests.property.test_merge_modes import (
    Record,
    highest_of,
    leave,
    loop_event_time,
    merged,
    parted,
    read_on,
    rows_of,
    shown,
    table_of,
)

BASE = 10
SAID = ("r5", "r10", "r20", "d5", "d20", "D5", "N")  # rows, deletes of delete blocks, a row that is deleted
BOUNDS = (4, 12)  # of a delete without ordering value
THRESHOLDS = (4, 5, 12)
LONGEST = 4


def record(said: str, value: int) -> Record:
    if said == "N":
        return Record("k", None, "delete", value)
    kind = {"r": "row", "d": "delete", "D": "deleted row"}[said[0]]
    return Record("k", int(said[1:]), kind, value)  # type: ignore[arg-type]


# The longest take 20 s of CPU, and are the same rules once more.
@pytest.mark.parametrize("length", [2, 3, pytest.param(LONGEST, marks=pytest.mark.thorough)])
def test_no_partial_compaction_changes_an_answer(length: int) -> None:
    parts = 0
    for has_base, said in product((False, True), product(SAID, repeat=length)):
        base = {"k": Record("k", BASE, "row", 0)} if has_base else {}
        logs = [[record(one, n)] for n, one in enumerate(said, 1)]
        table = table_of(base)
        before = rows_of(merged(table, logs, MergeMode.EVENT_TIME_ORDERING))
        assert before == shown(loop_event_time(base, [r for log in logs for r in log], False)), (has_base, said)
        tried = set()
        for threshold, bound, keeps, footer in product(THRESHOLDS, BOUNDS, (False, True), (False, True)):
            chosen, remain = parted(
                logs,
                threshold,
                MergeMode.EVENT_TIME_ORDERING,
                by_event_time=True,
                keeps_tombstones=keeps,
                bounds=[bound] * length,
                base_highest=highest_of(table) if footer else math.inf,
            )
            found = (tuple(log[0].value for log in chosen), keeps)
            if not chosen or not remain or found in tried:
                continue
            tried.add(found)
            parts += 1
            what = (has_base, said, threshold, bound, keeps, footer)
            if keeps:
                new_base, residue = leave(table, chosen, remain, by_event_time=True)
                assert read_on(new_base, residue, remain) == before, what
            else:
                new_base = merged(table, chosen, MergeMode.EVENT_TIME_ORDERING)
                assert rows_of(merged(new_base, remain, MergeMode.EVENT_TIME_ORDERING)) == before, what
    assert parts > 50
