"""`hudi-assets init`: a Dagster block for each table that is there, with evidence for what it says."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from hudi_assets.cli.blocks import Block, Wishes, block_of, identifier
from hudi_assets.cli.output import print_json, print_text
from hudi_assets.cli.table import FAILED, NOTHING_TO_DO, AsJson, EventTimeField, Writers, nothing_to_do
from hudi_assets.engine import (
    AUTO,
    EnvironmentProblem,
    HudiAssetsError,
    HudiTable,
    InvalidInput,
    TableProfile,
    parse_latency,
    problem_of,
)

Paths = Annotated[
    list[str], typer.Argument(metavar="PATH…", help="Tables, or folders that hold tables.", show_default=False)
]
Out = Annotated[
    Path,
    typer.Option(
        "--out",
        "--defs-dir",
        metavar="DIR",
        help="The project's folder of definitions. Each block goes to DIR/TABLE/defs.yaml.",
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite blocks that are there.")]
DataLatencyOption = Annotated[
    str | None,
    typer.Option(
        metavar="DURATION", help="The longest time from an event to its commit, or auto. Default: by a sample."
    ),
]
WritersOption = Annotated[
    Writers | None,
    typer.Option("--writers", help="What you know of the tables' other writers. Version 6 has to be told."),
]


@dataclass(frozen=True)
class Written:
    """What came of one table. `state`: written, exists or refused."""

    path: str
    state: str
    file: str | None = None
    name: str | None = None
    error: HudiAssetsError | None = None
    block: Block | None = None
    profile: TableProfile | None = None

    def as_json(self) -> dict[str, Any]:
        error = self.error
        return {
            "path": self.path,
            "state": self.state,
            "file": self.file,
            "name": self.name,
            "decide": list(self.block.decide) if self.block else [],
            "error": None if error is None else {"what": error.what, "where": error.where, "hint": error.next_step},
            "profile": None if self.profile is None else asdict(self.profile),
        }


def init(
    paths: Paths,
    out: Out = Path("defs"),
    force: Force = False,
    event_time_field: EventTimeField = None,
    data_latency: DataLatencyOption = None,
    writers: WritersOption = None,
    as_json: AsJson = False,
) -> None:
    """Write a Dagster block for each table at or below the paths, from what the tables tell about themselves."""
    if data_latency is not None and data_latency != AUTO:
        parse_latency(data_latency)
    wishes = Wishes(event_time_field, data_latency, writers and writers.value)
    tables = [table for path in paths for table in find_tables(path)]
    if not tables:
        nothing_to_do(f"no Hudi table at or below {', '.join(paths)}", as_json)
    done = [_write(path, name, out, wishes, force=force) for path, name in named(tables)]
    if as_json:
        print_json({"tables": [one.as_json() for one in done]})
    else:
        _show(done)
    states = {one.state for one in done}
    if "refused" in states:
        raise typer.Exit(FAILED)
    if states == {"exists"}:
        raise typer.Exit(NOTHING_TO_DO)


def find_tables(path: str) -> Iterator[str]:
    """The path itself if it is a table, else the tables below it, in order; none inside of another table."""
    top = Path(path).expanduser()
    if not top.is_dir():
        raise InvalidInput("No such directory.", where=path, hint="Give a table's base path, or a folder of tables.")
    for folder, folders, _ in os.walk(top):
        if ".hoodie" in folders:
            yield str(Path(folder).absolute())
            folders.clear()
        folders.sort()


def named(paths: Sequence[str]) -> list[tuple[str, str]]:
    """Each table once, with a name: its folder's, with as many folders above it as make the names differ."""
    left = dict.fromkeys(paths)
    found: dict[str, str] = {}
    for depth in range(1, 1 + max((len(Path(path).parts) for path in left), default=0)):
        names = {path: identifier("_".join(Path(path).parts[-depth:])) for path in left if path not in found}
        for path, name in names.items():
            if list(names.values()).count(name) == 1 and name not in found.values():
                found[path] = name
    for number, path in enumerate(path for path in left if path not in found):
        found[path] = f"table_{number}"
    return [(path, found[path]) for path in left]


def _write(path: str, name: str, out: Path, wishes: Wishes, *, force: bool) -> Written:
    file = out / name / "defs.yaml"
    if file.exists() and not force:
        return Written(path, "exists", str(file), name)
    try:
        profile = HudiTable.open(path).profile()
    except (HudiAssetsError, OSError) as error:
        return Written(path, "refused", name=name, error=problem_of(error))
    block = block_of(name, profile, wishes)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(block.text, "utf-8")
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise
        raise EnvironmentProblem(
            f"The block cannot be written: {error.strerror}.",
            where=str(file.absolute()),
            hint="Name a folder that this user may write by --out.",
        ) from error
    return Written(path, "written", str(file), name, block=block, profile=profile)


def _show(done: Sequence[Written]) -> None:
    """Blocks on stdout; what is left to decide, and what went wrong, on stderr."""
    for one in done:
        if one.block is not None:
            print_text(f"{one.file}: {one.path}")
            for text in one.block.decide:
                _say(f"{one.file}: {text}")
        elif one.error is not None:
            hint = f" {one.error.next_step}" if one.error.next_step else ""
            _say(f"Not written: {one.path}: {one.error.what}{hint}")
        else:
            _say(f"Not written: {one.file} is there already (--force overwrites it).")


def _say(text: str) -> None:
    print(text, file=sys.stderr)
