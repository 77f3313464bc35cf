"""A table as a Dagster resource: where it is, and how it is made when it is not there yet."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from dagster import ConfigurableResource

from hudi_assets.engine import DATA_LATENCY, EVENT_TIME_FIELD, EVENT_TIME_UNIT, HudiTable, open_storage
from hudi_assets.home import home


class TableResource(ConfigurableResource):  # type: ignore[type-arg]
    """One Hudi merge-on-read table. A relative `path` lies under the home directory (HUDI_ASSETS_HOME).

    The fields from `record_key` on are for `open_or_create`; an existing table keeps its own. Only where it names no
    event-time field or unit are `event_time_field` and `event_time_unit` taken for it.
    `settings` are `hoodie.*` and `hudi_assets.*` keys that go over the table's own.
    """

    name: str
    path: str
    settings: dict[str, str] = {}  # noqa: RUF012 - a pydantic field
    data_latency: str | None = None
    record_key: list[str] = []  # noqa: RUF012
    ordering_field: str | None = None
    event_time_field: str | None = None
    event_time_unit: str | None = None
    partition_fields: list[str] = []  # noqa: RUF012
    buckets: int = 4
    clock: str = "system"

    @property
    def location(self) -> str:
        return self.path if "://" in self.path else str(home() / Path(self.path).expanduser())

    def open(self) -> HudiTable:
        settings = dict(self.settings)
        if self.data_latency:
            settings.setdefault(DATA_LATENCY, self.data_latency)
        table = HudiTable.open(self.location, settings=settings)
        missing = {
            key: given
            for key, given, stated in (
                # Apache Hudi's writers do not keep them in the table's properties.
                (EVENT_TIME_FIELD, self.event_time_field, table.config.event_time_field),
                (EVENT_TIME_UNIT, self.event_time_unit, table.config.event_time_unit),
            )
            if given and stated is None
        }
        return HudiTable.open(self.location, settings={**settings, **missing}) if missing else table

    def exists(self) -> bool:
        return open_storage(self.location).is_directory(".hoodie")

    def open_or_create(self, schema: pa.Schema) -> HudiTable:
        """The table, made from `schema` (without Hudi's meta columns) when it is not there yet."""
        if self.exists():
            return self.open()
        if not self.record_key or not self.ordering_field:
            raise ValueError(
                f"the table {self.name} does not exist at {self.location}, and its block in defs.yaml says "
                "neither record_key nor ordering_field: without them it cannot be created"
            )
        HudiTable.create(
            self.location,
            schema,
            record_key=self.record_key,
            ordering_field=self.ordering_field,
            event_time_field=self.event_time_field,
            event_time_unit=self.event_time_unit or self.settings.get(EVENT_TIME_UNIT),
            partition_fields=self.partition_fields,
            buckets=self.buckets,
            data_latency=self.data_latency,
            clock=self.clock,
            name=self.name,
        )
        return self.open()
