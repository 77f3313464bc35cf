"""Each command that README, tutorial and how-to show is run here, on a real table in the place of theirs.

What cannot run here stands in `NOT_RUN`, with the reason and with what runs its like. A command that is in neither
fails a test. So does a line there that no page has any more.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import typer

from hudi_assets.cli import app
from hudi_assets.cli import commands as main_commands
from hudi_assets.cli import publish as publish_command
from hudi_assets.cli import read as read_command
from hudi_assets.engine import EVENT_TIME_FIELD, WRITERS, HudiTable
from tests import pages
from tests.catalog.in_memory import Memory, memory
from tests.cli.conftest import DONE, Answer
from tests.pages import FOR_USERS, ROOT, Command, blocks, name_of
from tests.tables.local_session import LocalSession, install
from tests.tables.payments import pay, payments
from tests.tables.steps import planned

__all__ = ["memory"]

COMMANDS = {name_of(page): pages.commands(page) for page in FOR_USERS}
ALL = [command for each in COMMANDS.values() for command in each]

# By how a line begins: why it is not run here, and the test or target that runs it or its like.
NOT_RUN = {
    "pip install": ("fetches packages", "make test-wheel"),
    "python3.11 -m venv": ("fetches packages", "make test-spark35"),
    "environment/bin/pip install": ("fetches packages", "make test-cluster"),
    "environment/bin/venv-pack": ("packs what was fetched", "make test-cluster"),
    "spark-submit": ("asks a cluster", "make test-cluster"),
    "make run": ("minutes long", ".ci/run"),
    "make test": ("this is part of it", ".ci/run"),
    "make test-interop": ("hours long", ".ci/run"),
    "make ui": ("runs until it is stopped", "tests/ui"),
    "make sql": ("asks what make run made", "tests/catalog/test_views.py"),
    "make": ("is what made this environment", ".ci/run"),
    "scripts/interop-setup": ("fetches Apache Hudi", "make test-interop-slice"),
    ".hudi-assets/interop/venv/bin/python docs/examples/payments_stream.py": (
        "is Apache Hudi, and runs until it is stopped",
        "make test-live",
    ),
    "venv35/bin/hudi-assets compact": (
        "Apache Hudi's own bundle compacts, on PySpark 3.5",
        "tests/interop/test_hudi_executor.py",
    ),
    ".venv/bin/python scripts/hudi_read.py .hudi-assets/warehouse/flights --with 0.15.0": (
        "Apache Hudi reads",
        "tests/interop/test_our_tables.py",
    ),
    ".venv/bin/python scripts/hudi_read.py .hudi-assets/warehouse/flights --with hudi-rs": (
        "starts a Spark of its own",
        "make test-thorough",
    ),
    "mkdir hudi_assets/defs/payments": ("writes into this clone", "tests/unit/test_dagster_page.py"),
    "cat > hudi_assets/defs/payments/defs.yaml": ("writes into this clone", "tests/unit/test_dagster_page.py"),
    "export": ("sets variables for later commands", ""),
    "dg": ("wants a dg project of the reader's", "tests/wheel/test_installed.py"),
    "dagster api grpc": ("runs until it is stopped", "tests/dagster/test_code_server.py"),
    "dagster-daemon run": ("runs until it is stopped", "tests/dagster/test_daemon.py"),
    "dagster-webserver": ("runs until it is stopped", "tests/ui"),
    "dagster dev": ("runs until it is stopped, and wants a server of Spark Connect", "make test-connect"),
    "dagster-daemon liveness-check": ("asks a daemon of the reader's, and posts to a webhook", ""),
    "createuser dagster": ("makes a database in PostgreSQL", ""),
    "spark-sql": ("asks what make run made", "tests/catalog/test_views.py"),
    "$SPARK_HOME/sbin/start-connect-server.sh": ("is Spark's own server", "make test-connect"),
    "hudi-assets spark": ("is about a server of the reader's machine", "tests/connect/test_shared_spark.py"),
    "hudi-assets freshness /tmp/payments": ("asks the table of the quick start", "tests/spark/test_readme.py"),
    "hudi-assets publish PATH --metastore glue://eu-central-1": ("asks AWS", "tests/catalog/test_glue.py"),
    "hudi-assets metrics /data/payments /data/orders --slo 6h --listen": (
        "runs until it is stopped",
        "tests/cli/test_metrics.py",
    ),
}
# What is added to a line that would go on for ever.
ENDS = {"hudi-assets metrics --tables tables.toml --textfile": "--once"}
# Pages on tables that others write; all else is about tables that this project made. With the table's version.
EXTERNAL = {
    "README.md": 6,
    "docs/how-to/compact.md": 6,
    "docs/how-to/spark_connect.md": 6,
    "docs/tutorial/your_hudi_table.md": 9,
}
# How pages name the table. In a bucket and in HDFS: `make test-stores` and `make test-hdfs` run these commands there.
PAYMENTS = {
    "PATH",
    "/data/payments",
    "/tmp/payments",
    ".hudi-assets/warehouse/flights",
    "s3://my-bucket/warehouse/payments",
    "s3a://my-bucket/warehouse/payments",
    "hdfs://namenode:8020/warehouse/payments",
}
_INSTANT = re.compile(r"\d{17}")


def runs_here(command: Command) -> bool:
    return reason_of(command) is None


def reason_of(command: Command) -> str | None:
    """The line of `NOT_RUN` that says it best; None where no line does."""
    if command.words[0] == "make":  # by its target
        text = " ".join(command.words[:2])
        return text if text in NOT_RUN else None
    return max((start for start in NOT_RUN if f"{command} ".startswith(f"{start} ")), key=len, default=None)


# -- the tables -----------------------------------------------------------------------------------


@contextmanager
def without_spark() -> Iterator[LocalSession]:
    with pytest.MonkeyPatch.context() as patch:
        session = install(patch.setattr)
        patch.setattr(main_commands, "start_spark", lambda _: session)
        yield session


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one table of each kind."""
    folder = tmp_path_factory.mktemp("made")
    with without_spark() as session:
        payments(folder / "ours", session, version=6, external=False)
        payments(folder / "orders", session, version=6, external=False, event_time="ordered_at")
        for version in sorted(set(EXTERNAL.values())):  # by a stream that commits every five seconds
            ago = range(50, 0, -5)
            payments(folder / f"external-{version}", session, version=version, external=True, commits_ago=ago)
    return folder


