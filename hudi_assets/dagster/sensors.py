"""The sensor: reports how the table stands, and asks Dagster for a run where one is due, or says why not.

It reads the timeline and event times, never starts Spark. An unexpected error of the engine fails the tick.
"""

import time
from datetime import datetime
from functools import partial
from logging import getLogger
from typing import TYPE_CHECKING, Any

from dagster import (
    AssetCheckEvaluation,
    AssetSelection,
    DefaultSensorStatus,
    RunRequest,
    RunsFilter,
    SensorDefinition,
    SensorEvaluationContext,
    SensorResult,
    SkipReason,
    define_asset_job,
    in_process_executor,
    sensor,
)

from hudi_assets.dagster.aside import Aside, Memory, begun, is_daemons, memory_of
from hudi_assets.dagster.assets import MAINTENANCE, TableAssets, ours
from hudi_assets.dagster.attempts import COMPACT, STATE_TAG, attempts_of, pause
from hudi_assets.dagster.checks import FRESHNESS_WITHIN_SLO, NO_LATE_RECORDS, published_freshness
from hudi_assets.dagster.decisions import (
    Compact,
    Decision,
    PublishFreshness,
    Recover,
    Wait,
    decide,
    is_held_by_hidden_rows,
    or_recover,
)
from hudi_assets.dagster.followed import follow_look, report_publication, report_untold
from hudi_assets.dagster.known import Known, OneTable
from hudi_assets.dagster.late import late_by_look
from hudi_assets.dagster.looks import (
    Reported,
    TickLook,
    evaluations,
    in_words,
    observations,
    report_failure,
    report_now,
    report_refusal,
    results,
    see,
    wall_ms,
)
from hudi_assets.dagster.presence import absence
from hudi_assets.dagster.told import promised_before
from hudi_assets.dagster.unseen import beyond_slo_unseen, note_seen
from hudi_assets.engine import Conflict, InvalidInput, Look, iso

if TYPE_CHECKING:
    from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition

    from hudi_assets.engine import HudiTable


def compaction_job(table: TableAssets) -> "UnresolvedAssetJobDefinition":
    """Plan, execute, publish, check, clean: everything but the ingestion."""
    keys = [table.key(name) for name in MAINTENANCE]
    return define_asset_job(
        f"{table.name}_compaction",
        selection=AssetSelection.assets(*keys),
        tags=table.run_tags,
        executor_def=in_process_executor,  # all steps of a run share one Spark
    )


def event_time_trigger(table: TableAssets, job: "UnresolvedAssetJobDefinition") -> SensorDefinition:
    """Reports how the table stands, and requests a run of the job when its event times make one due."""

    @sensor(
        name=table.sensor_name,
        job=job,
        minimum_interval_seconds=table.sensor_interval,
        default_status=DefaultSensorStatus.RUNNING if table.sensor_running else DefaultSensorStatus.STOPPED,
        required_resource_keys={table.resource_key, table.catalog_key},
        description="Reports freshness and lag. Asks for a compaction when event time has moved on, or late data came.",
    )
    def evaluate(context: SensorEvaluationContext) -> SensorResult:
        return look_alone(context, table, memory_of(table.sensor_name))

    return evaluate


def look_alone(context: SensorEvaluationContext, table: TableAssets, memory: Memory) -> SensorResult:
    """A tick of a sensor of one table. A look that does not fit into it goes on beside the ticks."""
    tick = memory.begin(context.cursor, [table.name], takes=is_daemons(context))
    if not memory.is_slow(table.name):
        known = Known(context.instance)
        look = OneTable(known, context.resources, context.cursor, context.log)
        try:
            return memory.look_within(
                tick, table.name, partial(evaluate_table, look, table), partial(reported, known, table)
            )
        finally:
            tick.ended = time.monotonic()
    resources, cursor, log = context.resources, context.cursor, getLogger(__name__)
    aside = memory.look_aside(
        tick,
        table.name,
        partial(begun, context, lambda known: look_and_report(OneTable(known, resources, cursor, log), table)),
    )
    if aside is None:
        return SensorResult(skip_reason="The look waits for others.")
    known = Known(context.instance)
    if aside.ended is not None:
        return still_due(known, table, aside, table.sensor_interval)
    if aside.is_hung:
        report_failure(known, table, aside.hung(), wall_ms())
        raise aside.hung()
    return SensorResult(
        skip_reason=f"The look has been at work for {aside.seconds:.0f} s, longer than a tick may take: "
        "it reports what it sees, and a later tick asks for the run that is due."
    )


def look_and_report(context: OneTable, table: TableAssets) -> SensorResult:
    """A look beside the ticks. No tick may come for long, so it reports by itself what it saw."""
    return _without_events(context.known, evaluate_table(context, table))


