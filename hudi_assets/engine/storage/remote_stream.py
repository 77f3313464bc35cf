"""Reading a file by ranges, as a stream."""

from __future__ import annotations

import io
import os
from abc import ABC, abstractmethod
from typing import Any, Final

from hudi_assets.engine.errors import REMOTE

TAIL: Final = 64 << 10
"""Bytes at a file's end that are read when it is opened: of a Parquet file the footer, nearly always."""


class RemoteStream(io.RawIOBase, ABC):
    """A file as a stream that can seek. Its end is kept, and so a footer; the rest is asked for when it is read.

    Args:
        size: The file's bytes.
        tail: The last of them, `TAIL` or fewer.
    """

    READ_AHEAD: Final = 256 << 10

    def __init__(self, size: int, tail: bytes) -> None:
        self._size, self._tail, self._at = size, tail, 0

    @abstractmethod
    def _range(self, start: int, length: int) -> bytes:
        """Bytes of the version of the file that was opened. There are that many, and not none."""

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
        found = self._next(len(buffer))
        buffer[: len(found)] = found
        return len(found)

    def readall(self) -> bytes:
        """One request. Without this Python asks for 8 KiB at a time."""
        return self._next(self._size)

    def _next(self, most: int) -> bytes:
        length = min(most, max(0, self._size - self._at))
        in_tail = self._at - (self._size - len(self._tail))
        if in_tail >= 0:
            found = self._tail[in_tail : in_tail + length]
        else:
            found = self._range(self._at, length) if length else b""
            if len(found) != length:  # else it would pass for the file's end
                raise OSError(REMOTE, f"{len(found)} bytes came of {length} that were asked for at {self._at}")
        self._at += len(found)
        return found
