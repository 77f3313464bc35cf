"""Base files in which keys stand several times: as merging their rows one by one, in every mode.

Each row is merged alone with the log records of its key. That is what is compared with here, and no key stands twice in
such a merge. The first row of a key is merged so and the others stay; or all are, where log records have positions.
"""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_assets.engine.merging.merge import KEY, Deletes, LogRecords, Rows, merge
from hudi_assets.engine.merging.passes import DEFAULT_MEMORY, SliceMerge
from hudi_assets.engine.model import MergeMode
from tests.property.test_partial_updates import (
    COMMIT_TIME,
    EVENT_TIME,
    SCHEMA,
    WHOLE,
    Record,
    block_of,
    logs_of,
    record,
)
from tests.tables.held_slice import HeldSlice

Answer = Counter[tuple[str, ...]]
REPEATED = st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from([*range(4), None])), max_size=10).map(
    lambda rows: [record(key, ts, "row", 100 + n, WHOLE) for n, (key, ts) in enumerate(rows)]
)
ANYWHERE = {
    "memory": st.sampled_from([1, 60, 1000, DEFAULT_MEMORY]),
    "at_once": st.integers(1, 4),
    "block_bytes": st.sampled_from([1, 99]),
}


def table_of(base: list[Record]) -> pa.Table:
    block = block_of(base) if base else None
    return block.table if isinstance(block, Rows) else SCHEMA.empty_table()


def answer(*tables: pa.Table) -> Answer:
    return Counter(tuple(str(value) for value in row.values()) for table in tables for row in table.to_pylist())


def whole(logs: list[list[Record]]) -> list[list[Record]]:
    """The same without partial updates."""
    return [[record(r.key, r.ts, r.kind, 10 * n + m, WHOLE) for m, r in enumerate(log)] for n, log in enumerate(logs)]


def of_key(block: LogRecords, key: str) -> LogRecords:
    if isinstance(block, Rows):
        return Rows(block.table.filter(pc.equal(block.table.column(KEY), key)), block.only)
    mask = pc.equal(block.keys, key)
    return Deletes(block.keys.filter(mask), block.ordering.filter(mask))


def one_by_one(
    base: pa.Table, blocks: list[LogRecords], ordering: tuple[str, ...], mode: MergeMode, *, each: bool
) -> Answer:
    found: Answer = Counter()
    for key in "abcd":
        rows = base.filter(pc.equal(base.column(KEY), key))
        own = [of_key(block, key) for block in blocks]
        merged = range(len(rows) if each else min(1, len(rows)))
        found += answer(*(merge(rows.slice(n, 1), own, ordering, SCHEMA, mode) for n in merged))
        found += answer(rows.slice(len(merged)))
        if not len(rows):
            found += answer(merge(None, own, ordering, SCHEMA, mode))
    return found


@pytest.mark.parametrize("mode", list(MergeMode))
@settings(max_examples=150, deadline=None)
@given(base=REPEATED, logs=logs_of(), each=st.booleans(), **ANYWHERE)
def test_each_row_as_if_it_were_alone(
    mode: MergeMode,
    base: list[Record],
    logs: list[list[Record]],
    each: bool,
    memory: int,
    at_once: int,
    block_bytes: int,
) -> None:
    blocks = [block_of(log) for log in (logs if mode.merges_partial_updates else whole(logs))]
    table, ordering = table_of(base), () if mode is COMMIT_TIME else ("ts",)
    held = HeldSlice(table, blocks, at_once, block_bytes, by_positions=each)
    found = pa.concat_tables([SCHEMA.empty_table(), *SliceMerge(held, ordering, mode, memory).rows()])
    assert answer(found) == one_by_one(table, blocks, ordering, mode, each=each)
    at_once_too = merge(table, blocks, ordering, SCHEMA, mode, by_positions=each)
    assert answer(found) == answer(at_once_too)


@pytest.mark.parametrize("mode", [EVENT_TIME, COMMIT_TIME, MergeMode.EVENT_TIME_ORDERING_0X])
@settings(max_examples=150, deadline=None)
@given(base=REPEATED, logs=logs_of(), cut=st.integers(0, 7), **ANYWHERE)
def test_a_part_first_and_then_the_rest(
    mode: MergeMode, base: list[Record], logs: list[list[Record]], cut: int, memory: int, at_once: int, block_bytes: int
) -> None:
    """As long as nothing is deleted. The first row of a key is the first one in the new base file too."""
    updates = [[r for r in log if r.kind == "row"] for log in whole(logs)]
    blocks = [block_of(log) for log in updates if log]
    table, ordering = table_of(base), () if mode is COMMIT_TIME else ("ts",)

    def merged(rows: pa.Table, some: list[LogRecords]) -> pa.Table:
        held = HeldSlice(rows, some, at_once, block_bytes)
        return pa.concat_tables([SCHEMA.empty_table(), *SliceMerge(held, ordering, mode, memory).rows()])

    assert answer(merged(merged(table, blocks[:cut]), blocks[cut:])) == answer(merged(table, blocks))


def test_rows_of_a_key_stay_in_their_order() -> None:
    base = table_of([record(key, 1, "row", n, WHOLE) for n, key in enumerate("aabba")])
    block = block_of([record("a", 2, "row", 9, WHOLE)])
    for found in (
        merge(base, [block], ("ts",), SCHEMA, EVENT_TIME),
        pa.concat_tables(SliceMerge(HeldSlice(base, [block], 1), ("ts",), EVENT_TIME).rows()),
    ):
        assert [row["a"] for row in found.to_pylist()] == ["20", "30", "90", "10", "40"]
