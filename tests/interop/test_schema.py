"""Every type and every change of a table's schema beside Apache Hudi: we write and they read, and the other way.

What a release cannot read of any table, its own included, is asserted too: `docs/reference/schema.md` lists it.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_assets.engine import HudiTable
from hudi_assets.engine.spark.session import spark_schema
from scripts.hudi_client import HudiError
from scripts.hudi_rows import by_key, differences
from tests.interop.readers import HUDI_RS, VIEWS, Readers
from tests.interop.tables import MINUTE, START, Shape, compacted, frame, hudi_options, row
from tests.tables.schemas import EVOLUTIONS, TYPES, Evolution

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]

OLD = "Hudi 0.15.0"
SLOW = pytest.mark.slow
SETTINGS = {
    "hudi_assets.writers": "stopped",
    "hoodie.payload.event.time.field": "ts",
    "hudi_assets.event.time.unit": "ms",
    "hoodie.table.precombine.field": "ts",  # 1.2.0 names it hoodie.table.ordering.fields
}
KEYS = [pa.field("id", pa.string(), False), pa.field("ts", pa.int64(), False), pa.field("p", pa.string(), False)]
# Fields that are added inside other types: hudi-rs does not read older log blocks then.
NESTED = [name for name in EVOLUTIONS if name.startswith("added field")]
# 0.15.0 takes a float in an Avro log block as the double nearest to it, and in a base file, as others, its digits.
FLOAT = "float to double"
# hudi-rs does not read a log block that lacks a column and has a narrower type too: so one test for each.
NUMBERS = ["int to long", "int to float", "int to double", "long to float", "long to double", "long, then int"]
ADDED = ["added text", "added decimal", "added array of structs", "added map"]
# 0.15.0 takes a struct of one field in an array for the field, where an older Parquet log block lacks the array.
SMALL = "added array of small structs"
# Hudi's writers refuse rows without a column of the table by default.
REARRANGED = ["fields in another order", "missing field", "wide decimal, then narrow", "double, then float"]


def of_others(table: HudiTable, readers: Readers, but: Mapping[str, str] | None = None) -> None:
    """Assert that the others read what we read, and that those in `but` fail with those words."""
    but = but or {}
    for view in VIEWS:
        ours = readers.ours(table, view)
        for name, read in readers.others(table.path).items():
            if name in but:
                if view == "snapshot":
                    with pytest.raises(Exception, match=but[name]):
                        read(view)
                continue
            unlike = differences(ours, by_key(read(view)))
            assert not unlike, f"{name}'s {view} is not ours:\n" + "\n".join(unlike)


def rows(columns: Mapping[str, tuple[pa.DataType, Any]], keys: list[str], minute: int) -> pa.Table:
    """Rows with these keys and, in every row, each column's value."""
    fields = [pa.field(name, kind) for name, (kind, _) in columns.items()]
    values = {name: value for name, (_, value) in columns.items()}
    made = [{"id": key, "ts": START + minute * MINUTE, "p": "a", **values} for key in keys]
    return pa.Table.from_pylist(made, pa.schema([*KEYS, *fields]))


def before(names: list[str], keys: list[str], minute: int) -> pa.Table:
    changes = {column_of(name): EVOLUTIONS[name] for name in names}
    return rows({n: (c.before, c.old) for n, c in changes.items() if c.before is not None}, keys, minute)


def after(names: list[str], keys: list[str], minute: int) -> pa.Table:
    changes = {column_of(name): EVOLUTIONS[name] for name in names}
    return rows({n: (c.after, c.new) for n, c in changes.items() if c.after is not None}, keys, minute)


def column_of(name: str) -> str:
    return name.replace(" ", "_").replace(",", "")


def expected(change: Evolution, kind: pa.DataType) -> tuple[Any, Any]:
    """What a column's old and new value are once it has its newest type."""
    return pa.array([change.seen], kind)[0].as_py(), pa.array([change.new], kind)[0].as_py()


