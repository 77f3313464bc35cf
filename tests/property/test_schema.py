"""Random schemas and rows, written in batches whose columns come, go, move and change type, against plain lists."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hudi_assets.engine import HudiTable, Plan
from hudi_assets.engine.table.files.hidden import hidden_files
from tests.tables.local_session import LocalSession

ZONED, LOCAL = pa.timestamp("us", "UTC"), pa.timestamp("us")
LEAVES = [
    *(pa.bool_(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.string(), pa.binary(), pa.date32()),
    *(ZONED, LOCAL, pa.decimal128(9, 2), pa.decimal128(38, 5)),
]
WIDER = {
    pa.int32(): [pa.int64(), pa.float32(), pa.float64()],
    pa.int64(): [pa.float32(), pa.float64()],
    pa.float32(): [pa.float64()],
}
NARROWER = {pa.int64(): pa.int32(), pa.float64(): pa.float32()}


def nested(inner: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
    nullable = st.booleans()
    return st.one_of(
        st.tuples(inner, nullable).map(lambda of: pa.list_(pa.field("element", *of))),
        st.tuples(inner, nullable).map(lambda of: pa.map_(pa.string(), pa.field("value", *of))),
        st.lists(st.tuples(inner, nullable), min_size=1, max_size=3).map(
            lambda kinds: pa.struct([pa.field(f"f{n}", *of) for n, of in enumerate(kinds)])
        ),
    )


KINDS = st.recursive(st.sampled_from(LEAVES), nested, max_leaves=4)


def values(kind: pa.DataType, nullable: bool) -> st.SearchStrategy[Any]:
    made = _values(kind)
    return st.none() | made if nullable else made


def _values(kind: pa.DataType) -> st.SearchStrategy[Any]:
    if pa.types.is_struct(kind):
        return st.fixed_dictionaries({f.name: values(f.type, f.nullable) for f in kind})
    if pa.types.is_map(kind):
        items = values(kind.item_type, kind.item_field.nullable)
        return st.dictionaries(st.text(max_size=3), items, max_size=2).map(lambda made: list(made.items()))
    if pa.types.is_list(kind):
        return st.lists(values(kind.value_type, kind.value_field.nullable), max_size=2)
    if pa.types.is_decimal(kind):
        bound = 10**kind.precision - 1
        return st.integers(-bound, bound).map(
            lambda n: Decimal((int(n < 0), tuple(map(int, str(abs(n)))), -kind.scale))
        )
    if pa.types.is_floating(kind):
        return st.floats(width=kind.bit_width)
    # Whole numbers that a float holds too: else what is read depends on the type that a file was written with.
    return {
        pa.bool_(): st.booleans(),
        pa.int32(): st.integers(-(2**24), 2**24),
        pa.int64(): st.integers(-(2**24), 2**24),
        pa.string(): st.text(max_size=5),
        pa.binary(): st.binary(max_size=5),
        pa.date32(): st.dates(),
        ZONED: st.datetimes(timezones=st.just(UTC)),
        LOCAL: st.datetimes(),
    }[kind]


def with_field(kind: pa.DataType, name: str) -> pa.DataType:
    """The type with one more field in the first struct in it; itself where there is none."""
    if pa.types.is_struct(kind):
        return pa.struct([*kind, pa.field(name, pa.string())])
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(with_field(kind.value_type, name)))
    if pa.types.is_map(kind):
        return pa.map_(pa.string(), kind.item_field.with_type(with_field(kind.item_type, name)))
    return kind


def as_kind(value: Any, before: pa.DataType, after: pa.DataType) -> Any:
    """A value of one type as it is read as a wider one."""
    if value is None or before == after:
        return value
    if pa.types.is_struct(after):
        known = {f.name: f.type for f in before}
        return {f.name: as_kind(value[f.name], known[f.name], f.type) if f.name in known else None for f in after}
    if pa.types.is_map(after):
        return [(key, as_kind(item, before.item_type, after.item_type)) for key, item in value]
    if pa.types.is_list(after):
        return [as_kind(item, before.value_type, after.value_type) for item in value]
    if pa.types.is_float32(before):
        return float(str(np.float32(value)))  # the digits that tell the float from its neighbours
    return float(value) if pa.types.is_floating(after) else value


def newest(table: pa.DataType, written: pa.DataType) -> pa.DataType:
    """A column's type once rows of another type are written."""
    if pa.types.is_struct(table):
        mine = {f.name: f.with_type(newest(f.type, written.field(f.name).type)) for f in table}
        return pa.struct([*mine.values(), *(f for f in written if f.name not in mine)])
    if pa.types.is_list(table):
        return pa.list_(table.value_field.with_type(newest(table.value_type, written.value_type)))
    if pa.types.is_map(table):
        return pa.map_(pa.string(), table.item_field.with_type(newest(table.item_type, written.item_type)))
    return written if written in WIDER.get(table, ()) else table


