"""Storage in a bucket, by the library obstore: what every store of objects has in common.

There are no folders: a folder is there while something is below it. There are no links. A file is there whole or not at
all. What differs between stores is which client to make of which options: a class with a `_client` for each.
"""

from __future__ import annotations

import errno
import io
import threading
import uuid
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, BinaryIO, Final, NamedTuple

import obstore
from obstore.exceptions import AlreadyExistsError, PreconditionError

from hudi_assets.engine.errors import (
    REMOTE,
    Conflict,
    CorruptTable,
    EnvironmentProblem,
    UnsupportedTable,
    machine_problem,
)
from hudi_assets.engine.storage.fenced import Fenced
from hudi_assets.engine.storage.forks import refuse_after_fork
from hudi_assets.engine.storage.interface import Capabilities, FileInfo, NewFile, leads_out
from hudi_assets.engine.storage.object_errors import said_by_store
from hudi_assets.engine.storage.object_streams import Download, Upload
from hudi_assets.engine.storage.probe import check_conditions
from hudi_assets.engine.storage.remote import Unanswered, came_second

if TYPE_CHECKING:
    from obstore import PutMode
    from obstore.store import ObjectStore, RetryConfig

# What tells a file that this call wrote from another's with the same bytes: the store keeps it beside them.
_WRITER: Final = "hudi-assets-writer"
_TRIES: Final = 3
_COMPARED: Final = 8 << 20
RETRIES: Final[RetryConfig] = {"max_retries": 8, "retry_timeout": timedelta(seconds=30)}
_PROBED: Final[set[Hashable]] = set()  # places that were found to keep to conditions


class _Written(NamedTuple):
    """A file that is there: its version, and by which call it was written ("" where not by this engine)."""

    version: str
    writer: str


