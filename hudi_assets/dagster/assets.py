"""The assets of a table. Each calls the engine once and says in its metadata what came of it.

    mor_table → compaction_plan → ro_snapshot → freshness → housekeeping

`ro_snapshot` and `freshness` are made by one step. So a failed blocking check of `ro_snapshot` stops whoever
reads the read-optimized view, and never the publishing of a freshness that has fallen back.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Protocol, TypedDict, runtime_checkable

from dagster import (
    AssetExecutionContext,
    AssetKey,
    AssetObservation,
    AssetsDefinition,
    AssetSpec,
    Config,
    DataVersion,
    FreshnessPolicy,
    MaterializeResult,
    MetadataValue,
    ObserveResult,
    OpExecutionContext,
    TimeWindowPartitionsDefinition,
    asset,
    multi_asset,
    observable_source_asset,
)

from hudi_assets.dagster import report
from hudi_assets.dagster.told import seconds_besides, told_metadata
from hudi_assets.engine import CorruptTable, NoPlan, Plan, SloTerms, duration

if TYPE_CHECKING:
    import pyarrow as pa

    from hudi_assets.engine import Finding, HudiTable
    from hudi_assets.resources import TableResource

PARTITION_FORMAT = "%Y-%m-%dT%H:%M:%SZ"
# Kinds of findings (engine.validate) on which nothing may be compacted.
_DAMAGE = frozenset({"missing_file", "short_file", "phantom_slice", "missing_link", "link_differs"})
HOUR_MS = 3_600_000
# The assets that keep a table in order.
MAINTENANCE = ("compaction_plan", "ro_snapshot", "freshness", "housekeeping")


class Batch(Protocol):
    """One window of delivery: one partition of `mor_table`, one delta commit. Times: epoch ms UTC."""

    @property
    def id(self) -> str: ...
    @property
    def start_ms(self) -> int: ...
    @property
    def end_ms(self) -> int: ...


@runtime_checkable
class BatchSource(Protocol):
    """Where a table's rows come from, window by window."""

    @property
    def schema(self) -> "pa.Schema": ...
    @property
    def batches(self) -> Sequence[Any]: ...
    def rows(self, batch: Any) -> "pa.Table": ...


class Labels(TypedDict):
    """What Dagster shows of an asset beside its key."""

    group_name: str
    owners: list[str]
    tags: dict[str, str]


@dataclass(frozen=True)
class TableAssets:
    """A table's names in Dagster and its limits, as its YAML block says. Times in ms of event time."""

    name: str
    description: str | None
    ro_view: str
    rt_view: str
    compact_every_ms: int
    freshness_slo_ms: int | None
    sensor_name: str
    sensor_interval: int
    sensor_running: bool
    report_every_ms: int
    system_clock: bool
    external: bool
    spark_key: str
    catalog_key: str
    group: str | None = None
    owners: tuple[str, ...] = ()
    tags: Mapping[str, str] = field(default_factory=dict)
    # What the sensor goes by in place of `compact_every`, and for how long at most nobody looks. None: `compact_every`.
    slo_terms: SloTerms | None = None
    look_every_ms: int = 60_000
    # The key of the resource in which this table is one of many. None: it has one of its own.
    shared_key: str | None = None

    def key(self, asset_name: str) -> AssetKey:
        return AssetKey([self.name, asset_name])

    @property
    def resource_key(self) -> str:
        return self.shared_key or f"{self.name}_table"

    @property
    def pool(self) -> str:
        """Dagster's concurrency key. The instance allows one run at a time in each pool."""
        return f"hudi_{self.name}"

    @property
    def labels(self) -> Labels:
        """What every asset of the table carries: its group, owners and tags."""
        return {"group_name": self.group or self.name, "owners": list(self.owners), "tags": dict(self.tags)}

    @property
    def run_tags(self) -> dict[str, str]:
        return {"hudi_assets/table": self.name}

    def resource(self, context: Any) -> "TableResource":
        """Where the table is, as a run or a tick finds it among its resources."""
        found: TableResource | Mapping[str, TableResource] = getattr(context.resources, self.resource_key)
        return found[self.name] if isinstance(found, Mapping) else found

    def open(self, context: Any) -> "HudiTable":
        return self.resource(context).open()


class CompactionConfig(Config):
    """For the Launchpad. Without a threshold: the table's clock minus the data latency."""

    threshold: str | None = None
    """Event time up to which to compact: ISO-8601 (UTC if it names no zone) or epoch milliseconds.

    A run makes one compaction. On versions 8 and 9, and with bounds, it may reach less: `threshold` in the metadata
    says how far. The sensor asks for the next ones.
    """
    data_latency: str | None = None
    """From event to commit, as `2h`, or `auto`, for this run only."""
    dry_run: bool = False
    """Show the plan, and what each threshold would cost; write nothing."""


