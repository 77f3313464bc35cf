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
from hudi_assets.engine.table.layout.choice import layout_of
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
        table_version: int = 6,
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
        """Create an empty table at a path that holds none.

        `schema`: Spark, Arrow or Avro (JSON). `event_time_field` defaults to the ordering field;
        `event_time_unit` (s, ms, us) is how a column of integers counts; it is stated in the table, `ms` where
        nothing is given (`s` for 32 bits). `data_latency`: how long from
        an event to its commit, or "auto" to learn it from the commits. `clock`: "system", or "commit" for a
        replayed stream whose time is the newest commit's `clock_time`. `hive_style`, `url_encode`: how partition
        values name folders (`field=value`; escaped as Hudi does). `merge_mode`: see `docs/explanation/merge.md`;
        COMMIT_TIME_ORDERING takes no ordering field, so it needs the event-time field. `exact_split`: no record
        above a threshold gets into the read-optimized view by compaction; Hudi's own table services are off then.
        Raises `InvalidInput` before anything is written.
        """
        storage = open_storage(path, storage_options)
        layout = layout_of(table_version, storage.base)
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
        """Open a table. `settings` (hoodie.* and hudi_assets.* keys) overlay the table's own for this process.

        Raises `InvalidInput` for a path that holds no table and `UnsupportedTable`, naming the feature,
        for one that cannot be handled rightly.
        """
        storage = open_storage(path, storage_options)
        config = read_config(storage, settings)
        check_no_schema_on_read(storage)
        return cls(storage, config)