def ours_is_right(table: HudiTable, readers: Readers, names: list[str]) -> None:
    """Our snapshot against the list of changes: keys `old` are from before, `new` from after."""
    found = {one["id"]: one for one in table.snapshot(readers.spark).toArrow().to_pylist()}
    schema = table.schema()
    for name in names:
        old, new = expected(EVOLUTIONS[name], schema.field(column_of(name)).type)
        for key, one in found.items():
            assert one[column_of(name)] == (new if key.startswith("new") else old), (name, key)


GROUPS = [
    pytest.param(NUMBERS, "avro", {}, id="numbers-avro"),
    pytest.param(NUMBERS, "parquet", {OLD: "incompatible types"}, id="numbers-parquet", marks=SLOW),
    pytest.param([*ADDED, *REARRANGED], "avro", {}, id="added-avro", marks=SLOW),
    pytest.param([*ADDED, *REARRANGED], "parquet", {}, id="added-parquet", marks=SLOW),
    pytest.param(NESTED, "avro", {HUDI_RS: "child-count"}, id="nested-avro", marks=SLOW),
    pytest.param(NESTED, "parquet", {HUDI_RS: "child-count"}, id="nested-parquet", marks=SLOW),
    pytest.param([FLOAT], "parquet", {OLD: "incompatible types"}, id="float-parquet", marks=SLOW),
    pytest.param([SMALL], "avro", {}, id="small-avro", marks=SLOW),
    pytest.param([SMALL], "parquet", {OLD: "is not a group"}, id="small-parquet", marks=SLOW),
    pytest.param(["int to long", "added text"], "avro", {HUDI_RS: "partial-update"}, id="both-avro", marks=SLOW),
]


@pytest.mark.parametrize(("names", "block_format", "but"), GROUPS)
def test_others_read_what_our_writer_evolved(
    names: list[str], block_format: str, but: dict[str, str], path: Path, readers: Readers
) -> None:
    """Old rows in a base file and in a log file that remains, new rows in a log; then compacted, step by step."""
    spark = readers.spark
    first = before(names, ["old1", "old2", "new1"], 0)
    table = HudiTable.create(
        str(path),
        first.schema,
        record_key=["id"],
        ordering_field="ts",
        partition_fields=["p"],
        buckets=1,
        log_block_format=block_format,
        event_time_unit="ms",
    )
    table.upsert(spark, frame(spark, first))
    table.upsert(spark, frame(spark, before(names, ["old3"], 20)))
    compacted(table, spark, 10)
    table.upsert(spark, frame(spark, after(names, ["new1", "new2"], 40)))
    ours_is_right(table, readers, names)
    of_others(table, readers, but)
    compacted(table, spark, 30)
    ours_is_right(table, readers, names)
    of_others(table, readers)
    compacted(table, spark, 50)
    ours_is_right(table, readers, names)
    of_others(table, readers)


WRITERS = [
    pytest.param("0.15.0", "avro", NUMBERS, {}, id="0.15.0-numbers"),
    pytest.param("0.15.0", "avro", ADDED, {}, id="0.15.0-added", marks=SLOW),
    pytest.param("0.15.0", "avro", NESTED, {HUDI_RS: "child-count"}, id="0.15.0-nested", marks=SLOW),
    pytest.param("1.2.0", "avro", NUMBERS, {}, id="1.2.0-numbers", marks=SLOW),
    pytest.param("1.2.0", "parquet", NUMBERS, {OLD: "incompatible types"}, id="1.2.0-numbers-parquet", marks=SLOW),
    pytest.param("1.2.0", "parquet", ADDED, {}, id="1.2.0-added-parquet", marks=SLOW),
    pytest.param("1.2.0", "parquet", NESTED, {HUDI_RS: "child-count"}, id="1.2.0-nested-parquet", marks=SLOW),
    pytest.param("1.2.0", "parquet", [FLOAT], {OLD: "incompatible types"}, id="1.2.0-float-parquet", marks=SLOW),
]


