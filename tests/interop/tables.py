"""Tables and rows for the tests beside Apache Hudi: every column type, shapes of key and partition."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from hudi_assets.engine import HudiTable
from hudi_assets.engine.model import CompactionResult, Plan

START = 1_700_000_000_000  # epoch ms; event times below are minutes after it
MINUTE = 60_000
# A writer of Hudi's whose services are at work all the time.
BUSY = {
    "hoodie.compact.inline": "true",
    "hoodie.compact.inline.max.delta.commits": "2",
    "hoodie.clean.automatic": "true",
    "hoodie.cleaner.commits.retained": "3",
    "hoodie.archive.automatic": "true",
    "hoodie.keep.min.commits": "4",
    "hoodie.keep.max.commits": "5",
}

EVERY_TYPE = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("region", pa.string(), nullable=False),
        pa.field("ts", pa.int64(), nullable=False),
        pa.field("at", pa.timestamp("us", tz="UTC"), nullable=False),
        pa.field("text", pa.string()),
        pa.field("small", pa.int32()),
        pa.field("big", pa.int64()),
        pa.field("ratio", pa.float64()),
        pa.field("single", pa.float32()),
        pa.field("flag", pa.bool_()),
        pa.field("price", pa.decimal128(12, 3)),
        pa.field("exact", pa.decimal128(30, 10)),
        pa.field("day", pa.date32()),
        pa.field("seen", pa.timestamp("us", tz="UTC")),
        pa.field("blob", pa.binary()),
        pa.field("numbers", pa.list_(pa.int64())),
        pa.field("words", pa.list_(pa.string())),
        pa.field("scores", pa.map_(pa.string(), pa.float64())),
        pa.field("place", pa.struct([pa.field("x", pa.int32()), pa.field("name", pa.string())])),
        pa.field("p", pa.string(), nullable=False),
    ]
)


@dataclass(frozen=True)
class Shape:
    """One way to lay out a table."""

    log_block_format: str = "parquet"
    record_key: tuple[str, ...] = ("id",)
    partition_fields: tuple[str, ...] = ("p",)
    ordering_field: str = "ts"
    hive_style: bool = True
    buckets: int = 2
    options: Mapping[str, Any] = field(default_factory=dict)

    def create(self, path: Path) -> HudiTable:
        return HudiTable.create(
            str(path),
            EVERY_TYPE,
            record_key=list(self.record_key),
            ordering_field=self.ordering_field,
            partition_fields=list(self.partition_fields),
            buckets=self.buckets,
            log_block_format=self.log_block_format,
            hive_style=self.hive_style,
            event_time_unit="ms" if self.ordering_field == "ts" else None,
            **self.options,
        )

    def keys_of(self, rows: pa.Table) -> pa.Table:
        """What `delete` needs: key, partition and ordering columns."""
        return rows.select(list(dict.fromkeys([*self.record_key, *self.partition_fields, self.ordering_field])))


def row(number: int, minute: float, mark: int, *, null_items: bool = False) -> dict[str, Any]:
    """The row with key `number`, at an event time; `mark` makes its values different from other versions'.

    With `null_items` arrays hold nulls: Apache Hudi reads them, but its own Parquet writer refuses them
    unless parquet.avro.write-old-list-structure is false.
    """
    at = datetime.fromtimestamp(START / 1000, UTC) + timedelta(minutes=minute)
    some = number % 4 != 3  # every fourth key has nulls wherever it may
    value = number * 1000 + mark
    return {
        "id": f"k{number}",
        "region": "nord" if number % 2 else "süd",
        "ts": START + round(minute * MINUTE),
        "at": at,
        "text": f"é日本🚲 {value} 'quoted' \\ \n" if some else None,
        "small": -value if some else None,
        "big": value * 10**12 if some else None,
        "ratio": value / 7 if some else None,
        "single": value / 8 if some else None,
        "flag": mark % 2 == 0 if some else None,
        "price": Decimal(-value).scaleb(-3) if some else None,
        "exact": Decimal(value * 10**12 + 1).scaleb(-10) if some else None,
        "day": date(1969, 12, 30) + timedelta(days=number) if some else None,
        "seen": at + timedelta(microseconds=mark + 1) if some else None,
        "blob": bytes([0, 255, mark % 256]) if some else None,
        "numbers": [value, None if null_items else 0, -1] if some else None,
        "words": ([] if mark % 2 else ["a", None if null_items else "", "ü"]) if some else None,
        "scores": {"one": 1.5, "zwölf": float(mark)} if some else None,
        "place": {"x": number, "name": None if mark % 2 else "Kiel"} if some else None,
        "p": "abc"[number % 3],
    }


def rows(numbers: Iterable[int], minute: Callable[[int], float], mark: int, *, null_items: bool = False) -> pa.Table:
    """Rows of these keys, the event time by key."""
    values = [row(n, minute(n), mark, null_items=null_items) for n in numbers]
    return pa.Table.from_pylist(values, schema=EVERY_TYPE)


def frame(spark: SparkSession, table: pa.Table) -> Any:
    return spark.createDataFrame(table)


def copy_of(table: Path) -> Path:
    """The table as it is now, at another path (carried-over logs become plain files)."""
    copy = table.with_name(f"{table.name}-before")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(table, copy)
    return copy


def planned(table: HudiTable, minute: float) -> Plan:
    """Plan at a threshold that must be due."""
    plan = table.plan_compaction(threshold=START + round(minute * MINUTE))
    assert isinstance(plan, Plan), plan
    return plan


def compacted(table: HudiTable, spark: SparkSession, minute: float) -> CompactionResult:
    return table.execute_compaction(spark, planned(table, minute).instant)


def hudi_options(
    *, name: str, record_key: Sequence[str] = ("id",), partition: str = "p", buckets: int = 2, **more: str
) -> dict[str, str]:
    """DataSource options of a writer of Apache Hudi: bucket index, no metadata table, no table services."""
    complex_key = len(record_key) > 1
    generator = "ComplexKeyGenerator" if complex_key else "SimpleKeyGenerator"
    if not partition:
        generator = "NonpartitionedKeyGenerator"
    return {
        "hoodie.table.name": name,
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.datasource.write.operation": "upsert",
        "hoodie.datasource.write.recordkey.field": ",".join(record_key),
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.partitionpath.field": partition,
        "hoodie.datasource.write.keygenerator.class": f"org.apache.hudi.keygen.{generator}",
        "hoodie.datasource.write.hive_style_partitioning": "true",
        "hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload",
        "hoodie.payload.event.time.field": "ts",
        "hoodie.payload.ordering.field": "ts",
        "hoodie.index.type": "BUCKET",
        "hoodie.bucket.index.num.buckets": str(buckets),
        "hoodie.bucket.index.hash.field": ",".join(record_key),
        "hoodie.metadata.enable": "false",
        "hoodie.compact.inline": "false",
        "hoodie.clean.automatic": "false",
        "hoodie.archive.automatic": "false",
        **more,
    }
