"""Merges of partial updates against a plain loop: records that hold some columns, filled from older ones.

The loop takes one record after the other, as Hudi 1.2's PartialUpdateBufferedRecordMerger does, and shares nothing with
the vectorised merge but the rule.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hudi_assets.engine.errors import UnsupportedTable
from hudi_assets.engine.merging.merge import IS_DELETED, KEY, Deletes, LogRecords, Rows, merge
from hudi_assets.engine.merging.passes import DEFAULT_MEMORY, SliceMerge
from hudi_assets.engine.model import MergeMode
from tests.tables.held_slice import HeldSlice

EVENT_TIME, COMMIT_TIME = MergeMode.EVENT_TIME_ORDERING, MergeMode.COMMIT_TIME_ORDERING
Kind = Literal["row", "deleted row", "delete"]
COLUMNS = ("a", "b", "c")
SCHEMA = pa.schema(
    [
        (KEY, pa.string()),
        ("ts", pa.int64()),
        ("a", pa.string()),
        ("b", pa.int64()),
        ("c", pa.list_(pa.int64())),
        (IS_DELETED, pa.bool_()),
    ]
)


@dataclass(frozen=True)
class Record:
    """One record; `values` by column, those that it has. `ts` None: a delete in commit order, or a row without one."""

    key: str
    ts: int | None
    kind: Kind
    values: tuple[tuple[str, int], ...]

    @property
    def in_commit_order(self) -> bool:
        return self.kind != "row" and self.ts is None

    @property
    def rank(self) -> tuple[bool, int]:
        return (self.ts is not None, self.ts or 0)

    def filled_from(self, low: Record) -> Record:
        return replace(self, values=tuple(sorted({**dict(low.values), **dict(self.values)}.items())))


def by_event_time(old: Record, new: Record) -> Record:
    if old.in_commit_order and new.kind == "delete":
        return old
    if new.in_commit_order or old.in_commit_order:
        return new
    high, low = (old, new) if old.rank > new.rank else (new, old)
    return high if high.kind != "row" or low.kind != "row" else high.filled_from(low)


def by_commit_time(old: Record, new: Record) -> Record:
    return new if new.kind != "row" or old.kind == "delete" else new.filled_from(old)


def loop(base: dict[str, Record], records: list[Record], mode: MergeMode) -> dict[str, Record]:
    fold = by_event_time if mode is EVENT_TIME else by_commit_time
    logs: dict[str, Record] = {}
    for new in records:
        logs[new.key] = fold(logs[new.key], new) if new.key in logs else new
    result = {**base, **{key: fold(base[key], new) if key in base else new for key, new in logs.items()}}
    return {key: record for key, record in result.items() if record.kind == "row"}


def shown(state: dict[str, Record]) -> list[tuple[object, ...]]:
    rows = [(r.key, r.ts, *(dict(r.values).get(name) for name in COLUMNS)) for r in state.values()]
    return sorted(rows, key=str)


# ------------------------------------------------------------------------------------------- random logs


def record(key: str, ts: int | None, kind: Kind, number: int, has: frozenset[str]) -> Record:
    return Record(key, ts, kind, tuple((name, 10 * number + n) for n, name in enumerate(COLUMNS) if name in has))


@st.composite
def logs_of(draw: st.DrawFn) -> list[list[Record]]:
    """Blocks: each has records of one kind with the same columns, as a log block has one schema."""
    number = iter(range(1, 10_000))
    blocks = []
    for _ in range(draw(st.integers(1, 7))):
        deletes = draw(st.booleans()) and draw(st.booleans())
        has = draw(st.sampled_from([*map(frozenset, ("abc", "abc", "a", "b", "ab", "c", ""))]))
        one = st.builds(
            lambda key, ts, gone, of=has, deletes=deletes: record(
                key, ts, "delete" if deletes else "deleted row" if gone else "row", next(number), of
            ),
            st.sampled_from("abcd"),
            st.sampled_from([*range(4), *range(4), None]),
            st.sampled_from([False, False, False, True]),
        )
        blocks.append(draw(st.lists(one, min_size=1, max_size=5)))
    return blocks


BASES = st.dictionaries(st.sampled_from("abcd"), st.sampled_from([*range(4), None])).map(
    lambda rows: {key: record(key, ts, "row", 0, frozenset("abc")) for key, ts in rows.items()}
)


def block_of(records: list[Record]) -> LogRecords:
    times = pa.array([r.ts for r in records], pa.int64())
    keys = pa.array([r.key for r in records])
    if records[0].kind == "delete":
        return Deletes(keys, times)
    values = [dict(r.values) for r in records]
    columns = [
        keys,
        times,
        pa.array([None if "a" not in v else str(v["a"]) for v in values], pa.string()),
        pa.array([v.get("b") for v in values], pa.int64()),
        pa.array([None if "c" not in v else [v["c"]] for v in values], pa.list_(pa.int64())),
        pa.array([r.kind == "deleted row" or None for r in records], pa.bool_()),
    ]
    has = frozenset(dict(records[0].values))
    table = pa.Table.from_arrays(columns, schema=SCHEMA)
    return Rows(table, None if has == set(COLUMNS) else frozenset([KEY, "ts", IS_DELETED, *has]))


def table_of(base: dict[str, Record]) -> pa.Table:
    block = block_of(list(base.values())) if base else None
    return block.table if isinstance(block, Rows) else SCHEMA.empty_table()


def rows_in(table: pa.Table) -> list[tuple[object, ...]]:
    assert table.schema.equals(SCHEMA)
    rows = table.to_pylist()
    assert len({r[KEY] for r in rows}) == len(rows), "a key came twice"
    values = [(r["a"] and int(r["a"]), r["b"], r["c"] and r["c"][0]) for r in rows]
    return sorted(((r[KEY], r["ts"], *v) for r, v in zip(rows, values, strict=True)), key=str)


WHOLE, A, B, AB = (frozenset(names) for names in ("abc", "a", "b", "ab"))


@pytest.mark.parametrize("mode", [EVENT_TIME, COMMIT_TIME])
@settings(max_examples=400, deadline=None)
@given(base=BASES, logs=logs_of())
# What fills a column first stays, whatever comes between by event time.
@example(
    base={"a": record("a", 1, "row", 0, WHOLE)},
    logs=[[record("a", 3, "row", 1, A)], [record("a", 1, "row", 2, B)], [record("a", 2, "row", 3, AB)]],
)
# Nothing is filled across a delete, but from the base row.
@example(
    base={"a": record("a", 1, "row", 0, WHOLE)},
    logs=[[record("a", 1, "row", 1, B)], [record("a", 1, "delete", 2, WHOLE)], [record("a", 2, "row", 3, A)]],
)
@example(base={}, logs=[[record("a", None, "deleted row", 1, A)], [record("a", None, "row", 2, B)]])
def test_partial_updates_agree_with_the_loop(
    mode: MergeMode, base: dict[str, Record], logs: list[list[Record]]
) -> None:
    expected = loop(base, [r for log in logs for r in log], mode)
    blocks = [block_of(log) for log in logs]
    ordering = ("ts",) if mode is EVENT_TIME else ()
    assert rows_in(merge(table_of(base), blocks, ordering, SCHEMA, mode)) == shown(expected)


@pytest.mark.parametrize("mode", [EVENT_TIME, COMMIT_TIME])
@settings(max_examples=200, deadline=None)
@given(
    base=BASES,
    logs=logs_of(),
    memory=st.sampled_from([1, 60, 200, 1000, DEFAULT_MEMORY]),
    at_once=st.integers(1, 4),
    block_bytes=st.sampled_from([1, 99]),
)
def test_in_passes_too(
    mode: MergeMode, base: dict[str, Record], logs: list[list[Record]], memory: int, at_once: int, block_bytes: int
) -> None:
    blocks, table = [block_of(log) for log in logs], table_of(base)
    ordering = ("ts",) if mode is EVENT_TIME else ()
    held = HeldSlice(table, blocks, at_once, block_bytes)
    found = pa.concat_tables([SCHEMA.empty_table(), *SliceMerge(held, ordering, mode, memory).rows()])
    assert found.equals(merge(table, blocks, ordering, SCHEMA, mode))


@pytest.mark.parametrize("at_once", [1, 2, 10])
@pytest.mark.parametrize("mode", [EVENT_TIME, COMMIT_TIME])
def test_a_key_that_stands_twice_in_a_base_file(mode: MergeMode, at_once: int) -> None:
    """A record changes the first row alone, also where that row beats it. A delete does too."""
    base = [record(key, ts, "row", n, WHOLE) for n, (key, ts) in enumerate([("a", 1), ("b", 9), ("a", 8), ("b", 1)])]
    base += [record("c", 1, "row", 4, WHOLE)] * 2
    logs = [
        [record("a", 3, "row", 5, A), record("b", 3, "row", 6, A)],
        [record("a", 4, "row", 7, B), record("c", 4, "deleted row", 8, B)],
    ]
    table, blocks = block_of(base), [block_of(log) for log in logs]
    assert isinstance(table, Rows)
    ordering = ("ts",) if mode is EVENT_TIME else ()
    first = ("b", 9, 10, 11, 12) if mode is EVENT_TIME else ("b", 3, 60, 11, 12)
    expected = [("a", 4, 50, 71, 2), ("a", 8, 20, 21, 22), first, ("b", 1, 30, 31, 32), ("c", 1, 40, 41, 42)]
    passes = SliceMerge(HeldSlice(table.table, blocks, at_once), ordering, mode)
    for rows in (merge(table.table, blocks, ordering, SCHEMA, mode), pa.concat_tables(passes.rows())):
        values = [(r[KEY], r["ts"], int(r["a"]), r["b"], r["c"][0]) for r in rows.to_pylist()]
        assert sorted(values) == sorted(expected)


@pytest.mark.parametrize("mode", [EVENT_TIME, COMMIT_TIME])
def test_a_required_column_that_nothing_fills_is_refused_by_name(mode: MergeMode) -> None:
    """The row that was changed is gone: no base file could hold what is left."""
    schema = SCHEMA.set(2, pa.field("a", pa.string(), nullable=False))
    base = table_of({"k": record("k", 1, "row", 0, WHOLE)}).cast(schema)
    block = block_of([record("k", 2, "row", 1, B), record("gone", 2, "row", 2, B)])
    assert isinstance(block, Rows)
    blocks = [Rows(pa.Table.from_arrays(block.table.columns, schema=schema), block.only)]
    ordering = ("ts",) if mode is EVENT_TIME else ()
    with pytest.raises(UnsupportedTable, match=r"'gone' has no value of a, which is required"):
        merge(base, blocks, ordering, schema, mode)
    with pytest.raises(UnsupportedTable, match=r"'gone' has no value of a, which is required"):
        list(SliceMerge(HeldSlice(base, blocks), ordering, mode).rows())
    filled = merge(base, [Rows(blocks[0].table.slice(0, 1), block.only)], ordering, schema, mode)
    assert (filled.schema, filled.column("a").to_pylist()) == (schema, ["0"])


@pytest.mark.parametrize("mode", [MergeMode.OVERWRITE_WITH_LATEST, MergeMode.EVENT_TIME_ORDERING_0X])
def test_hudi_0_x_has_none(mode: MergeMode) -> None:
    with pytest.raises(UnsupportedTable, match="Partial updates"):
        merge(None, [block_of([record("a", 1, "row", 1, A)])], ("ts",), SCHEMA, mode)
