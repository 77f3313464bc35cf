"""Whose rules: every short history of a key, as Apache Hudi's releases and the engine read and compact it.

One table has a key for each history, so that a few commits try thousands: a base row or none, then an upsert, a delete,
an upsert, a delete and an upsert, in each of which the key has a row or a delete with some ordering value, or nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_assets.engine import HudiTable
from hudi_assets.engine.model import MergeMode, Plan
from scripts.hudi_client import Hudi
from tests.interop.tables import copy_of
from tests.interop.test_merge import MODEL, SETTINGS, options
from tests.tables.local_session import LocalSession

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]

DEFAULT, EVENT_TIME = f"{MODEL}DefaultHoodieRecordPayload", f"{MODEL}EventTimeAvroPayload"
OVERWRITE = f"{MODEL}OverwriteWithLatestAvroPayload"
BASE = 10
NATURAL = "N"  # a delete without ordering value
Said = str | None  # r5: a row with ordering value 5; d5: a delete with it
History = tuple[int | None, Said, Said, Said, Said, Said]
Answer = list[str | None]  # per history, where the row that is shown comes from

ORDERINGS: dict[str, tuple[pa.DataType, Callable[[int], Any]]] = {
    "long": (pa.int64(), int),
    "int": (pa.int32(), int),
    "text": (pa.string(), "{:03d}".format),
    "timestamp": (pa.timestamp("us", tz="UTC"), lambda n: datetime.fromtimestamp(n, UTC)),
    "double": (pa.float64(), float),
    "float": (pa.float32(), float),
    "date": (pa.date32(), lambda n: date(1970, 1, 1) + timedelta(days=n)),
    "decimal": (pa.decimal128(12, 3), Decimal),
}
NOT_COMPARED_BY_0_X = ("text", "date", "decimal")
FEW: tuple[Said, ...] = (None, "r5", "r20", "d5", "d20")
MANY: tuple[Said, ...] = (None, *(f"{kind}{n}" for kind in "rd" for n in (0, 5, 10, 20)))


@dataclass(frozen=True)
class Case:
    payload: str = DEFAULT
    ordering: str = "long"
    blocks: str = "avro"
    said: tuple[Said, ...] = FEW
    written_by: str = "Hudi"

    def __str__(self) -> str:
        return f"{self.payload.removeprefix(MODEL)}-{self.ordering or 'no-ordering'}-{self.blocks}-{len(self.said)}"

    @property
    def histories(self) -> list[History]:
        if self.written_by == "us":
            places = product((None, BASE), *(self.said,) * 3)
            return [(base, first, second, third, None, None) for base, first, second, third in places]
        deletes: tuple[Said, ...] = (None, NATURAL)
        return list(product((None, BASE), self.said, deletes, self.said, deletes, self.said))


def said_at(history: History, place: int) -> Said:
    said = history[place]
    assert not isinstance(said, int)  # those are base rows, at place 0
    return said


def written(hudi: Hudi, path: Path, case: Case) -> None:
    """The table with a key per history: a commit for the base rows, then one for each place in a history."""
    type_, value = ORDERINGS[case.ordering or "long"]
    columns = {"id": pa.string(), "ts": type_, "at": pa.int64(), "v": pa.string(), "_hoodie_is_deleted": pa.bool_()}
    schema = pa.schema(list(columns.items()))
    given = {
        **options(case.payload, "ts" if case.ordering else None),
        "hoodie.logfile.data.block.format": case.blocks,
        "hoodie.table.timeline.timezone": "UTC",
    }

    def write(operation: str, rows: list[tuple[int, int, str, bool]]) -> None:
        values = [
            {"id": key(n), "ts": value(at), "at": at, "v": mark, "_hoodie_is_deleted": deleted}
            for n, at, mark, deleted in rows
        ]
        more = {**given, "hoodie.datasource.write.operation": operation}
        hudi.write(path, pa.Table.from_pylist(values, schema), more, "append" if path.exists() else "overwrite")

    every = list(enumerate(case.histories))
    write("bulk_insert", [(n, BASE, "base", False) for n, history in every if history[0] is not None])
    for place in range(1, 6):
        here = [(n, said) for n, history in every if (said := said_at(history, place))]
        if place in (2, 4):
            write("delete", [(n, 0, "", False) for n, _ in here])
        else:
            write("upsert", [(n, int(s[1:]), f"{place} {s}", s[0] == "d") for n, s in here])


def key(number: int) -> str:
    return f"k{number:05d}"


def answer(rows: pa.Table, case: Case) -> Answer:
    shown = dict(zip(rows["id"].to_pylist(), rows["v"].to_pylist(), strict=True))
    assert len(shown) == len(rows), "a key came twice"
    return [shown.get(key(n)) for n in range(len(case.histories))]


def different(case: Case, left: Answer, right: Answer) -> list[tuple[History, str | None, str | None]]:
    """The histories with two answers, the shortest first."""
    found = [(h, a, b) for h, a, b in zip(case.histories, left, right, strict=True) if a != b]
    return sorted(found, key=lambda it: sum(said is not None for said in it[0]))


# ------------------------------------------------------------------------------------------- the rules, in a plain loop


@dataclass(frozen=True)
class Record:
    """`at` None: without ordering value. `in_block`: a delete block's."""

    at: int | None
    mark: str | None  # None: a delete
    in_block: bool = True


