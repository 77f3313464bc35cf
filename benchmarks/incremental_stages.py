"""What an incremental query of the last commit takes, beside Spark alone and Python workers alone on the same rows.

    scripts/with-env python -m benchmarks.incremental_stages [--rows 2000000] [--runs 15]

The table is that of `make bench`: a load, then eight upserts of a tenth. Each line asks the same question (count, two
sums, a maximum) in the same Spark session, on two cores; medians of the runs after ten that warm up, in turn.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.data import Work
from benchmarks.ours import Ours
from benchmarks.scenarios import SHORT_WARM_UPS
from benchmarks.stages import Stage, main
from hudi_assets.engine.spark import session as spark_session
from hudi_assets.engine.spark.partitions import Places

_TASKS = 2
_PLACES = Places((), ((),), ((0, 0),) * _TASKS)  # no partitions, and next to no bytes


@dataclass(frozen=True)
class Stages:
    """Ways to the same question. `rows`: a Parquet file of the rows that the last commit wrote, as it shows them."""

    spark: Any
    work: Work
    table: Path
    rows: Path

    def nothing(self, path: Path) -> None:
        """Tasks of Python workers that yield no row: what Spark takes to plan and run the query at all."""
        self._ask(
            spark_session.frame_from_tasks(
                self.spark, lambda task, names: iter(()), range(_TASKS), self._schema, _PLACES
            )
        )

    def workers(self, path: Path) -> None:
        """The same rows out of Parquet files by pyarrow, in Python workers: and to hand them over."""
        file = str(self.rows)

        def read(task: int, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
            rows = pq.read_table(file, columns=list(names), use_threads=False)
            share = -(-len(rows) // _TASKS)
            yield from rows.slice(task * share, share).to_batches(1 << 14)

        self._ask(spark_session.frame_from_tasks(self.spark, read, range(_TASKS), self._schema, _PLACES))

    def incremental(self, path: Path) -> None:
        """What incremental_vs_hudi times: the table opened, the newest of its log blocks read and merged."""
        Ours(self.spark, self.work).incremental(self.table)

    def parquet(self, path: Path) -> None:
        """Spark's own reader on the same rows in one Parquet file: no table, no Python."""
        self._ask(self.spark.read.parquet(str(self.rows)))

    @property
    def _schema(self) -> pa.Schema:
        return pq.read_schema(self.rows)

    def _ask(self, frame: Any) -> None:
        frame.selectExpr(*self.work.expressions).collect()

    @property
    def all(self) -> dict[str, Stage]:
        named: dict[str, Stage] = {"no rows": self.nothing, "rows from workers": self.workers}
        return {**named, "incremental": self.incremental, "spark.read.parquet": self.parquet}


def made(spark: Any, work: Work, folder: Path) -> Stages:
    """The table, and its last commit's rows in a Parquet file."""
    ours, table, rows = Ours(spark, work), folder / "table", folder / "rows.parquet"
    ours.load(table, work.load)
    for upsert in work.upserts:
        ours.upsert(table, upsert)
    last = sorted(table.glob(".hoodie/*.deltacommit"))[-2].stem
    pq.write_table(ours.open(table).incremental(spark, last).toArrow(), rows)
    return Stages(spark, work, table, rows)


if __name__ == "__main__":
    main(
        "incremental_stages",
        __doc__ or "",
        lambda spark, work, folder: made(spark, work, folder).all,
        runs=15,
        warm_ups=SHORT_WARM_UPS,
    )
