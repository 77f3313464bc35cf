"""What the engine asks of storage. Files are named by table-relative paths."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import TracebackType
from typing import BinaryIO, NamedTuple, Protocol, Self

SCRATCH = ".hoodie/.aux/hudi_assets"
LOCKS = ".hoodie/.locks"
"""Where the locks are on a store that has leases: what is below it is no change of the table (`Storage.fenced`)."""


@dataclass(frozen=True)
class Capabilities:
    """What a store can do. `tests/stores` holds each store to what it states here."""

    put_if_absent: bool
    """`create` and `publish` have one winner."""
    put_if_match: bool
    """`replace_if` is there."""
    links: bool
    """`hard_link`, `symlink` and `own` are there. Without them they raise `OSError`."""
    exact_times: bool
    """Times of modification are exact to the millisecond. Else they are whole seconds."""
    at_once: int
    """How many requests are worth sending at a time (`each`). 1: they take no time."""
    folder_times: bool = False
    """The store is of this machine's operating system, where a folder says when a name in it came or went."""
    file_lock: bool = False
    """Apache Hudi's FileSystemBasedLockProvider is a lock here: a file of a name is made once, also by Java."""
    late_requests: bool = False
    """A change that was asked for may be made after its sender has lost its lock: what it makes, or deletes, has to
    have a name that occurs once, or a condition on it."""


class FileInfo(NamedTuple):
    """A file as a listing shows it. `size` in bytes, of the target where the file is a symbolic link.

    `link_target` is the table-relative target of a symbolic link, absolute where it leads out of the table;
    `inode` is shared by hard links. `modified_ms` is epoch ms by the store's clock. `version` is the store's own word
    for this content under this name (an ETag, a generation); a file system has none but inode and time.
    """

    path: str
    size: int
    link_target: str | None = None
    inode: int | None = None
    links: int = 1
    modified_ms: int = 0
    # A symbolic link whose target is not there: it has no bytes.
    broken: bool = False
    version: str | None = None

    @classmethod
    def of(cls, path: str, link_target: str | None, stat: os.stat_result) -> FileInfo:
        """By what the system says of a file; made without names of arguments, as there may be a million."""
        modified_ms = stat.st_mtime_ns // 1_000_000
        return tuple.__new__(
            cls, (path, stat.st_size, link_target, stat.st_ino, stat.st_nlink, modified_ms, False, None)
        )

    @property
    def name(self) -> str:
        return self.path.rsplit("/", 1)[-1]


class NewFile(Protocol):
    """A stream into a file that is there, whole, once it is closed. Used as a context, an error aborts it."""

    def write(self, data: bytes, /) -> int: ...
    def flush(self) -> None: ...
    def close(self) -> None:
        """Commit: what was written takes the name, over what is there."""

    def abort(self) -> None:
        """Leave what is there as it is. Nothing where the file is closed already."""

    @property
    def closed(self) -> bool: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...


class Fence(Protocol):
    """A lock of this process that ends by itself."""

    @property
    def holder(self) -> str:
        """`LOCK/OWNER`: which lock it is, and by what name nobody else has ever held it."""

    @property
    def request_s(self) -> float:
        """For how long a request may be under way, with all of its tries."""

    def fence(self) -> None:
        """Raise where this process may change nothing any more."""

    def renew(self) -> None:
        """Move the lock's end on; raise where another process has it."""

    def renew_soon(self) -> None:
        """As `fence`, and move the lock's end on, if that was not done right now."""

    def doubt(self) -> None:
        """A change was asked for that nobody answered: it may be made later."""


