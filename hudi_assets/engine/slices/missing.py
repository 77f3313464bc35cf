"""Files that the timeline says are there and are not: without them a query would answer less, and look right.

Apache Hudi reads on without a word. Here nothing is read, written, planned, cleaned or archived on a table that lacks
a file of its commits, and its freshness is null; rollback, restore and recover go on, to mend it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hudi_assets.engine.errors import CorruptTable
from hudi_assets.engine.model import BaseFile, Instant, LogFile
from hudi_assets.engine.slices.file_view import GroupKey
from hudi_assets.engine.state import TableState
from hudi_assets.engine.storage import FileInfo
from hudi_assets.engine.timeline.commit_metadata import WriteStat
from hudi_assets.engine.timeline.instants import WRITES

RESTORE_HINT = "Restore the file from a copy, or restore a savepoint."


@dataclass(frozen=True, slots=True)
class Missing:
    """A file of a slice that queries of now read: gone (`found` None), or `found` bytes short."""

    instant: Instant
    stat: WriteStat
    found: int | None

    @property
    def what(self) -> str:
        wrote = f"{self.instant.action} {self.instant.timestamp} wrote"
        if self.found is None:
            return f"{wrote} it, and it is gone."
        return f"It has {self.found} of the {self.stat.size} bytes that {wrote}."


def missing_files(state: TableState) -> Iterator[Missing]:
    """Files that a completed write on the active timeline names and that queries of now would read."""
    there = state.sizes
    lacking = [
        (instant, stat, file)
        for instant in state.timeline.completed(*WRITES)
        for stat in state.commit(instant).stats
        if (size := there.get(stat.path)) is None or size < stat.size
        if (file := parse_file(state, stat.path)) is not None
    ]
    # Most tables lack nothing, and nothing else is looked into there.
    newest = _newest_bases(state) if lacking else {}
    for instant, stat, file in lacking:
        key = (file.partition, file.file_id)
        slice_instant = state.slice_instant(file) if isinstance(file, LogFile) else file.instant
        if key not in state.replaced and slice_instant >= newest.get(key, ""):
            yield Missing(instant, stat, there.get(stat.path))


def refuse_missing(state: TableState) -> None:
    """Raise `CorruptTable`, naming the first missing file of the slices that are read now."""
    for one in missing_files(state):
        raise CorruptTable(
            f"A file of the table is missing or short: {one.what}",
            where=f"{state.storage.base}: {one.stat.path}",
            hint=f"If a clean ran meanwhile, ask again. {RESTORE_HINT}",
        )


def _newest_bases(state: TableState) -> dict[GroupKey, str]:
    """Per group the newest base file's instant, of those listed and those that a commit names."""
    listed = (f for files in state.data_files.values() for f in files if isinstance(f, BaseFile))
    there = (f for f in listed if state.timeline.is_committed(f.instant))
    stats = (stat for i in state.timeline.completed(*WRITES) for stat in state.commit(i).stats)
    written = (parse_file(state, stat.path) for stat in stats if stat.path.endswith(".parquet"))
    newest: dict[GroupKey, str] = {}
    for file in (*there, *written):
        if isinstance(file, BaseFile):
            key = (file.partition, file.file_id)
            newest[key] = max(newest.get(key, ""), file.instant)
    return newest


def parse_file(state: TableState, path: str) -> LogFile | BaseFile | None:
    """What a table-relative path names; None for neither a base nor a log file."""
    return state.layout.parse_file(FileInfo(path, 0), path.rpartition("/")[0])
