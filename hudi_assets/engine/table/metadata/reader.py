"""Which files the data table has, as its metadata table says: its slices, the blocks that count, and their merge.

The metadata table is a merge-on-read table of its own below `.hoodie/metadata`, each of its partitions an index:
base files are HFiles, log files hold HFile blocks. It is written before the data table's instant completes,
so its completed delta commits do not count while that is pending (HoodieTableMetadataUtil.getValidInstantTimestamps).
"""

from __future__ import annotations

import logging
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Final

from hudi_assets.engine.errors import CorruptTable, UnsupportedTable
from hudi_assets.engine.format.hfile.file import Entry, HFile, HFileReader, read_hfile
from hudi_assets.engine.format.log_file.codec import (
    BlockType,
    HeaderKey,
    LogBlock,
    decode_deletes,
    read_blocks,
    read_headers,
)
from hudi_assets.engine.model import Action, LogFile
from hudi_assets.engine.storage import Storage
from hudi_assets.engine.table.layout.interface import Layout
from hudi_assets.engine.table.metadata import records
from hudi_assets.engine.table.metadata.own_timeline import OwnTimeline
from hudi_assets.engine.table.metadata.records import PARTITION_LIST_KEY, FilesRecord
from hudi_assets.engine.table.metadata.slices import FilesSlice, OwnBase, files_slice
from hudi_assets.engine.timeline.instants import Timeline

log = logging.getLogger(__name__)

_BUILD_ANEW: Final = (
    "Switch the metadata table off by one write of Hudi's with hoodie.metadata.enable=false: it builds a new one later."
)
_WRITES: Final = (Action.DELTA_COMMIT, Action.COMMIT, Action.REPLACE_COMMIT)


# ---------------------------------------------------------------------------------------------- instants


@dataclass(frozen=True)
class ValidInstants:
    """Which instants' files and blocks of the metadata table count.

    Of its own timeline: completed writes, and what lies before its start. Of these, not what belongs to an
    instant of the data table that is pending: the writer died, or is just between the two commits.
    """

    own: OwnTimeline
    data: Timeline

    def __contains__(self, timestamp: str) -> bool:
        return self.is_committed(timestamp) and timestamp not in self._pending

    def is_committed(self, timestamp: str) -> bool:
        """True for an instant that is completed on the metadata table's own timeline, or was archived there."""
        return timestamp in self._completed or (self._start is not None and timestamp < self._start)

    @cached_property
    def _completed(self) -> frozenset[str]:
        return frozenset(i.timestamp for i in self.own.completed(*_WRITES))

    @cached_property
    def _start(self) -> str | None:
        writes = (*_WRITES, Action.COMPACTION, Action.LOG_COMPACTION)
        return min((i.timestamp for i in self.own.files if i.action in writes), default=None)

    @cached_property
    def _pending(self) -> frozenset[str]:
        # A savepoint has its commit's time: one that is pending says nothing of the commit.
        done = {i.timestamp for i in self.data.instants if i.is_completed}
        return frozenset(i.timestamp for i in self.data.instants if not i.is_completed) - done


# ------------------------------------------------------------------------------------------------ blocks


@dataclass(frozen=True)
class SchemaEntries:
    """Entries of one base file or log block, with the Avro schema of their values."""

    schema: str
    entries: tuple[Entry, ...]


def base_entries(storage: Storage, base: OwnBase | None) -> SchemaEntries | None:
    """What a base file holds; None if there is none yet."""
    if base is None:
        return None
    try:
        return _with_schema(read_hfile(storage.read(base.path)), None)
    except (CorruptTable, UnsupportedTable) as error:
        raise _at(error, storage, base.path) from error


def log_entries(storage: Storage, logs: Iterable[LogFile], valid: ValidInstants) -> list[SchemaEntries]:
    """What the log blocks that count hold, in log order."""
    found: list[tuple[str, SchemaEntries]] = []
    for log_file in logs:
        try:
            for block in read_blocks(storage.read(log_file.path)):
                if block.type is BlockType.COMMAND:
                    found = [pair for pair in found if pair[0] != block.target_instant_time]
                elif not _is_torn(block, log_file.path) and block.instant_time in valid:
                    found += [(block.instant_time, entries) for entries in _block_entries(block)]
        except (CorruptTable, UnsupportedTable) as error:
            raise _at(error, storage, log_file.path) from error
    return [entries for _, entries in found]


def newest_schema(storage: Storage, slice_: FilesSlice) -> str | None:
    """The records' Avro schema in what was written last; None where nothing was.

    To write on with: hudi-rs refuses a slice whose files have schemas of two Hudi releases.
    """
    for part in (slice_, slice_.older):
        if part is None:
            continue
        for log_file in reversed(part.logs):
            blocks = read_headers(partial(storage.read_at, log_file.path), log_file.size)
            schemas = [block.schema for block in blocks if block.type is BlockType.HFILE_DATA and block.schema]
            if schemas:
                return schemas[-1]
        if part.base is not None:
            return HFileReader(partial(storage.read_at, part.base.path), part.base.size).schema
    return None


