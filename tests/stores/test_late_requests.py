"""Requests that arrive after their sender's lease: deletes, copies, the archive, and how long a request may last."""

from __future__ import annotations

import re
from typing import Any

import obstore
import pytest
from obstore.exceptions import UnauthenticatedError

from hudi_assets.engine.actions.compaction.executor import CompactionExecutor
from hudi_assets.engine.errors import Conflict, HudiAssetsError, LockLost
from hudi_assets.engine.model import BaseFile
from hudi_assets.engine.storage import s3, write_over
from hudi_assets.engine.storage.s3 import S3Storage
from hudi_assets.engine.table.layout.names import token_of_once
from hudi_assets.engine.table.metadata.partitions import TABLE_PROPERTIES
from hudi_assets.engine.table.metadata.policy import switch_off
from hudi_assets.engine.timeline.archive.layers import add_instants
from hudi_assets.engine.timeline.archive.v8 import VERSION_FILE, ArchivedInstant, archived_instants, manifest_path
from hudi_assets.engine.transaction.heartbeat import FOLDER
from hudi_assets.engine.transaction.lease import HUDIS_FILE, Lease, LeaseTimes
from hudi_assets.engine.transaction.lock import WRITE
from tests.crash.faulty import Crash
from tests.crash.tables import planned, snapshot
from tests.stores.memory import MemoryStorage
from tests.stores.test_late_commits import Bucket, bucket
from tests.stores.test_leases import Clock, held_for, taken
from tests.tables.local_session import LocalSession

__all__ = ["bucket"]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def dead_execution(monkeypatch: pytest.MonkeyPatch, bucket: Bucket, session: LocalSession, instant: str) -> None:
    """It dies when its base files have their names."""
    with monkeypatch.context() as patch:
        patch.setattr(CompactionExecutor, "_commit", lambda *_: (_ for _ in ()).throw(Crash()))
        with pytest.raises(Crash):
            bucket.open().execute_compaction(session, instant)


# ---------------------------------------------------------------------------------------------------- names


def test_tokens_are_three_of_javas_numbers() -> None:
    tokens = [token_of_once(7) for _ in range(1_000)]
    assert len(set(tokens)) == 1_000
    for token in tokens:
        match = re.fullmatch(r"(\d+)-(\d+)-(\d+)", token)
        assert match
        assert match[1] == "7"
        assert all(int(number) < 2**31 for number in match.groups())


def test_a_late_delete_of_what_a_dead_execution_left_deletes_nothing_of_the_next(
    monkeypatch: pytest.MonkeyPatch, bucket: Bucket, session: LocalSession
) -> None:
    """Each execution counts its tasks from the start: the tests' sessions count as two processes do."""
    rows, plan = snapshot(bucket.open()), planned(bucket.open())
    dead_execution(monkeypatch, bucket, session, plan.instant)
    delete, left = obstore.delete, [1]

    def late(store: Any, keys: Any) -> None:
        if isinstance(keys, str) and keys.endswith(".parquet") and left:
            left.pop()
            fences = list(bucket.store._fences)
            bucket.later()
            bucket.open().execute_compaction(session, plan.instant)
            bucket.store._fences[:] = fences
        delete(store, keys)

    bucket.later()
    monkeypatch.setattr(obstore, "delete", late)
    with pytest.raises(LockLost):
        bucket.open().execute_compaction(session, plan.instant)
    assert not left
    assert snapshot(bucket.open()) == rows
    assert bucket.open().validate() == ()


def test_no_execution_makes_a_name_again(
    monkeypatch: pytest.MonkeyPatch, bucket: Bucket, session: LocalSession
) -> None:
    plan = planned(bucket.open())
    names: list[set[str]] = []
    for _ in range(2):
        dead_execution(monkeypatch, bucket, session, plan.instant)
        files = bucket.open().state().data_files.values()
        listed = {file.path for found in files for file in found if isinstance(file, BaseFile)}
        names.append({path for path in listed if plan.instant in path})
        bucket.later()
    assert names[0]
    assert not names[0] & names[1]


# --------------------------------------------------------------------------------------------------- copies