def records(history: History, case: Case) -> list[Record]:
    found = []
    for place, said in enumerate(history[1:], 1):
        if said == NATURAL or (said == "d0" and case.ordering in ("int",)):
            found.append(Record(None, None))
        elif isinstance(said, str):
            at = int(said[1:])
            found.append(Record(at, f"{place} {said}" if said[0] == "r" else None, said[0] == "d"))
    return found


def by_0_x(history: History, case: Case) -> str | None:
    """HoodieMergedLogRecordScanner, then DefaultHoodieRecordPayload or OverwriteWithLatestAvroPayload, of 0.15.0."""
    held: Record | None = None
    for new in records(history, case):
        if held is None or not case.ordering:
            held = new
        elif new.mark is None:
            compared = new.at is not None and held.at is not None and case.ordering not in NOT_COMPARED_BY_0_X
            held = held if compared and held.at > new.at else new  # type: ignore[operator]
        elif held.mark is None or held.at <= new.at:  # type: ignore[operator]
            held = new
    base = None if history[0] is None else "base"
    if held is None:
        return base
    stays = base and case.payload != OVERWRITE and held.mark is not None and held.at < BASE  # type: ignore[operator]
    return base if stays else held.mark


def by_1_x(history: History, case: Case) -> str | None:
    """BufferedRecordMergerFactory of 1.2.0: logs first; a delete block's delete after one without value is passed over.

    A row that says that it is deleted is not.
    """
    held: Record | None = None
    for new in records(history, case):
        if case.payload == OVERWRITE or held is None or new.at is None:
            held = new
        elif held.at is None:
            held = held if new.in_block else new
        elif new.at >= held.at:
            held = new
    base = None if history[0] is None else "base"
    if held is None:
        return base
    compared = case.payload != OVERWRITE and held.at is not None
    return base if base and compared and held.at < BASE else held.mark  # type: ignore[operator]


# ------------------------------------------------------------------------------------------- the tests


@dataclass(frozen=True)
class Engine:
    session: LocalSession

    def open(self, path: Path, rules: str = "") -> HudiTable:
        said = {"hudi_assets.merge.rules": rules} if rules else {}
        # Not every ordering value is a time.
        return HudiTable.open(str(path), settings={**SETTINGS, **said, "hoodie.payload.event.time.field": "at"})

    def rows(self, table: HudiTable) -> pa.Table:
        return table.snapshot(self.session).toArrow()


@pytest.fixture
def engine(session: LocalSession) -> Engine:
    return Engine(session)


def compacted_by(hudi: Hudi, path: Path, case: Case) -> Answer:
    """Hudi's answer after its own compaction of a copy."""
    copy = copy_of(path)
    assert hudi.compaction(copy, "run")
    return answer(hudi.read(copy), case)


def compacted_by_us(engine: Engine, hudi: Hudi, path: Path, case: Case, rules: str) -> Answer:
    copy = copy_of(path)
    table = engine.open(copy, rules)
    plan = table.plan_compaction(threshold=1000)
    assert isinstance(plan, Plan), plan
    table.execute_compaction(engine.session, plan.instant)
    return answer(hudi.read(copy), case)


ZERO_X = [
    Case(said=FEW),
    *(
        pytest.param(case, marks=pytest.mark.slow)
        for case in (
            Case(said=MANY),
            Case(said=MANY, blocks="parquet"),
            Case(said=MANY, ordering="int"),
            Case(EVENT_TIME, said=MANY),
            Case(OVERWRITE, said=MANY),
            Case(OVERWRITE, ordering="", said=MANY),
            *(Case(ordering=name) for name in ("text", "timestamp", "double", "float", "date", "decimal")),
            *(Case(OVERWRITE, ordering=name) for name in NOT_COMPARED_BY_0_X),
        )
    ),
]


