"""Hudi's lock in ZooKeeper beside Apache Hudi 0.15.0 and 1.2.0, on tables of version 6: a real server, both ways."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest
from kazoo.client import KazooClient

from hudi_assets.engine import HudiTable
from hudi_assets.engine.errors import Conflict, InvalidInput
from hudi_assets.engine.model import Action, Plan
from hudi_assets.engine.table.settings.config import WRITERS
from hudi_assets.engine.table.settings.merging import TABLE_SERVICES
from hudi_assets.engine.transaction.lock import write_lock
from hudi_assets.engine.transaction.lock_providers import LOCK_PROVIDER, ZOOKEEPER, ZOOKEEPER_IMPLICIT, shared_lock
from hudi_assets.engine.transaction.zookeeper import (
    BASE_PATH,
    CONNECTION,
    PORT,
    SESSION,
    TABLES_BASE_PATH,
    URL,
    ZooKeeperLock,
)
from scripts.hudi_client import Hudi, HudiError
from tests.interop.test_concurrency import JAVA
from tests.interop.test_markers import _children
from tests.races.player import SCHEMA, rows_of
from tests.tables.local_session import LocalSession
from tests.zookeeper.servers import ZooKeeper, zookeeper

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]

LOCK = "/hudi/locks/t"
PATIENT = {"hoodie.write.lock.num_retries": "100", "hoodie.write.lock.client.num_retries": "100"}


@pytest.fixture(scope="module")
def server() -> Iterator[ZooKeeper]:
    with zookeeper() as running:
        yield running


@pytest.fixture(params=["0.15.0", "1.2.0"])
def hudi(request: pytest.FixtureRequest) -> Hudi:
    return request.getfixturevalue(f"hudi_{request.param[:-2].replace('.', '_')}")


def shared(server: ZooKeeper) -> dict[str, str]:
    return {LOCK_PROVIDER: ZOOKEEPER, URL: server.url, BASE_PATH: "/hudi/locks", SESSION: "2000", CONNECTION: "5000"}


@pytest.fixture
def table(server: ZooKeeper, session: LocalSession, path: Path) -> HudiTable:
    """A table of version 6 and one bucket, with a log file to compact and one to carry over."""
    made = HudiTable.create(
        str(path), SCHEMA, record_key=["id"], ordering_field="ts", buckets=1, name="t", table_version=6
    )
    table = opened(made, server)
    for ts in (1_000, 50_000):
        table.upsert(session, session.rows([{"id": f"k{n}", "ts": ts + n, "v": ts} for n in range(4)], SCHEMA))
    return table


def opened(table: HudiTable, server: ZooKeeper, **more: str) -> HudiTable:
    settings = {WRITERS: "locked", TABLE_SERVICES: "ours", "hudi_assets.event.time.unit": "ms"}
    return HudiTable.open(table.path, settings={**settings, **shared(server), **more})


def hudi_writes(hudi: Hudi, table: HudiTable, ts: int, server: ZooKeeper, *, path: str = "", **options: str) -> None:
    rows = pa.Table.from_pylist([{"id": "k1", "ts": ts, "v": ts}], SCHEMA)
    version = {"hoodie.write.table.version": "6"} if hudi.release == "1.2.0" else {}
    hudi.write(path or table.path, rows, {**JAVA, **version, **shared(server), **options})


def test_hudi_waits_for_us(server: ZooKeeper, table: HudiTable, hudi: Hudi) -> None:
    """Its lock's name is the table's, where nothing else is said."""
    before = rows_of(table)
    with (
        write_lock(table._table.storage, table.config, wait_s=1, action="holds it for a test"),
        pytest.raises(HudiError, match=r"Unable to acquire lock|FAILED_TO_ACQUIRE lock"),
    ):
        hudi_writes(hudi, table, 90_000, server)
    assert rows_of(table) == before
    hudi_writes(hudi, table, 90_001, server)
    assert rows_of(table)["k1"] == (90_001, 90_001)


@pytest.mark.slow
def test_we_wait_for_hudi(server: ZooKeeper, table: HudiTable, hudi: Hudi) -> None:
    """Its process is stopped while it holds the lock, and goes on before its session ends."""
    client = KazooClient(server.url)
    client.start()
    with ThreadPoolExecutor(1) as pool:
        for ts in range(90_000, 99_000, 1_000):
            future = pool.submit(hudi_writes, hudi, table, ts, server)
            while not (held := client.get_children(LOCK)) and not future.done():
                time.sleep(0.0005)
            if not held:
                continue
            (jvm,) = _children(hudi._process.pid)
            os.kill(jvm, signal.SIGSTOP)
            try:
                said = _refusal(table) if client.get_children(LOCK) else ""
            finally:
                os.kill(jvm, signal.SIGCONT)
            future.result()
            if said:
                break
    client.stop()
    assert "Another process holds Hudi's lock" in said
    assert rows_of(table)["k1"] == (ts, ts)


def _refusal(table: HudiTable) -> str:
    try:
        with write_lock(table._table.storage, table.config, wait_s=0):
            return ""
    except Conflict as conflict:
        return conflict.what


@pytest.mark.slow
def test_hudi_writes_while_we_write_and_compact(
    server: ZooKeeper, table: HudiTable, hudi: Hudi, session: LocalSession
) -> None:
    """Each write of Hudi's and each of ours is there in the end, by both readers."""
    with ThreadPoolExecutor(1) as pool:
        theirs = [pool.submit(hudi_writes, hudi, table, 90_000 + n, server, **PATIENT) for n in range(6)]
        ours = 0
        while not all(write.done() for write in theirs):
            with suppress(Conflict):  # an unfinished write of Hudi's
                table.upsert(session, session.rows([{"id": "ours", "ts": 80_000 + ours, "v": ours}], SCHEMA))
                ours += 1
            with suppress(Conflict):
                _compact(table, session)
            time.sleep(0.2)
        for write in theirs:
            write.result()
    _compact(table, session)
    assert ours
    assert table.state().timeline.completed(Action.COMMIT)
    shown = {row["id"]: (row["ts"], row["v"]) for row in hudi.read(table.path).to_pylist()}
    assert shown == rows_of(table)
    assert shown["ours"] == (80_000 + ours - 1, ours - 1)
    assert shown["k1"] == (90_005, 90_005)


