"""Our engine and an Apache Hudi writer with optimistic concurrency on one table: the lock, heartbeats, and a Java
writer that is at work while a compaction is planned."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_assets.engine import HudiTable
from hudi_assets.engine.errors import Conflict
from hudi_assets.engine.model import Plan
from hudi_assets.engine.table.settings.config import WRITERS
from hudi_assets.engine.table.settings.merging import TABLE_SERVICES
from hudi_assets.engine.timeline.commit_metadata import WRITER, CommitMetadata
from hudi_assets.engine.timeline.instants import Timeline
from hudi_assets.engine.transaction.file_lock import LOCK_PATH
from hudi_assets.engine.transaction.heartbeat import INTERVAL, Heartbeats
from hudi_assets.engine.transaction.lock import write_lock
from scripts.hudi_client import Hudi, HudiError
from tests.races.player import SCHEMA, rows_of
from tests.tables.local_session import LocalSession

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]

JAVA: Mapping[str, str] = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.partitionpath.field": "",
    "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": "1",
    "hoodie.bucket.index.hash.field": "id",
    "hoodie.metadata.enable": "false",
    "hoodie.compact.inline": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.cleaner.policy.failed.writes": "LAZY",
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider",
    "hoodie.write.lock.wait_time_ms": "200",
    "hoodie.write.lock.num_retries": "2",
    "hoodie.write.lock.wait_time_ms_between_retry": "200",
    "hoodie.write.lock.client.num_retries": "2",
    "hoodie.write.lock.client.wait_time_ms_between_retry": "200",
    "hoodie.client.heartbeat.interval_in_ms": "1000",
    "hoodie.client.heartbeat.tolerable.misses": "2",
}
PATIENT = {"hoodie.write.lock.num_retries": "100", "hoodie.write.lock.client.num_retries": "100"}


@pytest.fixture
def table(session: LocalSession, path: Path) -> HudiTable:
    """A table of one bucket with a log file to compact and one to carry over; every writer takes the lock."""
    HudiTable.create(str(path), SCHEMA, record_key=["id"], ordering_field="ts", buckets=1, name="t")
    table = HudiTable.open(str(path), settings={WRITERS: "locked", TABLE_SERVICES: "ours", INTERVAL: "1000"})
    for ts in (1_000, 50_000):
        table.upsert(session, session.rows([{"id": f"k{n}", "ts": ts + n, "v": ts} for n in range(4)], SCHEMA))
    return table


def java_writes(hudi: Hudi, table: HudiTable, ts: int, **options: str) -> None:
    rows = pa.Table.from_pylist([{"id": "k1", "ts": ts, "v": ts}], SCHEMA)
    hudi.write(table.path, rows, {**JAVA, **{key.replace("__", "."): value for key, value in options.items()}})


def files(table: HudiTable, instant: str) -> set[str]:
    return {file.name.partition(".")[2] for file in Path(table.path, ".hoodie").glob(f"{instant}.*")}


def heartbeats(table: HudiTable) -> Heartbeats:
    return Heartbeats.of(table._table.storage, table.config, table._table.publisher.now_ms)


# -- the lock ---------------------------------------------------------------------------------------


def test_java_waits_for_our_lock(table: HudiTable, hudi_0_15: Hudi) -> None:
    before = rows_of(table)
    with (
        write_lock(table._table.storage, table.config, wait_s=1, action="holds it for a test"),
        pytest.raises(HudiError, match="Unable to acquire lock"),
    ):
        java_writes(hudi_0_15, table, 90_000)
    assert rows_of(table) == before
    java_writes(hudi_0_15, table, 90_001)
    assert rows_of(table)["k1"] == (90_001, 90_001)


@pytest.mark.slow
def test_a_lock_folder_of_its_own(table: HudiTable, hudi_0_15: Hudi, tmp_path: Path) -> None:
    folder = tmp_path / "locks"
    folder.mkdir()
    other = HudiTable.open(table.path, settings={WRITERS: "locked", LOCK_PATH: str(folder)})
    with write_lock(other._table.storage, other.config, wait_s=1):
        assert [file.name for file in folder.iterdir()] == ["lock"]
        with pytest.raises(HudiError, match="Unable to acquire lock"):
            java_writes(hudi_0_15, table, 90_000, hoodie__write__lock__filesystem__path=str(folder))
    assert not list(folder.glob("lock"))


# -- heartbeats -------------------------------------------------------------------------------------


@contextmanager
def _inflight(table: HudiTable, *, beating: bool) -> Iterator[str]:
    """An unfinished delta commit of ours, with or without a heartbeat."""
    instant = table._table.publisher.new_instant(table.state().timeline)
    begun = CommitMetadata("UPSERT", (), {WRITER: "hudi-assets"})
    if not beating:
        table._table.publisher.begin_write(instant, begun)
        yield instant
        return
    with heartbeats(table).beating(instant):
        table._table.publisher.begin_write(instant, begun)
        yield instant


def test_a_lazy_java_writer_leaves_our_live_write_alone(table: HudiTable, hudi_0_15: Hudi) -> None:
    with _inflight(table, beating=True) as instant:
        time.sleep(2.5)  # longer than Java tolerates: only a heartbeat that is refreshed is alive then
        java_writes(hudi_0_15, table, 90_000)
        java_writes(hudi_0_15, table, 90_001)
        assert files(table, instant) == {"deltacommit.requested", "deltacommit.inflight"}
        assert heartbeats(table).is_alive(instant)
    assert not heartbeats(table).is_alive(instant)


@pytest.mark.slow
def test_a_lazy_java_writer_takes_back_a_write_without_heartbeat(table: HudiTable, hudi_0_15: Hudi) -> None:
    with _inflight(table, beating=False) as instant:
        java_writes(hudi_0_15, table, 90_000)
        java_writes(hudi_0_15, table, 90_001)
        assert files(table, instant) == set()
        assert any(name.endswith(".rollback") for name in _names(table))


def test_we_see_java_alive(table: HudiTable, hudi_0_15: Hudi, session: LocalSession) -> None:
    """Java waits for the lock, heartbeat going: alive to us, and we neither write beside it nor take it back."""
    with _java_waiting(table, hudi_0_15) as (instant, _):
        assert heartbeats(table).is_alive(instant)
        loser = HudiTable.open(table.path, settings={WRITERS: "stopped"})
        assert files(table, instant) == {"deltacommit.requested"}
        assert loser.stats().inflight_writes == (instant,)


# -- a Java writer that is at work while a compaction is planned --------------------------------------


@contextmanager
def _java_waiting(
    table: HudiTable, hudi: Hudi, before: Callable[[], None] = lambda: None
) -> Iterator[tuple[str, Future[None]]]:
    """A Java write that has begun and read the timeline, and waits for the lock, which we hold in the block."""
    with ThreadPoolExecutor(1) as pool:
        with write_lock(table._table.storage, table.config, wait_s=1):
            before()
            known = _names(table)
            options = {key.replace(".", "__"): value for key, value in PATIENT.items()}
            future = pool.submit(java_writes, hudi, table, 90_000, **options)
            while not (new := {n for n in _names(table) - known if n.endswith(".deltacommit.requested")}):
                assert not future.done(), future.exception()
                time.sleep(0.01)
            time.sleep(1.5)  # it opens the table meanwhile; nothing shows that it has
            yield new.pop().partition(".")[0], future
        future.exception()


def _names(table: HudiTable) -> set[str]:
    return {file.name for file in Path(table.path, ".hoodie").iterdir()}


def _publish(table: HudiTable, plan: Plan, guard: str) -> None:
    table._table.publisher.publish_plan(plan, guard, table.config.carry_over, lambda: None)


def _chosen(table: HudiTable) -> tuple[Plan, str]:
    state = table.state()
    finished = Timeline(tuple(i for i in state.timeline.instants if i.is_completed))
    plan, guard = table._planner()._choose(replace(state, timeline=finished), 20_000, None)
    assert isinstance(plan, Plan)
    return plan, guard


def test_java_of_an_earlier_instant_cannot_commit_beside_a_new_plan(
    table: HudiTable, hudi_0_15: Hudi, session: LocalSession
) -> None:
    before = rows_of(table)
    with _java_waiting(table, hudi_0_15) as (instant, future):
        plan, guard = _chosen(table)
        assert plan.instant > instant
        table._table.publisher.wait_for(plan.instant)
        _publish(table, plan, guard)
    assert "Cannot resolve conflicts" in str(future.exception())
    table.execute_compaction(session, plan.instant)
    assert rows_of(table) == before


def test_java_of_a_later_instant_that_has_not_seen_the_plan_loses_nothing(
    table: HudiTable, hudi_0_15: Hudi, session: LocalSession
) -> None:
    """Its conflict check lets it commit into the old slice: the plan is not executed then."""
    chosen: list[tuple[Plan, str]] = []
    with _java_waiting(table, hudi_0_15, lambda: chosen.append(_chosen(table))) as (instant, future):
        plan, guard = chosen[0]
        assert plan.instant < instant
        _publish(table, plan, guard)
    assert future.exception() is None
    assert rows_of(table)["k1"] == (90_000, 90_000)
    with pytest.raises(Conflict, match="landed in the old slice"):
        table.execute_compaction(session, plan.instant)
    table.unschedule(plan.instant)
    again = table.plan_compaction(threshold=20_000)
    assert isinstance(again, Plan)
    table.execute_compaction(session, again.instant)
    assert rows_of(table)["k1"] == (90_000, 90_000)
    shown = {row["id"]: (row["ts"], row["v"]) for row in hudi_0_15.read(table.path).to_pylist()}
    assert shown == rows_of(table)