def _is_torn(block: LogBlock, path: str) -> bool:
    """A write that was cut off is passed over; a whole block that cannot be read is damage."""
    if not block.is_corrupt:
        return False
    if block.framed:
        raise CorruptTable(f"The log block at byte {block.offset} is whole but cannot be read: {block.problem}.")
    log.warning("%s: skipped a corrupt block: %s", path, block.problem)
    return True


def _block_entries(block: LogBlock) -> Iterator[SchemaEntries]:
    if block.header.get(HeaderKey.COMPACTED_BLOCK_TIMES):
        raise UnsupportedTable(
            "A log block of the metadata table was written by log compaction, which is not supported.",
            hint="Let Hudi compact its metadata table, with hoodie.metadata.log.compaction.enable=false.",
        )
    if block.type is BlockType.HFILE_DATA:
        yield _with_schema(read_hfile(block.content), block.schema)
    elif block.type is BlockType.DELETE:
        # The first log file of a file group has one without deletes.
        if decode_deletes(block.content):
            raise UnsupportedTable("The metadata table has deletes in a log file, which are not supported there.")
    else:
        raise UnsupportedTable(f"The metadata table has a log block of type {block.type.name}, which is not supported.")


def _with_schema(file: HFile, header: str | None) -> SchemaEntries:
    schema = header or file.schema
    if schema is None:
        raise CorruptTable("The HFile has no schema.")
    return SchemaEntries(schema, file.entries)


def _at(error: CorruptTable | UnsupportedTable, storage: Storage, path: str) -> CorruptTable | UnsupportedTable:
    return type(error)(
        error.what,
        where=error.where or f"{storage.base}: {path}",
        hint=error.hint or _BUILD_ANEW,
    )


# ----------------------------------------------------------------------------------- the files partition


@dataclass(frozen=True)
class FilesState:
    """What the files partition says: its merged records by key, and the slice that they were read from."""

    records: Mapping[str, FilesRecord]
    slice_: FilesSlice

    @property
    def partitions(self) -> tuple[str, ...]:
        """The data table's partitions as paths: "" of a table without."""
        listed = self.records.get(PARTITION_LIST_KEY)
        return tuple(sorted(records.partition_path(key) for key in listed.present)) if listed else ()

    def files(self, partition: str) -> dict[str, int]:
        """Name → size of the files of a partition (path)."""
        record = self.records.get(records.partition_key(partition))
        return record.present if record else {}

    @property
    def listing(self) -> dict[str, dict[str, int]]:
        """Partition (path) → file name → size."""
        return {partition: self.files(partition) for partition in self.partitions}


def read_files(storage: Storage, layout: Layout, data: Timeline, own: OwnTimeline | None = None) -> FilesState:
    """The data table's files as its metadata table lists them, as of the two timelines.

    CorruptTable where it cannot be read; UnsupportedTable for blocks of kinds that are not handled.
    """
    own = own or OwnTimeline.read(storage, layout)
    slice_ = files_slice(storage, layout, own)
    return FilesState(merged_records(storage, slice_, ValidInstants(own, data)), slice_)


def merged_records(
    storage: Storage, slice_: FilesSlice, valid: ValidInstants, keys: Container[str] | None = None
) -> dict[str, FilesRecord]:
    """The records of a slice, base file and log blocks merged; with those of the slice that a pending one is on.

    `keys`: those that are wanted, others are not decoded; None: all.
    """
    try:
        return _merged_records(storage, slice_, valid, keys)
    except (CorruptTable, UnsupportedTable) as error:
        raise _at(error, storage, slice_.folder) from error


def _merged_records(
    storage: Storage, slice_: FilesSlice, valid: ValidInstants, keys: Container[str] | None
) -> dict[str, FilesRecord]:
    base, logs = slice_.base, slice_.logs
    if slice_.older is not None:
        base, logs = slice_.older.base, (*slice_.older.logs, *logs)
    below = base_entries(storage, base)
    listed = {record.key: record for record in _decoded(below, keys)} if below else {}
    changes: dict[str, list[FilesRecord]] = {}
    for entries in log_entries(storage, logs, valid):
        for record in _decoded(entries, keys):
            changes.setdefault(record.key, []).append(record)
    merged = {key: records.merge(listed.get(key), changes.get(key, [])) for key in listed.keys() | changes.keys()}
    return {key: record for key, record in sorted(merged.items()) if record is not None}


def _decoded(found: SchemaEntries, keys: Container[str] | None) -> Iterator[FilesRecord]:
    wanted = (e for e in found.entries if keys is None or str(e[0], "utf-8", "replace") in keys)
    return (records.decode(entry, found.schema) for entry in wanted)
