"""What is published, as values: thrift's bytes, Spark's types, and when the published state is no longer true."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.transport.TTransport import TMemoryBuffer

from hudi_assets.catalog import thrift_values as wire
from hudi_assets.catalog.publication import properties_of, replaced, what_differs
from hudi_assets.catalog.queries import read_optimized_query
from hudi_assets.catalog.spark_types import NO_HIVE_COLUMNS, hive_columns, schema_json, sql_type
from hudi_assets.engine import (
    Freshness,
    PartitionFreshness,
    Publication,
    PublishedPartitions,
    UnsupportedTable,
)

_SCHEMA = pa.schema(
    [
        ("yes", pa.bool_()),
        ("i", pa.int32()),
        ("l", pa.int64()),
        ("f", pa.float32()),
        ("d", pa.float64()),
        ("s", pa.string()),
        ("b", pa.binary()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("price", pa.decimal128(20, 4)),
        ("many", pa.list_(pa.struct([("x", pa.int64()), ("y", pa.list_(pa.string()))]))),
        ("named", pa.map_(pa.string(), pa.struct([("z", pa.float64())]))),
    ]
)


def test_a_struct_of_any_release_is_written_back_byte_for_byte() -> None:
    """Fields that nobody here knows stay, in their order."""
    fields = {
        1: wire.text("t_ro"),
        99: wire.structure({7: wire.texts({"a": "b"}), 3: wire.Value(4, 1.5)}),
        4: wire.whole(7),
        50: wire.Value(10, 2**40),
        51: wire.Value(14, wire.Items(8, (1, 2))),
        52: wire.flag(True),
        53: wire.Value(6, -3),
        54: wire.Value(3, 9),
        55: wire.structures([{1: wire.text("c")}]),
        56: wire.nothing_of(11),
    }
    written = TMemoryBuffer()
    wire._write_struct(TBinaryProtocol(written), wire.Struct(fields))
    read = wire._read_struct(TBinaryProtocol(TMemoryBuffer(written.getvalue())))
    assert read == wire.Struct(fields)
    again = TMemoryBuffer()
    wire._write_struct(TBinaryProtocol(again), read)
    assert again.getvalue() == written.getvalue()


def test_types_are_written_as_pyspark_writes_them() -> None:
    from pyspark.sql.pandas.types import from_arrow_schema

    schema = _SCHEMA.append(pa.field("local", pa.timestamp("us")))
    theirs = from_arrow_schema(schema)
    assert json.loads(schema_json(schema)) == json.loads(theirs.json())
    assert [sql_type(field.type) for field in schema] == [field.dataType.simpleString() for field in theirs]


def test_what_hive_has_no_type_for_has_no_columns_in_hive() -> None:
    assert [name for name, _, _ in hive_columns(_SCHEMA)] == _SCHEMA.names
    local = pa.list_(pa.struct([("a", pa.timestamp("us"))]))
    assert hive_columns(pa.schema([("x", local)])) == NO_HIVE_COLUMNS
    assert hive_columns(pa.schema([("x", pa.struct([("a b", pa.int64())]))])) == NO_HIVE_COLUMNS
    with pytest.raises(UnsupportedTable, match="time64"):
        schema_json(pa.schema([("x", pa.time64("us"))]))


def test_an_empty_view_has_fields_of_any_name() -> None:
    query = read_optimized_query(pa.schema([("x", pa.struct([("a b", pa.int64())]))]), [])
    assert query == "SELECT CAST(NULL AS struct<`a b`:bigint>) AS `x` WHERE false"


def test_only_our_own_parameters_are_replaced() -> None:
    theirs = {"EXTERNAL": "TRUE", "last_commit_time_sync": "7"}
    ours = {"hudi_assets.reason": "gone", "hudi_assets.freshness_ms": "1"}
    now = {"hudi_assets.freshness_ms": "2"}
    assert replaced(theirs | ours, now) == theirs | now


class _Look:
    def __init__(self, freshness: Freshness, view_digest: str) -> None:
        self.freshness = freshness
        self.view_digest = view_digest
        self.partitions: PublishedPartitions | None = None


def _promise(freshness: int | None, threshold: int | None = 5, instant: str = "20240301000000000") -> Freshness:
    return Freshness(freshness, None, None, threshold, instant, None, 9)


@pytest.mark.parametrize(
    ("seen", "digest", "files", "why"),
    [
        (_promise(1000), "d", True, None),
        (_promise(2000), "d", True, "the freshness is 1970-01-01T00:00:02Z, and 1970-01-01T00:00:01Z is published"),
        (_promise(None), "d", True, "the freshness is unknown, and 1970-01-01T00:00:01Z is published"),
        (_promise(1000), "e", True, "the read-optimized view names other files or columns than the table has"),
        (_promise(1000), "e", False, None),
        (_promise(1000, threshold=6), "d", True, "the published threshold is not the table's"),
        (_promise(1000, instant="20240301000000001"), "d", True, "the published instant is not the table's"),
    ],
)
def test_when_the_published_state_is_no_longer_true(seen: Freshness, digest: str, files: bool, why: str | None) -> None:
    published = properties_of(Publication("/t", _promise(1000), 7, _SCHEMA, (), "d"))
    assert what_differs(published, _Look(seen, digest), files=files) == why


def _partitions(watermark: int | None, *told: tuple[str, int | None, bool]) -> PublishedPartitions:
    rows = tuple(PartitionFreshness(name, freshness, None, behind, 1, 7) for name, freshness, behind in told)
    return PublishedPartitions(rows, watermark, "20240301000000000", 9)


_HOT = ("hot", 1000, True)


@pytest.mark.parametrize(
    ("told", "why"),
    [
        (_partitions(5000, _HOT, ("cold", 5000, False)), None),
        (_partitions(5009, _HOT, ("cold", 5009, False)), None),  # less than a step
        (
            _partitions(5010, _HOT, ("cold", 5010, False)),
            "the freshness of partitions in which nothing waits has moved",
        ),
        (
            _partitions(4999, _HOT, ("cold", 4999, False)),
            "the freshness of partitions in which nothing waits has moved",
        ),
        (_partitions(None, _HOT, ("cold", 5000, False)), "the published watermark is not the table's"),
        (_partitions(5000, _HOT, ("cold", 3000, True)), "the published freshness of a partition is not the table's"),
        (_partitions(5000, _HOT), "the published freshness of a partition is not the table's"),
        (None, "the freshness of each partition is published, and not wanted"),
    ],
)
def test_a_cold_partition_moves_on_where_a_hot_one_holds_the_table_back(
    told: PublishedPartitions | None, why: str | None
) -> None:
    before = _partitions(5000, _HOT, ("cold", 5000, False))
    published = properties_of(Publication("/t", _promise(1000), 7, _SCHEMA, (), "d", before), "t_freshness")
    seen = _Look(_promise(1000), "d")
    seen.partitions = told
    assert what_differs(published, seen, files=True, step_ms=10) == why


def test_partitions_that_nobody_published_are() -> None:
    published = properties_of(Publication("/t", _promise(1000), 7, _SCHEMA, (), "d"), "t_freshness")
    seen = _Look(_promise(1000), "d")
    seen.partitions = _partitions(5000, _HOT)
    assert what_differs(published, seen, files=True) == "the freshness of each partition is not published, but wanted"
