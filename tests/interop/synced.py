"""A partitioned table that Apache Hudi writes, and syncs into a catalog by the name `synced`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pyarrow as pa

from hudi_assets.engine import DATA_LATENCY, EVENT_TIME_FIELD, EVENT_TIME_UNIT, WRITERS

SCHEMA: Final = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("text", pa.string()), ("part", pa.string())])
HOUR: Final = 3_600_000
# What the table does not say itself.
SETTINGS: Final = {EVENT_TIME_FIELD: "ts", EVENT_TIME_UNIT: "ms", WRITERS: "stopped", DATA_LATENCY: "1h"}


def options_of(sync: Mapping[str, str]) -> dict[str, str]:
    """The DataSource options. `sync`: of hoodie.datasource.hive_sync, where and how to sync."""
    of_table = {
        "table": "synced",
        "partition_fields": "part",
        "partition_extractor_class": "org.apache.hudi.hive.MultiPartKeysValueExtractor",
    }
    return {
        "hoodie.table.name": "synced",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.partitionpath.field": "part",
        "hoodie.datasource.write.hive_style_partitioning": "true",
        "hoodie.datasource.write.operation": "upsert",
        "hoodie.index.type": "BUCKET",
        "hoodie.bucket.index.num.buckets": "1",
        "hoodie.compact.inline": "false",
        "hoodie.clean.automatic": "false",
        "hoodie.metadata.enable": "false",
        "hoodie.table.timeline.timezone": "UTC",
        **{f"hoodie.datasource.hive_sync.{key}": value for key, value in {**of_table, **sync}.items()},
    }