@dataclass
class World:
    """A reader's machine: a folder with the tables of one page. The page's commands change them one after the other."""

    folder: Path

    @property
    def table(self) -> HudiTable:
        return HudiTable.open(str(self.folder / "payments"))

    def placed(self, word: str) -> str:
        """A word of a command with this machine's place for what the page names."""
        if word in PAYMENTS:
            return self.table.path
        places = {
            "/data/orders": self.folder / "orders",
            "/data/warehouse": self.folder,
            "/var/lib/prometheus/node-exporter/hudi.prom": self.folder / "hudi.prom",
        }
        return str(places.get(word, word))

    def arguments(self, command: Command) -> list[str]:
        """Those of the page, but for places and moments, which are this table's."""
        assert command.arguments is not None
        words = [self.placed(word) for word in command.arguments]
        moment = self.made_ready(words[0])
        words = [moment if moment and _INSTANT.fullmatch(word) else word for word in words]
        if "--as-of" in words:
            words[words.index("--as-of") + 1] = datetime.now(UTC).isoformat()
        return [*words, *(more for start, more in ENDS.items() if str(command).startswith(start))]

    def made_ready(self, name: str) -> str | None:
        """What has to be there for such a command to have something to do; the instant that it is to be given."""
        if name == "read":
            return min(path.stem for path in Path(self.table.path, ".hoodie").glob("*.deltacommit"))
        if name == "restore":
            return self.table.savepoints()[-1]
        if name == "clean":
            self.compacted_twice()
        if name == "archive":
            self.table.clean()
        if name == "recover":
            self.an_orphan()
        with without_spark() as session:
            if name in ("compact", "rollback", "unschedule"):
                settings = {WRITERS: "stopped", EVENT_TIME_FIELD: "paid_at"}
                newest = pay(HudiTable.open(self.table.path, settings=settings), session, 20)
            if name == "rollback":
                return newest
            if name == "unschedule":
                return planned(self.table).instant
        return None

    def compacted_twice(self) -> None:
        keep = {"hoodie.cleaner.commits.retained": 1, "hoodie.keep.min.commits": 2, "hoodie.keep.max.commits": 3}
        with (self.folder / "payments/.hoodie/hoodie.properties").open("a") as file:
            file.writelines(f"{key}={value}\n" for key, value in keep.items())
        with without_spark() as session:
            self.table.compact(session)
            for hour in range(10, 14):
                pay(self.table, session, hour)
            self.table.compact(session)

    def an_orphan(self) -> None:
        """A carried-over log file of a plan that nobody published."""
        log = sorted(Path(self.table.path).glob(".*.log.*"))[0]
        log.with_name(re.sub(r"_\d{17}", "_29990101000000000", log.name)).hardlink_to(log)


@pytest.fixture
def world(made: Path, tmp_path: Path, page: str, monkeypatch: pytest.MonkeyPatch) -> World:
    kind = f"external-{EXTERNAL[page]}" if page in EXTERNAL else "ours"
    shutil.copytree(made / kind, tmp_path / "data/payments", symlinks=True)
    shutil.copytree(made / "orders", tmp_path / "data/orders", symlinks=True)
    monkeypatch.setattr(publish_command, "home_metastore", lambda: "thrift://home:9083")
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    world = World(tmp_path / "data")
    for block in blocks(ROOT / page, "toml"):
        text = re.sub(r'"(/[^"]*)"', lambda path: f'"{world.placed(path[1])}"', block.text)
        (tmp_path / "work/tables.toml").write_text(text)
    return world


