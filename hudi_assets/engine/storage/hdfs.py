"""HDFS, by the library hdfs-native, without Java: paths `hdfs://host:port/path` and `hdfs://nameservice/path`.

Who we are is the environment's: HADOOP_USER_NAME or this user's name, or Kerberos's ticket. `hdfs_folder` says how a
change is made.
"""

from __future__ import annotations

import errno
import hashlib
import io
import re
import time
import uuid
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, BinaryIO, Final

from hudi_assets.engine.errors import (
    Conflict,
    EnvironmentProblem,
    InvalidInput,
    LockLost,
    UnsupportedTable,
    machine_problem,
)
from hudi_assets.engine.storage.at_once import each
from hudi_assets.engine.storage.hdfs_errors import said_by_hdfs
from hudi_assets.engine.storage.hdfs_folder import HdfsFolder, stamp
from hudi_assets.engine.storage.hdfs_streams import HdfsDownload, HdfsUpload, close_durably, read_range
from hudi_assets.engine.storage.interface import LOCKS, Capabilities, NewFile
from hudi_assets.engine.storage.remote import came_second, table_folder

if TYPE_CHECKING:
    from hdfs_native import FileStatus

_CAPABILITIES: Final = Capabilities(
    put_if_absent=True,
    put_if_match=True,
    links=False,
    exact_times=True,
    at_once=16,
    file_lock=True,
)
CLAIMS: Final = f"{LOCKS}/hudi_assets_claims"
_PATH: Final = re.compile(r"hdfs://([A-Za-z0-9._-]+)(?::(\d{1,5}))?(/.*)?")
_PART: Final = 8 << 20
_DAY_MS: Final = 86_400_000
_SWEPT_EVERY: Final = 100


