"""The sensor: asks the engine whether a compaction is due, and asks Dagster for a run, or says why not.

It reads the timeline and event times, never starts Spark. An unexpected error of the engine fails the tick.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from dagster import (
    AssetSelection,
    DagsterInstance,
    DagsterRunStatus,
    DefaultSensorStatus,
    RunRequest,
    RunsFilter,
    SensorDefinition,
    SensorEvaluationContext,
    SkipReason,
    define_asset_job,
    in_process_executor,
    sensor,
)

from hudi_assets.assets import TableAssets, ours
from hudi_assets.checks import published_freshness
from hudi_assets.engine import Conflict, NoPlan, Plan, TriggerName, duration, iso

if TYPE_CHECKING:
    from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition

    from hudi_assets.engine import HudiTable

_UNFINISHED = [
    DagsterRunStatus.QUEUED,
    DagsterRunStatus.NOT_STARTED,
    DagsterRunStatus.STARTING,
    DagsterRunStatus.STARTED,
    DagsterRunStatus.CANCELING,
]
# After so many runs on the same state of the table, only one more an hour.
_QUICK_ATTEMPTS = 3
STATE_TAG = "hudi_assets/state"


@dataclass(frozen=True)
class Compact:
    """Plan (or go on with the pending plan), execute, publish the freshness.

    `warning`: what the plan means for running queries, where they have too little time.
    """

    why: str
    warning: str | None = None


@dataclass(frozen=True)
class PublishFreshness:
    """Only publish: the promise in the catalog is no longer true, and nothing is to be compacted now."""

    why: str


@dataclass(frozen=True)
class Recover:
    """Mend what a dead process left; nothing else is due."""

    why: str


@dataclass(frozen=True)
class Wait:
    why: str


Decision = Compact | PublishFreshness | Recover | Wait


def decide(
    *,
    pending: Plan | None,
    due: Plan | NoPlan,
    last_threshold: int | None,
    freshness: int | None,
    published: int | None,
    now: int,
    compact_every: int,
    slo: int | None,
    trigger: TriggerName = TriggerName.EVENT_TIME,
    reach: int | None = None,
) -> Decision:
    """What the table needs. Pure; times are epoch ms, durations ms.

    `freshness` is the table's now, `published` the one that readers find in the catalog. Late data makes the
    first fall below the second: that is published at once, and compacted at once where the SLO is broken.
    `reach`: how far event time could be compacted, where bounds let a single plan do less.
    """
    if pending is not None:
        return Compact(f"compaction {pending.instant} is planned and was not finished")
    fallen = published is not None and (freshness is None or freshness < published)
    if isinstance(due, NoPlan):
        return PublishFreshness(_fallen(freshness, published)) if fallen else Wait(due.reason)
    warning = due.query_time.warning if due.query_time else None
    if trigger is not TriggerName.EVENT_TIME or due.claims is None:
        return Compact(f"a compaction of {len(due.operations)} file groups is due by {trigger}", warning)
    if last_threshold is None:
        return Compact(f"first compaction, up to {iso(due.threshold)}", warning)
    if fallen and slo is not None and (freshness is None or now - freshness > slo):
        return Compact(_fallen(freshness, published) + f", more than {duration(slo)} behind the clock", warning)
    moved = max(due.claims, due.claims if reach is None else reach) - last_threshold
    if moved >= compact_every:
        return Compact(f"the threshold moves from {iso(last_threshold)} to {iso(due.threshold)}", warning)
    if fallen:
        return PublishFreshness(_fallen(freshness, published))
    return Wait(
        f"The threshold would move by {duration(moved)}, to {iso(due.threshold)}; "
        f"a compaction is due when it moves by {duration(compact_every)}."
    )


def or_recover(decision: Wait, leftovers: Sequence[str]) -> Wait | Recover:
    """A run to mend what dead processes left, if there is any."""
    if not leftovers:
        return decision
    more = f" (and {len(leftovers) - 1} more)" if len(leftovers) > 1 else ""
    return Recover(f"{leftovers[0]}{more}: a dead process left it")


def compaction_job(table: TableAssets) -> "UnresolvedAssetJobDefinition":
    """Plan, execute, publish, check, clean: everything but the ingestion."""
    keys = [table.key(name) for name in ("compaction_plan", "ro_snapshot", "freshness", "housekeeping")]
    return define_asset_job(
        f"{table.name}_compaction",
        selection=AssetSelection.assets(*keys),
        tags=table.run_tags,
        executor_def=in_process_executor,  # all steps of a run share one Spark
    )


def event_time_trigger(table: TableAssets, job: "UnresolvedAssetJobDefinition") -> SensorDefinition:
    """Requests a run of the job when the table's event times make one due."""

    @sensor(
        name=table.sensor_name,
        job=job,
        minimum_interval_seconds=table.sensor_interval,
        default_status=DefaultSensorStatus.RUNNING if table.sensor_running else DefaultSensorStatus.STOPPED,
        required_resource_keys={table.resource_key},
        description="Asks for a compaction when event time has moved on, or late data broke the promise.",
    )
    def evaluate(context: SensorEvaluationContext) -> RunRequest | SkipReason:
        if not getattr(context.resources, table.resource_key).exists():
            return SkipReason(f"There is no table {table.name} yet.")
        running = unfinished_run(context.instance, table)
        if running:
            return SkipReason(f"Run {running} is at work on {table.name}.")
        hudi = table.open(context)
        try:
            decision = _decide_for(hudi, context.instance, table)
        except Conflict as conflict:
            return SkipReason(str(conflict))
        if isinstance(decision, Wait):
            return SkipReason(decision.why)
        context.log.info(decision.why)
        if isinstance(decision, Compact) and decision.warning is not None:
            context.log.warning(decision.warning)
        return _request(context.instance, table, hudi, decision)

    return evaluate