# -- the commands ---------------------------------------------------------------------------------


WITH_COMMANDS = [name for name, found in COMMANDS.items() if any(one.arguments and runs_here(one) for one in found)]


@pytest.mark.spark
@pytest.mark.parametrize("page", WITH_COMMANDS)
def test_the_commands_of_a_page(
    page: str, world: World, memory: Memory, run: Callable[..., Answer], request: pytest.FixtureRequest
) -> None:
    for command in COMMANDS[page]:
        if command.arguments is None or not runs_here(command):
            continue
        arguments = world.arguments(command)
        if arguments[0] == "read":
            spark = request.getfixturevalue("spark")
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(read_command, "start_spark", lambda session=spark: session)
                answer = run(*arguments)
        else:
            with without_spark():
                answer = run(*arguments)
        assert answer.code == DONE, (str(command), answer.out, answer.err)
        made = [value for option, value in pairwise(arguments) if option in ("--out", "--textfile")]
        assert all(Path(path).exists() for path in made), str(command)


def test_each_command_is_run_or_says_why_not() -> None:
    assert [str(command) for command in ALL if command.arguments is None and runs_here(command)] == []
    assert set(NOT_RUN) - {reason_of(command) for command in ALL} == set()
    assert [start for start in ENDS if not any(str(command).startswith(start) for command in ALL)] == []


@pytest.mark.parametrize("runner", sorted({where for _, where in NOT_RUN.values() if where}))
def test_what_runs_the_like_is_there(runner: str) -> None:
    if runner.startswith("make "):
        assert re.search(rf"^{runner.removeprefix('make ')}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
    else:
        assert (ROOT / runner).exists()


@pytest.mark.parametrize("page", FOR_USERS, ids=name_of)
def test_commands_stand_in_blocks_of_the_shell(page: Path) -> None:
    """Else nothing here would see them."""
    others = [line for block in blocks(page) if block.language != "sh" for line in block.text.splitlines()]
    assert [line for line in others if re.match(r"(\S*/)?(hudi-assets|make|pip|dagster|dg)\s+-{0,2}\w", line)] == []


def test_targets_and_variables_of_make_are_there() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for command in ALL:
        for word in command.words[1:] if command.words[0] == "make" else ():
            name, is_variable, _ = word.partition("=")
            assert re.search(rf"^{name} \?=" if is_variable else rf"^{name}:", makefile, re.MULTILINE), str(command)


# -- what is not run, and what stands in the text -------------------------------------------------


def group() -> Any:
    return typer.main.get_command(app)


def command_of(words: Sequence[str]) -> tuple[Any, list[str]]:
    """The command that words name, also one of a group of commands, and the words after it."""
    found, rest = group(), list(words)
    while rest and rest[0] in getattr(found, "commands", ()):
        found = found.commands[rest.pop(0)]
    return found, rest


@pytest.mark.parametrize("command", [c for c in ALL if c.arguments and not runs_here(c)], ids=str)
def test_what_is_not_run_is_understood(command: Command) -> None:
    """A wrong option and a wrong value raise here."""
    assert command.arguments is not None
    found, rest = command_of(command.arguments)
    assert found.make_context(found.name, rest).params


_IN_TEXT = [
    (name_of(page), said)
    for page in pages.ALL
    for said in dict.fromkeys(re.findall(r"(?<!`)`hudi-assets\s+([a-z][^`]*)`(?!`)", page.read_text("utf-8")))
]


@pytest.mark.parametrize(("page", "said"), _IN_TEXT)
def test_commands_in_the_text_and_their_options_are_there(page: str, said: str) -> None:
    command, _ = command_of(said.split())
    known = {option for parameter in command.params for option in parameter.opts}
    assert set(re.findall(r"(?<!\S)--[\w-]+", said)) <= known


@pytest.mark.thorough
def test_hudi_rs_reads_the_same(made: Path, tmp_path: Path) -> None:
    """As compare_with_hudi.md shows it."""
    (command,) = [c for c in COMMANDS["docs/how-to/compare_with_hudi.md"] if "hudi-rs" in c.words]
    python, script, _, *rest = command.words
    assert python == ".venv/bin/python"
    table = shutil.copytree(made / "ours", tmp_path / "flights", symlinks=True)
    with without_spark() as session:
        HudiTable.open(str(table)).compact(session)
    call = [sys.executable, script, str(table), *rest]
    done = subprocess.run(call, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "the same, row by row" in done.stdout
