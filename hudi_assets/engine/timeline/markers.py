"""Markers: the files that an instant means to write, named before they are made.

A rollback takes back what they name (org.apache.hudi.table.marker: DirectWriteMarkers, and the lists of
TimelineServerBasedWriteMarkers).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Final

from hudi_assets.engine.storage import Storage

TEMP: Final = ".hoodie/.temp"


def marker_path(instant: str, path: str, kind: str) -> str:
    """A direct marker (org.apache.hudi.table.marker.DirectWriteMarkers): kind is CREATE or APPEND."""
    return f"{TEMP}/{instant}/{path}.marker.{kind}"


def marked_files(storage: Storage, instant: str) -> list[str]:
    """Table-relative paths of the files that an instant's direct markers name."""
    root = f"{TEMP}/{instant}"
    names = (os.path.relpath(path, root) for path in _below(storage, root))
    return [name.rsplit(".marker.", 1)[0] for name in names if ".marker." in name]


def _below(storage: Storage, directory: str) -> Iterator[str]:
    files, folders = storage.list_folder(directory)
    yield from (file.path for file in files)
    for folder in folders:
        yield from _below(storage, folder)


def all_marked_files(storage: Storage, instant: str) -> list[str]:
    """Table-relative paths that an instant's markers name: one file each, or Hudi's lists (MARKERS0, …)."""
    lines = [
        line.strip()
        for file in storage.list_files(f"{TEMP}/{instant}")
        if file.name.startswith("MARKERS") and file.name != "MARKERS.type"
        for line in storage.read(file.path).decode("utf-8", "replace").splitlines()
    ]
    listed = [line.rsplit(".marker.", 1)[0] for line in lines if ".marker." in line]
    inside = [path for path in listed if not path.startswith("/") and ".." not in path.split("/")]
    return [*marked_files(storage, instant), *inside]


def unfinished_files(storage: Storage, is_committed: Callable[[str], bool]) -> Iterator[str]:
    """Table-relative paths that the markers of instants name which are not committed: markers may outlive a commit."""
    for folder in storage.list_directories(TEMP):
        instant = folder.rpartition("/")[2]
        if not is_committed(instant):
            yield from all_marked_files(storage, instant)
