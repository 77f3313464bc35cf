"""A driver on a cluster with speculation: `python -m tests.cluster.driver MASTER TABLE VERSION COMPACTIONS`.

The first attempt of one task of each write and of each compaction waits until its instant is completed, then does its
work: an attempt that lost, and that Spark could not kill in time. Prints a line of JSON for each such action.
"""

from __future__ import annotations

import functools
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark import TaskContext
from pyspark.sql import SparkSession

from hudi_assets.engine import HudiTable
from hudi_assets.engine.actions.compaction import executor
from hudi_assets.engine.actions.writing import delta_commit as writer
from hudi_assets.engine.model import Plan

GROUPS = 10
DELAYED = 0  # the task whose first attempt is late
WAIT_S = 120.0
PROJECT = str(Path(__file__).resolve().parents[2])
SETTINGS = {
    "spark.speculation": "true",
    "spark.speculation.interval": "50ms",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.quantile": "0.3",
    "spark.speculation.minTaskRuntime": "300ms",
    # An attempt that lost is killed in the end: here not before it has written.
    "spark.python.task.killTimeout": f"{WAIT_S:.0f}s",
    "spark.driver.memory": "600m",
    "spark.executor.memory": "600m",
    "spark.executor.cores": "1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": str(GROUPS),
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.executorEnv.PYTHONPATH": PROJECT,
    "spark.log.level": "ERROR",
}


def is_completed(table: str, instant: str) -> bool:
    names = (name for folder in (".hoodie", ".hoodie/timeline") for name in _names(f"{table}/{folder}"))
    return any(name.startswith(instant) and name.endswith((".commit", ".deltacommit")) for name in names)


def _names(folder: str) -> list[str]:
    return os.listdir(folder) if os.path.isdir(folder) else []


def late(work: Callable[..., Any], spec: Any, *args: Any) -> Any:
    """`work`, by the first attempt of one task only once the instant is completed; that attempt then says so."""
    context = TaskContext.get()
    if context is None or context.partitionId() != DELAYED or context.attemptNumber() != 0:
        return work(spec, *args)
    storage = spec.reader.storage if hasattr(spec, "reader") else spec.storage
    end = time.monotonic() + WAIT_S
    while not is_completed(storage.base, spec.instant) and time.monotonic() < end:
        time.sleep(0.02)
    was_late = is_completed(storage.base, spec.instant)
    try:
        return work(spec, *args)
    finally:
        said = Path(f"{storage.base}.late", spec.instant)
        said.parent.mkdir(exist_ok=True)
        said.with_suffix(".tmp").write_text("late" if was_late else "in time")
        said.with_suffix(".tmp").rename(said)


def rows(spark: SparkSession, first: int, count: int) -> Any:
    return spark.sql(
        f"SELECT id, 1700000000000 + id * 1000 ts, id % 7 v FROM range({first}, {first + count}, 1, {GROUPS})"
    )


def files(table: HudiTable) -> list[str]:
    listing = table.state().listing
    return sorted(file.path for found in listing.values() for file in found if not file.name.startswith(".hoodie"))


def staged(table: HudiTable) -> set[str]:
    folder = Path(table.path, ".hoodie/.aux/hudi_assets/attempts")
    return {str(path) for path in folder.rglob("*") if path.is_file()}


def after(table: HudiTable, what: str, instant: str, before: list[str], left: set[str]) -> set[str]:
    """Wait for the late attempt of an action, say what it left, and give that.

    `before`: the files at the action's end; `left`: what the attempt of the action before had left.
    """
    said = Path(f"{table.path}.late", instant)
    end = time.monotonic() + WAIT_S
    while not said.exists() and time.monotonic() < end:
        time.sleep(0.02)
    line = {
        "action": what,
        "attempt": said.read_text() if said.exists() else "never ended",
        "new_files": sorted({*files(table)} - {*before}),
        "staged": len(now := staged(table)),
        "left_of_before": len(left & now),
        "found": sorted({finding.kind for finding in table.validate()}),
    }
    print(json.dumps(line), flush=True)
    return now


def main(master: str, path: str, version: int, compactions: int) -> None:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.Builder().appName("speculation").master(master)
    for key, value in SETTINGS.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    executor.execute_operation = functools.partial(late, executor.execute_operation)  # type: ignore[attr-defined]
    writer.write_rows = functools.partial(late, writer.write_rows)  # type: ignore[attr-defined]
    frame = rows(spark, 0, 1)
    table = HudiTable.create(
        path,
        frame.schema,
        record_key=["id"],
        ordering_field="ts",
        event_time_unit="ms",
        buckets=GROUPS,
        data_latency="1s",
        table_version=version,
    )
    left: set[str] = set()
    for number in range(compactions):
        for _ in range(2):
            wrote = table.upsert(spark, rows(spark, number * 500, 2_000)).instant
            assert wrote is not None
            left = after(table, "upsert", wrote, files(table), left)
        plan = table.plan_compaction()
        assert isinstance(plan, Plan), plan
        assert len(plan.operations) == GROUPS
        table.execute_compaction(spark, plan.instant)
        left = after(table, "compaction", plan.instant, files(table), left)
    table.recover()
    last = {
        "action": "end",
        "rows": table.snapshot(spark).count(),
        "read_optimized": table.read_optimized(spark).count(),
        "expected": 2_000 + (compactions - 1) * 500,
        "found": [finding.kind for finding in table.validate()],
        "staged": len(staged(table)),
    }
    print(json.dumps(last), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
