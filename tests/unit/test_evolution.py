"""How a schema follows the rows that are written: what is added, what widens, what is refused by name."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from hudi_assets.engine.errors import InvalidInput
from hudi_assets.engine.format.avro.schema import arrow_to_avro_schema, avro_to_arrow_schema
from hudi_assets.engine.table.schema_evolution import by_value, check_columns, check_fits, evolve, same_types

UTC = pa.timestamp("us", "UTC")


def avro(*fields: pa.Field | tuple[str, pa.DataType]) -> str:
    return arrow_to_avro_schema(pa.schema([pa.field("k", pa.string(), False), *fields]), "t_record", "hoodie.t")


def rows(*fields: pa.Field | tuple[str, pa.DataType]) -> pa.Schema:
    return pa.schema([pa.field("k", pa.string()), *fields])


def evolved(table: pa.DataType, written: pa.DataType) -> pa.DataType:
    return avro_to_arrow_schema(evolve(avro(("c", table)), rows(("c", written)))).field("c").type


X = pa.struct([("x", pa.int32())])
XY = pa.struct([("x", pa.int32()), ("y", pa.string())])


@pytest.mark.parametrize(
    ("table", "written"),
    [
        (pa.int32(), pa.int64()),
        (pa.int32(), pa.float32()),
        (pa.int32(), pa.float64()),
        (pa.int64(), pa.float32()),
        (pa.int64(), pa.float64()),
        (pa.float32(), pa.float64()),
        (X, XY),
        (pa.list_(X), pa.list_(XY)),
        (pa.map_(pa.string(), X), pa.map_(pa.string(), XY)),
        (pa.struct([("s", pa.list_(X))]), pa.struct([("s", pa.list_(XY))])),
    ],
)
def test_the_table_takes_the_wider_type(table: pa.DataType, written: pa.DataType) -> None:
    assert same_types(evolved(table, written), written)


@pytest.mark.parametrize(
    ("table", "written"),
    [
        (pa.int64(), pa.int32()),
        (pa.int64(), pa.uint32()),
        (pa.int32(), pa.int8()),
        (pa.float64(), pa.int64()),
        (pa.float64(), pa.float32()),
        (pa.float32(), pa.int64()),
        (pa.decimal128(20, 4), pa.decimal128(10, 2)),
        (pa.string(), pa.large_string()),
        (pa.string(), pa.dictionary(pa.int32(), pa.string())),
        (pa.binary(), pa.string()),
        (pa.string(), pa.null()),
        (X, pa.null()),
        (XY, X),
        (pa.list_(pa.int64()), pa.list_(pa.int32())),
        (pa.list_(pa.int64()), pa.large_list(pa.int64())),
        (pa.list_(XY), pa.list_(X)),
        (UTC, pa.timestamp("ms", "UTC")),
        (UTC, pa.timestamp("ns", "UTC")),
    ],
)
def test_the_table_keeps_its_type_for_narrower_rows(table: pa.DataType, written: pa.DataType) -> None:
    before = avro(("c", table))
    assert evolve(before, rows(("c", written))) is before


@pytest.mark.parametrize(
    ("table", "written"),
    [
        (pa.string(), pa.int32()),
        (pa.int32(), pa.string()),
        (pa.int32(), pa.uint64()),
        (pa.int32(), pa.decimal128(12, 2)),
        (pa.decimal128(10, 2), pa.decimal128(20, 2)),
        (pa.decimal128(10, 2), pa.decimal128(12, 4)),
        (pa.date32(), UTC),
        (pa.timestamp("us"), UTC),
        (UTC, pa.timestamp("us")),
        (UTC, pa.int64()),
        (pa.bool_(), pa.int32()),
        (X, pa.string()),
        (pa.string(), X),
        (pa.list_(pa.int32()), pa.int32()),
        (pa.list_(pa.int32()), pa.map_(pa.string(), pa.int32())),
    ],
)
def test_other_types_are_refused_with_both_named(table: pa.DataType, written: pa.DataType) -> None:
    with pytest.raises(InvalidInput) as refusal:
        evolved(table, written)
    assert refusal.value.what.startswith("Column c is ")
    assert str(avro_to_arrow_schema(avro(("c", table))).field("c").type) in refusal.value.what
    assert str(written) in refusal.value.what


@pytest.mark.parametrize(
    ("table", "written", "path"),
    [
        (X, pa.struct([("x", pa.int64())]), "c.x"),
        (pa.list_(pa.int32()), pa.list_(pa.int64()), "c.element"),
        (pa.map_(pa.string(), pa.float32()), pa.map_(pa.string(), pa.float64()), "c.value"),
    ],
)
def test_types_inside_other_types_do_not_widen(table: pa.DataType, written: pa.DataType, path: str) -> None:
    with pytest.raises(InvalidInput, match=f"Column {path} is"):
        evolved(table, written)


def test_added_columns_come_last_and_may_be_null() -> None:
    before = avro(("b", pa.int32()), ("a", pa.string()))
    written = rows(("new", pa.list_(X)), ("a", pa.string()), pa.field("more", pa.decimal128(9, 2), False))
    after = avro_to_arrow_schema(evolve(before, written))
    assert after.names == ["k", "b", "a", "new", "more"]
    assert all(after.field(name).nullable for name in ("new", "more"))
    assert not after.field("k").nullable
    fields = json.loads(evolve(before, written))["fields"]
    assert [field.get("default", "none") for field in fields[3:]] == [None, None]


def test_what_does_not_change_stays_as_it_was_written() -> None:
    record: dict[str, Any] = json.loads(avro(("b", pa.int32()), ("s", X)))
    record["hudi.note"] = "kept"
    record["fields"][1]["doc"] = "a column's text"
    record["fields"][1]["type"] = [{"type": "int"}, "null"]
    after = json.loads(evolve(json.dumps(record), rows(("b", pa.int64()), ("s", XY))))
    assert after["hudi.note"] == "kept"
    assert after["fields"][1] == {**record["fields"][1], "type": [{"type": "long"}, "null"]}
    assert [field["name"] for field in after["fields"][2]["type"][1]["fields"]] == ["x", "y"]
    assert after["fields"][2]["type"][1]["name"] == record["fields"][2]["type"][1]["name"]


def test_evolving_twice_changes_nothing_more() -> None:
    written = rows(("b", pa.int64()), ("s", XY), ("d", pa.decimal128(30, 3)))
    once = evolve(avro(("b", pa.int32()), ("s", X)), written)
    assert evolve(once, written) is once


def test_a_type_used_twice_by_name_takes_no_field() -> None:
    record = json.loads(avro(("s", X)))
    name = record["fields"][1]["type"][1]
    record["fields"].append({"name": "again", "type": f"{name['namespace']}.{name['name']}"})
    with pytest.raises(InvalidInput, match=r"c|s\.y"):
        evolve(json.dumps(record), rows(("s", XY), ("again", X)))


def test_missing_columns() -> None:
    table = avro(("a", pa.int32()), pa.field("b", pa.int32(), False), ("s", pa.struct([pa.field("x", X, False)])))
    assert evolve(table, rows(("b", pa.int32()))) is table
    with pytest.raises(InvalidInput, match="Column b is missing"):
        evolve(table, rows(("a", pa.int32())))
    with pytest.raises(InvalidInput, match=r"Column s\.x is missing"):
        evolve(table, rows(("b", pa.int32()), ("s", pa.struct([("y", pa.int32())]))))


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ([("a", pa.string()), ("a", pa.string())], "twice"),
        ([("K", pa.string())], "one name to Spark"),
        ([("new", pa.string()), ("NEW", pa.string())], "one name to Spark"),
        ([("größe", pa.string())], "größe"),
        ([("a b", pa.string())], "a b"),
        ([("1st", pa.string())], "1st"),
        ([("", pa.string())], "cannot be named"),
        ([("_hoodie_is_deleted", pa.bool_())], "_hoodie_is_deleted"),
        ([("nothing", pa.null())], "nothing has no type"),
        ([("s", pa.struct([]))], "s is a struct without fields"),
        ([("s", pa.struct([("a", pa.int8()), ("A", pa.int8())]))], "one name to Spark"),
        ([("s", pa.list_(pa.struct([("a-b", pa.int8())])))], r"s\.element\.a-b"),
        ([("t", pa.time64("us"))], "t is time64"),
        ([("d", pa.duration("us"))], "d has the type duration"),
        ([("m", pa.map_(pa.int32(), pa.int32()))], "map with keys of type int32"),
        ([("u", pa.uint64())], "u .*uint64"),
    ],
)
def test_columns_that_cannot_be_added_are_refused_by_name(fields: list[Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        evolve(avro(("b", pa.int32())), rows(*fields))
    if "twice" not in words and "_hoodie_" not in words and fields[0][0] != "K":
        with pytest.raises(InvalidInput, match=words):
            check_columns(avro_to_arrow_schema(arrow_to_avro_schema(rows(*fields), "t", "")))


def test_fixed_columns_keep_their_type() -> None:
    table = avro(("ts", pa.int32()))
    assert evolve(table, rows(("ts", pa.int16())), {"ts"}) is table
    with pytest.raises(InvalidInput, match="ts is int32 in the table and int64 in the rows"):
        evolve(table, rows(("ts", pa.int64())), {"ts"})


def test_columns_whose_values_have_to_be_looked_at() -> None:
    strict = pa.struct([pa.field("x", pa.int32(), False)])
    table = pa.schema([("plain", pa.int64()), ("t", UTC), ("m", pa.timestamp("ms")), ("s", pa.string()), ("x", strict)])
    same = [("plain", pa.int32()), ("t", pa.timestamp("ms", "UTC")), ("m", pa.timestamp("s")), ("s", pa.large_string())]
    assert by_value(pa.schema([*same, ("other", X)]), table).names == []
    finer = [("t", pa.timestamp("ns", "UTC")), ("m", pa.timestamp("us")), ("s", pa.binary()), ("x", X)]
    assert by_value(pa.schema(finer), table).names == ["t", "m", "s", "x"]
    assert by_value(pa.schema([("x", strict)]), table).names == ["x"]


def test_deletes_are_checked_against_the_table() -> None:
    table = pa.schema([("k", pa.string()), ("ts", pa.int64())])
    check_fits(pa.schema([("k", pa.string()), ("ts", pa.int32()), ("other", X)]), table)
    with pytest.raises(InvalidInput, match="Column ts is int64 in the table and double in the rows"):
        check_fits(pa.schema([("ts", pa.float64())]), table)
    with pytest.raises(InvalidInput, match="Column k is string in the table and int32 in the rows"):
        check_fits(pa.schema([("k", pa.int32())]), table)
