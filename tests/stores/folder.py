"""A bucket in a folder of this machine, for tests that look at the files themselves: all else is as in a bucket."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import obstore
from obstore.exceptions import AlreadyExistsError
from obstore.store import LocalStore

from hudi_assets.engine.errors import Conflict
from hudi_assets.engine.storage import Capabilities
from hudi_assets.engine.storage.object_errors import said_by_store
from hudi_assets.engine.storage.objects import ObjectStorage
from tests.stores.memory import MemoryStorage

if TYPE_CHECKING:
    from obstore import PutMode
    from obstore.store import ObjectStore

_ONE_AT_A_TIME = threading.Lock()


class FolderBucket(ObjectStorage):
    """Objects that are files of a folder. The library has no condition on a version there: it is asked here."""

    def __init__(self, base: str) -> None:
        super().__init__(f"folder://bucket/{base.rsplit('/', 1)[-1]}")
        self.folder, self._prefix = base, ""
        self._is_probed = True

    @property
    def capabilities(self) -> Capabilities:
        return MemoryStorage().capabilities

    def __reduce__(self) -> tuple[object, ...]:
        return (FolderBucket, (self.folder,))

    def _client(self) -> ObjectStore:
        Path(self.folder).mkdir(parents=True, exist_ok=True)
        return LocalStore(self.folder, automatic_cleanup=True)

    def _put_once(self, path: str, data: bytes, mode: PutMode) -> str:
        self._may_change(path)
        with _ONE_AT_A_TIME, said_by_store(self.uri(path), passed=(AlreadyExistsError,)):
            if isinstance(mode, dict):
                there: Any = self._head(path)
                if there is None or there.version != mode["e_tag"]:
                    raise Conflict("changed", where=self.uri(path))
                mode = "overwrite"
            try:
                done = obstore.put(self._store, self._key(path), data, mode=mode, use_multipart=False)
            except AlreadyExistsError:
                raise Conflict("created", where=self.uri(path)) from None
        self._may_change(path)
        return done["e_tag"] or ""
