"""A process of the tests: a table in a bucket, written and asked by a real Spark. Its last line says what it found.

python queries_by_spark.py PATH JARS EVENT_LOG [SETTING=VALUE…]
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hudi_assets.catalog.publishing import Names
from hudi_assets.catalog.spark_sql import properties_by_spark, publish_by_spark
from hudi_assets.engine import HudiAssetsError, HudiTable, local_session, problem_of
from hudi_assets.engine.model import Action
from tests.tables.steps import at, planned

logging.basicConfig(level=logging.WARNING)


def rows(spark: Any, first: int, ts: int) -> Any:
    values = [(f"k{i}", "ab"[i % 2], ts + i, i) for i in range(first, first + 6)]
    return spark.createDataFrame(values, "id string, p string, ts long, v long")


def written(spark: Any, path: str) -> HudiTable:
    table = HudiTable.create(
        path,
        rows(spark, 0, 0).schema,
        record_key=["id"],
        ordering_field="ts",
        partition_fields=["p"],
        buckets=1,
        clock="commit",
        data_latency="1s",
        table_version=9,
    )
    for first, ts in ((0, 1_000), (3, 2_000)):
        table.upsert(spark, rows(spark, first, ts), clock_time=at(ts + 2_000))
    table.execute_compaction(spark, planned(table, 3_000).instant)
    table.upsert(spark, rows(spark, 6, 9_000), clock_time=at(11_000))
    return HudiTable.open(path)


def asked(table: HudiTable, spark: Any) -> dict[str, Callable[[], Any]]:
    """Each query as users ask it."""
    writes = [instant.timestamp for instant in table.state().timeline.completed(Action.DELTA_COMMIT)]
    other = table.path.replace("s3://", "s3a://") if table.path.startswith("s3://") else table.path
    source: dict[str, Callable[[], Any]] = {}
    if int(spark.version.split(".")[0]) >= 4:
        option = "hoodie.datasource.query.type"
        source = {
            "source snapshot": lambda: spark.read.format("hudi_assets").load(other),
            "source ro": lambda: spark.read.format("hudi_assets").option(option, "read_optimized").load(other),
            "source as of": lambda: spark.read.format("hudi_assets").option("as.of.instant", writes[1]).load(other),
        }
    return {
        "snapshot": lambda: table.snapshot(spark),
        "ro": lambda: table.read_optimized(spark),
        "ro filtered": lambda: table.read_optimized(spark, columns=["id", "ts", "p"]).where("p = 'a'"),
        "snapshot filtered": lambda: table.snapshot(spark).where("p = 'a'"),
        "as of": lambda: table.time_travel(spark, writes[1]),
        "incremental": lambda: table.incremental(spark, writes[-1]),
        "files": lambda: spark.read.parquet(*table.read_optimized_files()),
        **source,
    }


def found(frame: Any) -> list[list[Any]]:
    return sorted([row["id"], row["ts"]] for row in frame.select("id", "ts").collect())


def main() -> None:
    path, jars, events, *settings = sys.argv[1:]
    config = {
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": f"{events}/warehouse",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": f"file://{events}",
        "spark.driver.extraJavaOptions": f"-Dderby.system.home={events}",
        **dict(setting.split("=", 1) for setting in settings),
    }
    spark: Any = local_session("stores", "local[2]", config | ({"spark.jars": jars} if jars else {}))
    table = written(spark, path)
    answers: dict[str, Any] = {"rows": table.read_optimized_rows()}
    for name, ask in asked(table, spark).items():
        try:
            frame = ask()
            answers[name] = found(frame)
            Path(events, f"{name}.plan".replace(" ", "_")).write_text(
                frame._jdf.queryExecution().toString(), encoding="utf-8"
            )
        except Exception as error:
            answers[name] = str(problem_of(error) or error)
    names = Names("default", "t_ro", "t_rt")
    try:
        publish_by_spark(spark, table, names)
        answers["view ro"] = found(spark.table("t_ro"))
        answers["properties"] = properties_by_spark(spark, "default", "t_ro")
        if int(spark.version.split(".")[0]) >= 4:
            answers["view rt"] = found(spark.table("t_rt"))
        publish_by_spark(spark, HudiTable.open(path.replace("s3://", "s3a://")), names)  # the same table's view
    except HudiAssetsError as error:
        answers["view ro"] = str(error)
    spark.stop()
    print("\nfound " + json.dumps(answers))


if __name__ == "__main__":
    main()
