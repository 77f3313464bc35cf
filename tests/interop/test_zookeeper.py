"""Hudi's lock in ZooKeeper beside Apache Hudi 0.15.0 and 1.2.0, on tables of version 6: a real server, both ways."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from kazoo.client import KazooClient

from hudi_assets.engine import HudiTable
from hudi_assets.engine.errors import Conflict, InvalidInput
from hudi_assets.engine.model import Plan
from hudi_assets.engine.table.settings.config import WRITERS
from hudi_assets.engine.table.settings.merging import TABLE_SERVICES
from hudi_assets.engine.transaction.lock import write_lock
from hudi_assets.engine.transaction.lock_providers import LOCK_PROVIDER, ZOOKEEPER, ZOOKEEPER_IMPLICIT
from hudi_assets.engine.transaction.zookeeper import (
    BASE_PATH,
    CONNECTION,
    PORT,
    SESSION,
    URL,
)
from scripts.hudi_client import Hudi, HudiError
from tests.interop.test_concurrency import JAVA
from tests.races.player import SCHEMA, rows_of
from tests.tables.local_session import LocalSession
from tests.zookeeper.servers import ZooKeeper, zookeeper

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]

PATIENT = {"hoodie.write.lock.num_retries": "100", "hoodie.write.lock.client.num_retries": "100"}


@pytest.fixture(scope="module")
def server() -> Iterator[ZooKeeper]:
    with zookeeper() as running:
        yield running


@pytest.fixture(params=["0.15.0", "1.2.0"])
def hudi(request: pytest.FixtureRequest) -> Hudi:
    return request.getfixturevalue(f"hudi_{request.param[:-2].replace('.', '_')}")


def shared(server: ZooKeeper, **more: str) -> dict[str, str]:
    return {LOCK_PROVIDER: ZOOKEEPER, URL: server.url, BASE_PATH: "/hudi/locks", SESSION: "2000", CONNECTION: "5000"}


@pytest.fixture
def table(server: ZooKeeper, session: LocalSession, path: Path) -> HudiTable:
    """A table of version 6 and one bucket, with a log file to compact and one to carry over."""
    HudiTable.create(str(path), SCHEMA, record_key=["id"], ordering_field="ts", buckets=1, name="t", table_version=6)
    table = HudiTable.open(str(path), settings={WRITERS: "locked", TABLE_SERVICES: "ours", **shared(server)})
    for ts in (1_000, 50_000):
        table.upsert(session, session.rows([{"id": f"k{n}", "ts": ts + n, "v": ts} for n in range(4)], SCHEMA))
    return table


def hudi_writes(hudi: Hudi, table: HudiTable, ts: int, server: ZooKeeper, **options: str) -> None:
    rows = pa.Table.from_pylist([{"id": "k1", "ts": ts, "v": ts}], SCHEMA)
    given = {key.replace("__", "."): value for key, value in options.items()}
    version = {"hoodie.write.table.version": "6"} if hudi.release == "1.2.0" else {}
    hudi.write(table.path, rows, {**JAVA, **version, **shared(server), **given})


def test_hudi_waits_for_us(server: ZooKeeper, table: HudiTable, hudi: Hudi) -> None:
    """Its lock's name is the table's, where nothing else is said."""
    before = rows_of(table)
    with (
        write_lock(table._table.storage, table.config, wait_s=1, action="holds it for a test"),
        pytest.raises(HudiError, match="Unable to acquire"),
    ):
        hudi_writes(hudi, table, 90_000, server)
    assert rows_of(table) == before
    hudi_writes(hudi, table, 90_001, server)
    assert rows_of(table)["k1"] == (90_001, 90_001)


def test_we_wait_for_hudi(server: ZooKeeper, table: HudiTable, hudi: Hudi) -> None:
    said = set()
    with ThreadPoolExecutor(1) as pool:
        for ts in range(90_000, 99_000, 1_000):
            future = pool.submit(hudi_writes, hudi, table, ts, server)
            while not future.done():
                try:
                    # It is asked for no longer than a free lock takes, so that Hudi gets it in between.
                    with write_lock(table._table.storage, table.config, wait_s=0):
                        pass
                except Conflict as conflict:
                    said.add(conflict.what)
                time.sleep(0.3)
            future.exception()
            if said:
                break
    print(said)
    assert said, "Hudi took no lock that we could see"


def test_hudi_writes_while_we_compact(server: ZooKeeper, table: HudiTable, hudi: Hudi, session: LocalSession) -> None:
    """Each write of Hudi's and each of ours is there in the end, by both readers."""
    options = {key.replace(".", "__"): value for key, value in PATIENT.items()}
    done = 0
    with ThreadPoolExecutor(1) as pool:
        writes = [pool.submit(hudi_writes, hudi, table, 90_000 + n, server, **options) for n in range(6)]
        for n in range(1_000):
            if all(write.done() for write in writes):
                break
            try:
                table.upsert(session, session.rows([{"id": "ours", "ts": 80_000 + n, "v": n}], SCHEMA))
                done = n
                plan = table.plan_compaction(threshold=20_000)
                if isinstance(plan, Plan):
                    table.execute_compaction(session, plan.instant)
            except Conflict as conflict:
                print(conflict)
            time.sleep(0.5)
        failed = [write.exception() for write in writes]
    print(failed, done)
    shown = {row["id"]: (row["ts"], row["v"]) for row in hudi.read(table.path).to_pylist()}
    assert shown == rows_of(table)
    assert shown["ours"] == (80_000 + done, done)
    last = max(90_000 + n for n, error in enumerate(failed) if error is None)
    assert shown["k1"] == (last, last)


@pytest.mark.slow
def test_hudi_does_not_read_the_port(server: ZooKeeper, table: HudiTable, hudi: Hudi) -> None:
    """Its writers go to 2181 then, where nobody answers. So it is refused here."""
    settings = {URL: "127.0.0.1", PORT: str(server.port), CONNECTION: "1000"}
    with pytest.raises(HudiError) as refused:
        hudi_writes(hudi, table, 90_000, server, **{key.replace(".", "__"): value for key, value in settings.items()})
    print(refused.value)
    with pytest.raises(InvalidInput, match="does not read"):
        HudiTable.open(table.path, settings={**shared(server), WRITERS: "locked", **settings}).plan_compaction(
            threshold=1
        )
    hudi_writes(hudi, table, 90_000, server, **{PORT.replace(".", "__"): "1"})


def test_the_implicit_path(server: ZooKeeper, table: HudiTable, hudi_1_2: Hudi) -> None:
    client = KazooClient(server.url)
    client.start()
    for spelled in (table.path, f"file://{table.path}", f"{table.path}/"):
        rows = pa.Table.from_pylist([{"id": "k1", "ts": 95_000, "v": 95_000}], SCHEMA)
        hudi_1_2.write(
            spelled,
            rows,
            {**JAVA, **shared(server), "hoodie.write.table.version": "6", LOCK_PROVIDER: ZOOKEEPER_IMPLICIT},
        )
        print(spelled, client.get_children("/tmp"))
        from hudi_assets.engine.table.metadata.index_keys import xxh64

        print(f"{xxh64(spelled.encode()):016x}")
    client.stop()
