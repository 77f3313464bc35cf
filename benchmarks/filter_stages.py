"""What a filter on a partition column saves, in the snapshot and in the read-optimized view.

    scripts/with-env python -m benchmarks.filter_stages [--rows 2000000] [--runs 5]

The table is that of `make bench` after its first upsert, but partitioned by rider: 1,000 partitions, each with one
base file and one log file. Each line asks the same question (count, two sums, a maximum) in the same Spark session, on
two cores; the table is opened and listed each time. Medians of the runs after two that warm up, in turn.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.data import Work
from benchmarks.ours import Ours
from benchmarks.stages import Stage, main

_ONE = "rider = 'rider-7'"


@dataclass(frozen=True)
class Stages:
    """Queries of all partitions and of one."""

    spark: Any
    work: Work
    table: Path
    base_files: list[str]
    schema: Any

    def snapshot(self, path: Path) -> None:
        """The snapshot view, all partitions."""
        self._ask(self._opened().snapshot(self.spark))

    def snapshot_of_one(self, path: Path) -> None:
        """The snapshot view of one partition."""
        self._ask(self._opened().snapshot(self.spark).where(_ONE))

    def read_optimized(self, path: Path) -> None:
        """The read-optimized view, all partitions."""
        self._ask(self._opened().read_optimized(self.spark))

    def read_optimized_of_one(self, path: Path) -> None:
        """The read-optimized view of one partition."""
        self._ask(self._opened().read_optimized(self.spark).where(_ONE))

    def files(self, path: Path) -> None:
        """spark.read.schema(…).parquet of the view's files, whose names and schema are known beforehand."""
        self._ask(self._files())

    def files_of_one(self, path: Path) -> None:
        """The same, where Spark finds the partition by the files' footers."""
        self._ask(self._files().where(_ONE))

    def _opened(self) -> Any:
        return Ours(self.spark, self.work).open(self.table)

    def _files(self) -> Any:
        return self.spark.read.schema(self.schema).parquet(*self.base_files)

    def _ask(self, frame: Any) -> None:
        assert frame.selectExpr(*self.work.expressions).collect()[0][0]

    @property
    def all(self) -> dict[str, Stage]:
        return {
            "snapshot": self.snapshot,
            "snapshot, one partition": self.snapshot_of_one,
            "read-optimized": self.read_optimized,
            "read-optimized, one partition": self.read_optimized_of_one,
            "spark.read.parquet": self.files,
            "spark.read.parquet, one partition": self.files_of_one,
        }


def made(spark: Any, work: Work, folder: Path) -> Stages:
    work = replace(work, partition_fields=("rider",), buckets=1)
    ours, table = Ours(spark, work), folder / "table"
    ours.load(table, work.load)
    ours.upsert(table, work.upserts[0])
    schema = ours.open(table).read_optimized(spark).schema
    return Stages(spark, work, table, ours.read_optimized_files(table), schema)


if __name__ == "__main__":
    main(
        "filter_stages",
        __doc__ or "",
        lambda spark, work, folder: made(spark, work, folder).all,
        runs=5,
        warm_ups=2,
    )
