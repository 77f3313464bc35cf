"""Every type, and every change of a table's schema, through log blocks, partial compaction and all views.

Without Spark; `tests/spark/test_schema.py` has the part that is Spark's own, `tests/interop/test_schema.py` the
readers of Apache Hudi.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_assets.engine import HudiTable, InvalidInput
from hudi_assets.engine.errors import UnsupportedTable
from hudi_assets.engine.spark.session import nullable
from tests.tables.local_session import LocalSession
from tests.tables.schemas import EVOLUTIONS, TYPES, Evolution
from tests.tables.steps import at, compact

FORMATS = ("parquet", "avro")


def table_schema(kind: pa.DataType | None) -> pa.Schema:
    column = [] if kind is None else [pa.field("c", kind)]
    return pa.schema([pa.field("k", pa.string(), False), pa.field("ts", pa.int64(), False), *column])


def make(path: Path, schema: pa.Schema | str, block_format: str = "parquet", **options: Any) -> HudiTable:
    arguments = {"record_key": ["k"], "ordering_field": "ts", "buckets": 1, "clock": "commit", **options}
    return HudiTable.create(str(path), schema, log_block_format=block_format, **arguments)


def put(
    table: HudiTable, session: LocalSession, values: Mapping[str, Any], ts: int, kind: pa.DataType | None, **more: Any
) -> None:
    """Upsert rows: key → value of column c."""
    schema = table_schema(kind)
    rows = [{"k": k, "ts": ts, **({} if kind is None else {"c": v}), **more} for k, v in values.items()]
    table.upsert(session, session.rows(rows, schema), clock_time=at(ts + 1))


def column(rows: pa.Table, name: str = "c") -> dict[str, str]:
    """Key → the value as text: NaN equals NaN, −0.0 is not 0.0."""
    return {row["k"]: repr(row[name]) for row in rows.select(["k", name]).to_pylist()}


def texts(values: Mapping[str, Any], kind: pa.DataType) -> dict[str, str]:
    return dict(zip(values, map(repr, pa.array(list(values.values()), kind).to_pylist()), strict=True))


def numbered(prefix: str, values: Iterable[Any]) -> dict[str, Any]:
    return {f"{prefix}{number}": value for number, value in enumerate(values)}


@pytest.mark.slow
@pytest.mark.parametrize("block_format", FORMATS)
@pytest.mark.parametrize(("kind", "values"), TYPES.values(), ids=TYPES)
def test_values_are_the_same_in_logs_base_files_and_carried_over_logs(
    kind: pa.DataType, values: Sequence[Any], block_format: str, session: LocalSession, tmp_path: Path
) -> None:
    table = make(tmp_path / "t", table_schema(kind), block_format)
    early, late = numbered("a", values), numbered("b", values)
    put(table, session, early, 10, kind)
    put(table, session, {**late, "a0": values[-1]}, 100, kind)
    expected = {**texts(early, kind), **texts(late, kind), "a0": texts({"": values[-1]}, kind)[""]}
    assert column(table.snapshot(session).table) == expected
    compact(table, session, 50)
    assert len(table.state().remaining_logs) == 1
    assert column(table.snapshot(session).table) == expected
    assert column(table.read_optimized(session).table) == texts(early, kind)
    compact(table, session, 100)
    assert column(table.read_optimized(session).table) == expected
    assert table.read_optimized(session).table.schema.field("c") == nullable(table_schema(kind)).field("c")


@pytest.mark.slow
@pytest.mark.parametrize("block_format", FORMATS)
@pytest.mark.parametrize("change", EVOLUTIONS.values(), ids=EVOLUTIONS)
def test_rows_from_before_and_after_a_change_are_read_together(
    change: Evolution, block_format: str, session: LocalSession, tmp_path: Path
) -> None:
    """Old rows in a base file and in a log file that remains, new rows in a log: then all compacted."""
    table = make(tmp_path / "t", table_schema(change.before), block_format)
    put(table, session, {"base": change.old, "both": change.old}, 10, change.before)
    put(table, session, {"log": change.old}, 100, change.before)
    compact(table, session, 50)
    before_change = table.state().timeline.last_write
    put(table, session, {"new": change.new, "both": change.new}, 200, change.after)
    kind = change.after if change.before is None or change.evolves else change.before
    old, new = texts({"": change.seen}, kind)[""], texts({"": change.new}, kind)[""]
    expected = {"base": old, "both": new, "log": old, "new": new}
    assert table.schema().field("c").type == kind
    assert column(table.snapshot(session).table) == expected
    assert column(table.read_optimized(session).table) == {"base": old, "both": old}
    as_it_was = table.time_travel(session, str(before_change)).table
    assert column(as_it_was) == {"base": old, "both": old, "log": old}
    compact(table, session, 150)
    assert column(table.snapshot(session).table) == expected
    compact(table, session, 200)
    assert column(table.read_optimized(session).table) == expected


@pytest.mark.parametrize("block_format", FORMATS)
def test_many_changes_one_after_the_other(block_format: str, session: LocalSession, tmp_path: Path) -> None:
    table = make(tmp_path / "t", table_schema(pa.int32()), block_format)
    put(table, session, {"a": 1}, 10, pa.int32())
    kinds = [pa.int64(), pa.float32(), pa.int32(), pa.float64(), pa.int64()]
    for number, kind in enumerate(kinds):
        put(table, session, {f"b{number}": 2}, 20 + number, kind)
        more = pa.table({"k": ["n"], "ts": [100 + number], f"added{number}": pa.array([number], pa.int16())})
        table.upsert(session, session.frame(more), clock_time=at(200 + number))
    assert table.schema().names[5:] == ["k", "ts", "c", *(f"added{n}" for n in range(5))]
    assert column(table.snapshot(session).table) == {
        "a": "1.0",
        **{f"b{n}": "2.0" for n in range(5)},
        "n": "None",
    }
    assert column(table.snapshot(session).table, "added4")["n"] == "4"
    assert column(table.snapshot(session).table, "added3") == dict.fromkeys(
        ["a", *(f"b{n}" for n in range(5)), "n"], "None"
    )
    compact(table, session, 22)
    compact(table, session, 150)
    assert column(table.read_optimized(session).table)["a"] == "1.0"


def test_columns_in_another_order_stay_in_the_tables(session: LocalSession, tmp_path: Path) -> None:
    table = make(tmp_path / "t", table_schema(pa.int32()))
    rows = pa.table({"c": pa.array([1], pa.int32()), "new": ["x"], "ts": [5], "k": ["a"]})
    table.upsert(session, session.frame(rows), clock_time=at(6))
    assert table.schema().names[5:] == ["k", "ts", "c", "new"]
    assert table.snapshot(session).table.drop_columns(table.schema().names[:5]).to_pylist() == [
        {"k": "a", "ts": 5, "c": 1, "new": "x"}
    ]


def test_a_column_that_the_rows_lack_is_null_in_them(session: LocalSession, tmp_path: Path) -> None:
    table = make(tmp_path / "t", table_schema(pa.int32()))
    put(table, session, {"a": 1, "b": 2}, 10, pa.int32())
    put(table, session, {"a": None}, 20, None)
    assert column(table.snapshot(session).table) == {"a": "None", "b": "2"}


def files_of(path: Path) -> list[str]:
    return sorted(str(file) for file in path.rglob("*") if ".aux" not in file.parts)


REFUSED = {
    "another type": (pa.table({"k": ["a"], "ts": [9], "c": ["x"]}), "Column c is int32 in the table and string in"),
    "a wider ordering field": (
        pa.table({"k": ["a"], "ts": pa.array([9], pa.float64()), "c": pa.array([1], pa.int32())}),
        "Column ts is int64 in the table and double in the rows",
    ),
    "no required column": (pa.table({"k": ["a"], "ts": [9]}), "Column must is missing"),
    "null in a required column": (
        pa.table({"k": ["a", "b"], "ts": [9, 9], "must": pa.array([None, "x"])}),
        "1 of 2 rows have no must",
    ),
    "a name in other letters": (pa.table({"k": ["a"], "ts": [9], "must": ["x"], "C": [1]}), "one name to Spark"),
    "a null column": (pa.table({"k": ["a"], "ts": [9], "must": ["x"], "n": pa.nulls(1)}), "n has no type"),
}


@pytest.mark.parametrize(("rows", "words"), REFUSED.values(), ids=REFUSED)
def test_rows_that_do_not_fit_are_refused_before_anything_is_written(
    rows: pa.Table, words: str, session: LocalSession, tmp_path: Path
) -> None:
    schema = table_schema(pa.int32()).append(pa.field("must", pa.string(), False))
    table = make(tmp_path / "t", schema)
    good = pa.table({"k": ["a"], "ts": [1], "c": pa.array([1], pa.int32()), "must": ["x"]})
    table.upsert(session, session.frame(good), clock_time=at(2))
    if words.startswith("Column c"):
        rows = rows.append_column("must", pa.array(["x"]))
    before = files_of(tmp_path)
    with pytest.raises(InvalidInput, match=words):
        table.upsert(session, session.frame(rows), clock_time=at(10))
    assert files_of(tmp_path) == before


MILLIS = {"type": "long", "logicalType": "timestamp-millis"}
STRICT = {"type": "record", "name": "s", "fields": [{"name": "x", "type": "int"}]}
MOMENT = datetime(2024, 2, 29, 1, 2, 3, 456000, tzinfo=UTC)
BY_VALUE = {
    "digits beyond milliseconds": (MILLIS, pa.timestamp("us", "UTC"), MOMENT, MOMENT.replace(microsecond=456001)),
    "bytes that are no text": ("string", pa.binary(), b"text", b"\xff"),
    "null in a required field": (STRICT, pa.struct([("x", pa.int32())]), {"x": 1}, {"x": None}),
}


@pytest.mark.parametrize(("avro", "kind", "good", "bad"), BY_VALUE.values(), ids=BY_VALUE)
def test_values_that_do_not_fit_are_refused_before_anything_is_written(
    avro: object, kind: pa.DataType, good: Any, bad: Any, session: LocalSession, tmp_path: Path
) -> None:
    columns = [("k", "string"), ("ts", "long"), ("c", ["null", avro])]
    fields = [{"name": name, "type": type_} for name, type_ in columns]
    table = make(tmp_path / "t", json.dumps({"type": "record", "name": "t_record", "fields": fields}))
    put(table, session, {"a": good, "b": None}, 10, kind)
    seen = column(table.snapshot(session).table)
    before = files_of(tmp_path)
    with pytest.raises(InvalidInput, match=r"Column c(\.x)? (does not fit|has 1 nulls|has nulls)"):
        put(table, session, {"a": good, "c": bad}, 20, kind)
    assert files_of(tmp_path) == before
    assert column(table.snapshot(session).table) == seen
    assert seen["b"] == "None"


def test_columns_told_apart_by_ids_are_refused(session: LocalSession, tmp_path: Path) -> None:
    """Hudi's ALTER TABLE with schema on read renames columns: older files have them under another name."""
    table = make(tmp_path / "t", table_schema(pa.int32()))
    put(table, session, {"a": 1}, 10, pa.int32())
    (commit,) = (tmp_path / "t/.hoodie").glob("*.deltacommit")
    plain = commit.read_text()
    commit.write_text(plain.replace('"extraMetadata":{', '"extraMetadata":{"latest_schema":"{}",'))
    with pytest.raises(UnsupportedTable, match="schema on read"):
        HudiTable.open(table.path).snapshot(session)
    commit.write_text(plain)
    (tmp_path / "t/.hoodie/.schema").mkdir()
    (tmp_path / "t/.hoodie/.schema/20240101000000000.schemacommit").write_bytes(b"{}")
    with pytest.raises(UnsupportedTable, match="schema on read"):
        HudiTable.open(table.path)


