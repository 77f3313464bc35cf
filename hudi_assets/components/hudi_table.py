"""One YAML block per table becomes its assets, checks, job and sensor.

A block says either where rows come from (`source`: a batch source, for tables this platform writes) or
`external: true`, for tables that others write. `docs/how-to/dagster.md` describes every field;
`defs/flights/defs.yaml` is the example.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from dagster import ComponentLoadContext, Definitions, Model, Resolvable, scaffold_with
from pydantic import Field, ValidationInfo, field_validator, model_validator

from hudi_assets.components.fields import BoundsModel, IngestModel, SensorModel, SourceModel, checked_duration
from hudi_assets.components.refused import Block, are_shown, refused_block
from hudi_assets.components.scaffolding import TableScaffolder
from hudi_assets.dagster.assets import (
    BatchSource,
    TableAssets,
    compaction_plan_asset,
    external_table_asset,
    partitions_of,
    read_optimized_assets,
)
from hudi_assets.dagster.checks import table_checks
from hudi_assets.dagster.housekeeping import housekeeping_asset
from hudi_assets.dagster.ingestion import ingestion_asset, ingestion_job, ingestion_schedule
from hudi_assets.dagster.sensors import compaction_job, event_time_trigger
from hudi_assets.engine import (
    AUTO,
    EXECUTOR,
    HudiAssetsError,
    SloTerms,
    TriggerName,
    check_own_settings,
    duration,
    parse_latency,
    terms_of,
)
from hudi_assets.resources import Catalog, SparkResource, TableResource

TRIGGER = "hoodie.compact.inline.trigger.strategy"
STRATEGY = "hoodie.compaction.strategy"
EVENT_TIME_TRIGGER = TriggerName.EVENT_TIME.value
# What a block uses unless it names resources of its project. One object each: all blocks share them.
_SPARKS = {  # by `shared_spark`
    None: ("hudi_spark", SparkResource()),
    True: ("hudi_shared_spark", SparkResource(shared=True)),
    False: ("hudi_own_spark", SparkResource(shared=False)),
}
_CATALOG_KEY, _CATALOG = "hudi_catalog", Catalog(home=True)
# With a Spark of the project's own: whatever catalog its session has.
_SPARKS_CATALOG_KEY, _SPARKS_CATALOG = "hudi_sparks_catalog", Catalog()


@dataclass(frozen=True)
class TableParts:
    """What a block makes of its table, without sensor and job."""

    table: TableAssets
    resource: TableResource
    definitions: Definitions


@scaffold_with(TableScaffolder)
class HudiTableComponent(Block, Model, Resolvable):
    """A Hudi merge-on-read table that is compacted on event time and says how fresh its RO view is."""

    name: str
    path: str
    description: str | None = None
    group: str | None = None
    """Dagster's group of the table's assets. None: the table's name."""
    owners: list[str] = Field(default_factory=list)
    """Of the table's assets: e-mail addresses, or `team:…`."""
    tags: dict[str, str] = Field(default_factory=dict)
    """Of the table's assets."""
    source: SourceModel | None = None
    ingest: IngestModel | None = None
    """For a `source`: when to ingest. None: by hand, or by a schedule of your own."""
    external: bool = False

    # Used when the table is created; a table that exists keeps its own.
    record_key: list[str] = Field(default_factory=list)
    ordering_field: str | None = None
    event_time_field: str | None = None
    event_time_unit: Literal["s", "ms", "us"] | None = None
    partition_fields: list[str] = Field(default_factory=list)
    buckets: int = 4
    clock: Literal["system", "commit"] = "system"

    data_latency: str | None = None
    """From event to commit, as `2h`: everything older is committed. `auto`: learned. None: the table's own."""
    compact_every: str = "1h"
    """By how much, in event time, the threshold moves on before the sensor asks for a compaction."""
    freshness_slo: str | None = None
    """By how much the freshness may lie behind the clock, as `6h`. None: no such check."""
    compact_by: Literal["compact_every", "freshness_slo"] = "compact_every"
    """What the sensor goes by. `freshness_slo`: as late as the SLO allows, with the fewest bytes."""
    bounds: BoundsModel = Field(default_factory=BoundsModel)
    """With `compact_by: freshness_slo`: what comes before the SLO."""
    writers: Literal["stopped", "locked"] | None = None
    """`stopped` or `locked`: what the owner of an external table says about its other writers."""
    executor: Literal["native", "hudi"] | None = None
    """`native` or `hudi`: who executes compactions (versions 8 and 9). None: the table's own, or native."""
    settings: dict[str, str | int | float | bool] = Field(default_factory=dict)
    """`hoodie.*` and `hudi_assets.*` keys over the table's own. Dagster makes numbers of numbers, quoted or not."""
    ro_view: str | None = None
    rt_view: str | None = None
    spark_resource: str | None = None
    """The key of a resource of your own with a `spark_session`. None: a local Spark that the block brings."""
    shared_spark: bool | None = None
    """Whether all runs share that Spark. None: as HUDI_ASSETS_SHARED_SPARK says, else each run has its own."""
    catalog_resource: str | None = None
    """The key of a `Catalog` of your own. None: the metastore in the home directory, or your Spark's catalog."""
    sensor: SensorModel = Field(default_factory=SensorModel)

    @field_validator("name")
    @classmethod
    def _name_is_an_identifier(cls, name: str) -> str:
        if not name.isidentifier():
            raise ValueError(f"name: {name!r} must be letters, digits and underscores")
        return name

    @field_validator("data_latency", "compact_every", "freshness_slo")
    @classmethod
    def _is_a_latency(cls, text: str | None, info: ValidationInfo) -> str | None:
        if text is not None and not (info.field_name == "data_latency" and text == AUTO):
            checked_duration(info.field_name or "", text)
        return text

    @field_validator("settings")
    @classmethod
    def _settings_exist(cls, settings: dict[str, str | int | float | bool]) -> dict[str, str | int | float | bool]:
        wrong = next((key for key in settings if not key.startswith(("hoodie.", "hudi_assets."))), None)
        if wrong is not None:
            raise ValueError(f"settings: {wrong!r} is neither hoodie.… nor hudi_assets.…")
        try:
            check_own_settings({key: _as_property(value) for key, value in settings.items()}, "settings")
        except HudiAssetsError as error:
            raise ValueError(str(error)) from error
        return settings

    @model_validator(mode="after")
    def _source_or_external(self) -> HudiTableComponent:
        if self.external == (self.source is not None):
            raise ValueError(f"table {self.name}: say either `source` or `external: true`")
        if self.ingest is not None and self.source is None:
            raise ValueError(f"table {self.name}: ingest: there is no `source` to ingest from")
        return self

    @model_validator(mode="after")
    def _slo_can_be_kept(self) -> HudiTableComponent:
        """Before a compaction it lies latency, `compact_every` and a tick behind the clock.

        A latency that is learned, or the table's own, counts for nothing.
        """
        if self.freshness_slo is None:
            return self
        # Neither another trigger than event time nor the SLO goes by compact_every.
        by_every = self.compact_by == "compact_every" and self._is_by_event_time()
        given, tick = self.sensor.minimum_interval_seconds, self.sensor.longest_ms
        look = f"look_every: {self.sensor.look_every}" if given is None else f"minimum_interval_seconds: {given}"
        parts = {f"sensor.{look}": tick}
        if by_every:
            parts = {f"compact_every: {self.compact_every}": parse_latency(self.compact_every)} | parts
        if self._known_latency_ms:
            parts = {f"data_latency: {self.data_latency}": self._known_latency_ms} | parts
        least = sum(parts.values())
        if least > parse_latency(self.freshness_slo):
            raise ValueError(
                f"table {self.name}: freshness_slo: {self.freshness_slo} can never be kept. The freshness comes to lie "
                f"{' + '.join(parts)}, that is {duration(least)}, behind the clock before a compaction is asked for. "
                f"Raise freshness_slo{', or lower compact_every.' if by_every else '.'}"
            )
        return self

    @model_validator(mode="after")
    def _goes_by_what_it_has(self) -> HudiTableComponent:
        by_slo = self.compact_by == "freshness_slo"
        if by_slo and self.freshness_slo is None:
            raise ValueError(f"table {self.name}: compact_by: freshness_slo: there is no freshness_slo")
        if not by_slo and self.bounds != BoundsModel():
            raise ValueError(f"table {self.name}: bounds: they go with compact_by: freshness_slo")
        if by_slo and self.settings.get(TRIGGER, EVENT_TIME_TRIGGER) != EVENT_TIME_TRIGGER:
            raise ValueError(f"table {self.name}: compact_by: freshness_slo goes with no {TRIGGER} of Hudi's")
        if self.spark_resource and self.shared_spark is not None:
            raise ValueError(f"table {self.name}: shared_spark: say it of the resource {self.spark_resource}")
        if self.shared_spark and self._is_by_hudi():
            raise ValueError(f"table {self.name}: shared_spark: executor: hudi needs a Spark of the run's own")
        try:
            self._terms()
        except HudiAssetsError as error:
            raise ValueError(f"table {self.name}: bounds: {error}") from error
        return self

    def build_defs(self, context: ComponentLoadContext) -> Definitions:
        try:
            parts = self.parts(context)
            job = compaction_job(parts.table)
            trigger = event_time_trigger(parts.table, job)
            return Definitions.merge(parts.definitions, Definitions(jobs=[job], sensors=[trigger]))
        except Exception as problem:
            if not are_shown():
                raise
            return refused_block(self.name, problem, context).definitions()

    def parts(self, context: ComponentLoadContext, shared_key: str | None = None) -> TableParts:
        """All of the table but the sensor and its job: many tables may share those.

        `shared_key`: of the resource that many tables share, which the caller brings.
        """
        table, resource = self._table_assets(shared_key), self._resource()
        try:
            source = None if self.source is None else self.source.load()
            ingested = None if source is None else ingestion_asset(table, source, partitions_of(source))
        except (TypeError, ValueError) as error:
            raise type(error)(f"{context.path}: {error}") from error
        mor_table = external_table_asset(table) if ingested is None else ingested
        assets = [mor_table, compaction_plan_asset(table), read_optimized_assets(table), housekeeping_asset(table)]
        definitions = Definitions(
            assets=assets,
            asset_checks=table_checks(table),
            resources=self._shared() if shared_key else {table.resource_key: resource, **self._shared()},
        )
        if source is not None and self.ingest is not None:
            definitions = Definitions.merge(definitions, self._ingestion(table, source, self.ingest))
        return TableParts(table, resource, definitions)

    def _ingestion(self, table: TableAssets, source: BatchSource, ingest: IngestModel) -> Definitions:
        job = ingestion_job(table, partitions_of(source))
        schedule = ingestion_schedule(
            table, source, job, cron=ingest.cron, most_windows=ingest.most_windows, running=ingest.running
        )
        return Definitions(jobs=[job], schedules=[schedule])

    def _shared(self) -> dict[str, Any]:
        """The resources that the project need not bring."""
        spark = {} if self.spark_resource else dict([self._spark()])
        if self.catalog_resource:
            return spark
        return spark | ({_SPARKS_CATALOG_KEY: _SPARKS_CATALOG} if self.spark_resource else {_CATALOG_KEY: _CATALOG})

    def _spark(self) -> tuple[str, SparkResource]:
        """For Hudi's own classes a Spark of the run's own, whatever the environment says."""
        return _SPARKS[False if self._is_by_hudi() else self.shared_spark]

    def _is_by_hudi(self) -> bool:
        return (self.executor or self.settings.get(EXECUTOR)) == "hudi"

    def _table_assets(self, shared_key: str | None = None) -> TableAssets:
        return TableAssets(
            name=self.name,
            description=self.description,
            ro_view=self.ro_view or f"{self.name}_ro",
            rt_view=self.rt_view or f"{self.name}_rt",
            compact_every_ms=parse_latency(self.compact_every),
            freshness_slo_ms=None if self.freshness_slo is None else parse_latency(self.freshness_slo),
            slo_terms=self._terms(),
            look_every_ms=self.sensor.longest_ms,
            sensor_name=self.sensor.name or f"{self.name}_event_time_trigger",
            sensor_interval=self.sensor.interval,
            sensor_running=self.sensor.running,
            report_every_ms=parse_latency(self.sensor.report_every),
            system_clock=self.clock == "system",
            external=self.external,
            spark_key=self.spark_resource or self._spark()[0],
            catalog_key=self.catalog_resource or (_SPARKS_CATALOG_KEY if self.spark_resource else _CATALOG_KEY),
            group=self.group,
            owners=tuple(self.owners),
            tags=self.tags,
            shared_key=shared_key,
        )

    def _terms(self) -> SloTerms | None:
        """None: the sensor goes by `compact_every`."""
        if self.freshness_slo is None or self.compact_by != "freshness_slo":
            return None
        bounds = self.bounds
        return terms_of(
            self.freshness_slo,
            bounds.late_every,
            bounds.least_gap,
            bounds.bytes_per_hour,
            bounds.hours,
            data_latency=self._known_latency_ms,
            look_every=self.sensor.longest_ms,
        )

    @property
    def _known_latency_ms(self) -> int:
        """0 where the table says, or its commits."""
        return 0 if self.data_latency in (None, AUTO) else parse_latency(self.data_latency or "")

    def _is_by_event_time(self) -> bool:
        """Whether event times make a compaction due: not by default where the strategy is Hudi's."""
        stated = self.settings.get(TRIGGER)
        return STRATEGY not in self.settings if stated is None else stated == EVENT_TIME_TRIGGER

    def _resource(self) -> TableResource:
        settings = {key: _as_property(value) for key, value in self.settings.items()}
        if self.writers:
            settings["hudi_assets.writers"] = self.writers
        if self.executor:
            settings[EXECUTOR] = self.executor
        return TableResource(
            name=self.name,
            path=self.path,
            settings=settings,
            data_latency=self.data_latency,
            record_key=self.record_key,
            ordering_field=self.ordering_field,
            event_time_field=self.event_time_field,
            event_time_unit=self.event_time_unit,
            partition_fields=self.partition_fields,
            buckets=self.buckets,
            clock=self.clock,
        )


def _as_property(value: str | int | float | bool) -> str:
    """As hoodie.properties has it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
