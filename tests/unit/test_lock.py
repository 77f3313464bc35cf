"""Locks and heartbeats: who gets them, what the loser hears, when a dead holder's is taken."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hudi_assets.engine import HudiTable
from hudi_assets.engine.errors import Conflict, InvalidInput, UnsupportedTable
from hudi_assets.engine.storage import SCRATCH, LocalStorage
from hudi_assets.engine.table.settings.config import WRITERS, TableConfig
from hudi_assets.engine.transaction.file_lock import LOCK_EXPIRE, LOCK_PATH
from hudi_assets.engine.transaction.heartbeat import FOLDER, INTERVAL, MISSES, Heartbeats
from hudi_assets.engine.transaction.lock import EXECUTE, WRITE, table_lock, write_lock
from hudi_assets.engine.transaction.lock_providers import FILE_SYSTEM, LOCK_PROVIDER
from tests.races.player import create

JAVA_LOCK = {
    "lockCreateTime": "2026-11-21 06:00:00.000",
    "lockThreadName": "pool-1-thread-1",
    "lockStacksInfo": ["java.lang.Thread.getStackTrace(Thread.java:1610)"],
}
HOLDER = """
import sys
from hudi_assets.engine.transaction.lock import table_lock
from hudi_assets.engine.storage import LocalStorage
from hudi_assets.engine.table.settings.config import read_config
storage = LocalStorage(sys.argv[1])
with table_lock(storage, sys.argv[2], config=read_config(storage), wait_s=5, action="holds it for a test"):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def table(tmp_path: Path) -> HudiTable:
    return create(tmp_path / "t")


@pytest.fixture
def storage(table: HudiTable) -> LocalStorage:
    return LocalStorage(table.path)


def locked(table: HudiTable, **settings: str) -> TableConfig:
    given = {key.replace("__", "."): value for key, value in settings.items()}
    return HudiTable.open(table.path, settings={WRITERS: "locked", **given}).config


