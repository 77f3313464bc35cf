"""Keys that stand several times in a base file, as `bulk_insert` and INSERT INTO leave them: answers stay Hudi's.

Hudi's readers change the first row of a key. 1.x changes each row where log records have positions in the base file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_assets.engine import HudiTable
from hudi_assets.engine.model import Plan
from scripts.hudi_client import Hudi
from tests.interop.tables import hudi_options
from tests.tables.local_session import LocalSession

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]

SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("ts", pa.int64(), nullable=False),
        pa.field("v", pa.int32()),
        pa.field("p", pa.string(), nullable=False),
    ]
)
STATED = {
    "hoodie.bucket.index.num.buckets": "1",
    "hudi_assets.writers": "stopped",
    "hoodie.payload.event.time.field": "ts",
    "hudi_assets.event.time.unit": "ms",
}
ORDER_NOT_ASKED = {"hoodie.combine.before.insert": "false", "hoodie.bulkinsert.shuffle.parallelism": "1"}
MILLISECONDS = 1_000
Answer = Counter[tuple[str, ...]]


def rows(values: Iterable[tuple[str, int, int]]) -> pa.Table:
    """(key, ordering value, v); three rows of a key are in the base file, with 1, 2 and 3."""
    return pa.Table.from_pylist([{"id": k, "ts": t * MILLISECONDS, "v": v, "p": "a"} for k, t, v in values], SCHEMA)


def answer(table: pa.Table, columns: Iterable[str] = SCHEMA.names) -> Answer:
    return Counter(tuple(str(row[name]) for name in columns) for row in table.to_pylist())


@dataclass(frozen=True)
class Repeated:
    """A table in whose base file each key stands three times."""

    hudi: Hudi
    path: Path
    session: LocalSession
    options: dict[str, str]

    def write(self, operation: str, *values: tuple[str, int, int]) -> None:
        more = {"hoodie.datasource.write.operation": operation}
        self.hudi.write(self.path, rows(values), self.options | more | ORDER_NOT_ASKED)

    @property
    def table(self) -> HudiTable:
        return HudiTable.open(str(self.path), settings=STATED)

    def agrees(self, step: str) -> Answer:
        snapshot, ro = (answer(self.hudi.read(self.path, view)) for view in ("snapshot", "read_optimized"))
        assert answer(self.table.snapshot(self.session).toArrow()) == snapshot, step
        assert answer(self.table.read_optimized(self.session).toArrow()) == ro, step
        return snapshot

    def compact(self, seconds: int) -> None:
        plan = self.table.plan_compaction(threshold=seconds * MILLISECONDS)
        assert isinstance(plan, Plan), plan
        self.table.execute_compaction(self.session, plan.instant)


@pytest.mark.parametrize(
    ("release", "version", "index", "positions"),
    [
        pytest.param("0.15.0", "", "SIMPLE", False),
        pytest.param("1.2.0", "6", "SIMPLE", False, marks=pytest.mark.slow),
        pytest.param("1.2.0", "9", "SIMPLE", True),
        pytest.param("1.2.0", "9", "BUCKET", False, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize(
    "payload",
    [
        pytest.param("DefaultHoodieRecordPayload", id="by-event-time"),
        pytest.param("OverwriteWithLatestAvroPayload", id="latest", marks=pytest.mark.slow),
    ],
)
def test_answers_stay_hudis(
    path: Path,
    session: LocalSession,
    release: str,
    version: str,
    index: str,
    positions: bool,
    payload: str,
    request: pytest.FixtureRequest,
) -> None:
    hudi: Hudi = request.getfixturevalue("hudi_0_15" if release == "0.15.0" else "hudi_1_2")
    options = hudi_options(name="t", buckets=1) | {"hoodie.index.type": index}
    options["hoodie.datasource.write.payload.class"] = f"org.apache.hudi.common.model.{payload}"
    if version:
        options |= {"hoodie.write.table.version": version, "hoodie.write.auto.upgrade": "false"}
    told = Repeated(hudi, path, session, options)
    told.write("bulk_insert", *((key, n, n) for n in (1, 2, 3) for key in ("same", "late", "new", "gone", "back")))
    assert len(list(path.rglob("*.parquet"))) == 1
    told.write("upsert", ("late", 0, 10), ("new", 2, 20))
    told.write("upsert", ("new", 8, 80), ("late", 7, 70))
    before = told.agrees("before")
    assert before[("same", "1000", "1", "a")] == before[("same", "2000", "2", "a")] == 1
    if payload == "DefaultHoodieRecordPayload":
        assert before[("new", "8000", "80", "a")] == (3 if positions else 1)
    if not positions:
        told.compact(5)
        assert told.agrees("a part is compacted") == before
    told.write("delete", ("gone", 16, 0), ("back", 16, 0))
    told.write("upsert", ("new", 18, 180), ("back", 19, 190))
    before = told.agrees("deleted, and one is back")
    told.compact(100)
    assert told.agrees("all is compacted") == before
    told.write("upsert", ("same", 20, 200), ("new", 20, 200))
    told.agrees("Hudi wrote on")


@pytest.mark.slow
@pytest.mark.parametrize("ordering", ["orderingFields='ts', ", ""])
def test_sql_on_what_insert_into_repeats(path: Path, session: LocalSession, hudi_1_2: Hudi, ordering: str) -> None:
    """INSERT INTO keeps them. MERGE INTO writes positions, and changes each. UPDATE and DELETE change the first."""
    name = f"repeated_{abs(hash(str(path)))}"

    def sql(statement: str) -> None:
        hudi_1_2.ask("sql", statement=statement)

    def same(step: str) -> Answer:
        columns = ("id", "ts", "a", "b")
        table = HudiTable.open(str(path), settings=STATED)
        found = answer(table.snapshot(session).toArrow(), columns)
        assert found == answer(hudi_1_2.read(path, "snapshot"), columns), step
        return found

    for setting in ("hoodie.compact.inline=false", "hoodie.parquet.small.file.limit=0"):
        sql(f"set {setting}")
    sql(
        f"create table {name} (id string, ts bigint, a string, b string) using hudi location '{path}' "
        f"tblproperties (type='mor', {ordering}primaryKey='id')"
    )
    sql("set hoodie.spark.sql.insert.into.operation=insert")
    of_key = " union all ".join(f"select '{k}', {n}000L, 'a{n}', 'b{n}'" for k in "xyz" for n in (1, 2, 3))
    sql(f"insert into {name} {of_key}")
    source = "(select 'x' as id, 2000L as ts, 'm' as a union all select 'y', 9000L, 'm')"
    merged = "when matched then update set t.ts = s.ts, t.a = s.a"
    sql(f"merge into {name} t using {source} s on t.id = s.id {merged}")
    # By event time the late one loses to one row of three.
    assert sum(count for row, count in same("MERGE INTO").items() if row[2] == "m") == (5 if ordering else 6)
    table = HudiTable.open(str(path), settings=STATED)
    plan = table.plan_compaction(threshold=100_000)
    assert isinstance(plan, Plan)
    before = same("planned")
    table.execute_compaction(session, plan.instant)
    assert same("compacted") == before
    sql(f"update {name} set a = 'u', ts = 20000L where id = 'x'")
    sql(f"delete from {name} where id = 'y'")
    after = same("UPDATE and DELETE")
    assert sum(after.values()) == 8
