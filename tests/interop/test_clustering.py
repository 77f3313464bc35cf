"""Hudi's clustering beside our plans: nothing is planned while one is pending, and nothing is lost when it is executed.

The matrix has the refusal on every kind of table. Here clusterings are executed, on an index that lets them move rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from hudi_assets.engine import DATA_LATENCY, HudiTable, NoPlan, Plan
from hudi_assets.engine.model import Action
from scripts.hudi_client import Hudi
from scripts.hudi_rows import Rows, differences
from tests.interop.matrix import timeline_files
from tests.interop.tables import MINUTE, START, hudi_options, rows
from tests.interop.test_queries_v9 import Beside, answer
from tests.tables.local_session import LocalSession

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(1200)]

SETTINGS = {
    "hudi_assets.writers": "stopped",
    "hoodie.payload.event.time.field": "ts",
    "hudi_assets.event.time.unit": "ms",
    "hudi_assets.query.grace": "0s",
    DATA_LATENCY: "30d",
}
INLINE = {"hoodie.clustering.inline": "true", "hoodie.clustering.inline.max.commits": "2"}
KINDS = [("0.15.0", "6"), ("1.2.0", "9")]
FIXTURES = {"0.15.0": "hudi_0_15", "1.2.0": "hudi_1_2"}


@dataclass
class Clustered:
    """A table of Hudi's in partitions a, b and c, with updates in log files."""

    hudi: Hudi
    path: Path
    version: str
    session: LocalSession
    mark: int = 0
    settings: dict[str, str] = field(default_factory=lambda: dict(SETTINGS))

    @property
    def table(self) -> HudiTable:
        return HudiTable.open(str(self.path), settings=self.settings)

    @property
    def options(self) -> dict[str, str]:
        version = {"hoodie.write.table.version": self.version, "hoodie.write.auto.upgrade": "false"}
        return {**hudi_options(name="t"), **version, "hoodie.index.type": "SIMPLE"}

    def writes(self, numbers: Iterable[int], minute: float, **more: str) -> None:
        self.mark += 1
        self.hudi.write(self.path, rows(numbers, lambda n: minute + n / 100, self.mark), {**self.options, **more})

    def begins(self) -> None:
        self.writes(range(12), 0)
        self.writes((0, 3, 1, 2), 30)
        self.writes((6, 9, 4), 60)

    def clusters(self, op: str) -> list[str]:
        """`op` schedule, execute or scheduleandexecute; the clusterings that it completed."""
        before = set(self.clusterings())
        told = ",".join(f"{key}={value}" for key, value in self.options.items() if "version" in key or "auto" in key)
        told += ",hoodie.metadata.enable=false,hoodie.clean.automatic=false,hoodie.archive.automatic=false"
        call = f"call run_clustering(path=>'{self.path}', op=>'{op}', options=>'{told}')"
        self.hudi.ask("sql", statement=call)
        return sorted(set(self.clusterings()) - before)

    def clusterings(self) -> list[str]:
        return [i.timestamp for i in self.table.state().timeline.completed(Action.REPLACE_COMMIT)]

    def pending(self) -> list[str]:
        return sorted(timeline_files.unfinished(self.path, "replacecommit", "clustering"))

    def plan(self, minute: float) -> Plan | NoPlan:
        return self.table.plan_compaction(threshold=START + round(minute * MINUTE))

    def planned(self, minute: float) -> Plan:
        plan = self.plan(minute)
        assert isinstance(plan, Plan), plan
        return plan

    def executes(self, plan: Plan) -> None:
        self.table.execute_compaction(self.session, plan.instant)

    def compacts(self, minute: float) -> None:
        plan: Plan | NoPlan = self.planned(minute)
        while isinstance(plan, Plan):
            self.executes(plan)
            plan = self.plan(minute)

    def same(self, step: str, before: Rows | None = None, *, past: bool = True) -> Rows:
        """Hudi's views are ours (`past`: all four queries), the snapshot is that of before, the freshness is true."""
        hudi_rs = not self.pending() and not self.table.state().timeline.pending_compactions
        beside = Beside(self.table, self.hudi)
        snapshot = beside.check(step, hudi_rs=hudi_rs, every=3) if past else beside.views(step, hudi_rs=hudi_rs)
        if before is not None:
            # A clustering rewrites rows, and leaves whose commit they are of.
            unlike = differences(before, snapshot)
            assert not unlike, f"{step}:\n" + "\n".join(unlike)
        self.promise(step, snapshot)
        assert not self.table.validate(), step
        return snapshot

    def promise(self, step: str, snapshot: Rows) -> None:
        """The read-optimized view has each row up to the freshness: rows only get newer here."""
        freshness = self.table.freshness().freshness
        if freshness is None:
            return
        shown = answer(self.table, self.table.read_optimized_tasks())
        late = [key for key, row in snapshot.items() if int(str(row["ts"])) <= freshness and shown.get(key) != row]
        assert not late, f"{step}: {late} up to {freshness}"


@pytest.fixture(params=KINDS, ids=lambda kind: f"{kind[0]}-v{kind[1]}")
def table(request: pytest.FixtureRequest, path: Path, session: LocalSession) -> Clustered:
    release, version = request.param
    made = Clustered(request.getfixturevalue(FIXTURES[release]), path, version, session)
    made.begins()
    return made


def test_their_clustering_first(table: Clustered) -> None:
    table.compacts(40)
    table.writes((0, 1), 90)
    before = table.same("written")
    freshness = table.table.freshness().freshness
    table.clusters("schedule")
    [pending] = table.pending()
    found = table.plan(200)
    assert isinstance(found, NoPlan)
    assert pending in found.reason
    assert table.table.freshness().freshness == freshness, "a plan of theirs moves nothing"
    table.same("clustering pending", before)
    assert table.clusters("execute") == [pending]
    table.same("clustered", before)
    table.writes((0, 5, 12), 120)
    before = table.same("written again")
    table.compacts(200)
    table.same("compacted", before)


@pytest.mark.parametrize("first", ["we execute", "they execute"])
def test_our_plan_first(first: str, table: Clustered) -> None:
    """Hudi's clustering passes over the file groups of a pending compaction, ours too. Here that is all of them."""
    before = table.same("written", past=False)
    plan = table.planned(31.5)  # of partitions a, b and c: not what minute 60 brought
    table.clusters("schedule")
    involved = {(operation.partition, operation.file_id) for operation in plan.operations}
    clustered = table.pending()
    if first == "we execute":
        table.executes(plan)
        table.same("we executed", before, past=False)
        assert table.clusters("execute") == clustered
    else:
        assert table.clusters("execute") == clustered
        gone = set(table.table.state().replaced)
        assert not gone & involved
        table.executes(plan)
    table.same("both executed", before)
    table.writes((0, 1, 2, 13), 120)
    before = table.same("written again", past=False)
    assert table.clusters("scheduleandexecute")
    table.same("clustered again", before, past=False)
    table.writes((0, 1, 5), 150)
    before = table.same("written at last", past=False)
    table.compacts(200)
    table.same("compacted", before)


def test_inline_clustering_between_our_compactions(table: Clustered) -> None:
    for turn in range(4):
        table.writes((turn, turn + 3, turn + 5, 20 + turn), 90 + 30 * turn, **INLINE)
        before = table.same(f"written {turn}", past=False)
        plan = table.plan(100 + 30 * turn)
        if isinstance(plan, Plan):
            table.executes(plan)
        table.same(f"compacted {turn}", before, past=turn == 3)
    assert table.clusterings()
