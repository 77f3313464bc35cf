"""Tables with a partial update mode: Hudi 1.2.0 writes at random, we compact between its writes, its answers stay.

Rows have gaps, which are filled from other records of the key: nulls (IGNORE_DEFAULTS), or a marker
(FILL_UNAVAILABLE). `INTEROP_SEEDS` and `INTEROP_SEED` as in `test_random_merges`.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

from hudi_assets.engine import HudiTable
from hudi_assets.engine.merging.gaps import Gaps
from hudi_assets.engine.model import MergeMode
from scripts.hudi_client import Hudi
from scripts.hudi_rows import META, Rows, by_key
from tests.interop.readers import FIRST
from tests.interop.tables import copy_of
from tests.interop.test_merge import MODEL, SETTINGS, options
from tests.interop.test_ordering_fields import Numbered
from tests.interop.test_random_merges import Life, Question, lived, seeds
from tests.tables.local_session import LocalSession
from tests.tables.steps import compact

pytestmark = [pytest.mark.interop, pytest.mark.timeout(1800)]

MARKER = "__debezium_unavailable_value"
EVENT_TIME, COMMIT_TIME = MergeMode.EVENT_TIME_ORDERING, MergeMode.COMMIT_TIME_ORDERING
LSN, CHANGE, DELETED = "_event_lsn", "_change_operation_type", "_hoodie_is_deleted"


class Kind(NamedTuple):
    """A payload class, the table's ordering field, and what 1.2.0 makes of the class on version 9."""

    payload: str
    ordering: str | None
    mode: MergeMode
    gaps: Gaps


KINDS = {
    "PartialUpdate": Kind("PartialUpdateAvroPayload", "ts", EVENT_TIME, Gaps()),
    "OverwriteNonDefaults": Kind("OverwriteNonDefaultsWithLatestAvroPayload", None, COMMIT_TIME, Gaps()),
    "PostgresDebezium": Kind("debezium.PostgresDebeziumAvroPayload", LSN, EVENT_TIME, Gaps(MARKER)),
}
SCHEMA = pa.schema(
    {
        "id": pa.string(),
        "ts": pa.int64(),
        "v": pa.string(),
        "n": pa.int64(),
        "x": pa.float64(),
        "raw": pa.binary(),
        "tags": pa.list_(pa.string()),
        "place": pa.struct({"name": pa.string(), "at": pa.int64()}),
        LSN: pa.int64(),
        CHANGE: pa.string(),
        DELETED: pa.bool_(),
    }
)


def writer(kind: Kind, blocks: str = "avro") -> dict[str, str]:
    return {
        **options(MODEL + kind.payload, kind.ordering),
        "hoodie.logfile.data.block.format": blocks,
        "hoodie.table.timeline.timezone": "UTC",
        "hoodie.write.table.version": "9",
        "hoodie.write.auto.upgrade": "false",
    }