@contextmanager
def holder(table: HudiTable, name: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", HOLDER, table.path, name]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.slow
@pytest.mark.parametrize("name", [WRITE, EXECUTE])
def test_the_loser_hears_who_holds_a_lock_and_what_for(table: HudiTable, storage: LocalStorage, name: str) -> None:
    again = table_lock(storage, name, config=table.config, wait_s=0)
    with holder(table, name) as process, pytest.raises(Conflict) as lost, again:
        pass
    said = str(lost.value)
    for word in (name, f"process {process.pid}", os.uname().nodename, "holds it for a test", "since 20"):
        assert word in said


def test_a_killed_holder_holds_nothing(table: HudiTable, storage: LocalStorage) -> None:
    with holder(table, WRITE) as process:
        process.kill()
        process.wait()
        with table_lock(storage, WRITE, config=table.config, wait_s=5, action="works"):
            said = json.loads(storage.read(".hoodie/.aux/hudi_assets/write.lock.json"))
            assert (said["process"], said["action"]) == (os.getpid(), "works")
    assert not storage.exists(".hoodie/.aux/hudi_assets/write.lock.json")


def test_hudis_lock_file_is_there_while_it_is_held(table: HudiTable, storage: LocalStorage) -> None:
    with write_lock(storage, locked(table), wait_s=0, action="cleans") as held:
        said = json.loads(storage.read(".hoodie/lock"))
        assert set(JAVA_LOCK) <= set(said)
        assert "hudi-assets cleans" in said["lockThreadName"]
        held.check()
    assert not storage.exists(".hoodie/lock")


def test_without_other_writers_there_is_no_lock_file(table: HudiTable, storage: LocalStorage) -> None:
    with write_lock(storage, table.config, wait_s=0) as held:
        assert not storage.exists(".hoodie/lock")
        held.check()


@pytest.mark.parametrize("content", [json.dumps(JAVA_LOCK).encode(), b"", b"\xff{", b"[1]"])
def test_javas_lock_is_waited_for_and_named(table: HudiTable, storage: LocalStorage, content: bytes) -> None:
    storage.create(".hoodie/lock", content)
    with pytest.raises(Conflict, match="Another engine holds Hudi's lock") as lost, _taken(storage, locked(table)):
        pass
    assert storage.read(".hoodie/lock") == content
    assert ("pool-1-thread-1 since 2026-11-21" in str(lost.value)) == (b"pool-1" in content)


def _taken(storage: LocalStorage, config: TableConfig):  # type: ignore[no-untyped-def]
    return write_lock(storage, config, wait_s=0)


def _age(table: HudiTable, path: str, seconds: float) -> None:
    then = time.time() - seconds
    os.utime(Path(table.path, path), (then, then))


def test_a_lock_that_expired_is_taken(table: HudiTable, storage: LocalStorage) -> None:
    storage.create(".hoodie/lock", json.dumps(JAVA_LOCK).encode())
    config = locked(table, **{LOCK_EXPIRE: "2"})
    _age(table, ".hoodie/lock", 119)
    with pytest.raises(Conflict), _taken(storage, config):
        pass
    _age(table, ".hoodie/lock", 121)
    with _taken(storage, config):
        assert b"hudi-assets" in storage.read(".hoodie/lock")
    _age_lock = json.dumps(JAVA_LOCK).encode()
    storage.create(".hoodie/lock", _age_lock)
    _age(table, ".hoodie/lock", 10**6)
    with pytest.raises(Conflict), _taken(storage, locked(table)):
        pass  # by default it never expires


def test_what_a_dead_process_of_ours_left_is_taken(table: HudiTable, storage: LocalStorage) -> None:
    with write_lock(storage, locked(table), wait_s=0):
        left = storage.read(".hoodie/lock")
    storage.create(".hoodie/lock", left)
    with _taken(storage, locked(table)):
        pass
    # Another host's, or another table's in a shared folder, may be alive.
    for other in ({"host": "elsewhere"}, {"table": "/another"}):
        storage.create(".hoodie/lock", json.dumps({**json.loads(left), **other}).encode())
        with pytest.raises(Conflict), _taken(storage, locked(table)):
            pass
        storage.delete(".hoodie/lock")


def test_a_lock_that_was_taken_from_us_is_noticed_and_left_alone(table: HudiTable, storage: LocalStorage) -> None:
    with write_lock(storage, locked(table), wait_s=0) as held:
        storage.replace(".hoodie/lock", json.dumps(JAVA_LOCK).encode())
        with pytest.raises(Conflict, match="was taken from this process"):
            held.check()
    assert json.loads(storage.read(".hoodie/lock")) == JAVA_LOCK


def test_a_lock_in_a_folder_of_its_own(table: HudiTable, storage: LocalStorage, tmp_path: Path) -> None:
    folder = tmp_path / "with space"
    for text in (str(folder), folder.as_uri(), f"{folder}/"):
        folder.mkdir(exist_ok=True)
        with write_lock(storage, locked(table, **{LOCK_PATH: text}), wait_s=0):
            assert [file.name for file in folder.iterdir()] == ["lock"]
            assert not storage.exists(".hoodie/lock")
        assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("key", "value", "error"),
    [
        (LOCK_PATH, "hdfs://n/locks", UnsupportedTable),
        (LOCK_PATH, "locks", InvalidInput),
        (LOCK_EXPIRE, "soon", InvalidInput),
        (LOCK_EXPIRE, "-1", InvalidInput),
        (LOCK_EXPIRE, "9" * 5000, InvalidInput),
        (LOCK_PROVIDER, "org.apache.hudi.client.transaction.lock.StorageBasedLockProvider", UnsupportedTable),
        (LOCK_PROVIDER, "org.apache.hudi.aws.transaction.lock.DynamoDBBasedLockProvider", UnsupportedTable),
        (LOCK_PROVIDER, "com.example.OurLockProvider", UnsupportedTable),
    ],
)
def test_settings_that_make_no_lock_are_refused(
    table: HudiTable, storage: LocalStorage, key: str, value: str, error: type[Exception]
) -> None:
    with pytest.raises(error, match=key.replace(".", r"\.")), _taken(storage, locked(table, **{key: value})):
        pass


def test_the_refusal_of_a_lock_provider_names_it_and_what_to_do(table: HudiTable, storage: LocalStorage) -> None:
    provider = "org.apache.hudi.hive.transaction.lock.HiveMetastoreBasedLockProvider"
    with pytest.raises(UnsupportedTable) as refused, _taken(storage, locked(table, **{LOCK_PROVIDER: provider})):
        pass
    assert provider in refused.value.what
    assert "Hive metastore" in refused.value.what
    assert FILE_SYSTEM in str(refused.value.hint)
    assert not storage.exists(".hoodie/lock")


@pytest.mark.parametrize("writers", ["stopped", "locked"])
def test_the_provider_counts_only_where_the_lock_is_shared(
    table: HudiTable, storage: LocalStorage, writers: str
) -> None:
    given = {LOCK_PROVIDER: FILE_SYSTEM if writers == "locked" else "com.example.OurLockProvider"}
    config = HudiTable.open(table.path, settings={WRITERS: writers, **given}).config
    with write_lock(storage, config, wait_s=0):
        assert storage.exists(".hoodie/lock") == (writers == "locked")


