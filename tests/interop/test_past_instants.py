"""Versions 8 and 9 beside Apache Hudi 1.2.0: what we take back and repair, Hudi reads and goes on from; and where
the rules for a plan's past instant come from: what Hudi answers where one is broken.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hudi_assets.engine import HudiTable
from hudi_assets.engine.model import Plan
from hudi_assets.engine.timeline.instants import format_instant, instant_ms
from scripts.hudi_client import Hudi
from scripts.hudi_rows import Rows, by_key
from tests.crash.faulty import Crash, DyingStorage
from tests.interop.tables import Shape, planned, rows
from tests.interop.test_queries_v9 import Beside, at_version
from tests.tables.local_session import LocalSession

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]
VERSION = "9"


class Table:
    """A table of ours that both engines write."""

    def __init__(self, path: Path, session: LocalSession, hudi: Hudi, options: dict[str, Any] | None = None) -> None:
        self.table = Shape(options={"table_version": int(VERSION), **(options or {})}).create(path)
        self.session: Any = session
        self.hudi = hudi
        self.beside = Beside(self.table, hudi)
        self.written: list[str] = []

    @property
    def timeline(self) -> Path:
        return Path(self.table.path, ".hoodie/timeline")

    def upsert(self, numbers: list[int], minute: float, mark: int) -> str:
        frame = self.session.frame(rows(numbers, lambda n: minute + n / 100, mark))
        instant = self.table.upsert(self.session, frame).instant
        assert instant is not None
        self.written.append(instant)
        return instant

    def hudi_upserts(self, numbers: list[int], minute: float, mark: int, **options: str) -> None:
        given = at_version(VERSION) | {"hoodie.table.name": self.table.config.name} | options
        self.hudi.write(self.table.path, rows(numbers, lambda n: minute + n / 100, mark), given)

    def execute(self, plan: Plan) -> None:
        self.table.execute_compaction(self.session, plan.instant)

    def actions(self) -> list[tuple[str, str]]:
        """(action, state) of what is on the timeline by Hudi's classes."""
        return [(action, state) for _, action, state in self.hudi.timeline(self.table.path)]

    def goes_on(self, expected: Rows, step: str) -> None:
        """All readers have these rows; Hudi writes, we compact, Hudi compacts the rest: they still agree."""
        assert self.beside.views(step) == expected, step
        self.hudi_upserts([1, 40], 200, 7)
        after = self.beside.views(f"{step}, Hudi wrote")
        assert {key for _, key in after} == {key for _, key in expected} | {"k1", "k40"}
        self.execute(planned(self.table, 190))
        assert self.beside.views(f"{step}, we compacted") == after
        self.hudi.compaction(self.table.path, "run")
        assert self.beside.views(f"{step}, Hudi compacted") == after
        assert not self.table.validate()


@pytest.fixture
def both(path: Path, session: LocalSession, hudi_1_2: Hudi) -> Table:
    """Event times of minutes 0, 30 and 60, in every file group."""
    both = Table(path, session, hudi_1_2)
    for minute, mark in ((0, 0), (30, 1), (60, 2)):
        both.upsert(list(range(12)) if mark == 0 else [mark, mark + 3, *range(6, 12)], minute, mark)
    return both


# ------------------------------------------------------------------------------- ours, read by Hudi


def test_our_rollbacks(both: Table) -> None:
    """Of a write, then of a compaction below a later write."""
    before = both.beside.views("before")
    both.table.rollback(both.upsert([0, 1, 20, 21], 70, 3))
    assert both.actions()[-1] == ("rollback", "COMPLETED")
    assert both.beside.views("the write rolled back") == before
    plan = planned(both.table, 45)
    assert plan.instant < both.written[2]
    both.execute(plan)
    both.hudi_upserts([2, 30], 80, 4)
    with_it = both.beside.views("compacted, and Hudi wrote")
    both.table.rollback(plan.instant)
    assert not list(Path(both.table.path).rglob(f"*_{plan.instant}.parquet"))
    both.goes_on(with_it, "the compaction rolled back")


def test_our_unschedule(both: Table) -> None:
    """What Hudi appended beside the plan is in the old slice again."""
    plan = planned(both.table, 45)
    both.hudi_upserts([2, 30], 80, 4)
    before = both.beside.views("planned, and Hudi wrote", hudi_rs=False)
    both.table.unschedule(plan.instant)
    assert ("compaction", "REQUESTED") not in both.actions()
    both.goes_on(before, "unscheduled")


def test_our_restore(both: Table) -> None:
    """A compaction at an instant before the savepoint stays, one after it goes; Hudi reads both right."""
    before = both.beside.views("before")
    savepoint = both.table.savepoint()
    early = planned(both.table, 45)
    both.execute(early)
    both.upsert([0, 1, 20, 21], 70, 3)
    both.hudi_upserts([0, 30], 80, 4)
    late = planned(both.table, 75)
    assert early.instant < savepoint < late.instant
    both.execute(late)
    both.table.restore(savepoint)
    both.table.delete_savepoint(savepoint)
    assert both.actions()[-1] == ("restore", "COMPLETED")
    both.goes_on(before, "restored")


