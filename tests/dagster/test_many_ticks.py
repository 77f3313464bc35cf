"""Very many ticks on a real code server, as the daemon makes them but without a pause: memory has to stand still.

`MANY_TICKS`: how many (60; `make test-ticks` makes 3,600). `MANY_TABLES`: of how many tables (3). `MANY_POSTGRES`:
`here` starts a PostgreSQL for the instance, a URL names a database of one (SQLite in a folder).
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from dagster import DagsterInstance
from dagster._core.remote_origin import GrpcServerCodeLocationOrigin
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin
from dagster._grpc.server import GrpcServerProcess

from hudi_assets.engine import HudiTable
from tests.dagster.test_many_tables import SCHEMA, made
from tests.postgresql import at_url
from tests.tables.local_session import LocalSession, install

TICKS = int(os.environ.get("MANY_TICKS", "60"))
TABLES = int(os.environ.get("MANY_TABLES", "3"))
ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.timeout(300 + 2 * TICKS)


# Dagster opens its instance for each tick, and checks SQLite's three files by alembic. For each, alembic 1.18 leaves a
# handler for the end of the process behind (`atexit.register` in `alembic.util.pyfiles`), of so many blocks.
HANDLERS, HANDLER_BLOCKS = 3, 20
# What a tick may leave behind besides. Caches fill up in the first hundreds of them, SQLAlchemy's most of all.
TICK_BLOCKS, CACHED_BLOCKS, LATER_BLOCKS = 10, 200_000, 20_000
# Resident memory may grow by more: Python's table of names is made anew now and then, which takes 8 MB.
ONCE_MB, BLOCK_BYTES = 14, 130


def resident_mb(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def cpu_seconds(pid: int) -> float:
    """User and system."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Reading:
    """After so many ticks: megabytes of both processes, and what the server's `heap` says, which opens no instance."""

    ticks: int
    server: float
    here: float
    handlers: int
    blocks: int


@dataclass
class Served:
    """A code server, and what the daemon does with its one sensor."""

    home: Path
    instance: DagsterInstance
    location: Any
    server: int
    on_postgresql: bool
    ticks: int = 0
    cursor: str | None = None
    events: int = 0
    commits: dict[str, int] = field(default_factory=dict)

    def tick(self) -> Any:
        found = self.ask("many_event_time_trigger", self.cursor)
        self.ticks += 1
        self.cursor = found.cursor
        for event in found.asset_events:
            self.instance.report_runless_asset_event(event)
        self.events += len(found.asset_events)
        return found

    def ask(self, sensor: str, cursor: str | None = None) -> Any:
        (repository,) = self.location.get_repositories().values()
        return self.location.get_sensor_execution_data(
            self.instance, repository.handle, sensor, None, None, cursor, None, 1.0
        )

    def read(self) -> Reading:
        heap = json.loads(self.ask("heap").skip_message)
        return Reading(self.ticks, resident_mb(self.server), resident_mb(os.getpid()), **heap)

    def commit(self, name: str) -> None:
        """One more row, of now."""
        session: Any = LocalSession()
        rows = [{"id": self.commits.get(name, 0) + 2, "at": datetime.now(UTC)}]
        HudiTable.open(str(self.home / "warehouse" / name)).upsert(session, session.rows(rows, SCHEMA))
        self.commits[name] = self.commits.get(name, 0) + 1


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    with serving(tmp_path, monkeypatch) as opened:
        yield opened


