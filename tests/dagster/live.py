"""A running `dagster-daemon` beside a code server of its own, as a service has them, and tables that others write."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from dagster import AssetCheckEvaluation, AssetCheckKey, AssetKey, DagsterInstance
from dagster._core.instance.ref import InstanceRef

from hudi_assets.engine import HudiTable
from hudi_assets.engine.timeline.instants import format_instant
from tests.ports import HOST, answers, free_port
from tests.tables.local_session import LocalSession, install

ROOT = Path(__file__).resolve().parents[2]
FRESHNESS = AssetKey(["events", "freshness"])
SLO = AssetCheckKey(FRESHNESS, "freshness_within_slo")


@dataclass
class Webhook:
    """Takes what is posted to it."""

    posted: list[str] = field(default_factory=list)

    def __enter__(self) -> Webhook:
        posted = self.posted

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                posted.append(json.loads(body)["text"])
                self.send_response(200)
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/"


@dataclass
class Daemon:
    """A running `dagster-daemon`, its instance, and the tables that it looks at."""

    home: Path
    process: subprocess.Popen[bytes]
    server: subprocess.Popen[bytes]
    instance: DagsterInstance
    webhook: Webhook

    def wait_for(self, what: str, condition: Callable[[], bool], seconds: float = 240) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            assert self.process.poll() is None, (self.home / "daemon.log").read_text()[-3000:]
            assert time.monotonic() < deadline, f"{what}: {(self.home / 'daemon.log').read_text()[-3000:]}"
            time.sleep(0.2)

    def ticks(self, name: str = "events_event_time_trigger") -> list[Any]:
        """The ticks of the sensor that have ended, newest first."""
        for state in self.instance.all_instigator_state():
            if state.name == name:
                found = self.instance.get_ticks(state.instigator_origin_id, state.selector_id, limit=2000)
                return [tick for tick in found if tick.status.value in ("SKIPPED", "SUCCESS", "FAILURE")]
        return []

    def all_ticks(self) -> int:
        """How many ticks of the tables' sensors have ended. Each table has a sensor of its own."""
        states = [state for state in self.instance.all_instigator_state() if "_event_time_trigger" in state.name]
        storage = self.instance.schedule_storage
        assert storage is not None
        found = [storage.get_ticks(state.instigator_origin_id, state.selector_id) for state in states]
        return sum(tick.status.value in ("SKIPPED", "SUCCESS", "FAILURE") for ticks in found for tick in ticks)

    def check(self) -> AssetCheckEvaluation | None:
        record = self.instance.get_latest_asset_check_evaluation_record(SLO)
        found = record.evaluation if record else None
        return found if isinstance(found, AssetCheckEvaluation) else None

    def passes(self) -> bool | None:
        found = self.check()
        return None if found is None else found.passed

    def observed(self) -> list[dict[str, Any]]:
        """What was observed of `freshness`, newest first."""
        records = self.instance.fetch_observations(FRESHNESS, limit=1000).records
        events = [record.asset_observation for record in records]
        return [{k: v.value for k, v in event.metadata.items()} for event in events if event]

    def memory(self) -> dict[str, int]:
        """Resident memory in MB."""
        pages = {
            name: int(Path(f"/proc/{process.pid}/statm").read_text().split()[1])
            for name, process in (("daemon", self.process), ("code server", self.server))
        }
        return {name: count * os.sysconf("SC_PAGE_SIZE") >> 20 for name, count in pages.items()}


def table(home: Path, name: str, *, ahead: timedelta = timedelta(hours=1)) -> HudiTable:
    """Of one row, whose event time lies so far ahead: of the threshold too, so that nothing comes to be compacted."""
    schema = pa.schema([("id", pa.int64()), ("event_time", pa.timestamp("us", tz="UTC"))])
    made = HudiTable.create(
        str(home / "warehouse" / name), schema, record_key=["id"], ordering_field="event_time", buckets=1
    )
    session = LocalSession()
    rows = [{"id": 1, "event_time": datetime.now(UTC) + ahead}]
    made.upsert(session, session.rows(rows, schema))
    return made


def hang(path: Path) -> list[Path]:
    """A write of another engine that was begun two hours ago, and hangs."""
    instant = format_instant(int((datetime.now(UTC) - timedelta(hours=2)).timestamp() * 1000), "UTC")
    files = [path / ".hoodie" / f"{instant}.deltacommit{state}" for state in (".requested", ".inflight")]
    for file in files:
        file.write_text("")
    return files


@contextmanager
def live_daemon(
    home: Path, tables: Mapping[str, timedelta], settings: str, environment: Mapping[str, str]
) -> Iterator[Daemon]:
    """Of the tables by their names, whose row lies so far ahead. `settings`: the instance's, as YAML."""
    folder = home / "dagster"
    folder.mkdir()
    (folder / "dagster.yaml").write_text(settings)
    port = free_port()
    workspace = home / "workspace.yaml"
    workspace.write_text(f"load_from: [grpc_server: {{host: {HOST}, port: {port}, location_name: tests}}]\n")
    with pytest.MonkeyPatch.context() as patch:
        install(patch.setattr)
        for name, ahead in tables.items():
            table(home, name, ahead=ahead)
    with Webhook() as webhook, (home / "daemon.log").open("wb") as log, pytest.MonkeyPatch.context() as patch:
        given = {
            "DAGSTER_HOME": str(folder),
            "HUDI_ASSETS_HOME": str(home),
            "PYTHONPATH": str(ROOT),
            "ALERT_URL": webhook.url,
            **environment,
        }
        for name, value in given.items():
            patch.setenv(name, value)
        grpc = ("-m", "dagster", "api", "grpc", "--host", HOST, "--port", str(port), "--location-name", "tests")
        with (
            DagsterInstance.from_ref(InstanceRef.from_dir(str(folder))) as instance,
            _running((sys.executable, *grpc, "-m", "tests.dagster.served_live"), log) as server,
        ):
            await_port(port, server)
            daemon = str(Path(sys.executable).with_name("dagster-daemon"))
            with _running((daemon, "run", "-w", str(workspace)), log) as process:
                yield Daemon(home, process, server, instance, webhook)


@contextmanager
def web_server(daemon: Daemon) -> Iterator[str]:
    """The URL of Dagster's UI on the daemon's instance."""
    port = free_port()
    options = ("-w", str(daemon.home / "workspace.yaml"), "-h", HOST, "-p", str(port))
    with (
        (daemon.home / "web.log").open("wb") as log,
        _running((sys.executable, "-m", "dagster_webserver", *options), log) as process,
    ):
        await_port(port, process)
        yield f"http://{HOST}:{port}"


def await_port(port: int, server: subprocess.Popen[bytes]) -> None:
    for _ in range(900):
        assert server.poll() is None
        if answers(port):
            return
        time.sleep(0.2)
    raise TimeoutError(port)


@contextmanager
def _running(command: Sequence[str], log: Any) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=subprocess.STDOUT)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