# -- heartbeats -------------------------------------------------------------------------------------


def beats(table: HudiTable, now_ms: int | None = None, **settings: str) -> Heartbeats:
    config = HudiTable.open(table.path, settings={k.replace("__", "."): v for k, v in settings.items()}).config
    clock = (lambda: time.time_ns() // 1_000_000) if now_ms is None else (lambda: now_ms)
    return Heartbeats.of(LocalStorage(table.path), config, clock)


INSTANT = "20261121060000000"


def test_a_heartbeat_is_an_empty_file_while_work_is_inflight(table: HudiTable, storage: LocalStorage) -> None:
    heartbeats = beats(table)
    with heartbeats.beating(INSTANT) as beat:
        assert storage.read(f"{FOLDER}/{INSTANT}") == b""
        assert heartbeats.is_alive(INSTANT)
        assert list(heartbeats.last()) == [INSTANT]
        beat.check()
    assert not heartbeats.is_alive(INSTANT)
    assert heartbeats.last() == {}


def test_a_heartbeat_dies_after_interval_times_misses(table: HudiTable, storage: LocalStorage) -> None:
    storage.create(f"{FOLDER}/{INSTANT}", b"")
    modified = storage.modified_ms(f"{FOLDER}/{INSTANT}")
    assert modified is not None
    for settings, tolerable in (({}, 120_000), ({INTERVAL: "1000", MISSES: "3"}, 3_000)):
        assert beats(table, modified + tolerable, **settings).is_alive(INSTANT)
        assert not beats(table, modified + tolerable + 1, **settings).is_alive(INSTANT)


def test_each_beat_makes_the_file_young(table: HudiTable, storage: LocalStorage) -> None:
    heartbeats = beats(table)
    with heartbeats.beating(INSTANT) as beat:
        _age(table, f"{FOLDER}/{INSTANT}", 600)
        assert not heartbeats.is_alive(INSTANT)
        beat.now()
        assert heartbeats.is_alive(INSTANT)


def test_missed_beats_stop_a_commit(table: HudiTable) -> None:
    heartbeats = beats(table)
    with heartbeats.beating(INSTANT) as beat:
        beat._last -= 121
        with pytest.raises(Conflict, match="No heartbeat of 20261121060000000 was given for 121 s"):
            beat.check()


def test_what_a_crash_left_is_forgotten_and_nothing_else(table: HudiTable, storage: LocalStorage) -> None:
    done, dead, unfinished, starting = (str(20261121060000000 + n) for n in range(4))
    for instant in (done, dead, unfinished, starting):
        storage.create(f"{FOLDER}/{instant}", b"")
    for instant in (dead, unfinished):
        _age(table, f"{FOLDER}/{instant}", 600)
    assert beats(table).forget_dead(frozenset({done}), frozenset({unfinished})) == (done, dead)
    assert set(beats(table).last()) == {unfinished, starting}


@pytest.mark.parametrize("settings", [{INTERVAL: "999"}, {INTERVAL: "x"}, {MISSES: "0"}, {MISSES: "9" * 5000}])
def test_settings_that_make_no_heartbeat_are_refused(table: HudiTable, settings: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="heartbeat"):
        beats(table, **settings)


def test_a_second_beat_of_the_thread(table: HudiTable) -> None:
    """The thread beats by itself: wait for the second beat, with an interval of a hundredth of a second."""
    heartbeats = beats(table)
    fast = replace(heartbeats, settings=replace(heartbeats.settings, interval_ms=10))
    with fast.beating(INSTANT) as beat:
        first = beat._last
        while beat._last == first:
            time.sleep(0.005)
        assert fast.is_alive(INSTANT)


def test_what_a_killed_holder_left_of_its_name_goes_after_a_day(table: HudiTable, storage: LocalStorage) -> None:
    folder = Path(storage.uri(SCRATCH))
    for hours in (25, 23):
        killed: Any = storage.open_new(f"{SCRATCH}/{WRITE}.lock.json")
        killed.raw.close()
        then = time.time() - hours * 3600
        (made,) = (file for file in folder.glob(".*.tmp") if file.stat().st_mtime > time.time() - 60)
        os.utime(made, (then, then))
    (removed,) = (sentence for sentence in table.recover() if "unfinished file" in sentence)
    (left,) = folder.glob(".*.tmp")
    assert left.name not in removed
    assert left.stat().st_mtime > time.time() - 24 * 3600
