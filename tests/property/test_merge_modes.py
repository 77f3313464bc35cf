"""Every merge mode against a plain loop, and partial merges of every kind against whole ones.

The loop takes one record after the other and shares nothing with the vectorised merge but the rule. In a table
of four keys and few ordering values, ties, nulls and deletes of all kinds meet each other all the time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hudi_assets.engine.actions.compaction.closure import MergeRule
from hudi_assets.engine.actions.compaction.residue import OperationLeaves, ResidueSpec
from hudi_assets.engine.actions.compaction.strategy import filter_log_files
from hudi_assets.engine.merging.merge import IS_DELETED, KEY, Deletes, LogRecords, Rows, merge
from hudi_assets.engine.merging.passes import DEFAULT_MEMORY, SliceMerge
from hudi_assets.engine.model import BoundRule, FileSlice, LogFile, MergeMode, Operation
from hudi_assets.engine.model.log_summary import Bound, LogSummary, Since, Undated
from hudi_assets.engine.model.units import EventTimeUnit
from hudi_assets.engine.table.layout.v6 import LayoutV6
from tests.tables.held_slice import HeldSlice

EVENT_TIME, COMMIT_TIME, OVERWRITE, EVENT_TIME_0X = (
    MergeMode.EVENT_TIME_ORDERING,
    MergeMode.COMMIT_TIME_ORDERING,
    MergeMode.OVERWRITE_WITH_LATEST,
    MergeMode.EVENT_TIME_ORDERING_0X,
)
Kind = Literal["row", "deleted row", "delete"]


@dataclass(frozen=True)
class Record:
    """One record. `ts` None: a row without an ordering value, or a delete in commit order."""

    key: str
    ts: int | None
    kind: Kind
    value: int

    def in_commit_order(self, int32: bool) -> bool:
        return self.kind != "row" and (self.ts is None or (int32 and self.ts == 0))


def schema_of(int32: bool) -> pa.Schema:
    ts = pa.int32() if int32 else pa.int64()
    return pa.schema([(KEY, pa.string()), ("ts", ts), ("v", pa.int64()), (IS_DELETED, pa.bool_())])


# ------------------------------------------------------------------------------------------- the plain loop


def loop_event_time(base: dict[str, Record], records: list[Record], int32: bool) -> dict[str, Record]:
    """The log records among themselves first; what wins there may lose to the base row. Deletes stay in the result."""
    log: dict[str, Record] = {}
    for new in records:
        old = log.get(new.key)
        if old is None or new.in_commit_order(int32):
            log[new.key] = new
        elif old.in_commit_order(int32):
            if new.kind != "delete":  # a delete block's delete is passed over
                log[new.key] = new
        elif _rank(new) >= _rank(old):
            log[new.key] = new
    wins = {
        key: new
        for key, new in log.items()
        if key not in base or new.in_commit_order(int32) or _rank(new) >= _rank(base[key])
    }
    return {**base, **wins}


def _rank(record: Record) -> tuple[bool, int]:
    return (record.ts is not None, record.ts or 0)


def loop_commit_time(base: dict[str, Record], records: list[Record], int32: bool) -> dict[str, Record]:
    state = dict(base)
    for new in records:
        state[new.key] = new
    return state


def loop_overwrite(base: dict[str, Record], records: list[Record], int32: bool) -> dict[str, Record]:
    """The log records among themselves first; what wins there replaces the base row."""
    return {**base, **loop_of_log_records(records, int32)}


def loop_event_time_0x(base: dict[str, Record], records: list[Record], int32: bool) -> dict[str, Record]:
    """The log records as above; a row that wins there may lose to the base row, a delete block's delete never."""
    state = dict(base)
    for key, new in loop_of_log_records(records, int32).items():
        old = base.get(key)
        if old is None or new.kind == "delete" or _rank(new) >= _rank(old):
            state[key] = new
    return state


def loop_of_log_records(records: list[Record], int32: bool) -> dict[str, Record]:
    """HoodieMergedLogRecordScanner of Hudi 0.15."""
    log: dict[str, Record] = {}
    for new in records:
        old = log.get(new.key)
        if old is None:
            log[new.key] = new
        elif new.kind == "delete":
            if new.in_commit_order(int32) or _rank(old) <= _rank(new):
                log[new.key] = new
        elif old.kind == "delete" or _rank(old) <= _rank(new):
            log[new.key] = new
    return log


