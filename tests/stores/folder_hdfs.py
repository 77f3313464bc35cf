"""HDFS's name node, played by a folder of this machine: what the engine asks of one, without Java and a server.

`TABLES_IN=hdfs` has the crash tests and the state machine make their tables there.
"""

from __future__ import annotations

import errno
import os
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from hudi_assets.engine.storage import Fence
from hudi_assets.engine.storage.hdfs import HdfsStorage

_ONE_AT_A_TIME = threading.RLock()


class Status(NamedTuple):
    path: str
    length: int
    isdir: bool
    modification_time: int

    @classmethod
    def of(cls, path: str) -> Status:
        try:
            stat = os.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            raise FileNotFoundError(path) from None
        is_folder = os.path.isdir(path)
        return cls(path, 0 if is_folder else stat.st_size, is_folder, stat.st_mtime_ns // 1_000_000)


class _Reader:
    def __init__(self, path: str) -> None:
        self.inner, self._data = self, Path(path).read_bytes()

    def file_length(self) -> int:
        return len(self._data)

    def read_range(self, offset: int, length: int) -> bytes:
        assert offset + length <= len(self._data), "the library panics"
        return self._data[offset : offset + length]


class _Writer:
    def __init__(self, path: str) -> None:
        time.sleep(0.001)  # a real one takes longer: no two files of a name are of one millisecond
        self._path, self._file = path, open(path, "xb")  # noqa: SIM115

    def write(self, data: bytes) -> int:
        return self._file.write(data)

    def hsync(self) -> None:
        self._file.flush()

    def close(self) -> None:
        self._file.close()

    __del__ = close


class FolderNameNode:
    """The library's client. Its errors are those that hdfs-native gave of a real HDFS."""

    def get_file_info(self, path: str) -> Status:
        return Status.of(path)

    def list_status(self, path: str) -> Iterator[Status]:
        if not Status.of(path).isdir:
            yield Status.of(path)
            return
        for name in sorted(os.listdir(path)):
            yield Status.of(f"{path}/{name}")

    def read(self, path: str) -> _Reader:
        if Status.of(path).isdir:
            raise FileNotFoundError(f"Path is not a file: {path}")
        return _Reader(path)

    def create(self, path: str, options: Any) -> _Writer:
        with _ONE_AT_A_TIME:
            if options.create_parent:
                self.mkdirs(path.rpartition("/")[0], create_parent=True)
            if not os.path.isdir(path.rpartition("/")[0]):
                raise FileNotFoundError(f"Parent directory doesn't exist: {path.rpartition('/')[0]}")
            return _Writer(path)

    def mkdirs(self, path: str, create_parent: bool = False) -> None:
        assert create_parent
        os.makedirs(path, exist_ok=True)

    def rename(self, source: str, target: str, overwrite: bool) -> None:
        with _ONE_AT_A_TIME:
            if not os.path.lexists(source):
                raise FileNotFoundError(f"rename source {source} is not found.")
            if os.path.lexists(target) and not overwrite:
                raise FileExistsError(f"rename destination {target} already exists")
            if not os.path.isdir(target.rpartition("/")[0]):
                raise FileNotFoundError(f"rename destination parent {target} not found.")
            os.rename(source, target)

    def delete(self, path: str, recursive: bool) -> bool:
        with _ONE_AT_A_TIME:
            if not os.path.lexists(path):
                return False
            if os.path.isdir(path):
                assert recursive
                shutil.rmtree(path)
            else:
                os.unlink(path)
            return True


class _Gone:
    """What a process that died asks of the name node arrives nowhere."""

    def __getattr__(self, name: str) -> Any:
        raise OSError(errno.EIO, f"{name}: this process is dead")


class FolderHdfs(HdfsStorage):
    """A table in a folder of this machine, as in HDFS."""

    def __init__(self, base: str) -> None:
        super().__init__(f"hdfs://folder{base}")
        self.base = base
        self._is_probed = True
        self.node: Any = FolderNameNode()

    @property
    def _client(self) -> Any:
        return self.node

    @contextmanager
    def fenced(self, fence: Fence) -> Iterator[None]:
        with super().fenced(fence):
            try:
                yield
            except Exception:
                raise
            except BaseException:
                self.node = _Gone()
                raise
