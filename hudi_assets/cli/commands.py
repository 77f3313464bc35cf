"""The app, its commands `status`, `freshness`, `plan` and `compact`, and `main`.

Exit codes: 0 done, 2 wrong use, 3 nothing to do (the reason is printed), 1 failed. Answers go to stdout,
errors to stderr. Only `compact` and `read` start Spark.
"""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from hudi_assets.cli import init, maintain, metrics, read, report, simulate
from hudi_assets.cli.errors import Interruptible, give_up_output
from hudi_assets.cli.groups import with_groups
from hudi_assets.cli.output import (
    show_error,
    show_freshness,
    show_nothing_to_do,
    show_plan,
    show_status,
)
from hudi_assets.cli.publish import (
    DatabaseOption,
    MetastoreOption,
    PublishOption,
    RoOption,
    RtOption,
    SyncedOption,
    Target,
    nothing_to_compact,
    publish_table,
    published_by,
)
from hudi_assets.cli.series import ShownSeries
from hudi_assets.cli.slo import Bounds, SloOption, proposal_for
from hudi_assets.cli.spark import spark as spark_commands
from hudi_assets.cli.table import (
    FAILED,
    NOTHING_TO_DO,
    WRONG_USE,
    AsJson,
    DataLatency,
    EventTimeField,
    EventTimeUnitOption,
    ExecutorOption,
    HudiBundle,
    SettingsOption,
    TablePath,
    WritersOption,
    nothing_to_do,
    open_table,
    start_spark,
)
from hudi_assets.engine import (
    AUTO,
    HUDI,
    ColumnUnit,
    Conflict,
    HudiTable,
    InvalidInput,
    NoPlan,
    ObservedLatency,
    Plan,
    UnsupportedTable,
    iso,
    problem_of,
)

# Typer keeps this class to itself and exports only its children.
_USAGE_ERROR: Any = typer.BadParameter.mro()[1]
Threshold = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="Compact log files with event times up to here: ISO-8601 (UTC unless it has a zone) or epoch "
        "milliseconds. Default: the table's clock less the data latency.",
    ),
]
Once = Annotated[
    bool, typer.Option("--once", help="One compaction, also where the threshold takes more (then it says so).")
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Show what would be planned, and what each threshold would cost.")
]

