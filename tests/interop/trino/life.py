"""A table and the five moments at which readers are asked.

Before a compaction, with its plan pending, after it (it is a partial one), after a full one, and after a clean.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from hudi_assets.engine import HudiTable, Plan
from scripts.hudi_client import Hudi
from tests.interop.tables import MINUTE, START
from tests.tables.local_session import LocalSession

SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("ts", pa.int64(), nullable=False),
        pa.field("text", pa.string()),
        pa.field("price", pa.decimal128(12, 3)),
        pa.field("day", pa.date32()),
        pa.field("part", pa.string(), nullable=False),
    ]
)
SETTINGS = {
    "hoodie.payload.event.time.field": "ts",
    "hudi_assets.event.time.unit": "ms",
    "hudi_assets.writers": "stopped",
    "hudi_assets.data.latency": "1h",
    "hudi_assets.query.grace": "0s",
    "hudi_assets.publish.partitions": "true",
}
MOMENTS = ("before", "pending", "partial", "full", "clean")


@dataclass(frozen=True)
class Kind:
    """Who writes the table, its version, whether it has partitions, and Hudi's metadata table."""

    writer: str
    version: int
    partitioned: bool = True
    metadata: bool = False

    @property
    def name(self) -> str:
        shape = ["parts" if self.partitioned else "flat", *(["metadata"] if self.metadata else [])]
        return "_".join([f"v{self.version}", self.writer.replace(".", "_"), *shape])


# Versions 8 and 9 are not held to the page yet.
KINDS = tuple(
    Kind(writer, 6, partitioned, metadata)
    for writer in ("0.15.0", "ours")
    for partitioned in (True, False)
    for metadata in ((False, True) if writer != "ours" else (False,))
)


def _rows(numbers: range, minute: int, text: str) -> pa.Table:
    values = [
        {
            "id": f"k{n}",
            "ts": START + minute * MINUTE + n,
            "text": text,
            "price": None,
            "day": None,
            "part": "ab"[n % 2],
        }
        for n in numbers
    ]
    return pa.Table.from_pylist(values, SCHEMA)


@dataclass
class Life:
    """`hudi`: the release that writes it, where Hudi does."""

    kind: Kind
    path: Path
    session: LocalSession
    hudi: Hudi | None

    def moments(self) -> Iterator[str]:
        """The table is at each of `MOMENTS` in turn."""
        self._write(_rows(range(1, 9), 1, "first"), new=True)
        if self.kind.writer == "ours":
            self.table.compact(self.session, threshold=START + 2 * MINUTE)
        self._write(_rows(range(1, 5), 60, "early"))
        self._write(_rows(range(3, 11), 300, "late"))
        yield "before"
        plan = self.table.plan_compaction(threshold=START + 100 * MINUTE)
        assert isinstance(plan, Plan)
        yield "pending"
        self.table.execute_compaction(self.session, plan.instant)
        yield "partial"
        self.table.compact(self.session, threshold=START + 400 * MINUTE)
        yield "full"
        self.table.clean(policy="KEEP_LATEST_FILE_VERSIONS", retained=1, unasked=True)
        yield "clean"

    @property
    def table(self) -> HudiTable:
        return HudiTable.open(str(self.path), settings=SETTINGS)

    def _write(self, rows: pa.Table, *, new: bool = False) -> None:
        if self.hudi is not None:
            self.hudi.write(self.path, rows, self._options(), mode="overwrite" if new else "append")
            return
        if new:
            HudiTable.create(
                str(self.path),
                SCHEMA,
                record_key=["id"],
                ordering_field="ts",
                partition_fields=["part"] if self.kind.partitioned else [],
                buckets=1,
                table_version=self.kind.version,
            )
        self.table.upsert(self.session, self.session.frame(rows))

    def _options(self) -> dict[str, str]:
        generator = "SimpleKeyGenerator" if self.kind.partitioned else "NonpartitionedKeyGenerator"
        return {
            "hoodie.table.name": self.path.name,
            "hoodie.datasource.write.table.type": "MERGE_ON_READ",
            "hoodie.datasource.write.operation": "upsert",
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.datasource.write.partitionpath.field": "part" if self.kind.partitioned else "",
            "hoodie.datasource.write.keygenerator.class": f"org.apache.hudi.keygen.{generator}",
            "hoodie.datasource.write.hive_style_partitioning": "true",
            "hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload",
            "hoodie.payload.event.time.field": "ts",
            "hoodie.payload.ordering.field": "ts",
            "hoodie.index.type": "BUCKET",
            "hoodie.bucket.index.num.buckets": "1",
            "hoodie.metadata.enable": str(self.kind.metadata).lower(),
            "hoodie.compact.inline": "false",
            "hoodie.clean.automatic": "false",
            "hoodie.table.timeline.timezone": "UTC",
            "hoodie.write.table.version": str(self.kind.version),
            "hoodie.write.auto.upgrade": "false",
        }

    def sync_options(self, metastore: str) -> dict[str, str]:
        of_parts = {
            "partition_fields": "part",
            "partition_extractor_class": "org.apache.hudi.hive.MultiPartKeysValueExtractor",
        }
        nobody = {"partition_extractor_class": "org.apache.hudi.hive.NonPartitionedExtractor"}
        return {
            "enable": "true",
            "mode": "hms",
            "metastore.uris": metastore,
            "database": "synced",
            "table": self.path.name,
            **(of_parts if self.kind.partitioned else nobody),
        }
