"""The peers: two releases of Apache Hudi, each in a JVM of its own, and hudi-rs in this process."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from hudi import HudiReadOptions, HudiTableBuilder

from benchmarks.data import Work
from scripts.hudi_client import RELEASES, Hudi

# The table version that each release makes by itself.
TABLE_VERSIONS: Mapping[str, str] = dict(zip(RELEASES, ("6", "9"), strict=True))
HUDI_RS = "hudi-rs 0.5.0"
_KEYS = "org.apache.hudi.keygen"


class HudiPeer:
    """One release of Apache Hudi with tables of its own, on two cores.

    Avro log blocks, as it writes them by itself; no metadata table and no table services, which nobody asks for
    here. `codec` of its base files: zstd, as this project's are, or gzip, its default.
    """

    def __init__(
        self,
        release: str,
        work: Work,
        memory: str,
        codec: str,
        *,
        jars: Sequence[Path] = (),
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """`jars` and `settings`: of its Spark, beside those that it has anyway."""
        os.environ["INTEROP_DRIVER_MEMORY"] = memory
        self.name = f"Apache Hudi {release}"
        self._version = TABLE_VERSIONS[release]
        self._work = work
        self._codec = codec
        self._hudi = Hudi(release, jars=jars, settings=settings)

    def close(self) -> None:
        self._hudi.close()

    @property
    def _plain(self) -> dict[str, str]:
        """What every write and table service is told."""
        return {
            "hoodie.write.table.version": self._version,
            "hoodie.metadata.enable": "false",
            "hoodie.compact.inline": "false",
            "hoodie.clean.automatic": "false",
            "hoodie.archive.automatic": "false",
            "hoodie.parquet.compression.codec": self._codec,
        }

    @property
    def _options(self) -> dict[str, str]:
        work = self._work
        generator = "NonpartitionedKeyGenerator"
        if work.partition_fields:
            generator = "ComplexKeyGenerator"
        return self._plain | {
            "hoodie.table.name": "bench",
            "hoodie.datasource.write.table.type": "MERGE_ON_READ",
            "hoodie.datasource.write.recordkey.field": ",".join(work.record_key),
            "hoodie.datasource.write.precombine.field": work.ordering_field,
            "hoodie.datasource.write.partitionpath.field": ",".join(work.partition_fields),
            "hoodie.datasource.write.hive_style_partitioning": "true",
            "hoodie.datasource.write.keygenerator.class": f"{_KEYS}.{generator}",
            "hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload",
            "hoodie.payload.ordering.field": work.ordering_field,
            "hoodie.payload.event.time.field": work.ordering_field,
            "hoodie.index.type": "BUCKET",
            "hoodie.bucket.index.num.buckets": str(work.buckets),
            "hoodie.bucket.index.hash.field": ",".join(work.record_key),
            # As many tasks as there are buckets, or cores: its defaults are made for a cluster.
            "hoodie.bulkinsert.shuffle.parallelism": "2",
            "hoodie.upsert.shuffle.parallelism": "2",
        }

    def load(self, path: Path | str, rows: Path) -> None:
        """A bulk insert into base files, without a sort that nobody asked for."""
        self._write(path, rows, "bulk_insert", {"hoodie.bulkinsert.sort.mode": "NONE"})

    def upsert(self, path: Path | str, rows: Path) -> None:
        self._write(path, rows, "upsert", {})

    def _write(self, path: Path | str, rows: Path, operation: str, more: Mapping[str, str]) -> None:
        options = self._options | {"hoodie.datasource.write.operation": operation, **more}
        self._hudi.ask("write", path=str(path), rows=str(rows), options=options, mode="append")

    def compact(self, path: Path | str) -> None:
        """Schedule and execute, everything that there is."""
        self._hudi.compaction(path, "run", **self._plain)

    def snapshot(self, path: Path | str) -> tuple[Any, ...]:
        return self._asked(path, "snapshot")

    def read_optimized(self, path: Path | str) -> tuple[Any, ...]:
        return self._asked(path, "read_optimized")

    def incremental(self, path: Path) -> tuple[Any, ...]:
        """What the last commit wrote."""
        begin = self._last_but_one(path)
        return self._asked(path, "incremental", begin=begin, end=None)

    def _asked(self, path: Path | str, query: str, **more: Any) -> tuple[Any, ...]:
        answer = self._hudi.ask("aggregate", path=str(path), query=query, expressions=self._work.expressions, **more)
        return tuple(answer["row"])

    def _last_but_one(self, path: Path) -> str:
        """The begin of a range with the last commit alone, as this release wants it (1.x: a completion time)."""
        folder = path / ".hoodie"
        commits = sorted([*folder.glob("*.deltacommit"), *folder.glob("timeline/*.deltacommit")])
        return commits[-2].stem.rpartition("_")[2]


class HudiRsPeer:
    """hudi-rs: Arrow rows in this process, only the columns that the question needs."""

    name = HUDI_RS

    def __init__(self, work: Work) -> None:
        self._work = work

    def snapshot(self, path: Path) -> tuple[Any, ...]:
        options = HudiReadOptions().with_projection(self._work.columns)
        table = HudiTableBuilder.from_base_uri(str(path)).build()
        return self._work.answer(pa.Table.from_batches(table.read(options)))