def test_a_name_that_was_given_too_late_goes_again(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    storage, copy = MemoryStorage(), obstore.copy
    storage.replace("staged", b"x")

    def late(*asked: Any, **options: Any) -> None:
        copy(*asked, **options)
        clock.wait(300_501)
        taken(storage)

    monkeypatch.setattr(obstore, "copy", late)
    with held_for(storage, WRITE), pytest.raises(LockLost):
        storage.publish("staged", "name")
    assert not storage.exists("name")


def test_what_was_replaced_too_late_is_not_acknowledged(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    storage, put = MemoryStorage(), obstore.put

    def late(store: Any, key: str, *asked: Any, **options: Any) -> Any:
        done = put(store, key, *asked, **options)
        if key.endswith("/f"):
            clock.wait(300_501)
            taken(storage)
        return done

    monkeypatch.setattr(obstore, "put", late)
    with held_for(storage, WRITE), pytest.raises(LockLost):
        storage.replace("f", b"x")


# ------------------------------------------------------------------------------------------ what is overwritten


def instants(*numbers: int) -> list[ArchivedInstant]:
    return [ArchivedInstant(f"2026010100000000{n}", f"2026010100000000{n}", "clean", b"", None) for n in numbers]


@pytest.mark.parametrize("name", ["parquet", "manifest_3", "_version_"])
def test_a_late_archive_overwrites_nothing(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Another archives meanwhile: all that it has archived stays."""
    storage = MemoryStorage()
    add_instants(storage, instants(1))
    add_instants(storage, instants(2))
    # A crash left a manifest.
    storage.replace(manifest_path(3), b'{"files": []}')
    put, left = MemoryStorage._put, [1]

    def late(self: MemoryStorage, path: str, *rest: Any) -> str:
        if path.endswith(name) and left:
            left.pop()
            add_instants(storage, instants(3, 4))
            add_instants(storage, instants(5))
        return put(self, path, *rest)

    monkeypatch.setattr(MemoryStorage, "_put", late)
    with pytest.raises(Conflict):
        add_instants(storage, instants(3, 4))
    assert not left
    assert [i.timestamp[-1] for i in archived_instants(storage)] == list("12345")
    assert storage.read(VERSION_FILE) == b"4"


def test_what_a_crash_left_is_written_over() -> None:
    storage = MemoryStorage()
    storage.create("f", b"left")
    write_over(storage, "f", b"new")
    assert storage.read("f") == b"new"


def test_what_another_has_written_over_what_a_crash_left_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    storage, read = MemoryStorage(), MemoryStorage.read_with_version
    storage.create("f", b"left")

    def stopped(self: MemoryStorage, path: str) -> tuple[bytes, str]:
        found = read(self, path)
        self.replace(path, b"another's")
        return found

    monkeypatch.setattr(MemoryStorage, "read_with_version", stopped)
    with pytest.raises(Conflict):
        write_over(storage, "f", b"new")
    assert storage.read("f") == b"another's"


def test_a_late_change_of_the_tables_properties_overwrites_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    storage, put = MemoryStorage(), MemoryStorage._put
    storage.create(TABLE_PROPERTIES, b"hoodie.table.metadata.partitions=column_stats,files\n")

    def late(self: MemoryStorage, path: str, *rest: Any) -> str:
        storage.replace(TABLE_PROPERTIES, b"another's")
        return put(self, path, *rest)

    monkeypatch.setattr(MemoryStorage, "_put", late)
    with pytest.raises(Conflict):
        switch_off(storage, ("column_stats",))
    assert storage.read(TABLE_PROPERTIES) == b"another's"


# -------------------------------------------------------------------------------------------------- how long


@pytest.mark.parametrize("validity_s", [10, 60, 300, 3_600])
def test_no_request_outlasts_half_of_its_lease(monkeypatch: pytest.MonkeyPatch, validity_s: int) -> None:
    """A copy is three requests, each with its tries."""
    asked: list[dict[str, Any]] = []

    def store(bucket: str, **given: Any) -> object:
        asked.append(given)
        return object()

    monkeypatch.setattr(s3, "S3Store", store)
    storage = S3Storage("s3://bucket/table", {"access_key_id": "a", "secret_access_key": "b"})
    free = storage._store
    with storage.fenced(Lease(storage, HUDIS_FILE, LeaseTimes(validity_s * 1000, validity_s * 100))):
        assert storage._store is storage._store is not free
    assert storage._store is free
    unbounded, bounded = map(longest_s, asked)
    assert 3 * bounded < validity_s / 2
    assert bounded > min(validity_s / 8, unbounded) * 0.9
    assert unbounded == 155


def longest_s(given: dict[str, Any]) -> float:
    """The library begins no try after the retries' time, but it may have begun to wait before it."""
    retries = given["retry_config"]
    one, tries, pause = given["client_options"]["timeout"], retries["retry_timeout"], retries["backoff"]["max_backoff"]
    return float((one + tries + pause).total_seconds())


# -------------------------------------------------------------------------------------------------- who is alive


def test_an_execution_whose_heartbeat_is_young_is_not_taken_over(
    monkeypatch: pytest.MonkeyPatch, bucket: Bucket, session: LocalSession
) -> None:
    """Its lease has ended by a wrong clock."""
    plan = planned(bucket.open())
    dead_execution(monkeypatch, bucket, session, plan.instant)
    bucket.store.touch(f"{FOLDER}/{plan.instant}")
    with pytest.raises(Conflict, match="its last sign of life is young"):
        bucket.open().execute_compaction(session, plan.instant)
    bucket.later()
    bucket.open().execute_compaction(session, plan.instant)


def test_the_locks_are_renewed_right_before_a_commit(
    monkeypatch: pytest.MonkeyPatch, bucket: Bucket, session: LocalSession
) -> None:
    plan, put = planned(bucket.open()), MemoryStorage._put
    done: list[str] = []

    def seen(self: MemoryStorage, path: str, *rest: Any) -> str:
        done.append(path)
        return put(self, path, *rest)

    monkeypatch.setattr(MemoryStorage, "_put", seen)
    monkeypatch.setattr(Lease, "renew_soon", lambda _: done.append("renewed"))
    bucket.open().execute_compaction(session, plan.instant)
    (commit,) = (n for n, path in enumerate(done) if path.endswith(".commit"))
    assert done[commit - 1] == "renewed"


def test_credentials_that_fail_are_told_as_that(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise UnauthenticatedError("a secret token that has expired")

    monkeypatch.setattr(obstore, "put", fail)
    with pytest.raises((PermissionError, HudiAssetsError), match="no credentials") as failed:
        MemoryStorage().create("f", b"")
    assert "secret" not in str(failed.value)