def _compact(table: HudiTable, session: LocalSession) -> None:
    plan = table.plan_compaction(threshold=20_000)
    if isinstance(plan, Plan):
        table.execute_compaction(session, plan.instant)


@pytest.mark.slow
def test_hudi_does_not_read_the_port(server: ZooKeeper, table: HudiTable, hudi: Hudi) -> None:
    """Its writers go to 2181, where nobody answers. So a port beside a URL without one is refused here."""
    apart = {URL: "127.0.0.1", PORT: str(server.port), CONNECTION: "1000"}
    with pytest.raises(HudiError, match=r"Unable to instantiate class .*ZookeeperBasedLockProvider"):
        hudi_writes(hudi, table, 90_000, server, **apart)
    with pytest.raises(InvalidInput, match="does not read"):
        opened(table, server, **apart).plan_compaction(threshold=20_000)
    hudi_writes(hudi, table, 90_000, server, **{PORT: "1"})


@pytest.mark.slow
def test_the_implicit_lock_is_at_the_path_as_it_is_spelled(server: ZooKeeper, table: HudiTable, hudi_1_2: Hudi) -> None:
    """Each spelling of the table's path is another lock: for Hudi's writers among themselves too."""
    client = KazooClient(server.url)
    client.start()
    implicit = {LOCK_PROVIDER: ZOOKEEPER_IMPLICIT}
    for n, spelled in enumerate((table.path, f"file://{table.path}", f"{table.path}/")):
        hudi_writes(hudi_1_2, table, 90_000 + n, server, path=spelled, **implicit)
        made = sorted(f"/tmp/{name}/lock_key" for name in client.get_children("/tmp"))
        assert len(made) == n + 1
        config = opened(table, server, **{TABLES_BASE_PATH: spelled}, **implicit).config
        ours = shared_lock(table._table.storage, config)
        assert isinstance(ours, ZooKeeperLock)
        assert ours.path in made
    client.stop()
    with (
        write_lock(table._table.storage, config, wait_s=1),
        pytest.raises(HudiError, match="FAILED_TO_ACQUIRE lock"),
    ):
        hudi_writes(hudi_1_2, table, 95_000, server, path=spelled, **implicit)
