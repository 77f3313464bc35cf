"""A folder of HDFS: who is asked, and how a file gets its name while a lock is held, and after it was lost.

A file gets its name by one request to the name node, which has it whole: it is written below another name and renamed.
While this process holds a lock of the table, each of its changes moves a file from or into a folder of the lock's
holder. Whoever takes the lock over deletes that folder first. So no change of a holder that has lost its lock is made
any more, however late its request arrives: the name node refuses it.
"""

from __future__ import annotations

import errno
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from hdfs_native import Client, WriteOptions

from hudi_assets.engine.errors import REMOTE, CorruptTable, LockLost, UnsupportedTable
from hudi_assets.engine.storage.fenced import Fenced
from hudi_assets.engine.storage.forks import refuse_after_fork
from hudi_assets.engine.storage.hdfs_errors import NoParent, said_by_hdfs
from hudi_assets.engine.storage.hdfs_streams import Reader, close_durably
from hudi_assets.engine.storage.interface import LOCKS, SCRATCH, Fence, FileInfo, leads_out
from hudi_assets.engine.storage.remote import Unanswered

if TYPE_CHECKING:
    from hdfs_native import FileStatus

_SETTLES_S: Final = 30.0
_POLL_S: Final = 0.01
HOLDERS: Final = f"{LOCKS}/hudi_assets_holders"
TMP: Final = f"{SCRATCH}/tmp"
# A name node that is gone is told after half a minute. Those of a name service are tried as its file says.
_ALONE: Final = {"dfs.client.failover.max.attempts": "6"}


