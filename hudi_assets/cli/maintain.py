"""The commands that keep a table's past in order: clean, archive, savepoints, rollback, validate, recover.

None of them starts Spark. Those that change the table take `--writers`, as planning does.
"""

from __future__ import annotations

import getpass
from dataclasses import asdict
from enum import StrEnum
from typing import Annotated

import typer

from hudi_assets.catalog.follow import after_change, publish_and_clean
from hudi_assets.cli.output import print_findings, print_json, print_text
from hudi_assets.cli.table import FAILED, AsJson, TablePath, WritersOption, nothing_to_do, open_table
from hudi_assets.engine import CleanResult, HudiTable, NothingToDo
from hudi_assets.sizes import size_of

_SHOWN_FILES = 20


class Policy(StrEnum):
    """HoodieCleaningPolicy."""

    KEEP_LATEST_COMMITS = "KEEP_LATEST_COMMITS"
    KEEP_LATEST_FILE_VERSIONS = "KEEP_LATEST_FILE_VERSIONS"
    KEEP_LATEST_BY_HOURS = "KEEP_LATEST_BY_HOURS"


InstantArgument = Annotated[str, typer.Argument(metavar="INSTANT", help="17 digits, as status shows them.")]
SavepointArgument = Annotated[
    str, typer.Argument(metavar="INSTANT", help="The savepoint, 17 digits, as savepoints lists them.")
]


def clean(
    path: TablePath,
    policy: Annotated[
        Policy | None,
        typer.Option(case_sensitive=False, help="Default: the table's hoodie.cleaner.policy."),
    ] = None,
    retained: Annotated[
        int | None, typer.Option(min=1, help="How many commits, file versions or hours. Default: the table's.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be deleted; delete nothing.")] = False,
    unasked: Annotated[
        bool, typer.Option("--unasked", help="Clean also where a catalog that may name these files does not answer.")
    ] = False,
    writers: WritersOption = None,
    as_json: AsJson = False,
) -> None:
    """Delete the file slices that no retained view of the table reads."""
    table = open_table(path, writers=writers)

    def once() -> CleanResult | NothingToDo:
        return table.clean(policy=policy and policy.value, retained=retained, dry_run=dry_run, unasked=unasked)

    done = once() if dry_run or unasked else publish_and_clean(table, once)
    if isinstance(done, NothingToDo):
        nothing_to_do(done.reason, as_json)
    if as_json:
        print_json({**asdict(done), "deleted": list(done.deleted), "dry_run": dry_run})
        return
    what = "would be deleted" if dry_run else f"deleted by clean {done.instant}"
    print_text(f"{len(done.deleted)} files, {size_of(done.bytes_deleted)}, {what} ({done.policy}).")
    if done.earliest_retained:
        print_text(f"Every instant from {done.earliest_retained} on can still be read.")
    for file in done.deleted[:_SHOWN_FILES]:
        print_text(f"  {file}")
    if len(done.deleted) > _SHOWN_FILES:
        print_text(f"  … and {len(done.deleted) - _SHOWN_FILES} more (--json shows all)")


def archive(path: TablePath, writers: WritersOption = None, as_json: AsJson = False) -> None:
    """Move old instants from the active timeline into the archived one (hoodie.keep.min/max.commits)."""
    done = open_table(path, writers=writers).archive()
    if isinstance(done, NothingToDo):
        nothing_to_do(done.reason, as_json)
    if as_json:
        print_json({"instants": list(done.instants), "file": done.file})
    else:
        print_text(
            f"{len(done.instants)} instants archived, {done.instants[0]} to {done.instants[-1]}"
            + (f", in {done.file}." if done.file else ".")
        )


def savepoint(
    path: TablePath,
    instant: Annotated[
        str | None, typer.Argument(metavar="INSTANT", help="A completed write. Default: the last.")
    ] = None,
    comment: Annotated[str, typer.Option(help="Kept with the savepoint.")] = "",
    writers: WritersOption = None,
    as_json: AsJson = False,
) -> None:
    """Protect the table as of a write from every cleaner, so that it can be restored."""
    made = open_table(path, writers=writers).savepoint(instant, comment=comment, user=_user())
    if as_json:
        print_json({"savepoint": made})
    else:
        print_text(f"Savepoint {made}. The table as it was then is kept until the savepoint is deleted.")


def savepoints(path: TablePath, as_json: AsJson = False) -> None:
    """The savepoints, oldest first."""
    found = open_table(path).savepoints()
    if as_json:
        print_json({"savepoints": list(found)})
    else:
        for one in found or ("There are none.",):
            print_text(one)


def delete_savepoint(
    path: TablePath, instant: SavepointArgument, writers: WritersOption = None, as_json: AsJson = False
) -> None:
    """Give a savepoint up: the next clean may take its files."""
    open_table(path, writers=writers).delete_savepoint(instant)
    if as_json:
        print_json({"deleted_savepoint": instant})
    else:
        print_text(f"Savepoint {instant} is deleted.")


def restore(
    path: TablePath, instant: SavepointArgument, writers: WritersOption = None, as_json: AsJson = False
) -> None:
    """Make the table what it was at a savepoint: whatever came later is rolled back for good."""
    table = open_table(path, writers=writers)
    done = table.restore(instant)
    _publish_again(table)
    if as_json:
        print_json({**asdict(done), "instants": list(done.instants)})
    else:
        taken = ", ".join(done.instants) or "nothing"
        print_text(f"The table is as it was at {done.savepoint} (restore {done.restore}); rolled back: {taken}.")


def rollback(path: TablePath, instant: InstantArgument, writers: WritersOption = None, as_json: AsJson = False) -> None:
    """Take back the newest write, an unfinished one, or a compaction's attempt, whose plan then stays."""
    table = open_table(path, writers=writers)
    done = table.rollback(instant)
    _publish_again(table)
    if as_json:
        print_json(asdict(done))
        return
    print_text(
        f"{done.action} {done.instant} is rolled back: {done.files_deleted} files deleted, "
        f"{done.rollback_blocks} rollback blocks written."
    )
    if done.still_planned:
        print_text("The compaction is still planned: compact executes it, unschedule withdraws it.")


def unschedule(
    path: TablePath, instant: InstantArgument, writers: WritersOption = None, as_json: AsJson = False
) -> None:
    """Withdraw a pending compaction plan with its carried-over log files."""
    open_table(path, writers=writers).unschedule(instant)
    if as_json:
        print_json({"unscheduled": instant})
    else:
        print_text(f"The plan {instant} is withdrawn.")


def validate(path: TablePath, as_json: AsJson = False) -> None:
    """Look the table through: plan against files, leftovers, damage. Exit code 1 if anything is found."""
    findings = open_table(path).validate()
    if as_json:
        print_json({"findings": [asdict(one) for one in findings]})
    else:
        print_findings(findings)
    if findings:
        raise typer.Exit(FAILED)


def recover(path: TablePath, writers: WritersOption = None, as_json: AsJson = False) -> None:
    """Finish or undo what a process that died has left behind, and remove files of no instant."""
    done = open_table(path, writers=writers).recover()
    if not done:
        nothing_to_do("there is nothing to recover", as_json)
    if as_json:
        print_json({"recovered": list(done)})
    else:
        for sentence in done:
            print_text(sentence)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a process without an entry in the system's user list
        return ""


def _publish_again(table: HudiTable) -> None:
    """The views that were published may name files that are gone now. What cannot be published is said beside."""
    for problem in after_change(table):
        typer.echo(f"Warning: {problem}", err=True)