@dataclass
class Expected:
    """The rows that the table should hold: key → the row that won, in the table's newest schema."""

    schema: pa.Schema
    rows: dict[str, dict[str, Any]] = field(default_factory=dict)

    def put(self, written: pa.Schema, batch: list[dict[str, Any]]) -> None:
        newest = self._newest(written)
        for key, row in self.rows.items():
            self.rows[key] = _as_schema(row, self.schema, newest)
        self.schema = newest
        for row in batch:
            known = self.rows.get(row["k"])
            if known is None or row["ts"] >= known["ts"]:
                self.rows[row["k"]] = _as_schema(row, written, newest)

    def _newest(self, written: pa.Schema) -> pa.Schema:
        known = [
            f.with_type(newest(f.type, written.field(f.name).type)) if f.name in written.names else f
            for f in self.schema
        ]
        return pa.schema([*known, *(f.with_nullable(True) for f in written if f.name not in self.schema.names)])

    def texts(self) -> list[str]:
        table = pa.Table.from_pylist([self.rows[key] for key in sorted(self.rows)], self.schema)
        return [repr(row) for row in table.to_pylist()]


def _as_schema(row: dict[str, Any], before: pa.Schema, after: pa.Schema) -> dict[str, Any]:
    return {
        f.name: as_kind(row[f.name], before.field(f.name).type, f.type) if f.name in before.names else None
        for f in after
    }


@st.composite
def batches(draw: st.DrawFn, table: pa.Schema, number: int) -> tuple[pa.Schema, list[dict[str, Any]]]:
    """Rows whose columns are the table's, but for some that are missing, of another type, or new."""
    fields = [table.field("k"), table.field("ts")]
    for one in list(table)[2:]:
        change = draw(st.sampled_from(["keep", "keep", "keep", "drop", "wider", "narrower", "field"]))
        kind = one.type
        if change == "drop" and one.nullable:
            continue
        if change == "wider" and kind in WIDER:
            kind = draw(st.sampled_from(WIDER[kind]))
        elif change == "narrower":
            kind = NARROWER.get(kind, kind)
        elif change == "field":
            kind = with_field(kind, f"g{number}")
        fields.append(one.with_type(kind))
    for index, kind in enumerate(draw(st.lists(KINDS, max_size=1))):
        fields.append(pa.field(f"n{number}_{index}", kind))
    schema = pa.schema(draw(st.permutations(fields)))
    some = {f.name: values(f.type, f.nullable) for f in schema if f.name not in ("k", "ts")}
    row = st.fixed_dictionaries({"k": st.sampled_from("abcd"), "ts": st.integers(0, 50), **some})
    return schema, draw(st.lists(row, min_size=1, max_size=4))


@settings(
    max_examples=12,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large],
)
@pytest.mark.parametrize("block_format", ["parquet", "avro"])
@given(data=st.data())
def test_a_table_whose_schema_changes_holds_what_was_written(
    block_format: str, session: LocalSession, data: st.DataObject
) -> None:
    kinds = data.draw(st.lists(st.tuples(KINDS, st.booleans()), max_size=3))
    columns = [pa.field(f"c{n}", kind, nullable) for n, (kind, nullable) in enumerate(kinds)]
    schema = pa.schema([pa.field("k", pa.string(), False), pa.field("ts", pa.int64(), False), *columns])
    expected = Expected(schema)
    with tempfile.TemporaryDirectory() as folder:
        table = HudiTable.create(
            str(Path(folder, "t")),
            schema,
            record_key=["k"],
            ordering_field="ts",
            buckets=1,
            clock="commit",
            log_block_format=block_format,
        )
        for number in range(data.draw(st.integers(1, 4))):
            written, rows = data.draw(batches(expected.schema, number))
            table.upsert(session, session.rows(rows, written), clock_time=datetime.fromtimestamp(100 + number, UTC))
            expected.put(written, rows)
            _check(table, session, expected)
            if data.draw(st.booleans()):
                _compact(table, session, data.draw(st.integers(0, 50)))
                _check(table, session, expected)
        _compact(table, session, 50)
        assert _texts(table.read_optimized(session).table) == expected.texts()


def _compact(table: HudiTable, session: LocalSession, threshold: int) -> None:
    plan = table.plan_compaction(threshold=threshold)
    if isinstance(plan, Plan):
        table.execute_compaction(session, plan.instant)


def _check(table: HudiTable, session: LocalSession, expected: Expected) -> None:
    assert hidden_files(table.state()) == ()
    found = table.snapshot(session).table
    assert [(f.name, f.type) for f in found.schema][5:] == [(f.name, f.type) for f in expected.schema]
    assert _texts(found) == expected.texts()


def _texts(rows: pa.Table) -> list[str]:
    return [repr({k: v for k, v in row.items() if k[0] != "_"}) for row in rows.sort_by("k").to_pylist()]
