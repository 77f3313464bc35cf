"""The command line: `hudi-assets COMMAND PATH`, for people and, with --json, for programs.

Exit codes: 0 done, 2 wrong use, 3 nothing to do (the reason is printed), 1 failed. Answers go to stdout,
errors to stderr. Only `compact` and `read` start Spark.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import uuid
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from hudi_assets.cli_output import (
    SHOWN_ROWS,
    print_json,
    print_text,
    show_error,
    show_freshness,
    show_nothing_to_do,
    show_plan,
    show_result,
    show_rows,
    show_status,
    show_written,
)
from hudi_assets.engine import Conflict, EnvironmentProblem, HudiAssetsError, HudiTable, InvalidInput, NoPlan
from hudi_assets.engine.config import EVENT_TIME_FIELD, WRITERS
from hudi_assets.engine.event_time import iso

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Typer keeps this class to itself and exports only its children.
_USAGE_ERROR: Any = typer.BadParameter.mro()[1]
FAILED, WRONG_USE, NOTHING_TO_DO = 1, 2, 3
# Spark's names of the formats, by the ending of the file to write.
_FORMATS = {".parquet": "parquet", ".csv": "csv", ".json": "json"}
# Quotes as RFC 4180 has them, so that other readers agree.
_CSV = {"header": "true", "escape": '"', "multiLine": "true"}


class Query(StrEnum):
    SNAPSHOT = "snapshot"
    READ_OPTIMIZED = "read_optimized"


class Writers(StrEnum):
    STOPPED = "stopped"
    LOCKED = "locked"


TablePath = Annotated[str, typer.Argument(metavar="PATH", help="The table's base path.", show_default=False)]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Threshold = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="Compact log files with event times up to here: ISO-8601 (UTC unless it has a zone) or epoch "
        "milliseconds. Default: the table's clock less the data latency.",
    ),
]
DataLatency = Annotated[
    str | None,
    typer.Option(
        metavar="DURATION",
        help="The longest time from an event to its commit, as 2h, 90m or 1d. Default: the table's setting.",
    ),
]
EventTimeField = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="The event-time column, where the table's settings name none."),
]
WritersOption = Annotated[
    Writers | None,
    typer.Option(
        "--writers",
        help="How other engines write to the table now: stopped, or locked (they share the table's lock).",
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be planned; write nothing.")]

app = typer.Typer(
    help="Event-time compaction of Apache Hudi merge-on-read tables.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.command()
def status(path: TablePath, event_time_field: EventTimeField = None, as_json: AsJson = False) -> None:
    """The table in numbers: freshness, remaining log files, pending compactions."""
    show_status(path, _open(path, event_time_field).stats(), as_json)


@app.command()
def freshness(
    path: TablePath,
    data_latency: DataLatency = None,
    event_time_field: EventTimeField = None,
    as_json: AsJson = False,
) -> None:
    """The event time up to which the read-optimized view holds every ingested record."""
    show_freshness(_open(path, event_time_field).freshness(data_latency=data_latency), as_json)


@app.command()
def plan(
    path: TablePath,
    threshold: Threshold = None,
    data_latency: DataLatency = None,
    event_time_field: EventTimeField = None,
    writers: WritersOption = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Plan a compaction on event time and publish the plan; nothing is executed."""
    table = _open(path, event_time_field, writers)
    found = table.plan_compaction(threshold=threshold, data_latency=data_latency, dry_run=dry_run)
    if isinstance(found, NoPlan):
        _nothing_to_do(found.reason, as_json)
    show_plan(found, "would be planned" if dry_run else "planned", as_json, dry_run=dry_run)


