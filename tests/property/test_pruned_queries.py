"""Queries of some columns, and of a range of commits, against whole slices: every merge mode, delete and block kind.

The whole slice is read by the merge that `test_merge_modes.py` proves; what is pruned must be the same rows.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import pyarrow as pa
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hudi_assets.engine.actions.writing.log_files import encode_data_block
from hudi_assets.engine.format.avro.schema import META_COLUMNS, arrow_to_avro_schema, with_meta_columns
from hudi_assets.engine.format.log_file.block_times import BlockTimes
from hudi_assets.engine.format.log_file.codec import BlockType, HeaderKey, encode_block
from hudi_assets.engine.format.log_file.delete_codec import encode_deletes
from hudi_assets.engine.merging.delete_records import delete_records
from hudi_assets.engine.merging.merge import IS_DELETED, KEY
from hudi_assets.engine.model import MergeMode
from hudi_assets.engine.queries.in_range import CommitRange, rows_in_range
from hudi_assets.engine.storage import LocalStorage
from hudi_assets.engine.table.base_file_writer import write_base_file
from hudi_assets.engine.table.log_files.reader import CommittedInstants
from hudi_assets.engine.table.slices.reader import SliceReader, SliceTask
from hudi_assets.engine.table.slices.rows import read_slice

COMMIT = "_hoodie_commit_time"
BASE = "00000000000000003"  # of the base file: its rows are of commits up to it
ORDERINGS = {
    "int32": pa.int32(),
    "int64": pa.int64(),
    "timestamp": pa.timestamp("us", "UTC"),
    "date": pa.date32(),
    "double": pa.float64(),
    "text": pa.string(),
}
Format = Literal["parquet", "avro"]


def instant(number: int) -> str:
    return f"{number:017d}"


@dataclass(frozen=True)
class Record:
    """`order` None: a row without an ordering value, or a delete in commit order. `commit`: the row's own."""

    key: int
    order: int | None
    commit: int
    deleted: bool = False


@dataclass(frozen=True)
class Block:
    """`number`: of its instant, at or after the commits of its rows. `old`: written before the column `late`."""

    number: int
    records: tuple[Record, ...]
    kind: Literal["parquet", "avro", "delete"]
    old: bool


@dataclass(frozen=True)
class Slice:
    mode: MergeMode
    ordering: str
    flags: bool  # the table has `_hoodie_is_deleted`
    base: tuple[Record, ...] | None
    blocks: tuple[Block, ...]

    @property
    def schema(self) -> pa.Schema:
        fields = [pa.field("a", pa.int64()), pa.field("b", pa.string())]
        if self.ordering:
            fields.append(pa.field("ts", ORDERINGS[self.ordering]))
        if self.flags:
            fields.append(pa.field(IS_DELETED, pa.bool_()))
        return with_meta_columns(pa.schema([*fields, pa.field("late", pa.list_(pa.int32()))]))


def ordering_value(kind: str, order: int | None) -> Any:
    if order is None or kind == "double":
        # A NaN is a greatest value that no statistics tell of.
        return order if order != 4 else float("nan")
    return f"t{order}" if kind == "text" else order


def orders(kind: str, records: Sequence[Record]) -> pa.Array:
    values = [ordering_value(kind, record.order) for record in records]
    target = ORDERINGS[kind]
    if pa.types.is_timestamp(target):
        return pa.array(values, pa.int64()).cast(target)
    return pa.array(values, pa.int32()).cast(target) if target == pa.date32() else pa.array(values, target)


def rows(made: Slice, records: Sequence[Record], old: bool) -> pa.Table:
    meta = {name: pa.array([f"{name}{r.key}" for r in records], pa.string()) for name in META_COLUMNS}
    columns: dict[str, pa.Array] = {
        **meta,
        COMMIT: pa.array([instant(r.commit) for r in records], pa.string()),
        KEY: pa.array([f"k{r.key}" for r in records], pa.string()),
        "a": pa.array([r.commit * 100 + (r.order or 0) for r in records], pa.int64()),
        "b": pa.array([None if r.key == 0 else f"b{r.commit}" for r in records], pa.string()),
        "late": pa.array([[r.key, r.commit] for r in records], pa.list_(pa.int32())),
    }
    if made.ordering:
        columns["ts"] = orders(made.ordering, records)
    if made.flags:
        columns[IS_DELETED] = pa.array([r.deleted for r in records], pa.bool_())
    schema = pa.schema([field for field in made.schema if not (old and field.name == "late")])
    return pa.table([columns[name] for name in schema.names], schema=schema)


