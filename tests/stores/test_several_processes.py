"""Several processes on one table of S3: no update is lost; a holder that was stopped for too long commits nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hudi_assets.engine import HudiTable
from hudi_assets.engine.model import Action
from hudi_assets.engine.transaction.heartbeat import INTERVAL, MISSES
from hudi_assets.engine.transaction.lease import HUDIS_FILE, RENEWAL, VALIDITY
from tests.crash.tables import batch, planned, snapshot
from tests.stores.hdfs import Hdfs
from tests.stores.minio import Minio
from tests.stores.test_changes import SETTINGS, new_path, new_table
from tests.tables.local_session import LocalSession
from tests.tables.steps import at

SHORT = {**SETTINGS, VALIDITY: "10", RENEWAL: "1", INTERVAL: "1000", MISSES: "2"}
ROOT = Path(__file__).parents[2]

PLAYER = """
import json, sys, time
from hudi_assets.engine import HudiTable, Plan
from hudi_assets.engine.errors import Conflict
from tests.crash.tables import SCHEMA
from tests.tables.local_session import Frame, install
import pyarrow as pa
from tests.tables.steps import at
path, role, number, seconds, settings = *sys.argv[1:3], int(sys.argv[3]), float(sys.argv[4]), json.loads(sys.argv[5])
session, end, step = install(), time.monotonic() + seconds, 0
while time.monotonic() < end:
    step += 1
    table = HudiTable.open(path, settings=settings)
    try:
        if role == "writer":
            own, shared = {"id": number * 100000 + step, "ts": step * 100}, {"id": 1, "ts": step * 100 + number}
            rows = [{**own, "v": step}, {**shared, "v": step}]
            done = table.upsert(session, Frame(pa.Table.from_pylist(rows, SCHEMA)), clock_time=at(step * 100 + 1000))
            print(json.dumps(["written", number * 100000 + step, done.instant]), flush=True)
        else:
            plan = table.plan_compaction()
            pending = table.state().pending_plans
            print(json.dumps(["pending", len(pending)]), flush=True)
            if pending:
                table.execute_compaction(session, pending[0].instant)
                print(json.dumps(["executed", pending[0].instant]), flush=True)
    except Conflict as error:
        print(json.dumps(["lost", str(error)]), flush=True)
    except Exception as error:
        # Another planner was first: there is no such plan any more.
        if "No compaction is pending" not in str(error) and "completed already" not in str(error):
            raise
"""


def run(minio: Minio | Hdfs, code: str, *arguments: str) -> subprocess.Popen[str]:
    environment = {**os.environ, **minio.environment, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def play(minio: Minio | Hdfs, path: str, seconds: float) -> list[list[Any]]:
    roles = ["writer", "writer", "planner", "planner"]
    settings = json.dumps(SHORT)
    players = [
        run(minio, PLAYER, path, role, str(number), str(seconds), settings) for number, role in enumerate(roles, 1)
    ]
    events: list[list[Any]] = []
    for player in players:
        out, err = player.communicate(timeout=seconds + 120)
        assert player.returncode == 0, err
        events += map(json.loads, out.splitlines())
    return events


@pytest.mark.parametrize("version", [9, 6])
@pytest.mark.parametrize("seconds", [6, pytest.param(60, marks=pytest.mark.thorough)])
def test_two_writers_and_two_planners(minio: Minio, seconds: float, version: int) -> None:
    # On version 6 each commit waits for its second to end, so that the short one has too few.
    check_players(minio, new_table(new_path(), version, minio.options), max(seconds, 18 if version == 6 else 0))


def check_players(server: Minio | Hdfs, table: HudiTable, seconds: float) -> None:
    """No update is lost, and at most one plan is pending."""
    events = play(server, table.path, seconds)
    written = {event[1] for event in events if event[0] == "written"}
    assert {row[0] for row in snapshot(table)} == {1, *written}
    assert len(written) > 4, events
    assert any(event[0] == "executed" for event in events), events
    assert max(event[1] for event in events if event[0] == "pending") <= 1
    assert table.validate() == ()
    timeline = table.state().timeline
    assert {event[2] for event in events if event[0] == "written"} == {
        i.timestamp for i in timeline.completed(Action.DELTA_COMMIT)
    }
    assert [i for i in timeline.instants if not i.is_completed and i.action is not Action.COMPACTION] == []


# ---------------------------------------------------------------------------------- stopped, and going on later

STOPPED = """
import json, os, signal, sys
from hudi_assets.engine import HudiTable
from hudi_assets.engine.errors import Conflict
from hudi_assets.engine.storage.hdfs import HdfsStorage
from hudi_assets.engine.storage.objects import ObjectStorage
from hudi_assets.engine.transaction.publish import Publisher
from tests.crash.tables import batch
from tests.tables.local_session import install
from tests.tables.steps import at
path, what, where, settings = *sys.argv[1:4], json.loads(sys.argv[4])
session = install()
table = HudiTable.open(path, settings=settings)
complete, put, begin, rename = Publisher.complete, ObjectStorage._put, Publisher.begin_write, HdfsStorage._rename