LOOPS = {
    EVENT_TIME: loop_event_time,
    COMMIT_TIME: loop_commit_time,
    OVERWRITE: loop_overwrite,
    EVENT_TIME_0X: loop_event_time_0x,
}
Shown = set[tuple[str, int | None, int]]


def shown(state: dict[str, Record]) -> Shown:
    return {(r.key, r.ts, r.value) for r in state.values() if r.kind == "row"}


# ------------------------------------------------------------------------------------------- the merge in Arrow


def blocks_of(log: list[Record], int32: bool) -> list[LogRecords]:
    """Records as blocks: neighbours of one kind together, their order kept."""
    schema = schema_of(int32)
    blocks: list[LogRecords] = []
    start = 0
    while start < len(log):
        end = start
        while end < len(log) and (log[end].kind == "delete") == (log[start].kind == "delete"):
            end += 1
        part = log[start:end]
        if part[0].kind == "delete":
            # as_deletes turns Hudi's default, Integer 0, into null.
            times = [None if r.in_commit_order(int32) else r.ts for r in part]
            blocks.append(Deletes(pa.array([r.key for r in part]), pa.array(times, schema.field("ts").type)))
        else:
            columns = {
                KEY: [r.key for r in part],
                "ts": [r.ts for r in part],
                "v": [r.value for r in part],
                IS_DELETED: [r.kind == "deleted row" or None for r in part],
            }
            blocks.append(Rows(pa.table(columns, schema=schema)))
        start = end
    return blocks


def merged(base: pa.Table | None, logs: list[list[Record]], mode: MergeMode, int32: bool = False) -> pa.Table:
    blocks = [block for log in logs for block in blocks_of(log, int32)]
    return merge(base, blocks, ordering(mode), schema_of(int32), mode)


def ordering(mode: MergeMode) -> tuple[str, ...]:
    return () if mode is COMMIT_TIME else ("ts",)


def rows_of(table: pa.Table) -> Shown:
    rows = [(r[KEY], r["ts"], r["v"]) for r in table.to_pylist()]
    assert len(rows) == len({key for key, _, _ in rows}), "a key came twice"
    return set(rows)


# ------------------------------------------------------------------------------------------- random logs


def _times(nulls: bool) -> st.SearchStrategy[int | None]:
    # Few nulls: a log file with one has no range, and hardly anything is parted then.
    return st.sampled_from([*range(6), *range(6), *range(6), None][: None if nulls else -1])


@st.composite
def logs_of(
    draw: st.DrawFn,
    *,
    nulls: bool = True,
    most: int = 5,
    kinds: tuple[Kind, ...] = ("row", "row", "deleted row", "delete"),
) -> list[list[Record]]:
    counter = iter(range(1, 10_000))
    one = st.builds(
        lambda key, ts, kind: Record(key, ts, kind, next(counter)),
        st.sampled_from("abcd"),
        _times(nulls),
        st.sampled_from(kinds),
    )
    return draw(st.lists(st.lists(one, min_size=1, max_size=5), min_size=1, max_size=most))


def bases(*, nulls: bool) -> st.SearchStrategy[dict[str, Record]]:
    return st.dictionaries(
        st.sampled_from("abcd"),
        st.builds(Record, st.just(""), _times(nulls), st.just("row"), st.just(0)),
    ).map(lambda rows: {k: Record(k, r.ts, "row", 0) for k, r in rows.items()})


def table_of(base: dict[str, Record], int32: bool = False) -> pa.Table:
    blocks = blocks_of(list(base.values()), int32)
    return blocks[0].table if blocks and isinstance(blocks[0], Rows) else schema_of(int32).empty_table()