@pytest.mark.parametrize("case", ZERO_X, ids=str)
def test_tables_of_0_15(case: Case, path: Path, engine: Engine, hudi_0_15: Hudi) -> None:
    """Its snapshot, its own compaction of a copy, our snapshot, and its snapshot after our compaction are one."""
    written(hudi_0_15, path, case)
    expected = [by_0_x(history, case) for history in case.histories]
    shown = answer(hudi_0_15.read(path), case)
    assert not different(case, shown, expected)[:5], "the rules as they are written down"
    assert not different(case, shown, compacted_by(hudi_0_15, path, case))[:5], "0.15.0 contradicts itself"
    table = engine.open(path)
    default = MergeMode.EVENT_TIME_ORDERING_0X
    if case.payload == OVERWRITE:
        default = MergeMode.OVERWRITE_WITH_LATEST if case.ordering else MergeMode.COMMIT_TIME_ORDERING
    assert table.config.merging.mode is default
    assert not different(case, shown, answer(engine.rows(table), case))[:5], "our snapshot"
    assert not different(case, shown, compacted_by_us(engine, hudi_0_15, path, case, ""))[:5], "compacted by us"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("writer", "case"),
    [
        ("0.15.0", Case(said=MANY)),
        ("0.15.0", Case(said=MANY, ordering="int")),
        ("0.15.0", Case(OVERWRITE, said=FEW)),
        ("1.2.0", Case(said=FEW)),
        ("1.2.0", Case(OVERWRITE, said=FEW)),
        *(("0.15.0", Case(ordering=name)) for name in ("text", "timestamp", "double", "float", "decimal")),
    ],
    ids=str,
)
def test_tables_that_1_2_reads(
    writer: str, case: Case, path: Path, engine: Engine, hudi_0_15: Hudi, hudi_1_2: Hudi
) -> None:
    """By 1.x's rules: 1.2.0's snapshot, its compaction of a copy, our snapshot, and its own after ours are one."""
    written({"0.15.0": hudi_0_15, "1.2.0": hudi_1_2}[writer], path, case)
    shown = answer(hudi_1_2.read(path), case)
    assert not different(case, shown, [by_1_x(history, case) for history in case.histories])[:5], "the rules"
    assert not different(case, shown, compacted_by(hudi_1_2, path, case))[:5], "1.2.0 contradicts itself"
    rules = "" if writer == "1.2.0" else "1.x"
    assert not different(case, shown, answer(engine.rows(engine.open(path, rules)), case))[:5], "our snapshot"
    assert not different(case, shown, compacted_by_us(engine, hudi_1_2, path, case, rules))[:5], "compacted by us"


OURS: tuple[Said, ...] = (None, NATURAL, "r5", "r20", "d5", "d20", "D5", "D20")  # D5: a row that is a delete


@pytest.mark.parametrize("version", [6, pytest.param(9, marks=pytest.mark.slow)])
def test_tables_of_ours_that_1_2_reads(version: int, path: Path, engine: Engine, hudi_1_2: Hudi) -> None:
    """Rows that are deletes: Hudi writes none into data blocks, our writer does."""
    case = Case(said=OURS, written_by="us")
    columns = {
        "id": pa.string(),
        "ts": pa.int64(),
        "at": pa.int64(),
        "v": pa.string(),
        "_hoodie_is_deleted": pa.bool_(),
    }
    table = HudiTable.create(
        str(path), pa.schema(list(columns.items())), record_key=["id"], ordering_field="ts", event_time_field="at",
        buckets=1, table_version=version,
    )  # fmt: skip

    def frame(rows: list[dict[str, Any]], *names: str) -> Any:
        return engine.session.frame(pa.Table.from_pylist(rows, pa.schema([(n, columns[n]) for n in names or columns])))

    every = list(enumerate(case.histories))
    table.bulk_insert(
        engine.session,
        frame([row(n, BASE, "base") for n, history in every if history[0]]),
    )
    for place in (1, 2, 3):
        here = [(n, said) for n, history in every if isinstance(said := history[place], str)]
        kinds = {kind: [(n, said) for n, said in here if said[0] == kind] for kind in "NrdD"}
        rows = [row(n, int(s[1:]), f"{place} {s}", s[0] == "D") for n, s in (*kinds["r"], *kinds["D"])]
        table.upsert(engine.session, frame(rows))
        table.delete(engine.session, frame([row(n, int(s[1:])) for n, s in kinds["d"]], "id", "ts"))
        table.delete(engine.session, frame([row(n, 0) for n, _ in kinds["N"]], "id"))
    shown = answer(hudi_1_2.read(path), case)
    expected = [by_1_x(history, case) for history in case.histories]
    assert not different(case, shown, expected)[:5], "the rules"
    assert not different(case, shown, answer(engine.rows(table), case))[:5], "our snapshot"
    for by, now in (
        ("1.2.0", compacted_by(hudi_1_2, path, case)),
        ("us", compacted_by_us(engine, hudi_1_2, path, case, "")),
    ):
        assert not different(case, shown, now)[:5], f"compacted by {by}"


def row(number: int, at: int, mark: str = "", deleted: bool = False) -> dict[str, Any]:
    return {"id": key(number), "ts": at, "at": at, "v": mark, "_hoodie_is_deleted": deleted}
