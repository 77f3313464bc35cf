"""Configurations by files, columns and services: formats, codecs, event-time types, schemas, what Hudi does beside."""

from __future__ import annotations

from typing import Any

from tests.interop.tables import BUSY
from tests.interop.zoo import configuration
from tests.interop.zoo.configuration import INDEX, Configuration, EventTime, Refused
from tests.interop.zoo.of_indexes import NOT_BY_HUDI

_BLOCKS = "hoodie.logfile.data.block.format"
_CODEC = "hoodie.parquet.compression.codec"
_PARQUET = {_BLOCKS: "parquet"}
_CLEANED = {"time_travel": "Cleaner cleaned up the timestamp of interest"}
_SCHEMA_ON_READ = {"hoodie.schema.on.read.enable": "true"}


def _added(key: int, number: int, kind: str) -> dict[str, Any]:
    return {"extra": f"x{number}-{key}"} if number >= 2 else {}


def _timed(time: EventTime, release: str = "1.2.0", version: int = 9, **more: Any) -> Configuration:
    by_hudi = NOT_BY_HUDI if version == 6 else None
    return Configuration(f"event time: {time.name}", release, version, time=time, by_hudi=by_hudi, **more)


LISTED = (
    Configuration("parquet log blocks", "0.15.0", 6, options=_PARQUET, by_hudi=NOT_BY_HUDI),
    Configuration("parquet log blocks", version=6, options=_PARQUET, by_hudi=NOT_BY_HUDI),
    Configuration("parquet log blocks", version=8, options=_PARQUET),
    Configuration("parquet log blocks", options=_PARQUET),
    Configuration("avro log blocks, stated", options={_BLOCKS: "avro"}),
    Configuration("codec snappy", options={_CODEC: "snappy", **_PARQUET}),
    Configuration("codec zstd", options={_CODEC: "zstd", **_PARQUET}),
    Configuration("codec zstd", "0.15.0", 6, options={_CODEC: "zstd"}, by_hudi=NOT_BY_HUDI),
    Configuration("codec uncompressed", options={_CODEC: "uncompressed", **_PARQUET}),
    _timed(configuration.SECONDS),
    _timed(configuration.SECONDS, "0.15.0", 6),
    _timed(configuration.MICROSECONDS),
    _timed(configuration.UNSTATED),
    _timed(configuration.TIMESTAMP),
    _timed(configuration.TIMESTAMP, "0.15.0", 6),
    _timed(configuration.DATE),
    _timed(configuration.DATE, "0.15.0", 6),
    _timed(configuration.TEXT),
    _timed(configuration.TEXT, "0.15.0", 6),
    Configuration("an added column", columns=_added),
    Configuration("an added column", "0.15.0", 6, columns=_added, by_hudi=NOT_BY_HUDI),
    Configuration("an added column, parquet log blocks", version=8, columns=_added, options=_PARQUET),
    Configuration("inline compaction, clean and archiving", options=BUSY, failing=_CLEANED),
    Configuration(
        "inline compaction, clean and archiving, metadata table", options=BUSY, failing=_CLEANED, metadata=True
    ),
    Configuration(
        "async clean",
        options={
            "hoodie.clean.automatic": "true",
            "hoodie.clean.async.enabled": "true",
            "hoodie.clean.commits.retained": "1",
        },
        failing=_CLEANED,
    ),
    Configuration(
        "inline clustering",
        options={INDEX: "SIMPLE", "hoodie.clustering.inline": "true", "hoodie.clustering.inline.max.commits": "2"},
    ),
    Configuration(
        "non-blocking concurrency control",
        options={
            "hoodie.table.type": "MERGE_ON_READ",
            "hoodie.index.bucket.engine": "SIMPLE",
            "hoodie.write.concurrency.mode": "NON_BLOCKING_CONCURRENCY_CONTROL",
            "hoodie.clean.failed.writes.policy": "LAZY",
            "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider",
        },
    ),
    Configuration(
        "no meta columns",
        options={"hoodie.populate.meta.fields": "false"},
        merged=Refused("no Hudi meta columns"),
        by_hudi=Refused("no Hudi meta columns"),
    ),
    Configuration("schema on read allowed, no column renamed", options=_SCHEMA_ON_READ),
    Configuration(
        "copy on write",
        options={"hoodie.datasource.write.table.type": "COPY_ON_WRITE"},
        looked=Refused("not MERGE_ON_READ"),
    ),
    Configuration(
        "ORC base files", options={"hoodie.table.base.file.format": "ORC"}, looked=Refused("base files are not Parquet")
    ),
)
