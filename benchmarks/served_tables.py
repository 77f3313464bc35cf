"""Many tables on a real code server with a real daemon and web server: is each looked at every minute, at what cost?

    scripts/with-env python benchmarks/served_tables.py --tables 1000 --minutes 10

Makes one table, copies it, and starts the three processes of a deployment on an instance in a folder (SQLite), or on
the PostgreSQL that `--postgres URL` names (`--postgres here` starts one), with the settings of docs/how-to/deploy.md.
Says for each minute CPU seconds and resident memory of each process, and of all processes of PostgreSQL and PgBouncer
on this machine (proportional memory), how long the web server took to answer, and the load. Says of each tick how long
it took, and how long it was from the last one's beginning to its own, and from end to end. Nothing is due; with
`--writers N`, so many tables get a commit in each minute.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.many_tables import make_tables, show
from tests.ports import free_port
from tests.postgresql import at_url

_ROOT = Path(__file__).resolve().parent.parent
_SENSOR = "many_event_time_trigger"
_SETTINGS = """telemetry: {enabled: false}
sensors: {use_threads: true, num_workers: 8}
schedules: {use_threads: true, num_workers: 4}
"""
# What pages of the UI ask: the list of assets, one table's asset with its checks, the sensor's ticks.
_QUESTIONS = {
    "assets": "{ assetNodes { assetKey { path } groupName } }",
    "asset": '{ assetNodeOrError(assetKey: {path: ["t7", "freshness"]}) { ... on AssetNode { assetKey { path } '
    "assetObservations(limit: 20) { timestamp metadataEntries { label } } "
    "assetChecksOrError { ... on AssetChecks { checks { name executionForLatestMaterialization { status } } } } } } }",
    "sensors": "{ workspaceOrError { ... on Workspace { locationEntries { locationOrLoadError { ... on "
    "RepositoryLocation { repositories { sensors { name sensorState { ticks(limit: 20) { status } } } } } } } } } }",
}


class Process:
    """One of the three, with what it takes."""

    def __init__(self, name: str, command: list[str], environment: dict[str, str], log: Path) -> None:
        self.name = name
        with log.open("wb") as out:
            self.started = subprocess.Popen(command, cwd=_ROOT, env=environment, stdout=out, stderr=subprocess.STDOUT)
        self._cpu = 0.0

    def took(self) -> dict[str, float]:
        """CPU seconds since the last call, and resident MB."""
        pid = self.started.pid
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        cpu = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        before, self._cpu = self._cpu, cpu
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        return {f"{self.name}_cpu": cpu - before, f"{self.name}_mb": pages * os.sysconf("SC_PAGE_SIZE") / 1e6}

    def stop(self) -> None:
        self.started.terminate()
        self.started.wait(60)


class Database:
    """All processes of PostgreSQL, and of a pool before it, on this machine."""

    def __init__(self) -> None:
        self._cpu = 0.0
        self.took()

    def took(self) -> dict[str, float]:
        """CPU seconds since the last call, with those of sessions that ended, and megabytes; none where it is not."""
        cpu = memory = 0.0
        for process in Path("/proc").glob("[0-9]*"):
            try:
                name, fields = (process / "stat").read_text().split("(", 1)[1].rsplit(")", 1)
                if name in ("postgres", "pgbouncer"):
                    cpu += sum(map(int, fields.split()[11:15])) / os.sysconf("SC_CLK_TCK")
                    rollup = (process / "smaps_rollup").read_text()
                    memory += int(rollup.split("Pss:", 1)[1].split()[0]) * 1024 / 1e6
            except (OSError, IndexError):  # it has just ended
                continue
        before, self._cpu = self._cpu, cpu
        return {"database_cpu": cpu - before, "database_mb": memory} if cpu else {}


def await_port(port: int, process: Process) -> None:
    while True:
        if process.started.poll() is not None:
            raise RuntimeError(f"{process.name} ended")
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)


def asked(port: int, query: str) -> float:
    """Seconds until the web server's answer."""
    body = json.dumps({"query": query}).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{port}/graphql", body, {"Content-Type": "application/json"})
    began = time.monotonic()
    with urllib.request.urlopen(request, timeout=120) as answer:
        found = json.loads(answer.read())
    if "errors" in found:
        raise RuntimeError(str(found["errors"])[:500])
    return time.monotonic() - began


def ticks_since(instance: Any, since: float) -> list[Any]:
    """The sensor's ticks that began after that, oldest first."""
    for state in instance.all_instigator_state():
        if state.name == _SENSOR:
            found = instance.get_ticks(state.instigator_origin_id, state.selector_id, limit=200)
            return sorted((tick for tick in found if tick.timestamp > since), key=lambda tick: tick.timestamp)
    return []


