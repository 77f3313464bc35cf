"""Very many ticks on a real code server, as the daemon makes them but without a pause: memory has to stand still.

`MANY_TICKS`: how many (60; `make test-ticks` makes 3,600). `MANY_TABLES`: of how many tables (3). `MANY_POSTGRES`: `here`
starts a PostgreSQL for the instance, a URL names a database of one (SQLite in a folder).
"""

from __future__ import annotations

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


def resident_mb(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def cpu_seconds(pid: int) -> float:
    """User and system."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@dataclass
class Served:
    """A code server, and what the daemon does with its one sensor."""

    home: Path
    instance: DagsterInstance
    location: Any
    server: int
    cursor: str | None = None
    events: int = 0
    commits: dict[str, int] = field(default_factory=dict)

    def tick(self) -> Any:
        (repository,) = self.location.get_repositories().values()
        found = self.location.get_sensor_execution_data(
            self.instance, repository.handle, "many_event_time_trigger", None, None, self.cursor, None, 1.0
        )
        self.cursor = found.cursor
        for event in found.asset_events:
            self.instance.report_runless_asset_event(event)
        self.events += len(found.asset_events)
        return found

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
        yield Served(tmp_path, instance, location, server.server_process.pid)


def test_memory_stands_still(served: Served) -> None:
    """Each tick looks at all tables and reports what it saw; every twentieth finds a commit more."""
    readings: list[tuple[float, float]] = []
    begun, used = time.monotonic(), cpu_seconds(served.server)
    for number in range(1, TICKS + 1):
        found = served.tick()
        assert f"{TABLES} of {TABLES} tables were looked at." in found.skip_message
        if number % 20 == 0:
            served.commit(f"t{number // 20 % TABLES}")
        if number % max(TICKS // 12, 1) == 0:
            readings.append((resident_mb(served.server), resident_mb(os.getpid())))
            server, here = readings[-1]
            spent = 1000 * (cpu_seconds(served.server) - used) / number
            print(
                f"\n{number} ticks in {time.monotonic() - begun:.0f} s, {served.events} events, "
                f"{sum(served.commits.values())} commits: code server {server:.1f} MB, {spent:.0f} ms CPU a tick; "
                f"this process {here:.1f} MB",
                end="",
            )
    assert served.events >= TABLES
    warm, last = readings[len(readings) // 3], readings[-1]
    # It grew by 1.3 MB a tick, when a look moved all that was alive into the oldest generation.
    assert last[0] - warm[0] < 40
    assert last[1] - warm[1] < 40