@pytest.mark.parametrize(("release", "block_format", "names", "but"), WRITERS)
def test_we_read_and_compact_what_hudi_evolved(
    release: str, block_format: str, names: list[str], but: dict[str, str], path: Path, readers: Readers
) -> None:
    hudi = readers.hudi[release]
    options = hudi_options(name="t", buckets=1, **{"hoodie.logfile.data.block.format": block_format})
    hudi.write(path, before(names, ["old1", "old2", "new1"], 0), options)
    hudi.write(path, before(names, ["old2", "old3"], 20), options)
    hudi.write(path, after(names, ["new1", "new2"], 40), options)
    table = HudiTable.open(str(path), settings=SETTINGS)
    ours_is_right(table, readers, names)
    of_others(table, readers, but)
    result = compacted(table, readers.spark, 30)
    assert result.logs_remaining > 0, "nothing was carried over, so this tests too little"
    ours_is_right(table, readers, names)
    of_others(table, readers)
    hudi.write(path, after(names, ["new3"], 60), options)
    ours_is_right(table, readers, names)
    compacted(table, readers.spark, 50)
    of_others(table, readers)


MORE_OF_HUDIS = {
    # What Hudi's writers change, and ours refuses: (before, old value, after, new value, what the old one becomes)
    "integers as text": (pa.int64(), -7, pa.string(), "x", "-7"),
    "bytes as text": (pa.string(), "ab", pa.binary(), b"xy", "ab"),
}


@SLOW
@pytest.mark.parametrize(("kind", "old", "wider", "new", "seen"), MORE_OF_HUDIS.values(), ids=MORE_OF_HUDIS)
def test_changes_that_only_hudi_makes_are_read(
    kind: pa.DataType, old: Any, wider: pa.DataType, new: Any, seen: Any, path: Path, readers: Readers
) -> None:
    hudi = readers.hudi["1.2.0"]
    options = hudi_options(name="t", buckets=1)
    hudi.write(path, rows({"c": (kind, old)}, ["a", "b"], 0), options)
    hudi.write(path, rows({"c": (kind, old)}, ["b"], 20), options)
    hudi.write(path, rows({"c": (wider, new)}, ["c"], 40), options)
    table = HudiTable.open(str(path), settings=SETTINGS)
    found = {one["id"]: one["c"] for one in table.snapshot(readers.spark).toArrow().to_pylist()}
    assert found == {"a": seen, "b": seen, "c": new if isinstance(new, str) else new.decode()}
    of_others(table, readers)
    compacted(table, readers.spark, 30)
    of_others(table, readers)


@SLOW
@pytest.mark.parametrize("block_format", ["avro", pytest.param("parquet", marks=SLOW)])
def test_wider_decimals_of_1_2_are_read(block_format: str, path: Path, readers: Readers) -> None:
    """0.15.0 reads them once no log block of the narrower type is left."""
    hudi = readers.hudi["1.2.0"]
    options = hudi_options(name="t", buckets=1, **{"hoodie.logfile.data.block.format": block_format})
    narrow, wide = pa.decimal128(10, 2), pa.decimal128(20, 2)
    values = [pa.array([text]).cast(kind)[0].as_py() for text, kind in (("1.25", narrow), ("123456789012.25", wide))]
    hudi.write(path, rows({"c": (narrow, values[0])}, ["a", "b"], 0), options)
    hudi.write(path, rows({"c": (narrow, values[0])}, ["b"], 20), options)
    hudi.write(path, rows({"c": (wide, values[1])}, ["c"], 40), options)
    table = HudiTable.open(str(path), settings=SETTINGS)
    of_others(table, readers, {OLD: "AvroTypeException|ArrayIndexOutOfBounds"})
    compacted(table, readers.spark, 30)
    of_others(table, readers)


@SLOW
def test_a_column_that_hudi_dropped(path: Path, readers: Readers) -> None:
    """Only with hoodie.datasource.write.schema.allow.auto.evolution.column.drop; by default Hudi refuses such rows."""
    hudi = readers.hudi["0.15.0"]
    options = hudi_options(name="t", buckets=1)
    both = rows({"c": (pa.string(), "x"), "last": (pa.int32(), 1)}, ["a", "b"], 0)
    hudi.write(path, both, options)
    hudi.write(path, rows({"c": (pa.string(), "y"), "last": (pa.int32(), 2)}, ["b"], 20), options)
    fewer = rows({"last": (pa.int32(), 3)}, ["c"], 40)
    with pytest.raises(HudiError):
        hudi.write(path, fewer, options)
    hudi.write(path, fewer, {**options, "hoodie.datasource.write.schema.allow.auto.evolution.column.drop": "true"})
    table = HudiTable.open(str(path), settings=SETTINGS)
    assert table.schema().names[5:] == ["id", "ts", "p", "last"]
    of_others(table, readers)
    compacted(table, readers.spark, 30)
    of_others(table, readers)


