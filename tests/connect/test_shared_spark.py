"""One Spark for all runs: real servers, found, shared, killed, replaced, and ended."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from hudi_assets.engine import HudiTable
from hudi_assets.resources import SparkResource
from hudi_assets.shared_spark import sessions
from hudi_assets.shared_spark.folder import ServerFolder
from hudi_assets.shared_spark.sessions import end_session, servers, shared_session, start_server, stop_server
from hudi_assets.shared_spark.wanted import Versions, Wanted
from tests.connect.server import ROOT
from tests.connect.shared import SETTINGS, beats, begin, first_line, home_at, wait_until
from tests.tables.local_session import Frame, LocalSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(600),
    # A process has sessions of one kind.
    pytest.mark.skipif(os.environ.get("SPARK_SESSION") != "connect", reason="make test-connect runs these"),
]


@pytest.fixture(scope="module")
def home_of_all(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A home in which tests find the server of those before them."""
    patch = pytest.MonkeyPatch()
    path = tmp_path_factory.mktemp("shared")
    patch.setenv("HUDI_ASSETS_HOME", str(path))
    with home_at(path):
        yield path
    patch.undo()


@pytest.fixture
def home(home_of_all: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HUDI_ASSETS_HOME", str(home_of_all))
    return home_of_all


@pytest.fixture
def spark(home: Path) -> Iterator[SparkSession]:
    session = shared_session(SETTINGS)
    yield session
    end_session(session)


def folder() -> ServerFolder:
    return sessions._folder(Wanted.here(SETTINGS))


def test_two_runs_that_start_at_once_have_one_server(home: Path) -> None:
    runs = [begin(home, "count") for _ in range(2)]
    said = [first_line(run) for run in runs]
    assert len({one["server"] for one in said}) == 1
    assert len({one["session"] for one in said}) == 2
    for run in runs:
        out, err = run.communicate(timeout=120)
        assert run.returncode == 0, err
        assert out.strip() == "7"
    (server,) = servers()
    assert server.running.pid == said[0]["server"]


def test_nobody_without_the_token_is_served(spark: SparkSession) -> None:
    (server,) = servers()
    other = {**os.environ, "SPARK_CONNECT_AUTHENTICATE_TOKEN": "another"}
    program = f"""
from pyspark.sql import SparkSession
SparkSession.builder.remote("sc://localhost:{server.running.port}").create().range(3).count()
"""
    done = subprocess.run([sys.executable, "-c", program], env=other, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "Invalid authentication token" in done.stderr
    for file in ("server.json", "wanted.json"):
        assert (server.folder.path / file).stat().st_mode & 0o077 == 0
    assert server.running.token not in repr(server)


def test_settings_and_views_of_one_run_are_not_another_ones(spark: SparkSession) -> None:
    other = shared_session(SETTINGS)
    other.conf.set("spark.sql.shuffle.partitions", "17")
    other.range(3).createOrReplaceTempView("mine")
    assert spark.conf.get("spark.sql.shuffle.partitions") == "2"
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    with pytest.raises(PySparkException, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.table("mine").count()
    end_session(other)
    assert spark.range(2).count() == 2


def test_what_no_session_owns_goes_with_the_last_one(home: Path) -> None:
    first: Any = shared_session(SETTINGS)
    first.range(1000, numPartitions=1).cache().count()
    first.range(3).createOrReplaceGlobalTempView("everybodys")
    assert "InMemoryTableScan" in first.range(1000, numPartitions=1)._explain_string()
    end_session(first)
    wait_until(lambda: not list((folder().path / "sessions").iterdir()))
    next_one: Any = shared_session(SETTINGS)
    try:
        assert "InMemoryTableScan" not in next_one.range(1000, numPartitions=1)._explain_string()
        with pytest.raises(PySparkException, match="TABLE_OR_VIEW_NOT_FOUND"):
            next_one.table("global_temp.everybodys").count()
    finally:
        end_session(next_one)


CANCELLED = pytest.param(signal.SIGINT, id="cancelled", marks=pytest.mark.slow)


@pytest.mark.parametrize("how", [pytest.param(signal.SIGKILL, id="killed"), CANCELLED])
def test_the_end_of_one_run_stops_its_work_and_no_other(home: Path, tmp_path: Path, how: signal.Signals) -> None:
    files = tmp_path / "ended", tmp_path / "stays"
    runs = [begin(home, "beat", str(file)) for file in files]
    assert len({first_line(run)["server"] for run in runs}) == 1
    wait_until(lambda: all(file.exists() for file in files))
    runs[0].send_signal(how)
    runs[0].wait(60)
    wait_until(lambda: not beats(files[0]))
    assert beats(files[1])
    runs[1].kill()
    runs[1].wait(60)
    wait_until(lambda: not beats(files[1]))


@pytest.mark.slow
def test_a_small_run_does_not_wait_for_the_tasks_of_a_large_one(
    home: Path, spark: SparkSession, tmp_path: Path
) -> None:
    large = begin(home, "many", str(tmp_path))
    first_line(large)
    wait_until(lambda: any(tmp_path.iterdir()))
    assert spark.range(4, numPartitions=2).count() == 4
    assert len(list(tmp_path.iterdir())) < 55
    assert large.wait(120) == 0
    assert len(list(tmp_path.iterdir())) == 60


@pytest.mark.slow
def test_a_server_that_is_killed_during_a_run_ends_it_with_words_and_the_next_run_has_another(
    home: Path, tmp_path: Path
) -> None:
    run = begin(home, "beat", str(tmp_path / "beat"))
    killed = first_line(run)["server"]
    wait_until((tmp_path / "beat").exists)
    os.kill(killed, signal.SIGKILL)
    out, err = run.communicate(timeout=300)
    assert run.returncode == 1, err
    assert "server" in out
    assert str(folder().log) in out
    after = begin(home, "count")
    assert first_line(after)["server"] != killed
    assert after.wait(120) == 0


@pytest.mark.slow
def test_a_server_whose_java_is_killed_is_replaced(home: Path) -> None:
    server, _ = start_server(SETTINGS)
    java = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(server.running.pid)], capture_output=True, text=True, check=True
    )
    os.kill(int(java.stdout.split()[0]), signal.SIGKILL)
    session = shared_session(SETTINGS)
    assert session.range(3).count() == 3
    assert servers()[0].running.pid != server.running.pid
    end_session(session)


@pytest.mark.slow
def test_a_file_that_a_dead_server_left_is_no_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HUDI_ASSETS_HOME", str(tmp_path))
    left = folder()
    (left.path / "serving").touch()
    # A machine that was started again has given its number to another process, and its port too.
    (left.path / "server.json").write_text(json.dumps({"port": 1, "token": "t", "pid": os.getpid(), "started": 0.0}))
    assert servers() == []
    with home_at(tmp_path):
        server, begun = start_server(SETTINGS, idle="2s")
        assert begun
        assert server.running.pid != os.getpid()
        # … and it ends when it has been idle.
        wait_until(lambda: servers() == [] and not left.has_server())


@pytest.mark.slow
def test_another_version_has_a_server_of_its_own_and_the_old_one_ends_with_its_last_run(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = shared_session(SETTINGS)
    (before,) = servers()
    later = replace(Versions.here(), package="99")
    for name in ("here", "installed"):
        monkeypatch.setattr(Versions, name, lambda: later)
    after, begun = start_server(SETTINGS)
    assert begun
    assert after.running.pid != before.running.pid
    assert {(one.running.pid, one.is_current, one.is_ending) for one in servers()} == {
        (before.running.pid, False, True),
        (after.running.pid, True, False),
    }
    assert old.range(4).count() == 4
    end_session(old)
    wait_until(lambda: not before.folder.has_server())
    assert stop_server(after)


def command(home: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "hudi_assets.cli", *words],
        cwd=ROOT,
        env={**os.environ, "HUDI_ASSETS_HOME": str(home), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_the_command_line_starts_shows_and_stops_it(tmp_path: Path, session: LocalSession) -> None:
    home = tmp_path / "home"
    try:
        begun = json.loads(command(home, "spark", "start", "--idle", "5m", "--json").stdout)
        assert begun["started"]
        assert begun["idle_ms"] == 300_000
        assert not json.loads(command(home, "spark", "start", "--json").stdout)["started"]
        (shown,) = json.loads(command(home, "spark", "status", "--json").stdout)["servers"]
        assert (shown["pid"], shown["sessions"], shown["is_current"]) == (begun["pid"], 0, True)
        assert "token" not in shown
        compact_by_command(home, tmp_path / "t", begun["pid"], session)
    finally:
        done = command(home, "spark", "stop", "--now", "--json")
    assert [one["stopped"] for one in json.loads(done.stdout)["servers"]] == [True], done.stderr
    none = command(home, "spark", "stop")
    assert none.returncode == 3
    assert "no shared Spark runs" in none.stdout


def compact_by_command(home: Path, path: Path, pid: int, session: LocalSession) -> None:
    """A table, compacted there."""
    schema = pa.schema([("id", pa.string()), ("at", pa.timestamp("us", "UTC"))])
    table = HudiTable.create(str(path), schema, record_key=["id"], ordering_field="at", buckets=1)
    for id_, hour in (("a", 8), ("b", 11)):
        rows = [{"id": id_, "at": datetime(2024, 5, 1, hour, tzinfo=UTC)}]
        table.upsert(session, Frame(pa.Table.from_pylist(rows, schema)))
    asked = ["compact", table.path, "--threshold", "2024-05-01T09:00:00Z", "--writers", "stopped", "--json"]
    done = command(home, *asked, HUDI_ASSETS_SHARED_SPARK="1")
    assert done.returncode == 0, done.stderr
    assert table.freshness().freshness == 1_714_554_000_000
    (shown,) = json.loads(command(home, "spark", "status", "--json").stdout)["servers"]
    assert shown["pid"] == pid


def test_it_is_not_stopped_under_a_run_unless_so_said(home: Path) -> None:
    session = shared_session(SETTINGS)
    (server,) = servers()
    assert not stop_server(server)
    assert session.range(2).count() == 2
    assert servers()[0].is_ending
    other = shared_session(SETTINGS)  # somebody needs it: it stays
    assert not servers()[0].is_ending
    end_session(other)
    end_session(session)


def test_a_run_of_dagster_has_a_session_that_ends_with_it(home: Path) -> None:
    found = []

    @dg.op(required_resource_keys={"spark"})
    def query(context) -> int:  # type: ignore[no-untyped-def]
        spark = context.resources.spark.spark_session
        found.append(spark.session_id)
        assert [server.sessions for server in servers()] == [1]
        return int(spark.range(5).count())

    @dg.job(resource_defs={"spark": SparkResource(shared=True, spark_config=SETTINGS)})
    def asked() -> None:
        query()

    for _ in range(2):
        assert asked.execute_in_process().output_for_node("query") == 5
    assert len(set(found)) == 2
    assert [server.sessions for server in servers()] == [0]