def avro_of(schema: pa.Schema) -> str:
    return arrow_to_avro_schema(schema, "t", "hoodie.t")


def write(made: Slice, folder: str) -> tuple[SliceReader, SliceTask]:
    storage = LocalStorage(folder)
    base_file = None
    if made.base is not None:
        base_file = "base.parquet"
        # One row of a key, as in any base file.
        held = list({record.key: record for record in made.base}.values())
        table = rows(made, held, old=True)
        write_base_file(storage, base_file, table, avro_of(table.schema), None)
    for number, block in enumerate(made.blocks):
        table = rows(made, block.records, block.old)
        avro, of = avro_of(table.schema), instant(block.number)
        if block.kind == "delete":
            ordering = pa.chunked_array([orders(made.ordering, block.records)]) if made.ordering else None
            keys = table.column(KEY).to_pylist()
            found = delete_records(
                keys, "", ordering if ordering is not None else pa.chunked_array([pa.nulls(len(keys))])
            )
            header = {HeaderKey.INSTANT_TIME: of, HeaderKey.SCHEMA: avro}
            data = encode_block(BlockType.DELETE, header, encode_deletes(found))
        else:
            data = encode_data_block(table, avro, of, BlockTimes("not asked"), block.kind)
        storage.create(f"{number}.log", data)
    committed = CommittedInstants(frozenset(instant(number) for number in range(20)), None)
    reader = SliceReader(storage, made.schema, ("ts",) if made.ordering else (), committed, made.mode)
    return reader, SliceTask(base_file, tuple(f"{number}.log" for number in range(len(made.blocks))))


def sorted_rows(table: pa.Table) -> list[str]:
    return sorted(repr(row) for row in table.to_pylist())


def records_of(commits: st.SearchStrategy[int], deletes: bool) -> st.SearchStrategy[tuple[Record, ...]]:
    order = st.one_of(st.integers(0, 4), st.integers(0, 4), st.none())
    deleted = st.sampled_from([False, False, True]) if deletes else st.just(False)
    return st.lists(st.builds(Record, st.integers(0, 4), order, commits, deleted), max_size=4).map(tuple)


@st.composite
def blocks(draw: st.DrawFn) -> Block:
    number = draw(st.integers(4, 9))
    # A compaction's residue log holds rows that are older than its block.
    commits = draw(st.sampled_from([st.just(number), st.just(number), st.integers(4, number)]))
    kind: Any = draw(st.sampled_from(["parquet", "parquet", "parquet", "avro", "delete"]))
    return Block(number, draw(records_of(commits, deletes=True)), kind, draw(st.booleans()))


@st.composite
def slices(draw: st.DrawFn) -> Slice:
    mode = draw(st.sampled_from([MergeMode.EVENT_TIME_ORDERING, *MergeMode]))
    names = ["int64", "int64", "int32", "timestamp", "date", "double", "text"]
    ordering = draw(st.sampled_from(["", *names] if mode is MergeMode.COMMIT_TIME_ORDERING else names))
    base = draw(st.one_of(st.none(), records_of(st.integers(1, 3), deletes=False)))
    found = draw(st.lists(blocks(), max_size=5))
    if draw(st.booleans()):
        found.sort(key=lambda block: block.number)  # as one writer leaves them
    return Slice(mode, ordering, draw(st.booleans()), base, tuple(found))


def columns_of(made: Slice, chosen: Sequence[int]) -> tuple[str, ...]:
    names = made.schema.names
    return tuple(dict.fromkeys(names[number % len(names)] for number in chosen))


_chosen = st.lists(st.integers(0, 99), min_size=1, max_size=4)
_memories = st.sampled_from([1 << 30, 1 << 12])


