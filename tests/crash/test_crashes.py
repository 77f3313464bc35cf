"""A crash at every storage operation of a write, a plan and an execution: no answer changes, and the
next run repairs the table by itself.

Spark's tasks run in the test's process here, because a crash inside a worker cannot be placed otherwise;
what they do is the code that workers run.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_assets.engine import HudiTable
from hudi_assets.engine.model import CompactionResult, Plan
from hudi_assets.engine.queries.query import read_task
from hudi_assets.engine.storage import LocalStorage
from tests.crash.faulty import Crash, DyingStorage
from tests.local_session import Frame, LocalSession

THRESHOLD = 2_000
SCHEMA = pa.schema([("id", pa.int64()), ("ts", pa.int64()), ("v", pa.int64())])
Row = tuple[int, int, int]


def _frame(session: LocalSession, first: int, ts: int) -> Frame:
    rows = [{"id": i, "ts": ts + i, "v": i * 10 + ts} for i in range(first, first + 6)]
    return session.rows(rows, SCHEMA)


def _at(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)


@pytest.fixture(params=[6, pytest.param(8, marks=pytest.mark.slow), 9])
def path(session: LocalSession, tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """Two file groups with three log files each: two to compact at THRESHOLD, one that remains.

    Of the table version that the parameter says.
    """
    path = tmp_path / "table"
    table = HudiTable.create(
        str(path),
        SCHEMA,
        record_key=["id"],
        ordering_field="ts",
        buckets=2,
        clock="commit",
        data_latency="1s",
        table_version=request.param,
    )
    for number, ts in enumerate((1_000, 1_500, 9_000)):
        table.upsert(session, _frame(session, number * 2, ts), clock_time=_at(ts + 1_000))
    return path


def snapshot(table: HudiTable) -> set[Row]:
    rows = [(r["id"], r["ts"], r["v"]) for t in table.snapshot_tasks() for b in read_task(t) for r in b.to_pylist()]
    assert len(rows) == len({row[0] for row in rows})
    return set(rows)


def dying(path: Path, n: int | None, *, after: bool = False) -> tuple[HudiTable, DyingStorage]:
    storage = DyingStorage(str(path), n, after=after)
    return HudiTable(storage, HudiTable.open(str(path)).config), storage


def faults(path: Path, tmp_path: Path, action: Callable[[HudiTable], object]) -> Iterator[tuple[Path, str]]:
    """A copy of the table for each fault, after `action` died there; and what it died of."""
    rehearsal = shutil.copytree(path, tmp_path / "rehearsal")
    table, storage = dying(Path(rehearsal), None)
    action(table)
    assert len(storage.operations) > 3
    for n in range(1, len(storage.operations) + 1):
        for after in (False, True):
            copy = Path(shutil.copytree(path, tmp_path / f"fault-{n}-{after}"))
            victim, _ = dying(copy, n, after=after)
            with pytest.raises(Crash):
                action(victim)
            yield copy, f"operation {n} ({storage.operations[n - 1]}), {'after' if after else 'before'}"
            shutil.rmtree(copy)


def _links(table: HudiTable) -> list[str]:
    """Log files of an instant that is on no timeline: carried over for a plan that is not published."""
    state = table.state()
    known = {i.timestamp for i in state.timeline.instants}
    logs = [state.layout.parse_log_file(f, "") for files in state.listing.values() for f in files]
    return [log.path for log in logs if log is not None and log.base_instant not in known]


def no_strays(table: HudiTable) -> None:
    """Every log and base file belongs to a slice, and no scratch, marker or guard is left."""
    state = table.state()
    shown = {f.path for s in state.view.groups.values() for x in s for f in x.log_files}
    shown |= {x.base_file.path for s in state.view.groups.values() for x in s if x.base_file}
    on_disk = {f.path for files in state.listing.values() for f in files if not f.name.startswith(".hoodie")}
    assert on_disk == shown
    if not state.layout.carries_logs_over:  # there a log file is of the instant in its name
        dead = [log.path for log in state.remaining_logs if log.base_instant not in state.committed]
        assert dead == []
    assert LocalStorage(table.path).list_directories(".hoodie/.temp") == []


def test_write(session: LocalSession, path: Path, tmp_path: Path) -> None:
    before = snapshot(HudiTable.open(str(path)))
    batch = _frame(session, 3, 9_500)

    def write(table: HudiTable) -> None:
        table.upsert(session, batch, clock_time=_at(20_000), batch_id="b")

    reference = HudiTable.open(str(shutil.copytree(path, tmp_path / "reference")))
    write(reference)
    done = snapshot(reference)
    assert done != before
    for copy, where in faults(path, tmp_path, write):
        table = HudiTable.open(str(copy))
        assert snapshot(table) in (before, done), where
        write(table)  # the next run: repairs by itself, and is the same batch
        assert snapshot(table) == done, where
        table.recover()
        no_strays(table)
        # The dead attempt's would count as committed once the timeline's start has passed it.
        assert len(table.state().remaining_logs) == len(reference.state().remaining_logs), where


@pytest.mark.parametrize(
    ("path", "mode"), [(6, "hardlink"), (6, "symlink"), (6, "copy"), (9, "auto")], indirect=["path"]
)
def test_plan(session: LocalSession, path: Path, tmp_path: Path, mode: str) -> None:
    properties = path / ".hoodie/hoodie.properties"
    properties.write_text(properties.read_text() + f"hudi_assets.carry.over={mode}\n")
    before = snapshot(HudiTable.open(str(path)))

    def plan(table: HudiTable) -> None:
        assert isinstance(table.plan_compaction(threshold=THRESHOLD), Plan)

    for copy, where in faults(path, tmp_path, plan):
        table = HudiTable.open(str(copy))
        assert snapshot(table) == before, where
        if table.pending_plan() is None:
            if _links(table):
                # Apache Hudi's archiver would make a slice of them, were it not held back.
                assert table.state().guards, where
            # A look (the sensor's) is not held up by what the dead planner left.
            assert isinstance(table.plan_compaction(threshold=THRESHOLD, dry_run=True), Plan), where
        table.recover()
        assert snapshot(table) == before, where
        pending = table.pending_plan()
        if pending is None:
            no_strays(table)
            planned = table.plan_compaction(threshold=THRESHOLD)
            assert isinstance(planned, Plan), where
            pending = planned
        table.execute_compaction(session, pending.instant)
        assert snapshot(table) == before, where
        assert all(table.exists(c.link) for c in table.carried_over())
        no_strays(table)


def test_execute(session: LocalSession, path: Path, tmp_path: Path) -> None:
    table = HudiTable.open(str(path))
    before = snapshot(table)
    plan = table.plan_compaction(threshold=THRESHOLD)
    assert isinstance(plan, Plan)

    def execute(victim: HudiTable) -> CompactionResult:
        return victim.execute_compaction(session, plan.instant)

    for copy, where in faults(path, tmp_path, execute):
        table = HudiTable.open(str(copy))
        assert snapshot(table) == before, where
        if table.pending_plan() is not None:
            execute(table)
        assert snapshot(table) == before, where
        table.recover()
        no_strays(table)
        assert table.stats().pending == ()
