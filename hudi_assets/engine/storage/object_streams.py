"""Streams from and into a store of objects."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import obstore
from obstore.exceptions import BaseError

from hudi_assets.engine.storage.new_stream import NewStream
from hudi_assets.engine.storage.object_errors import is_of_the_range, said_by_store

if TYPE_CHECKING:
    from obstore import WritableFile
    from obstore.store import ObjectStore

_TAIL: Final = 64 << 10  # of a Parquet file its footer, nearly always
_PART: Final = 10 << 20


class Download(io.RawIOBase):
    """An object as a stream that can seek. Opening it takes one request, which brings its end, and so a footer.

    All of it is of one version: where the object is replaced meanwhile, reading on raises `Conflict`.
    """

    READ_AHEAD: Final = 256 << 10

    def __init__(self, store: ObjectStore, key: str, uri: str, *, has_suffixes: bool = True) -> None:
        self._store, self._key, self._uri, self._at = store, key, uri, 0
        with said_by_store(uri):
            if not has_suffixes:
                meta = obstore.head(store, key)
                self._size, self._version, self._tail = meta["size"], meta["e_tag"], b""
                self._at = max(0, self._size - _TAIL)
                self._tail, self._at = self._bytes(self._size - self._at) if self._size else b"", 0
                return
            try:
                found = obstore.get(store, key, options={"range": {"suffix": _TAIL}})
                self._tail = bytes(found.bytes())
                meta = found.meta
            except BaseError as error:
                # An empty object has no end that could be asked for.
                if not is_of_the_range(error):
                    raise
                meta, self._tail = obstore.head(store, key), b""
                if meta["size"]:
                    raise
        self._size, self._version = meta["size"], meta["e_tag"]

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        if start + offset < 0:
            raise ValueError("negative seek position")
        self._at = start + offset
        return self._at

    def readinto(self, buffer: Any) -> int:
        length = min(len(buffer), max(0, self._size - self._at))
        if length:
            buffer[:length] = self._bytes(length)
            self._at += length
        return length

    def readall(self) -> bytes:
        """One request. Without this Python asks for 8 KiB at a time."""
        length = max(0, self._size - self._at)
        rest = self._bytes(length) if length else b""
        self._at += len(rest)
        return rest

    def _bytes(self, length: int) -> bytes:
        in_tail = self._at - (self._size - len(self._tail))
        if in_tail >= 0:
            return self._tail[in_tail : in_tail + length]
        with said_by_store(self._uri):
            asked = obstore.get(
                self._store,
                self._key,
                options={"range": (self._at, self._at + length), "if_match": self._version},
            )
            return bytes(asked.bytes())


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
