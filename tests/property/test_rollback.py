"""Random histories of writes, compactions and plans, and what is then taken back: the snapshot is the recorded one.

The oracle is a list: the rows that the table held after each instant.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from hudi_assets.engine import HudiTable
from hudi_assets.engine.errors import InvalidInput
from hudi_assets.engine.model import Plan
from tests.crash.tables import carried_by
from tests.tables.steps import created, rows_in

SCHEMA = pa.schema([("id", pa.int64()), ("ts", pa.int64()), ("v", pa.int64()), ("p", pa.string())])
Rows = dict[int, tuple[int, int]]

BATCH = st.lists(st.tuples(st.integers(0, 9), st.integers(1_000, 9_000)), min_size=1, max_size=5)
STEP = st.one_of(
    st.tuples(st.just("write"), BATCH),
    st.tuples(st.just("write"), BATCH),
    st.tuples(st.just("plan"), st.integers(1_000, 9_000)),
    st.tuples(st.just("execute"), st.none()),
    st.tuples(st.just("rollback"), st.none()),
    st.tuples(st.just("unschedule"), st.none()),
    st.tuples(st.just("savepoint"), st.none()),
    st.tuples(st.just("restore"), st.none()),
    st.tuples(st.just("clean"), st.none()),
)


@dataclass
class Life:
    """A table and what is known of it. `held`: rows after each write, by instant, in order."""

    table: HudiTable
    session: Any
    held: dict[str, Rows] = field(default_factory=dict)
    saved: dict[str, Rows] = field(default_factory=dict)
    clock: int = 20_000
    number: int = 0

    @property
    def now(self) -> Rows:
        return next(reversed(self.held.values()), {})

    def do(self, step: str, value: Any) -> None:
        getattr(self, step)(value)
        assert self.rows() == self.now, step
        assert self.table.validate() == (), step

    def rows(self) -> Rows:
        tasks = self.table.snapshot_tasks()
        found = [(r["id"], (r["ts"], r["v"])) for r in rows_in(tasks)]
        assert len(found) == len(dict(found)), "a key comes twice"
        return dict(found)

    def write(self, batch: list[tuple[int, int]]) -> None:
        self.clock += 10
        self.number += 1
        values = [(k, ts, self.number * 100 + n) for n, (k, ts) in enumerate(batch)]
        rows = [{"id": k, "ts": ts, "v": v, "p": str(k % 2)} for k, ts, v in values]
        frame = self.session.frame(pa.Table.from_pylist(rows, SCHEMA))
        instant = self.table.upsert(self.session, frame, clock_time=datetime.fromtimestamp(self.clock, UTC)).instant
        assert instant is not None
        after = dict(self.now)
        for key, ts, v in values:
            if key not in after or after[key][0] <= ts:
                after[key] = (ts, v)
        self.held[instant] = after

    def plan(self, threshold: int) -> None:
        if self.held:
            self.table.plan_compaction(threshold=threshold)

    def execute(self, _: None) -> None:
        plan = self.table.pending_plan()
        if plan is not None:
            self.table.execute_compaction(self.session, plan.instant)

    def rollback(self, _: None) -> None:
        """The newest write or compaction, unless something builds on it: then nothing changes, with a reason."""
        newest = self.table.state().timeline.last_write
        if newest is None:
            return
        refusal = _refused(lambda: self.table.rollback(newest))
        if refusal is None:
            self.held.pop(newest, None)
        else:
            assert any(word in refusal for word in ("savepoint", "Unschedule", "cleaned")), refusal

    def unschedule(self, _: None) -> None:
        plan = self.table.pending_plan()
        if plan is None:
            return
        appended = [i for i in self.held if i > plan.instant]
        refusal = _refused(lambda: self.table.unschedule(plan.instant))
        if refusal is None:
            assert self.table.pending_plan() is None
        else:
            assert self.table.config.table_version == 6, refusal
            assert any(instant in refusal for instant in appended), refusal

    def savepoint(self, _: None) -> None:
        if self.held:
            self.saved[self.table.savepoint()] = self.now

    def restore(self, _: None) -> None:
        """The newest savepoint; after that the one before it can be restored as well."""
        if not self.saved:
            return
        instant = max(self.saved)
        self.table.restore(instant)
        self.held = {i: rows for i, rows in self.held.items() if i <= instant}
        assert self.rows() == self.saved.pop(instant)
        self.table.delete_savepoint(instant)

    def clean(self, _: None) -> None:
        self.table.clean(policy="KEEP_LATEST_FILE_VERSIONS", retained=1)


def _refused(action: Callable[[], object]) -> str | None:
    """Why an action was refused; None where it was done."""
    try:
        action()
    except InvalidInput as error:
        return str(error)
    return None


def _live(session: Any, steps: list[tuple[str, Any]], mode: str, version: int = 6) -> None:
    with tempfile.TemporaryDirectory() as folder:
        how = {"partition_fields": ["p"], "buckets": 1, "data_latency": "0s", "table_version": version}
        empty = created(Path(folder, "t"), SCHEMA, clock="commit", **how)
        table = HudiTable.open(empty.path, settings=carried_by(mode))
        life = Life(table, session)
        for step, value in steps:
            life.do(step, value)
        # And on: everything that is left is compacted and written to.
        life.do("execute", None)
        life.do("write", [(0, 9_500), (1, 500)])
        life.do("plan", 9_500)
        life.do("execute", None)


COMMON = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
WITHOUT_SHRINKING = (Phase.explicit, Phase.reuse, Phase.generate)


@pytest.mark.parametrize(("version", "mode"), [(6, "hardlink"), (6, "symlink"), (6, "copy"), (8, "auto"), (9, "auto")])
@settings(COMMON, max_examples=10, phases=WITHOUT_SHRINKING)
@given(steps=st.lists(STEP, min_size=4, max_size=14))
def test_what_is_taken_back(session: Any, version: int, mode: str, steps: list[tuple[str, Any]]) -> None:
    _live(session, steps, mode, version)


@pytest.mark.parametrize("version", [6, 9])
def test_a_compaction_between_savepoint_and_restore(session: Any, version: int) -> None:
    """The plan is older than the savepoint, its execution is not: the plan's compaction stays."""
    first = [(k, 1_000 + k) for k in range(4)]
    steps = [("write", first), ("write", [(k, 8_000) for k in range(4)]), ("plan", 2_000), ("write", [(0, 8_500)])]
    steps += [("savepoint", None), ("execute", None), ("write", [(1, 8_600)]), ("restore", None)]
    _live(session, steps, "auto", version)


def test_plan_type(session: Any) -> None:
    """The histories above do plan and carry over: otherwise they test little."""
    with tempfile.TemporaryDirectory() as folder:
        table = HudiTable.create(
            str(Path(folder, "t")), SCHEMA, record_key=["id"], ordering_field="ts", buckets=1, clock="commit"
        )
        life = Life(table, session)
        life.write([(0, 1_000)])
        life.write([(0, 8_000)])
        plan = table.plan_compaction(threshold=2_000)
        assert isinstance(plan, Plan)
        assert plan.operations[0].carried_over
