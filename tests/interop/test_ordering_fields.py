"""Tables with several ordering fields: Hudi 1.2.0 writes at random, we compact between its writes, its answers stay.

Ties in the first field, rows that come out of order and late deletes are common. `INTEROP_SEEDS` and `INTEROP_SEED`
as in `test_random_merges`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_assets.engine import HudiTable, UnsupportedTable
from hudi_assets.engine.actions.compaction.hudi_executor import hudi_options
from hudi_assets.engine.model import MergeMode, Plan
from scripts.hudi_client import Hudi, HudiError
from scripts.hudi_rows import by_key
from tests.interop.readers import FIRST
from tests.interop.tables import copy_of
from tests.interop.test_merge import MODEL, SETTINGS, options
from tests.interop.test_random_merges import Life, lived, seeds
from tests.tables.local_session import Frame, LocalSession
from tests.tables.steps import compact

pytestmark = [pytest.mark.interop, pytest.mark.timeout(1800)]

DEFAULT, MYSQL = f"{MODEL}DefaultHoodieRecordPayload", f"{MODEL}debezium.MySqlDebeziumAvroPayload"
LATE = timedelta(microseconds=1)
# By what the second field is: its type, and a small number in it. Of text 10 is less than 9.
TYPES: dict[str, tuple[pa.DataType, Callable[[int], Any]]] = {
    "long": (pa.int64(), lambda n: n - 5),
    "int": (pa.int32(), lambda n: n - 5),
    "text": (pa.string(), lambda n: str(n + 5)),
    "timestamp": (pa.timestamp("us", "UTC"), lambda n: datetime(2020, 1, 1, tzinfo=UTC) + n * LATE),
    "decimal": (pa.decimal128(12, 3), lambda n: Decimal(n - 5) / 8),
    "double": (pa.float64(), lambda n: (n - 5) / 8),
}


def writer(version: int, fields: tuple[str, ...], blocks: str = "avro", payload: str = DEFAULT) -> dict[str, str]:
    return {
        **options(payload, None),
        "hoodie.datasource.write.precombine.field": ",".join(fields),
        "hoodie.logfile.data.block.format": blocks,
        "hoodie.table.timeline.timezone": "UTC",
        "hoodie.write.table.version": str(version),
        "hoodie.write.auto.upgrade": "false",
    }


@dataclass
class Numbered(Life):
    """One random table of version 8 or 9, by `ts` and `seq`, or by `seq` and others. Hudi executes some plans."""

    by_hudi: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self.version = self.random.choice([8, 9, 9])
        fields = self.random.choice([("ts", "seq"), ("ts", "seq"), ("ts", "seq"), ("seq", "ts"), ("seq", "ts", "sub")])
        self.type, self.of = TYPES[kind := self.random.choice(list(TYPES))]
        # A null in every row of some event times: no two rows of a key are compared by it.
        self.nulls = fields[0] == "ts" and kind != "int" and self.random.random() < 0.3
        # A log file without deletes can be left behind.
        self.deletes = self.random.random() < 0.6
        blocks = "avro" if kind == "text" else self.random.choice(["avro", "parquet"])
        self.options = writer(self.version, fields, blocks) | {"hoodie.bucket.index.num.buckets": "2"}
        self.done = [f"version {self.version}, seed {self.seed}, {blocks}, {','.join(fields)}, {kind}, {self.nulls}"]

    def write(self, operation: str, said: list[tuple[int, int, bool]]) -> None:
        rows = [self.row(*one) for one in said]
        told = (f"{row['id']}{'-' if row['_hoodie_is_deleted'] else '@'}{row['ts']}/{row['seq']}" for row in rows)
        self.done.append(f"{operation} " + " ".join(told))
        schema = {"id": pa.string(), "ts": pa.int64(), "seq": self.type, "sub": pa.int64(), "v": pa.string()}
        table = pa.Table.from_pylist(rows, pa.schema({**schema, "_hoodie_is_deleted": pa.bool_()}))
        mode = "append" if self.path.exists() else "overwrite"
        self.hudi.write(self.path, table, {**self.options, "hoodie.datasource.write.operation": operation}, mode)

    def row(self, number: int, at: int, gone: bool) -> dict[str, Any]:
        seq = None if self.nulls and at % 3 == 0 else self.of(self.random.randint(0, 9))
        # Where nulls are, Hudi takes a delete for the winner whatever its values: then it has none.
        mark = {"v": str(len(self.done)), "_hoodie_is_deleted": gone and self.deletes and not self.nulls}
        return {"id": f"k{number}", "ts": at, "seq": seq, "sub": self.random.randint(0, 2), **mark}

    def delete(self) -> None:
        if self.deletes:
            super().delete()
        else:
            self.upsert()

    def at(self, number: int, *, wild: bool) -> int:
        """Ties with what the key had are common: the second field decides them. A new batch may have none, and wait."""
        seen = self.known.setdefault(number, [])
        if seen and self.random.random() < (0.35 if wild else 0.05):
            return self.random.choice(seen)
        return super().at(number, wild=wild)

    def open(self) -> HudiTable:
        executor = {"hudi_assets.executor": "hudi"} if self.by_hudi else {}
        return HudiTable.open(str(self.path), settings=SETTINGS | executor)

    def compact(self) -> None:
        self.by_hudi = self.random.random() < 0.3
        super().compact()
        self.by_hudi = False

    def execute(self, table: HudiTable, plan: Plan) -> None:
        if not self.by_hudi:
            return super().execute(table, plan)
        self.counted["by Hudi"] += 1
        self.hudi.compaction(self.path, "execute", **hudi_options(table.config))

    def ours(self) -> None:
        super().ours()
        table, now = self.open(), by_key(self.hudi.read(self.path))
        questions = self.questions()[1:]
        for question, theirs in zip(questions, self.answers(self.path, questions), strict=True):
            if question["query"] == "time_travel":
                mine = by_key(table.time_travel(self.session, question["as_of"]).toArrow())
            else:
                begin = "earliest" if question["begin"] == FIRST else question["begin"]
                mine = by_key(table.incremental(self.session, begin, question["end"]).toArrow())
                # Where a compaction lies in the range, Hudi shows what the end state holds.
                mine, theirs = ({k: r for k, r in rows.items() if now.get(k) == r} for rows in (mine, theirs))
            self.same(theirs, mine, f"our {question}")
            self.counted["answers of ours"] += 1


@pytest.mark.parametrize("seed", seeds(6))
def test_tables_with_several_ordering_fields(seed: int, path: Path, session: LocalSession, hudi_1_2: Hudi) -> None:
    lived(Numbered(hudi_1_2, session, path, seed))


# ------------------------------------------------------------------------------------------- nulls

Said = tuple[int | None, int | None, bool]
SCHEMA = pa.schema(
    {"id": pa.string(), "ts": pa.int64(), "seq": pa.int64(), "v": pa.string(), "_hoodie_is_deleted": pa.bool_()}
)
# The records of a key, a batch each: `ts`, `seq`, a delete. And what is left, of ours; None: ours is refused by name.
ANSWERED: dict[str, tuple[list[Said], str | None]] = {
    "another first value": ([(1, None, False), (2, 5, False)], "2"),
    "a lesser first value": ([(2, None, False), (1, 5, False)], "1"),
    "both null": ([(1, None, False), (1, None, False)], "2"),
    "first null in both": ([(None, 2, False), (None, 1, False)], "1"),
    "a delete that is greater": ([(0, 0, False), (1, None, False), (2, 5, True)], ""),
    "a delete that is lesser, of a base row": ([(2, None, False), (1, 5, True)], "1"),
    "a row after a delete": ([(0, 0, False), (1, 0, True), (2, None, False)], "3"),
    "a delete that is lesser, of a log record": ([(0, 0, False), (3, None, False), (1, 5, True)], None),
}
FAILING: dict[str, list[Said]] = {
    "a null and a value": [(1, None, False), (1, 5, False)],
    "a value and a null": [(1, 5, False), (1, None, False)],
    "in the first field": [(None, 5, False), (1, 5, False)],
    "among log records": [(0, 0, False), (1, 5, False), (1, None, False)],
    "a row after a delete": [(0, 0, False), (1, None, True), (1, 5, False)],
}


def written(hudi: Hudi, path: Path, said: dict[str, list[Said]]) -> HudiTable:
    for number in range(3):
        rows = [
            {
                "id": key,
                "ts": of[number][0],
                "seq": of[number][1],
                "v": str(number + 1),
                SCHEMA.names[-1]: of[number][2],
            }
            for key, of in said.items()
            if number < len(of)
        ]
        if rows:
            given = writer(9, ("ts", "seq")) | {"hoodie.datasource.write.operation": "upsert"}
            hudi.write(path, pa.Table.from_pylist(rows, SCHEMA), given, "append" if number else "overwrite")
    return HudiTable.open(str(path), settings=SETTINGS)


def values(rows: pa.Table) -> dict[str, str]:
    return {row["id"]: row["v"] for row in rows.to_pylist()}


def test_nulls_that_decide_nothing(path: Path, session: LocalSession, hudi_1_2: Hudi) -> None:
    table = written(hudi_1_2, path, {key: said for key, (said, left) in ANSWERED.items() if left is not None})
    expected = {key: left for key, (_, left) in ANSWERED.items() if left}
    copy = copy_of(path)
    assert hudi_1_2.compaction(copy, "run", **{"hoodie.write.table.version": "9"})
    assert values(hudi_1_2.read(path)) == expected
    assert values(hudi_1_2.read(copy, "read_optimized")) == expected
    assert values(table.snapshot(session).toArrow()) == expected
    compact(table, session, 100)
    assert values(hudi_1_2.read(path)) == expected


@pytest.mark.parametrize("case", FAILING)
def test_hudi_fails_where_a_null_would_decide(case: str, path: Path, session: LocalSession, hudi_1_2: Hudi) -> None:
    table = written(hudi_1_2, path, {"a": FAILING[case]})
    with pytest.raises(
        HudiError, match="cannot be cast" if not any(gone for *_, gone in FAILING[case]) else "Union is malf"
    ):
        hudi_1_2.read(path)
    with pytest.raises(UnsupportedTable, match="Of the key 'a' a record has a null in one of several ordering fields"):
        table.snapshot(session).toArrow()


def test_hudi_takes_a_delete_whose_nulls_are_elsewhere(path: Path, session: LocalSession, hudi_1_2: Hudi) -> None:
    """Of a log record, whatever the values are. After a compaction in between it compares them."""
    name = "a delete that is lesser, of a log record"
    said = ANSWERED[name][0]
    table = written(hudi_1_2, path, {name: said})
    assert values(hudi_1_2.read(path)) == {}
    with pytest.raises(UnsupportedTable, match=f"Of the key '{name}' a record has a null"):
        table.snapshot(session).toArrow()
    between = path.with_name("between")
    written(hudi_1_2, between, {name: said[:2]})
    assert hudi_1_2.compaction(between, "run", **{"hoodie.write.table.version": "9"})
    last = pa.Table.from_pylist([dict(zip(SCHEMA.names, (name, 1, 5, "3", True), strict=True))], SCHEMA)
    given = writer(9, ("ts", "seq")) | {"hoodie.datasource.write.operation": "upsert"}
    hudi_1_2.write(between, last, given)
    assert values(hudi_1_2.read(between)) == {name: "2"}


def test_a_null_of_integers_is_zero_and_floating_point_is_javas(
    path: Path, session: LocalSession, hudi_1_2: Hudi
) -> None:
    names = {"id": pa.string(), "ts": pa.int64(), "whole": pa.int32(), "double": pa.float64(), "v": pa.string()}
    nan = float("nan")
    said: dict[str, list[tuple[int | None, float]]] = {
        "a null is more than -1": [(-1, 0.0), (None, 0.0), (-1, 0.0)],
        "a null is less than 1": [(1, 0.0), (None, 0.0)],
        "a base row's null": [(None, 0.0), (-1, 9.0)],
        "-0.0 is less": [(0, 0.0), (0, -0.0)],
        "0.0 is more": [(0, -0.0), (0, 0.0), (0, -0.0)],
        "NaN is most": [(0, nan), (0, 1e300)],
        "NaN is NaN": [(0, 1.0), (0, nan), (0, nan)],
        "of floating point": [(0, -1.5), (0, -2.5), (0, -1.0)],
    }
    for number in range(3):
        rows = [
            {"id": key, "ts": 1, "whole": of[number][0], "double": of[number][1], "v": str(number + 1)}
            for key, of in said.items()
            if number < len(of)
        ]
        given = writer(9, ("ts", "whole", "double")) | {"hoodie.datasource.write.operation": "upsert"}
        table = pa.Table.from_pylist(rows, pa.schema(names))
        hudi_1_2.write(path, table, given, "append" if number else "overwrite")
    expected = dict(zip(said, "21112133", strict=True))
    assert values(hudi_1_2.read(path)) == expected
    assert values(HudiTable.open(str(path), settings=SETTINGS).snapshot(session).toArrow()) == expected


# ------------------------------------------------------------------------------------------- text in Parquet blocks


TEXTS = ("10", "9", "a", "ab", "b", "z", "\u00e9", "Z", "")


@pytest.mark.parametrize("blocks", ["avro", "parquet"])
def test_hudi_does_not_compare_text_of_parquet_blocks(
    blocks: str, path: Path, session: LocalSession, hudi_1_2: Hudi
) -> None:
    """What it compares is what its buffer holds by then."""
    schema = pa.schema({"id": pa.string(), "ts": pa.int64(), "seq": pa.string(), "v": pa.string()})
    pairs = {f"{kind}{n}": pair for kind in "bl" for n, pair in enumerate(product(TEXTS, TEXTS))}

    def write(operation: str, kinds: str, which: int) -> None:
        said = [(key, pair[which]) for key, pair in pairs.items() if key[0] in kinds]
        rows = pa.Table.from_pylist([{"id": k, "ts": 1, "seq": seq, "v": "01"[which]} for k, seq in said], schema)
        given = writer(9, ("ts", "seq"), blocks) | {"hoodie.datasource.write.operation": operation}
        hudi_1_2.write(path, rows, given, "append" if path.exists() else "overwrite")

    write("bulk_insert", "b", 0)
    write("upsert", "l", 0)
    write("upsert", "bl", 1)
    expected = {key: "1" if new.encode() >= old.encode() else "0" for key, (old, new) in pairs.items()}
    table = HudiTable.open(str(path), settings=SETTINGS)
    if blocks == "avro":
        assert values(hudi_1_2.read(path)) == values(table.snapshot(session).toArrow()) == expected
        return
    assert values(hudi_1_2.read(path)) != expected
    with pytest.raises(UnsupportedTable, match=r"Text of Parquet log blocks \(seq, one of several ordering fields\)"):
        table.snapshot(session).toArrow()
    with pytest.raises(UnsupportedTable, match="Text of Parquet log blocks"):
        table.plan_compaction(threshold=100)


# ------------------------------------------------------------------------------------------- Debezium's MySQL


@dataclass
class Debezium(Life):
    """A random stream of MySqlDebeziumAvroPayload, which on version 9 is two ordering fields and a delete marker."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.version = 9
        self.options = writer(9, ("_event_bin_file", "_event_pos"), payload=MYSQL)
        self.options |= {"hoodie.bucket.index.num.buckets": "2"}
        del self.options["hoodie.logfile.data.block.format"]  # as it comes
        self.done = [f"seed {self.seed}, MySqlDebeziumAvroPayload"]

    def write(self, operation: str, said: list[tuple[int, int, bool]]) -> None:
        """What says when it happened says in which file of the binary log, with positions of one to three digits."""
        rows = []
        for number, at, gone in said:
            place = {
                "_event_bin_file": f"mysql-bin.{at // 15:06}",
                "_event_pos": at % 15 * 17 + self.random.randint(0, 2),
            }
            change = "d" if gone else self.random.choice("cu")
            mark = {"v": str(len(self.done)), "_change_operation_type": change}
            rows.append({"id": f"k{number}", "ts": at, **place, **mark})
        self.done.append(f"{operation} " + " ".join(f"{r['id']}{r['_change_operation_type']}{r['ts']}" for r in rows))
        names = {"id": pa.string(), "ts": pa.int64(), "_event_bin_file": pa.string(), "_event_pos": pa.int64()}
        schema = pa.schema({**names, "v": pa.string(), "_change_operation_type": pa.string()})
        mode = "append" if self.path.exists() else "overwrite"
        given = {**self.options, "hoodie.datasource.write.operation": operation}
        self.hudi.write(self.path, pa.Table.from_pylist(rows, schema), given, mode)