def unfinished_run(instance: DagsterInstance, table: TableAssets) -> str | None:
    """A run of this table that is queued or running."""
    runs = instance.get_runs(RunsFilter(tags=table.run_tags, statuses=_UNFINISHED), limit=1)
    return runs[0].run_id[:8] if runs else None


def _decide_for(hudi: "HudiTable", instance: DagsterInstance, table: TableAssets) -> Decision:
    seen = hudi.look()
    promise = seen.freshness
    settings = hudi.config.compaction
    found = decide(
        pending=ours(seen.pending),
        due=seen.due,
        last_threshold=promise.threshold,
        freshness=promise.freshness,
        published=published_freshness(instance, table.key("freshness")),
        now=seen.now_ms,
        compact_every=table.compact_every_ms,
        slo=table.freshness_slo_ms,
        trigger=settings.trigger,
        reach=promise.watermark if hudi.plans_in_series else None,
    )
    # Every run that compacts mends first: only where none is due does it need a run of its own.
    return or_recover(found, seen.leftovers) if isinstance(found, Wait) else found


def _request(
    instance: DagsterInstance, table: TableAssets, hudi: "HudiTable", decision: Compact | PublishFreshness | Recover
) -> RunRequest:
    """A run key fires once, so it names the state of the table and counts the runs that came of it so far."""
    kind, only, config = "compact", None, None
    if isinstance(decision, PublishFreshness):
        kind, only = "freshness", "freshness"
    elif isinstance(decision, Recover):
        kind, only = "recover", "housekeeping"
        step = "__".join(table.key(only).path)
        config = {"ops": {step: {"config": {"clean": False, "archive": False}}}}
    state = f"{table.name}:{kind}:{hudi.stats().last_commit}"
    attempts = instance.get_runs_count(RunsFilter(tags={STATE_TAG: state}))
    run_key = f"{state}:{attempts}"
    if attempts >= _QUICK_ATTEMPTS:
        run_key = f"{state}:{datetime.now(UTC):%Y-%m-%dT%H}"
    return RunRequest(
        run_key=run_key,
        tags={**table.run_tags, STATE_TAG: state, "hudi_assets/reason": decision.why[:250]},
        asset_selection=[table.key(only)] if only else None,
        run_config=config,
    )


def _fallen(freshness: int | None, published: int | None) -> str:
    now = iso(freshness) if freshness is not None else "unknown"
    return f"the freshness has fallen back from {iso(published)} to {now}"