class DiesCompleting(DyingStorage):
    """Dead once the file is due that would complete an action."""

    def __init__(self, base: str, action: str) -> None:
        super().__init__(base)
        self._action = action

    def __getattr__(self, name: str) -> Any:
        real = super().__getattr__(name)
        if name != "create":
            return real

        def create(path: str, data: bytes) -> Any:
            self.dead = self.dead or path.endswith(f".{self._action}")
            return real(path, data)

        return create


def dying(both: Table, action: str) -> HudiTable:
    storage: Any = DiesCompleting(both.table.path, action)
    return HudiTable(storage, both.table.config)


def test_hudi_executes_what_we_died_of(both: Table) -> None:
    """Our attempt at a plan dies before its commit; Hudi takes it back and executes the plan itself."""
    before = both.beside.views("before")
    plan = planned(both.table, 45)
    with pytest.raises(Crash):
        dying(both, "commit").execute_compaction(both.session, plan.instant)
    assert list(Path(both.table.path).rglob(f"*_{plan.instant}.parquet")), "nothing was left"
    both.hudi.compaction(both.table.path, "run")
    assert (plan.instant, "commit", "COMPLETED") in both.hudi.timeline(both.table.path)
    for folder in Path(both.table.path).glob("p=*"):
        groups = [p.name.split("_")[0] for p in folder.glob(f"*_{plan.instant}.parquet")]
        assert len(groups) == len(set(groups)), "a slice has two base files"
    both.goes_on(before, "executed by Hudi")


def test_hudi_takes_our_dead_write_back(both: Table) -> None:
    """Our write dies before its commit; Hudi's next write rolls it back, log files and all."""
    before = both.beside.views("before")
    frame = both.session.frame(rows([0, 1, 20], lambda n: 70, 3))
    with pytest.raises(Crash):
        dying(both, "deltacommit").upsert(both.session, frame)
    (dead,) = (i for i, _, state in both.hudi.timeline(both.table.path) if state == "INFLIGHT")
    assert list(Path(both.table.path).rglob(f".*_{dead}.log.*"))
    assert both.beside.views("dead write") == before
    both.hudi_upserts([2], 80, 4)
    assert not list(Path(both.table.path).rglob(f".*_{dead}.log.*"))
    assert ("rollback", "COMPLETED") in both.actions()
    after = both.beside.views("taken back by Hudi")
    assert {key for _, key in after} == {key for _, key in before}
    both.goes_on(after, "taken back by Hudi")


# ------------------------------------------------------------------------------- the rules, broken


def _moved(instant: str, ms: int) -> str:
    return format_instant(instant_ms(instant, "UTC") + ms, "UTC")


def _as_of(both: Table, instant: str) -> Rows:
    return by_key(both.hudi.read(both.table.path, "time_travel", as_of=instant))


@pytest.mark.slow
def test_an_instant_above_the_requested_time_of_what_is_kept_loses_rows(both: Table) -> None:
    """Hudi, asked as of a kept write below the plan's instant, does not find it in the old slice any more."""
    kept = both.written[2]
    whole = _as_of(both, kept)
    plan = planned(both.table, 45)
    above = _moved(kept, 1)
    assert above < both.table.state().timeline.completions[kept]
    requested = both.timeline / f"{plan.instant}.compaction.requested"
    requested.rename(requested.with_name(f"{above}.compaction.requested"))
    assert _as_of(both, kept) != whole, "pending"
    both.hudi.compaction(both.table.path, "run")
    assert _as_of(both, kept) != whole, "executed"


@pytest.mark.slow
def test_a_file_of_no_instant_counts_once_the_start_has_passed_it(both: Table) -> None:
    """A log file that a rollback did not find: Hudi shows its rows after archiving. `recover` removes it before."""
    dead = both.upsert([0, 60], 65, 3)
    log = [path for path in Path(both.table.path).rglob(f".*_{dead}.log.*") if path.suffix != ".crc"]
    kept = {path: path.read_bytes() for path in log}
    both.table.rollback(dead)
    before = both.beside.views("rolled back")
    for path, data in kept.items():
        path.write_bytes(data)
    assert by_key(both.hudi.read(both.table.path, "snapshot")) == before
    assert set(both.table.stats().orphans) == {str(path.relative_to(both.table.path)) for path in kept}
    small = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.cleaner.commits.retained": "1"}
    for number in range(5):
        both.hudi_upserts([number], 80 + number, 5, **small, **{"hoodie.archive.automatic": "true"})
    start = both.table.state().timeline.start
    assert start is not None
    assert start > dead, "too little was archived"
    shown = by_key(both.hudi.read(both.table.path, "snapshot"))
    assert {key for _, key in shown} - {key for _, key in before} == {"k60"}
