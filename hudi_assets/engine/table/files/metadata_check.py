"""The metadata table against the files: what readers that believe it would miss, or look for in vain."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from hudi_assets.engine.model import Action
from hudi_assets.engine.table.files.orphans import Orphans
from hudi_assets.engine.table.metadata.partitions import has_metadata_table
from hudi_assets.engine.table.metadata.reader import FilesState, read_files
from hudi_assets.engine.table.state import TableState

# What Hudi's rollbacks list log files with (HoodieTableMetadataUtil); its readers do not go by it (tried with 0.15.0).
_SIZE_UNKNOWN: Final = 1


def differences(state: TableState) -> Iterator[tuple[str, str]]:
    """(table-relative path, what is wrong), for the files that the newest slices need. Reads only."""
    if not has_metadata_table(state.storage):
        return
    known = read_files(state.storage, state.layout, state.timeline)
    for path, size in _needed(state):
        listed = _size_in(known, path)
        if listed is None:
            yield path, "The metadata table does not list it: its readers do not see it."
        elif listed != size and not (listed == _SIZE_UNKNOWN and _is_log(path)):
            yield path, f"The metadata table says that it has {listed} bytes, it has {size}."
    if not state.timeline.pending(Action.CLEAN, Action.ROLLBACK, Action.RESTORE):
        yield from _gone(state, known)


def _needed(state: TableState) -> Iterator[tuple[str, int]]:
    """Base and log files that a snapshot reads; log files only where their commit is completed.

    Not files of an instant that is on no timeline: they are found as orphans, and should not be listed.
    """
    pending = {i.timestamp for i in state.timeline.inflight_writes}
    orphans = set(Orphans(state).paths)
    for slice_ in state.view.latest:
        if slice_.base_file is not None:
            yield slice_.base_file.path, slice_.base_file.size
        for log in slice_.log_files:
            # Beside an unfinished write, a log file may be that write's: it is listed with its commit.
            if not pending and log.path not in orphans:
                yield log.path, log.size


def _is_log(path: str) -> bool:
    return path.rpartition("/")[2].startswith(".")


def _size_in(known: FilesState, path: str) -> int | None:
    partition, _, name = path.rpartition("/")
    return known.files(partition).get(name)


def _gone(state: TableState, known: FilesState) -> Iterator[tuple[str, str]]:
    there = {file.path for files in state.listing.values() for file in files}
    for partition, files in known.listing.items():
        for name in files:
            path = f"{partition}/{name}" if partition else name
            if path not in there and not state.storage.exists(path):
                yield path, "The metadata table lists it, and it is not there."
