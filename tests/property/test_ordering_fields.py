"""Several ordering fields: a plain loop of what Hudi 1.2 does, field by field, against the merge.

`tests/interop/test_ordering_fields.py` holds the same against Hudi itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Literal

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hudi_assets.engine.actions.compaction.closure import MergeRule
from hudi_assets.engine.actions.compaction.strategy import filter_log_files
from hudi_assets.engine.errors import UnsupportedTable
from hudi_assets.engine.format.log_file.delete_codec import DeleteRecord, OrderingType
from hudi_assets.engine.merging.delete_records import as_deletes
from hudi_assets.engine.merging.merge import IS_DELETED, KEY, LogRecords, Rows, merge
from hudi_assets.engine.merging.ordering import Ordering, has_nulls, ordering_type, ordering_values
from hudi_assets.engine.merging.passes import DEFAULT_MEMORY, SliceMerge
from hudi_assets.engine.model import FileSlice, LogFile, MergeMode
from hudi_assets.engine.model.log_summary import LogSummary, Since, Undated
from tests.tables.held_slice import HeldSlice

Kind = Literal["row", "deleted row", "delete"]
MODE = MergeMode.EVENT_TIME_ORDERING
ORDERING: Ordering = ("ts", "seq")
Values = tuple[int | None, int | None]


@dataclass(frozen=True)
class Record:
    """One record. `values` None: a delete in commit order."""

    key: str
    values: Values | None
    kind: Kind
    value: int


@dataclass(frozen=True)
class Type:
    """A field's type, how it holds a small number, and as what a delete block has it."""

    arrow: pa.DataType
    of: Any
    wrapped: OrderingType
    null_is_zero: bool = False

    def stored(self, number: int) -> Any:
        value = self.of(number)
        return int(value.timestamp() * 1_000_000) if isinstance(value, datetime) else value


TYPES = {
    "long": Type(pa.int64(), int, OrderingType.LONG),
    "int": Type(pa.int32(), int, OrderingType.INT, null_is_zero=True),
    "text": Type(pa.string(), lambda n: "abcdé"[n + 1] * (1 + n % 2), OrderingType.STRING),
    "decimal": Type(pa.decimal128(10, 2), lambda n: Decimal(n).scaleb(-1), OrderingType.DECIMAL),
    "double": Type(pa.float64(), lambda n: [-math.inf, -0.0, 0.0, 1.5, math.nan][n + 1], OrderingType.DOUBLE),
    "timestamp": Type(
        pa.timestamp("us", "UTC"), lambda n: datetime(2020, 1, 1, tzinfo=UTC) + timedelta(seconds=n), OrderingType.LONG
    ),
}


def schema_of(types: tuple[str, str]) -> pa.Schema:
    fields = [pa.field(name, TYPES[kind].arrow) for name, kind in zip(ORDERING, types, strict=True)]
    return pa.schema([pa.field(KEY, pa.string()), *fields, pa.field("v", pa.int64()), pa.field(IS_DELETED, pa.bool_())])


# ------------------------------------------------------------------------------------------- the plain loop


class UndecidedError(Exception):
    """Hudi fails there: it compares a null with a value of another class."""


def compared(one: Values, other: Values) -> int:
    for mine, theirs in zip(one, other, strict=True):
        if (mine is None) != (theirs is None):
            raise UndecidedError
        if mine is not None and theirs is not None and mine != theirs:
            return -1 if mine < theirs else 1
    return 0


def nulls(values: Values) -> tuple[bool, ...]:
    return tuple(value is None for value in values)


def loop(base: dict[str, Record], records: list[Record]) -> dict[str, Record]:
    log: dict[str, Record] = {}
    for new in records:
        old = log.get(new.key)
        if old is None or new.values is None:
            log[new.key] = new
        elif old.values is None:
            if new.kind != "delete":
                log[new.key] = new
        elif new.kind == "delete":
            # Two values of other classes are not compared here: the delete wins.
            if nulls(old.values) != nulls(new.values) or compared(old.values, new.values) <= 0:
                log[new.key] = new
        elif compared(new.values, old.values) >= 0:
            log[new.key] = new
    left = dict(base)
    for key, new in log.items():
        old = base.get(key)
        if old is None or new.values is None or (old.values is not None and compared(new.values, old.values) >= 0):
            left[key] = new
    return left


def with_zeros(record: Record, types: tuple[str, str]) -> Record:
    """As Hudi takes a null of Integers."""
    if record.values is None:
        return record
    first, second = (
        0 if value is None and TYPES[kind].null_is_zero else value
        for value, kind in zip(record.values, types, strict=True)
    )
    return replace(record, values=(first, second))


