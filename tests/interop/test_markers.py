"""Unfinished work with markers, both ways: what Apache Hudi leaves when it is killed right before a commit is taken
back by our engine, timeline-server markers included; what ours leaves is taken back, and executed, by Hudi."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_assets.engine import HudiTable
from hudi_assets.engine.actions.compaction.executor import CompactionExecutor
from hudi_assets.engine.model import Plan
from hudi_assets.engine.storage import LocalStorage
from hudi_assets.engine.table.settings.config import WRITERS
from hudi_assets.engine.timeline.markers import TEMP, all_marked_files
from hudi_assets.engine.transaction.heartbeat import INTERVAL, Heartbeats
from hudi_assets.engine.transaction.lock import write_lock
from hudi_assets.engine.transaction.publish import Publisher
from scripts.hudi_client import Hudi, HudiError
from tests.interop.test_concurrency import JAVA
from tests.races.player import SCHEMA, rows_of
from tests.tables.local_session import LocalSession

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(900)]

SERVER = {"hoodie.write.markers.type": "TIMELINE_SERVER_BASED", "hoodie.embed.timeline.server": "true"}
PATIENT = {"hoodie.write.lock.num_retries": "200", "hoodie.write.lock.client.num_retries": "20"}
SETTINGS = {
    WRITERS: "stopped",
    "hoodie.payload.event.time.field": "ts",
    "hudi_assets.event.time.unit": "ms",
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": "1",
    INTERVAL: JAVA[INTERVAL],
}
CASES = [("0.15.0", "6"), ("1.2.0", "9")]


def options(version: str, **more: str) -> dict[str, str]:
    payload = {"hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload"}
    return {**JAVA, **payload, **SERVER, **PATIENT, "hoodie.write.table.version": version, **more}


def rows(ts: int) -> pa.Table:
    return pa.Table.from_pylist([{"id": f"k{n}", "ts": ts + n, "v": ts} for n in range(4)], SCHEMA)


def values(answer: pa.Table) -> dict[str, tuple[int, int]]:
    found = [(row["id"], (row["ts"], row["v"])) for row in answer.to_pylist()]
    assert len(found) == len(dict(found)), "a key comes twice"
    return dict(found)


def written(hudi: Hudi, path: Path, version: str) -> HudiTable:
    for ts in (1_000, 50_000):
        hudi.write(path, rows(ts), options(version))
    table = HudiTable.open(str(path), settings=SETTINGS)
    assert table.config.table_version == int(version)
    return table


def marks(path: Path, folder: str) -> list[Path]:
    return [file for file in Path(path, TEMP, folder).glob("MARKERS[0-9]*") if file.stat().st_size]


def attempts(path: Path) -> set[str]:
    return {folder.name for folder in Path(path, TEMP).glob("*")}


@contextmanager
def killed_before_its_commit(hudi: Hudi, table: HudiTable, work: Callable[[], object]) -> Iterator[str]:
    """Java has written its files and waits for the table's lock when its process is killed; its instant."""
    path = Path(table.path)
    known = attempts(path)
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(work)
        while not (new := [name for name in attempts(path) - known if marks(path, name)]):
            assert not future.done(), future.exception()
            time.sleep(0.002)
        locked = HudiTable.open(table.path, settings={**SETTINGS, WRITERS: "locked"})
        with write_lock(locked._table.storage, locked.config, wait_s=30, action="holds it for a test"):
            listed = all_marked_files(table._table.storage, new[0])
            deadline = time.monotonic() + 20
            while time.monotonic() < deadline and not all((path / name).exists() for name in listed):
                time.sleep(0.02)
            time.sleep(3)  # to the end of its files: it shows nothing more until it has the lock
            assert not future.done(), "it committed before the lock was taken"
            for process in (*_children(hudi._process.pid), hudi._process.pid):
                os.kill(process, signal.SIGKILL)
            assert isinstance(future.exception(), HudiError)
    beats = Heartbeats.of(table._table.storage, table.config, table._table.publisher.now_ms)
    while beats.is_alive(new[0]):  # two seconds after its last beat it is dead to everybody
        time.sleep(0.1)
    yield new[0]


