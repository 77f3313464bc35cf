"""HudiTable: the engine's public class. Every call reads the table as it stands and leaves it whole.

What it can do is beside this file: `reads`, `writes`, `maintenance`, `reports`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from hudi_assets.engine.create import NewTable, create_table
from hudi_assets.engine.hudi_table.maintenance import Maintenance
from hudi_assets.engine.hudi_table.reads import Reads
from hudi_assets.engine.hudi_table.reports import Reports
from hudi_assets.engine.hudi_table.writes import Writes
from hudi_assets.engine.model import MergeMode
from hudi_assets.engine.model.units import Latency
from hudi_assets.engine.storage import open_storage
from hudi_assets.engine.table.layout.choice import layout_of_new_table
from hudi_assets.engine.table.schema_on_read import check_no_schema_on_read
from hudi_assets.engine.table.settings.config import read_config

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


class HudiTable(Reads, Writes, Maintenance, Reports):
    """An Apache Hudi merge-on-read table. Get one by `create` or `open`."""

    @classmethod
    def create(
        cls,
        path: str,
        schema: StructType | pa.Schema | str,
        *,
        record_key: Sequence[str],
        ordering_field: str | None = None,
        event_time_field: str | None = None,
        partition_fields: Sequence[str] = (),
        buckets: int = 4,
        table_version: int | None = None,
        storage_options: Mapping[str, str] | None = None,
        name: str | None = None,
        event_time_unit: str | None = None,
        data_latency: Latency | None = None,
        clock: str = "system",
        log_block_format: str = "parquet",
        hive_style: bool = True,
        url_encode: bool = False,
        merge_mode: MergeMode | str = MergeMode.EVENT_TIME_ORDERING,
        exact_split: bool = False,
    ) -> HudiTable:
        """Create an empty table.

        Args:
            path: Where the table is to be. No table is there yet.
            schema: The columns, as a Spark or Arrow schema, or Avro's JSON. Hudi's meta columns are added.
            record_key: The columns that name a record. At least one.
            ordering_field: The column that decides between two records of a key. With COMMIT_TIME_ORDERING none.
            event_time_field: The column of event times. Default: the ordering field.
            partition_fields: The columns whose values name the partitions, in order. Default: no partitions.
            buckets: The number of file groups in each partition.
            table_version: 6, 8 or 9: Hudi's `hoodie.table.version`. Default: 6, and 9 in a bucket, where version 6
                is compacted by whole slices.
            storage_options: For a bucket: see `open_storage`. Local paths take none.
            name: The table's name. Default: the last part of the path.
            event_time_unit: How a column of integers counts: "s", "ms" or "us". The table states it. Default: "ms",
                and "s" for a column of 32 bits.
            data_latency: The longest time from an event to its commit ("2h", a timedelta, milliseconds), or "auto" to
                learn it from the commits. Without one the freshness follows compactions alone.
            clock: "system", or "commit" for a replayed stream, whose time is the newest commit's `clock_time`.
            log_block_format: "parquet" or "avro": how rows are kept in log files.
            hive_style: True: a partition's folder is `field=value`.
            url_encode: True: partition values are escaped in folders, as Hudi does it.
            merge_mode: Which record of a key wins. See `docs/explanation/merge.md`.
            exact_split: True: a compaction puts no record above its threshold into the read-optimized view. Hudi's own
                table services must stay off then. Version 6 only.

        Returns:
            The table, open.

        Raises:
            InvalidInput: Something asked for is not possible, or a table is there already. Nothing was written.
        """
        storage = open_storage(path, storage_options)
        layout = layout_of_new_table(table_version, storage)
        asked = NewTable(
            schema=schema,
            record_key=record_key,
            ordering_field=ordering_field,
            event_time_field=event_time_field,
            partition_fields=partition_fields,
            buckets=buckets,
            name=name,
            event_time_unit=event_time_unit,
            data_latency=data_latency,
            clock=clock,
            log_block_format=log_block_format,
            hive_style=hive_style,
            url_encode=url_encode,
            merge_mode=merge_mode,
            exact_split=exact_split,
        )
        return cls(storage, create_table(storage, asked, layout))

    @classmethod
    def open(
        cls,
        path: str,
        storage_options: Mapping[str, str] | None = None,
        *,
        settings: Mapping[str, str] | None = None,
    ) -> HudiTable:
        """Open a table, of this project's or of any other writer's.

        Args:
            path: The table's base path: the folder that holds `.hoodie`. In a bucket, `s3://BUCKET/PATH`.
            storage_options: For a bucket: see `open_storage`. Local paths take none.
            settings: Keys `hoodie.…` and `hudi_assets.…`. They overlay the table's own for this process.

        Returns:
            The table, open. Each call reads it anew, by the same settings. `Conflict` says it was upgraded since.

        Raises:
            InvalidInput: The path holds no table, or a setting is wrong.
            UnsupportedTable: The table has a feature, named, that cannot be handled rightly.
        """
        storage = open_storage(path, storage_options)
        config = read_config(storage, settings)
        check_no_schema_on_read(storage)
        return cls(storage, config)