@app.command()
def compact(
    path: TablePath,
    threshold: Threshold = None,
    data_latency: DataLatency = None,
    event_time_field: EventTimeField = None,
    writers: WritersOption = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Plan a compaction on event time and execute it; a plan that is pending already is executed as it is."""
    table = _open(path, event_time_field, writers)
    pending = table.pending_plan()
    if pending is not None and (threshold is not None or data_latency is not None):
        raise Conflict(
            f"The compaction {pending.instant} is pending, with the threshold {iso(pending.threshold)}.",
            where=path,
            hint="Execute it first: the same command without --threshold and --data-latency.",
        )
    # Looked at before Spark starts, which takes seconds, and published only once it has started.
    due = pending or table.plan_compaction(threshold=threshold, data_latency=data_latency, dry_run=True)
    if isinstance(due, NoPlan):
        _nothing_to_do(due.reason, as_json)
    if dry_run:
        show_plan(due, "is pending" if pending else "would be planned", as_json, dry_run=True)
        return
    spark = _spark()
    published = pending or table.plan_compaction(threshold=threshold, data_latency=data_latency)
    if isinstance(published, NoPlan):
        _nothing_to_do(published.reason, as_json)
    result = table.execute_compaction(spark, published.instant)
    show_result(result, table.freshness(data_latency=data_latency), as_json)


@app.command()
def read(
    path: TablePath,
    query: Annotated[Query, typer.Option(help="The view to read.")] = Query.SNAPSHOT,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the rows to one file: .parquet, .csv or .json (a row a line)."),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(min=1, help=f"At most this many rows. Default: {SHOWN_ROWS}, or all with --out."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Read a view of the table, Hudi's five meta columns first."""
    table = _open(path)
    file_format = None if out is None else _check_out(out)
    spark = _spark()
    frame = table.snapshot(spark) if query is Query.SNAPSHOT else table.read_optimized(spark)
    if out is not None and file_format is not None:
        rows = _write(frame if limit is None else frame.limit(limit), out, file_format)
        show_written(query.value, out, rows, as_json)
    else:
        show_rows(frame, query.value, limit or SHOWN_ROWS, as_json)


@app.command()
def recover(path: TablePath, as_json: AsJson = False) -> None:
    """Finish or undo what a writer or planner that died has left behind."""
    done = _open(path).recover()
    if not done:
        _nothing_to_do("there is nothing to recover", as_json)
    if as_json:
        print_json({"recovered": list(done)})
    else:
        for sentence in done:
            print_text(sentence)


# -- opening, Spark, errors -----------------------------------------------------------------------


def _open(path: str, event_time_field: str | None = None, writers: Writers | None = None) -> HudiTable:
    given: Mapping[str, str | None] = {EVENT_TIME_FIELD: event_time_field, WRITERS: writers and writers.value}
    return HudiTable.open(path, settings={key: value for key, value in given.items() if value is not None})


def _spark() -> SparkSession:
    """A Spark session that ends with the process; what its Java process logs is kept off the terminal."""
    # Imported here: the other commands answer without it.
    from hudi_assets.engine.spark import local_session

    with tempfile.TemporaryFile() as log:
        terminal = os.dup(2)
        # The Java process inherits this stderr for good: on the real one stand only our own errors.
        os.dup2(log.fileno(), 2)
        try:
            return local_session(config={"spark.ui.showConsoleProgress": "false"})
        except HudiAssetsError:
            raise
        except Exception as error:
            log.seek(0)
            said = log.read().decode(errors="replace").strip().splitlines()[-5:]
            raise EnvironmentProblem(f"Spark did not start: {error}", hint="\n".join(said) or None) from error
        finally:
            os.dup2(terminal, 2)
            os.close(terminal)


def _nothing_to_do(reason: str, as_json: bool) -> NoReturn:
    show_nothing_to_do(reason, as_json)
    raise typer.Exit(NOTHING_TO_DO)


def main() -> None:
    """The entry point; ends the process with the exit code."""
    as_json = "--json" in sys.argv[1:]
    try:
        # Standing alone, typer prints wrong use for people, and exits with the same code as below.
        code = app(standalone_mode=not as_json)
    except HudiAssetsError as error:
        show_error(error, as_json)
        sys.exit(WRONG_USE if isinstance(error, InvalidInput) else FAILED)
    except _USAGE_ERROR as error:
        what = error.format_message() or "A command is missing."
        show_error(InvalidInput(what, hint="See: hudi-assets --help"), as_json)
        sys.exit(WRONG_USE)
    sys.exit(code if isinstance(code, int) else 0)


# -- writing what was read ------------------------------------------------------------------------


def _check_out(out: Path) -> str:
    """Spark's name of the format to write; raises before anything is read if the file cannot be written."""
    file_format = _FORMATS.get(out.suffix.lower())
    if file_format is None:
        raise InvalidInput(
            f"--out cannot tell a format from {out.name!r}.", hint=f"End it in one of {', '.join(_FORMATS)}."
        )
    if out.is_dir() or not out.absolute().parent.is_dir():
        raise InvalidInput("--out names no file in a directory that exists.", where=str(out))
    if not os.access(out.absolute().parent, os.W_OK | os.X_OK):
        raise EnvironmentProblem("The directory of --out cannot be written to.", where=str(out))
    return file_format


def _write(frame: DataFrame, out: Path, file_format: str) -> int:
    """Write the rows as one file, which appears whole or not at all. Returns their number."""
    target = out.absolute()
    scratch = target.parent / f".{target.name}.{uuid.uuid4().hex}"
    nested = [name for name, kind in frame.dtypes if kind.startswith(("array", "map", "struct"))]
    if file_format == "csv" and nested:
        raise InvalidInput(f"CSV cannot hold the column {nested[0]!r}.", hint="Write .parquet or .json.")
    options = _CSV if file_format == "csv" else {}
    try:
        frame.coalesce(1).write.format(file_format).options(**options).save(scratch.as_uri())
        reader = frame.sparkSession.read.format(file_format).options(**options).schema(frame.schema)
        rows = reader.load(scratch.as_uri()).count()
        parts = sorted(scratch.glob("part-*"))
        if not parts:
            raise EnvironmentProblem("Spark wrote no file.", where=str(out))
        parts[0].replace(target)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return rows


if __name__ == "__main__":
    main()
