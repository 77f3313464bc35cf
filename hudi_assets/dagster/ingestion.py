"""`mor_table` of a table that this platform writes: windows of delivery become delta commits, by hand or by a schedule.

One window is one partition and one delta commit, however many windows a run is asked for. A window is committed once;
`again` in the Launchpad upserts its rows anew, by their keys.
"""

import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from dagster import (
    AssetExecutionContext,
    AssetsDefinition,
    AssetSelection,
    BackfillPolicy,
    Config,
    DagsterInstance,
    DagsterRunStatus,
    DefaultScheduleStatus,
    MaterializeResult,
    RunRequest,
    RunsFilter,
    ScheduleDefinition,
    ScheduleEvaluationContext,
    SkipReason,
    TimeWindowPartitionsDefinition,
    asset,
    define_asset_job,
    in_process_executor,
    schedule,
)

from hudi_assets.dagster import report
from hudi_assets.dagster.assets import Batch, BatchSource, TableAssets

if TYPE_CHECKING:
    import pyarrow as pa
    from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition
    from pyspark.sql import DataFrame, SparkSession

    from hudi_assets.engine import HudiTable

# Dagster's own tags of a run of several partitions.
_RANGE_START, _RANGE_END = "dagster/asset_partition_range_start", "dagster/asset_partition_range_end"
INGESTION_TAG = "hudi_assets/ingestion"
UNFINISHED: Final = [
    DagsterRunStatus.QUEUED,
    DagsterRunStatus.NOT_STARTED,
    DagsterRunStatus.STARTING,
    DagsterRunStatus.STARTED,
    DagsterRunStatus.CANCELING,
]


class IngestionConfig(Config):
    """For the Launchpad."""

    again: bool = False
    """Upsert the rows of windows that are committed already: their source has changed. Rows that the source no longer
    has stay in the table."""


def ingestion_asset(
    table: TableAssets, source: BatchSource, partitions: TimeWindowPartitionsDefinition
) -> AssetsDefinition:
    """`mor_table`: one partition is one batch is one delta commit; a run may be of many, the oldest first."""

    @asset(
        key=table.key("mor_table"),
        partitions_def=partitions,
        # A backfill is one run with one Spark.
        backfill_policy=BackfillPolicy.single_run(),
        description=table.description,
        required_resource_keys={table.spark_key, table.resource_key},
        pool=table.pool,
        kinds={"hudi", "spark"},
        **table.labels,
    )
    def mor_table(context: AssetExecutionContext, config: IngestionConfig) -> MaterializeResult:  # type: ignore[type-arg]
        wanted = set(context.partition_keys)
        hudi = table.resource(context).open_or_create(source.schema)
        for batch in source.batches:
            if batch.id in wanted:
                metadata = _commit(context, table, source, batch, hudi, again=config.again)
                context.add_asset_metadata(metadata, partition_key=batch.id)
        return MaterializeResult(metadata=report.schema_metadata(hudi))

    return mor_table


def _commit(
    context: AssetExecutionContext,
    table: TableAssets,
    source: BatchSource,
    batch: Any,
    hudi: "HudiTable",
    *,
    again: bool,
) -> dict[str, Any]:
    """One window as one delta commit; its metadata."""
    started = time.monotonic()
    earlier = hudi.committed_batches()
    batch_id = _id_of_repetition(context, batch) if again and batch.id in earlier else batch.id
    if batch_id in earlier:
        context.log.info(f"Batch {batch.id} is committed already, at {earlier[batch_id]}: nothing written.")
    rows = source.rows(batch)
    spark = getattr(context.resources, table.spark_key).spark_session
    # A batch that comes out of order must not turn the table's clock back.
    clock = max(batch.end_ms, hudi.now_ms()) if earlier and hudi.config.clock == "commit" else batch.end_ms
    result = hudi.upsert(
        spark,
        _dataframe(spark, rows),
        clock_time=datetime.fromtimestamp(clock / 1000, UTC),
        batch_id=batch_id,
    )
    if result.late_records:
        context.log.warning(
            f"{result.late_records} late records, at or below the freshness: it falls back until they are compacted."
        )
    metadata = report.commit_metadata(result, delivered=len(rows), already=batch_id in earlier)
    return metadata | {"batch": batch_id, "seconds": round(time.monotonic() - started, 3)}


def _id_of_repetition(context: AssetExecutionContext, batch: Batch) -> str:
    """The same for every attempt of a run: what was upserted again is not upserted a third time by its retry."""
    run = context.run
    return f"{batch.id}#{(run.root_run_id or run.run_id)[:8]}"


def _dataframe(spark: "SparkSession", rows: "pa.Table") -> "DataFrame":
    # Spark 4 takes Arrow as it is; 3.5 by way of pandas.
    taken: Any = rows if int(spark.version.split(".")[0]) >= 4 else rows.to_pandas()
    return spark.createDataFrame(taken)


# -- by a schedule --------------------------------------------------------------------------------


def ingestion_job(table: TableAssets, partitions: TimeWindowPartitionsDefinition) -> "UnresolvedAssetJobDefinition":
    """The ingestion alone."""
    return define_asset_job(
        f"{table.name}_ingestion",
        selection=AssetSelection.assets(table.key("mor_table")),
        partitions_def=partitions,
        tags={INGESTION_TAG: table.name},
        executor_def=in_process_executor,
    )


def ingestion_schedule(
    table: TableAssets,
    source: BatchSource,
    job: "UnresolvedAssetJobDefinition",
    *,
    cron: str,
    most_windows: int,
    running: bool,
) -> ScheduleDefinition:
    """At each tick one run of the oldest windows that have ended and were not materialized; or why there is none."""

    @schedule(
        name=f"{table.name}_ingestion",
        job=job,
        cron_schedule=cron,
        execution_timezone="UTC",
        default_status=DefaultScheduleStatus.RUNNING if running else DefaultScheduleStatus.STOPPED,
        description="Ingests the windows that have ended, the oldest first, all of them in one run.",
    )
    def evaluate(context: ScheduleEvaluationContext) -> RunRequest | SkipReason:
        at_work = _unfinished(context.instance, table)
        if at_work is not None:
            return SkipReason(f"Run {at_work} is ingesting into {table.name}.")
        now_ms = round(context.scheduled_execution_time.timestamp() * 1000)
        done = context.instance.get_materialized_partitions(table.key("mor_table"))
        due = oldest_missing(source.batches, done, now_ms, most_windows)
        if not due:
            return SkipReason(f"Every window that has ended is in {table.name}.")
        return RunRequest(tags={_RANGE_START: due[0].id, _RANGE_END: due[-1].id})

    return evaluate


def oldest_missing(batches: Sequence[Any], done: set[str], now_ms: int, most: int) -> list[Any]:
    """The first windows without gaps that have ended and are not done. Pure."""
    found: list[Any] = []
    for batch in _ended(batches, now_ms):
        if batch.id in done:
            if found:
                break
        else:
            found.append(batch)
            if len(found) == most:
                break
    return found


def _ended(batches: Sequence[Any], now_ms: int) -> Iterator[Any]:
    return (batch for batch in batches if batch.end_ms <= now_ms)


def _unfinished(instance: DagsterInstance, table: TableAssets) -> str | None:
    runs = instance.get_runs(RunsFilter(tags={INGESTION_TAG: table.name}, statuses=UNFINISHED), limit=1)
    return runs[0].run_id[:8] if runs else None