def partitions_of(source: BatchSource) -> TimeWindowPartitionsDefinition:
    """The source's windows as partitions; a batch's id is its partition key.

    The windows must be whole hours that divide a day, without gaps. Raises ValueError otherwise.
    """
    first, last = source.batches[0], source.batches[-1]
    hours, rest = divmod(first.end_ms - first.start_ms, HOUR_MS)
    if rest or not hours or 24 % hours:
        raise ValueError(
            f"source: the batch {first.id} is a window of {duration(first.end_ms - first.start_ms)}; "
            "give windows of 1, 2, 3, 4, 6, 8, 12 or 24 hours"
        )
    partitions = TimeWindowPartitionsDefinition(
        start=datetime.fromtimestamp(first.start_ms / 1000, UTC),
        end=datetime.fromtimestamp(last.end_ms / 1000, UTC),
        cron_schedule="0 0 * * *" if hours == 24 else f"0 */{hours} * * *",
        fmt=PARTITION_FORMAT,
        timezone="UTC",
    )
    # Of windows that are still to come the partitions are not there yet.
    now = time.time() * 1000
    begins = first.end_ms > now or partitions.get_first_partition_key() == first.id
    ends = last.end_ms > now or partitions.get_last_partition_key() == last.id
    if not begins or not ends:
        raise ValueError(
            f"source: the ids of the batches ({first.id} … {last.id}) are not the starts of their windows; "
            "name a batch as 2013-01-01T03:00:00Z, and leave no gaps"
        )
    return partitions


def external_table_asset(table: TableAssets) -> AssetsDefinition:
    """`mor_table` of a table that others write: observed, its newest commit is its data version."""

    @observable_source_asset(
        key=table.key("mor_table"),
        description=table.description,
        required_resource_keys={table.resource_key},
        # It has no owners: Dagster gives them to what it can materialize.
        group_name=table.labels["group_name"],
        tags=table.labels["tags"],
    )
    def mor_table(context: OpExecutionContext) -> ObserveResult:
        hudi = table.open(context)
        stats = hudi.stats()
        return ObserveResult(
            data_version=DataVersion(stats.last_commit or "none"),
            metadata=report.stats_metadata(stats, hudi.now_ms())
            | report.latency_metadata(hudi)
            | report.schema_metadata(hudi),
        )

    # A source asset; Definitions takes both, the type says only one.
    return mor_table  # type: ignore[return-value]


def compaction_plan_asset(table: TableAssets) -> AssetsDefinition:
    """`compaction_plan`: a published plan, or nothing with the reason, and then what follows is skipped."""

    @asset(
        key=table.key("compaction_plan"),
        deps=[table.key("mor_table")],
        output_required=False,
        description=(
            "A compaction plan on event time. Nothing due: no output, and the reason in the log. Materialized alone it "
            "publishes a plan, which the sensor's next tick has executed."
        ),
        required_resource_keys={table.resource_key},
        pool=table.pool,
        kinds={"hudi"},
        **table.labels,
    )
    def compaction_plan(context: AssetExecutionContext, config: CompactionConfig) -> Iterator[MaterializeResult]:  # type: ignore[type-arg]
        tag_run(context, table)
        hudi = table.open(context)
        for sentence in () if config.dry_run else hudi.recover():
            context.log.warning(sentence)
        if not config.dry_run:
            _refuse_damage(hudi)
        plan = _pending_or_new_plan(context, hudi, config)
        # With a plan pending no other can be made, at whatever threshold.
        curve = hudi.cost_curve() if config.dry_run and hudi.pending_plan() is None else ()
        if isinstance(plan, NoPlan):
            observe(context, f"Nothing to compact: {plan.reason}", report.cost_metadata(curve))
            return
        metadata = report.plan_metadata(hudi, plan, config.data_latency)
        if config.dry_run:
            observe(context, "Dry run: this plan was not published.", metadata | report.cost_metadata(curve))
            return
        yield MaterializeResult(metadata=metadata)

    return compaction_plan


