"""A folder as a listing shows it, kept for the next listing as long as the folder itself shows no change."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from operator import is_
from stat import S_ISDIR, S_ISREG
from typing import Final, NamedTuple

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


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder's files and its folders. Paths are table-relative.

    `stamp`: the folder's own, right before it was listed; None where it may hold something else with the same stamp, as
    on a store without such, or where what a symbolic link leads to goes. `settled`: with the same stamp it holds the
    same names. A file that grew in its place, or was cut short there, has its name still.
    """

    files: list[FileInfo]
    folders: list[str]
    stamp: Stamp | None = None
    settled: bool = False
    links: bool = False

    @classmethod
    def of(cls, files: list[FileInfo], folders: list[str], stamp: Stamp | None = None, begun_ns: int = 0) -> Folder:
        """By a listing that began at `begun_ns` (epoch), right after the stamp was taken."""
        links = any(file.link_target is not None for file in files)
        if stamp is None or links:
            return cls(files, folders, links=links)
        # What comes within a tick of the last change might leave the same time.
        return cls(files, folders, stamp, max(stamp.modified_ns, stamp.changed_ns) < begun_ns - TICK_NS)


def list_again(storage: Storage, path: str, last: Folder | None) -> Folder:
    """A folder's names now: `last` itself where its stamp shows that they are the same.

    Where they are not, a file is asked for its size when it is another one than before. Each is where `last` is None.
    """
    if not storage.capabilities.folder_times:
        return Folder.of(*_entries(*storage.list_folder(path), last))
    folder = storage.local_path(path)
    stamp, begun_ns = Stamp.of(folder), time.time_ns()
    if last is None or last.stamp is None or stamp is None:
        return Folder.of(*_entries(*storage.list_folder(path), last), stamp, begun_ns)
    if stamp == last.stamp and last.settled:
        return last
    found = _names_again(folder, f"{path}/" if path else "", last)
    if found is None:
        found = _entries(*storage.list_folder(path), last)
    return Folder.of(*found, stamp, begun_ns)


def _entries(files: list[FileInfo], folders: list[str], last: Folder | None) -> tuple[list[FileInfo], list[str]]:
    """A listing, with the entries of the last one where they are equal."""
    if last is None:
        return files, folders
    if files == last.files:
        return last.files, folders
    before = {file.path: file for file in last.files}
    return [before[file.path] if before.get(file.path) == file else file for file in files], folders


def _names_again(folder: str, prefix: str, last: Folder) -> tuple[list[FileInfo], list[str]] | None:
    """Files and folders; None where there are links among them, or the folder has gone.

    A listing says which inode each name has. With another one it is another file, as a backup puts one back.
    """
    there: dict[str, int | None] = {}  # None: a folder
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_symlink():
                    return None
                there[prefix + entry.name] = None if entry.is_dir(follow_symlinks=False) else entry.inode()
    except (FileNotFoundError, NotADirectoryError):
        return None
    files = [file for file in last.files if there.get(file.path) == file.inode]
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
    same = len(files) == len(last.files) and all(map(is_, files, last.files))
    return (last.files if same else files), sorted(path for path, inode in there.items() if inode is None)
