"""`hudi-assets metrics --dagster`: what became of Dagster's runs, asked of a web server as it is."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from dagster import DagsterEvent, DagsterEventType, DagsterInstance, DagsterRunStatus, Definitions, asset
from dagster._core.instance.ref import InstanceRef

from hudi_assets.engine import EnvironmentProblem
from hudi_assets.monitoring.runs import DagsterRuns, RunsSeen
from hudi_assets.monitoring.samples import registry_of
from hudi_assets.monitoring.tables import Monitored, watched_tables
from hudi_assets.monitoring.watch import Watch
from tests.cli.conftest import FAILED, WRONG_USE, Answer
from tests.ports import free_port

SERVED = "from dagster import Definitions, asset\n\n@asset\ndef a(): ...\n\ndefs = Definitions(assets=[a])\n"


@pytest.fixture(scope="module")
def instance(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DagsterInstance]:
    folder = tmp_path_factory.mktemp("dagster")
    (folder / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
    with DagsterInstance.from_ref(InstanceRef.from_dir(str(folder))) as opened:
        yield opened


@pytest.fixture(scope="module")
def url(instance: DagsterInstance, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Of a web server on that instance."""
    folder = tmp_path_factory.mktemp("served")
    (folder / "served.py").write_text(SERVED)
    port = free_port()
    found = f"http://127.0.0.1:{port}"
    command = ["dagster_webserver", "-f", "served.py", "-h", "127.0.0.1", "-p", str(port)]
    with pytest.MonkeyPatch.context() as patch, (folder / "log").open("wb") as log:
        patch.setenv("DAGSTER_HOME", instance.root_directory)
        server = subprocess.Popen([sys.executable, "-m", *command], cwd=folder, stdout=log, stderr=subprocess.STDOUT)
    try:
        for _ in range(600):
            assert server.poll() is None, (folder / "log").read_text()
            try:
                urllib.request.urlopen(f"{found}/server_info", timeout=5).close()
                break
            except OSError:
                time.sleep(0.2)
        yield found
    finally:
        server.terminate()
        server.wait(60)


def ran(instance: DagsterInstance, table: str, *how: DagsterRunStatus) -> None:
    @asset
    def a() -> None: ...

    job = Definitions(assets=[a]).resolve_implicit_global_asset_job_def()
    for status in how:
        run = instance.create_run_for_job(job, tags={"hudi_assets/table": table}, status=DagsterRunStatus.STARTED)
        if status is DagsterRunStatus.FAILURE:
            instance.report_run_failed(run)
        elif status is DagsterRunStatus.CANCELED:
            instance.report_run_canceled(run)
        else:
            event = DagsterEvent(DagsterEventType.RUN_SUCCESS.value, job_name=run.job_name, message="done")
            instance.report_dagster_event(event, run.run_id)


def test_failures_in_a_row_are_counted_by_table(instance: DagsterInstance, url: str) -> None:
    bad, good, stopped = DagsterRunStatus.FAILURE, DagsterRunStatus.SUCCESS, DagsterRunStatus.CANCELED
    began = time.time() - 1
    ran(instance, "payments", bad, good, bad, stopped)
    ran(instance, 'or"ders', bad, good)
    found = DagsterRuns(f"{url}/").of(["payments", 'or"ders', "none", "payments"])
    assert found.keys() == {"payments", 'or"ders', "none"}
    assert found["none"] == RunsSeen(None, None, None)
    assert found["payments"].failed_in_a_row == 2
    assert found['or"ders'].failed_in_a_row == 0
    for name in ("payments", 'or"ders'):
        assert began < (found[name].failed_at or 0) <= time.time()
        assert began < (found[name].succeeded_at or 0) <= time.time()


def test_they_are_told_as_metrics(instance: DagsterInstance, url: str, run: Callable[..., Answer], table: Path) -> None:
    ran(instance, "mine", *[DagsterRunStatus.FAILURE] * 30)
    (table.parent / "tables.toml").write_text(f'[[table]]\npath = "{table}"\ndagster = "mine"\n')
    answer = run("metrics", "--tables", table.parent / "tables.toml", "--dagster", url)
    assert answer.code == 0, answer.err
    lines = [line for line in answer.out.splitlines() if "run" in line.split("{")[0] or "dagster" in line.split("{")[0]]
    told = {line.split("{")[0]: float(line.rsplit(" ", 1)[1]) for line in lines if not line.startswith("#")}
    assert told["hudi_assets_failed_runs_in_a_row"] == 25
    assert told["hudi_assets_dagster_up"] == 1
    assert told["hudi_assets_last_failed_run_timestamp_seconds"] > 0
    assert "hudi_assets_last_succeeded_run_timestamp_seconds" not in told


def test_without_dagster_nothing_is_told_of_runs(run: Callable[..., Answer], table: Path) -> None:
    out = run("metrics", table).out
    assert "hudi_assets_dagster_up" not in out
    assert "_runs_" not in out


