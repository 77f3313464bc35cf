"""A driver whose compaction loses an executor: `python -m tests.cluster.killed MASTER TABLE VERSION`.

The first attempt of one task kills the executor that it runs in (kill -9), right after it has written its base file.
The file is there, and nobody is told of it. Prints a line of JSON.
"""

from __future__ import annotations

import functools
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark import TaskContext
from pyspark.sql import SparkSession

from hudi_assets.engine import HudiTable
from hudi_assets.engine.actions.compaction import executor
from hudi_assets.engine.model import Plan
from tests.cluster.driver import GROUPS, SETTINGS, files, rows, staged


def lost(work: Callable[..., Any], spec: Any, *args: Any) -> Any:
    """`work`, and the end of this executor for the first attempt of one task."""
    done = work(spec, *args)
    context = TaskContext.get()
    if context is not None and context.partitionId() == 0 and context.attemptNumber() == 0:
        java = executor_of_this_worker()
        base = Path(spec.reader.storage.base)
        mine = [path for path in (base / ".hoodie/.aux/hudi_assets/attempts").rglob("*") if path.is_file()]
        Path(f"{base}.killed").write_text(str(len(mine)))
        os.kill(java, signal.SIGKILL)
        time.sleep(60)  # what it gives back is for nobody
    return done


def executor_of_this_worker() -> int:
    """A worker is a child of PySpark's daemon, and that is a child of the executor."""
    daemon = os.getppid()
    java = int(Path(f"/proc/{daemon}/stat").read_text().rpartition(")")[2].split()[1])
    assert b"CoarseGrainedExecutorBackend" in Path(f"/proc/{java}/cmdline").read_bytes()
    return java


def main(master: str, path: str, version: int) -> None:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.Builder().appName("killed").master(master)
    for key, value in {**SETTINGS, "spark.speculation": "false"}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    executor.execute_operation = functools.partial(lost, executor.execute_operation)  # type: ignore[attr-defined]
    table = HudiTable.create(
        path,
        rows(spark, 0, 1).schema,
        record_key=["id"],
        ordering_field="ts",
        event_time_unit="ms",
        buckets=GROUPS,
        data_latency="1s",
        table_version=version,
    )
    for first in (0, 500):
        table.upsert(spark, rows(spark, first, 2_000))
    plan = table.plan_compaction()
    assert isinstance(plan, Plan), plan
    table.execute_compaction(spark, plan.instant)
    said: dict[str, Any] = {
        "written_by_then": int(Path(f"{path}.killed").read_text()) > 0,
        "base_files": sum(name.endswith(".parquet") for name in files(table)),
        "staged": len(staged(table)),
        "found": [finding.kind for finding in table.validate()],
        "read_optimized": table.read_optimized(spark).count(),
    }
    table.upsert(spark, rows(spark, 0, 10))
    said["rows"] = table.snapshot(spark).count()
    print(json.dumps(said), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
