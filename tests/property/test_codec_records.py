"""Random schemas and tables through Avro data blocks: both readers, both directions, and damaged bytes."""

from __future__ import annotations

import json
from datetime import UTC
from decimal import Decimal
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_assets.engine.errors import CorruptTable
from hudi_assets.engine.format.avro import codec as avro_codec
from hudi_assets.engine.format.avro import encode as avro_encode
from hudi_assets.engine.format.avro.codec import (
    arrow_to_avro_schema,
    avro_to_arrow_schema,
    decode_records,
    encode_records,
    project,
    with_meta_columns,
)
from hudi_assets.engine.format.avro.columns import Irregular, decode_columns, knows
from hudi_assets.engine.format.avro.encode import is_plain
from hudi_assets.engine.format.avro.logical import from_raw
from hudi_assets.engine.format.avro.schema import parse_avro_schema

# A hang shows; a busy machine does not.

DECIMALS = st.integers(1, 38).flatmap(
    lambda precision: st.integers(0, precision).map(lambda scale: pa.decimal128(precision, scale))
)
LEAVES = st.one_of(
    st.sampled_from(
        [
            pa.bool_(),
            pa.int32(),
            pa.int64(),
            pa.float32(),
            pa.float64(),
            pa.string(),
            pa.binary(),
            pa.date32(),
            pa.time32("ms"),
            pa.time64("us"),
            pa.timestamp("us", "UTC"),
            pa.timestamp("us"),
        ]
    ),
    DECIMALS,
)