class ObjectStorage(Fenced, ABC):
    """A prefix of a bucket. `base` is `scheme://bucket/prefix`, without a slash at its end."""

    # Has a request for the end of a file, and whatever name for what is kept beside a file's bytes.
    has_suffixes = True
    writer_key = _WRITER

    def __init__(self, base: str) -> None:
        super().__init__()
        self.base = base
        self.bucket, _, self._prefix = base.partition("://")[2].partition("/")
        self._bounded: dict[float, ObjectStore] = {}
        self._is_probed = False
        self._making = threading.Lock()

    def __hash__(self) -> int:
        return hash(self.base)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.__reduce__() == self.__reduce__()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base!r})"

    @abstractmethod
    def _client(self, request_s: float | None) -> ObjectStore:
        """A client of the bucket, with the credentials that are found here and now.

        It gives a request up, with all of its tries, after `request_s`. None: nobody holds a lock.
        """

    @property
    @abstractmethod
    def capabilities(self) -> Capabilities: ...

    @abstractmethod
    def __reduce__(self) -> tuple[object, ...]:
        """Without credentials and without a client: each process finds its own."""

    @property
    def _store(self) -> ObjectStore:
        refuse_after_fork(self.base)
        bound = self._request_s
        with self._making:  # many may ask at once, and each client has connections of its own
            return self._made if bound is None else self._in_time(bound)

    @cached_property
    def _made(self) -> ObjectStore:
        with said_by_store(self.base):
            return self._client(None)

    def _in_time(self, request_s: float) -> ObjectStore:
        """While a lock is held: a request that nobody waits for any more may not arrive after its end."""
        if request_s not in self._bounded:
            with said_by_store(self.base):
                self._bounded[request_s] = self._client(request_s)
        return self._bounded[request_s]

    # -- names --------------------------------------------------------------------------------------

    def _key(self, path: str) -> str:
        if leads_out(path):
            raise CorruptTable("A file name leads out of the table.", where=f"{self.base}: {path}")
        return "/".join(part for part in (self._prefix, path) if part)

    def _path(self, key: str) -> str:
        return key[len(self._prefix) + 1 :] if self._prefix else key

    def uri(self, path: str) -> str:
        return f"{self.base}/{path}" if path else self.base

    def local_path(self, path: str) -> str:
        raise UnsupportedTable("A file of a store has no path on this machine.", where=self.uri(path))

    @property
    def _place(self) -> Hashable | None:
        """What tells this table from all others in this process, whoever opens it again; None: nothing does."""
        return None

    def check_writable(self) -> None:
        self._is_probed = self._is_probed or self._place in _PROBED
        if not self._is_probed:
            try:
                check_conditions(self._store, self._key, self.base)
            except PermissionError as error:
                raise EnvironmentProblem(
                    f"The store may not be written: {error.strerror}.",
                    where=self.base,
                    hint="Give this identity s3:PutObject and s3:DeleteObject below the table.",
                ) from None
            except OSError as error:
                raise machine_problem(error, self.base) or error from None
            self._is_probed = True
            if self._place is not None:
                _PROBED.add(self._place)

    # -- looking ------------------------------------------------------------------------------------

    def exists(self, path: str) -> bool:
        return self._head(path) is not None or self.is_directory(path)

    def is_directory(self, path: str) -> bool:
        key = self._key(path)
        with said_by_store(self.uri(path)):
            pages = obstore.list(self._store, f"{key}/" if key else None, chunk_size=1)
            return any(self._is_file(one["path"], key) for page in pages for one in page)

    def list_files(self, directory: str) -> list[FileInfo]:
        return self.list_folder(directory)[0]

    def list_directories(self, directory: str) -> list[str]:
        return self.list_folder(directory)[1]

    def list_folder(self, directory: str) -> tuple[list[FileInfo], list[str]]:
        key = self._key(directory)
        with said_by_store(self.uri(directory)):
            found = obstore.list_with_delimiter(self._store, f"{key}/" if key else None)
        files = [
            FileInfo(
                self._path(one["path"]),
                one["size"],
                modified_ms=_whole_second_ms(one["last_modified"]),
                version=one["e_tag"],
            )
            for one in found["objects"]
            if self._is_file(one["path"], key) and (one["size"] or one["path"] not in found["common_prefixes"])
        ]
        return files, sorted(map(self._path, found["common_prefixes"]))

    @staticmethod
    def _is_file(key: str, folder: str) -> bool:
        """Other engines mark a folder by an empty object of its name, or, on EMR, of its name and `_$folder$`.

        In Azure such an object is listed beside what is in the folder.
        """
        return key != folder and not key.endswith("_$folder$")

    def size(self, path: str) -> int:
        found = self._head(path)
        if found is None:
            raise self._missing(path)
        return found.size

    def modified_ms(self, path: str) -> int | None:
        found = self._head(path)
        return None if found is None else found.modified_ms

    def _head(self, path: str) -> FileInfo | None:
        try:
            with said_by_store(self.uri(path)):
                one = obstore.head(self._store, self._key(path))
        except FileNotFoundError:
            return None
        return FileInfo(path, one["size"], modified_ms=_whole_second_ms(one["last_modified"]), version=one["e_tag"])

    def _missing(self, path: str) -> FileNotFoundError:
        return FileNotFoundError(errno.ENOENT, "there is no such file", self.uri(path))

    # -- reading ------------------------------------------------------------------------------------

    def read(self, path: str) -> bytes:
        with said_by_store(self.uri(path)):
            return bytes(obstore.get(self._store, self._key(path)).bytes())

    def read_with_version(self, path: str) -> tuple[bytes, str]:
        with said_by_store(self.uri(path)):
            found = obstore.get(self._store, self._key(path))
            return bytes(found.bytes()), found.meta["e_tag"] or ""

    def read_at(self, path: str, offset: int, length: int) -> bytes:
        if length <= 0:
            return b""
        try:
            with said_by_store(self.uri(path)):
                return bytes(obstore.get_range(self._store, self._key(path), start=offset, length=length))
        except OSError as error:
            if error.errno != errno.ERANGE:
                raise
            return b""

    def open(self, path: str) -> BinaryIO:
        stream = Download(self._store, self._key(path), self.uri(path), has_suffixes=self.has_suffixes)
        return io.BufferedReader(stream, Download.READ_AHEAD)

    # -- writing ------------------------------------------------------------------------------------

    @contextmanager
    def _changing(self, path: str, passed: tuple[type[Exception], ...] = ()) -> Iterator[None]:
        """One request that changes something."""
        self._may_change(path)
        try:
            with said_by_store(self.uri(path), passed):
                yield
        except Unanswered:
            self._tell_doubt(path)
            raise

    def create(self, path: str, data: bytes) -> None:
        self._put_once(path, data, "create")

    def replace_if(self, path: str, data: bytes, version: str) -> str:
        return self._put_once(path, data, {"e_tag": version})

    def _put_once(self, path: str, data: bytes, mode: PutMode) -> str:
        """Put under a precondition; the version. Never refused because of what an earlier try of this call wrote.

        The library tries again where an answer fails to come, and a store refuses the second try for the first one's
        sake. Also an answer may be lost for good. Then what is there says whose it is.
        """
        writer = uuid.uuid4().hex
        lost: Unanswered | None = None
        for _ in range(_TRIES):
            self._may_change(path)
            try:
                done = self._put(path, data, mode, writer)
                self._may_change(path)  # nor says that it has
                return done
            except (AlreadyExistsError, PreconditionError):
                found = self._written(path)
                # Nothing there: two that began at once can both be refused. Whoever tries again is answered.
                if mode == "create" and found is None:
                    continue
            except Unanswered as error:
                lost, found = error, self._written(path)
                if found is None if mode == "create" else _is_at(found, mode):
                    continue  # as it was; should the first try still arrive, the next one is refused for its sake
            except FileNotFoundError:
                if mode == "create":
                    raise
                raise came_second("deleted", self.uri(path)) from None
            if found is not None and found.writer == writer:
                self._may_change(path)  # as above
                return found.version
            what = "created" if mode == "create" else "changed"
            raise came_second(what, self.uri(path))
        self._tell_doubt(path)
        raise Unanswered(REMOTE, "it is not known whether the store has written it", self.uri(path)) from lost

    def _put(self, path: str, data: bytes, mode: PutMode, writer: str) -> str:
        with said_by_store(self.uri(path), passed=(AlreadyExistsError, PreconditionError)):
            done = obstore.put(
                self._store, self._key(path), data, mode=mode, attributes={self.writer_key: writer}, use_multipart=False
            )
            return done["e_tag"] or ""

    def _written(self, path: str) -> _Written | None:
        try:
            with said_by_store(self.uri(path)):
                found = obstore.get(self._store, self._key(path), options={"head": True})
        except FileNotFoundError:
            return None
        return _Written(found.meta["e_tag"] or "", str(found.attributes.get(self.writer_key, "")))

    def touch(self, path: str) -> None:
        self.replace(path, b"")

    def replace(self, path: str, data: bytes) -> None:
        with self._changing(path):
            obstore.put(self._store, self._key(path), data, use_multipart=False)
        self._may_change(path)  # nor says that it has

    def open_new(self, path: str) -> NewFile:
        return Upload(self._store, self._key(path), self.uri(path), lambda: self._may_change(path))

    def publish(self, staged: str, path: str) -> None:
        try:
            self.copy(staged, path)
        except (FileExistsError, Unanswered) as error:
            # The answer to an earlier try may have been lost: then it is this call's own.
            if not self._is_copy(staged, path):
                if isinstance(error, Unanswered):
                    raise
                raise came_second("created", self.uri(path)) from None
            self._keep(path)
        with suppress(OSError), self._changing(staged):  # the name is taken by now, and what stays is swept
            obstore.delete(self._store, self._key(staged))

    def _is_copy(self, source: str, target: str) -> bool:
        """True where both have the same bytes. Names of staged files occur once, so nobody else has copied it."""
        there, wanted = self._head(target), self._head(source)
        if there is None or wanted is None or there.size != wanted.size:
            return False
        with self.open(source) as one, self.open(target) as other:
            return all(one.read(_COMPARED) == other.read(_COMPARED) for _ in range(0, wanted.size, _COMPARED))

    def copy(self, source: str, target: str) -> None:
        try:
            with self._changing(target, (AlreadyExistsError,)):
                obstore.copy(self._store, self._key(source), self._key(target), overwrite=False)
        except AlreadyExistsError:
            raise FileExistsError(errno.EEXIST, "there is a file of this name", self.uri(target)) from None
        self._keep(target)

    def _keep(self, made: str) -> None:
        """A file that was given its name too late goes again: nothing is committed that names it."""
        try:
            self._may_change(made)
        except Conflict:
            self.take_back(made)
            raise

    def hard_link(self, target: str, link: str) -> None:
        raise OSError(errno.EOPNOTSUPP, "a store of objects has no links", self.uri(link))

    symlink = hard_link

    def own(self, link: str) -> None:
        self.hard_link("", link)

    def sync(self, path: str) -> None:
        return None  # what the store has confirmed survives

    def make_folder(self, directory: str) -> None:
        return None  # a folder is there while something is below it

    def delete(self, path: str) -> bool:
        there = self._head(path) is not None
        if there:
            with self._changing(path):
                obstore.delete(self._store, self._key(path))
        return there

    def take_back(self, path: str) -> None:
        with said_by_store(self.uri(path)):
            obstore.delete(self._store, self._key(path))

    def delete_tree(self, directory: str) -> None:
        with said_by_store(self.uri(directory)):
            for page in obstore.list(self._store, f"{self._key(directory)}/", chunk_size=1000):
                with self._changing(directory):
                    obstore.delete(self._store, [one["path"] for one in page])


def _is_at(found: _Written | None, mode: PutMode) -> bool:
    return found is not None and isinstance(mode, dict) and found.version == mode["e_tag"]


def _whole_second_ms(time: datetime) -> int:
    """In listings a store may show a time more exactly than alone; the two must be the same."""
    return int(time.timestamp()) * 1000
