"""Avro schemas and records ↔ Arrow, against fastavro's own writer and against what Apache Hudi wrote."""

from __future__ import annotations

import io
import json
import runpy
import struct
import uuid
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_assets.engine.errors import CorruptTable, InvalidInput
from hudi_assets.engine.format.avro import codec as avro_codec
from hudi_assets.engine.format.avro.codec import (
    META_COLUMNS,
    arrow_to_avro_schema,
    avro_to_arrow_schema,
    decode_records,
    encode_records,
    project,
    record_name,
    with_meta_columns,
)
from hudi_assets.engine.format.log_file.codec import LogBlock, min_event_time, read_blocks, with_min_event_time

GOLDEN = Path(__file__).parents[1] / "golden"
UTC_MICROS = pa.timestamp("us", "UTC")


def record(*fields: tuple[str, Any]) -> str:
    return json.dumps(
        {"type": "record", "name": "r", "fields": [{"name": name, "type": kind} for name, kind in fields]}
    )


def content_by_fastavro(schema_json: str, rows: list[dict[str, Any]]) -> bytes:
    """A data block's content made without the code under test."""
    schema = fastavro.parse_schema(json.loads(schema_json))
    out = struct.pack(">ii", 3, len(rows))
    for row in rows:
        buffer = io.BytesIO()
        fastavro.schemaless_writer(buffer, schema, row)
        out += struct.pack(">i", buffer.tell()) + buffer.getvalue()
    return out