class Storage(Protocol):
    """What the engine asks of a store. Paths are relative to the table's base path.

    A file that is not there raises `FileNotFoundError`, one that this process may not have `PermissionError`.
    """

    @property
    def base(self) -> str: ...
    @property
    def capabilities(self) -> Capabilities: ...
    def __hash__(self) -> int: ...
    def uri(self, path: str) -> str:
        """The name under which Spark and other engines know the file."""

    def local_path(self, path: str) -> str:
        """The file's path for this machine's operating system: its locks, and memory that is mapped to a file.

        `UnsupportedTable` where the store's files are not on this machine.
        """

    def exists(self, path: str) -> bool: ...
    def is_directory(self, path: str) -> bool: ...
    def list_files(self, directory: str) -> list[FileInfo]: ...
    def list_directories(self, directory: str) -> list[str]: ...
    def list_folder(self, directory: str) -> tuple[list[FileInfo], list[str]]:
        """A directory's files and its directories, by one listing. Links that lead nowhere are among the files."""

    def size(self, path: str) -> int: ...
    def modified_ms(self, path: str) -> int | None:
        """When a file was written last, epoch ms by the store's clock; None where there is none."""

    def read(self, path: str) -> bytes: ...
    def read_with_version(self, path: str) -> tuple[bytes, str]:
        """A file's bytes, and what `replace_if` knows them again by."""

    def read_at(self, path: str, offset: int, length: int) -> bytes:
        """Up to `length` bytes: fewer where the file ends, none beyond its end."""

    def open(self, path: str) -> BinaryIO:
        """A stream that can seek. All of it is of one version of the file: `Conflict` where that is no more."""

    def create(self, path: str, data: bytes) -> None:
        """Write a new file whole and durably; `Conflict` if it is there already.

        Where an answer is lost the store is asked whether the file is ours: so this never refuses what it has written.
        """

    def touch(self, path: str) -> None:
        """An empty file; one that is there becomes young. It survives a power cut once its folder is synced."""

    def replace(self, path: str, data: bytes) -> None:
        """Write a file whole, over what is there."""

    def replace_if(self, path: str, data: bytes, version: str) -> str:
        """`replace` where the file still has this version, else `Conflict`; its new version.

        A version may name a content alone (S3's ETag): who writes the bytes that are there already is not refused, and
        a content that came back is the one that was. So a lock's content must be its holder's own.
        """

    def open_new(self, path: str) -> NewFile:
        """A stream into a file that nobody sees before it is closed; what is there is overwritten then."""

    def publish(self, staged: str, path: str) -> None:
        """Give a closed file its name, whole and at once; `Conflict` if there is one of that name.

        Where a store's answer was lost, the file of that name may be this call's own.
        """

    def hard_link(self, target: str, link: str) -> None: ...
    def symlink(self, target: str, link: str) -> None:
        """A relative symbolic link; where the target is one itself, to the file that it leads to."""

    def own(self, link: str) -> None:
        """Put the file that a symbolic link leads to in the link's place, at once; the target stays as it is."""

    def copy(self, source: str, target: str) -> None:
        """A new file with the bytes of another; `FileExistsError` if there is one of that name."""

    def sync(self, path: str) -> None:
        """Make a file's bytes, or a directory's entries, survive a power cut."""

    def delete(self, path: str) -> bool:
        """Delete a file if it is there; true when it was."""

    def take_back(self, path: str) -> None:
        """Delete what this process has made although its lock is lost (`fenced`)."""

    def delete_tree(self, directory: str) -> None: ...
    def make_folder(self, directory: str) -> None:
        """An empty folder, where there is none."""

    def check_writable(self) -> None:
        """Raise where this process may not write, or the store does not do what writing needs."""

    def fenced(self, fence: Fence) -> AbstractContextManager[None]:
        """Inside it, `fence` is asked before each change.

        Where the operating system frees locks nothing is asked. What lies below `LOCKS` is never asked about.
        """

    def renew_fences(self) -> None:
        """Right before what must not be late: ask that each lock of `fenced` has its whole time left."""


def leads_out(path: str) -> bool:
    """True where a path of a plan or a commit would lead out of the table."""
    return path.startswith("/") or "\0" in path or (".." in path and ".." in path.split("/"))