def reported(known: Known, table: TableAssets, found: SensorResult, since: datetime) -> SensorResult:
    """What a look saw whose tick was given up meanwhile, reported as by a look beside the ticks."""
    known = Known(known.instance, since)
    if known.was_overtaken(table):
        events = [one for one in found.asset_events or [] if not isinstance(one, AssetCheckEvaluation)]
        found = SensorResult(found.run_requests, found.skip_reason, found.cursor, asset_events=events)
    return _without_events(known, found)


def _without_events(known: Known, found: SensorResult) -> SensorResult:
    report_now(known, found.asset_events)
    return SensorResult(run_requests=found.run_requests, skip_reason=found.skip_reason, cursor=found.cursor)


def still_due(known: Known, table: TableAssets, look: Aside, interval: float) -> SensorResult:
    """What a look beside the ticks leaves to the tick after its end. Meanwhile a run may have begun."""
    known = Known(known.instance, look.since)
    try:
        found = look.result()
    except Exception as problem:
        if look.is_stale(interval):
            return SensorResult(skip_reason=f"A look that ended long ago failed, the next look tells: {problem}")
        report_failure(known, table, problem, wall_ms())  # what broke the look off may have kept it from saying so
        raise
    if found.run_requests and (look.is_stale(interval) or known.was_overtaken(table)):
        return SensorResult(
            skip_reason="The run that the look asked for is left to the next look.", cursor=found.cursor
        )
    return found


def evaluate_table(context: OneTable, table: TableAssets) -> SensorResult:
    """One look at a table: what is to be reported, and the run that is due. What goes wrong is reported and raised."""
    try:
        return _tick(context, table)
    except Conflict as conflict:
        # Another process is just changing what was read.
        return SensorResult(skip_reason=str(conflict), asset_events=_unseen(context, table, conflict))
    except _AlreadyReportedError as told:
        raise told.__cause__ or told from None
    except Exception as problem:
        report_failure(context.known, table, problem, wall_ms())
        raise


def _unseen(context: OneTable, table: TableAssets, conflict: Conflict) -> list[AssetCheckEvaluation]:
    """The check that fails where no look was possible for too long. A clock of commits stands still meanwhile."""
    if table.freshness_slo_ms is None or not table.system_clock:
        return []
    now = wall_ms()
    result = beyond_slo_unseen(table.resource(context).location, conflict, table.freshness_slo_ms, now)
    found = {} if result is None else {FRESHNESS_WITHIN_SLO: result}
    return evaluations(context.known, table, found, now, run_at_work=False)


class _AlreadyReportedError(Exception):
    """The tick fails by its cause, but the table could be looked at: its checks say what they saw."""


def _tick(context: OneTable, table: TableAssets) -> SensorResult:
    """Look, report, and only then think of a run: what is stuck must not keep the table's state from being seen."""
    known, now = context.known, wall_ms()
    absent = absence(table, table.resource(context), known)
    if absent is not None:
        return SensorResult(skip_reason=absent)
    report_untold(known, table)
    hudi = table.open(context)
    seen = see(hudi, table, known)
    note_seen(table.resource(context).location, seen.freshness.freshness, now)
    running = known.unfinished_run(table)
    problem, request, why = seen.problem, None, ""
    says: dict[str, str] = {}
    decision = None if seen.look is None or running else _decide_for(hudi, seen.look, known, table)
    stands = _follow(context, table, hudi, seen, says)
    if running is not None:
        why = f"Run {running} is at work on {table.name}."
    elif decision is not None:
        if isinstance(decision, PublishFreshness) and stands:
            decision = Wait(f"{decision.why}; the catalog says so now")
        if isinstance(decision, Wait):
            why, problem = decision.why, _no_latency(hudi, decision)
        else:
            request, waits = _request(context, table, seen, decision, now)
            says |= waits
            why = "; ".join([decision.why, *waits.values()])
    refused = problem if running is None and not isinstance(problem, Conflict) else None
    # The checks say what the table is like, whatever became of the policy.
    broken = refused or (seen.failure if running is None and request is None else None)
    held = _held(seen) if running is None else None
    found = results(table, hudi, seen, says, refused, held=held, why=f"asks for a run: {why}" if request else why)
    late = late_by_look(context, table, hudi, seen, now)
    found |= {NO_LATE_RECORDS: late} if late else {}
    checks = evaluations(known, table, found, now, run_at_work=running is not None)
    if broken is not None:
        report_refusal(known, table, hudi.path, seen, checks, now, says)
        raise _AlreadyReportedError from broken
    why = str(problem) if problem is not None and running is None else why
    seen_before = Reported.of(context.cursor)
    observed, reported = observations(table, seen, seen_before, now, says=says, before_run=request is not None)
    return SensorResult(
        run_requests=[request] if request else [],
        skip_reason=None if request else SkipReason(why),
        asset_events=[*observed, *checks],
        cursor=reported.cursor(),
    )


