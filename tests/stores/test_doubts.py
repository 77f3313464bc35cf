"""What may arrive at the store yet, or was not asked about: the lock of its holder is not given on before."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import obstore
import pytest
from obstore.exceptions import AlreadyExistsError, GenericError

from hudi_assets.engine.actions.compaction.hudi_executor import HudiExecutor
from hudi_assets.engine.errors import Conflict, InvalidInput, UnsupportedTable
from hudi_assets.engine.storage.remote import Unanswered
from hudi_assets.engine.transaction.lease import HUDIS_FILE, OLD_RENEWAL, RENEWAL, VALIDITY, LeaseTimes, LockFile
from hudi_assets.engine.transaction.lock import WRITE
from hudi_assets.engine.transaction.open_table import OpenTable
from tests.stores.memory import MemoryStorage
from tests.stores.test_leases import Clock, config, held_for, taken


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def is_released(storage: MemoryStorage) -> bool:
    return LockFile.decode(storage.read(HUDIS_FILE), "").expired


@pytest.mark.parametrize("call", ["create", "replace", "copy", "delete", "delete_tree"])
def test_a_lock_is_not_released_while_a_request_may_arrive_yet(
    monkeypatch: pytest.MonkeyPatch, clock: Clock, call: str
) -> None:
    storage = MemoryStorage()
    storage.create("there", b"")
    storage.create("folder/there", b"")
    calls = {
        "create": lambda: storage.create("f", b""),
        "replace": lambda: storage.replace("f", b""),
        "copy": lambda: storage.copy("there", "f"),
        "delete": lambda: storage.delete("there"),
        "delete_tree": lambda: storage.delete_tree("folder"),
    }

    def lost(*_: object, **__: object) -> None:
        raise GenericError("Generic S3 error: HTTP error")

    def fail() -> None:
        with held_for(storage, WRITE), monkeypatch.context() as patch:
            for name in ("put", "copy", "delete"):
                patch.setattr(obstore, name, lost)
            calls[call]()

    with pytest.raises(Unanswered):
        fail()
    assert not is_released(storage)
    with pytest.raises(Conflict, match="held by"):
        taken(storage)
    clock.wait(300_501)
    taken(storage)


def test_a_lock_is_released_where_all_was_answered() -> None:
    storage = MemoryStorage()
    with pytest.raises(FileNotFoundError), held_for(storage, WRITE):
        storage.read("nowhere")
    assert is_released(storage)


def test_a_lock_is_released_where_what_was_not_answered_did_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    storage, put, left = MemoryStorage(), obstore.put, [1]

    def lost(*asked: Any, **options: Any) -> Any:
        if left:
            left.pop()
            raise GenericError("Generic S3 error: HTTP error")
        return put(*asked, **options)

    with held_for(storage, WRITE):
        monkeypatch.setattr(obstore, "put", lost)
        with suppress(Unanswered):
            storage.touch("a_sign_of_life")
    assert is_released(storage)


def test_a_file_that_is_known_by_its_writer_is_not_acknowledged_after_the_lock(
    monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    """The library's second try is refused for the first one's sake; meanwhile the lock went to another."""
    storage, put = MemoryStorage(), MemoryStorage._put

    def twice(self: MemoryStorage, path: str, *rest: Any) -> str:
        done = put(self, path, *rest)
        if path == "f":
            clock.wait(300_501)
            taken(storage)
            raise AlreadyExistsError("the second try")
        return done

    monkeypatch.setattr(MemoryStorage, "_put", twice)
    with held_for(storage, WRITE), pytest.raises(Conflict, match="was taken from this process"):
        storage.create("f", b"")


@pytest.mark.parametrize(
    ("settings", "renewal_ms"),
    [
        ({RENEWAL: "6"}, 6_000),
        ({OLD_RENEWAL: "7"}, 7_000),
        ({RENEWAL: "6", OLD_RENEWAL: "7"}, 6_000),
        ({VALIDITY: "60", OLD_RENEWAL: "6"}, 6_000),
        ({VALIDITY: "60", RENEWAL: "6"}, 6_000),
    ],
)
def test_the_renewals_setting_has_two_names(settings: dict[str, str], renewal_ms: int) -> None:
    assert RENEWAL == "hoodie.write.lock.storage.renew.interval.secs"
    assert LeaseTimes.of(config(**settings), "t").renewal_ms == renewal_ms
    with pytest.raises(InvalidInput, match=r"heartbeat\.poll\.secs is 7"):
        LeaseTimes.of(config(**{VALIDITY: "60", OLD_RENEWAL: "7"}), "t")


def test_hudi_executes_no_plan_of_version_6_in_a_bucket(monkeypatch: pytest.MonkeyPatch) -> None:
    storage = MemoryStorage()
    payload = "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload"
    given = {"hoodie.table.version": "6", "hoodie.timeline.layout.version": "1"}
    six = config(**{**given, "hoodie.compaction.payload.class": payload, "hudi_assets.executor": "hudi"})
    for name in ("check_hudi_executes", "check_session", "check_jvm_zone", "spark_of"):
        monkeypatch.setattr(f"hudi_assets.engine.actions.compaction.hudi_executor.{name}", lambda *_: None)
    with pytest.raises(UnsupportedTable, match="executes no plan from here on version 6 in a bucket"):
        HudiExecutor(OpenTable.of(storage, six)).execute(None, "20260101000000000")  # type: ignore[arg-type]
    assert storage.list_folder("") == ([], [])