@pytest.mark.parametrize("mode", list(MergeMode))
@pytest.mark.parametrize("int32", [False, True])
@settings(max_examples=120, deadline=None)
@given(base=bases(nulls=True), logs=logs_of())
def test_the_merge_agrees_with_the_loop(
    mode: MergeMode, int32: bool, base: dict[str, Record], logs: list[list[Record]]
) -> None:
    expected = LOOPS[mode](base, [r for log in logs for r in log], int32)
    assert rows_of(merged(table_of(base, int32), logs, mode, int32)) == shown(expected)


BUDGETS = st.sampled_from([1, 60, 200, 1000, DEFAULT_MEMORY])


@pytest.mark.parametrize("mode", list(MergeMode))
@settings(max_examples=200, deadline=None)
@given(
    base=bases(nulls=True),
    logs=logs_of(),
    memory=BUDGETS,
    at_once=st.integers(1, 4),
    block_bytes=st.sampled_from([1, 99]),
    chooses=st.booleans(),
)
def test_a_merge_in_passes_gives_the_same_rows_in_the_same_order(
    mode: MergeMode,
    base: dict[str, Record],
    logs: list[list[Record]],
    memory: int,
    at_once: int,
    block_bytes: int,
    chooses: bool,
) -> None:
    table = table_of(base)
    held = HeldSlice(table, [block for log in logs for block in blocks_of(log, False)], at_once, block_bytes, chooses)
    merge = SliceMerge(held, ordering(mode), mode, memory)
    found = pa.concat_tables([table.schema.empty_table(), *merge.rows()])
    assert found.equals(merged(table, logs, mode))
    assert merge.log_records == sum(len(log) for log in logs)


def test_of_blocks_that_are_read_record_by_record_only_the_winners_are_decoded() -> None:
    logs = [[Record(f"{k}", n, "row", n) for k in range(100 - n)] for n in range(8)]
    held = HeldSlice(table_of({}), [block for log in logs for block in blocks_of(log, False)], chooses=True)
    merge = SliceMerge(held, ("ts",), EVENT_TIME)
    assert held.read == [(number, False) for number in range(8)]
    assert pa.concat_tables(merge.rows()).equals(merged(table_of({}), logs, EVENT_TIME))
    assert held.chosen == [(number, 1) for number in range(7)], "the last block's rows win all: it is read whole"


def test_a_small_budget_is_met_by_passes_and_by_reading_blocks_again() -> None:
    logs = [[Record(f"{n}-{k}", n, "row", n) for k in range(100)] for n in range(8)]
    blocks = [block for log in logs for block in blocks_of(log, False)]
    table = table_of({})
    plenty, scarce = HeldSlice(table, blocks), HeldSlice(table, blocks)
    assert SliceMerge(plenty, ("ts",), EVENT_TIME).parts == 1
    assert plenty.read == [(number, True) for number in range(8)]
    merge = SliceMerge(scarce, ("ts",), EVENT_TIME, memory=2 * blocks_bytes(blocks[:1]))
    assert merge.parts > 1
    again = [number for number, whole in scarce.read if not whole]
    assert set(again) == set(range(1, 8)), "the first block is kept, the others are read for each part"
    assert len(again) == 7 * merge.parts
    assert pa.concat_tables(merge.rows()).equals(merged(table, logs, EVENT_TIME))


def blocks_bytes(blocks: list[LogRecords]) -> int:
    return sum(block.table.nbytes for block in blocks if isinstance(block, Rows))