def _held(seen: TickLook) -> str | None:
    """Why nothing is planned that is due, where that is no reason to fail the tick."""
    if isinstance(seen.problem, Conflict):
        return str(seen.problem)
    return None if seen.look is None else seen.look.refused


def _follow(context: OneTable, table: TableAssets, hudi: "HudiTable", seen: TickLook, says: dict[str, str]) -> bool:
    """Whether the catalog says now what is true. What is wrong with a catalog keeps no compaction from being asked for.

    What was published is reported at once: a tick that takes too long loses its events, and readers were told.
    """
    try:
        followed = follow_look(context, table, hudi, seen)
    except Exception as problem:
        context.log.warning(f"The catalog could not be followed: {problem}", exc_info=True)
        says["catalog"] = f"it could not be followed: {type(problem).__name__}: {problem}"
        return False
    report_publication(context.known, table, seen, followed)
    return followed.stands


def _decide_for(hudi: "HudiTable", seen: Look, known: Known, table: TableAssets) -> Decision:
    promise = seen.freshness
    settings = hudi.config.compaction
    found = decide(
        pending=ours(seen.pending),
        due=seen.due,
        last_threshold=promise.threshold,
        freshness=promise.freshness,
        published=published_freshness(known, table.key("freshness")),
        now=seen.now_ms,
        compact_every=table.compact_every_ms,
        slo=table.freshness_slo_ms,
        trigger=settings.trigger,
        reach=promise.watermark if hudi.plans_in_series else None,
        promised=promised_before(known, table.key("freshness"), promise.instant),
        held=is_held_by_hidden_rows(promise),
        proposal=seen.proposal,
    )
    # Every run that compacts mends first: only where none is due does it need a run of its own.
    return or_recover(found, seen.leftovers) if isinstance(found, Wait) else found


def _no_latency(hudi: "HudiTable", decision: Wait) -> InvalidInput | None:
    """A table that nobody gave a data latency waits for ever: that is a mistake, not a pause."""
    settings = hudi.config.compaction
    wants_one = settings.by_event_time or settings.due_by_event_time
    if not wants_one or hudi.config.data_latency_ms is not None or hudi.config.data_latency_auto:
        return None
    return InvalidInput(
        f"The sensor can never ask for a compaction: {decision.why}.",
        where=hudi.path,
        hint="In the table's block the field is `data_latency`, as `2h`, or `auto`. Or set `sensor.running: false`.",
    )


def _request(
    context: OneTable,
    table: TableAssets,
    seen: TickLook,
    decision: Compact | PublishFreshness | Recover,
    now: int,
) -> tuple[RunRequest | None, dict[str, str]]:
    """The run, or for how long none is asked for, in words.

    A run key fires once, so it names the state of the table and counts the runs that came of it so far.
    """
    known = context.known
    kind, only = COMPACT, None
    config: dict[str, Any] | None = None
    state = f"{table.name}:{{}}:{seen.stats.last_commit}"
    if isinstance(decision, PublishFreshness):
        kind = only = "freshness"
        state += f":{published_freshness(known, table.key('freshness'))}"
    elif isinstance(decision, Recover):
        kind, only = "recover", "housekeeping"
        step = "__".join(table.key(only).path)
        config = {"ops": {step: {"config": {"clean": False, "archive": False}}}}
    elif decision.threshold is not None:
        step = "__".join(table.key("compaction_plan").path)
        config = {"ops": {step: {"config": {"threshold": _exact(decision.threshold)}}}}
    state = state.format(kind)
    wait = pause(attempts_of(known.instance, table.run_tags, state, table.key(only or "ro_snapshot")), now)
    if wait is not None:
        words = f"{wait.in_vain} runs in a row came to nothing, the next one is asked for at {in_words(wait.until_ms)}"
        return None, {"runs": words}
    context.log.info(decision.why)
    if isinstance(decision, Compact) and decision.warning is not None:
        context.log.warning(decision.warning)
    return RunRequest(
        run_key=f"{state}:{known.instance.get_runs_count(RunsFilter(tags={STATE_TAG: state}))}",
        tags={**table.run_tags, STATE_TAG: state, "hudi_assets/reason": decision.why[:250]},
        asset_selection=[table.key(only)] if only else None,
        run_config=config,
    ), {}


def _exact(threshold: int) -> str:
    """As the run reads it: of digits alone it would refuse some, or take them for a date."""
    text = iso(threshold) or ""
    return str(threshold) if text.endswith("ms") else text  # too far from 1970 for a date