@pytest.mark.parametrize("seed", seeds(4))
def test_streams_of_debezium(seed: int, path: Path, session: LocalSession, hudi_1_2: Hudi) -> None:
    life = Debezium(hudi_1_2, session, path, seed)
    lived(life)
    merging = life.open().config.merging
    assert (merging.mode, merging.ordering_fields) == (
        MergeMode.EVENT_TIME_ORDERING,
        ("_event_bin_file", "_event_pos"),
    )
    assert merging.delete_marker is not None


def test_our_writer_leaves_rows_to_hudi_and_deletes(path: Path, session: LocalSession, hudi_1_2: Hudi) -> None:
    table = written(hudi_1_2, path, {key: [(1, 5, False)] for key in "ab"})
    rows = pa.Table.from_pylist([{"id": "a", "ts": 2, "seq": 1, "v": "ours"}], pa.schema(list(SCHEMA)[:-1]))
    table = HudiTable.open(table.path, settings=SETTINGS | {"hoodie.bucket.index.num.buckets": "1"})
    for write in (table.upsert, table.bulk_insert):
        with pytest.raises(
            UnsupportedTable, match=r"several ordering fields \(ts, seq\): its rows are not written here"
        ):
            write(session, Frame(rows))
    with pytest.raises(UnsupportedTable, match="A delete with values of several ordering fields"):
        table.delete(session, Frame(rows.select(["id", "ts"])))
    table.delete(session, Frame(rows.select(["id"])))
    assert values(hudi_1_2.read(path)) == values(table.snapshot(session).toArrow()) == {"b": "1"}