def test_a_deletes_ordering_value_of_a_narrower_type_is_the_tables(session: LocalSession, tmp_path: Path) -> None:
    table = make(tmp_path / "t", table_schema(pa.int32()))
    put(table, session, {"a": 1, "b": 1}, 10, pa.int32())
    gone = pa.table({"k": ["a", "b"], "ts": pa.array([11, 9], pa.int32())})
    table.delete(session, session.frame(gone), clock_time=at(12))
    assert column(table.snapshot(session).table) == {"b": "1"}
    wrong = pa.table({"k": ["b"], "ts": pa.array([11.0])})
    with pytest.raises(InvalidInput, match="Column ts is int64 in the table and double in the rows"):
        table.delete(session, session.frame(wrong), clock_time=at(13))


@pytest.mark.parametrize("compacted", [True, False])
def test_a_change_that_is_not_read_is_refused_with_the_file(
    compacted: bool, session: LocalSession, tmp_path: Path
) -> None:
    """Another writer made text of a double: its digits would depend on who reads."""
    table = make(tmp_path / "t", table_schema(pa.float64()))
    put(table, session, {"a": 0.1}, 10, pa.float64())
    if compacted:
        compact(table, session, 10)
    (commit,) = (tmp_path / "t/.hoodie").glob("*.commit" if compacted else "*.deltacommit")
    commit.write_text(commit.read_text().replace(r"[\"null\",\"double\"]", r"[\"null\",\"string\"]"))
    other = HudiTable.open(table.path)
    assert other.schema().field("c").type == pa.string()
    name = ".parquet" if compacted else ".log.1"
    with pytest.raises(UnsupportedTable, match=rf"Column c has type double, which does not fit string.*{name}"):
        other.snapshot(session)


