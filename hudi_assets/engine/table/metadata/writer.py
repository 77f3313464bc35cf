"""Writing the metadata table (`.hoodie/metadata`): its files partition says which files the data table has.

The order is Hudi's (HoodieBackedTableMetadataWriter): the delta commit of the same instant is completed in the metadata
table *before* the instant is completed in the data table. While the instant is pending there, no reader counts what
the metadata table says of it, so both become visible at once. After a crash in between, the metadata table's
delta commit has to go before the instant leaves the data table's timeline: from then on it would count
(Hudi 1.2.0 takes any completed one whose instant is not pending).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from hudi_assets.engine.errors import Conflict, LockLost, UnsupportedTable
from hudi_assets.engine.format.hfile.file import Entry, write_hfile
from hudi_assets.engine.format.log_file.codec import BlockType, HeaderKey, encode_block
from hudi_assets.engine.model import Action, FileSlice, LogFile, State
from hudi_assets.engine.storage import Storage
from hudi_assets.engine.table.layout.interface import Layout
from hudi_assets.engine.table.layout.names import token_of_once
from hudi_assets.engine.table.log_files.headers import log_headers
from hudi_assets.engine.table.metadata.column_stats import ColumnStatsIndex
from hudi_assets.engine.table.metadata.compaction import OwnCompaction, is_ours
from hudi_assets.engine.table.metadata.own_timeline import ROOT, OwnInstant, OwnTimeline, own_path
from hudi_assets.engine.table.metadata.partitions import has_metadata_table
from hudi_assets.engine.table.metadata.reader import ValidInstants, merged_records, newest_schema, read_files
from hudi_assets.engine.table.metadata.record_schema import record_schema
from hudi_assets.engine.table.metadata.records import (
    FilesRecord,
    encode,
    encode_row,
    partition_files,
    partition_key,
    partition_list,
    partition_path,
)
from hudi_assets.engine.table.metadata.slices import FilesSlice, all_logs, files_slice
from hudi_assets.engine.timeline.clock import next_instant
from hudi_assets.engine.timeline.commit_metadata import SCHEMA, WRITER, CommitMetadata, WriteStat
from hudi_assets.engine.timeline.instants import Timeline, latest_states

WRITER_NAME: Final = "hudi-assets"
Added = Mapping[str, Mapping[str, int]]
"""Partition → name → size in bytes. The partition of a table without partitions is ""."""
Deleted = Mapping[str, Collection[str]]
"""Partition → names."""
_EMPTY: Final[dict[str, int]] = {}
_NOTHING: Final[dict[str, tuple[str, ...]]] = {}
_WRITES: Final = (Action.DELTA_COMMIT, Action.COMPACTION, Action.LOG_COMPACTION)


@dataclass(frozen=True, slots=True)
class _Part:
    """What a delta commit writes into one file group."""

    slice_: FilesSlice
    entries: list[Entry]
    schema: str


@dataclass(frozen=True)
class MetadataTable:
    """The metadata table of one data table. The caller holds the data table's write lock."""

    storage: Storage
    layout: Layout
    now_ms: Callable[[], int]
    timezone: str = "UTC"

    @classmethod
    def of(
        cls, storage: Storage, layout: Layout, now_ms: Callable[[], int], timezone: str = "UTC"
    ) -> MetadataTable | None:
        """The table's metadata table as it stands now; None where it has none."""
        return cls(storage, layout, now_ms, timezone) if has_metadata_table(storage) else None

    # -- one change -------------------------------------------------------------------------------

    def record(self, instant: str, added: Added, deleted: Deleted = _NOTHING) -> None:
        """Write the delta commit of a data table's instant that is about to be completed.

        What an earlier attempt at the same instant left is removed first. `Conflict` where another engine's work on
        the metadata table is unfinished, or where it has written this instant.
        """
        own = self._own()
        self._refuse_foreign(own, instant)
        self.tidy()
        self.take_back(instant)
        self._compaction.keep_up()
        added, deleted = self._new_in((added, deleted))
        own = self._own()
        schema = newest_schema(self.storage, files_slice(self.storage, self.layout, own)) or record_schema(
            self.layout.metadata_flavour
        )
        # Before anything is written: what it refuses leaves nothing behind.
        parts = [
            self._files_part(own, _records(added, deleted), schema),
            *self._stats_parts(own, added, deleted, schema),
        ]
        stats = [self._stat(part.slice_, self._new_log(part.slice_, instant), len(part.entries)) for part in parts]
        begun = CommitMetadata("UPSERT_PREPPED", tuple(stats), {WRITER: WRITER_NAME})
        for state in (State.REQUESTED, State.INFLIGHT):
            # Java leaves the first one empty and reads neither; ours say whose they are.
            path_of = own_path(self.layout, instant, Action.DELTA_COMMIT, state)
            self.storage.create(path_of, self.layout.encode_commit(begun))
        sized = []
        for part, stat in zip(parts, stats, strict=True):
            block = self._block(instant, part.entries, part.schema)
            self._create(f"{ROOT}/{stat.path}", block)
            sized.append(stat._replace(size=len(block)))
        self._complete(own, instant, sized, schema)

    def _files_part(self, own: OwnTimeline, records: Iterable[FilesRecord], schema: str) -> _Part:
        entries = [encode(record, schema) for record in records]
        return _Part(files_slice(self.storage, self.layout, own), entries, schema)

    def _stats_parts(self, own: OwnTimeline, added: Added, deleted: Deleted, schema: str) -> list[_Part]:
        """The column statistics of base files that come, and of files that go."""
        valid = ValidInstants(own, self._data_timeline())
        index = ColumnStatsIndex.of(self.storage, self.layout, own, valid)
        if index is None:
            return []
        parts = []
        for slice_, rows in index.changes(added, deleted).items():
            own_schema = newest_schema(self.storage, slice_) or schema
            parts.append(_Part(slice_, [encode_row(key, row, own_schema) for key, row in rows], own_schema))
        return parts

    def check_free(self) -> None:
        """Raise `Conflict` where another engine's work on the metadata table is unfinished."""
        self._refuse_foreign(self._own(), "")

    def _new_in(self, changes: tuple[Added, Deleted]) -> tuple[Added, Deleted]:
        """The changes without what is listed so already.

        Readers merge log blocks among themselves and then onto the base file (HoodieMetadataPayload): of a
        name that came twice and went once, the base file's mention stays. So each name is mentioned once; and one that
        is free again, but still in the base file, needs a base file without it.
        """
        added, deleted = changes
        own, data = self._own(), self._data_timeline()
        slice_ = files_slice(self.storage, self.layout, own)
        valid = ValidInstants(own, data)
        keys = frozenset(partition_key(partition) for partition in (*added, *deleted))
        now = _listed(merged_records(self.storage, slice_, valid, keys))
        below = _listed(merged_records(self.storage, replace(slice_.older or slice_, logs=()), valid, keys))
        for partition, files in added.items():
            freed = below.get(partition, _EMPTY).keys() - now.get(partition, _EMPTY).keys()
            if again := sorted(freed & files.keys()):
                self._compact_for(f"{partition}/{again[0]}".lstrip("/"))
                break
        new = {
            p: {name: size for name, size in files.items() if now.get(p, _EMPTY).get(name) != size}
            for p, files in added.items()
        }
        return new, {p: [name for name in names if name in now.get(p, _EMPTY)] for p, names in deleted.items()}

    def _compact_for(self, path: str) -> None:
        if not self._compaction.can_compact(self._own()):
            raise Conflict(
                f"The metadata table's base file still lists {path}, a name that was used before.",
                where=self.storage.base,
                hint="Let Hudi write and compact its metadata table first, or switch its indexes off.",
            )
        self._compaction.compact()

    def _own(self) -> OwnTimeline:
        return OwnTimeline.read(self.storage, self.layout)

    def _refuse_foreign(self, own: OwnTimeline, instant: str) -> None:
        """What another engine left unfinished may hide what we would write behind it; and an instant has one writer."""
        for other in own.unfinished if self.layout.metadata_ends_at_unfinished else ():
            if other.action in _WRITES and not self._is_ours(own, other):
                raise Conflict(
                    f"{other.action} {other.timestamp} of the metadata table is another engine's and unfinished.",
                    where=self.storage.base,
                    hint="Let that engine go on, or roll its write back: by HudiTable.rollback where it is stopped.",
                )
        begun = own.of(instant, Action.DELTA_COMMIT)
        if begun and not self._is_ours(own, begun[0]):
            raise Conflict(
                f"Another engine has written {instant} into the metadata table.",
                where=self.storage.base,
                hint="Let it complete the instant, or roll the instant back.",
            )

    @property
    def _compaction(self) -> OwnCompaction:
        return OwnCompaction(self.storage, self.layout, self._data_timeline(), self._new_instant)

    def _is_ours(self, own: OwnTimeline, instant: OwnInstant) -> bool:
        if instant.action == Action.COMPACTION:
            return self._compaction.is_ours(instant.timestamp)
        files = own.of(instant.timestamp, Action.DELTA_COMMIT)
        return any(is_ours(self.storage, self.layout, file) for file in files)

    def _new_log(self, slice_: FilesSlice, instant: str) -> str:
        shown = FileSlice(slice_.partition, slice_.file_id, slice_.instant, None, slice_.logs)
        named, version = self.layout.new_log(shown, instant)
        return f"{slice_.folder}/{self.layout.log_file_name(slice_.file_id, named, version, token_of_once())}"

    def _stat(self, slice_: FilesSlice, path: str, records: int) -> WriteStat:
        name = path.rsplit("/", 1)[-1]
        return WriteStat(
            path=f"{slice_.partition}/{name}",
            partition=slice_.partition,
            file_id=slice_.file_id,
            prev_commit=slice_.instant,
            size=0,
            num_writes=records,
            num_updates=records,
            log_version=int(name.rsplit(".log.", 1)[1].split("_")[0]),
            base_file=slice_.base.name if slice_.base else "",
            log_files=(*(log.name for log in slice_.logs), name),
        )

    def _block(self, instant: str, entries: Sequence[Entry], schema: str) -> bytes:
        content = write_hfile(entries, schema=schema, flavour=self.layout.metadata_flavour)
        header = {HeaderKey.INSTANT_TIME: instant, HeaderKey.SCHEMA: schema}
        return encode_block(BlockType.HFILE_DATA, header, content)

    def _complete(self, own: OwnTimeline, instant: str, stats: Sequence[WriteStat], schema: str) -> None:
        metadata = CommitMetadata("UPSERT_PREPPED", tuple(stats), {SCHEMA: schema, WRITER: WRITER_NAME})
        completion = self._later_than(own.latest) if self.layout.names_completion_times else None
        path = own_path(self.layout, instant, Action.DELTA_COMMIT, State.COMPLETED, completion)
        self._create(path, self.layout.encode_commit(metadata))

    def _create(self, path: str, data: bytes) -> None:
        """One that arrives after the lock was lost goes: its instant fails.

        Unless another process has made its own: on version 6 a delta commit's file has the same name then.
        """
        try:
            self.storage.create(path, data)
        except LockLost:
            if self._says(path, data):
                self.storage.take_back(path)
            raise

    def _says(self, path: str, data: bytes) -> bool:
        try:
            return self.storage.read(path) == data
        except FileNotFoundError:
            return False

    def _later_than(self, last: str | None) -> str:
        # What the metadata table is told belongs to an instant of the data table: no reason to refuse of its own.
        return next_instant(last, self.now_ms, self.timezone, f"{self.storage.base}/{ROOT}", completes=True)

    def tidy(self) -> tuple[str, ...]:
        """Take back what a crash left of delta commits of ours, and finish a compaction; a sentence each."""
        own = self._own()
        done = []
        for other in own.unfinished:
            if other.action in _WRITES and self._is_ours(own, other):
                if other.action == Action.COMPACTION:
                    self._compaction.keep_up()
                    done.append(f"finished compaction {other.timestamp} of the metadata table")
                else:
                    self.take_back(other.timestamp)
                    done.append(f"took {other.timestamp} back from the metadata table")
        return tuple(done)

    # -- taking back ------------------------------------------------------------------------------

    def undo(self, instant: str, files: Collection[str]) -> None:
        """Take an instant of the data table out: it is pending there, or about to be no longer completed.

        `files`: table-relative paths of the data files that go with it. Can be done again.
        """
        self.take_back(instant)
        self.forget(files)

    def take_back(self, instant: str) -> None:
        """Remove an instant's delta commit with its log files, unless a compaction has merged it already."""
        own = self._own()
        begun = own.of(instant, Action.DELTA_COMMIT)
        if not begun or own.has_merged(begun[0]):
            return
        logs = [log for log in all_logs(self.storage) if instant in self._blocks_of(log)]
        for log in logs:
            if self._blocks_of(log) != {instant}:
                raise UnsupportedTable(
                    "A log file of the metadata table holds several delta commits.",
                    where=f"{self.storage.base}: {log.path}",
                    hint="Roll the instant back with the engine that wrote it.",
                )
        for file in (i for i in begun if i.is_completed):
            self.storage.delete(file.path)
        for log in logs:
            self.storage.delete(log.path)
        order = {State.INFLIGHT: 0, State.REQUESTED: 1}
        for file in sorted((i for i in begun if not i.is_completed), key=lambda i: order[i.state]):
            self.storage.delete(file.path)

    def _blocks_of(self, log: LogFile) -> set[str]:
        blocks = log_headers(self.storage, log.path, log.size)
        return {block.instant_time for block in blocks if block.instant_time}

    def forget(self, files: Collection[str]) -> None:
        """List files no longer, at once: by a delta commit of an instant that the data table does not have."""
        listed = read_files(self.storage, self.layout, self._data_timeline())
        gone: dict[str, list[str]] = {}
        for path in sorted(files):
            partition, _, name = path.rpartition("/")
            if name in listed.files(partition):
                gone.setdefault(partition, []).append(name)
        if gone:
            self.record(self.instant_at_once(), {}, gone)

    def show(self, instant: str, added: Added) -> None:
        """List files at once, by a delta commit named after an instant of the data table."""
        self.record(self.layout.metadata_at_once(instant), added)

    def instant_at_once(self) -> str:
        """An instant of the metadata table's own, which counts as soon as it is completed there."""
        return self.layout.metadata_at_once(self._new_instant())

    def _new_instant(self) -> str:
        """Later than all on both timelines, and none that the data table could come to have."""
        newest = max(self._own().latest or "", self._data_timeline().last or "")[:17]
        instant = self._later_than(newest)
        self._later_than(instant)
        return instant

    def _data_timeline(self) -> Timeline:
        listing = self.storage.list_files(self.layout.timeline_folder)
        return Timeline(latest_states(i for i in map(self.layout.parse_instant, (f.name for f in listing)) if i))


def _listed(records: Mapping[str, FilesRecord]) -> dict[str, dict[str, int]]:
    """Partition → name → size of what is there."""
    return {partition_path(key): record.present for key, record in records.items()}


def _records(added: Added, deleted: Deleted) -> list[FilesRecord]:
    """One record per partition that changes, and the list of the partitions that get files."""
    partitions = sorted({*added, *deleted})
    # A commit without files is a commit too: an HFile holds one record at least.
    records = [partition_list(sorted(added))] if added or not any(deleted.values()) else []
    changes = (partition_files(p, added.get(p, {}), deleted.get(p, ())) for p in partitions)
    return records + [change for change in changes if change.files]


def files_by_partition(stats: Iterable[WriteStat]) -> dict[str, dict[str, int]]:
    """The files that write stats name, with their sizes, as `record` takes them."""
    found: dict[str, dict[str, int]] = {}
    for stat in stats:
        partition, _, name = stat.path.rpartition("/")
        found.setdefault(partition, {})[name] = stat.size
    return found