def test_examples_that_apache_hudi_gave() -> None:
    """Keys of a table that 0.15.0 wrote and both releases read: what each mode answered."""
    base = {key: Record(key, 10, "row", 0) for key in "abcdefghijk"}
    first = [
        Record("a", 20, "row", 1), Record("b", 5, "row", 1), Record("c", 5, "row", 1), Record("d", 20, "row", 1),
        Record("e", 20, "delete", 1), Record("f", 5, "delete", 1), Record("h", 20, "row", 1),
        Record("j", 10, "row", 1), Record("k", 5, "delete", 1), Record("z", 5, "row", 1),
    ]  # fmt: skip
    second = [Record("g", None, "delete", 2)]
    third = [
        Record("a", 15, "row", 3), Record("c", 3, "row", 3), Record("d", 15, "delete", 3), Record("e", 15, "row", 3),
        Record("g", 5, "row", 3), Record("h", 20, "row", 3), Record("k", 7, "row", 3), Record("z", 5, "row", 3),
    ]  # fmt: skip
    # 0.15.0's answers for the overwriting payload and the default one, 1.2.0's for the other two.
    expected = {
        EVENT_TIME_0X: "a20.1 b10.0 c10.0 d20.1 e15.3 g10.0 h20.3 i10.0 j10.1 k10.0 z5.3",
        OVERWRITE: "a20.1 b5.1 c5.1 d20.1 e15.3 g5.3 h20.3 i10.0 j10.1 k7.3 z5.3",
        COMMIT_TIME: "a15.3 b5.1 c3.3 e15.3 g5.3 h20.3 i10.0 j10.1 k7.3 z5.3",
        # g: after a delete without ordering value the row is compared with the base row, where there is one yet.
        EVENT_TIME: "a20.1 b10.0 c10.0 d20.1 f10.0 g10.0 h20.3 i10.0 j10.1 k10.0 z5.3",
    }
    for mode, text in expected.items():
        rows = rows_of(merged(table_of(base), [first, second, third], mode))
        assert " ".join(sorted(f"{k}{ts}.{v}" for k, ts, v in rows)) == text, mode


@pytest.mark.parametrize("mode", [OVERWRITE, EVENT_TIME_0X])
@pytest.mark.parametrize(
    "kind", [pa.string(), pa.date32(), pa.decimal128(24, 3), pa.int64(), pa.float32(), pa.timestamp("us")]
)
def test_hudi_0_x_compares_no_text_date_or_decimal_of_a_delete_block(mode: MergeMode, kind: pa.DataType) -> None:
    schema = schema_of(False)
    schema = schema.set(1, pa.field("ts", kind))

    def values(*numbers: int) -> pa.Array:
        given = pa.array(numbers, pa.int32() if kind == pa.date32() else pa.int64())
        return given.cast(kind)

    rows = Rows(pa.table([["a", "b"], values(2, 2), [1, 1], [None, None]], schema=schema))
    deletes = Deletes(pa.array(["a", "b"]), values(1, 3))
    left = merge(None, [rows, deletes], ("ts",), schema, mode)["_hoodie_record_key"].to_pylist()
    assert left == ([] if kind in (pa.string(), pa.date32(), pa.decimal128(24, 3)) else ["a"])


# ------------------------------------------------------------------------------------------- partial merges


def as_slice(
    logs: list[list[Record]], by_event_time: bool = True, bounds: Sequence[int | None] = ()
) -> tuple[FileSlice, dict[str, LogSummary]]:
    """`bounds`: per log file what stands for event times that it does not have; beyond its end: None."""
    files = tuple(LogFile(f"log.{n}", "", "g", "1", n, "0-0-0", 1, f"log.{n}") for n in range(1, len(logs) + 1))
    summaries = {}
    for file, log in zip(files, logs, strict=True):
        gone = [r for r in log if r.in_commit_order(False) or (r.kind == "delete" and not by_event_time)]
        rows = [r for r in log if r.ts is None and r not in gone]
        times = [r.ts for r in log if r.ts is not None and r not in gone]
        low, high = min(times, default=None), max(times, default=None)
        deletes = sum(r.kind != "row" for r in log)
        summaries[file.path] = LogSummary(low, high, deletes)
        if gone or rows:
            at = next(iter(bounds[file.version - 1 :]), None)
            summaries[file.path] = LogSummary(
                None,
                None,
                deletes,
                barriers=sum(r.in_commit_order(False) for r in log),
                undated=Undated(Since("1") if rows else None, Since("1") if gone else None, low, high),
                bound=None if at is None else Bound(min([at, *times]), BoundRule.LATENCY),
            )
    return FileSlice("", "g", "1", None, files), summaries


def parted(
    logs: list[list[Record]],
    threshold: int,
    mode: MergeMode,
    *,
    by_event_time: bool,
    keeps_tombstones: bool = False,
    bounds: Sequence[int | None] = (),
    base_highest: float = math.inf,
) -> tuple[list[list[Record]], list[list[Record]]]:
    slice_, summaries = as_slice(logs, by_event_time, bounds)
    rule = MergeRule(mode, by_event_time, keeps_tombstones, base_highest=lambda: base_highest)
    chosen, remain = filter_log_files(slice_, threshold, summaries, rule)
    return [logs[f.version - 1] for f in chosen], [logs[f.version - 1] for f in remain]


