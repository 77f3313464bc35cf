"""A stream that reads a file by ranges."""

from __future__ import annotations

import io

import pytest

from hudi_assets.engine.storage.remote_stream import TAIL, RemoteStream

DATA = bytes(range(256)) * (TAIL // 64)


class Part(RemoteStream):
    """Of `DATA`, with a server that stops at `until`."""

    def __init__(self, until: int) -> None:
        super().__init__(len(DATA), DATA[-TAIL:])
        self._until = until

    def _range(self, start: int, length: int) -> bytes:
        return DATA[start : min(start + length, self._until)]


def opened(until: int) -> io.BufferedReader:
    return io.BufferedReader(Part(until), Part.READ_AHEAD)


def test_what_is_read_is_the_file() -> None:
    with opened(len(DATA)) as file:
        assert file.read() == DATA
        file.seek(1000)
        assert file.read(5000) == DATA[1000:6000]
        file.seek(-10, io.SEEK_END)
        assert file.read(100) == DATA[-10:]
        file.seek(10, io.SEEK_END)
        assert file.read(1) == b""


@pytest.mark.parametrize("asked", [-1, 100_000])
def test_an_answer_that_ends_early_is_no_end_of_the_file(asked: int) -> None:
    with opened(50_000) as file, pytest.raises(OSError, match="bytes came of"):
        file.read(asked)
