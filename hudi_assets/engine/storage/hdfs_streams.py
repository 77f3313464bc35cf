"""Streams from and into HDFS."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, Protocol

from hudi_assets.engine.errors import HudiAssetsError
from hudi_assets.engine.storage.hdfs_errors import said_by_hdfs
from hudi_assets.engine.storage.new_stream import NewStream

_TAIL: Final = 64 << 10  # of a Parquet file its footer, nearly always


class Reader(Protocol):
    """The library's reader of one file: of the version that it was when it was opened."""

    def file_length(self) -> int: ...
    def read_range(self, offset: int, len: int, /) -> bytes: ...


def read_range(reader: Reader, offset: int, length: int) -> bytes:
    """Fewer bytes where the file ends: the library would panic there."""
    length = min(length, reader.file_length() - offset)
    return bytes(reader.read_range(offset, length)) if length > 0 else b""


class HdfsDownload(io.RawIOBase):
    """A file as a stream that can seek. Its end is read first, and so a footer."""

    READ_AHEAD: Final = 256 << 10

    def __init__(self, reader: Reader, uri: str) -> None:
        self._reader, self._uri, self._at = reader, uri, 0
        self._size = reader.file_length()
        self._tail = read_range(reader, max(0, self._size - _TAIL), _TAIL)

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
        found = self._bytes(len(buffer))
        buffer[: len(found)] = found
        self._at += len(found)
        return len(found)

    def readall(self) -> bytes:
        """One request. Without this Python asks for 8 KiB at a time."""
        rest = self._bytes(max(0, self._size - self._at))
        self._at += len(rest)
        return rest

    def _bytes(self, length: int) -> bytes:
        in_tail = self._at - (self._size - len(self._tail))
        if in_tail >= 0:
            return self._tail[in_tail : in_tail + length]
        with said_by_hdfs(self._uri):
            return read_range(self._reader, self._at, length)


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
