"""A folder as a listing shows it, kept for the next listing as long as the folder itself shows no change."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from operator import is_
from stat import S_ISDIR, S_ISREG
from typing import Any, Final, NamedTuple, overload

from hudi_assets.engine.columns import column
from hudi_assets.engine.loaded import LOADED
from hudi_assets.engine.storage.interface import FileInfo, Storage

# FAT's clock has ticks of so long; others have finer ones.
TICK_NS: Final = 2_000_000_000


class Stamp(NamedTuple):
    """Which folder it is, and when a name in it was last made, taken away or given to another file."""

    device: int
    inode: int
    modified_ns: int
    changed_ns: int

    @classmethod
    def of(cls, folder: str) -> Stamp | None:
        """None where there is no such folder."""
        try:
            found = os.stat(folder)
        except (FileNotFoundError, NotADirectoryError):
            return None
        return cls(found.st_dev, found.st_ino, found.st_mtime_ns, found.st_ctime_ns) if S_ISDIR(found.st_mode) else None


class Listing(Sequence[FileInfo]):
    """A folder's files, in the order in which it was listed. It is the same one for as long as they are the same.

    Where many are kept it has columns, and makes the entries anew when they are asked for (`loaded`): whoever compares
    entries by what object they are holds on to `entries`.
    """

    __slots__ = ("__weakref__", "_columns", "_entries", "_prefix", "_rows")

    def __init__(self, prefix: str, files: list[FileInfo]) -> None:
        """`prefix`: what their paths begin with, before their names."""
        self._prefix, self._rows = prefix, len(files)
        self._entries: list[FileInfo] | None = files
        self._columns: tuple[Iterable[Any], ...] | None = None

    @property
    def entries(self) -> list[FileInfo]:
        found, columns = self._entries, self._columns
        if found is None:
            assert columns is not None
            names, *rest = columns
            paths = map(str.__add__, repeat(self._prefix), names)
            self._entries = found = list(map(_make, zip(paths, *rest, strict=False)))
            self.keep_few()
        return found

    def keep_few(self) -> None:
        """Give the entries up for columns once those of many other files are kept."""
        LOADED.add(self, self._rows)

    def unload(self) -> None:
        entries = self._entries
        if entries and self._columns is None:
            start = len(self._prefix)
            paths, *rest = zip(*entries, strict=True)
            self._columns = (column([path[start:] for path in paths]), *map(column, rest))
        self._entries = None if entries else entries

    def __len__(self) -> int:
        return self._rows

    def __iter__(self) -> Iterator[FileInfo]:
        return iter(self.entries)

    @overload
    def __getitem__(self, place: int) -> FileInfo: ...
    @overload
    def __getitem__(self, place: slice) -> list[FileInfo]: ...
    def __getitem__(self, place: int | slice) -> FileInfo | list[FileInfo]:
        return self.entries[place]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Listing | list) and self.entries == list(other)

    __hash__ = None  # type: ignore[assignment]


_make: Final[Callable[[Iterable[Any]], FileInfo]] = partial(tuple.__new__, FileInfo)


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder's files and its folders. Paths are table-relative.

    `stamp`: the folder's own, right before it was listed; None where it may hold something else with the same stamp, as
    on a store without such, or where what a symbolic link leads to goes. `settled`: with the same stamp it holds the
    same names. A file that grew in its place, or was cut short there, has its name still.
    """

    files: Listing
    folders: list[str]
    stamp: Stamp | None = None
    settled: bool = False
    links: bool = False

    @classmethod
    def of(cls, files: Listing, folders: list[str], stamp: Stamp | None = None, begun_ns: int = 0) -> Folder:
        """By a listing that began at `begun_ns` (epoch), right after the stamp was taken."""
        links = any(file.link_target is not None for file in files)
        if stamp is None or links:
            return cls(files, folders, links=links)
        # What comes within a tick of the last change might leave the same time.
        return cls(files, folders, stamp, max(stamp.modified_ns, stamp.changed_ns) < begun_ns - TICK_NS)


def list_again(storage: Storage, path: str, last: Folder | None, *, sizes: bool = False) -> Folder:
    """A folder's names now: `last` itself where its stamp shows that they are the same.

    Where they are not, a file is asked for its size when it is another one than before. Each is where `last` is None,
    or by `sizes`.
    """
    if not storage.capabilities.folder_times:
        return Folder.of(*_entries(storage, path, last))
    folder = storage.local_path(path)
    stamp, begun_ns = Stamp.of(folder), time.time_ns()
    if sizes or last is None or last.stamp is None or stamp is None:
        return Folder.of(*_entries(storage, path, last), stamp, begun_ns)
    if stamp == last.stamp and last.settled:
        return last
    found = _names_again(folder, _prefix(path), last) or _entries(storage, path, last)
    return Folder.of(*found, stamp, begun_ns)


def _entries(storage: Storage, path: str, last: Folder | None) -> tuple[Listing, list[str]]:
    """A listing, with the entries of the last one where they are equal."""
    files, folders = storage.list_folder(path)
    if last is None:
        return Listing(_prefix(path), files), folders
    entries = last.files.entries
    if files == entries:
        return last.files, folders
    before = {file.path: file for file in entries}
    if len(files) == len(entries) and all(before.get(file.path) == file for file in files):
        return last.files, folders
    return Listing(
        _prefix(path), [before[file.path] if before.get(file.path) == file else file for file in files]
    ), folders


def _prefix(path: str) -> str:
    return f"{path}/" if path else ""


def _names_again(folder: str, prefix: str, last: Folder) -> tuple[Listing, list[str]] | None:
    """Files and folders; None where there are links among them, or the folder has gone.

    A listing says which inode each name has. With another one it is another file, as a backup puts one back.
    """
    there: dict[str, int | None] = {}  # None: a folder
    try:
        with os.scandir(folder) as names:
            for entry in names:
                if entry.is_symlink():
                    return None
                there[prefix + entry.name] = None if entry.is_dir(follow_symlinks=False) else entry.inode()
    except (FileNotFoundError, NotADirectoryError):
        return None
    entries = last.files.entries
    files = [file for file in entries if there.get(file.path) == file.inode]
    for path in there.keys() - {file.path for file in files}:
        if there[path] is None:
            continue
        try:
            found = os.lstat(f"{folder}/{path[len(prefix) :]}")
        except FileNotFoundError:
            continue
        if not S_ISREG(found.st_mode):
            return None
        files.append(FileInfo.of(path, None, found))
    same = len(files) == len(entries) and all(map(is_, files, entries))
    found_files = last.files if same else Listing(prefix, files)
    return found_files, sorted(path for path, inode in there.items() if inode is None)
