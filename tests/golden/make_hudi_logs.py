"""Makes the golden log files here with unmodified Apache Hudi 0.15.0 on PySpark 3.5.

    python make_hudi_logs.py <hudi-spark3.5-bundle_2.12-0.15.0.jar>

One table with Avro log blocks and one with Parquet log blocks, each with the commits of `COMMITS`; the
first makes the base file, every other one log file. `rows()` is what was written.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
COLUMNS = {
    "id": "string",
    "ts": "bigint",
    "_hoodie_is_deleted": "boolean",
    "flag": "boolean",
    "tiny": "tinyint",
    "small": "smallint",
    "num": "int",
    "f": "float",
    "d": "double",
    "text": "string",
    "raw": "binary",
    "day": "date",
    "at": "timestamp",
    "price": "decimal(10,2)",
    "big": "decimal(30,4)",
    "items": "array<int>",
    "tags": "map<string,bigint>",
    "place": "struct<name:string,at:struct<x:double,y:double>>",
    "required": "string not null",
}
# ordering value, record keys, operation, _hoodie_is_deleted
COMMITS = (
    (1000, ("full", "nulls", "extreme"), "upsert", False),
    (2000, ("full", "nulls", "extreme"), "upsert", False),
    (3000, ("extreme",), "delete", False),
    (1500, ("nulls",), "upsert", True),
)


def rows(ts: int, is_deleted: bool = False) -> list[dict[str, Any]]:
    """Three rows at ordering value `ts`: one with every column, one with nulls, one with extremes."""
    full = (
        *("full", ts, is_deleted, True, 1, 300, 70000, 1.5, 2.25, "Ünïcode ✈", b"\x00\xff", date(2013, 1, 1)),
        datetime(2013, 1, 1, 5, 0, 0, 123456, tzinfo=UTC),
        *(Decimal("12345678.90"), Decimal("-1234567890123456789.0123")),
        *([1, -2, 3], {"a": 1, "b": None}, {"name": "EWR", "at": {"x": 1.0, "y": -2.0}}, "r1"),
    )
    nulls = ("nulls", ts, is_deleted, *[None] * 15, "r2")
    extreme: tuple[Any, ...] = (
        *("extreme", ts, is_deleted, False, -128, -32768, -(2**31), float("inf"), -0.0, "", b""),
        *(date(1583, 1, 1), datetime(1900, 1, 1, tzinfo=UTC), Decimal("-99999999.99"), Decimal("0.0000")),
        *([], {}, {"name": None, "at": None}, ""),
    )
    return [dict(zip(COLUMNS, row, strict=True)) for row in (full, nulls, extreme)]


def start_spark(jar: str) -> Any:
    from pyspark.sql import SparkSession

    return (
        SparkSession.builder.master("local[2]")
        .config("spark.jars", jar)
        .config("spark.ui.enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.serializer", "org.apache.spark.serializer.KryoSerializer")
        .config("spark.sql.extensions", "org.apache.spark.sql.hudi.HoodieSparkSessionExtension")
        .getOrCreate()
    )


def write_table(spark: Any, path: Path, block_format: str) -> list[Path]:
    """The table's log files, in log order."""
    ddl = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    for ts, keys, operation, is_deleted in COMMITS:
        chosen = [tuple(row.values()) for row in rows(ts, is_deleted) if row["id"] in keys]
        options = {
            "hoodie.table.name": "golden",
            "hoodie.datasource.write.table.type": "MERGE_ON_READ",
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.datasource.write.partitionpath.field": "",
            "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
            "hoodie.datasource.write.operation": operation,
            "hoodie.index.type": "BUCKET",
            "hoodie.bucket.index.num.buckets": "1",
            "hoodie.logfile.data.block.format": block_format,
            "hoodie.metadata.enable": "false",
            "hoodie.compact.inline": "false",
            "hoodie.upsert.shuffle.parallelism": "1",
            "hoodie.delete.shuffle.parallelism": "1",
        }
        writer = spark.createDataFrame(chosen, ddl).write.format("hudi").options(**options)
        writer.mode("append").save(str(path))
    logs = [log for log in path.glob(".*.log.*") if not log.name.endswith(".crc")]
    return sorted(logs, key=lambda log: log.name)


def main(jar: str) -> None:
    spark = start_spark(jar)
    base = Path(tempfile.mkdtemp())
    manifest: dict[str, list[str]] = {}
    for block_format in ("avro", "parquet"):
        for number, log in enumerate(write_table(spark, base / block_format, block_format)):
            name = f"hudi_0_15_{block_format}_{number}.log"
            shutil.copyfile(log, HERE / name)
            manifest.setdefault(block_format, []).append(name)
    (HERE / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")
    spark.stop()
    shutil.rmtree(base)


if __name__ == "__main__":
    main(sys.argv[1])