Shown = set[tuple[str, int]]


def shown(state: dict[str, Record]) -> Shown:
    return {(one.key, one.value) for one in state.values() if one.kind == "row"}


def answer(base: dict[str, Record], logs: list[list[Record]], types: tuple[str, str]) -> Shown | None:
    """The loop's, or None where Hudi fails."""
    mine = {key: with_zeros(one, types) for key, one in base.items()}
    try:
        return shown(loop(mine, [with_zeros(one, types) for log in logs for one in log]))
    except UndecidedError:
        return None


# ------------------------------------------------------------------------------------------- the merge in Arrow


def blocks_of(log: list[Record], types: tuple[str, str]) -> list[LogRecords]:
    """Records as blocks, deletes by way of what a delete block holds: neighbours of one kind together."""
    blocks: list[LogRecords] = []
    start = 0
    while start < len(log):
        end = start
        while end < len(log) and (log[end].kind == "delete") == (log[start].kind == "delete"):
            end += 1
        part = log[start:end]
        if part[0].kind == "delete":
            deletes = [delete_record(one, types) for one in part]
            blocks.append(as_deletes(deletes, ordering_type(schema_of(types), ORDERING)))
        else:
            blocks.append(Rows(rows_of(part, types)))
        start = end
    return blocks


def delete_record(record: Record, types: tuple[str, str]) -> DeleteRecord:
    if record.values is None:
        return DeleteRecord(record.key, "")
    wrapped = tuple(
        (0, OrderingType.INT) if value is None else (TYPES[kind].stored(value), TYPES[kind].wrapped)
        for value, kind in zip(record.values, types, strict=True)
    )
    return DeleteRecord(record.key, "", wrapped, OrderingType.ARRAY)


def rows_of(records: list[Record], types: tuple[str, str]) -> pa.Table:
    columns: dict[str, Any] = {
        name: [None if r.values is None or (n := r.values[at]) is None else TYPES[kind].of(n) for r in records]
        for at, (name, kind) in enumerate(zip(ORDERING, types, strict=True))
    }
    columns |= {KEY: [r.key for r in records], "v": [r.value for r in records]}
    columns[IS_DELETED] = [r.kind == "deleted row" for r in records]
    return pa.table(columns, schema=schema_of(types))


def merged(base: pa.Table, logs: list[list[Record]], types: tuple[str, str]) -> pa.Table:
    return merge(base, [block for log in logs for block in blocks_of(log, types)], ORDERING, schema_of(types))


def found(table: pa.Table) -> Shown:
    rows = [(row[KEY], row["v"]) for row in table.to_pylist()]
    assert len(rows) == len({key for key, _ in rows}), "a key came twice"
    return set(rows)


# ------------------------------------------------------------------------------------------- random logs

_NUMBERS = st.integers(-1, 3)
_KINDS: tuple[Kind, ...] = ("row", "row", "deleted row", "delete")


def _values(with_nulls: bool) -> st.SearchStrategy[Values]:
    one: st.SearchStrategy[int | None] = st.one_of(_NUMBERS, _NUMBERS, st.none()) if with_nulls else _NUMBERS
    return st.tuples(one, one)


@st.composite
def histories(
    draw: st.DrawFn, *, with_nulls: bool, kinds: tuple[Kind, ...] = _KINDS
) -> tuple[dict[str, Record], list[list[Record]]]:
    counter = iter(range(1, 10_000))

    def of(key: str, values: Values, kind: Kind, in_commit_order: bool) -> Record:
        return Record(key, None if in_commit_order and kind == "delete" else values, kind, next(counter))

    keys, values = st.sampled_from("abc"), _values(with_nulls)
    one = st.builds(of, keys, values, st.sampled_from(kinds), st.sampled_from([False, False, True]))
    base = draw(st.dictionaries(keys, values))
    logs = draw(st.lists(st.lists(one, min_size=1, max_size=5), min_size=1, max_size=4))
    return {key: Record(key, of_key, "row", 0) for key, of_key in base.items()}, logs


def table_of(base: dict[str, Record], types: tuple[str, str]) -> pa.Table:
    return rows_of(list(base.values()), types)


PAIRS = st.tuples(st.sampled_from(sorted(TYPES)), st.sampled_from(sorted(TYPES)))


@settings(max_examples=300, deadline=None)
@given(types=PAIRS, history=histories(with_nulls=False))
def test_the_first_field_that_differs_decides(
    types: tuple[str, str], history: tuple[dict[str, Record], list[list[Record]]]
) -> None:
    base, logs = history
    assert found(merged(table_of(base, types), logs, types)) == answer(base, logs, types)