@pytest.fixture(params=["polars", "fastavro"])
def reader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both readers have to give the same table, whichever is chosen for a schema."""
    if request.param == "fastavro":
        monkeypatch.setattr(avro_codec, "_polars_knows", lambda *_: False)
    return str(request.param)


# ------------------------------------------------------------------------------------------------- types

MOMENT = datetime(2013, 1, 1, 5, 0, 0, 123456, tzinfo=UTC)
LOCAL = MOMENT.replace(tzinfo=None)
LOGICAL = [
    ("boolean", pa.bool_(), True),
    ("int", pa.int32(), -(2**31)),
    ("long", pa.int64(), 2**63 - 1),
    ("float", pa.float32(), 1.5),
    ("double", pa.float64(), 0.1),
    ("string", pa.string(), "Ü ✈"),
    ("bytes", pa.binary(), b"\x00\xff"),
    ({"type": "fixed", "name": "f", "size": 3}, pa.binary(), b"abc"),
    ({"type": "enum", "name": "e", "symbols": ["A", "B"]}, pa.string(), "B"),
    ({"type": "int", "logicalType": "date"}, pa.date32(), date(1583, 1, 1)),
    ({"type": "int", "logicalType": "time-millis"}, pa.time32("ms"), time(23, 59, 59, 999000)),
    ({"type": "long", "logicalType": "time-micros"}, pa.time64("us"), time(23, 59, 59, 999999)),
    (
        {"type": "long", "logicalType": "timestamp-millis"},
        pa.timestamp("ms", "UTC"),
        MOMENT.replace(microsecond=123000),
    ),
    ({"type": "long", "logicalType": "timestamp-micros"}, UTC_MICROS, MOMENT),
    (
        {"type": "long", "logicalType": "local-timestamp-millis"},
        pa.timestamp("ms"),
        LOCAL.replace(microsecond=123000),
    ),
    ({"type": "long", "logicalType": "local-timestamp-micros"}, pa.timestamp("us"), LOCAL),
    (
        {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 3},
        pa.decimal128(20, 3),
        Decimal("-12345678901234567.890"),
    ),
    (
        {"type": "fixed", "name": "d", "size": 5, "logicalType": "decimal", "precision": 10, "scale": 2},
        pa.decimal128(10, 2),
        Decimal("99999999.99"),
    ),
    (
        {"type": "fixed", "name": "w", "size": 30, "logicalType": "decimal", "precision": 60, "scale": 0},
        pa.decimal256(60, 0),
        Decimal("-" + "7" * 60),
    ),
    ({"type": "string", "logicalType": "uuid"}, pa.string(), "c0a80101-0000-0000-0000-000000000000"),
    ({"type": "array", "items": "int"}, pa.list_(pa.field("element", pa.int32(), False)), [1, 2]),
    (
        {"type": "array", "items": ["null", {"type": "long", "logicalType": "timestamp-micros"}]},
        pa.list_(pa.field("element", UTC_MICROS)),
        [MOMENT, None],
    ),
    (
        {"type": "map", "values": ["null", "long"]},
        pa.map_(pa.string(), pa.field("value", pa.int64())),
        [("a", 1), ("b", None)],
    ),
    (
        {"type": "record", "name": "p", "fields": [{"name": "x", "type": ["double", "null"]}]},
        pa.struct([pa.field("x", pa.float64())]),
        {"x": None},
    ),
]
IDS = [str(kind.get("logicalType", kind["type"]) if isinstance(kind, dict) else kind) for kind, _, _ in LOGICAL]


@pytest.mark.parametrize("form", ["required", "null first", "null last"])
@pytest.mark.parametrize(("avro", "arrow", "value"), LOGICAL, ids=IDS)
def test_every_type_is_read_as_what_fastavro_wrote(
    avro: Any, arrow: pa.DataType, value: Any, form: str, reader: str
) -> None:
    kind = {"required": avro, "null first": ["null", avro], "null last": [avro, "null"]}[form]
    schema_json = record(("before", "string"), ("value", kind), ("after", "long"))
    values = [value] if form == "required" else [None, value, None]
    rows = [{"before": "b", "value": _plain(v, avro), "after": -n} for n, v in enumerate(values)]
    table = decode_records(content_by_fastavro(schema_json, rows), schema_json)
    expected = pa.schema(
        [
            pa.field("before", pa.string(), False),
            pa.field("value", arrow, form != "required"),
            pa.field("after", pa.int64(), False),
        ]
    )
    assert table.schema.equals(expected)
    assert avro_to_arrow_schema(schema_json).equals(expected)
    table.validate(full=True)
    assert table.column("value").to_pylist() == values
    assert table.column("after").to_pylist() == [-n for n in range(len(values))]
    assert decode_records(encode_records(table, schema_json), schema_json).equals(table)


def _plain(value: Any, avro: Any) -> Any:
    """What fastavro writes the value from: maps from dicts, UUIDs from their own type."""
    if isinstance(avro, dict) and avro.get("logicalType") == "uuid" and value is not None:
        return uuid.UUID(value)
    return dict(value) if isinstance(value, list) and value and isinstance(value[0], tuple) else value


def test_decimals_of_every_length_keep_their_sign(reader: str) -> None:
    schema_json = record(("d", {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 0}))
    numbers = [sign * (10**digits + change) for digits in range(38) for change in (-1, 0, 1) for sign in (1, -1)]
    rows = [{"d": Decimal(number)} for number in numbers]
    table = decode_records(content_by_fastavro(schema_json, rows), schema_json)
    assert table.column("d").to_pylist() == [Decimal(number) for number in numbers]


def test_a_named_type_may_be_used_again_by_name(reader: str) -> None:
    place = {"type": "record", "name": "place", "namespace": "n", "fields": [{"name": "x", "type": "int"}]}
    schema_json = record(("a", place), ("b", "n.place"), ("c", ["null", "n.place"]))
    rows: list[dict[str, Any]] = [{"a": {"x": 1}, "b": {"x": 2}, "c": None}]
    table = decode_records(content_by_fastavro(schema_json, rows), schema_json)
    assert table.to_pylist() == rows


def test_timestamps_beyond_pythons_years_are_kept(reader: str) -> None:
    schema_json = record(("t", {"type": "long", "logicalType": "timestamp-micros"}))
    far = 2**62
    content = content_by_fastavro(record(("t", "long")), [{"t": far}])
    assert decode_records(content, schema_json).column("t").cast(pa.int64()).to_pylist() == [far]


@pytest.mark.parametrize("length", [0, 127, 128, 0x7F80, 0x807F, 0x817F, 0xFF7F, 0x80FF7F])
def test_a_record_of_any_length_keeps_its_length(length: int, reader: str) -> None:
    # Lengths whose bytes are an infinity or no number, when taken for a float.
    schema_json = record(("b", "bytes"))
    content = content_by_fastavro(schema_json, [{"b": b"x" * max(0, length - 3)}, {"b": b"y"}])
    table = decode_records(content, schema_json)
    assert table.column("b").to_pylist() == [b"x" * max(0, length - 3), b"y"]


def test_no_records_give_an_empty_table_with_columns() -> None:
    table = decode_records(struct.pack(">ii", 3, 0), record(("a", ["null", "string"])))
    assert (table.num_rows, table.column_names) == (0, ["a"])


# ------------------------------------------------------------------------------------------------ damage


@pytest.mark.parametrize(
    "content",
    [
        b"",
        struct.pack(">i", 3),
        struct.pack(">ii", 0, 0),
        struct.pack(">ii", 4, 0),
        struct.pack(">ii", 3, -1),
        struct.pack(">ii", 3, 2**31 - 1) + bytes(100),
        struct.pack(">ii", 3, 0) + b"rest",
        struct.pack(">iii", 3, 1, 2**31 - 1) + b"\x02a",
        struct.pack(">iii", 3, 1, -2) + b"\x02a",
        struct.pack(">iii", 3, 1, 2) + b"\x02",
        struct.pack(">iii", 3, 1, 2) + b"\x02aa",
        struct.pack(">iii", 3, 1, 10) + b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        struct.pack(">iii", 3, 1, 2) + b"\x02\xff",
        struct.pack(">iii", 3, 1, 1) + b"\x01",
    ],
)
def test_contents_that_do_not_parse_are_corrupt(content: bytes, reader: str) -> None:
    with pytest.raises(CorruptTable):
        decode_records(content, record(("s", "string")))


@pytest.mark.parametrize("number", [b"", b"\x03\xe8", b"\xfc\x18", b"\x00" * 17])
def test_decimals_that_their_type_cannot_hold_are_corrupt(number: bytes, reader: str) -> None:
    decimal = {"type": "bytes", "logicalType": "decimal", "precision": 3, "scale": 0}
    content = content_by_fastavro(record(("d", "bytes")), [{"d": number}])
    with pytest.raises(CorruptTable):
        decode_records(content, record(("d", decimal)))


def test_a_time_of_day_past_midnight_is_corrupt(reader: str) -> None:
    content = content_by_fastavro(record(("t", "int")), [{"t": 86_400_000}])
    with pytest.raises(CorruptTable):
        decode_records(content, record(("t", {"type": "int", "logicalType": "time-millis"})))


@pytest.mark.parametrize(
    ("field", "words"),
    [
        (["int", "string"], "union of several"),
        (["null", "int", "string"], "union of several"),
        ("nothing", "unknown Avro type"),
        ({"type": "array", "items": "null"}, "empty values"),
        ({"type": "array", "items": {"type": "record", "name": "z", "fields": []}}, "empty values"),
        ({"type": "fixed", "name": "f", "size": -1}, "without a size"),
        ({"type": "enum", "name": "e", "symbols": "A"}, "without symbols"),
        ({"type": "record", "name": "q", "fields": [{"name": "again", "type": "q"}]}, "recursive"),
        ({"type": "record", "name": "q"}, "name and a type"),
        (None, "no Avro type"),
        (5, "no Avro type"),
    ],
)
def test_a_schema_that_is_not_handled_is_refused_by_the_fields_name(field: Any, words: str) -> None:
    schema_json = record(("fine", "int"), ("odd", field))
    with pytest.raises(InvalidInput, match=words) as caught:
        avro_to_arrow_schema(schema_json)
    assert "odd" in str(caught.value)
    with pytest.raises(CorruptTable, match=words):
        decode_records(struct.pack(">ii", 3, 0), schema_json)


@pytest.mark.parametrize("schema_json", ["", "{", "[]", '"string"', "[" * 100_000, '{"type":"record"}'])
def test_what_is_no_schema_is_refused(schema_json: str) -> None:
    with pytest.raises(InvalidInput):
        avro_to_arrow_schema(schema_json)


def test_a_fixed_size_larger_than_the_content_takes_no_memory() -> None:
    schema_json = record(("f", ["null", {"type": "fixed", "name": "f", "size": 2**31 - 1}]))
    content = struct.pack(">ii", 3, 10_000) + (struct.pack(">i", 1) + b"\x00") * 10_000
    assert decode_records(content, schema_json).column("f").null_count == 10_000


# ---------------------------------------------------------------------------------------- Arrow → Avro

COLUMNS = pa.schema(
    [
        pa.field("id", pa.string(), False),
        ("flag", pa.bool_()),
        ("tiny", pa.int8()),
        ("ts", pa.int64()),
        ("at", pa.timestamp("ns", "Europe/Berlin")),
        ("local", pa.timestamp("us")),
        ("price", pa.decimal128(10, 2)),
        ("place", pa.struct([("price", pa.decimal128(38, 4)), pa.field("x", pa.float64(), False)])),
        ("tags", pa.map_(pa.large_string(), pa.date32())),
        ("items", pa.large_list(pa.field("item", pa.struct([("x", pa.float32())])))),
    ]
)


def test_nested_names_are_used_once_and_fastavro_takes_the_schema() -> None:
    schema_json = arrow_to_avro_schema(COLUMNS, *record_name("t"))
    fastavro.parse_schema(json.loads(schema_json))
    names: list[str] = []

    def collect(value: Any) -> None:
        if isinstance(value, dict):
            if isinstance(value.get("type"), str) and value["type"] in ("record", "fixed", "enum"):
                names.append(f"{value['namespace']}.{value['name']}")
            for inner in value.values():
                collect(inner)
        elif isinstance(value, list):
            for inner in value:
                collect(inner)

    collect(json.loads(schema_json))
    assert names == [
        "hoodie.t.t_record",
        "hoodie.t.t_record.price.fixed",
        "hoodie.t.t_record.place",
        "hoodie.t.t_record.place.price.fixed",
        "hoodie.t.t_record.items",
    ]


def test_types_without_an_avro_form_are_refused_by_the_columns_name() -> None:
    for kind in (pa.uint64(), pa.duration("s"), pa.map_(pa.int32(), pa.int32())):
        with pytest.raises(InvalidInput, match=r"outer\.inner"):
            arrow_to_avro_schema(pa.schema([("outer", pa.struct([("inner", kind)]))]), "r", "")


def test_meta_columns_come_first_and_once() -> None:
    schema = pa.schema([("a", pa.int32()), ("_hoodie_record_key", pa.large_string())])
    once = with_meta_columns(schema)
    assert once.names == [*META_COLUMNS, "a"]
    assert all(once.field(name).type == pa.string() and once.field(name).nullable for name in META_COLUMNS)
    assert with_meta_columns(once).equals(once)


# --------------------------------------------------------------------------------------------- projecting


def test_project_orders_adds_and_leaves_out() -> None:
    table = pa.table({"b": [1, 2], "gone": ["x", "y"], "a": ["p", "q"]})
    target = pa.schema([("a", pa.string()), ("new", pa.list_(pa.int32())), ("b", pa.int64())])
    projected = project(table, target)
    assert projected.schema.equals(target)
    assert projected.to_pylist() == [{"a": "p", "new": None, "b": 1}, {"a": "q", "new": None, "b": 2}]


WIDENED = [
    (pa.int8(), pa.int32(), 5, 5),
    (pa.int16(), pa.int64(), 5, 5),
    (pa.int32(), pa.int64(), 5, 5),
    (pa.uint32(), pa.int64(), 5, 5),
    (pa.int64(), pa.float32(), 2**24 + 1, float(2**24)),
    (pa.int64(), pa.float64(), 2**53 + 1, float(2**53)),
    (pa.float32(), pa.float64(), 1.5, 1.5),
    (pa.large_string(), pa.string(), "x", "x"),
    (pa.string(), pa.binary(), "Ü", "Ü".encode()),
    (pa.binary(), pa.string(), "Ü".encode(), "Ü"),
    (pa.binary(2), pa.binary(), b"xy", b"xy"),
    (pa.dictionary(pa.int8(), pa.string()), pa.string(), "x", "x"),
    (pa.null(), pa.timestamp("us"), None, None),
    (pa.timestamp("ms", "UTC"), UTC_MICROS, MOMENT.replace(microsecond=0), MOMENT.replace(microsecond=0)),
    (pa.timestamp("us", "America/New_York"), UTC_MICROS, MOMENT, MOMENT),
    (pa.decimal128(5, 1), pa.decimal128(10, 2), Decimal("1.5"), Decimal("1.50")),
    (
        pa.struct([("x", pa.int32())]),
        pa.struct([("y", pa.string()), ("x", pa.int64())]),
        {"x": 1},
        {"y": None, "x": 1},
    ),
    (pa.float32(), pa.float64(), 0.1, 0.1),  # as Hudi's readers: through text
    (pa.int64(), pa.string(), -(2**63), "-9223372036854775808"),
    (pa.list_(pa.int32()), pa.list_(pa.int64()), [1, None], [1, None]),
    (pa.large_list(pa.float32()), pa.list_(pa.float64()), [1.5], [1.5]),
    (pa.map_(pa.string(), pa.int32()), pa.map_(pa.string(), pa.int64()), [("a", 1)], [("a", 1)]),
]


@pytest.mark.parametrize(
    ("source", "target", "value", "expected"), WIDENED, ids=[f"{a} to {b}" for a, b, *_ in WIDENED]
)
def test_project_widens(source: pa.DataType, target: pa.DataType, value: Any, expected: Any) -> None:
    # Sliced and in two chunks: offsets are where such code goes wrong.
    whole = pa.chunked_array([pa.array([None, value, None, value], source), pa.array([value], source)])
    for column, values in (
        (whole, [None, expected, None, expected, expected]),
        (whole.slice(1, 2), [expected, None]),
        (whole.slice(3), [expected, expected]),
        (whole.slice(0, 0), []),
    ):
        projected = project(pa.table({"c": column}), pa.schema([("c", target)]))
        assert projected.column("c").type == target
        assert projected.column("c").to_pylist() == values
        projected.validate(full=True)


@pytest.mark.parametrize(
    ("source", "target", "value"),
    [
        (pa.int64(), pa.int32(), 1),
        (pa.float64(), pa.float32(), 1.5),
        (pa.float32(), pa.int64(), 1.0),
        (pa.string(), pa.int32(), "1"),
        (pa.float64(), pa.string(), 1.5),
        (pa.binary(), pa.string(), b"\xff"),
        (UTC_MICROS, pa.timestamp("us"), MOMENT),
        (pa.timestamp("us"), pa.timestamp("ms"), LOCAL),
        (pa.decimal128(10, 2), pa.decimal128(10, 3), Decimal("1.50")),
        (pa.bool_(), pa.int32(), True),
        (pa.struct([("x", pa.int64())]), pa.struct([("x", pa.int32())]), {"x": 1}),
        (pa.struct([("x", pa.int64())]), pa.struct([pa.field("y", pa.int64(), False)]), {"x": 1}),
        (pa.struct([("x", pa.int64())]), pa.struct([pa.field("x", pa.int64(), False)]), {"x": None}),
        (pa.list_(pa.int64()), pa.list_(pa.field("e", pa.int64(), False)), [None]),
        (pa.list_(pa.int64()), pa.int64(), [1]),
    ],
)
def test_project_names_the_column_that_does_not_fit(source: pa.DataType, target: pa.DataType, value: Any) -> None:
    table = pa.table({"fine": [1], "odd": pa.array([value], source)})
    with pytest.raises(InvalidInput, match="Column odd"):
        project(table, pa.schema([("fine", pa.int64()), ("odd", target)]))


def test_project_names_what_is_missing_or_null_and_may_not_be() -> None:
    required = pa.schema([pa.field("key", pa.string(), False)])
    with pytest.raises(InvalidInput, match="Column key is missing"):
        project(pa.table({"other": [1]}), required)
    with pytest.raises(InvalidInput, match="Column key has 1 nulls"):
        project(pa.table({"key": pa.array(["a", None])}), required)
    with pytest.raises(InvalidInput, match="2 columns named key"):
        project(pa.Table.from_arrays([pa.array(["a"])] * 2, names=["key", "key"]), required)


def test_a_null_record_may_stand_where_its_fields_may_not_be_null() -> None:
    kind = pa.struct([pa.field("x", pa.int64(), False)])
    table = pa.table({"s": pa.array([None, {"x": 1}], pa.struct([("x", pa.int32())]))})
    assert project(table, pa.schema([("s", kind)])).column("s").to_pylist() == [None, {"x": 1}]


# ----------------------------------------------------------------------------------------------- encoding


def test_encoding_widens_first_and_names_what_does_not_fit() -> None:
    schema_json = record(("a", "long"), ("b", ["null", "double"]))
    content = encode_records(pa.table({"a": pa.array([1], pa.int8())}), schema_json)
    assert decode_records(content, schema_json).to_pylist() == [{"a": 1, "b": None}]
    with pytest.raises(InvalidInput, match="Column a"):
        encode_records(pa.table({"a": ["text"]}), schema_json)


def test_an_enum_takes_only_its_symbols() -> None:
    schema_json = record(("e", {"type": "enum", "name": "e", "symbols": ["A"]}))
    with pytest.raises(InvalidInput):
        encode_records(pa.table({"e": ["B"]}), schema_json)


# ------------------------------------------------------------------------- written by Apache Hudi 0.15.0


def golden(name: str) -> LogBlock:
    (block,) = read_blocks((GOLDEN / name).read_bytes())
    return block


def golden_rows() -> list[dict[str, Any]]:
    made = runpy.run_path(str(GOLDEN / "make_hudi_logs.py"))["rows"](2000)
    return sorted(made, key=lambda row: str(row["id"]))


def plain_rows(table: pa.Table) -> list[dict[str, Any]]:
    found = table.drop_columns(list(META_COLUMNS)).to_pylist()
    for row in found:
        row["tags"] = None if row["tags"] is None else dict(row["tags"])
    return sorted(found, key=lambda row: str(row["id"]))


def test_hudis_avro_records_read(reader: str) -> None:
    block = golden("hudi_0_15_avro_0.log")
    assert block.schema is not None
    table = decode_records(block.content, block.schema)
    assert plain_rows(table) == golden_rows()
    assert set(table.column("_hoodie_commit_time").to_pylist()) == {block.instant_time}
    assert sorted(table.column("_hoodie_record_key").to_pylist()) == ["extreme", "full", "nulls"]


def test_hudis_avro_records_are_written_back_to_the_byte() -> None:
    block = golden("hudi_0_15_avro_0.log")
    assert block.schema is not None
    assert encode_records(decode_records(block.content, block.schema), block.schema) == block.content


def test_hudis_parquet_records_have_the_schema_of_their_header() -> None:
    block = golden("hudi_0_15_parquet_0.log")
    assert block.schema is not None
    raw = pq.ParquetFile(pa.BufferReader(block.content)).read()
    table = project(raw, avro_to_arrow_schema(block.schema))
    assert plain_rows(table) == golden_rows()


def test_the_schema_is_the_one_that_hudis_spark_writer_gave() -> None:
    block = golden("hudi_0_15_avro_0.log")
    assert block.schema is not None
    ours = arrow_to_avro_schema(avro_to_arrow_schema(block.schema), *record_name("golden"))
    assert json.loads(ours) == json.loads(block.schema)
    assert min_event_time(block.schema) is None
    marked = with_min_event_time(block.schema, 5)
    assert avro_to_arrow_schema(marked).equals(avro_to_arrow_schema(block.schema))