def highest_of(table: pa.Table) -> float:
    """As a base file's footer has it."""
    return max((ts for ts in table["ts"].to_pylist() if ts is not None), default=-math.inf)


@pytest.mark.parametrize("mode", list(MergeMode))
@settings(max_examples=200, deadline=None)
@example(  # merged alone, the delete leaves nothing, and a3 would come back
    base={},
    logs=[[Record("a", 4, "delete", 1), Record("b", 1, "row", 2)], [Record("a", 3, "row", 3)]],
    threshold=1,
    by_event_time=True,
    bounds=[],
    footer=False,
)
@example(  # merged alone, a4 becomes a base row, and a3 would overwrite it
    base={},
    logs=[[Record("a", 4, "row", 1), Record("b", 1, "row", 2)], [Record("a", 3, "row", 3)]],
    threshold=1,
    by_event_time=True,
    bounds=[],
    footer=False,
)
@example(  # the delete in commit order goes with what comes before it; what comes after it stays
    base={"a": Record("a", 5, "row", 0)},
    logs=[[Record("a", 4, "row", 1)], [Record("a", None, "delete", 2)], [Record("a", 3, "row", 3)]],
    threshold=1,
    by_event_time=True,
    bounds=[None, 1],
    footer=True,
)
@example(  # merged alone, a4 becomes a base row, which as 0.x merges the delete ends
    base={},
    logs=[[Record("a", 4, "row", 1), Record("b", 1, "row", 2)], [Record("a", 3, "delete", 3)]],
    threshold=1,
    by_event_time=True,
    bounds=[],
    footer=False,
)
@example(  # as 0.x merges, the row after the delete is compared with the base row, which the delete would have ended
    base={"a": Record("a", 5, "row", 0)},
    logs=[[Record("a", 1, "delete", 1)], [Record("a", 3, "row", 2)]],
    threshold=1,
    by_event_time=True,
    bounds=[],
    footer=False,
)
@example(  # as 0.x merges, the row after the remaining delete is compared with the base row that a4 became
    base={},
    logs=[
        [Record("a", 4, "row", 1), Record("b", 1, "row", 2)],
        [Record("a", 5, "delete", 3)],
        [Record("a", 3, "row", 4)],
    ],
    threshold=1,
    by_event_time=True,
    bounds=[],
    footer=False,
)
@example(  # as 0.x merges, the base row is back, which the delete in commit order would have ended
    base={"a": Record("a", 5, "row", 0)},
    logs=[[Record("a", None, "delete", 1)], [Record("a", 3, "row", 2)]],
    threshold=1,
    by_event_time=True,
    bounds=[1],
    footer=True,
)
@given(
    base=bases(nulls=False),
    logs=logs_of(),
    threshold=st.integers(-1, 5),
    by_event_time=st.booleans(),
    bounds=st.lists(st.one_of(st.none(), st.integers(-1, 6)), max_size=5),
    footer=st.booleans(),
)
def test_a_partial_compaction_changes_no_answer(
    mode: MergeMode,
    base: dict[str, Record],
    logs: list[list[Record]],
    threshold: int,
    by_event_time: bool,
    bounds: list[int | None],
    footer: bool,
) -> None:
    table = table_of(base)
    before = rows_of(merged(table, logs, mode))
    highest = highest_of(table) if footer else math.inf
    chosen, remain = parted(logs, threshold, mode, by_event_time=by_event_time, bounds=bounds, base_highest=highest)
    after = rows_of(merged(merged(table, chosen, mode), remain, mode))
    assert after == before


