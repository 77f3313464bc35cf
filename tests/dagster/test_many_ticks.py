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
from dataclasses import dataclass, field
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


# Dagster checks SQLite's files by alembic whenever it opens an instance, as for each tick. alembic 1.18 then leaves two
# handlers for the end of the process behind (`atexit.register` in `alembic.util.pyfiles`), of so many bytes each.
HANDLERS, HANDLER_BYTES = 2, 2_400
# Of all else: what fills up at first or is made anew now and then (Python's table of names: 8 MB), and a tick's own.
ONCE_MB, TICK_BYTES = 14, 2_000


def resident_mb(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def cpu_seconds(pid: int) -> float:
    """User and system."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Reading:
    """After so many openings of the instance: megabytes of both processes, and what the server's `heap` says."""

    opened: int
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
    opened: int = 0
    cursor: str | None = None
    events: int = 0
    commits: dict[str, int] = field(default_factory=dict)

    def tick(self) -> Any:
        found = self.ask("many_event_time_trigger", self.cursor)
        self.cursor = found.cursor
        for event in found.asset_events:
            self.instance.report_runless_asset_event(event)
        self.events += len(found.asset_events)
        return found

    def ask(self, sensor: str, cursor: str | None = None) -> Any:
        """The server opens its instance for it."""
        (repository,) = self.location.get_repositories().values()
        self.opened += 1
        return self.location.get_sensor_execution_data(
            self.instance, repository.handle, sensor, None, None, cursor, None, 1.0
        )

    def read(self) -> Reading:
        heap = json.loads(self.ask("heap").skip_message)
        return Reading(self.opened, resident_mb(self.server), resident_mb(os.getpid()), **heap)

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
    """Nothing grows but what is known. On PostgreSQL no handler is left behind, on SQLite two for each opening."""
    opened, handlers = last.opened - warm.opened, last.handlers - warm.handlers
    assert handlers <= (0 if on_postgresql else HANDLERS * opened)
    most = ONCE_MB + (TICK_BYTES * opened + HANDLER_BYTES * handlers) / 1e6
    assert last.server - warm.server < most
    assert last.here - warm.here < most