def test_a_dagster_that_does_not_answer_stops_no_table(run: Callable[..., Answer], table: Path) -> None:
    answer = run("metrics", table, "--dagster", f"http://127.0.0.1:{free_port()}")
    assert answer.code == FAILED
    assert "Dagster does not tell of its runs" in answer.err
    assert f'hudi_assets_dagster_up{{path="{table}",table="payments"}} 0.0' in answer.out.replace(
        f'{{table="payments",path="{table}"}}', f'{{path="{table}",table="payments"}}'
    )
    assert "hudi_assets_failed_runs_in_a_row{" not in answer.out
    assert "hudi_assets_remaining_log_files{" in answer.out


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1:3000", "http://", "http://127.0.0.1:three", "http://[::1", "http://127.0.0.1:3000?a=b", "ftp://d:3000"],
)
def test_what_is_no_address_is_refused(address: str, run: Callable[..., Answer], table: Path) -> None:
    answer = run("metrics", table, "--dagster", address)
    assert answer.code == WRONG_USE
    assert "http://127.0.0.1:3000" in answer.err


@pytest.mark.parametrize("address", ["http://me:secret@127.0.0.1:3000", "me:secret@127.0.0.1", "https://secret@d/x"])
def test_a_password_in_the_address_is_refused_and_not_printed(
    address: str, run: Callable[..., Answer], table: Path
) -> None:
    answer = run("metrics", table, "--dagster", address)
    assert answer.code == WRONG_USE
    assert "secret" not in answer.err + answer.out


OK = b"HTTP/1.0 200 OK\r\nContent-Length: %d\r\n\r\n%s"
RUNS = b'{"data": {"t0": {"__typename": "Runs", "results": %s}}}'


@contextmanager
def answering(told: bytes) -> Iterator[str]:
    """A server that says these bytes, whatever it is asked, and hangs up."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.wfile.write(told)

        def log_message(self, *_: object) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(
    "told",
    [
        b"",
        b"nonsense\r\n\r\n",
        OK % (1000, b'{"data": {'),
        OK % (2, b"[]"),
        *[
            OK % (len(body), body)
            for body in (
                b'{"data": {}}',
                b'{"data": {"t0": null}}',
                b'{"data": {"t0": []}}',
                RUNS % b"null",
                RUNS % b"[{}]",
                RUNS % b"[1]",
                RUNS % b'[{"status": "FAILURE", "endTime": []}]',
                RUNS % b'[{"status": "FAILURE", "endTime": "soon"}]',
            )
        ],
    ],
)
def test_a_broken_answer_ends_nothing(told: bytes, run: Callable[..., Answer], table: Path) -> None:
    with answering(told) as url:
        answer = run("metrics", table, "--dagster", url)
    assert answer.code == FAILED
    assert "Dagster does not tell of its runs" in answer.err
    assert "hudi_assets_remaining_log_files{" in answer.out


class Broken(DagsterRuns):
    def __init__(self) -> None: ...

    def of(self, tables: object) -> dict[str, RunsSeen]:
        raise ArithmeticError("a mistake of ours")


def test_a_mistake_in_asking_ends_no_look_at_tables(table: Path) -> None:
    watch = Watch([Monitored(str(table))], 60, runs=Broken())
    watch.look()
    assert watch.runs_problem == "ArithmeticError: a mistake of ours"


class Told(DagsterRuns):
    """Tells, until it is down."""

    def __init__(self) -> None:
        self.up = True
        self.seen = RunsSeen(1, 5.0, None)

    def of(self, tables: object) -> dict[str, RunsSeen]:
        if not self.up:
            raise EnvironmentProblem("Dagster does not tell of its runs: it is down.")
        return {"payments": self.seen}


def test_what_was_told_vanishes_and_comes_back(table: Path, caplog: pytest.LogCaptureFixture) -> None:
    now, runs = [1000.0], Told()
    watch = Watch([Monitored(str(table))], 60, lambda: now[0], runs)

    def told() -> dict[str, float]:
        metrics = registry_of(watch).collect()
        return {s.name: s.value for m in metrics for s in m.samples if "run" in s.name or "dagster" in s.name}

    with caplog.at_level(logging.INFO, "hudi_assets.metrics"):
        watch.look()
        assert told()["hudi_assets_failed_runs_in_a_row"] == 1
        now[0] += 1000  # a look hangs
        assert told() == {"hudi_assets_dagster_up": 0}
        watch.look()
        assert told()["hudi_assets_dagster_up"] == 1
        runs.up = False
        watch.look()
        watch.look()
        assert told() == {"hudi_assets_dagster_up": 0}
        runs.up = True
        watch.look()
    assert [record.levelname for record in caplog.records] == ["ERROR", "INFO"]


def test_a_table_that_dagster_does_not_know_does_not_look_healthy(
    table: Path, caplog: pytest.LogCaptureFixture
) -> None:
    runs = Told()
    watch = Watch([Monitored(str(table))], 60, runs=runs)
    rows = []
    for seen in (RunsSeen(None, None, None), RunsSeen(None, None, None), RunsSeen(0, None, 5.0)):
        runs.seen = seen
        watch.look()
        rows.append({s.name for m in registry_of(watch).collect() for s in m.samples if "run" in s.name})
    known = {"hudi_assets_failed_runs_in_a_row", "hudi_assets_last_succeeded_run_timestamp_seconds"}
    assert rows == [set(), set(), known]
    assert [record.getMessage() for record in caplog.records] == [
        "Dagster knows no runs of payments that have ended. Is that the table's name there?"
    ]


def test_the_name_in_dagster_is_a_text(tmp_path: Path) -> None:
    (tmp_path / "t.toml").write_text('[[table]]\npath = "/t"\ndagster = 1\n')
    with pytest.raises(Exception, match="slo is a text, and so is dagster"):
        watched_tables((), tmp_path / "t.toml", None, {})
