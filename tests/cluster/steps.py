"""A driver that takes a table through its actions: `python -m tests.cluster.steps MASTER TABLE THRESHOLD [KEY=VALUE…]`.

PYSPARK_PYTHON names the workers' Python. MASTER may be a Spark Connect server: `archive=FILE` is sent to it.
Prints a line of JSON for each action: what it gave, or how it was refused.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

from pyspark.sql import SparkSession

from hudi_assets.engine import HudiAssetsError, HudiTable, connected_session

SETTINGS = {
    "spark.driver.memory": "600m",
    "spark.executor.memory": "600m",
    "spark.executor.cores": "1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "4",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.log.level": "ERROR",
}


def session_of(master: str, settings: list[str]) -> SparkSession:
    if master.startswith("sc://"):
        return connected(master, *settings)
    builder = SparkSession.Builder().appName("steps").master(master)
    for key, value in {**SETTINGS, **dict(text.split("=", 1) for text in settings)}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def connected(url: str, archive: str = "") -> SparkSession:
    spark = connected_session(url)
    if archive:
        spark.addArtifacts(archive.removeprefix("archive="), archive=True)
        spark.conf.set("spark.sql.execution.pyspark.python", "environment/bin/python")
    return spark


def main(master: str, path: str, threshold: str, *settings: str) -> None:
    spark = session_of(master, list(settings))
    table = HudiTable.open(path)

    def compact() -> int:
        series: Any = table.compact(spark, threshold=threshold)
        return len(series.compactions)

    rows = spark.sql("SELECT 'n' || id AS id, 1700000000000 + id * 1000 AS ts FROM range(0, 40, 1, 4)")
    steps: dict[str, Callable[[], Any]] = {
        "snapshot before": lambda: table.snapshot(spark).count(),
        "upsert": lambda: table.upsert(spark, rows).rows,
        "delete": lambda: table.delete(spark, rows.where("id = 'n1'").select("id")).rows,
        "compact": compact,
        "log files left": lambda: sum(len(one.log_files) for one in table.state().view.latest),
        "read_optimized": lambda: table.read_optimized(spark).count(),
        "incremental": lambda: table.incremental(spark, "earliest").count(),
        "snapshot": lambda: table.snapshot(spark).count(),
    }
    for name, step in steps.items():
        line: dict[str, Any] = {"action": name}
        try:
            line["gave"] = step()
        except HudiAssetsError as error:
            line |= {"refused": str(error), "kind": type(error).__name__}
        print(json.dumps(line), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