def stop():
    print("stopping", flush=True)
    os.kill(os.getpid(), signal.SIGSTOP)

def stopping(inner):
    def call(*args):
        stop()
        return inner(*args)
    return call

def put_late(self, path, *rest):
    if path.endswith((".deltacommit", ".commit")):
        stop()
    return put(self, path, *rest)

def rename_late(self, source, path, **how):
    if path.endswith((".deltacommit", ".commit")):
        stop()
    return rename(self, source, path, **how)

if where == "before it completes":
    Publisher.complete = stopping(complete)
elif where == "in the very request":
    ObjectStorage._put, HdfsStorage._rename = put_late, rename_late
else:
    Publisher.begin_write = stopping(begin)
try:
    if what == "write":
        table.upsert(session, batch(50, 9_500), clock_time=at(20_000))
    else:
        table.execute_compaction(session, what)
    print("done", flush=True)
except Conflict as error:
    print("refused " + str(error), flush=True)
"""


@contextmanager
def stopped(minio: Minio | Hdfs, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    process = run(minio, STOPPED, *arguments, json.dumps(SHORT))
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "stopping\n", process.communicate()
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
        yield process
    finally:
        process.kill()
        process.wait()


def go_on(process: subprocess.Popen[str]) -> str:
    process.send_signal(signal.SIGCONT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return out


def completed(table: HudiTable) -> Sequence[str]:
    return [f"{i.timestamp} {i.action}" for i in table.state().timeline.instants if i.is_completed]


@pytest.mark.parametrize(
    ("where", "version"),
    [
        pytest.param("before it begins", 9, marks=pytest.mark.thorough),
        pytest.param("before it begins", 6, marks=pytest.mark.thorough),
        pytest.param("before it completes", 9, marks=pytest.mark.thorough),
        pytest.param("before it completes", 6, marks=pytest.mark.thorough),
        ("in the very request", 9),
        ("in the very request", 6),
    ],
)
def test_a_writer_that_was_stopped_commits_nothing(
    where: str, version: int, minio: Minio, session: LocalSession
) -> None:
    path = new_path()
    new_table(path, version, minio.options)
    table = HudiTable.open(path, minio.options, settings=SHORT)
    table.upsert(session, batch(0, 1_000), clock_time=at(2_000))
    with stopped(minio, path, "write", where) as process:
        began = time.monotonic()
        table.upsert(session, batch(6, 1_000), clock_time=at(3_000))  # waits for the lease, then takes back
        assert time.monotonic() - began > 5
        rows, done = snapshot(table), completed(table)
        assert len(rows) == 12
        assert "was taken from this process" in go_on(process)
    assert snapshot(table) == rows
    assert completed(table) == done
    table.recover()
    assert table.validate() == ()
    assert json.loads(table._table.storage.read(HUDIS_FILE))["expired"] is True


@pytest.mark.parametrize(
    ("where", "version"),
    [
        ("before it completes", 9),
        pytest.param("before it completes", 6, marks=pytest.mark.thorough),
        pytest.param("in the very request", 9, marks=pytest.mark.thorough),
        ("in the very request", 6),
    ],
)
def test_an_execution_that_was_stopped_commits_nothing(
    where: str, version: int, minio: Minio, session: LocalSession
) -> None:
    path = new_path()
    new_table(path, version, minio.options)
    table = HudiTable.open(path, minio.options, settings=SHORT)
    table.upsert(session, batch(0, 1_000), clock_time=at(2_000))
    rows, plan = snapshot(table), planned(table)
    with stopped(minio, path, plan.instant, where) as process:
        table.execute_compaction(session, plan.instant)
        done = completed(table)
        assert go_on(process).startswith("refused")
    assert completed(table) == done
    assert snapshot(table) == rows
    table.recover()
    assert table.validate() == ()
