"""This engine's part: the calls that a user would write."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from benchmarks.data import Work
from hudi_assets.engine import HudiTable, NoPlan
from hudi_assets.engine.spark.start import local_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def session(memory: str, jars: Sequence[Path] = ()) -> SparkSession:
    """Spark on two cores, as the peers have it."""
    config = {"spark.driver.memory": memory, "spark.ui.showConsoleProgress": "false"}
    if jars:
        config["spark.jars"] = ",".join(map(str, jars))
    return local_session("bench", master="local[2]", config=config)


class Ours:
    """Tables that this engine makes, and those of Apache Hudi that it takes over."""

    name = "hudi-assets"

    def __init__(self, spark: SparkSession, work: Work) -> None:
        self._spark = spark
        self._work = work

    def open(self, path: Path | str) -> HudiTable:
        settings = {"hudi_assets.writers": "stopped", "hoodie.payload.event.time.field": self._work.ordering_field}
        if self._work.event_time_unit:
            settings["hudi_assets.event.time.unit"] = self._work.event_time_unit
        return HudiTable.open(str(path), settings=settings)

    def load(self, path: Path | str, rows: Path) -> None:
        """A new table whose rows the read-optimized view shows: written into base files."""
        work = self._work
        table = HudiTable.create(
            str(path),
            pq.read_schema(rows),
            record_key=list(work.record_key),
            ordering_field=work.ordering_field,
            partition_fields=list(work.partition_fields),
            buckets=work.buckets,
            event_time_unit=work.event_time_unit,
        )
        table.bulk_insert(self._spark, self._spark.read.parquet(str(rows)))

    def upsert(self, path: Path | str, rows: Path) -> None:
        self.open(path).upsert(self._spark, self._spark.read.parquet(str(rows)))

    def compact(self, path: Path | str, threshold: int | None = None) -> None:
        """Plan and execute: what lies at or below a threshold (epoch ms), by default everything."""
        table = self.open(path)
        latency = "0s" if threshold is None else None
        plan = table.plan_compaction(threshold=threshold, data_latency=latency)
        assert not isinstance(plan, NoPlan), plan.reason
        table.execute_compaction(self._spark, plan.instant)

    def snapshot(self, path: Path | str) -> tuple[Any, ...]:
        return self._asked(self.open(path).snapshot(self._spark))

    def read_optimized(self, path: Path | str) -> tuple[Any, ...]:
        return self._asked(self.open(path).read_optimized(self._spark))

    def incremental(self, path: Path) -> tuple[Any, ...]:
        """What the last commit wrote."""
        return self._asked(self.open(path).incremental(self._spark, self._last_but_one(path)))

    def _asked(self, frame: DataFrame) -> tuple[Any, ...]:
        return tuple(frame.selectExpr(*self._work.expressions).collect()[0])

    def _last_but_one(self, path: Path) -> str:
        return sorted(path.glob(".hoodie/*.deltacommit"))[-2].stem

    def read_optimized_files(self, path: Path | str) -> list[str]:
        return self.open(path).read_optimized_files()

    def plain_parquet(self, files: list[str]) -> tuple[Any, ...]:
        """Spark's own reader on files whose names are known beforehand."""
        return self._asked(self._spark.read.parquet(*files))