def test_overwrite_with_latest_is_parted_where_ranges_allow_it() -> None:
    logs = [[Record("a", 2, "row", 1)], [Record("a", 2, "row", 2)], [Record("a", 4, "row", 3)]]
    chosen, remain = parted(logs, 2, OVERWRITE, by_event_time=True)
    assert (chosen, remain) == (logs[:2], logs[2:])
    late = [[Record("a", 2, "row", 1), Record("b", 4, "row", 1)], [Record("a", 3, "row", 2)]]
    assert parted(late, 2, OVERWRITE, by_event_time=True) == (late, [])
    assert parted(logs, 2, OVERWRITE, by_event_time=False) == (logs, [])
    assert parted(logs, 1, OVERWRITE, by_event_time=True) == ([], logs)


def test_as_hudi_0_x_merges_slices_are_parted_where_deletes_allow_it() -> None:
    rows = [[Record("a", 2, "row", 1)], [Record("a", 1, "row", 2)], [Record("b", 4, "delete", 3)]]
    assert parted(rows, 1, EVENT_TIME_0X, by_event_time=True) == (rows[1:2], rows[:1] + rows[2:])
    assert parted(rows, 4, EVENT_TIME_0X, by_event_time=True) == (rows, [])
    late = [
        [Record("a", 2, "row", 1), Record("b", 1, "row", 1)],
        [Record("c", 2, "row", 2)],
        [Record("a", 1, "delete", 3)],
    ]
    assert parted(late, 1, EVENT_TIME_0X, by_event_time=True) == (late, [])


def test_as_hudi_0_x_merges_a_delete_in_commit_order_parts_a_slice_whose_base_rows_lie_below_what_remains() -> None:
    logs = [[Record("a", None, "delete", 1)], [Record("a", 3, "row", 2)]]
    for highest, chosen in ((-math.inf, logs[:1]), (3, logs[:1]), (4, logs), (math.inf, logs)):
        found = parted(logs, 1, EVENT_TIME_0X, by_event_time=True, bounds=[1], base_highest=highest)
        assert found == (chosen, logs[len(chosen) :])
    assert parted(logs, 1, EVENT_TIME_0X, by_event_time=False, bounds=[1], base_highest=0) == (logs, [])
    # Nothing remains that has a row.
    gone = [[Record("a", None, "delete", 1)], [Record("a", None, "delete", 2)]]
    assert parted(gone, 1, EVENT_TIME_0X, by_event_time=True, bounds=[1, 9]) == (gone[:1], gone[1:])


def test_commit_time_ordering_takes_the_prefix_whatever_is_deleted() -> None:
    logs = [[Record("a", 5, "row", 1)], [Record("a", 1, "delete", 2)], [Record("b", 4, "row", 3)]]
    chosen, remain = parted(logs, 1, COMMIT_TIME, by_event_time=False)
    assert (chosen, remain) == (logs[:2], logs[2:])


# ------------------------------------------------------------------------------------------- residue logs


def leave(
    base: pa.Table,
    chosen: list[list[Record]],
    remain: list[list[Record]],
    *,
    by_event_time: bool,
    split_at: int | None = None,
    memory: int = DEFAULT_MEMORY,
) -> tuple[pa.Table, list[LogRecords]]:
    """The base file and the residue records of an execution."""
    times = [r.ts for log in remain for r in log]
    lowest = min(times) if times and None not in times else None  # type: ignore[type-var]
    spec = ResidueSpec(
        layout=LayoutV6(),
        instant="1",
        avro_schema="{}",
        column="ts",
        unit=EventTimeUnit.MILLIS,
        by_event_time=by_event_time,
        block_format="parquet",
        split_at=split_at,
        lowest={("", "g"): lowest} if remain else {},
    )
    op = Operation("", "g", "1", None, (), (), {})
    blocks = [b for log in chosen for b in blocks_of(log, False)]
    merge = SliceMerge(HeldSlice(base, blocks), ("ts",), EVENT_TIME, memory, OperationLeaves(spec, op))
    return pa.concat_tables([base.schema.empty_table(), *merge.rows()]), list(merge.left())


def read_on(base: pa.Table, residue: list[LogRecords], remain: list[list[Record]]) -> Shown:
    blocks = [*residue, *(block for log in remain for block in blocks_of(log, False))]
    return rows_of(merge(base, blocks, ("ts",), schema_of(False)))


