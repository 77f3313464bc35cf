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
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from hudi_assets.engine import HudiTable
from hudi_assets.engine import spark as seam
from hudi_assets.engine.model import CompactionResult, Plan
from hudi_assets.engine.query import read_task
from hudi_assets.engine.storage import LocalStorage
from tests.crash.faulty import Crash, DyingStorage

pytestmark = [pytest.mark.spark, pytest.mark.slow]
THRESHOLD = 2_000
Row = tuple[int, int, int]


@pytest.fixture(autouse=True)
def _tasks_in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def run_tasks(session: SparkSession, function: Callable[[Any], Any], tasks: Any) -> list[Any]:
        return [function(task) for task in tasks]

    def map_partitions(frame: DataFrame, function: Callable[..., Any]) -> list[Any]:
        return [function(iter(frame.toArrow().to_batches()), "0-0-0")]

    monkeypatch.setattr(seam, "run_tasks", run_tasks)
    monkeypatch.setattr(seam, "map_partitions", map_partitions)


def _frame(spark: SparkSession, first: int, ts: int) -> DataFrame:
    return spark.createDataFrame(
        [(i, ts + i, i * 10 + ts) for i in range(first, first + 6)], "id long, ts long, v long"
    )


def _at(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)


@pytest.fixture(scope="module")
def seed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two file groups with three log files each: two to compact at THRESHOLD, one to carry over."""
    path = tmp_path_factory.mktemp("seed") / "table"
    schema = _frame(spark, 0, 0).schema
    table = HudiTable.create(
        str(path),
        schema,
        record_key=["id"],
        ordering_field="ts",
        buckets=2,
        clock="commit",
        data_latency="1s",
    )
    for number, ts in enumerate((1_000, 1_500, 9_000)):
        table.upsert(spark, _frame(spark, number * 2, ts), clock_time=_at(ts + 1_000))
    return path


@pytest.fixture
def path(seed: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(seed, tmp_path / "table"))


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


def no_strays(table: HudiTable) -> None:
    """Every log and base file belongs to a slice, and no scratch, marker or guard is left."""
    state = table.state()
    shown = {f.path for s in state.view.groups.values() for x in s for f in x.log_files}
    shown |= {x.base_file.path for s in state.view.groups.values() for x in s if x.base_file}
    on_disk = {f.path for files in state.listing.values() for f in files if not f.name.startswith(".hoodie")}
    assert on_disk == shown
    assert LocalStorage(table.path).list_directories(".hoodie/.temp") == []


def test_write(spark: SparkSession, path: Path, tmp_path: Path) -> None:
    before = snapshot(HudiTable.open(str(path)))
    batch = _frame(spark, 3, 9_500)

    def write(table: HudiTable) -> None:
        table.upsert(spark, batch, clock_time=_at(20_000), batch_id="b")

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


@pytest.mark.parametrize("mode", ["hardlink", "symlink", "copy"])
def test_plan(spark: SparkSession, path: Path, tmp_path: Path, mode: str) -> None:
    properties = path / ".hoodie/hoodie.properties"
    properties.write_text(properties.read_text() + f"hudi_assets.carry.over={mode}\n")
    before = snapshot(HudiTable.open(str(path)))

    def plan(table: HudiTable) -> None:
        assert isinstance(table.plan_compaction(threshold=THRESHOLD), Plan)

    for copy, where in faults(path, tmp_path, plan):
        table = HudiTable.open(str(copy))
        assert snapshot(table) == before, where
        if table.pending_plan() is None:
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
        table.execute_compaction(spark, pending.instant)
        assert snapshot(table) == before, where
        assert all(table.exists(c.link) for c in table.carried_over())
        no_strays(table)


def test_execute(spark: SparkSession, path: Path, tmp_path: Path) -> None:
    table = HudiTable.open(str(path))
    before = snapshot(table)
    plan = table.plan_compaction(threshold=THRESHOLD)
    assert isinstance(plan, Plan)

    def execute(victim: HudiTable) -> CompactionResult:
        return victim.execute_compaction(spark, plan.instant)

    for copy, where in faults(path, tmp_path, execute):
        table = HudiTable.open(str(copy))
        assert snapshot(table) == before, where
        if table.pending_plan() is not None:
            execute(table)
        assert snapshot(table) == before, where
        table.recover()
        no_strays(table)
        assert table.stats().pending == ()