def commit(folder: Path, name: str, number: int) -> None:
    from hudi_assets.engine import HudiTable
    from tests.tables.local_session import LocalSession

    session: Any = LocalSession()
    table = HudiTable.open(str(folder / "warehouse" / name))
    rows = [{"id": number, "at": datetime.now(UTC), "amount": 2.0}]
    table.upsert(session, session.rows(rows, table.schema()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=1000)
    parser.add_argument("--minutes", type=int, default=10)
    parser.add_argument("--writers", type=int, default=0)
    parser.add_argument("--postgres")
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="served-tables-"))
    try:
        (folder / "warehouse").mkdir()
        make_tables(folder / "warehouse", given.tables, 3)
        with at_url(given.postgres) as url:
            measure(folder, given.tables, given.minutes, given.writers, url)
    finally:
        shutil.rmtree(folder)


def measure(folder: Path, tables: int, minutes: int, writers: int, postgres: str | None) -> None:
    from dagster import DagsterInstance
    from dagster._core.instance.ref import InstanceRef

    home = folder / "dagster"
    home.mkdir()
    storage = f"storage: {{postgres: {{postgres_url: '{postgres}'}}}}\n" if postgres else ""
    (home / "dagster.yaml").write_text(_SETTINGS + storage)
    code, web = free_port(), free_port()
    (folder / "workspace.yaml").write_text(
        f"load_from: [grpc_server: {{host: 127.0.0.1, port: {code}, location_name: many}}]\n"
    )
    environment = {
        **os.environ,
        "DAGSTER_HOME": str(home),
        "HUDI_ASSETS_HOME": str(folder),
        "PYTHONPATH": str(_ROOT),
        "MANY_TABLES": str(tables),
    }

    def start(name: str, *command: str) -> Process:
        return Process(name, [sys.executable, "-m", *command], environment, folder / f"{name}.log")

    at = ("--host", "127.0.0.1", "--port")
    began = time.monotonic()
    server = start("code", "dagster", "api", "grpc", *at, str(code), "-m", "tests.dagster.served_many")
    running = [server]
    try:
        await_port(code, server)
        show("the code server listens", seconds=time.monotonic() - began, **server.took())
        began = time.monotonic()
        workspace = ("-w", str(folder / "workspace.yaml"))
        running.append(start("daemon", "dagster._daemon", "run", *workspace))
        running.append(start("web", "dagster_webserver", *workspace, "-h", "127.0.0.1", "-p", str(web)))
        await_port(web, running[-1])
        show("the web server listens", seconds=time.monotonic() - began)
        with DagsterInstance.from_ref(InstanceRef.from_dir(str(home))) as instance:
            watch(folder, running, web, instance, minutes, writers, tables)
    finally:
        for process in reversed(running):
            process.stop()


def watch(
    folder: Path, running: list[Process], web: int, instance: Any, minutes: int, writers: int, tables: int
) -> None:
    last, written, database = None, 0, Database()
    for minute in range(1, minutes + 1):
        end = time.monotonic() + 60
        for _ in range(writers):
            commit(folder, f"t{written % tables}", 100 + written)
            written += 1
        waits: dict[str, float] = {}
        while (left := end - time.monotonic()) > 0:
            for name, query in _QUESTIONS.items():
                waits[name] = max(waits.get(name, 0), asked(web, query))
            time.sleep(max(0, min(10, left)))
        found = [tick for tick in ticks_since(instance, last.timestamp if last else 0.0) if tick.end_timestamp]
        show(
            f"minute {minute}",
            failed=sum(tick.status.value == "FAILURE" for tick in found),
            **{name: value for process in running for name, value in process.took().items()},
            **database.took(),
            **{f"ui_{name}": wait for name, wait in waits.items()},
            disk_mb=sum(file.stat().st_size for file in (folder / "dagster").rglob("*.db")) / 1e6,
            load=os.getloadavg()[0],
        )
        for tick in found:
            between = (tick.timestamp - last.timestamp, tick.end_timestamp - last.end_timestamp) if last else (0.0, 0.0)
            times = dict(zip(("from_beginning", "from_end"), between, strict=True))
            show("  tick", took=tick.end_timestamp - tick.timestamp, **times)
            print(f"    {str(tick.error)[:500] if tick.error else tick.skip_reason}", flush=True)
            last = tick


if __name__ == "__main__":
    main()
