"""Random lives of tables whose index looks keys up, against a plain dictionary: no row lost, doubled or unfindable."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hudi_assets.engine import HudiTable
from hudi_assets.engine.model import NoPlan
from hudi_assets.engine.queries.query import read_task
from hudi_assets.engine.table.files.hidden import hidden_files
from tests.oracle import bloom as bloom_reference
from tests.tables.local_session import LocalSession
from tests.tables.other_index import of_index

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("day", pa.string()), ("v", pa.int64())])
KEYS = [f"k{n}" for n in range(12)]
Row = tuple[int, int]  # event time, value

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("upsert"), st.lists(st.tuples(st.sampled_from(KEYS), st.integers(0, 60)), min_size=1)),
        st.tuples(st.just("delete"), st.lists(st.sampled_from(KEYS), min_size=1, max_size=4)),
        st.tuples(st.just("compact"), st.integers(0, 80)),
        st.tuples(st.just("take back"), st.none()),
        st.tuples(st.just("clean"), st.none()),
    ),
    min_size=3,
    max_size=10,
)
SIZES = st.sampled_from(
    [
        {},
        {"hoodie.parquet.small.file.limit": "0"},
        {"hoodie.parquet.max.file.size": "500", "hoodie.parquet.small.file.limit": "0"},
    ]
)


@dataclass
class Life:
    """A table and what it must hold. Rows of keys that were deleted once come in order of time."""

    table: HudiTable
    session: LocalSession
    clock: int = 1_000
    alive: dict[str, Row] = field(default_factory=dict)
    deleted: set[str] = field(default_factory=set)
    before: tuple[dict[str, Row], set[str], str] | None = None  # as of before the newest write, and its instant

    def day(self, key: str) -> str:
        return "ab"[KEYS.index(key) % 2]

    def upsert(self, rows: list[tuple[str, int]]) -> None:
        self.clock += 10
        held = (dict(self.alive), set(self.deleted))
        values = []
        for number, (key, late) in enumerate(rows):
            ts = self.clock if key in self.deleted else self.clock - late
            value = self.clock * 100 + number
            values.append({"id": key, "ts": ts, "day": self.day(key), "v": value})
            if key not in self.alive or self.alive[key][0] <= ts:
                self.alive[key] = (ts, value)
        done = self.table.upsert(self.session, self.session.rows(values, SCHEMA))
        assert done.rows > 0
        assert done.instant is not None
        self.before = (*held, done.instant)

    def delete(self, keys: list[str]) -> None:
        self.clock += 10
        held = (dict(self.alive), set(self.deleted))
        values = [{"id": key, "ts": self.clock, "day": self.day(key)} for key in keys]
        schema = pa.schema([SCHEMA.field(name) for name in ("id", "ts", "day")])
        done = self.table.delete(self.session, self.session.rows(values, schema))
        for key in keys:
            self.alive.pop(key, None)
            self.deleted.add(key)
        assert done.instant is not None
        self.before = (*held, done.instant)

    def compact(self, back: int) -> None:
        plan = self.table.plan_compaction(threshold=self.clock - back)
        if isinstance(plan, NoPlan):
            return
        self.check()  # also while it is pending
        self.table.execute_compaction(self.session, plan.instant)
        self.before = None

    def take_back(self) -> None:
        if self.before is not None:
            self.alive, self.deleted, instant = self.before
            self.table.rollback(instant)
            self.before = None

    def clean(self) -> None:
        self.table.clean(policy="KEEP_LATEST_FILE_VERSIONS", retained=1)
        self.before = None

    def check(self) -> None:
        assert hidden_files(self.table.state()) == ()
        rows = [r for task in self.table.snapshot_tasks() for batch in read_task(task) for r in batch.to_pylist()]
        assert sorted(r["id"] for r in rows) == sorted(self.alive)
        assert {r["id"]: (r["ts"], r["v"]) for r in rows} == self.alive
        found = [key for path in self.table.read_optimized_files() for key in keys_of(path)]
        assert len(found) == len(set(found)), "a key is in two file groups"
        assert set(self.alive) <= set(found), "Hudi would not find a key that has a row"


def keys_of(path: str) -> list[str]:
    """A base file's keys, all of which its bloom filter knows."""
    with pq.ParquetFile(path) as file:
        keys: list[str] = file.read(columns=["_hoodie_record_key"], use_threads=False).column(0).to_pylist()
        footer = {k.decode(): v.decode() for k, v in file.metadata.metadata.items()}
    read = bloom_reference.read(footer["org.apache.hudi.bloomfilter"], footer["hoodie_bloom_filter_type_code"])
    assert all(read.might_contain(key) for key in keys)
    return keys


@pytest.mark.parametrize("index", ["SIMPLE", "BLOOM"])
@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
@given(steps=STEPS, sizes=SIZES, partitioned=st.booleans())
def test_a_life_is_a_dictionarys(
    steps: list[tuple[str, Any]],
    sizes: dict[str, str],
    partitioned: bool,
    index: str,
    session: LocalSession,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    path: Path = tmp_path_factory.mktemp("life") / "t"
    fields = {"partition_fields": ["day"]} if partitioned else {}
    created = HudiTable.create(str(path), SCHEMA, record_key=["id"], ordering_field="ts", **fields)  # type: ignore[arg-type]
    life = Life(of_index(created, index, **{"hoodie.index.bloom.num_entries": "20", **sizes}), session)
    for step, what in steps:
        match step:
            case "upsert":
                life.upsert(what)
            case "delete":
                life.delete(what)
            case "compact":
                life.compact(what)
            case "take back":
                life.take_back()
            case "clean":
                life.clean()
        life.check()
    assert not life.table.validate()
