"""Making a table: what the caller asks for, checked, as the properties of an empty table."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hudi_assets.engine.actions.compaction.residue import check_exact_split
from hudi_assets.engine.actions.writing.log_files import check_fields
from hudi_assets.engine.errors import InvalidInput
from hudi_assets.engine.format.avro import schema as avro
from hudi_assets.engine.model import MergeMode
from hudi_assets.engine.model.units import EVENT_TIME_UNIT, EventTimeUnit, Latency, parse_latency, unit_of
from hudi_assets.engine.spark import session as spark
from hudi_assets.engine.storage import Storage
from hudi_assets.engine.table.layout.interface import Layout
from hudi_assets.engine.table.schema_evolution import check_columns
from hudi_assets.engine.table.settings.config import (
    AUTO,
    CLOCK,
    DATA_LATENCY,
    LOG_BLOCK_FORMAT,
    PROPERTIES,
    URL_ENCODE,
    WRITERS,
    TableConfig,
    for_store,
    parse_config,
)
from hudi_assets.engine.table.settings.in_a_bucket import refuse_in_a_bucket
from hudi_assets.engine.table.settings.java_properties import dump_properties
from hudi_assets.engine.table.settings.merging import EXACT_SPLIT, TABLE_SERVICES
from hudi_assets.engine.table.settings.new_table import new_table_properties

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_MOST_BUCKETS = 99_999_999  # a bucket's file id begins with eight digits


@dataclass(frozen=True, slots=True)
class NewTable:
    """What `HudiTable.create` was asked for; its docstring says what each means."""

    schema: StructType | pa.Schema | str
    record_key: Sequence[str]
    ordering_field: str | None
    event_time_field: str | None
    partition_fields: Sequence[str]
    buckets: int
    name: str | None
    event_time_unit: str | None
    data_latency: Latency | None
    clock: str
    log_block_format: str
    hive_style: bool
    url_encode: bool
    merge_mode: MergeMode | str
    exact_split: bool = False

    def own_settings(self) -> Mapping[str, str]:
        own = {CLOCK: self.clock, LOG_BLOCK_FORMAT: self.log_block_format, WRITERS: "stopped"}
        if self.exact_split:
            # Only our own execution splits: both belong into the table's properties, for every writer to see.
            own |= {EXACT_SPLIT: "true", TABLE_SERVICES: "ours"}
        if self.url_encode:
            own[URL_ENCODE] = "true"
        if self.data_latency is not None:
            own[DATA_LATENCY] = AUTO if self.data_latency == AUTO else f"{parse_latency(self.data_latency)}ms"
        return own


def create_table(storage: Storage, asked: NewTable, layout: Layout) -> TableConfig:
    """Write hoodie.properties of an empty table. Raises `InvalidInput` before anything is written."""
    name = asked.name or storage.base.rstrip("/").rsplit("/", 1)[-1]
    avro_json = _as_avro(asked.schema, name)
    arrow = avro.avro_to_arrow_schema(avro_json)
    _check_shape(asked)
    time_field = asked.event_time_field or asked.ordering_field
    if time_field is None:
        raise InvalidInput("A table without an ordering field needs event_time_field.", where=storage.base)
    properties = new_table_properties(
        name=name,
        avro_schema=avro_json,
        record_key=asked.record_key,
        ordering_field=asked.ordering_field,
        merge_mode=_merge_mode(asked.merge_mode),
        event_time_field=time_field,
        partition_fields=asked.partition_fields,
        buckets=asked.buckets,
        layout=layout,
        hive_style=asked.hive_style,
        own={**asked.own_settings(), **_unit_setting(asked, arrow, time_field)},
    )
    config = for_store(parse_config(properties, storage.base), storage)
    check_columns(arrow)
    check_fields(arrow, config)
    unit = unit_of(arrow.field(time_field).type, config.event_time_unit, time_field)
    check_exact_split(config, unit, layout, storage.base)
    refuse_in_a_bucket(config, layout, storage)
    storage.check_writable()
    if storage.exists(PROPERTIES):
        raise InvalidInput("There is a Hudi table already.", where=storage.base, hint="Open it instead.")
    storage.create(PROPERTIES, dump_properties(properties))
    # Hudi's readers and writers list the timeline's folder, empty or not, and fail where it is missing.
    storage.make_folder(layout.timeline_folder)
    return config


def _unit_setting(asked: NewTable, schema: pa.Schema, time_field: str) -> Mapping[str, str]:
    """Stated in each table with a column of integers: nobody has to infer it, or to know our default."""
    unit = asked.event_time_unit
    if unit is None and time_field in schema.names and pa.types.is_integer(schema.field(time_field).type):
        # As milliseconds, 32 bits end in January 1970.
        unit = EventTimeUnit.MILLIS if pa.types.is_int64(schema.field(time_field).type) else EventTimeUnit.SECONDS
    return {} if unit is None else {EVENT_TIME_UNIT: str(unit)}


def _check_shape(asked: NewTable) -> None:
    if isinstance(asked.record_key, str) or not asked.record_key:
        raise InvalidInput("record_key takes a list with at least one column.")
    if not 1 <= asked.buckets <= _MOST_BUCKETS:
        raise InvalidInput(f"buckets is {asked.buckets}.", hint="Give at least 1.")


def _merge_mode(value: MergeMode | str) -> MergeMode:
    try:
        return MergeMode(str(value).strip().upper())
    except ValueError:
        modes = ", ".join(MergeMode)
        raise InvalidInput(f"There is no merge mode {value!r}.", hint=f"It may be: {modes}.") from None


def _as_avro(schema: Any, table_name: str) -> str:
    """Any of the accepted schema kinds as Avro JSON without meta columns."""
    if isinstance(schema, str):
        json.loads(schema)
        return schema
    if not isinstance(schema, pa.Schema):
        schema = spark.arrow_schema(schema)
    name, namespace = avro.record_name(table_name)
    return avro.arrow_to_avro_schema(schema, name, namespace)