def _children(pid: int) -> list[int]:
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(status.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if parent == pid:
            child = int(status.parent.name)
            found += [*_children(child), child]
    return found


@pytest.fixture
def mortal(request: pytest.FixtureRequest) -> Iterator[Hudi]:
    """A Hudi of a test's own, which may be killed."""
    with Hudi(request.param) as hudi:
        yield hudi


@pytest.fixture
def survivor(request: pytest.FixtureRequest) -> Hudi:
    hudi: Hudi = request.getfixturevalue({"0.15.0": "hudi_0_15", "1.2.0": "hudi_1_2"}[request.param])
    return hudi


def each_release(test: Callable[..., None]) -> Callable[..., None]:
    cases = [pytest.param(r, v, r, id=f"{r}-v{v}") for r, v in CASES]
    return pytest.mark.parametrize(("mortal", "version", "survivor"), cases, indirect=["mortal", "survivor"])(test)


@each_release
def test_we_take_back_a_killed_write_by_its_timeline_server_markers(
    mortal: Hudi, version: str, survivor: Hudi, path: Path
) -> None:
    table = written(mortal, path, version)
    before = rows_of(table)
    work = lambda: mortal.write(path, rows(90_000), options(version))  # noqa: E731
    with killed_before_its_commit(mortal, table, work) as instant:
        assert (path / TEMP / instant / "MARKERS.type").exists()
        named = all_marked_files(table._table.storage, instant)
        assert named
        assert rows_of(table) == before
        result = table.rollback(instant)
        assert result.files_deleted + result.rollback_blocks > 0
        assert not any((path / name).exists() for name in named if instant in name)
        assert not (path / TEMP / instant).exists()
        assert rows_of(table) == before
        assert values(survivor.read(path)) == before
        survivor.write(path, rows(95_000), options(version))
        assert values(survivor.read(path)) == rows_of(table) == values(rows(95_000))


@each_release
def test_we_execute_what_a_killed_compaction_of_hudi_had_begun(
    mortal: Hudi, version: str, survivor: Hudi, path: Path
) -> None:
    """Hudi's plan, begun by Hudi: its base files are left, named by timeline-server markers."""
    table = written(mortal, path, version)
    before = rows_of(table)
    work = lambda: mortal.compaction(path, "run", **{k: v for k, v in options(version).items() if v})  # noqa: E731
    with killed_before_its_commit(mortal, table, work) as instant:
        left = [name for name in all_marked_files(table._table.storage, instant) if (path / name).exists()]
        assert left, "no base file was there yet: this tests too little"
        assert rows_of(table) == before
        result = table.rollback(instant)
        assert result.still_planned
        assert not any((path / name).exists() for name in left)
        assert values(survivor.read(path)) == before
        survivor.compaction(path, "execute", **{k: v for k, v in options(version).items() if v})
        assert values(survivor.read(path)) == rows_of(table) == before
        assert values(survivor.read(path, "read_optimized")) == before


# -- the other way round ------------------------------------------------------------------------------


class Died(BaseException):
    """Stands for the end of a process: nobody catches it."""


def dies(*args: object, **more: object) -> None:
    raise Died


@pytest.mark.parametrize(("survivor", "version"), CASES, indirect=["survivor"])
def test_hudi_takes_back_a_dead_write_of_ours(
    survivor: Hudi, version: str, path: Path, session: LocalSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours has direct markers; Hudi is set to timeline-server markers."""
    table = written(survivor, path, version)
    before = rows_of(table)
    with monkeypatch.context() as patch:
        for method in ("commit_write", "withdraw_write"):
            patch.setattr(Publisher, method, dies)
        with pytest.raises(Died):
            table.upsert(session, session.rows(rows(90_000).to_pylist(), SCHEMA))
    (instant,) = table.stats().inflight_writes
    left = [name for name in all_marked_files(table._table.storage, instant) if (path / name).exists()]
    assert left
    for ts in (1, 2):
        survivor.write(path, rows(ts), options(version))
    assert table.stats().inflight_writes == ()
    assert rows_of(table) == before == values(survivor.read(path))


@pytest.mark.parametrize(("survivor", "version"), [("1.2.0", "9")], indirect=["survivor"])
def test_hudi_executes_what_our_dead_execution_had_begun(
    survivor: Hudi, version: str, path: Path, session: LocalSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = written(survivor, path, version)
    before = rows_of(table)
    plan = table.plan_compaction(threshold=100_000)
    assert isinstance(plan, Plan)
    with monkeypatch.context() as patch:
        patch.setattr(CompactionExecutor, "_commit", dies)
        with pytest.raises(Died):
            table.execute_compaction(session, plan.instant)
    left = list(path.glob(f"*_{plan.instant}.parquet"))
    assert len(left) == 1
    survivor.compaction(path, "execute", **{k: v for k, v in options(version).items() if v})
    now = list(path.glob(f"*_{plan.instant}.parquet"))
    assert len(now) == 1
    assert now != left
    assert rows_of(table) == before == values(survivor.read(path))


def test_markers_of_hudi_are_read_as_hudi_reads_them(path: Path) -> None:
    """One line per marker in MARKERS0, …; `MARKERS.type` is none of them."""
    folder = path / TEMP / "20260101000000000"
    folder.mkdir(parents=True)
    (folder / "MARKERS.type").write_text("TIMELINE_SERVER_BASED")
    (folder / "MARKERS0").write_text("p=a/f1_0-1-1_20260101000000000.parquet.marker.CREATE\n")
    (folder / "MARKERS1").write_text(
        "../up.parquet.marker.CREATE\np=b/f2_0-1-1_20260101000000000.parquet.marker.MERGE\n"
    )
    names = all_marked_files(LocalStorage(str(path)), "20260101000000000")
    assert sorted(names) == ["p=a/f1_0-1-1_20260101000000000.parquet", "p=b/f2_0-1-1_20260101000000000.parquet"]