@dataclass
class WithGaps(Numbered):
    """One random table. About a third of the values are gaps of either mode. Hudi executes some plans."""

    kind: Kind = KINDS["PartialUpdate"]

    def __post_init__(self) -> None:
        Life.__post_init__(self)
        self.random, self.version = random.Random(f"{self.seed} {self.kind.payload}"), 9
        blocks = self.random.choice(["avro", "parquet"])
        self.options = writer(self.kind, blocks) | {"hoodie.bucket.index.num.buckets": "2"}
        # A log block may have several records of a key then.
        self.deletes, combined = self.random.random() < 0.7, self.random.random() < 0.6
        self.options["hoodie.combine.before.upsert"] = str(combined).lower()
        self.done = [f"seed {self.seed}, {self.kind.payload}, {blocks}, combined {combined}, deletes {self.deletes}"]

    def write(self, operation: str, said: list[tuple[int, int, bool]]) -> None:
        twice = said[:3] if operation == "upsert" and self.options["hoodie.combine.before.upsert"] == "false" else []
        rows = [self.row(*one) for one in (*said, *twice)]
        told = (f"{r['id']}{'-' if r[DELETED] or r[CHANGE] == 'd' else '@'}{r['ts']}" for r in rows)
        self.done.append(f"{operation} " + " ".join(told))
        mode = "append" if self.path.exists() else "overwrite"
        given = {**self.options, "hoodie.datasource.write.operation": operation}
        self.hudi.write(self.path, pa.Table.from_pylist(rows, SCHEMA), given, mode)

    def row(self, number: int, at: int, gone: bool) -> dict[str, Any]:
        gone = gone and self.deletes
        by_change = self.kind.ordering == LSN
        text = self.text()
        return {
            "id": f"k{number}",
            "ts": at,
            "v": self.text(),
            "n": self.maybe(lambda: self.random.randint(0, 99)),
            "x": self.maybe(lambda: self.random.choice([0.0, float(self.random.randint(1, 99))])),
            "raw": None if text is None else text.encode(),
            "tags": self.maybe(lambda: [str(self.random.randint(0, 99)), MARKER]),
            "place": self.maybe(lambda: {"name": self.text(), "at": self.maybe(lambda: at)}),
            LSN: at,
            CHANGE: "d" if gone and by_change else "u",
            DELETED: True if gone and not by_change else self.random.choice([None, False]),
        }

    def run(self) -> None:
        self.base()
        for step in self.random.choices([self.upsert, self.upsert, self.delete], k=self.random.randint(2, 4)):
            step()
        self.compact()
        self.upsert()
        self.count_contradictions()
        self.ours()

    def compared(self, question: Question, rows: Rows, now: Rows) -> Rows:
        """Until a compaction Hudi fills no gaps from records before a range of commits: which rows are in it counts."""
        return written(rows, now) if question["query"] == "incremental" else rows

    def ours(self) -> None:
        Life.ours(self)
        questions, now = self.questions()[1:], by_key(self.hudi.read(self.path))
        for question, theirs in zip(questions, self.answers(self.path, questions), strict=True):
            if question["query"] == "time_travel":
                mine = by_key(self.open().time_travel(self.session, question["as_of"]).toArrow())
            else:
                begin = "earliest" if question["begin"] == FIRST else question["begin"]
                mine = by_key(self.open().incremental(self.session, begin, question["end"]).toArrow())
            theirs, mine = (self.compared(question, rows, now) for rows in (theirs, mine))
            self.same(theirs, mine, f"our {question}")
            self.counted["answers of ours"] += 1

    def maybe(self, value: Callable[[], Any]) -> Any:
        return None if self.random.random() < 0.35 else value()

    def text(self) -> str | None:
        return self.random.choice([None, MARKER, MARKER, f"{len(self.done)}", f"{len(self.done)}."])


def written(rows: Rows, now: Rows) -> Rows:
    """Which rows these are, of those that the table still has."""
    told, there = ({key: {name: row[name] for name in META} for key, row in of.items()} for of in (rows, now))
    return {key: row for key, row in told.items() if there.get(key) == row}


@pytest.mark.parametrize("seed", seeds(4))
@pytest.mark.parametrize("name", KINDS)
def test_tables_with_gaps(name: str, seed: int, path: Path, session: LocalSession, hudi_1_2: Hudi) -> None:
    life = WithGaps(hudi_1_2, session, path, seed, kind=KINDS[name])
    lived(life)
    merging = life.open().config.merging
    assert (merging.mode, merging.gaps) == (KINDS[name].mode, KINDS[name].gaps)


# ------------------------------------------------------------------------------------------- case by case


Said = tuple[int, str | None, str | None, bool | None]
NARROW = pa.schema({"id": pa.string(), "ts": pa.int64(), "a": pa.string(), "b": pa.string(), DELETED: pa.bool_()})
# The rows of a key, the first ones in a base file: `ts`, `a`, `b`, whether it is a delete. And what is left of them.
CASES: dict[str, tuple[list[list[Said]], list[Said]]] = {
    "what fills a column first stays": (
        [[(0, "0", "0", None)], [(9, "9", None, None)], [(5, None, "5", None)], [(7, None, "7", None)]],
        [(9, "9", "5", None)],
    ),
    "a base row that wins is filled": ([[(9, "9", None, False)], [(5, "5", "5", None)]], [(9, "9", "5", False)]),
    "nothing is filled across a delete but from the base row": (
        [[(0, "0", "0", None)], [(1, "1", "1", None)], [(2, None, None, True)], [(3, None, "3", None)]],
        [(3, "0", "3", None)],
    ),
    # A row of a base file is none that says it is deleted.
    "a base row that says it is deleted": (
        [[(1, "1", "base", True)], [(2, "2", None, None)]],
        [(2, "2", "base", True)],
    ),
    "each log row changes the first of a key's base rows": (
        [[(1, "1", None, None), (1, None, "2", None)], [(2, None, "new", None)]],
        [(1, None, "2", None), (2, "1", "new", None)],
    ),
    "a delete too": (
        [[(1, "1", None, None), (1, None, "2", None)], [(2, None, None, True)]],
        [(1, None, "2", None)],
    ),
    "nothing fills it": ([[(1, None, None, None)], [(2, None, "2", None)]], [(2, None, "2", None)]),
}