def nested(inner: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
    return st.one_of(
        st.tuples(inner, st.booleans()).map(lambda of: pa.list_(pa.field("element", *of))),
        st.tuples(inner, st.booleans()).map(lambda of: pa.map_(pa.string(), pa.field("value", *of))),
        fields_of(inner).map(pa.struct),
    )


def fields_of(inner: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[list[pa.Field]]:
    return st.lists(st.tuples(inner, st.booleans()), min_size=1, max_size=3).map(
        lambda kinds: [pa.field(f"f{number}", *kind) for number, kind in enumerate(kinds)]
    )


SCHEMAS = fields_of(st.recursive(LEAVES, nested, max_leaves=4)).map(pa.schema)


def values(kind: pa.DataType, nullable: bool) -> st.SearchStrategy[Any]:
    """Python values that pa.array takes for the type."""
    made = _required(kind)
    return st.none() | made if nullable else made


def _required(kind: pa.DataType) -> st.SearchStrategy[Any]:
    if pa.types.is_struct(kind):
        return st.fixed_dictionaries({field.name: values(field.type, field.nullable) for field in kind})
    if pa.types.is_map(kind):
        items = values(kind.item_type, kind.item_field.nullable)
        return st.dictionaries(st.text(max_size=4), items, max_size=3).map(lambda made: list(made.items()))
    if pa.types.is_list(kind):
        return st.lists(values(kind.value_type, kind.value_field.nullable), max_size=3)
    if pa.types.is_decimal(kind):
        bound = 10**kind.precision - 1
        return st.integers(-bound, bound).map(lambda number: _decimal(number, kind.scale))
    if pa.types.is_floating(kind):
        return st.floats(width=kind.bit_width, allow_nan=False)
    return _BY_TYPE[kind]


def _decimal(number: int, scale: int) -> Decimal:
    return Decimal((int(number < 0), tuple(map(int, str(abs(number)))), -scale))


_BY_TYPE: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.bool_(): st.booleans(),
    pa.int32(): st.integers(-(2**31), 2**31 - 1),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.string(): st.text(max_size=6),
    pa.binary(): st.binary(max_size=6),
    pa.date32(): st.dates(),
    pa.time32("ms"): st.integers(0, 86_399_999),
    pa.time64("us"): st.times(),
    pa.timestamp("us", "UTC"): st.datetimes(timezones=st.just(UTC)),
    pa.timestamp("us"): st.datetimes(),
}


@st.composite
def tables(draw: st.DrawFn, schemas: st.SearchStrategy[pa.Schema] = SCHEMAS) -> pa.Table:
    schema = draw(schemas)
    rows = draw(st.integers(0, 4))
    columns = [
        pa.array(draw(st.lists(values(f.type, f.nullable), min_size=rows, max_size=rows)), f.type) for f in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


@settings(max_examples=300)
@given(tables())
def test_tables_read_back_by_either_reader(table: pa.Table) -> None:
    schema_json = arrow_to_avro_schema(table.schema, "t_record", "hoodie.t")
    assert avro_to_arrow_schema(schema_json).equals(table.schema)
    content = encode_records(table, schema_json)
    read = decode_records(content, schema_json)
    read.validate(full=True)
    assert read.equals(table)
    with patch.object(avro_codec, "_polars_knows", return_value=False):
        assert decode_records(content, schema_json).equals(table)


# Texts around what is special to the decoder: one size, sizes of more than one byte, what Arrow's views hold inside.
LONGER = st.sampled_from(["", "a" * 12, "b" * 13, "é" * 6, "c" * 63, "d" * 64, "e" * 9000, "0123456789abcdef"])
WHOLE = st.sampled_from([0, -1, 63, 64, -(2**31), 2**31 - 1, 2**48, 2**55, -(2**55), 2**62, -(2**63), 2**63 - 1])


@st.composite
def plain_tables(draw: st.DrawFn) -> pa.Table:
    table = draw(tables(fields_of(LEAVES).map(pa.schema)))
    size = st.integers(0, 9).map(lambda rows: rows if rows < 9 else 300)
    rows = draw(size)
    special = {
        "text": pa.array(draw(st.lists(st.none() | LONGER, min_size=rows, max_size=rows)), pa.string()),
        "even": pa.array([f"{number:08d}" for number in range(rows)], pa.string()),
        "whole": pa.array(draw(st.lists(WHOLE, min_size=rows, max_size=rows)), pa.int64()),
    }
    fields = [pa.field(name, column.type, name == "text") for name, column in special.items()]
    if len(table) != rows:
        return pa.Table.from_arrays(list(special.values()), schema=pa.schema(fields))
    return pa.Table.from_arrays([*special.values(), *table.columns], schema=pa.schema([*fields, *table.schema]))


@settings(max_examples=300)
@given(tables() | plain_tables(), st.data())
def test_some_columns_are_those_of_all(table: pa.Table, data: st.DataObject) -> None:
    schema_json = arrow_to_avro_schema(table.schema, "t_record", "hoodie.t")
    content = encode_records(table, schema_json)
    names = data.draw(st.lists(st.sampled_from([*table.schema.names, "unknown"]), unique=True))
    wanted = [name for name in table.schema.names if name in names]
    read = decode_records(content, schema_json, names)
    read.validate(full=True)
    assert read.equals(table.select(wanted)) or not wanted


@settings(max_examples=300)
@given(plain_tables())
def test_plain_columns_are_decoded_without_a_container(table: pa.Table) -> None:
    schema_json = arrow_to_avro_schema(table.schema, "t_record", "hoodie.t")
    record = parse_avro_schema(schema_json)
    wanted = range(len(record.children))
    assert knows(record, wanted)
    count, body = avro_codec._records(encode_records(table, schema_json))
    if not count:
        return
    raw = decode_columns(body, count, record, wanted)
    columns = [from_raw(pa.chunked_array([c]), node) for c, (_, node) in zip(raw, record.children, strict=True)]
    assert pa.Table.from_arrays(columns, schema=table.schema).equals(table)


@settings(max_examples=300)
@given(plain_tables(), st.data())
def test_damaged_columns_are_irregular_or_other_values(table: pa.Table, data: st.DataObject) -> None:
    """Decoded without a container: no reading beyond the content, and nothing that Arrow does not take."""
    schema_json = arrow_to_avro_schema(table.schema, "t_record", "hoodie.t")
    content = bytearray(encode_records(table, schema_json))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    record = parse_avro_schema(schema_json)
    wanted = sorted(data.draw(st.sets(st.integers(0, len(record.children) - 1), min_size=1)))
    try:
        count, body = avro_codec._records(content)  # type: ignore[arg-type]
        columns = decode_columns(body, count, record, wanted) if count else []
    except (CorruptTable, Irregular, pa.ArrowException):
        return
    for column in columns:
        column.validate(full=True)
        assert len(column) == count


@settings(max_examples=300)
@given(plain_tables(), st.data())
def test_some_columns_of_damaged_records_are_corrupt_or_other_values(table: pa.Table, data: st.DataObject) -> None:
    schema_json = arrow_to_avro_schema(table.schema, "t_record", "hoodie.t")
    content = bytearray(encode_records(table, schema_json))
    content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    name = data.draw(st.sampled_from(table.schema.names))
    try:
        read = decode_records(bytes(content), schema_json, [name])
    except CorruptTable:
        return
    read.validate(full=True)


@settings(max_examples=300)
@given(tables(fields_of(LEAVES).map(pa.schema)), st.integers(1, 3))
def test_plain_columns_take_the_same_bytes_as_rows(table: pa.Table, rows_at_once: int) -> None:
    schema_json = arrow_to_avro_schema(table.schema, "t_record", "hoodie.t")
    assert is_plain(parse_avro_schema(schema_json))
    with patch.object(avro_encode, "_ROWS_AT_ONCE", rows_at_once):
        by_column = encode_records(table, schema_json)
    with patch.object(avro_codec, "is_plain", return_value=False):
        assert by_column == encode_records(table, schema_json)


@settings(max_examples=300)
@given(tables())
def test_meta_columns_can_be_added_and_left_out_again(table: pa.Table) -> None:
    wide = with_meta_columns(table.schema)
    assert project(project(table, wide), table.schema).equals(table)


@pytest.mark.parametrize("by_polars", [True, False])
@settings(max_examples=200)
@given(tables(), st.data())
def test_damaged_records_are_corrupt_or_other_records(by_polars: bool, table: pa.Table, data: st.DataObject) -> None:
    schema_json = arrow_to_avro_schema(table.schema, "t_record", "hoodie.t")
    content = bytearray(encode_records(table, schema_json))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(content))) if data.draw(st.booleans()) else len(content)
    choose = avro_codec._polars_knows if by_polars else (lambda *_: False)
    with patch.object(avro_codec, "_polars_knows", choose):
        try:
            read = decode_records(bytes(content[:cut]), schema_json)
        except CorruptTable:
            return
    assert read.schema.equals(table.schema)
    read.validate(full=True)


@settings(max_examples=300)
@given(tables(), st.data())
def test_a_damaged_schema_is_corrupt_or_another_schema(table: pa.Table, data: st.DataObject) -> None:
    schema_json = arrow_to_avro_schema(table.schema, "t_record", "hoodie.t")
    content = encode_records(table, schema_json)
    position = data.draw(st.integers(0, len(schema_json) - 1))
    put = data.draw(st.sampled_from(["", "0", "9" * 8, '"', "long", "null", "[", "}", "é"]))
    broken = schema_json[:position] + put + schema_json[position + data.draw(st.integers(0, 6)) :]
    try:
        decode_records(content, broken)
    except CorruptTable:
        pass
    else:
        json.loads(broken)
