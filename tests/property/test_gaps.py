"""Merges of rows with gaps against a plain loop: Hudi's partial update modes IGNORE_DEFAULTS and FILL_UNAVAILABLE.

The loop takes one record after the other, as Hudi 1.2's PartialUpdateHandler does, and shares nothing with the
vectorised merge but the rule.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hudi_assets.engine.errors import UnsupportedTable
from hudi_assets.engine.merging.gaps import Gaps
from hudi_assets.engine.merging.merge import IS_DELETED, KEY, Deletes, LogRecords, Rows, merge
from hudi_assets.engine.merging.passes import DEFAULT_MEMORY, SliceMerge
from hudi_assets.engine.model import MergeMode
from tests.tables.held_slice import HeldSlice

EVENT_TIME, COMMIT_TIME = MergeMode.EVENT_TIME_ORDERING, MergeMode.COMMIT_TIME_ORDERING
MARKER = "?"
NULLS, MARKERS = Gaps(), Gaps(MARKER)
BOTH = pytest.mark.parametrize("gaps", [NULLS, MARKERS], ids=["IGNORE_DEFAULTS", "FILL_UNAVAILABLE"])
MODES = pytest.mark.parametrize("mode", [EVENT_TIME, COMMIT_TIME])
Kind = Literal["row", "deleted row", "delete"]
SCHEMA = pa.schema(
    [
        (KEY, pa.string()),
        ("ts", pa.int64()),
        ("a", pa.string()),
        ("b", pa.string()),
        ("n", pa.int64()),
        (IS_DELETED, pa.bool_()),
    ]
)


@dataclass(frozen=True)
class Record:
    """One record. `ts` None: a delete in commit order."""

    key: str
    ts: int | None
    kind: Kind
    a: str | None = None
    b: str | None = None
    n: int | None = None

    @property
    def in_commit_order(self) -> bool:
        return self.kind != "row" and self.ts is None

    def filled_from(self, low: Record, gaps: Gaps) -> Record:
        """Neither is a delete, or nothing is filled."""
        if self.kind != "row" or low.kind != "row":
            return self
        lacking = (name for name in "abn" if getattr(self, name) == gaps.marker)
        return replace(self, **{name: getattr(low, name) for name in lacking})


def by_event_time(old: Record, new: Record, gaps: Gaps) -> Record:
    if old.in_commit_order and new.kind == "delete":
        return old
    if new.in_commit_order or old.in_commit_order:
        return new
    assert old.ts is not None
    assert new.ts is not None
    return old.filled_from(new, gaps) if old.ts > new.ts else new.filled_from(old, gaps)


def loop(base: list[Record], logs: list[list[Record]], mode: MergeMode, gaps: Gaps) -> list[Record]:
    def fold(old: Record, new: Record) -> Record:
        return by_event_time(old, new, gaps) if mode is EVENT_TIME else new.filled_from(old, gaps)

    found: dict[str, Record] = {}
    for new in (record for log in logs for record in log):
        found[new.key] = fold(found[new.key], new) if new.key in found else new
    # The first of a key's base rows is merged, and then nothing is left to merge the others with.
    rows = [fold(row, found.pop(row.key)) if row.key in found else row for row in base]
    return [record for record in (*rows, *found.values()) if record.kind == "row"]


# ------------------------------------------------------------------------------------------- random logs


TEXTS = st.sampled_from([None, MARKER, MARKER, "x", "y", "z"])
KEYS = st.sampled_from(["a", "b", "c", MARKER])
NUMBERS = st.sampled_from([None, 0, 1, 2])


@st.composite
def logs_of(draw: st.DrawFn, deletes: bool = True) -> list[list[Record]]:
    blocks = []
    for _ in range(draw(st.integers(1, 6))):
        if deletes and draw(st.integers(0, 3)) == 0:
            one = st.builds(Record, KEYS, st.sampled_from([0, 1, 2, 3, None]), st.just("delete"))
        else:
            kinds = st.sampled_from(["row", "row", "row", "row", "deleted row" if deletes else "row"])
            one = st.builds(Record, KEYS, st.integers(0, 3), kinds, TEXTS, TEXTS, NUMBERS)
        blocks.append(draw(st.lists(one, min_size=1, max_size=5)))
    return blocks


BASES = st.lists(st.builds(Record, KEYS, st.integers(0, 3), st.just("row"), TEXTS, TEXTS, NUMBERS), max_size=4)
UNIQUE = BASES.map(lambda rows: list({row.key: row for row in rows}.values()))


def block_of(records: list[Record]) -> LogRecords:
    if records and records[0].kind == "delete":
        return Deletes(pa.array([r.key for r in records]), pa.array([r.ts for r in records], pa.int64()))
    return Rows(table_of(records))


def table_of(records: list[Record]) -> pa.Table:
    rows = [(r.key, r.ts, r.a, r.b, r.n, r.kind == "deleted row") for r in records]
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], SCHEMA)


def shown(records: list[Record]) -> list[tuple[object, ...]]:
    return sorted(((r.key, r.ts, r.a, r.b, r.n) for r in records), key=str)


def rows_in(table: pa.Table) -> list[tuple[object, ...]]:
    assert table.schema.equals(SCHEMA)
    return sorted((tuple(row[name] for name in (KEY, "ts", "a", "b", "n")) for row in table.to_pylist()), key=str)


def merged(base: list[Record], logs: list[list[Record]], mode: MergeMode, gaps: Gaps) -> pa.Table:
    ordering = ("ts",) if mode is EVENT_TIME else ()
    return merge(table_of(base), [block_of(log) for log in logs], ordering, SCHEMA, mode, gaps)


@BOTH
@MODES
@settings(max_examples=200, deadline=None)
@given(base=UNIQUE, logs=logs_of())
# What fills a column first stays, whatever comes between by event time.
@example(
    base=[Record("a", 0, "row", "base", "base", 0)],
    logs=[[Record("a", 3, "row", "x", None)], [Record("a", 1, "row", "y", "y")], [Record("a", 2, "row", "z", "z")]],
)
# A base row that wins is filled too.
@example(base=[Record("a", 3, "row", "base", None)], logs=[[Record("a", 1, "row", "x", "x", 1)]])
@example(base=[Record("a", 3, "row", MARKER, "base")], logs=[[Record("a", 1, "row", "x", "x", 1)]])
# Nothing is filled across a delete, but from the base row.
@example(
    base=[Record("a", 0, "row", "base", "base", 0)],
    logs=[[Record("a", 1, "row", "x", "x", 1)], [Record("a", 1, "delete")], [Record("a", 2, "row", None, MARKER)]],
)
@example(base=[], logs=[[Record("a", 1, "deleted row", "x", "x", 1)], [Record("a", 2, "row", None, MARKER)]])
def test_gaps_agree_with_the_loop(gaps: Gaps, mode: MergeMode, base: list[Record], logs: list[list[Record]]) -> None:
    assert rows_in(merged(base, logs, mode, gaps)) == shown(loop(base, logs, mode, gaps))


@BOTH
@MODES
@settings(max_examples=100, deadline=None)
@given(
    base=BASES,
    logs=logs_of(),
    memory=st.sampled_from([1, 60, 200, 1000, DEFAULT_MEMORY]),
    at_once=st.integers(1, 4),
    block_bytes=st.sampled_from([1, 99]),
    chooses=st.booleans(),
)
def test_in_passes_too(
    gaps: Gaps,
    mode: MergeMode,
    base: list[Record],
    logs: list[list[Record]],
    memory: int,
    at_once: int,
    block_bytes: int,
    chooses: bool,
) -> None:
    ordering = ("ts",) if mode is EVENT_TIME else ()
    held = HeldSlice(table_of(base), [block_of(log) for log in logs], at_once, block_bytes, chooses)
    passes = SliceMerge(held, ordering, mode, memory, gaps=gaps)
    found = pa.concat_tables([SCHEMA.empty_table(), *passes.rows()])
    assert found.equals(merged(base, logs, mode, gaps))


@BOTH
@MODES
@pytest.mark.parametrize("at_once", [1, 2, 10])
def test_a_key_that_stands_twice_in_a_base_file(gaps: Gaps, mode: MergeMode, at_once: int) -> None:
    """As in Hudi, the first row alone is merged with a log record, whichever of them wins."""
    gap = gaps.marker
    base = [Record("a", 1, "row", "1", gap), Record("b", 9, "row", "2", gap), Record("c", 1, "row", "3", gap)]
    base += [Record("a", 1, "row", gap, "4"), Record("b", 1, "row", gap, "5"), Record("c", 1, "row", gap, "6")]
    base += [Record("d", 1, "row", "7"), Record("d", 1, "row", "8")]
    logs = [[Record("a", 2, "row", "x", gap), Record("b", 2, "row", gap, "y"), Record("c", 2, "row", "x", "x", 1)]]
    logs[0].append(Record("d", 2, "deleted row"))
    ordering = ("ts",) if mode is EVENT_TIME else ()
    passes = SliceMerge(HeldSlice(table_of(base), [block_of(logs[0])], at_once), ordering, mode, gaps=gaps)
    expected = shown(loop(base, logs, mode, gaps))
    assert rows_in(merged(base, logs, mode, gaps)) == rows_in(pa.concat_tables(passes.rows())) == expected


# ------------------------------------------------------------------------------------------- parts of a slice


def apart(base: list[Record], logs: list[list[Record]], first: int, mode: MergeMode, gaps: Gaps) -> pa.Table:
    """The first log files compacted, and the others merged with the base file that results."""
    ordering = ("ts",) if mode is EVENT_TIME else ()
    compacted = merged(base, logs[:first], mode, gaps)
    return merge(compacted, [block_of(log) for log in logs[first:]], ordering, SCHEMA, mode, gaps)


@BOTH
@settings(max_examples=200, deadline=None)
@given(base=UNIQUE, logs=logs_of(deletes=False), first=st.integers(0, 6))
def test_in_commit_order_without_deletes_a_slice_may_be_parted(
    gaps: Gaps, base: list[Record], logs: list[list[Record]], first: int
) -> None:
    assert rows_in(apart(base, logs, first, COMMIT_TIME, gaps)) == rows_in(merged(base, logs, COMMIT_TIME, gaps))


@BOTH
@MODES
def test_with_a_delete_it_may_not(gaps: Gaps, mode: MergeMode) -> None:
    """The row after it is filled from the base row, which a compaction of the delete takes away."""
    base, gap = [Record("a", 1, "row", "base", "base", 0)], gaps.marker
    logs = [[Record("a", 2, "delete")], [Record("a", 3, "row", gap, "x", 1)]]
    assert rows_in(merged(base, logs, mode, gaps)) == [("a", 3, "base", "x", 1)]
    assert rows_in(apart(base, logs, 1, mode, gaps)) == [("a", 3, gap, "x", 1)]


@BOTH
def test_in_event_order_it_may_not(gaps: Gaps) -> None:
    """The column is filled by what comes first, and a base row comes last."""
    base, gap = [Record("a", 1, "row", "base", "base", 0)], gaps.marker
    logs = [[Record("a", 9, "row", gap, "x", 1)], [Record("a", 5, "row", "5", "5", 5)]]
    assert rows_in(merged(base, logs, EVENT_TIME, gaps)) == [("a", 9, "5", "x", 1)]
    assert rows_in(apart(base, logs, 1, EVENT_TIME, gaps)) == [("a", 9, "base", "x", 1)]


def test_rows_with_some_columns_alone_are_refused() -> None:
    """Hudi merges those by another rule, which knows no gaps."""
    block = Rows(table_of([Record("a", 1, "row", "x")]), frozenset([KEY, "ts", "a"]))
    with pytest.raises(UnsupportedTable, match=r"Partial updates \(MERGE INTO\) beside a partial update mode"):
        merge(None, [block], ("ts",), SCHEMA, EVENT_TIME, NULLS)


def test_bytes_have_no_marker() -> None:
    """Hudi 1.2.0 compares no bytes with it (tried)."""
    schema = pa.schema([(KEY, pa.string()), ("ts", pa.int64()), ("a", pa.binary()), ("b", pa.string())])
    old, new = (
        pa.Table.from_pylist([{KEY: "k", "ts": n, "a": a, "b": b}], schema)
        for n, a, b in [(1, b"1", "1"), (2, MARKER.encode(), MARKER)]
    )
    for base, logs in ((old, [Rows(new)]), (None, [Rows(old), Rows(new)])):
        found = merge(base, logs, ("ts",), schema, EVENT_TIME, MARKERS)
        assert found.to_pylist() == [{KEY: "k", "ts": 2, "a": MARKER.encode(), "b": "1"}]
