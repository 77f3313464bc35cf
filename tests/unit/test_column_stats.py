"""The metadata table's column_stats: keys as Hudi makes them, bounds from footers, entries that come and go."""

from __future__ import annotations

import io
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_assets.engine import HudiTable
from hudi_assets.engine.errors import InvalidInput, UnsupportedTable
from hudi_assets.engine.format.parquet_footer import ColumnStats, as_record, footer_stats
from hudi_assets.engine.model import Action, Plan, State
from hudi_assets.engine.table.metadata.index_keys import group_of, stats_key, xxh64
from hudi_assets.engine.table.metadata.own_timeline import OwnTimeline
from tests.crash.tables import SCHEMA, write
from tests.tables.local_session import Frame
from tests.tables.metadata import column_stats, in_metadata_table, on_disk, switch_on
from tests.tables.steps import compact, with_properties

META = ("_hoodie_commit_time", "_hoodie_partition_path", "_hoodie_record_key")


# Written by Hudi 1.2.0 and 0.15.0.
@pytest.mark.parametrize(
    ("column", "partition", "name", "key", "group"),
    [
        (
            "ts",
            "a",
            "f0cf7e2e-6352-4a11-9875-32848aa11d0e-0_0-179-760_20261121085229356.parquet",
            "oyTjviKHuhI=BFHqp2KLzrM=T4uYNpaQ0TAf807/dcM2ug==",
            0,
        ),
        (
            "_hoodie_record_key",
            "a",
            "f0cf7e2e-6352-4a11-9875-32848aa11d0e-0_0-179-760_20261121085229356.parquet",
            "uSJGdDiVr/k=BFHqp2KLzrM=T4uYNpaQ0TAf807/dcM2ug==",
            0,
        ),
        (
            "blob",
            "p=c",
            "32b0c113-a7d5-4361-959c-d82a91400e7c-0_2-38-40_20261121121343848.parquet",
            "0ukp48zU37U=5fQjqwoEKYY=yGvbZ+3/FTJotKrMbJwj2g==",
            1,
        ),
    ],
)
def test_a_key_is_hudis(column: str, partition: str, name: str, key: str, group: int) -> None:
    assert stats_key(column, partition, name) == key
    assert group_of(key, 2) == group


def test_xxh64() -> None:
    """The reference implementation's values."""
    assert xxh64(b"", 0) == 0xEF46DB3751D8E999
    assert xxh64(b"a", 0) == 0xD24EC4F1A98C6E5B
    assert xxh64(bytes(range(100)), 0) == 0x6AC1E58032166597


def footer(column: pa.Array, **options: Any) -> ColumnStats:
    out = io.BytesIO()
    pq.write_table(pa.table({"c": column}), out, **options)
    with pq.ParquetFile(io.BytesIO(out.getvalue())) as file:
        (found,) = footer_stats(file, lambda _: True)
    return found


def bounds(column: pa.Array, *, typed: bool = True, **options: Any) -> tuple[Any, Any]:
    record = as_record(footer(column, **options), "f", typed=typed)
    low, high = record["minValue"], record["maxValue"]
    assert (low is None) == (high is None)
    if low is None:
        return None, None
    assert low[0] == high[0]
    return low[1]["value"], high[1]["value"]


def test_bounds_of_several_row_groups() -> None:
    assert bounds(pa.array([3, None, 9, -4, 5], pa.int64()), row_group_size=1) == (-4, 9)
    assert bounds(pa.array(["b", "ä", None, "a"]), row_group_size=1) == ("a", "ä")
    many = footer(pa.array([1, None, 3, None]), row_group_size=2)
    assert (many.values, many.nulls) == (4, 2)


def test_a_column_of_dictionaries_is_one_of_its_values() -> None:
    assert bounds(pa.array(["b", None, "a", "b"]).dictionary_encode()) == ("a", "b")
    assert bounds(pa.array(["b", None, "a", "b"]).dictionary_encode(), write_statistics=False) == ("a", "b")


def test_a_column_of_nulls_has_no_bounds() -> None:
    assert bounds(pa.array([None, None], pa.string())) == (None, None)
    assert footer(pa.array([None, None], pa.string())).nulls == 2


def test_what_a_footer_leaves_out_is_read() -> None:
    long = "x" * 10_000
    assert bounds(pa.array([long + "b", None, long + "a"])) == (long + "a", long + "b")
    assert bounds(pa.array([7, None, 3]), write_statistics=False) == (3, 7)
    low, high = bounds(pa.array([math.nan], pa.float64()))
    # NaN is beyond every number in Spark: nothing may be skipped.
    assert low == -math.inf
    assert math.isnan(high)


@pytest.mark.parametrize("kind", [pa.decimal128(12, 3), pa.decimal128(38, 3), pa.decimal128(9, 2)])
@pytest.mark.parametrize("statistics", [True, False])
def test_decimals(kind: pa.DataType, statistics: bool) -> None:
    low, high = Decimal("-123.25").quantize(Decimal(1).scaleb(-kind.scale)), Decimal("7.5")
    column = pa.array([high, None, low], kind)
    typed = bounds(column, write_statistics=statistics)
    assert [int.from_bytes(value, "big", signed=True) for value in typed] == [
        int(value * 10**kind.scale) for value in (low, high)
    ]
    assert [Decimal(value) for value in bounds(column, typed=False, write_statistics=statistics)] == [low, high]


