"""The properties of a new table, as Apache Hudi writes them for its version. Pure."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence

from hudi_assets.engine.model import MergeMode
from hudi_assets.engine.table.layout.interface import Layout
from hudi_assets.engine.table.settings import key_generators
from hudi_assets.engine.table.settings.config import BUCKETS, CDC, EVENT_TIME_FIELD, HIVE_STYLE, TIMEZONE, URL_ENCODE
from hudi_assets.engine.table.settings.indexes import INDEX_TYPE
from hudi_assets.engine.table.settings.merging import new_merge_properties
from hudi_assets.engine.table.settings.stated import HASH_FIELD
from hudi_assets.engine.timeline.zone import UTC


def new_table_properties(
    *,
    name: str,
    avro_schema: str,
    record_key: Sequence[str],
    ordering_field: str | None,
    merge_mode: MergeMode,
    event_time_field: str,
    partition_fields: Sequence[str],
    buckets: int,
    layout: Layout,
    hive_style: bool,
    own: Mapping[str, str],
) -> dict[str, str]:
    """The properties of a new table, as Apache Hudi writes them for its version, and our own beside them.

    `InvalidInput` where merge mode and ordering field do not go together.
    """
    properties = {
        "hoodie.table.name": name,
        "hoodie.table.type": "MERGE_ON_READ",
        **layout.table_properties,
        "hoodie.table.checksum": str(table_checksum("", name)),
        "hoodie.table.recordkey.fields": ",".join(record_key),
        "hoodie.table.partition.fields": ",".join(partition_fields),
        key_generators.CLASS: key_generators.generator_of(len(record_key), len(partition_fields)),
        "hoodie.table.base.file.format": "PARQUET",
        "hoodie.table.create.schema": avro_schema,
        TIMEZONE: UTC,
        CDC: "false",
        "hoodie.populate.meta.fields": "true",
        "hoodie.partition.metafile.use.base.format": "false",
        **new_merge_properties(merge_mode, ordering_field, layout),
        HIVE_STYLE: str(hive_style).lower(),
        URL_ENCODE: "false",
        "hoodie.datasource.write.drop.partition.columns": "false",
        INDEX_TYPE: "BUCKET",
        BUCKETS: str(buckets),
        HASH_FIELD: ",".join(record_key),
        # Java checks the hash field against this one when it opens the table for a service.
        "hoodie.datasource.write.recordkey.field": ",".join(record_key),
        EVENT_TIME_FIELD: event_time_field,
        **own,
    }
    if not partition_fields:
        del properties["hoodie.table.partition.fields"]
    return properties


def table_checksum(database: str, table: str) -> int:
    """CRC32 of `database.table` (HoodieTableConfig.generateChecksum)."""
    return zlib.crc32(f"{database}.{table}".encode())