@pytest.mark.parametrize("block_format", ["avro", pytest.param("parquet", marks=SLOW)])
def test_every_type_with_values_at_its_edges(block_format: str, path: Path, readers: Readers) -> None:
    """As log blocks, in base files and in carried-over logs. Local timestamps are 1.2.0's alone."""
    spark = readers.spark
    kinds = {name.replace(" ", "_"): made for name, made in TYPES.items() if name != "local timestamp"}
    fields = [pa.field(name, kind) for name, (kind, _) in kinds.items()]
    schema = pa.schema([*KEYS, *fields])
    table = HudiTable.create(
        str(path),
        schema,
        record_key=["id"],
        ordering_field="ts",
        buckets=1,
        log_block_format=block_format,
        event_time_unit="ms",
    )
    for minute in (0, 20):
        values = zip_longest(*(made for _, made in kinds.values()))
        made = [
            {"id": f"k{minute}.{n}", "ts": START + minute * MINUTE, "p": "a", **dict(zip(kinds, line, strict=True))}
            for n, line in enumerate(values)
        ]
        table.upsert(spark, spark.createDataFrame(pa.Table.from_pylist(made, schema)))
    of_others(table, readers)
    result = compacted(table, spark, 10)
    assert result.logs_remaining > 0
    of_others(table, readers)
    compacted(table, spark, 30)
    of_others(table, readers)


@SLOW
def test_local_timestamps_are_read_by_1_2(path: Path, readers: Readers) -> None:
    spark = readers.spark
    kind, values = TYPES["local timestamp"]
    schema = pa.schema([*KEYS, pa.field("c", kind)])
    table = HudiTable.create(str(path), schema, record_key=["id"], ordering_field="ts", buckets=1, event_time_unit="ms")
    for minute in (0, 20):
        made = [
            {"id": f"k{minute}.{n}", "ts": START + minute * MINUTE, "p": "a", "c": value}
            for n, value in enumerate(values)
        ]
        table.upsert(spark, spark.createDataFrame(pa.Table.from_pylist(made, schema), spark_schema(schema)))
    compacted(table, spark, 10)
    ours = readers.ours(table, "snapshot")
    assert not differences(ours, by_key(readers.hudi["1.2.0"].read(path)))


# Hudi takes a partition column's value from the folder's name in some of its views, and undoes % escapes there.
ODD_VALUES = [
    *("a b", "50%", "[x]", "{y}", "a*b", "a?b", "é", "e\u0301", "😀", "שלום", "#", "a=b", ".h", "_u", "a\\b", "'q'"),
    *('"dq"', "a+b", "a&b", "a,b", "~", " lead", "trail ", "x" * 200, "-1", "true", "2020-01-01", "$x", "`", "|", ";"),
]


@SLOW
@pytest.mark.parametrize("hive_style", [True, pytest.param(False, marks=SLOW)])
def test_partition_values_with_odd_characters(hive_style: bool, path: Path, readers: Readers) -> None:
    spark = readers.spark
    table = Shape(hive_style=hive_style, buckets=1).create(path)
    template = table.schema().empty_table().drop_columns(table.schema().names[:5]).schema
    for mark, minute in enumerate((0, 20)):
        values = [value for value in ODD_VALUES if hive_style or value != "a=b"]
        made = [odd_row(n, value, minute, mark) for n, value in enumerate(values)]
        table.upsert(spark, spark.createDataFrame(pa.Table.from_pylist(made, template)))
        if not mark:
            compacted(table, spark, 10)
    of_others(table, readers)


def odd_row(number: int, value: str, minute: int, mark: int) -> dict[str, Any]:
    return {**row(number, minute, mark), "p": value}