class HdfsFolder(Fenced):
    """A folder of HDFS. `base` is `hdfs://authority/path`, without a slash at its end."""

    def __init__(self, base: str) -> None:
        super().__init__()
        self.base = base
        self._authority, _, rest = base.removeprefix("hdfs://").partition("/")
        self._root = f"/{rest}"

    def __hash__(self) -> int:
        return hash(self.base)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.__reduce__() == self.__reduce__()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base!r})"

    def __reduce__(self) -> tuple[object, ...]:
        """Without a client: each process makes its own, and says itself who it is."""
        return (type(self), (self.base,))

    @property
    def _client(self) -> Any:
        refuse_after_fork(self.base)
        return self._made

    @cached_property
    def _made(self) -> Any:
        with said_by_hdfs(self.base):
            return Client(f"hdfs://{self._authority}", _ALONE if ":" in self._authority else {})

    # -- names --------------------------------------------------------------------------------------

    def _at(self, path: str) -> str:
        if leads_out(path):
            raise CorruptTable("A file name leads out of the table.", where=f"{self.base}: {path}")
        return f"{self._root}/{path}" if path else self._root

    def uri(self, path: str) -> str:
        return f"{self.base}/{path}" if path else self.base

    def local_path(self, path: str) -> str:
        raise UnsupportedTable("A file in HDFS has no path on this machine.", where=self.uri(path))

    # -- looking ------------------------------------------------------------------------------------

    def exists(self, path: str) -> bool:
        return self._status(path) is not None

    def is_directory(self, path: str) -> bool:
        found = self._status(path)
        return found is not None and found.isdir

    def list_files(self, directory: str) -> list[FileInfo]:
        return self.list_folder(directory)[0]

    def list_directories(self, directory: str) -> list[str]:
        return self.list_folder(directory)[1]

    def list_folder(self, directory: str) -> tuple[list[FileInfo], list[str]]:
        at, prefix = self._at(directory), f"{directory}/" if directory else ""
        files: list[FileInfo] = []
        folders: list[str] = []
        try:
            with said_by_hdfs(self.uri(directory)):
                for one in self._client.list_status(at):
                    if one.path == at:  # a file, and no folder
                        continue
                    path = prefix + one.path.rpartition("/")[2]
                    if one.isdir:
                        folders.append(path)
                    else:
                        files.append(_info(path, one))
        except FileNotFoundError:
            return [], []
        return files, sorted(folders)

    def size(self, path: str) -> int:
        found = self._status(path)
        if found is None:
            raise self._missing(path)
        return found.length

    def modified_ms(self, path: str) -> int | None:
        found = self._status(path)
        return None if found is None else found.modification_time

    def _status(self, path: str) -> FileStatus | None:
        at = self._at(path)
        try:
            with said_by_hdfs(self.uri(path)):
                found: FileStatus = self._client.get_file_info(at)
                return found
        except FileNotFoundError:
            return None

    def _reader(self, path: str) -> Reader:
        """For a moment after a file was closed the library may not know its last block, and take it for shorter."""
        at, until = self._at(path), time.monotonic() + _SETTLES_S
        while True:
            with said_by_hdfs(self.uri(path)):
                length = self._client.get_file_info(at).length
                reader: Reader = self._client.read(at).inner
            if reader.file_length() >= length:
                return reader
            if time.monotonic() > until:
                raise OSError(REMOTE, "no data node gives its last block", self.uri(path))
            time.sleep(_POLL_S)

    def _missing(self, path: str) -> FileNotFoundError:
        return FileNotFoundError(errno.ENOENT, "there is no such file", self.uri(path))

    # -- names, given by one request ----------------------------------------------------------------

    def _holder(self, path: str) -> str | None:
        """The folder of the lock under which a file is changed; None where no lock is held, and for locks."""
        fences = tuple(self._fences)  # another thread may release one right now
        if path.startswith(f"{LOCKS}/") or not fences:
            return None
        return f"{HOLDERS}/{fences[-1].holder}"

    def _is_of_lock(self, staged: str) -> bool:
        return staged.startswith(f"{HOLDERS}/")

    def _is_released(self, staged: str) -> bool:
        """Was this in the folder of a lock that this process has released?"""
        holders = {f"{HOLDERS}/{fence.holder}" for fence in tuple(self._fences)}
        return self._is_of_lock(staged) and staged.rpartition("/")[0] not in holders

    def _staged(self, path: str) -> str:
        return f"{self._holder(path) or TMP}/{uuid.uuid4().hex}"

    def _rename(self, source: str, target: str, *, overwrite: bool) -> None:
        """One request. `FileNotFoundError` is of the source; a folder of a lock's holder is not made again."""
        for is_last in (False, True):
            try:
                with said_by_hdfs(self.uri(target)):
                    self._client.rename(self._at(source), self._at(target), overwrite)
                return
            except NoParent:
                if self._is_of_lock(target):
                    raise self._lost() from None
                if is_last:
                    raise
                self.make_folder(target.rpartition("/")[0])
            except Unanswered:
                self._tell_doubt(target)
                raise

    def _give(self, staged: str, path: str, *, overwrite: bool) -> None:
        """Give a name to what this call has made. Where that is gone, an earlier try of the library's was done."""
        try:
            self._rename(staged, path, overwrite=overwrite)
        except FileNotFoundError:
            if self._is_of_lock(staged) and not self.is_directory(staged.rpartition("/")[0]):
                raise self._lost() from None

    def _into_holders_folder(self, path: str, source: str) -> str | None:
        """Move what is to be changed there: its new name, or None where there is nothing of the kind."""
        moved = self._staged(path)
        try:
            self._rename(source, moved, overwrite=False)
        except FileNotFoundError:
            return moved if self.exists(moved) else None  # by an earlier try of the library's
        return moved

    def _lost(self) -> LockLost:
        return LockLost(
            "The table's lock was taken from this process: it gave no sign of life for too long.",
            where=self.base,
            hint="Nothing more was changed. Look at the table, then try again.",
        )

    @contextmanager
    def fenced(self, fence: Fence) -> Iterator[None]:
        """See the module. Earlier holders' folders are listed before this one makes sure that it has the lock.

        So none of them is of a process that takes the lock later.
        """
        mine = f"{HOLDERS}/{fence.holder}"
        self.make_folder(mine)
        others = [one for one in self.list_directories(mine.rpartition("/")[0]) if one != mine]
        fence.renew()
        for other in others:
            self._delete_now(other)
        try:
            with super().fenced(fence):
                yield
        finally:
            with suppress(OSError):  # else whoever takes the lock next deletes it
                self._delete_now(mine)

    @contextmanager
    def _writer(self, staged: str) -> Iterator[Any]:
        """Into a folder of a lock's holder only while that is there."""
        of_lock = self._is_of_lock(staged)
        try:
            with said_by_hdfs(self.uri(staged)):
                yield self._client.create(self._at(staged), WriteOptions(create_parent=not of_lock))
        except FileNotFoundError:
            raise (self._lost() if of_lock else self._missing(staged)) from None

    def _write(self, staged: str, data: bytes) -> None:
        with self._writer(staged) as writer:
            if data:
                writer.write(data)
            close_durably(writer, len(data))

    def make_folder(self, directory: str) -> None:
        at = self._at(directory)
        with said_by_hdfs(self.uri(directory)):
            self._client.mkdirs(at, create_parent=True)

    def _delete_now(self, path: str) -> bool:
        at = self._at(path)
        try:
            with said_by_hdfs(self.uri(path)):
                return bool(self._client.delete(at, True))
        except FileNotFoundError:
            return False


def _info(path: str, one: FileStatus) -> FileInfo:
    return FileInfo(path, one.length, modified_ms=one.modification_time, version=stamp(one))


def stamp(status: FileStatus) -> str:
    return f"{status.modification_time}-{status.length}"