class HdfsStorage(HdfsFolder):
    """A table's folder in HDFS. `base` is `hdfs://authority/path`, without a slash at its end."""

    def __init__(self, base: str) -> None:
        super().__init__(base)
        self._is_probed = False
        self._claimed = 0

    @property
    def capabilities(self) -> Capabilities:
        return _CAPABILITIES

    # -- reading ------------------------------------------------------------------------------------

    def read(self, path: str) -> bytes:
        reader = self._reader(path)
        with said_by_hdfs(self.uri(path)):
            return read_range(reader, 0, reader.file_length())

    def read_at(self, path: str, offset: int, length: int) -> bytes:
        reader = self._reader(path)
        with said_by_hdfs(self.uri(path)):
            return read_range(reader, offset, length)

    def open(self, path: str) -> BinaryIO:
        reader = self._reader(path)
        with said_by_hdfs(self.uri(path)):
            stream = HdfsDownload(reader, self.uri(path))
        return io.BufferedReader(stream, HdfsDownload.READ_AHEAD)

    def read_with_version(self, path: str) -> tuple[bytes, str]:
        while True:
            before = self._status(path)
            if before is None:
                raise self._missing(path)
            data = self.read(path)
            after = self._status(path)
            if after is None or stamp(before) != stamp(after):
                continue  # replaced meanwhile
            version = _version(after, data)
            if self._holder(path) is not None or not self._finish(path, version):
                return data, version

    # -- writing ------------------------------------------------------------------------------------

    def create(self, path: str, data: bytes) -> None:
        self._at(path)
        self._may_change(path)
        staged = self._staged(path)
        self._write(staged, data)
        try:
            self._give(staged, path, overwrite=False)
        except FileExistsError:
            self._delete_now(staged)
            raise came_second("created", self.uri(path)) from None

    def touch(self, path: str) -> None:
        self.replace(path, b"")

    def replace(self, path: str, data: bytes) -> None:
        """Once more where this process released the lock meanwhile: a heartbeat outlasts the locks inside it."""
        self._at(path)
        while True:
            self._may_change(path)
            staged = self._staged(path)
            try:
                self._write(staged, data)
                self._give(staged, path, overwrite=True)
                return
            except LockLost:
                if not self._is_released(staged):
                    raise

    def replace_if(self, path: str, data: bytes, version: str) -> str:
        """Under a lock one rename from its holder's folder, as nobody else changes the file. Else by a claim."""
        self._may_change(path)
        if not self._is_still(path, version):
            raise self._changed(path)
        if self._holder(path) is None:
            return self._replace_by_claim(path, data, version)
        staged = self._staged(path)
        new = self._new_version(staged, data, version)
        if not self._is_still(path, version):
            self._delete_now(staged)
            raise self._changed(path)
        self._give(staged, path, overwrite=True)
        return new

    def _replace_by_claim(self, path: str, data: bytes, version: str) -> str:
        """For the locks' own files. What follows a version is decided by a folder of the version's name, made once.

        The new file is in it. Whoever sees one moves the file out of it, to its place. The folder itself stays for a
        day, so that no second one is made.
        """
        made = f"{CLAIMS}/{uuid.uuid4().hex}"
        new = self._new_version(f"{made}/new", data, version)
        claim = self._claim(path, version)
        try:
            self._give(made, claim, overwrite=False)
        except FileExistsError:
            self._delete_now(made)
            self._finish(path, version)
            raise self._changed(path) from None
        if not self._is_still(path, version) and self.exists(f"{claim}/new"):
            # The folder was swept after a day: somebody else's claim was the first.
            self._delete_now(f"{claim}/new")
            raise self._changed(path)
        self._finish(path, version)
        self._sweep_claims()
        return new

    def _new_version(self, staged: str, data: bytes, before: str) -> str:
        """Write a new file; its version. The same bytes in the same millisecond would be the same one."""
        while True:
            self._write(staged, data)
            written = self._status(staged)
            if written is None:
                raise self._lost() if self._is_of_lock(staged) else self._missing(staged)
            if (new := _version(written, data)) != before:
                return new
            self._delete_now(staged)

    def _claim(self, path: str, version: str) -> str:
        return f"{CLAIMS}/{hashlib.sha256(path.encode()).hexdigest()[:16]}.{version}"

    def _is_still(self, path: str, version: str) -> bool:
        found = self._status(path)
        return found is not None and version.startswith(f"{stamp(found)}-")

    def _finish(self, path: str, version: str) -> bool:
        """Put what follows this version, which the file has, into its place; true where something does."""
        new = f"{self._claim(path, version)}/new"
        if not self.exists(new):
            return False
        with suppress(FileNotFoundError):  # another process was faster
            self._rename(new, path, overwrite=True)
        return True

    def _sweep_claims(self) -> None:
        self._claimed += 1
        if self._claimed % _SWEPT_EVERY == 1:
            old = time.time_ns() // 1_000_000 - _DAY_MS
            with said_by_hdfs(self.uri(CLAIMS)):
                found = [one for one in self._client.list_status(self._at(CLAIMS)) if one.modification_time < old]
            each(self, lambda one: self._delete_now(f"{CLAIMS}/{one.path.rpartition('/')[2]}"), found)

    def _changed(self, path: str) -> Conflict:
        return came_second("changed", self.uri(path))

    def open_new(self, path: str) -> NewFile:
        self._at(path)
        staged = self._staged(path)
        with self._writer(staged) as writer:
            return HdfsUpload(
                writer,
                self.uri(path),
                lambda: self._give_if_allowed(staged, path),
                lambda: self._delete_now(staged),
            )

    def _give_if_allowed(self, staged: str, path: str) -> None:
        self._may_change(path)
        self._give(staged, path, overwrite=True)

    def publish(self, staged: str, path: str) -> None:
        """It is moved away first: so only this call's own second try finds it gone."""
        self._may_change(path)
        moved = self._into_holders_folder(path, staged)
        if moved is None:
            raise self._missing(staged)
        try:
            self._give(moved, path, overwrite=False)
        except FileExistsError:
            self._delete_now(moved)
            raise came_second("created", self.uri(path)) from None

    def copy(self, source: str, target: str) -> None:
        """HDFS has no request for it: the bytes go through this process."""
        self._may_change(target)
        if self.exists(target):
            raise FileExistsError(errno.EEXIST, "there is a file of this name", self.uri(target))
        staged = self._staged(target)
        with self.open(source) as reader, self._writer(staged) as writer:
            written = 0
            while part := reader.read(_PART):
                writer.write(part)
                written += len(part)
            close_durably(writer, written)
        self._give(staged, target, overwrite=False)

    def hard_link(self, target: str, link: str) -> None:
        raise OSError(errno.EOPNOTSUPP, "HDFS has no links", self.uri(link))

    symlink = hard_link

    def own(self, link: str) -> None:
        self.hard_link("", link)

    def sync(self, path: str) -> None:
        return None  # a file has its name once its bytes are on the disks of the data nodes

    def delete(self, path: str) -> bool:
        self._at(path)
        self._may_change(path)
        if self._holder(path) is None:
            return self._delete_now(path)
        return self._into_holders_folder(path, path) is not None

    def take_back(self, path: str) -> None:
        self._delete_now(path)

    def delete_tree(self, directory: str) -> None:
        self.delete(directory)

    def check_writable(self) -> None:
        if self._is_probed:
            return
        try:
            self._probe()
        except PermissionError as error:
            raise EnvironmentProblem(
                f"The table may not be written: {error.strerror}.",
                where=self.base,
                hint="Give this user the right (hdfs dfs -chmod, -setfacl), or be another: HADOOP_USER_NAME, kinit.",
            ) from None
        except OSError as error:
            raise machine_problem(error, self.base) or error from None
        self._is_probed = True

    def _probe(self) -> None:
        """Does a rename leave what is there? Every change relies on it."""
        name = f"{LOCKS}/hudi_assets_probes/{uuid.uuid4().hex}"
        self.create(name, b"1")
        try:
            self.create(name, b"2")
        except Conflict:
            return
        finally:
            self._delete_now(name)
        raise UnsupportedTable(
            "The store overwrites where a rename is asked not to: of two writers both would win.",
            where=self.base,
            hint="Nothing was changed. The table can be looked at here.",
        )


def open_hdfs(path: str, options: Mapping[str, str]) -> HdfsStorage:
    """The storage of a path. Raises `InvalidInput` for what is none."""
    if options:
        hint = "Leave them out. The environment says who this is (HADOOP_USER_NAME, kinit) and where (HADOOP_CONF_DIR)."
        raise InvalidInput(f"A table in HDFS takes no storage options (got {', '.join(sorted(options))}).", hint=hint)
    found = _PATH.fullmatch(path)
    folder = table_folder(found[3]) if found else ""
    if found is None or not folder:
        raise InvalidInput(
            "This is no path of a table in HDFS.",
            where=path,
            hint="Give hdfs://HOST:PORT/PATH, or hdfs://NAMESERVICE/PATH of one that hdfs-site.xml knows.",
        )
    port = f":{found[2]}" if found[2] else ""
    return HdfsStorage(f"hdfs://{found[1]}{port}/{folder}")


def _version(status: FileStatus, data: bytes) -> str:
    return f"{stamp(status)}-{hashlib.sha256(data).hexdigest()[:16]}"
