"""Where the seconds of a first load go: parts of it, and what Spark alone takes for the same rows.

    scripts/with-env python -m benchmarks.load_stages [--rows 2000000] [--runs 3]

Each line is one stage from the same Parquet file: CPU seconds (user and system, of the driver, the JVM and the Python
workers) and the clock's, medians of the runs after one that warms up. The stages take turns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks.data import Work
from benchmarks.ours import Ours
from benchmarks.stages import Stage, main
from hudi_assets.engine import HudiTable
from hudi_assets.engine.actions.writing import exchange
from hudi_assets.engine.actions.writing.packing import Packing
from hudi_assets.engine.spark import session as spark_session


@dataclass(frozen=True)
class Stages:
    """Each takes an empty path."""

    spark: Any
    work: Work

    def _rows(self) -> Any:
        return self.spark.read.parquet(str(self.work.load))

    def scan(self, path: Path) -> None:
        """Spark reads all columns, and drops the rows."""
        self._rows().write.format("noop").mode("overwrite").save()

    def handover(self, path: Path) -> None:
        """Spark reads all columns and hands the rows to Python, which counts them."""

        def count(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            yield pa.RecordBatch.from_pydict({"n": [sum(len(batch) for batch in batches)]})

        self._rows().mapInArrow(count, "n bigint").collect()

    def direct(self, path: Path) -> None:
        """Workers read all columns from the file themselves."""
        spark_session.map_rows(self._rows(), lambda batches: sum(len(batch) for batch in batches))

    def packed(self, path: Path) -> None:
        """The same, and check, group and put into parcels."""
        with self._packed(path, self._rows()):
            pass

    def packed_from_spark(self, path: Path) -> None:
        """As before, where the rows come from Spark: a filter that takes none away."""
        with self._packed(path, self._rows().where(f"{self.work.ordering_field} >= 0")):
            pass

    def _packed(self, path: Path, rows: Any) -> Any:
        table = HudiTable.create(
            str(path),
            spark_session.schema_of(rows),
            record_key=list(self.work.record_key),
            ordering_field=self.work.ordering_field,
            buckets=self.work.buckets,
            event_time_unit=self.work.event_time_unit,
        )
        return exchange.packed(rows, Packing(table.config, (self.work.ordering_field,), pa.schema([])).pack)

    def load(self, path: Path) -> None:
        """create and bulk_insert."""
        Ours(self.spark, self.work).load(path, self.work.load)

    def load_and_ask(self, path: Path) -> None:
        """What load_vs_hudi times: that, and an answer of the read-optimized view."""
        self.load(path)
        Ours(self.spark, self.work).read_optimized(path)

    def spark_writes(self, path: Path) -> None:
        """Spark alone: repartition(8, key).write.parquet, zstd; no check, no meta columns, no commit."""
        rows = self._rows().repartition(self.work.buckets, *self.work.record_key)
        rows.write.option("compression", "zstd").parquet(str(path))

    @property
    def all(self) -> dict[str, Stage]:
        named: dict[str, Stage] = {
            "scan": self.scan,
            "handover": self.handover,
            "direct": self.direct,
            "packed": self.packed,
        }
        named |= {"packed, from Spark": self.packed_from_spark, "load": self.load}
        return named | {"load and ask": self.load_and_ask, "Spark's own write": self.spark_writes}


if __name__ == "__main__":
    main("load_stages", __doc__ or "", lambda spark, work, folder: Stages(spark, work).all, runs=3)