@contextmanager
def serving(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """Its tables, instance and code server, a process of its own."""
    monkeypatch.setenv("HUDI_ASSETS_HOME", str(tmp_path))
    monkeypatch.setenv("MANY_TABLES", str(TABLES))
    monkeypatch.setenv("MANY_DEFAULTS", '{"sensor": {"report_every": "1s"}}')
    session = install(monkeypatch.setattr)
    made(tmp_path / "warehouse/t0", session)
    for number in range(1, TABLES):
        shutil.copytree(tmp_path / "warehouse/t0", tmp_path / f"warehouse/t{number}")
    (tmp_path / "dagster").mkdir()
    target = LoadableTargetOrigin(
        executable_path=sys.executable, module_name="tests.dagster.served_many", working_directory=str(ROOT)
    )
    with ExitStack() as stack:
        url = stack.enter_context(at_url(os.environ.get("MANY_POSTGRES")))
        storage: Any = {"storage": {"postgres": {"postgres_url": url}}} if url else None
        instance = stack.enter_context(DagsterInstance.local_temp(str(tmp_path / "dagster"), overrides=storage))
        server = stack.enter_context(
            GrpcServerProcess(instance.get_ref(), loadable_target_origin=target, startup_timeout=240, wait_on_exit=True)
        )
        origin = GrpcServerCodeLocationOrigin(
            host="localhost", port=server.port, socket=server.socket, location_name="tests"
        )
        location = stack.enter_context(origin.create_location(instance))
        yield Served(tmp_path, instance, location, server.server_process.pid, url is not None)


@pytest.mark.thorough
def test_memory_stands_still(served: Served) -> None:
    """Each tick looks at all tables and reports what it saw; every twentieth finds a commit more."""
    readings: list[Reading] = []
    begun, used = time.monotonic(), cpu_seconds(served.server)
    for number in range(1, TICKS + 1):
        found = served.tick()
        assert f"{TABLES} of {TABLES} tables were looked at." in found.skip_message
        if number % 20 == 0:
            served.commit(f"t{number // 20 % TABLES}")
        if number % max(TICKS // 12, 1) == 0:
            spent = 1000 * (cpu_seconds(served.server) - used) / number
            readings.append(served.read())
            now = readings[-1]
            print(
                f"\n{number} ticks in {time.monotonic() - begun:.0f} s, {served.events} events, "
                f"{sum(served.commits.values())} commits: code server {now.server:.1f} MB, {spent:.0f} ms CPU a tick, "
                f"{now.handlers:,} handlers, {now.blocks:,} blocks; this process {now.here:.1f} MB",
                end="",
            )
    assert served.events >= TABLES
    stands_still(readings[len(readings) // 3], readings[-1], on_postgresql=served.on_postgresql)


def stands_still(warm: Reading, last: Reading, *, on_postgresql: bool) -> None:
    """Nothing grows but what is known. On PostgreSQL no handler is left behind, on SQLite three for each tick."""
    ticks, handlers = last.ticks - warm.ticks, last.handlers - warm.handlers
    assert handlers <= (0 if on_postgresql else HANDLERS * ticks)
    once = LATER_BLOCKS if warm.ticks > 300 else CACHED_BLOCKS
    known = TICK_BLOCKS * ticks + HANDLER_BLOCKS * handlers
    assert last.blocks - warm.blocks < once + known
    most_mb = ONCE_MB + BLOCK_BYTES * known / 1e6
    assert last.server - warm.server < most_mb
    assert last.here - warm.here < most_mb


def test_the_bound_tells_what_grows_from_what_stands_still() -> None:
    warm, hour = Reading(1200, 299.0, 339.7, 7, 1_336_136), Reading(3600, 300.0, 341.0, 7, 1_342_000)
    stands_still(warm, hour, on_postgresql=True)
    as_on_sqlite = replace(hour, handlers=7 + 3 * 2400, blocks=1_336_136 + 65 * 2400, server=322.0)
    with pytest.raises(AssertionError):
        stands_still(warm, as_on_sqlite, on_postgresql=True)
    stands_still(warm, as_on_sqlite, on_postgresql=False)
    for leak in ({"blocks": 30 * 2400 + 1_336_136}, {"server": 322.0}, {"here": 362.0}, {"handlers": 8}):
        with pytest.raises(AssertionError):
            stands_still(warm, replace(hour, **leak), on_postgresql=True)
