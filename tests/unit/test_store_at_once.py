"""What is asked of a store for each of many files is asked at once: it answers after a while, and a lock is held."""

from __future__ import annotations

import threading
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import obstore
import pytest

from hudi_assets.engine.format.log_file.codec import BlockType, HeaderKey, encode_block
from hudi_assets.engine.format.log_file.delete_codec import encode_deletes
from hudi_assets.engine.storage import each, objects, s3
from hudi_assets.engine.storage.objects import ObjectStorage
from hudi_assets.engine.storage.s3 import S3Storage
from hudi_assets.engine.table.log_files.reader import CommittedInstants, find_blocks
from hudi_assets.engine.table.metadata.partitions import has_metadata_table
from hudi_assets.engine.timeline.attempts import Staged, publish, stage, write_staged
from hudi_assets.engine.timeline.markers import marked_files
from tests.stores.memory import MemoryStorage

if TYPE_CHECKING:
    from obstore.store import ObjectStore

INSTANT = "20260101000000000"
FILES = 3
MINE = {"access_key_id": "me", "secret_access_key": "mine", "region": "eu-west-1"}


class Meeting(MemoryStorage):
    """Each of some requests is answered once there are three of its kind."""

    def __init__(self) -> None:
        super().__init__()
        self._meetings = {what: threading.Barrier(FILES, timeout=20) for what in ("touch", "publish", "size")}
        self.waits = False

    def _meet(self, what: str) -> None:
        if self.waits:
            self._meetings[what].wait()

    def touch(self, path: str) -> None:
        self._meet("touch")
        super().touch(path)

    def publish(self, staged: str, path: str) -> None:
        self._meet("publish")
        super().publish(staged, path)

    def size(self, path: str) -> int:
        self._meet("size")
        return super().size(path)


def staged(storage: MemoryStorage) -> list[Staged]:
    files = [stage(INSTANT, f"p=a/{number}", "CREATE") for number in range(FILES)]
    for file in files:
        write_staged(storage, file, b"bytes")
    return files


def test_files_are_marked_and_named_at_once() -> None:
    storage = Meeting()
    files = staged(storage)
    storage.waits = True
    names: list[str] = []
    publish(storage, INSTANT, files, names)
    assert sorted(names) == sorted(marked_files(storage, INSTANT)) == [file.path for file in files]
    assert not any(storage.exists(file.at) for file in files)


def test_log_files_are_looked_through_at_once_and_stay_in_order() -> None:
    storage = Meeting()
    paths = [f".f_1.log.{number}_0-0-0" for number in range(FILES)]
    for path in paths:
        storage.replace(path, encode_block(BlockType.DELETE, {HeaderKey.INSTANT_TIME: INSTANT}, encode_deletes([])))
    storage.waits = True
    found = find_blocks(storage, paths, CommittedInstants(frozenset([INSTANT]), None))
    assert [stored.path for stored in found.blocks] == paths


def test_nobody_asks_whether_a_staged_file_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was copied right before: its deletion is one request."""
    storage = MemoryStorage()
    files = staged(storage)
    asked: Counter[str] = Counter()

    def head(*arguments: Any) -> Any:
        asked["head"] += 1
        return ask(*arguments)

    ask = obstore.head
    monkeypatch.setattr(obstore, "head", head)
    publish(storage, INSTANT, files, [])
    assert not asked


def test_a_store_is_tried_once_in_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever opens the table again relies on it. At another endpoint the same name is another table."""
    tried: list[str] = []
    monkeypatch.setattr(objects, "check_conditions", lambda store, key_of, where: tried.append(where))
    for endpoint, times in (("http://one.test", 2), ("http://other.test", 1)):
        monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
        for _ in range(times):
            S3Storage("s3://lake/tried", MINE).check_writable()
    S3Storage("s3://lake/tried", {**MINE, "endpoint": "http://third.test"}).check_writable()
    S3Storage("s3://lake/another", MINE).check_writable()
    assert tried == ["s3://lake/tried"] * 3 + ["s3://lake/another"]


def test_who_asks_for_a_metadata_table_asks_once(monkeypatch: pytest.MonkeyPatch) -> None:
    storage = MemoryStorage()
    monkeypatch.setattr(MemoryStorage, "is_directory", lambda *_: pytest.fail("no folder is meant"))
    assert not has_metadata_table(storage)


def test_an_identity_is_kept_for_a_minute_and_for_one_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker opens its table anew for each task: to look for the identity takes longer than most requests."""
    looked: list[str | None] = []
    now = [0.0]

    def look(profile: str | None, where: str) -> object:
        looked.append(profile)
        return object()

    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "one")
    monkeypatch.setattr(s3, "_FOUND", {})
    monkeypatch.setattr(s3, "_looked_up_by_aws", look)
    monkeypatch.setattr(time, "monotonic", lambda: now[0])

    def found(profile: str | None = None) -> object:
        return s3._found_by_aws(profile, "s3://lake/t")

    first = found()
    now[0] = 60.0
    assert found() is first
    now[0] = 61.0
    assert found() is not first
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "another")
    found()
    found("profile")
    assert looked == [None, None, None, "profile"]


def test_those_who_ask_at_once_share_a_client() -> None:
    """Under a lock too, where the client gives requests up in time."""

    class Slow(MemoryStorage):
        made = 0
        _in_time = ObjectStorage._in_time

        def _client(self, request_s: float | None) -> ObjectStore:
            Slow.made += 1
            time.sleep(0.05)
            return super()._client(request_s)

    class Held:
        holder = "write/me"
        request_s = 7.0

        def fence(self) -> None: ...
        def renew(self) -> None: ...
        def doubt(self) -> None: ...
        def renew_soon(self) -> None: ...

    storage = Slow()
    with storage.fenced(Held()):
        assert each(storage, storage.exists, ["a", "b", "c"]) == [False] * 3
    assert Slow.made == 1