LONGS = ("long", "long")


def one_key(*records: tuple[Values | None, Kind]) -> list[list[Record]]:
    return [[Record("a", values, kind, number)] for number, (values, kind) in enumerate(records, start=1)]


@settings(max_examples=500, deadline=None)
@example(types=LONGS, history=({}, one_key(((1, None), "row"), ((1, 2), "row"))))
@example(types=LONGS, history=({}, one_key(((3, None), "row"), ((1, 2), "delete"))))
@example(types=LONGS, history=({}, one_key(((3, None), "delete"), ((1, 2), "delete"), ((2, 2), "row"))))
@given(types=PAIRS, history=histories(with_nulls=True))
def test_where_a_null_would_decide_the_merge_is_refused(
    types: tuple[str, str], history: tuple[dict[str, Record], list[list[Record]]]
) -> None:
    """Where it gives an answer, and Hudi does, it is Hudi's."""
    base, logs = history
    expected = answer(base, logs, types)
    try:
        rows = found(merged(table_of(base, types), logs, types))
    except UnsupportedTable:
        values = [one.values for one in [*base.values(), *(one for log in logs for one in log)] if one.values]
        assert len({nulls(of) for of in values}) > 1
        return
    assert expected is None or rows == expected


@pytest.mark.parametrize(
    ("base", "records", "expected"),
    [
        ((1, None), [((2, 5), "row")], {1}),
        (None, [((1, None), "row"), ((2, 5), "row"), ((1, 7), "row")], {2}),  # Hudi may fail there
        ((1, None), [((1, None), "row")], {1}),
        ((2, None), [((1, 9), "row")], {0}),
        ((None, 2), [((None, 1), "row")], {0}),
        (None, [((1, None), "row"), ((2, 5), "delete")], set()),
        ((1, None), [((1, 0), "row")], None),
        (None, [((1, None), "row"), ((1, 0), "row")], None),
        # Among log records Hudi takes the delete, whatever the values are; a base row would be compared with it.
        (None, [((3, None), "row"), ((1, 0), "delete")], None),
        (None, [((3, None), "delete"), ((1, 0), "delete"), ((2, 0), "row")], None),
        (None, [((1, 0), "delete"), ((3, None), "row")], {2}),
        # What a delete in commit order ends is compared with nothing.
        (None, [((3, None), "row"), (None, "delete"), ((3, 0), "row")], {3}),
        (None, [((3, None), "row"), (None, "delete"), ((1, 0), "row"), ((2, 0), "delete")], set()),
    ],
)
def test_examples_with_nulls(
    base: Values | None, records: list[tuple[Values | None, Kind]], expected: set[int] | None
) -> None:
    start = {} if base is None else {"a": Record("a", base, "row", 0)}
    if expected is None:
        with pytest.raises(UnsupportedTable, match="Of the key 'a' a record has a null"):
            merged(table_of(start, LONGS), one_key(*records), LONGS)
        return
    assert {value for _, value in found(merged(table_of(start, LONGS), one_key(*records), LONGS))} == expected


def test_a_null_of_integers_is_hudis_default_zero() -> None:
    types = ("long", "int")
    logs = one_key(((1, -1), "row"), ((1, None), "row"), ((1, -1), "row"))
    assert found(merged(table_of({}, types), logs, types)) == {("a", 2)}
    assert not has_nulls(ordering_values(rows_of(logs[1], types), ORDERING))


@settings(max_examples=200, deadline=None)
@given(
    types=PAIRS,
    history=histories(with_nulls=False),
    memory=st.sampled_from([1, 60, 200, 1000, DEFAULT_MEMORY]),
    at_once=st.integers(1, 4),
)
def test_a_merge_in_passes_gives_the_same_rows(
    types: tuple[str, str], history: tuple[dict[str, Record], list[list[Record]]], memory: int, at_once: int
) -> None:
    base, logs = history
    table = table_of(base, types)
    held = HeldSlice(table, [block for log in logs for block in blocks_of(log, types)], at_once)
    rows = pa.concat_tables([table.schema.empty_table(), *SliceMerge(held, ORDERING, memory=memory, mode=MODE).rows()])
    assert rows.to_pylist() == merged(table, logs, types).to_pylist() or "double" in types
    assert found(rows) == found(merged(table, logs, types))


# ------------------------------------------------------------------------------------------- partial merges