def test_bytes_of_decimals_are_as_short_as_javas() -> None:
    values = [Decimal(n) for n in (-129, 128)]
    assert bounds(pa.array(values, pa.decimal128(9, 0))) == (b"\xff\x7f", b"\x00\x80")
    values = [Decimal(n) for n in (-128, 127)]
    assert bounds(pa.array(values, pa.decimal128(9, 0))) == (b"\x80", b"\x7f")


def test_a_decimal_without_room_is_refused_by_name() -> None:
    column = pa.array([Decimal("1000000000000000")], pa.decimal128(30, 2))
    assert bounds(column)[0] == (10**17).to_bytes(8, "big")
    with pytest.raises(UnsupportedTable, match="column c"):
        bounds(column, typed=False)


def test_types_say_themselves() -> None:
    at = pa.array([1_700_000_000_000_001], pa.timestamp("us", tz="UTC"))
    record = as_record(footer(at), "f", typed=True)
    assert record["minValue"] == ("org.apache.hudi.avro.model.LongWrapper", {"value": 1_700_000_000_000_001})
    assert record["valueType"] == {"typeOrdinal": 16, "additionalInfo": None}
    day = pa.array([-3], pa.int32()).cast(pa.date32())
    assert as_record(footer(day), "f", typed=True)["minValue"][0].endswith(".IntWrapper")
    assert as_record(footer(day), "f", typed=False)["minValue"][0].endswith(".DateWrapper")
    price = as_record(footer(pa.array([Decimal("1.5")], pa.decimal128(12, 3))), "f", typed=True)
    assert price["valueType"] == {"typeOrdinal": 10, "additionalInfo": "12,3"}


def test_fields_of_structs() -> None:
    out = io.BytesIO()
    place = pa.array([{"x": 2, "tags": ["a"]}, None, {"x": 1, "tags": []}])
    pq.write_table(pa.table({"place": place}), out, write_statistics=False)
    with pq.ParquetFile(io.BytesIO(out.getvalue())) as file:
        found = footer_stats(file, lambda path: path in ("place.x", "place.tags.list.element"))
    assert [(one.column, one.smallest, one.greatest, one.nulls) for one in found] == [("place.x", 1, 2, 1)]


# ------------------------------------------------------------------------------------- a table's entries


def create(path: Path, version: int, *, indexed: tuple[str, ...] | None, **properties: str) -> HudiTable:
    table = HudiTable.create(
        str(path), SCHEMA, record_key=["id"], ordering_field="ts", clock="commit", data_latency="1s", buckets=2,
        table_version=version,
    )  # fmt: skip
    switch_on(table, "column_stats", indexed=indexed)
    return with_properties(table, {"hudi_assets.query.grace": "0s", **properties})


def own_timeline(table: HudiTable) -> OwnTimeline:
    state = table.state()
    return OwnTimeline.read(state.storage, state.layout)


def base_files(table: HudiTable) -> set[str]:
    return {name for files in on_disk(table).values() for name in files if name.endswith(".parquet")}


@pytest.mark.slow
@pytest.mark.parametrize(("version", "indexed"), [(6, None), (6, (*META, "ts")), (8, (*META, "v")), (9, (*META, "ts"))])
def test_every_base_file_has_its_entries(
    session: Any, tmp_path: Path, version: int, indexed: tuple[str, ...] | None
) -> None:
    """Also after the metadata table's own compaction; and what is cleaned has none any more."""
    few = {"hoodie.metadata.compact.max.delta.commits": "4", "hoodie.cleaner.commits.retained": "1"}
    table = create(tmp_path / "t", version, indexed=indexed, **few)
    every = indexed or (*META, "_hoodie_commit_seqno", "_hoodie_file_name", *SCHEMA.names)
    for turn in range(1, 6):
        write(table, session, 0, turn * 1_000)
        write(table, session, 0, turn * 1_000 + 500)
        compact(table, session, turn * 1_000 + 200)
        assert column_stats(table).keys() == {(name, column) for name in base_files(table) for column in every}
        table.clean(retained=1)
        assert column_stats(table).keys() == {(name, column) for name in base_files(table) for column in every}
        assert in_metadata_table(table) == on_disk(table)
    own = own_timeline(table)
    assert own.completed(Action.COMMIT), "its own compaction never ran"
    assert len(list((tmp_path / "t/.hoodie/metadata/column_stats").glob("*.hfile"))) >= 2
    newest = max(i.timestamp for i in table.state().timeline.completed(Action.COMMIT))
    ends = [v for (name, column), v in column_stats(table).items() if column == every[-1] and f"_{newest}." in name]
    assert len(ends) == 2
    for fields in ends:
        assert fields["minValue"]["value"] <= fields["maxValue"]["value"]
        assert (fields["valueCount"], fields["nullCount"], fields["isDeleted"]) == (fields["valueCount"], 0, False)
        assert (fields.get("valueType") is not None) == (version == 9)


