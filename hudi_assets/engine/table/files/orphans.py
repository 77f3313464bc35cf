"""Files of instants that are on no timeline: carried-over log files whose plan is gone, for one.

They are invisible until Hudi's archiver has moved the timeline's start past them; from then on their slice counts
as committed, and hides the one below (tried with 0.15.0). So they are looked for, and removed while what
they show is still elsewhere.

Where a log file carries its own commit's instant, an orphan holds nothing that was ever committed: it is removed
whatever is in it, before it counts. So is a base file of a compaction that was withdrawn: its instant is a past one,
which the timeline's start passes soon.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from hudi_assets.engine.model import BaseFile, LogFile
from hudi_assets.engine.model.files import GroupKey
from hudi_assets.engine.storage import FileInfo, Storage
from hudi_assets.engine.table.metadata.writer import MetadataTable
from hudi_assets.engine.table.slices.parts import instant_of
from hudi_assets.engine.table.state import TableState
from hudi_assets.engine.timeline.instants import is_instant

_CHUNK = 1 << 20


@dataclass(frozen=True)
class Orphans:
    """The orphans of one reading of a table."""

    state: TableState

    @cached_property
    def _infos(self) -> dict[str, FileInfo]:
        return {file.path: file for files in self.state.listing.values() for file in files}

    @cached_property
    def files(self) -> tuple[LogFile | BaseFile, ...]:
        """Log and base files whose instant is not on the timeline, and not older than its start."""
        start = self.state.timeline.start or ""
        old = {i.timestamp for i in self.state.timeline.instants}
        instants = frozenset().union(*(part.instants for part in self.state.parts.values()))
        # Read the timeline again only where there are any.
        suspects = {i for i in instants - old if i >= start}
        orphaned = {i for i in suspects if i not in self._known}
        return tuple(f for f in _table_files(self.state) if instant_of(f) in orphaned) if orphaned else ()

    @cached_property
    def _known(self) -> frozenset[str]:
        """Instants on the timeline now: one that began after this reading may have files in the listing."""
        names = (f.name for f in self.state.storage.list_files(self.state.layout.timeline_folder))
        # Of actions that are not known here too.
        listed = (name.split(".")[0].split("_")[0] for name in names)
        return frozenset((*(i.timestamp for i in self.state.timeline.instants), *filter(is_instant, listed)))

    @cached_property
    def phantoms(self) -> tuple[tuple[LogFile, ...], ...]:
        """The log files of slices that only the timeline's start makes look committed.

        A slice above another one begins with a base file. One that has none, and whose instant is not on the timeline,
        is the orphan that the start has passed: it hides the slice below.
        """
        above = (one for part in self.state.parts.values() for one in part.baseless)
        return tuple(slice_.log_files for slice_ in above if slice_.base_instant not in self._known)

    @cached_property
    def passed(self) -> tuple[LogFile | BaseFile, ...]:
        """Files that count only because the timeline's start has passed an instant that was never completed.

        Known where the archived timeline has completion times, of the range that it covers. Reads the archive.
        """
        start = self.state.timeline.start
        archived = self.state.layout.archive(self.state.config.properties).completions(self.state.storage)
        if not archived or start is None:
            return ()
        first = min(archived)
        old = (f for f in _table_files(self.state) if first <= instant_of(f) < start)
        return tuple(f for f in old if instant_of(f) not in archived and instant_of(f) not in self._known)

    @cached_property
    def paths(self) -> tuple[str, ...]:
        """Every file that should not be where it is, in order."""
        return tuple(sorted({f.path for f in self.files} | {log.path for slice_ in self.phantoms for log in slice_}))

    @cached_property
    def removable(self) -> tuple[LogFile | BaseFile, ...]:
        """What can go: files that were never committed, log files that only show again what another one holds."""
        return self._shown_elsewhere if self.state.layout.orphans_may_hold_rows else self.files

    @cached_property
    def _shown_elsewhere(self) -> tuple[LogFile, ...]:
        suspects = [log for log in self.files if isinstance(log, LogFile)]
        suspects += [log for slice_ in self.phantoms for log in slice_]
        if not suspects:
            return ()
        paths = {log.path for log in suspects}
        rest: dict[GroupKey, list[LogFile]] = {}
        for file in _table_files(self.state):
            if isinstance(file, LogFile) and file.path not in paths:
                rest.setdefault((file.partition, file.file_id), []).append(file)
        shown = {log.path for log in suspects if self._is_shown(log, rest.get((log.partition, log.file_id), []))}
        # A slice that somebody has appended to holds rows that are nowhere else: it stays whole.
        kept = {log.path for slice_ in self.phantoms if any(g.path not in shown for g in slice_) for log in slice_}
        return tuple(log for log in suspects if log.path in shown - kept)

    def _is_shown(self, log: LogFile, others: list[LogFile]) -> bool:
        info = self._infos[log.path]
        for other in others:
            same = self._infos[other.path]
            if info.link_target == other.path or (info.inode is not None and info.inode == same.inode):
                return True
            if same_bytes(self.state.storage, info, same):
                return True
        return False


def same_bytes(storage: Storage, one: FileInfo, other: FileInfo) -> bool:
    """True where two files hold the same bytes; reads them only where their sizes are equal."""
    if one.size != other.size:
        return False
    with storage.open(one.path) as left, storage.open(other.path) as right:
        while True:
            a, b = left.read(_CHUNK), right.read(_CHUNK)
            if a != b:
                return False
            if not a:
                return True


def _table_files(state: TableState) -> Iterator[LogFile | BaseFile]:
    return (file for files in state.data_files.values() for file in files)


def remove_orphans(state: TableState, metadata_table: MetadataTable | None) -> tuple[str, ...]:
    """Delete what is removable; what was done, a sentence. Call it under the write lock only."""
    orphans = Orphans(state).removable
    if metadata_table is not None and orphans:
        metadata_table.forget([file.path for file in orphans])
    for file in orphans:
        state.storage.delete(file.path)
    if not orphans:
        return ()
    instants = ", ".join(sorted({instant_of(file) for file in orphans}))
    if state.layout.orphans_may_hold_rows:
        return (f"removed {len(orphans)} carried-over log files of {instants}, which has no plan",)
    return (f"removed {len(orphans)} files of {instants}, which was never completed",)