app = typer.Typer(
    help="Event-time compaction of Apache Hudi merge-on-read tables.",
    cls=Interruptible,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.command()
def status(
    path: TablePath,
    event_time_field: EventTimeField = None,
    event_time_unit: EventTimeUnitOption = None,
    settings: SettingsOption = None,
    partitions: Annotated[
        bool, typer.Option("--partitions", help="Also the freshness of each partition, the furthest behind first.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """The table in numbers: freshness, remaining log files, pending compactions."""
    table = open_table(path, event_time_field, settings=settings, event_time_unit=event_time_unit)
    each = table.partition_freshness() if partitions else None
    show_status(path, table.stats(), _learned(table, None), as_json, auto=table.config.data_latency_auto, each=each)


@app.command()
def freshness(
    path: TablePath,
    data_latency: DataLatency = None,
    event_time_field: EventTimeField = None,
    event_time_unit: EventTimeUnitOption = None,
    settings: SettingsOption = None,
    as_json: AsJson = False,
) -> None:
    """The event time up to which the read-optimized view holds every ingested record."""
    table = open_table(path, event_time_field, settings=settings, event_time_unit=event_time_unit)
    promise = table.freshness(data_latency=data_latency)
    show_freshness(promise, _learned(table, data_latency), as_json, auto=_is_auto(table, data_latency))


@app.command()
@with_groups
def plan(
    path: TablePath,
    threshold: Threshold = None,
    data_latency: DataLatency = None,
    event_time_field: EventTimeField = None,
    event_time_unit: EventTimeUnitOption = None,
    writers: WritersOption = None,
    settings: SettingsOption = None,
    slo: SloOption = None,
    bounds: Bounds = Bounds(),  # noqa: B008 - frozen
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Plan a compaction on event time and publish the plan; nothing is executed."""
    terms = None if slo is None else bounds.terms(slo, data_latency)
    table = open_table(path, event_time_field, writers, settings=settings, event_time_unit=event_time_unit)
    if terms is not None:
        if threshold is not None:
            raise InvalidInput("Give a threshold or an SLO, not both.")
        found = table.plan_compaction(
            threshold=proposal_for(table, terms, data_latency, as_json, shown=dry_run), dry_run=dry_run
        )
        if dry_run and as_json:
            return
    else:
        found = table.plan_compaction(threshold=threshold, data_latency=data_latency, dry_run=dry_run)
    if dry_run:
        _show_dry_run(table, found, "would be planned", as_json)
    elif isinstance(found, NoPlan):
        nothing_to_do(found.reason, as_json)
    else:
        show_plan(found, "planned", as_json, unit=_unit(table))


@app.command()
def compact(
    path: TablePath,
    threshold: Threshold = None,
    data_latency: DataLatency = None,
    event_time_field: EventTimeField = None,
    event_time_unit: EventTimeUnitOption = None,
    writers: WritersOption = None,
    executor: ExecutorOption = None,
    hudi_bundle: HudiBundle = None,
    settings: SettingsOption = None,
    once: Once = False,
    dry_run: DryRun = False,
    publish: PublishOption = False,
    metastore: MetastoreOption = None,
    database: DatabaseOption = "default",
    ro: RoOption = None,
    rt: RtOption = None,
    synced: SyncedOption = False,
    as_json: AsJson = False,
) -> None:
    """Compact up to an event time, with as many plans as it takes; a plan that is pending is executed as it is."""
    table = open_table(path, event_time_field, writers, executor, settings, event_time_unit)
    target = Target(metastore, database, ro, rt, synced, data_latency) if publish else None
    pending = table.pending_plan()
    if pending is not None and (threshold is not None or data_latency is not None):
        raise Conflict(
            f"The compaction {pending.instant} is pending, with the threshold {iso(pending.claims)}.",
            where=path,
            hint="Execute it first: the same command without --threshold and --data-latency.",
        )
    # Looked at before Spark starts, which takes seconds, and published only once it has started.
    due = pending or table.plan_compaction(threshold=threshold, data_latency=data_latency, dry_run=True)
    if dry_run:
        _show_dry_run(table, due, "is pending" if pending else "would be planned", as_json)
        return
    if isinstance(due, NoPlan):
        nothing_to_compact(table, due.reason, target, as_json)
    table.refuse_short_query_time(due)
    table.refuse_execution(due)
    table.check_writable()
    if target is not None:
        target.names(table)  # refused before anything is done
    spark = start_spark(hudi_bundle if table.config.executor == HUDI else None)
    shown = ShownSeries(as_json)
    if pending is not None or once:
        table.check_workers(spark)  # before a plan is published
        planned = pending or table.plan_compaction(threshold=threshold, data_latency=data_latency)
        if isinstance(planned, NoPlan):
            nothing_to_compact(table, planned.reason, target, as_json)
        shown.planned(planned)
        shown.done(table.execute_compaction(spark, planned.instant))
        more_due = None if pending else _more_due(table, threshold, data_latency)
        shown.end(table.freshness(data_latency=data_latency), more_due=more_due, published=published_by(target, table))
        return
    with shown.kept_on_failure():
        series = table.compact(
            spark, threshold=threshold, data_latency=data_latency, on_plan=shown.planned, on_done=shown.done
        )
    if isinstance(series, NoPlan):
        nothing_to_compact(table, series.reason, target, as_json)
    more = 0 if series.in_the_way is None else _more_due(table, threshold, data_latency)
    promise = table.freshness(data_latency=data_latency)
    shown.end(promise, series, more_due=more, published=published_by(target, table))


for _command in (
    init.init,
    read.read,
    metrics.metrics,
    report.report,
    simulate.simulate,
    maintain.clean,
    maintain.archive,
    maintain.savepoint,
    maintain.savepoints,
    maintain.delete_savepoint,
    maintain.restore,
    maintain.rollback,
    maintain.unschedule,
    maintain.validate,
    maintain.recover,
):
    app.command()(_command)
app.command("publish")(publish_table)
app.add_typer(spark_commands, name="spark")


def _show_dry_run(table: HudiTable, found: Plan | NoPlan, happened: str, as_json: bool) -> None:
    """The plan or the reason for none, and the cost curve where a plan can be made now."""
    pending = table.pending_plan() is not None
    curve = () if pending else table.cost_curve()
    if isinstance(found, NoPlan):
        show_nothing_to_do(found.reason, as_json, curve)
        raise typer.Exit(NOTHING_TO_DO)
    show_plan(found, happened, as_json, dry_run=True, curve=curve, unit=_unit(table), refused=_refused(table, found))


def _refused(table: HudiTable, plan: Plan) -> str | None:
    """Why the executor of the settings would not execute the plan; None where it would."""
    try:
        table.refuse_execution(plan)
    except UnsupportedTable as problem:
        return str(problem)
    return None


def _more_due(table: HudiTable, threshold: str | None, data_latency: str | None) -> int:
    """How many file groups the next plan up to the same threshold would take: one plan may not reach it."""
    if not table.plans_in_series:
        return 0
    found = table.plan_compaction(threshold=threshold, data_latency=data_latency, dry_run=True)
    return len(found.operations) if isinstance(found, Plan) else 0


def _unit(table: HudiTable) -> ColumnUnit | None:
    """Hudi's strategies plan without event times: there the column may be missing."""
    return table.event_time_unit() if table.config.compaction.by_event_time else None


def _is_auto(table: HudiTable, data_latency: str | None) -> bool:
    return table.config.data_latency_auto if data_latency is None else data_latency == AUTO


def _learned(table: HudiTable, data_latency: str | None) -> ObservedLatency | None:
    return table.observed_latency() if _is_auto(table, data_latency) else None


def main() -> None:
    """The entry point; ends the process with the exit code."""
    as_json = "--json" in sys.argv[1:]
    try:
        try:
            # Standing alone, typer prints wrong use for people, and exits with the same code as below.
            code = app(standalone_mode=not as_json)
        finally:
            sys.stdout.flush()  # here, where it can still be told
    except _USAGE_ERROR as error:
        what = error.format_message() or "A command is missing."
        show_error(InvalidInput(what, hint="See: hudi-assets --help"), as_json)
        sys.exit(WRONG_USE)
    except BrokenPipeError:  # its reader has seen enough
        give_up_output()
        sys.exit(FAILED)
    except Exception as error:
        problem = problem_of(error)
        if problem is None:
            raise
        show_error(problem, as_json)
        give_up_output()
        sys.exit(WRONG_USE if isinstance(problem, InvalidInput) else FAILED)
    sys.exit(code if isinstance(code, int) else 0)
