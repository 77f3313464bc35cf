"""Streams from and into HDFS."""

from __future__ import annotations

import io
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol

from hudi_assets.engine.errors import HudiAssetsError
from hudi_assets.engine.storage.hdfs_errors import said_by_hdfs
from hudi_assets.engine.storage.new_stream import NewStream
from hudi_assets.engine.storage.remote_stream import TAIL, RemoteStream


class Reader(Protocol):
    """The library's reader of one file: of the version that it was when it was opened."""

    def file_length(self) -> int: ...
    def read_range(self, offset: int, len: int, /) -> bytes: ...


def read_range(reader: Reader, offset: int, length: int) -> bytes:
    """Fewer bytes where the file ends: the library would panic there."""
    length = min(length, reader.file_length() - offset)
    return bytes(reader.read_range(offset, length)) if length > 0 else b""


class HdfsDownload(RemoteStream):
    """A file as a stream that can seek."""

    def __init__(self, reader: Reader, uri: str) -> None:
        self._reader, self._uri = reader, uri
        size = reader.file_length()
        super().__init__(size, read_range(reader, max(0, size - TAIL), TAIL))

    def _range(self, start: int, length: int) -> bytes:
        with said_by_hdfs(self._uri):
            return read_range(self._reader, start, length)


class HdfsUpload(NewStream, io.RawIOBase):
    """A new file under a name that does not count, which gets its own when the stream is closed."""

    def __init__(self, writer: Any, uri: str, give_name: Callable[[], None], forget: Callable[[], object]) -> None:
        self._writer, self._uri, self._give_name, self._forget = writer, uri, give_name, forget
        self._written = 0
        self._opened = True

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._written

    def write(self, data: Any, /) -> int:
        with said_by_hdfs(self._uri):
            self._writer.write(data)
        self._written += len(data)
        return len(data)

    def close(self) -> None:
        if self.closed:
            return
        try:
            with said_by_hdfs(self._uri):
                close_durably(self._writer, self._written)
            self._give_name()
        except BaseException:
            self._throw_away()
            raise
        finally:
            super().close()

    def abort(self) -> None:
        if not self.closed:
            self._throw_away()
            super().close()

    def _throw_away(self) -> None:
        # What fails here stays below a name that does not count, and is swept.
        with suppress(OSError, HudiAssetsError):
            self._forget()


def close_durably(writer: Any, written: int) -> None:
    """Close a file whose bytes are on the data nodes' disks, as Hudi's log files are (hsync)."""
    if written:
        try:
            writer.hsync()
        except RuntimeError as error:
            if "erasure-coded" not in str(error):  # of those the library has no such request
                raise
    writer.close()