def as_slice(logs: list[list[Record]], event_time: int | None) -> tuple[FileSlice, dict[str, LogSummary]]:
    """`event_time`: which of the fields is the event time; None: another column, which increases."""
    files = tuple(LogFile(f"log.{n}", "", "g", "1", n, "0-0-0", 1, f"log.{n}") for n in range(1, len(logs) + 1))
    summaries = {}
    for number, (file, log) in enumerate(zip(files, logs, strict=True)):
        gone = [r for r in log if r.values is None or (r.kind == "delete" and event_time is None)]
        rest = [r for r in log if r not in gone]
        times = [number if event_time is None else of for r in rest if (of := time_of(r, event_time)) is not None]
        rows = len(times) < len(rest)
        low, high = min(times, default=None), max(times, default=None)
        deletes, barriers = sum(r.kind != "row" for r in log), sum(r.values is None for r in log)
        null = any(r.values is not None and None in r.values for r in log)
        undated = Undated(Since("1") if rows else None, Since("1") if gone else None, low, high)
        summary = LogSummary(low, high, deletes, nulls=null)
        if gone or rows:
            summary = LogSummary(None, None, deletes, barriers=barriers, undated=undated, nulls=null)
        summaries[file.path] = summary
    return FileSlice("", "g", "1", None, files), summaries


def time_of(record: Record, event_time: int | None) -> int | None:
    return 0 if event_time is None else record.values and record.values[event_time]


def parted(
    logs: list[list[Record]], threshold: int, event_time: int | None, base_highest: float = math.inf
) -> tuple[list[list[Record]], list[list[Record]]]:
    slice_, summaries = as_slice(logs, event_time)
    rule = MergeRule(MODE, event_time == 0, base_highest=lambda: base_highest, several_fields=True)
    chosen, remain = filter_log_files(slice_, threshold, summaries, rule)
    return [logs[f.version - 1] for f in chosen], [logs[f.version - 1] for f in remain]


@settings(max_examples=600, deadline=None)
@example(  # the base row comes back where the delete was: its second field is greater
    history=(
        {"a": Record("a", (3, 9), "row", 0)},
        [[Record("a", None, "delete", 1), Record("b", (1, 1), "row", 2)], [Record("a", (3, 1), "row", 3)]],
    ),
    threshold=1,
    event_time=0,
    footer=True,
)
@example(  # a delete in commit order remains, and the row after it lies below what is merged, by its second field
    history=(
        {},
        [[Record("a", (2, 9), "row", 1)], [Record("a", None, "delete", 2)], [Record("a", (2, 1), "row", 3)]],
    ),
    threshold=1,
    event_time=0,
    footer=False,
)
@given(
    history=st.one_of(
        histories(with_nulls=False), histories(with_nulls=True), histories(with_nulls=False, kinds=("row", "row"))
    ),
    threshold=st.integers(-1, 3),
    event_time=st.sampled_from([0, 1, None]),
    footer=st.booleans(),
)
def test_a_partial_compaction_changes_no_answer(
    history: tuple[dict[str, Record], list[list[Record]]], threshold: int, event_time: int | None, footer: bool
) -> None:
    base, logs = history
    before = answer(base, logs, LONGS)
    highest = max((of for r in base.values() if (of := time_of(r, 0)) is not None), default=-math.inf)
    chosen, remain = parted(logs, threshold, event_time, highest if footer else math.inf)
    try:
        first = merged(table_of(base, LONGS), chosen, LONGS)
    except UnsupportedTable:
        return  # nothing is compacted then
    kept = {row[KEY]: Record(row[KEY], (row["ts"], row["seq"]), "row", row["v"]) for row in first.to_pylist()}
    if not remain:
        assert before is None or found(first) == before
        return
    assert before is None or answer(kept, remain, LONGS) == before
    assert before is None or found(merged(first, remain, LONGS)) == before


def test_slices_are_parted_where_the_first_field_tells() -> None:
    ahead = [[Record("a", (1, 9), "row", 1)], [Record("a", (1, 1), "delete", 2)], [Record("a", (2, 0), "row", 3)]]
    assert parted(ahead, 1, 0) == (ahead[:2], ahead[2:])
    tied = [[Record("a", (1, 9), "delete", 1)], [Record("b", (1, 1), "row", 2)], [Record("a", (2, 0), "row", 3)]]
    assert parted(tied, 1, 0) == (tied[:2], tied[2:])
    late = [[Record("a", (2, 9), "row", 1)], [Record("a", (1, 1), "row", 2)]]
    assert parted(late, 1, 0) == (late[1:], late[:1])
    assert parted(late, 1, 1) == (late, [])
    null = [[Record("a", (1, 9), "row", 1)], [Record("a", (2, None), "row", 2)]]
    assert parted(null, 1, 0) == (null, [])