COLUMN_NAMES = ["größe", "a b", "a-b", "1st", "a.b", "😀", "", "_hoodie_x"]


@pytest.mark.parametrize("name", COLUMN_NAMES)
def test_a_table_with_a_column_that_avro_cannot_name_is_not_made(name: str, tmp_path: Path) -> None:
    schema = table_schema(pa.int32()).append(pa.field(name, pa.string()))
    with pytest.raises(InvalidInput):
        make(tmp_path / "t", schema)
    assert not files_of(tmp_path)


def test_a_tables_name_may_hold_what_avros_cannot(session: LocalSession, tmp_path: Path) -> None:
    """Readers parse the schema by Avro's rules: the record is named as Hudi would name it."""
    table = make(tmp_path / "1-größe.v2", table_schema(pa.struct([("x", pa.decimal128(5, 2))])))
    put(table, session, {"a": None}, 10, pa.struct([("x", pa.decimal128(5, 2))]))
    assert '"name":"____gr____e__v2_record","namespace":"hoodie.____gr____e__v2"' in table.state().avro_schema


ODD = ["", "\0", "😀", "שלום", "e\u0301", "é", " a ", "a'b\"", "__null__x", "null", "x" * 300, "\u2028", "\ufffd"]
LAYOUTS: dict[str, dict[str, Any]] = {
    "unpartitioned": {},
    "hive style": {"partition_fields": ["p"]},
    "plain": {"partition_fields": ["p"], "hive_style": False},
    "encoded": {"partition_fields": ["p"], "url_encode": True},
    "two fields": {"partition_fields": ["p", "q"]},
    "two fields, plain, encoded": {"partition_fields": ["p", "q"], "hive_style": False, "url_encode": True},
}