@settings(max_examples=250, deadline=None)
@example(
    base={},
    logs=[[Record("a", 1, "row", 1), Record("b", 4, "delete", 2)], [Record("b", 3, "row", 3)]],
    threshold=1,
    by_event_time=True,
    memory=DEFAULT_MEMORY,
    bounds=[],
)
@given(
    base=bases(nulls=False),
    logs=logs_of(),
    threshold=st.integers(-1, 5),
    by_event_time=st.booleans(),
    memory=BUDGETS,
    bounds=st.lists(st.one_of(st.none(), st.integers(-1, 6)), max_size=5),
)
def test_tombstones_in_a_residue_log_change_no_answer(
    base: dict[str, Record],
    logs: list[list[Record]],
    threshold: int,
    by_event_time: bool,
    memory: int,
    bounds: list[int | None],
) -> None:
    table = table_of(base)
    before = rows_of(merged(table, logs, EVENT_TIME))
    chosen, remain = parted(
        logs,
        threshold,
        EVENT_TIME,
        by_event_time=by_event_time,
        keeps_tombstones=True,
        bounds=bounds,
        base_highest=highest_of(table),
    )
    new_base, residue = leave(table, chosen, remain, by_event_time=by_event_time, memory=memory)
    assert read_on(new_base, residue, remain) == before
    # Deletes alone are left, and none where nothing remains that could meet them.
    assert all(isinstance(r, Deletes) or all(r.table[IS_DELETED].to_pylist()) for r in residue)
    assert remain or not residue


def test_deletes_part_no_slice_where_tombstones_are_kept() -> None:
    logs = [[Record("a", 4, "delete", 1), Record("b", 1, "row", 1)], [Record("a", 3, "row", 2)]]
    assert parted(logs, 1, EVENT_TIME, by_event_time=True) == (logs, [])
    # The second log comes after, so its range does not matter: only the first one is due.
    assert parted(logs, 1, EVENT_TIME, by_event_time=True, keeps_tombstones=True) == (logs[:1], logs[1:])


def test_a_tombstone_that_nothing_older_can_meet_is_forgotten() -> None:
    logs = [[Record("a", 2, "delete", 1), Record("b", 4, "delete", 1)], [Record("c", 3, "row", 2)]]
    _, residue = leave(table_of({}), logs[:1], logs[1:], by_event_time=True)
    assert [(r.keys.to_pylist(), r.ordering.to_pylist()) for r in residue if isinstance(r, Deletes)] == [(["b"], [4])]


def newest_up_to(base: dict[str, Record], records: list[Record], threshold: int) -> Shown:
    """What the read-optimized view must show: of what deletes in commit order have left, the newest at or below.

    A delete in commit order has no event time; it counts always. But it ends no base row above a record that is left
    after it: such a row lies above the threshold, and may come back.
    """
    state = dict(base)
    for key in {r.key for r in records}:
        left = what_is_left([r for r in records if r.key == key])
        low = [r for r in left if r.ts is None or r.ts <= threshold]
        high = [r.ts for r in left if r.ts is not None and r.ts > threshold]
        if not low:
            continue
        best = max(enumerate(low), key=lambda one: (_rank(one[1]), one[0]))[1]
        old = base.get(key)
        if old is not None and best.in_commit_order(False):
            stays = bool(high) and old.ts is not None and old.ts > min(high)
        else:
            stays = old is not None and _rank(old) > _rank(best)
        if not stays:
            state[key] = best
    return shown(state)


def what_is_left(records: list[Record]) -> list[Record]:
    """Of one key's records, what deletes in commit order leave, and the last of these."""
    left: list[Record] = []
    for record in records:
        if record.in_commit_order(False):
            left = [record]
        elif not (record.kind == "delete" and left and left[-1].in_commit_order(False)):
            left.append(record)
    return left