def read_optimized_assets(table: TableAssets) -> AssetsDefinition:
    """`ro_snapshot` (executes the pending plan) and `freshness` (publishes the promise), in one step."""
    ro_snapshot, freshness = table.key("ro_snapshot"), table.key("freshness")

    @multi_asset(
        name=f"{table.name}__read_optimized",
        specs=[
            AssetSpec(
                ro_snapshot,
                deps=[table.key("compaction_plan")],
                skippable=True,
                description="The read-optimized view after the pending plan was executed: plain Parquet.",
                kinds={"hudi", "spark", "parquet"},
                **table.labels,
            ),
            AssetSpec(
                freshness,
                deps=[ro_snapshot],
                skippable=True,
                freshness_policy=_publishing_policy(table),
                description=(
                    "The event time up to which the read-optimized view is complete, published as properties "
                    f"of {table.ro_view} and {table.rt_view} in Spark's catalog."
                ),
                kinds={"hudi", "spark"},
                **table.labels,
            ),
        ],
        can_subset=True,
        required_resource_keys={table.spark_key, table.catalog_key, table.resource_key},
        pool=table.pool,
    )
    def read_optimized(context: AssetExecutionContext) -> Iterator[MaterializeResult]:  # type: ignore[type-arg]
        tag_run(context, table)
        hudi = table.open(context)
        session = getattr(context.resources, table.spark_key)
        compacting = None
        if ro_snapshot in context.selected_asset_keys:
            plan = unfinished_plan(hudi)
            if plan is None:
                context.log.info("No compaction is pending: the read-optimized view stays as it is.")
            else:
                result = hudi.execute_compaction(session.spark_session, plan.instant)
                compacting = result.seconds
                yield MaterializeResult(ro_snapshot, metadata=report.compaction_metadata(hudi, plan, result))
        if freshness in context.selected_asset_keys:
            promise = hudi.freshness()
            catalog = getattr(context.resources, table.catalog_key)
            spark = session.spark_session if catalog.needs_spark else None
            properties = catalog.publish(spark, hudi, ro=table.ro_view, rt=table.rt_view)
            metadata = report.freshness_metadata(hudi, promise, properties)
            besides = None if compacting is None else seconds_besides(context.instance, context.run.run_id, compacting)
            metadata |= told_metadata(context.instance, freshness, properties, besides)
            yield MaterializeResult(freshness, metadata=metadata)

    return read_optimized


def _publishing_policy(table: TableAssets) -> FreshnessPolicy | None:
    """Dagster's own word for it when nobody publishes any more, the sensor being dead too: stale after the SLO.

    Dagster goes by the system's clock, and so do not tables that replay a stream.
    """
    if table.freshness_slo_ms is None or not table.system_clock:
        return None
    window = timedelta(milliseconds=table.freshness_slo_ms)
    return FreshnessPolicy.time_window(fail_window=max(window, timedelta(minutes=1)))


def tag_run(context: AssetExecutionContext, table: TableAssets) -> None:
    """A run that a person started in the UI has not got the table's tag, by which the sensor finds those that ended."""
    context.instance.add_run_tags(context.run.run_id, table.run_tags)


def unfinished_plan(hudi: "HudiTable") -> Plan | None:
    """Our own plan that is published and not executed yet. Those of other engines are theirs to execute."""
    return ours(hudi.pending_plan())


def ours(pending: Plan | None) -> Plan | None:
    """A pending plan, if it is our own."""
    return pending if pending is not None and pending.is_ours else None


def _refuse_damage(hudi: "HudiTable") -> None:
    """Raises `CorruptTable` where files of the newest slices are not there as they were written.

    A compaction would merge what is left of them, and after it nothing would show that rows are gone.
    """
    for finding in lasting_findings(hudi):
        if finding.kind in _DAMAGE:
            raise CorruptTable(finding.what, where=f"{hudi.path}: {finding.path}", hint=finding.hint)


def lasting_findings(hudi: "HudiTable") -> list["Finding"]:
    """What `validate` finds twice: beside running writers, one look may fall between two of their steps."""
    first = hudi.validate()
    again = set(hudi.validate()) if first else set()
    return [finding for finding in first if finding in again]


def _pending_or_new_plan(context: AssetExecutionContext, hudi: "HudiTable", config: CompactionConfig) -> Plan | NoPlan:
    """A plan that an earlier run published and did not finish comes first: nothing else can start."""
    pending = unfinished_plan(hudi)
    if pending is not None and not config.dry_run:
        context.log.warning(f"Going on with the compaction {pending.instant}, planned earlier and not finished.")
        return pending
    return hudi.plan_compaction(threshold=config.threshold, data_latency=config.data_latency, dry_run=config.dry_run)


def observe(context: AssetExecutionContext, reason: str, metadata: dict[str, Any]) -> None:
    context.log.info(reason)
    context.log_event(AssetObservation(context.asset_key, metadata={"reason": MetadataValue.text(reason)} | metadata))