def shown(rows: pa.Table) -> list[tuple[Any, ...]]:
    return sorted((tuple(row[name] for name in NARROW.names) for row in rows.to_pylist()), key=str)


def test_case_by_case(path: Path, session: LocalSession, hudi_1_2: Hudi) -> None:
    """By ordering value. All in one table, before and after a compaction of Hudi's and of ours."""
    for number in range(4):
        rows = [
            dict(zip(NARROW.names, (key, *one), strict=True))
            for key, (said, _) in CASES.items()
            if number < len(said)
            for one in said[number]
        ]
        operation = "upsert" if number else "bulk_insert"
        given = writer(KINDS["PartialUpdate"]) | {"hoodie.datasource.write.operation": operation}
        hudi_1_2.write(path, pa.Table.from_pylist(rows, NARROW), given, "append" if number else "overwrite")
    expected = sorted(((key, *row) for key, (_, left) in CASES.items() for row in left), key=str)
    copy = copy_of(path)
    assert hudi_1_2.compaction(copy, "run", **{"hoodie.write.table.version": "9"})
    table = HudiTable.open(str(path), settings=SETTINGS)
    assert shown(hudi_1_2.read(path)) == expected
    assert shown(hudi_1_2.read(copy, "read_optimized")) == expected
    assert shown(table.snapshot(session).toArrow()) == expected
    compact(table, session, 100)
    assert shown(hudi_1_2.read(path, "read_optimized")) == expected


def test_a_column_that_is_added_is_a_gap_in_what_came_before(path: Path, session: LocalSession, hudi_1_2: Hudi) -> None:
    wide = pa.schema([*NARROW, pa.field("c", pa.int64())])
    batches = [
        (NARROW, [{"id": "x", "ts": 5, "a": "1"}, {"id": "y", "ts": 5}]),
        (NARROW, [{"id": "x", "ts": 6, "a": "l"}, {"id": "y", "ts": 9, "a": "l"}]),
        (wide, [{"id": "x", "ts": 7, "c": 1}, {"id": "y", "ts": 7, "c": 2, "b": "late"}]),
        (wide, [{"id": "x", "ts": 8, "a": "z"}, {"id": "y", "ts": 6, "c": 3}]),
    ]
    for number, (schema, rows) in enumerate(batches):
        given = writer(KINDS["PartialUpdate"])
        hudi_1_2.write(path, pa.Table.from_pylist(rows, schema), given, "append" if number else "overwrite")
    expected = [("x", 8, "z", None, 1), ("y", 9, "l", "late", 2)]
    for rows in (hudi_1_2.read(path), HudiTable.open(str(path), settings=SETTINGS).snapshot(session).toArrow()):
        assert sorted(tuple(r[name] for name in ("id", "ts", "a", "b", "c")) for r in rows.to_pylist()) == expected


MODE = "hoodie.table.partial.update.mode=IGNORE_DEFAULTS"


@pytest.mark.parametrize(("version", "line"), [("8", MODE), ("9", MODE.replace("IGNORE_DEFAULTS", "FILL_UNAVAILABLE"))])
def test_hudi_fills_nothing_on_version_8_and_without_a_marker(
    version: str, line: str, path: Path, hudi_1_2: Hudi
) -> None:
    """Neither is a table that 1.2.0 makes. We refuse both by name."""
    given = {**writer(KINDS["PartialUpdate"]), "hoodie.write.table.version": version}
    given |= {key: f"{MODEL}DefaultHoodieRecordPayload" for key in given if key.endswith("payload.class")}
    for number, said in enumerate([("x", 1, "1", MARKER), ("x", 2, None, MARKER)]):
        rows = pa.Table.from_pylist([dict(zip(NARROW.names, said, strict=False))], NARROW)
        hudi_1_2.write(path, rows, given, "append" if number else "overwrite")
    folder = path / ".hoodie"
    with (folder / "hoodie.properties").open("a") as properties:
        properties.write(f"{line}\n")
    for file in (*folder.glob(".hoodie.properties*.crc"), *folder.glob("hoodie.properties.backup")):
        file.unlink()
    assert shown(hudi_1_2.read(path)) == [("x", 2, None, MARKER, None)]
    assert "partial updates" in str(HudiTable.open(str(path), settings=SETTINGS).config.merging.not_merged)
