"""Whatever the selection takes, no answer changes: partial merge and full merge agree, row by row.

The oracle is a plain loop over records; it shares nothing with the vectorised merge but the rule.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hudi_assets.engine.actions.compaction.closure import MergeRule
from hudi_assets.engine.actions.compaction.strategy import filter_log_files
from hudi_assets.engine.merging.merge import KEY, Deletes, LogRecords, Rows, merge
from hudi_assets.engine.model import BoundRule, FileSlice, LogFile, MergeMode
from hudi_assets.engine.model.log_summary import Bound, LogSummary, Since, Undated

SCHEMA = pa.schema([(KEY, pa.string()), ("ts", pa.int64()), ("v", pa.int64())])


@dataclass(frozen=True)
class Event:
    """One log record. `ts` None: a delete in commit order."""

    key: str
    ts: int | None
    value: int | None  # None: a delete


def slow_merge(base: dict[str, Event], logs: list[list[Event]]) -> dict[str, Event]:
    """Record by record, in log order, deletes among them; then what is left of each key against its base row."""
    left: dict[str, Event] = {}
    for log in logs:
        for event in log:
            old = left.get(event.key)
            if old is None or event.ts is None:
                wins = True
            elif old.ts is None:  # a delete is passed over
                wins = event.value is not None
            else:
                wins = event.ts >= old.ts
            if wins:
                left[event.key] = event
    state = dict(base)
    for key, event in left.items():
        row = base.get(key)
        if row is None or row.ts is None or event.ts is None or event.ts >= row.ts:
            state[key] = event
    return state


def rows_of(state: dict[str, Event]) -> set[tuple[str, int | None, int | None]]:
    return {(e.key, e.ts, e.value) for e in state.values() if e.value is not None}


def as_records(log: list[Event]) -> list[LogRecords]:
    """A log's blocks: its rows, then its deletes (the order in which a writer puts them)."""
    rows = [e for e in log if e.value is not None]
    deletes = [e for e in log if e.value is None]
    blocks: list[LogRecords] = []
    if rows:
        columns = {KEY: [e.key for e in rows], "ts": [e.ts for e in rows], "v": [e.value for e in rows]}
        blocks.append(Rows(pa.table(columns, schema=SCHEMA)))
    if deletes:
        keys = pa.array([e.key for e in deletes], pa.string())
        blocks.append(Deletes(keys, pa.array([e.ts for e in deletes], pa.int64())))
    return blocks


def fast_merge(base: pa.Table | None, logs: list[list[Event]]) -> pa.Table:
    return merge(base, [block for log in logs for block in as_records(log)], ("ts",), SCHEMA)


def rows_of_table(table: pa.Table) -> set[tuple[str, int | None, int | None]]:
    rows = [(r[KEY], r["ts"], r["v"]) for r in table.to_pylist()]
    assert len(rows) == len({key for key, _, _ in rows}), "a key came twice"
    return set(rows)


@st.composite
def logs_of_events(draw: st.DrawFn) -> list[list[Event]]:
    counter = iter(range(1, 10_000))

    def event(key: str, ts: int, kind: str) -> Event:
        if kind == "row":
            return Event(key, ts, next(counter))
        return Event(key, ts if kind == "delete" else None, None)

    one = st.builds(
        event,
        st.sampled_from("ab"),
        st.integers(1, 4),
        st.sampled_from(["row", "row", "row", "delete", "delete-now"]),
    )
    logs = draw(st.lists(st.lists(one, min_size=1, max_size=2), min_size=1, max_size=5))
    # A writer combines a batch: one record of a key per log, rows before deletes.
    return [sorted({e.key: e for e in log}.values(), key=lambda e: e.value is None) for log in logs]


def as_slice(logs: list[list[Event]], bounds: list[int | None]) -> tuple[FileSlice, dict[str, LogSummary]]:
    """`bounds`: per log file what stands for event times that it does not have; beyond its end: None."""
    files = tuple(LogFile(f"log.{n}", "", "g", "1", n, "0-0-0", 1, f"log.{n}") for n in range(1, len(logs) + 1))
    summaries = {}
    for file, log in zip(files, logs, strict=True):
        times = [e.ts for e in log if e.ts is not None]
        low, high = min(times, default=None), max(times, default=None)
        barriers, deletes = len(log) - len(times), sum(e.value is None for e in log)
        summaries[file.path] = LogSummary(low, high, deletes)
        if barriers:
            at = next(iter(bounds[file.version - 1 :]), None)
            summaries[file.path] = LogSummary(
                None,
                None,
                deletes,
                barriers=barriers,
                undated=Undated(None, Since("1"), low, high),
                bound=None if at is None else Bound(min([at, *times]), BoundRule.LATENCY),
            )
    return FileSlice("", "g", "1", None, files), summaries