def test_a_rolled_back_compaction_leaves_no_entry(session: Any, tmp_path: Path) -> None:
    table = create(tmp_path / "t", 9, indexed=META)
    write(table, session, 0, 1_000)
    write(table, session, 0, 5_000)
    compact(table, session, 2_000)
    (instant,) = [i.timestamp for i in table.state().timeline.completed(Action.COMMIT)]
    assert column_stats(table)
    table.rollback(instant)
    assert not column_stats(table)


PLACE = pa.struct([pa.field("height", pa.decimal128(20, 18))])
TIGHT = pa.schema([("id", pa.int64()), ("ts", pa.int64()), ("v", pa.decimal128(30, 2)), ("place", PLACE)])
SWITCH_OFF = {"hudi_assets.metadata.switch.off": "true"}


def tight_table(path: Path) -> HudiTable:
    """Of version 6, with statistics of every column: in two of them not every value has room."""
    table = HudiTable.create(str(path), TIGHT, record_key=["id"], ordering_field="ts", data_latency="1s", buckets=1)
    switch_on(table, "column_stats")
    return table


def one_row(value: Decimal, height: Decimal | None = None) -> Any:
    place = None if height is None else {"height": height}
    return Frame(pa.Table.from_pylist([{"id": 1, "ts": 1_000, "v": value, "place": place}], TIGHT))


def index_is_on(table: HudiTable, on: bool) -> None:
    properties = Path(table.path, ".hoodie/hoodie.properties")
    told = {True: "partitions=files,column_stats", False: "partitions=files"}
    properties.write_text(properties.read_text().replace(told[not on], told[on]))


WITHOUT_ROOM = [(Decimal(10**15), None), (Decimal(-(10**15)), None), (Decimal(0), Decimal("0.5"))]


@pytest.mark.parametrize(("value", "height"), WITHOUT_ROOM)
def test_rows_without_room_are_refused_before_anything_is_written(
    session: Any, tmp_path: Path, value: Decimal, height: Decimal | None
) -> None:
    """So does 0.15.0 with its own writes."""
    table = tight_table(tmp_path / "t")
    listed = {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
    named = "place.height" if height else "v"
    for write_ in (table.upsert, table.bulk_insert):
        with pytest.raises(InvalidInput, match=rf"1 of 1 rows have no {named} that the metadata table's column stat"):
            write_(session, one_row(value, height))
    assert {file: file.read_bytes() for file in tmp_path.rglob("*.*") if file.is_file() and file in listed} == listed
    assert not table.state().timeline.instants


def test_rows_with_room_in_the_same_columns_are_written(session: Any, tmp_path: Path) -> None:
    table = tight_table(tmp_path / "t")
    largest = Decimal(10**15 - 1)
    table.upsert(session, one_row(largest))
    compact(table, session, 2_000)
    ((_, fields),) = [item for item in column_stats(table).items() if item[0][1] == "v"]
    assert fields["maxValue"]["value"] == largest


def test_a_compaction_of_values_without_room_is_not_planned(session: Any, tmp_path: Path) -> None:
    """They came while there were no statistics: Hudi has to do without the column, or the index."""
    table = tight_table(tmp_path / "t")
    index_is_on(table, False)
    table.upsert(session, one_row(Decimal(10**20)))
    index_is_on(table, True)
    shown = table.plan_compaction(threshold=2_000, dry_run=True)
    assert isinstance(shown, Plan)
    for refused in (lambda: table.refuse_execution(shown), lambda: table.plan_compaction(threshold=2_000)):
        with pytest.raises(UnsupportedTable, match="no room for values of column v"):
            refused()
    assert not table.state().timeline.pending_compactions
    willing = HudiTable.open(table.path, settings=SWITCH_OFF)
    compact(willing, session, 2_000)
    assert not Path(table.path, ".hoodie/metadata/column_stats").exists()
    assert in_metadata_table(table) == on_disk(table)


def test_a_plan_of_before_the_index_is_not_begun(session: Any, tmp_path: Path) -> None:
    table = tight_table(tmp_path / "t")
    index_is_on(table, False)
    table.upsert(session, one_row(Decimal(10**20)))
    plan = table.plan_compaction(threshold=2_000)
    assert isinstance(plan, Plan)
    index_is_on(table, True)
    listed = in_metadata_table(table)
    with pytest.raises(UnsupportedTable, match="column v"):
        table.execute_compaction(session, plan.instant)
    assert [i.state for i in table.state().timeline.pending_compactions] == [State.REQUESTED]
    assert in_metadata_table(table) == listed
    assert not own_timeline(table).of(plan.instant, Action.DELTA_COMMIT)
    index_is_on(table, False)
    table.execute_compaction(session, plan.instant)
    assert in_metadata_table(table) == on_disk(table)