@settings(max_examples=250, deadline=None)
@example(  # a row at or below, then a delete above
    base={}, logs=[[Record("a", 1, "row", 1), Record("a", 4, "delete", 2)]], thresholds=[1, 4], memory=1, bounds=[]
)
@example(  # a delete at or below, then a row above
    base={"a": Record("a", 0, "row", 0)},
    logs=[[Record("a", 1, "delete", 1), Record("a", 4, "row", 2)]],
    thresholds=[1, 4],
    memory=1,
    bounds=[],
)
@example(  # a delete in commit order ends what is above and came before it
    base={},
    logs=[[Record("a", 4, "row", 1)], [Record("a", None, "delete", 2)], [Record("a", 3, "row", 3)]],
    thresholds=[1],
    memory=1,
    bounds=[],
)
@example(  # two rows above: a later threshold lies between them
    base={},
    logs=[[Record("a", 1, "row", 1), Record("a", 3, "row", 2), Record("a", 5, "row", 3)]],
    thresholds=[1, 3],
    memory=1,
    bounds=[],
)
@example(  # the base row lies above what comes after the delete in commit order, and is left out
    base={"a": Record("a", 5, "row", 0)},
    logs=[[Record("a", None, "delete", 1)], [Record("a", 4, "row", 2)]],
    thresholds=[1, 4],
    memory=1,
    bounds=[],
)
@example(  # the base row lies below it
    base={"a": Record("a", 3, "row", 0)},
    logs=[[Record("a", None, "delete", 1)], [Record("a", 4, "row", 2)]],
    thresholds=[1, 4],
    memory=1,
    bounds=[],
)
@example(  # a delete above is passed over: no residue log has it
    base={},
    logs=[[Record("a", None, "delete", 1)], [Record("a", 5, "delete", 2)], [Record("a", 4, "row", 3)]],
    thresholds=[1],
    memory=1,
    bounds=[],
)
@example(  # one at or below is not, as a row above came before it
    base={},
    logs=[
        [
            Record("a", None, "delete", 1),
            Record("a", 5, "row", 2),
            Record("a", 2, "delete", 3),
            Record("a", 1, "row", 4),
        ]
    ],
    thresholds=[1, 2],
    memory=1,
    bounds=[],
)
@example(  # the same, merged at once
    base={},
    logs=[
        [
            Record("a", None, "delete", 1),
            Record("a", 5, "row", 2),
            Record("a", 2, "delete", 3),
            Record("a", 1, "row", 4),
        ]
    ],
    thresholds=[2],
    memory=1,
    bounds=[],
)
@given(
    base=bases(nulls=False),
    logs=logs_of(),
    thresholds=st.lists(st.integers(-1, 6), min_size=1, max_size=3).map(sorted),
    memory=BUDGETS,
    bounds=st.lists(st.one_of(st.none(), st.integers(-1, 6)), max_size=5),
)
def test_an_exact_split_changes_no_answer_and_lets_nothing_above_in(
    base: dict[str, Record], logs: list[list[Record]], thresholds: list[int], memory: int, bounds: list[int | None]
) -> None:
    """Compaction after compaction at rising thresholds: the residue log takes part in the next one."""
    records = [r for log in logs for r in log]
    table, left = table_of(base), list(logs)
    before = rows_of(merged(table, logs, EVENT_TIME))
    for threshold in thresholds:
        chosen, remain = parted(
            left,
            threshold,
            EVENT_TIME,
            by_event_time=True,
            keeps_tombstones=True,
            bounds=bounds if len(left) == len(logs) else (),
            base_highest=highest_of(table),
        )
        if not chosen:
            continue
        table, residue = leave(table, chosen, remain, by_event_time=True, split_at=threshold, memory=memory)
        assert read_on(table, residue, remain) == before
        remaining = {id(r) for log in remain for r in log}
        merged_ones = [r for r in records if id(r) not in remaining]
        assert rows_of(table) == newest_up_to(base, merged_ones, threshold)
        left = [back for back in [to_records(residue)] if back] + remain


def to_records(residue: list[LogRecords]) -> list[Record]:
    """A residue log as the next compaction reads it."""
    records = []
    for block in residue:
        if isinstance(block, Deletes):
            pairs = zip(block.keys.to_pylist(), block.ordering.to_pylist(), strict=True)
            records += [Record(key, ts, "delete", 0) for key, ts in pairs]
        else:
            for row in block.table.to_pylist():
                kind: Kind = "deleted row" if row[IS_DELETED] else "row"
                records.append(Record(row[KEY], row["ts"], kind, row["v"]))
    return records
