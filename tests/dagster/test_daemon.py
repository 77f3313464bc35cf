"""A real daemon with a real code server: a hung write turns a check red by itself, and an alert is sent.

`DAEMON_SECONDS`: how long ticks are counted and memory is read (30). `DAEMON_TABLES`: how many tables more (0).
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from dagster import (
    AssetCheckEvaluation,
    AssetCheckKey,
    AssetKey,
    AssetMaterialization,
    DagsterInstance,
)
from dagster._core.instance.ref import InstanceRef

from hudi_assets.engine import HudiTable
from hudi_assets.engine.timeline.instants import format_instant
from tests.dagster.ticking import MORE
from tests.ports import free_port
from tests.tables.local_session import LocalSession, install

pytestmark = [pytest.mark.slow, pytest.mark.thorough, pytest.mark.timeout(900)]
ROOT = Path(__file__).resolve().parents[2]
SECONDS = int(os.environ.get("DAEMON_SECONDS", "30"))
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


def table(home: Path, name: str) -> HudiTable:
    schema = pa.schema([("id", pa.int64()), ("event_time", pa.timestamp("us", tz="UTC"))])
    made = HudiTable.create(
        str(home / "warehouse" / name), schema, record_key=["id"], ordering_field="event_time", buckets=1
    )
    session = LocalSession()
    # Ahead of the threshold for as long as the test lasts: nothing comes to be compacted.
    rows = [{"id": 1, "event_time": datetime.now(UTC) + timedelta(hours=1)}]
    made.upsert(session, session.rows(rows, schema))
    return made


def await_port(port: int, server: subprocess.Popen[bytes]) -> None:
    for _ in range(600):
        assert server.poll() is None
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    raise TimeoutError(port)


def hang(path: Path) -> list[Path]:
    """A write of another engine that was begun two hours ago, and hangs."""
    instant = format_instant(int((datetime.now(UTC) - timedelta(hours=2)).timestamp() * 1000), "UTC")
    files = [path / ".hoodie" / f"{instant}.deltacommit{state}" for state in (".requested", ".inflight")]
    for file in files:
        file.write_text("")
    return files


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    home = tmp_path_factory.mktemp("platform")
    (home / "dagster").mkdir()
    (home / "dagster" / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
    with pytest.MonkeyPatch.context() as patch:
        install(patch.setattr)
        for name in ("events", "still", *MORE):
            table(home, name)
    with (
        Webhook() as webhook,
        DagsterInstance.from_ref(InstanceRef.from_dir(str(home / "dagster"))) as instance,
        (home / "daemon.log").open("wb") as log,
    ):
        environment = {
            **os.environ,
            "DAGSTER_HOME": str(home / "dagster"),
            "HUDI_ASSETS_HOME": str(home),
            "PYTHONPATH": str(ROOT),
            "ALERT_URL": webhook.url,
        }
        port = free_port()
        workspace = home / "workspace.yaml"
        workspace.write_text(f"load_from: [grpc_server: {{host: 127.0.0.1, port: {port}, location_name: tests}}]\n")

        def start(*command: str) -> subprocess.Popen[bytes]:
            return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=subprocess.STDOUT)

        here = ("--host", "127.0.0.1", "--port", str(port))
        server = start(
            sys.executable,
            "-m",
            "dagster",
            "api",
            "grpc",
            *here,
            "-m",
            "tests.dagster.served_live",
            "--location-name",
            "tests",
        )
        await_port(port, server)
        process = start(str(Path(sys.executable).with_name("dagster-daemon")), "run", "-w", str(workspace))
        try:
            yield Daemon(home, process, server, instance, webhook)
        finally:
            for one in (process, server):
                one.terminate()
                one.wait(60)


def test_a_hung_write_is_red_within_two_ticks_and_a_mended_one_green(daemon: Daemon) -> None:
    # What nobody publishes goes stale by Dagster's own word, in the last test.
    daemon.instance.report_runless_asset_event(AssetMaterialization(AssetKey(["still", "freshness"])))
    daemon.wait_for("the first tick", lambda: daemon.passes() is True)
    assert daemon.observed()[0]["lag_seconds"] < 60

    before = len(daemon.ticks())
    hung = hang(daemon.home / "warehouse" / "events")
    daemon.wait_for("two ticks", lambda: len(daemon.ticks()) >= before + 3)  # one may have begun before the write did
    assert daemon.passes() is False
    found = daemon.check()
    assert found is not None
    assert "2 h behind the clock, allowed are 1 h" in str(found.description)
    print(f"\nred after {len(daemon.ticks()) - before} ticks at most: {found.description}")
    daemon.wait_for("the lag", lambda: daemon.observed()[0]["lag_seconds"] > 7200)
    daemon.wait_for("an alert", lambda: any("allowed are 1 h" in text for text in daemon.webhook.posted))

    for file in hung:
        file.unlink()
    before = len(daemon.ticks())
    daemon.wait_for("two ticks", lambda: len(daemon.ticks()) >= before + 3)
    assert daemon.passes() is True
    daemon.wait_for("another alert", lambda: any("passes again" in text for text in daemon.webhook.posted))
    print(daemon.webhook.posted)
    assert daemon.instance.get_runs_count() == 0


def test_a_path_that_is_gone_is_red_and_the_tick_fails(daemon: Daemon) -> None:
    path = daemon.home / "warehouse" / "events"
    path.rename(path.with_name("elsewhere"))
    daemon.wait_for("a failed tick", lambda: daemon.ticks()[0].status.value == "FAILURE")
    assert "Correct `path` in the block" in str(daemon.ticks()[0].error)
    assert daemon.passes() is False
    path.with_name("elsewhere").rename(path)
    daemon.wait_for("green", lambda: daemon.passes() is True)


def test_memory_stands_still_over_many_ticks(daemon: Daemon) -> None:
    """Ticks write events; neither the daemon nor the code server may grow with them."""
    daemon.wait_for("a tick", lambda: len(daemon.ticks()) > 5)
    first = last = daemon.memory()
    ticks, end = len(daemon.ticks()), time.monotonic() + SECONDS
    while time.monotonic() < end:
        time.sleep(min(30, SECONDS))
        last = daemon.memory()
        size = sum(file.stat().st_size for file in (daemon.home / "dagster").rglob("*.db")) >> 10
        counted = f"{len(daemon.ticks()) - ticks} ticks, {len(daemon.observed())} observations"
        print(f"\n{counted}: {last}, {size:,} KiB on disk")
    assert all(last[name] - first[name] < 60 for name in last), (first, last)


def test_what_nobody_publishes_goes_stale_by_itself(daemon: Daemon) -> None:
    key = AssetKey(["still", "freshness"])

    def state() -> str | None:
        record = daemon.instance.get_freshness_state_records([key]).get(key)
        return record.freshness_state.value if record else None

    daemon.wait_for("stale", lambda: state() == "FAIL")
    assert daemon.ticks("still_event_time_trigger") == []
