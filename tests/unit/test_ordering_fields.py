"""Tables of versions 8 and 9 with several ordering fields: what is planned, compacted, written and refused."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_assets.engine import HudiTable, InvalidInput, Plan, UnsupportedTable
from hudi_assets.engine.event_time.table_times import TableTimes, scan
from hudi_assets.engine.format.log_file.delete_codec import DeleteRecord, OrderingType
from hudi_assets.engine.merging.delete_records import as_deletes
from hudi_assets.engine.merging.merge import barriers_of
from hudi_assets.engine.model.log_summary import LogSummary, from_json, to_json
from hudi_assets.engine.table.log_files.reader import _named
from tests.tables.local_session import Frame, LocalSession

SCHEMA = pa.schema({"id": pa.string(), "ts": pa.int64(), "seq": pa.int64(), "word": pa.string(), "v": pa.string()})
SETTINGS = {"hudi_assets.data.latency": "1h", "hudi_assets.writers": "stopped"}
Said = tuple[str, int, int | None, str]


def opened(path: Path, **more: str) -> HudiTable:
    return HudiTable.open(str(path), settings={**SETTINGS, **more})


def rows(*said: Said) -> Frame:
    found = [{"id": key, "ts": ts, "seq": seq, "word": v, "v": v} for key, ts, seq, v in said]
    return Frame(pa.Table.from_pylist(found, SCHEMA))


def made(
    session: LocalSession, path: Path, *batches: list[Said], version: int = 9, fields: str = "ts,seq"
) -> HudiTable:
    """As Hudi would have written it: our writer writes while the table has one ordering field."""
    table = HudiTable.create(
        str(path), SCHEMA, record_key=["id"], ordering_field="ts", event_time_field="ts", buckets=1,
        table_version=version,
    )  # fmt: skip
    for batch in batches:
        table.upsert(session, rows(*batch))
    file = path / ".hoodie/hoodie.properties"
    kept = [line for line in file.read_text().splitlines() if not line.startswith("hoodie.table.ordering.fields=")]
    file.write_text("\n".join([*kept, f"hoodie.table.ordering.fields={fields}"]))
    return opened(path)


def shown(table: HudiTable, session: LocalSession) -> Mapping[str, str]:
    return {row["id"]: row["v"] for row in table.snapshot(session).toArrow().to_pylist()}


BATCHES: list[list[Said]] = [
    [("a", 10, 9, "first"), ("b", 10, 1, "first")],
    [("a", 10, 5, "second"), ("b", 10, 5, "second")],
    [("a", 20, 0, "third"), ("c", 20, 0, "third")],
]


@pytest.mark.parametrize("version", [8, 9])
def test_ties_are_decided_by_the_second_field_before_and_after_a_partial_compaction(
    version: int, session: LocalSession, tmp_path: Path
) -> None:
    table = made(session, tmp_path / "t", *BATCHES, version=version)
    expected = {"a": "third", "b": "second", "c": "third"}
    assert shown(table, session) == expected
    plan = table.plan_compaction(threshold=10)
    assert isinstance(plan, Plan)
    assert [len(op.log_files) for op in plan.operations] == [2]
    table.execute_compaction(session, plan.instant)
    compacted = {row["id"]: row["v"] for row in table.read_optimized(session).toArrow().to_pylist()}
    assert compacted == {"a": "first", "b": "second"}
    assert shown(table, session) == expected
    last = table.plan_compaction(threshold=20)
    assert isinstance(last, Plan)
    table.execute_compaction(session, last.instant)
    assert shown(table, session) == expected


def test_a_null_in_a_log_file_takes_the_whole_slice(session: LocalSession, tmp_path: Path) -> None:
    """Also where what the log files say was kept from a look before."""
    table = made(session, tmp_path / "t", *BATCHES[:2], [("a", 20, None, "third")])
    for _ in range(2):
        summaries = TableTimes(opened(tmp_path / "t").state()).summaries
        assert sorted(one.nulls for one in summaries.values()) == [False, False, True]
    plan = table.plan_compaction(threshold=10)
    assert isinstance(plan, Plan)
    assert [len(op.log_files) for op in plan.operations] == [3]
    table.execute_compaction(session, plan.instant)
    assert shown(table, session) == {"a": "third", "b": "second"}


def test_what_is_kept_of_other_fields_says_nothing_of_nulls(session: LocalSession, tmp_path: Path) -> None:
    table = made(session, tmp_path / "t", [("a", 10, None, "first")], [("a", 20, 1, "second")], fields="ts")
    state = table.state()
    assert not any(one.summary.nulls for one in scan(state, state.remaining_logs).values())
    file = tmp_path / "t/.hoodie/hoodie.properties"
    file.write_text(file.read_text().replace("ordering.fields=ts", "ordering.fields=ts,seq"))
    assert sorted(one.nulls for one in TableTimes(opened(tmp_path / "t").state()).summaries.values()) == [False, True]


def test_a_compaction_that_a_null_decides_is_refused_by_its_key(session: LocalSession, tmp_path: Path) -> None:
    table = made(session, tmp_path / "t", [("a", 10, None, "first"), ("b", 1, 1, "b")], [("a", 10, 1, "second")])
    with pytest.raises(UnsupportedTable, match="Of the key 'a' a record has a null"):
        shown(table, session)
    plan = table.plan_compaction(threshold=10)
    assert isinstance(plan, Plan)
    with pytest.raises(UnsupportedTable, match="Of the key 'a' a record has a null"):
        table.execute_compaction(session, plan.instant)
    table.unschedule(plan.instant)
    table.delete(session, Frame(pa.table({"id": ["a"]})))
    assert shown(table, session) == {"b": "b"}


def test_text_of_parquet_blocks_is_not_merged(session: LocalSession, tmp_path: Path) -> None:
    table = made(session, tmp_path / "t", *BATCHES, fields="ts,word")
    words = r"Text of Parquet log blocks \(word, one of several ordering fields\)"
    with pytest.raises(UnsupportedTable, match=words):
        shown(table, session)
    with pytest.raises(UnsupportedTable, match=words):
        table.plan_compaction(threshold=10)
    assert table.stats().min_event_time == 10


def test_rows_are_not_written_and_deletes_are_in_commit_order(session: LocalSession, tmp_path: Path) -> None:
    table = made(session, tmp_path / "t", *BATCHES)
    for write in (table.upsert, table.bulk_insert):
        with pytest.raises(
            UnsupportedTable, match=r"several ordering fields \(ts, seq\): its rows are not written here"
        ):
            write(session, rows(("a", 30, 1, "ours")))
    for name in ("ts", "seq"):
        with pytest.raises(UnsupportedTable, match="A delete with values of several ordering fields"):
            table.delete(session, Frame(pa.table({"id": ["a"], name: [30]})))
    table.delete(session, Frame(pa.table({"id": ["a"]})))
    assert shown(table, session) == {"b": "second", "c": "third"}


def test_a_new_table_takes_one_ordering_field(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="A new table takes one ordering field"):
        HudiTable.create(
            str(tmp_path / "t"), SCHEMA, record_key=["id"], ordering_field="ts,seq", event_time_field="ts", buckets=1
        )
    assert not (tmp_path / "t").exists()


TYPE = pa.struct([("ts", pa.int64()), ("day", pa.date32())])


@pytest.mark.parametrize(
    ("value", "kind", "words"),
    [
        (5, OrderingType.LONG, "has not the values of all 2 ordering fields"),
        (((5, OrderingType.LONG),), OrderingType.ARRAY, "has not the values of all 2 ordering fields"),
        (
            ((5, OrderingType.INT), (0, OrderingType.INT)),
            OrderingType.ARRAY,
            "has a int as value of the ordering field ts",
        ),
        # 1.2.0 fails to read a date of a delete block.
        (
            ((5, OrderingType.LONG), (9, OrderingType.LOCAL_DATE)),
            OrderingType.ARRAY,
            "ordering field day, which is date32",
        ),
    ],
)
def test_deletes_that_hudi_compares_with_no_row_are_refused(value: object, kind: OrderingType, words: str) -> None:
    with pytest.raises(UnsupportedTable, match=words):
        as_deletes([DeleteRecord("k", "", value, kind)], TYPE)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("type_", "value", "kind"),
    [
        (pa.decimal128(10, 2), Decimal("1.555"), OrderingType.DECIMAL),
        (pa.decimal128(10, 2), Decimal(10**11), OrderingType.DECIMAL),
        (pa.int32(), 1 << 40, OrderingType.LONG),
        (pa.int64(), "text", OrderingType.STRING),
        (pa.timestamp("us", "UTC"), "text", OrderingType.STRING),
        (pa.struct([("ts", pa.decimal128(10, 2))]), ((Decimal("1.555"), OrderingType.DECIMAL),), OrderingType.ARRAY),
    ],
)
def test_a_delete_whose_value_its_column_does_not_hold_is_refused_with_its_file(
    type_: pa.DataType, value: object, kind: OrderingType
) -> None:
    """And no look at the table ends by it: a scan takes what is refused for undated."""
    with pytest.raises(UnsupportedTable, match="does not hold") as refused, _named("t: .f_1.log.1_0-0-0"):
        as_deletes([DeleteRecord("k", "", value, kind)], type_)  # type: ignore[arg-type]
    assert refused.value.where == "t: .f_1.log.1_0-0-0"


def test_a_delete_of_nulls_alone_is_none_in_commit_order() -> None:
    nulls = ((0, OrderingType.INT), (0, OrderingType.INT))
    deletes = as_deletes([DeleteRecord("a", "", nulls, OrderingType.ARRAY), DeleteRecord("b", "")], TYPE)
    assert deletes.ordering.to_pylist() == [{"ts": None, "day": None}, None]
    assert barriers_of(deletes, ("ts", "day")).tolist() == [False, True]


@pytest.mark.parametrize("nulls", [False, True])
@pytest.mark.parametrize("partial", [False, True])
@pytest.mark.parametrize("not_merged", [None, "why"])
def test_what_is_kept_of_a_log_file_is_read_back(nulls: bool, partial: bool, not_merged: str | None) -> None:
    summary = LogSummary(1, 2, 3, not_merged=not_merged, partial=partial, nulls=nulls)
    assert from_json(to_json(summary)) == summary
