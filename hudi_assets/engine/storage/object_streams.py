"""Streams from and into a store of objects."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import obstore
from obstore.exceptions import BaseError

from hudi_assets.engine.storage.new_stream import NewStream
from hudi_assets.engine.storage.object_errors import is_of_the_range, said_by_store
from hudi_assets.engine.storage.remote_stream import TAIL, RemoteStream

if TYPE_CHECKING:
    from obstore import ObjectMeta, WritableFile
    from obstore.store import ObjectStore

_PART: Final = 10 << 20


class Download(RemoteStream):
    """An object as a stream that can seek. Opening it takes one request, which brings its end too.

    All of it is of one version: where the object is replaced meanwhile, reading on raises `Conflict`.
    """

    def __init__(self, store: ObjectStore, key: str, uri: str, *, has_suffixes: bool = True) -> None:
        self._store, self._key, self._uri = store, key, uri
        with said_by_store(uri):
            meta, tail = _end_of(store, key) if has_suffixes else (obstore.head(store, key), b"")
        self._version = meta["e_tag"]
        if not has_suffixes and (length := min(TAIL, meta["size"])):
            tail = self._range(meta["size"] - length, length)
        super().__init__(meta["size"], tail)

    def _range(self, start: int, length: int) -> bytes:
        with said_by_store(self._uri):
            asked = obstore.get(
                self._store,
                self._key,
                options={"range": (start, start + length), "if_match": self._version},
            )
            return bytes(asked.bytes())


def _end_of(store: ObjectStore, key: str) -> tuple[ObjectMeta, bytes]:
    try:
        found = obstore.get(store, key, options={"range": {"suffix": TAIL}})
        return found.meta, bytes(found.bytes())
    except BaseError as error:
        # An empty object has no end that could be asked for.
        if not is_of_the_range(error):
            raise
        meta = obstore.head(store, key)
        if meta["size"]:
            raise
        return meta, b""


class Upload(NewStream, io.RawIOBase):
    """A new object that is there once the stream is closed. Large ones go in parts while they are written."""

    def __init__(self, store: ObjectStore, key: str, uri: str, before_it_is_there: Callable[[], None]) -> None:
        self._uri, self._written, self._aborted, self._before = uri, 0, False, before_it_is_there
        self._out: WritableFile = obstore.open_writer(store, key, buffer_size=_PART)
        self._opened = True

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._written

    def write(self, data: Any, /) -> int:
        with said_by_store(self._uri):
            self._written += len(data)
            self._out.write(data)
        return len(data)

    def close(self) -> None:
        if self.closed:
            return
        try:
            if not self._aborted:
                self._give_up_if_refused()
            with said_by_store(self._uri):
                if self._aborted:
                    # What an error leaves gives the parts up that were sent.
                    self._out.__exit__(InterruptedError, InterruptedError(), None)
                else:
                    self._out.close()
        finally:
            super().close()

    def _give_up_if_refused(self) -> None:
        try:
            self._before()
        except BaseException:
            self.abort()
            raise

    def abort(self) -> None:
        if not self.closed:
            self._aborted = True
            self.close()
