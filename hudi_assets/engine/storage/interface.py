"""What the engine asks of storage. Files are named by table-relative paths."""

from __future__ import annotations

import os
from typing import BinaryIO, NamedTuple, Protocol

SCRATCH = ".hoodie/.aux/hudi_assets"


class FileInfo(NamedTuple):
    """A file as a listing shows it. `size` in bytes, of the target where the file is a symbolic link.

    `link_target` is the table-relative target of a symbolic link, absolute where it leads out of the table;
    `inode` is shared by hard links. `modified_ms` is epoch ms by the file system's clock.
    """

    path: str
    size: int
    link_target: str | None = None
    inode: int | None = None
    links: int = 1
    modified_ms: int = 0
    # A symbolic link whose target is not there: it has no bytes.
    broken: bool = False

    @classmethod
    def of(cls, path: str, link_target: str | None, stat: os.stat_result) -> FileInfo:
        """By what the system says of a file; made without names of arguments, as there may be a million."""
        modified_ms = stat.st_mtime_ns // 1_000_000
        return tuple.__new__(cls, (path, stat.st_size, link_target, stat.st_ino, stat.st_nlink, modified_ms, False))

    @property
    def name(self) -> str:
        return self.path.rsplit("/", 1)[-1]


class Storage(Protocol):
    """What the engine asks of a file system. Paths are relative to the table's base path."""

    @property
    def base(self) -> str: ...
    def __hash__(self) -> int: ...
    def uri(self, path: str) -> str:
        """The name under which Spark and other engines know the file."""

    def local_path(self, path: str) -> str:
        """The file's path for this machine's operating system: its locks, and memory that is mapped to a file."""

    def exists(self, path: str) -> bool: ...
    def is_directory(self, path: str) -> bool: ...
    def list_files(self, directory: str) -> list[FileInfo]: ...
    def list_directories(self, directory: str) -> list[str]: ...
    def list_folder(self, directory: str) -> tuple[list[FileInfo], list[str]]:
        """A directory's files and its directories, by one listing. Links that lead nowhere are among the files."""

    def size(self, path: str) -> int: ...
    def modified_ms(self, path: str) -> int | None:
        """When a file was written last, epoch ms by the file system's clock; None where there is none."""

    def read(self, path: str) -> bytes: ...
    def read_at(self, path: str, offset: int, length: int) -> bytes: ...
    def open(self, path: str) -> BinaryIO: ...
    def create(self, path: str, data: bytes) -> None:
        """Write a new file whole and durably; `Conflict` if it is there already."""

    def touch(self, path: str) -> None:
        """An empty file, where there is none. It survives a power cut once its folder is synced."""

    def replace(self, path: str, data: bytes) -> None:
        """Write a file whole, over what is there."""

    def open_new(self, path: str) -> BinaryIO:
        """A stream into a file that nobody reads before its commit; what is there is overwritten."""

    def publish(self, staged: str, path: str) -> None:
        """Give a closed file its name, whole and at once; `Conflict` if there is one of that name."""

    def hard_link(self, target: str, link: str) -> None: ...
    def symlink(self, target: str, link: str) -> None:
        """A relative symbolic link; where the target is one itself, to the file that it leads to."""

    def own(self, link: str) -> None:
        """Put the file that a symbolic link leads to in the link's place, at once; the target stays as it is."""

    def copy(self, source: str, target: str) -> None: ...
    def sync(self, path: str) -> None:
        """Make a file's bytes, or a directory's entries, survive a power cut."""

    def delete(self, path: str) -> bool:
        """Delete a file if it is there; true when it was."""

    def delete_tree(self, directory: str) -> None: ...
    def make_folder(self, directory: str) -> None:
        """An empty folder, where there is none."""

    def check_writable(self) -> None: ...
