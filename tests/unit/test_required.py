"""Null structs whose fields may not be null, as Parquet takes them: at any depth, in slices, and read back."""

from __future__ import annotations

import io
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_assets.engine.format.avro.project import project
from hudi_assets.engine.format.parquet_required import with_stand_ins


def must(name: str, kind: pa.DataType) -> pa.Field:
    return pa.field(name, kind, False)


STRICT = pa.struct(
    [
        *(must("i", pa.int32()), must("s", pa.string()), must("b", pa.binary()), must("f", pa.float64())),
        *(must("d", pa.date32()), must("t", pa.timestamp("us", "UTC")), must("x", pa.decimal128(5, 3))),
        *(must("o", pa.bool_()), must("l", pa.list_(must("element", pa.int32())))),
        must("m", pa.map_(pa.string(), must("value", pa.int32()))),
        must("st", pa.struct([must("z", pa.int64())])),
        must("ls", pa.list_(pa.field("element", pa.struct([must("q", pa.int8())])))),
    ]
)
VALUE: dict[str, Any] = {
    **{"i": 1, "s": "a", "b": b"b", "f": 1.5, "d": date(2020, 1, 1), "t": datetime(2020, 1, 1, tzinfo=UTC)},
    **{"x": Decimal("1.250"), "o": True, "l": [1], "m": [("a", 1)], "st": {"z": 1}, "ls": [{"q": 1}, None]},
}
TABLE = pa.table(
    {
        "c": pa.array([VALUE, None, VALUE, None], STRICT),
        "l": pa.array([[VALUE, None], None, [], [None]], pa.list_(STRICT)),
        "m": pa.array([[("a", VALUE)], [("b", None)], None, []], pa.map_(pa.string(), STRICT)),
        "plain": pa.array([1, None, 2, None]),
    }
)


def through_parquet(table: pa.Table) -> pa.Table:
    out = io.BytesIO()
    pq.write_table(with_stand_ins(table), out)
    return pq.read_table(io.BytesIO(out.getvalue()))


@pytest.mark.parametrize(("start", "length"), [(0, 4), (1, 3), (1, 1), (3, 1), (0, 0)])
def test_rows_come_back_from_parquet(start: int, length: int) -> None:
    table = TABLE.slice(start, length)
    filled = with_stand_ins(table)
    filled.validate(full=True)
    assert filled.to_pylist() == table.to_pylist()
    read = through_parquet(table)
    assert read.to_pylist() == table.to_pylist()
    assert through_parquet(read).to_pylist() == table.to_pylist()


def test_nulls_inside_null_structs() -> None:
    """As the engine's own projection leaves them: pyarrow alone refuses them."""
    rows = project(TABLE, TABLE.schema)
    with pytest.raises(pa.ArrowInvalid, match="non-nullable"):
        pq.write_table(rows, io.BytesIO())
    assert through_parquet(rows).to_pylist() == TABLE.to_pylist()


def test_a_table_without_such_structs_is_left_alone() -> None:
    plain = pa.table({"a": [1, None], "s": pa.array([{"x": 1}, None], pa.struct([("x", pa.int32())]))})
    assert all(a is b or a.equals(b) for a, b in zip(with_stand_ins(plain).columns, plain.columns, strict=True))