@settings(max_examples=60, deadline=None)
@given(slices(), _chosen, _memories)
def test_some_columns_are_those_of_the_whole(made: Slice, chosen: list[int], memory: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        reader, task = write(made, folder)
        columns = columns_of(made, chosen)
        whole, _ = reader.read(task.base_file, task.log_files)
        pruned = replace(reader, columns=columns, memory=memory)
        parts = [*read_slice(pruned, task), pruned.shown.empty_table()]
        for found in (pruned.read(task.base_file, task.log_files)[0], pa.concat_tables(parts)):
            assert found.schema.names == list(columns)
            assert repr(found.to_pylist()) == repr(whole.select(list(columns)).to_pylist())


def _row(key: int, order: int | None, commit: int, deleted: bool = False) -> Record:
    return Record(key, order, commit, deleted)


def _blocks(*parts: tuple[int, tuple[Record, ...], Any]) -> tuple[Block, ...]:
    return tuple(Block(number, records, kind, False) for number, records, kind in parts)


_EVENT = MergeMode.EVENT_TIME_ORDERING


@settings(max_examples=100, deadline=None)
@given(slices(), st.integers(0, 9), st.booleans(), st.lists(st.integers(1, 9), max_size=2), _chosen, _memories)
# A delete in commit order among older rows hides one that is older still, and greater.
@example(
    Slice(
        _EVENT,
        "int64",
        True,
        (_row(1, 4, 1),),
        _blocks((5, (_row(1, None, 5, True),), "parquet"), (6, (_row(1, 1, 6),), "parquet")),
    ),
    5,
    False,
    [],
    [5],
    1 << 30,
)
# A delete is passed over right after one in commit order, in a data block or not; and it is not where a row is between.
@example(
    Slice(
        _EVENT,
        "int64",
        True,
        None,
        _blocks(
            (5, (_row(1, None, 5, True),), "parquet"), (5, (_row(1, 4, 5),), "delete"), (6, (_row(1, 3, 6),), "parquet")
        ),
    ),
    5,
    False,
    [],
    [5],
    1 << 30,
)
@example(
    Slice(
        _EVENT,
        "int64",
        False,
        None,
        _blocks(
            (4, (_row(1, None, 4),), "delete"),
            (4, (_row(1, 1, 4),), "parquet"),
            (5, (_row(1, 4, 5),), "delete"),
            (6, (_row(1, 3, 6),), "parquet"),
        ),
    ),
    5,
    False,
    [],
    [5],
    1 << 30,
)
# The base row is greater than the row of the range; then it is as great.
@example(
    Slice(_EVENT, "int64", False, (_row(1, 4, 1),), _blocks((6, (_row(1, 3, 6),), "parquet"))),
    5,
    False,
    [],
    [5],
    1 << 30,
)
@example(
    Slice(_EVENT, "int64", False, (_row(1, 3, 1),), _blocks((6, (_row(1, 3, 6),), "parquet"))),
    5,
    False,
    [],
    [5],
    1 << 30,
)
# An older row that is greater, in a block without statistics; then one beside a row without an ordering value.
@example(
    Slice(_EVENT, "int64", False, None, _blocks((4, (_row(1, 4, 4),), "avro"), (6, (_row(1, 3, 6),), "parquet"))),
    5,
    False,
    [],
    [5],
    1 << 30,
)
@example(
    Slice(
        _EVENT,
        "int64",
        False,
        None,
        _blocks((4, (_row(1, 3, 4),), "parquet"), (6, (_row(1, None, 6), _row(2, 4, 6)), "parquet")),
    ),
    5,
    False,
    [],
    [5],
    1 << 30,
)
# A delete block before the range, with a greater ordering value.
@example(
    Slice(_EVENT, "int64", False, None, _blocks((4, (_row(1, 4, 4),), "delete"), (6, (_row(1, 3, 6),), "parquet"))),
    5,
    False,
    [],
    [5],
    1 << 30,
)
def test_a_range_is_the_whole_filtered(
    made: Slice, begin: int, ended: bool, late: list[int], chosen: list[int], memory: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        reader, task = write(made, folder)
        end = instant(begin + 3) if ended else None
        commits = CommitRange(instant(begin), end, tuple(instant(n) for n in late if n <= begin))
        whole, _ = reader.read(task.base_file, task.log_files)
        times = whole.column(COMMIT).to_pylist()
        inside = [(t > commits.begin or t in commits.late) and (end is None or t <= end) for t in times]
        columns = columns_of(made, chosen)
        expected = whole.filter(pa.array(inside, pa.bool_())).select(list(columns))
        pruned = replace(reader, columns=columns, memory=memory)
        found = pa.concat_tables([pruned.shown.empty_table(), *rows_in_range(pruned, task, commits)])
        assert found.schema.names == list(columns)
        assert sorted_rows(found) == sorted_rows(expected)
