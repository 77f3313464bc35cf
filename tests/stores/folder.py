"""A bucket in a folder of this machine, for tests that look at the files themselves: all else is as in a bucket.

`TABLES_IN=bucket` has the crash tests and the state machine make their tables in such buckets, `TABLES_IN=hdfs` in what
is to the engine HDFS (`folder_hdfs`).
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import obstore
from obstore.exceptions import AlreadyExistsError
from obstore.store import LocalStore

from hudi_assets.engine.errors import Conflict
from hudi_assets.engine.hudi_table import table as opening
from hudi_assets.engine.storage import Capabilities, Storage
from hudi_assets.engine.storage.object_errors import said_by_store
from hudi_assets.engine.storage.objects import ObjectStorage
from hudi_assets.engine.transaction import lease
from hudi_assets.engine.transaction.heartbeat import Heartbeats
from hudi_assets.engine.transaction.publish import Publisher
from tests.in_buckets import IN_HDFS
from tests.stores.folder_hdfs import FolderHdfs
from tests.stores.memory import MemoryStorage

if TYPE_CHECKING:
    from obstore import PutMode
    from obstore.store import ObjectStore

_ONE_AT_A_TIME = threading.Lock()
_LONGER_THAN_A_LEASE_MS = 600_000


class FolderBucket(ObjectStorage):
    """Objects that are files of a folder. The library has no condition on a version there: it is asked here."""

    def __init__(self, base: str) -> None:
        super().__init__(base)
        self._is_probed = True

    @property
    def capabilities(self) -> Capabilities:
        return MemoryStorage().capabilities

    def __reduce__(self) -> tuple[object, ...]:
        return (FolderBucket, (self.base,))

    def _client(self, request_s: float | None) -> ObjectStore:
        del request_s
        Path(self.base).mkdir(parents=True, exist_ok=True)
        return LocalStore(self.base, automatic_cleanup=True)

    def _put_once(self, path: str, data: bytes, mode: PutMode) -> str:
        self._may_change(path)
        with _ONE_AT_A_TIME, said_by_store(self.uri(path), passed=(AlreadyExistsError,)):
            if isinstance(mode, dict):
                there: Any = self._head(path)
                if there is None or there.version != mode["e_tag"]:
                    raise Conflict("Another process changed this file first.", where=self.uri(path))
                mode = "overwrite"
            try:
                done = obstore.put(self._store, self._key(path), data, mode=mode, use_multipart=False)
            except AlreadyExistsError:
                raise Conflict("Another process created this file first.", where=self.uri(path)) from None
        self._may_change(path)
        return done["e_tag"] or ""


def tables_in_buckets(patch: Callable[[Any, str, Any], None], *modules: Any) -> None:
    """Every table is on the store that TABLES_IN says. `modules`: those that make storages of this machine themselves.

    Whenever a table is opened all leases and heartbeats of before have ended: it is opened by the next process.
    """
    opened = itertools.count(1)
    later_ms = 0
    kind = FolderHdfs if IN_HDFS else FolderBucket

    def open_storage(path: str, options: object = None) -> Storage:
        nonlocal later_ms
        later_ms = next(opened) * _LONGER_THAN_A_LEASE_MS
        return kind(os.path.abspath(path))

    now_ms = lease._now_ms
    patch(lease, "_now_ms", lambda: now_ms() + later_ms)
    patch(Heartbeats, "is_alive", lambda *_: False)
    patch(opening, "open_storage", open_storage)
    patch(Publisher, "_wait_for_later_second", lambda *_: None)
    for module in modules:
        patch(module, "LocalStorage", kind)