@pytest.mark.slow
@pytest.mark.parametrize("complex_key", [False, True], ids=["simple key", "complex key"])
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_keys_and_partition_values_of_any_text(
    layout: dict[str, Any], complex_key: bool, session: LocalSession, tmp_path: Path
) -> None:
    """Each row is written twice and found once; deletes find their rows; both views hold the values as written."""
    schema = pa.schema(
        [("k", pa.string()), ("n", pa.int32()), ("ts", pa.int64()), ("p", pa.string()), ("q", pa.date32())]
    )
    key = ["k", "n"] if complex_key else ["k"]
    table = make(tmp_path / "t", schema, record_key=key, buckets=3, **layout)
    days = [date(2024, 2, 29), None]
    rows = [
        {
            "k": text if complex_key else text or "-",
            "n": None if n % 3 == 1 else n,
            "p": text[:60].strip("\0") or None,
            "q": days[n % 2],
        }
        for n, text in enumerate(ODD)
    ]
    for ts in (10, 20):
        batch = [{**row, "ts": ts} for row in rows]
        table.upsert(session, session.rows(batch, schema), clock_time=at(ts + 1))
    gone, kept = rows[3], [row for row in rows if row is not rows[3]]
    table.delete(session, session.rows([{**gone, "ts": 30}], schema), clock_time=at(31))
    expected = sorted(repr({name: {**row, "ts": 20}[name] for name in schema.names}) for row in kept)

    def seen(rows: pa.Table) -> list[str]:
        return sorted(map(repr, rows.select(schema.names).to_pylist()))

    assert seen(table.snapshot(session).table) == expected
    compact(table, session, 15)
    assert seen(table.snapshot(session).table) == expected
    compact(table, session, 30)
    assert seen(table.read_optimized(session).table) == expected
