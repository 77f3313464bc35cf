"""`hudi-assets read`: the four queries, to the terminal or into one file."""

from __future__ import annotations

import os
import shutil
import uuid
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hudi_assets.cli.output import SHOWN_ROWS, show_rows, show_written
from hudi_assets.cli.table import AsJson, TablePath, open_table, start_spark
from hudi_assets.engine import EnvironmentProblem, HudiTable, InvalidInput

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Spark's names of the formats, by the ending of the file to write.
_FORMATS = {".parquet": "parquet", ".csv": "csv", ".json": "json"}
# Quotes as RFC 4180 has them, so that other readers agree.
_CSV = {"header": "true", "escape": '"', "multiLine": "true"}
_MOMENT = "an instant (17 or 14 digits) or an ISO-8601 time"


class Query(StrEnum):
    SNAPSHOT = "snapshot"
    READ_OPTIMIZED = "read_optimized"
    INCREMENTAL = "incremental"
    TIME_TRAVEL = "time_travel"


def read(
    path: TablePath,
    query: Annotated[Query, typer.Option(help="What to read.")] = Query.SNAPSHOT,
    begin: Annotated[
        str | None,
        typer.Option(metavar="I", help=f"incremental: rows committed after this, {_MOMENT}, or earliest."),
    ] = None,
    end: Annotated[
        str | None,
        typer.Option(metavar="I", help="incremental: … and up to this, of the table as it was then. Default: now."),
    ] = None,
    as_of: Annotated[
        str | None, typer.Option("--as-of", metavar="I", help=f"time_travel: the table as of this, {_MOMENT}.")
    ] = None,
    columns: Annotated[
        str | None, typer.Option(metavar="A,B", help="Read these columns alone. Default: all of them.")
    ] = None,
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
    """Read the table, Hudi's five meta columns first, or some of its columns."""
    _check_options(query, begin, end, as_of)
    table = open_table(path)
    file_format = None if out is None else _check_out(out)
    names = None if columns is None else columns.split(",")
    # Times that mean nothing, history that was cleaned and unknown columns are refused before Spark starts.
    if query is Query.INCREMENTAL:
        table.incremental_tasks(str(begin), end, columns=names)
    elif query is Query.TIME_TRAVEL:
        table.time_travel_tasks(str(as_of), columns=names)
    elif names is not None:
        table.snapshot_tasks(columns=names)
    frame = _frame(start_spark(), table, query, begin, end, as_of, names)
    if out is not None and file_format is not None:
        rows = _write(frame if limit is None else frame.limit(limit), out, file_format)
        show_written(query.value, out, rows, as_json)
    else:
        show_rows(frame, query.value, limit or SHOWN_ROWS, as_json)


def _check_options(query: Query, begin: str | None, end: str | None, as_of: str | None) -> None:
    given = {
        ("--begin", Query.INCREMENTAL): begin,
        ("--end", Query.INCREMENTAL): end,
        ("--as-of", Query.TIME_TRAVEL): as_of,
    }
    for (option, its_query), value in given.items():
        if value is not None and query is not its_query:
            raise InvalidInput(
                f"{option} does not go with --query {query}.", hint=f"It belongs to --query {its_query}."
            )
    if query is Query.INCREMENTAL and begin is None:
        raise InvalidInput("--query incremental needs --begin.", hint=f"Give {_MOMENT}, or earliest.")
    if query is Query.TIME_TRAVEL and as_of is None:
        raise InvalidInput("--query time_travel needs --as-of.", hint=f"Give {_MOMENT}.")


def _frame(
    spark: SparkSession,
    table: HudiTable,
    query: Query,
    begin: str | None,
    end: str | None,
    as_of: str | None,
    columns: list[str] | None,
) -> DataFrame:
    if query is Query.INCREMENTAL:
        return table.incremental(spark, str(begin), end, columns=columns)
    if query is Query.TIME_TRAVEL:
        return table.time_travel(spark, str(as_of), columns=columns)
    if query is Query.SNAPSHOT:
        return table.snapshot(spark, columns=columns)
    return table.read_optimized(spark, columns=columns)


def _check_out(out: Path) -> str:
    """Spark's name of the format to write; raises before anything is read if the file cannot be written."""
    file_format = _FORMATS.get(out.suffix.lower())
    if file_format is None:
        raise InvalidInput(
            f"--out cannot tell a format from {out.name!r}.", hint=f"End it in one of {', '.join(_FORMATS)}."
        )
    if out.is_dir() or not out.absolute().parent.is_dir():
        raise InvalidInput(
            "--out names no file in a directory that exists.",
            where=str(out),
            hint="Make the directory, or name a file.",
        )
    if not os.access(out.absolute().parent, os.W_OK | os.X_OK):
        raise EnvironmentProblem(
            "The directory of --out cannot be written to.", where=str(out), hint="Give another one, or permission."
        )
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
            raise EnvironmentProblem(
                "Spark wrote no file.", where=str(out), hint="Its workers have to see this directory."
            )
        parts[0].replace(target)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return rows