BOUNDS = st.lists(st.one_of(st.none(), st.integers(0, 6)), max_size=5)


def rule(by_event_time: bool, base_highest: float = math.inf) -> MergeRule:
    return MergeRule(MergeMode.EVENT_TIME_ORDERING, by_event_time, base_highest=lambda: base_highest)


@settings(max_examples=400, deadline=None)
@given(logs_of_events())
def test_vectorised_merge_agrees_with_the_loop(logs: list[list[Event]]) -> None:
    assert rows_of_table(fast_merge(None, logs)) == rows_of(slow_merge({}, logs))


@pytest.mark.slow
@settings(max_examples=1000, deadline=None)
@example([[Event("a", 3, 1)], [Event("b", 1, 2), Event("a", 3, 3)]], 1, True, 0, [])  # a tie across logs
@example([[Event("b", 2, 1), Event("a", 4, None)], [Event("a", 3, 2)]], 2, True, 0, [])  # a tombstone
# A delete in commit order, which ends what came before it, with one by event time in its log file, and before it.
@example([[Event("a", 4, 1)], [Event("a", None, None)], [Event("a", 3, 2)]], 1, True, 0, [9, 1, 9])
@example([[Event("b", 4, 1)], [Event("a", None, None), Event("b", 4, None)], [Event("b", 3, 2)]], 1, True, 0, [9, 1])
@example([[Event("a", None, None)], [Event("a", 1, 1)], [Event("a", 2, 2)]], 1, True, 0, [9])
@example([[Event("a", 3, 1)], [Event("a", None, None)], [Event("a", 2, 2)]], 1, True, 1, [0, 9])  # the base row is back
@given(logs_of_events(), st.integers(0, 5), st.booleans(), st.integers(0, 1), BOUNDS)
def test_a_partial_compaction_changes_no_answer(
    logs: list[list[Event]], threshold: int, by_event_time: bool, base_logs: int, bounds: list[int | None]
) -> None:
    head, tail = logs[:base_logs], logs[base_logs:]
    # A full compaction makes the base: it forgets tombstones, in Hudi too.
    base = fast_merge(None, head) if head else None
    before = rows_of_table(fast_merge(base, tail))
    slice_, summaries = as_slice(tail, bounds)
    highest = max(base["ts"].to_pylist(), default=-math.inf) if base is not None else -math.inf
    chosen, remain = filter_log_files(slice_, threshold, summaries, rule(by_event_time, highest))
    assert sorted((*chosen, *remain), key=lambda f: f.version) == list(slice_.log_files)
    merged = fast_merge(base, [tail[f.version - 1] for f in chosen])
    after = rows_of_table(fast_merge(merged, [tail[f.version - 1] for f in remain]))
    assert after == before


@settings(max_examples=300, deadline=None)
@given(logs_of_events(), st.integers(0, 5), st.booleans(), BOUNDS)
def test_nothing_at_or_below_the_threshold_remains(
    logs: list[list[Event]], threshold: int, by_event_time: bool, bounds: list[int | None]
) -> None:
    slice_, summaries = as_slice(logs, bounds)
    _, remain = filter_log_files(slice_, threshold, summaries, rule(by_event_time))
    for file in remain:
        for event in logs[file.version - 1]:
            # Without an event time, what bounds it: unknown, it is taken.
            at = event.ts if event.ts is not None else next(iter(bounds[file.version - 1 :]), None)
            assert at is not None
            assert at > threshold


def test_a_delete_in_commit_order_takes_what_comes_before_it_and_no_more() -> None:
    logs = [[Event("a", 9, 1)], [Event("a", None, None)], [Event("a", 8, 2)], [Event("b", 7, 3)]]
    slice_, summaries = as_slice(logs, [None, 2])

    def chosen(
        threshold: int, known: dict[str, LogSummary], by_event_time: bool, highest: float
    ) -> tuple[LogFile, ...]:
        return filter_log_files(slice_, threshold, known, rule(by_event_time, highest))[0]

    for by_event_time in (True, False):
        assert chosen(1, summaries, by_event_time, 7) == ()
    for known in (summaries, as_slice(logs, [])[1]):
        assert chosen(3, known, True, 7) == slice_.log_files[:2]
        # A remaining row may lie below a base row, which is back where the delete is not merged.
        assert chosen(3, known, True, 8) == slice_.log_files
        assert chosen(3, known, False, 7) == slice_.log_files
