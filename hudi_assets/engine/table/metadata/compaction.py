"""The metadata table's own compaction: its log files folded into a new base file, where only we write.

Hudi does it before its next write, after ten delta commits (HoodieBackedTableMetadataWriter.compactIfNecessary),
and so do we: the archiver of the data table may not pass it. Column statistics are compacted with it: a writer's bloom
index may go by them, and 0.15.0 counts no log block of an archived instant. Where there are other indexes, only
Hudi writes, and compacts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import takewhile
from typing import Final

from hudi_assets.engine.format.hfile.file import write_hfile
from hudi_assets.engine.model import NO_THRESHOLD, Action, Operation, Plan, State
from hudi_assets.engine.model.settings import whole_number
from hudi_assets.engine.storage import Storage
from hudi_assets.engine.table.layout.interface import Layout
from hudi_assets.engine.table.layout.names import token_of_once
from hudi_assets.engine.table.metadata.column_stats import COLUMN_STATS, merged_stats
from hudi_assets.engine.table.metadata.own_timeline import ROOT, OwnInstant, OwnTimeline, own_path
from hudi_assets.engine.table.metadata.partitions import COMPLETED, INFLIGHT, named, table_properties
from hudi_assets.engine.table.metadata.reader import ValidInstants, merged_records, newest_schema
from hudi_assets.engine.table.metadata.record_schema import record_schema
from hudi_assets.engine.table.metadata.records import FilesRecord, encode
from hudi_assets.engine.table.metadata.slices import (
    FILES,
    FilesSlice,
    bases_of,
    files_slice,
    newest_slices,
    replaced_files,
)
from hudi_assets.engine.timeline.commit_metadata import SCHEMA, WRITER, CommitMetadata, WriteStat
from hudi_assets.engine.timeline.compaction_plan import decode_plan, encode_plan
from hudi_assets.engine.timeline.instants import Timeline

MAX_DELTA_COMMITS: Final = "hoodie.metadata.compact.max.delta.commits"
_DEFAULT: Final = 10
_MAY_BE_THERE: Final = {FILES, COLUMN_STATS}
_MB: Final = 1024 * 1024
_VERSIONS_KEPT: Final = 2


@dataclass(frozen=True)
class OwnCompaction:
    """Compacts the files partition, and column_stats. The caller holds the data table's write lock.

    `new_instant`: an instant of the metadata table's own, later than all. `data`: the data table's timeline.
    """

    storage: Storage
    layout: Layout
    data: Timeline
    new_instant: Callable[[], str]

    def keep_up(self) -> str | None:
        """Finish a compaction of ours that a crash left, or do the one that is due; its instant."""
        own = self._own()
        pending = [i.timestamp for i in own.unfinished if i.action == Action.COMPACTION]
        if pending:
            return self._execute(pending[0]) if self.is_ours(pending[0]) else None
        return self.compact() if self.is_due(own) else None

    def _own(self) -> OwnTimeline:
        return OwnTimeline.read(self.storage, self.layout)

    def is_ours(self, instant: str) -> bool:
        return self._plan(instant).is_ours

    def _plan(self, instant: str) -> Plan:
        path = own_path(self.layout, instant, Action.COMPACTION, State.REQUESTED)
        return decode_plan(instant, self.storage.read(path), f"{self.storage.base}: {path}")

    # -- when -------------------------------------------------------------------------------------

    def is_due(self, own: OwnTimeline) -> bool:
        return self.delta_commits(own) >= self._most() and self.can_compact(own)

    def delta_commits(self, own: OwnTimeline) -> int:
        """How many there are since the last compaction; of ours alone where another engine may be at work beside us.

        Then only the last ones count: it compacts its own.
        """
        last = own.last_compaction
        since = "" if last is None else last.timestamp
        later = [i for i in own.completed(Action.DELTA_COMMIT) if (i.completion or i.timestamp) > since]
        if not self.layout.metadata_has_other_writers:
            return len(later)
        newest_first = sorted(later, key=lambda i: i.completion or i.timestamp, reverse=True)
        return sum(1 for _ in takewhile(lambda i: is_ours(self.storage, self.layout, i), newest_first))

    def _most(self) -> int:
        properties = table_properties(self.storage)
        return whole_number(properties, MAX_DELTA_COMMITS, _DEFAULT, where=self.storage.base)

    def can_compact(self, own: OwnTimeline) -> bool:
        """No index that has to be compacted with it, and nothing to fold that may yet be taken back."""
        properties = table_properties(self.storage)
        if {*named(properties.get(COMPLETED))} - _MAY_BE_THERE or named(properties.get(INFLIGHT)):
            return False
        if any(i.action in (Action.COMPACTION, Action.LOG_COMPACTION) for i in own.unfinished):
            return False
        deltas = own.completed(Action.DELTA_COMMIT)
        known = {i.timestamp for i in deltas}
        done = {i.timestamp for i in self.data.instants if i.is_completed}
        pending = {i.timestamp for i in self.data.instants if not i.is_completed} - done
        return bool(known) and self.layout.metadata_compacts_beside(known, pending)

    # -- how --------------------------------------------------------------------------------------

    def compact(self) -> str:
        """Plan, publish and execute a compaction."""
        latest = max(i.timestamp for i in self._own().completed(Action.DELTA_COMMIT))
        instant = self.layout.metadata_compaction(latest, self.new_instant)
        # Read after the instant was taken: what completes from now on is in the new slice.
        own = self._own()
        slices = [slice_ for slice_ in self._slices(own) if slice_.partition == FILES or self._has_news(slice_, own)]
        plan = Plan(instant, NO_THRESHOLD, tuple(_operation(slice_) for slice_ in slices), "", {WRITER: WRITER})
        self.storage.create(own_path(self.layout, instant, Action.COMPACTION, State.REQUESTED), encode_plan(plan))
        return self._execute(instant)

    def _slices(self, own: OwnTimeline) -> list[FilesSlice]:
        """The newest slices of what is compacted."""
        used = COLUMN_STATS in named(table_properties(self.storage).get(COMPLETED))
        stats = newest_slices(self.storage, self.layout, own, COLUMN_STATS) if used else ()
        return [files_slice(self.storage, self.layout, own), *stats]

    def _has_news(self, slice_: FilesSlice, own: OwnTimeline) -> bool:
        """Log files to fold, and something left of it all: an HFile holds one record at least."""
        schema = newest_schema(self.storage, slice_)
        valid = ValidInstants(own, self.data)
        return bool(slice_.logs and schema and merged_stats(self.storage, slice_, valid, schema, ""))

    def _execute(self, instant: str) -> str:
        """From wherever an earlier attempt stopped: its base file counts for nothing yet."""
        inflight = own_path(self.layout, instant, Action.COMPACTION, State.INFLIGHT)
        if not self.storage.exists(inflight):
            self.storage.create(inflight, b"")
        own = self._own()
        planned = {(op.partition, op.file_id) for op in self._plan(instant).operations}
        opened = [slice_ for slice_ in self._slices(own) if (slice_.partition, slice_.file_id) in planned]
        slices = [slice_.older or slice_ for slice_ in opened]
        schemas = [
            newest_schema(self.storage, slice_) or record_schema(self.layout.metadata_flavour) for slice_ in slices
        ]
        stats = [self._write_base(instant, *one, own) for one in zip(slices, schemas, strict=True)]
        metadata = CommitMetadata("COMPACT", tuple(stats), {SCHEMA: schemas[0], WRITER: WRITER}, compacted=True)
        completion = self.new_instant() if self.layout.names_completion_times else None
        path = own_path(self.layout, instant, Action.COMPACTION, State.COMPLETED, completion)
        self.storage.create(path, self.layout.encode_commit(metadata))
        self._clean()
        return instant

    def _clean(self) -> None:
        """Delete the slices that are older than Hudi keeps here (KEEP_LATEST_FILE_VERSIONS, 2).

        Without an instant for it: that policy looks for what is there, and nobody asks when it went.
        """
        own = self._own()
        for slice_ in self._slices(own):
            group = slice_.partition, slice_.file_id
            for path in replaced_files(self.storage, self.layout, own, _VERSIONS_KEPT, *group):
                self.storage.delete(path)

    def _write_base(self, instant: str, slice_: FilesSlice, schema: str, own: OwnTimeline) -> WriteStat:
        valid = ValidInstants(own, self.data)
        name = f"{slice_.file_id}_{token_of_once()}_{instant}.hfile"
        if slice_.partition == FILES:
            records = merged_records(self.storage, slice_, valid)
            entries = [encode(_without_tombstones(r), schema, base_file=name) for _, r in sorted(records.items())]
        else:
            entries = merged_stats(self.storage, slice_, valid, schema, name)
        ends = {"minRecordKey": entries[0][0], "maxRecordKey": entries[-1][0]} if entries else {}
        content = write_hfile(entries, schema=schema, flavour=self.layout.metadata_flavour, info=ends)
        path = f"{slice_.folder}/{name}"
        for left in bases_of(self.storage, slice_, instant):
            self.storage.delete(left)
        self.storage.create(path, content)
        return WriteStat(
            path=path.removeprefix(f"{ROOT}/"),
            partition=slice_.partition,
            file_id=slice_.file_id,
            prev_commit=slice_.instant,
            size=len(content),
            num_writes=len(entries),
            num_updates=len(entries),
            logs_compacted=len(slice_.logs),
            log_bytes_compacted=sum(log.size for log in slice_.logs),
            log_blocks=len(slice_.logs),
        )


def is_ours(storage: Storage, layout: Layout, instant: OwnInstant) -> bool:
    """True where a delta commit's file says that this project wrote it."""
    try:
        content = storage.read(instant.path)
    except FileNotFoundError:
        return False  # another engine has just taken it back
    return WRITER in layout.decode_commit(content, f"{storage.base}: {instant.path}").extra


def _without_tombstones(record: FilesRecord) -> FilesRecord:
    """Below a base file there is nothing that they could remove."""
    return FilesRecord(record.key, {name: file for name, file in record.files.items() if not file.deleted})


def _operation(slice_: FilesSlice) -> Operation:
    """Hudi's own services execute it where we do not come to it: they need every metric."""
    logs = sum(log.size for log in slice_.logs)
    base = slice_.base.size if slice_.base else 0
    read, write = (logs + base) / _MB, (base or logs) / _MB
    metrics = {
        "TOTAL_LOG_FILES": float(len(slice_.logs)),
        "TOTAL_LOG_FILES_SIZE": float(logs),
        "TOTAL_IO_READ_MB": float(round(read)),
        "TOTAL_IO_WRITE_MB": float(round(write)),
        "TOTAL_IO_MB": float(round(read + write)),
    }
    return Operation(
        partition=slice_.partition,
        file_id=slice_.file_id,
        base_instant=slice_.instant,
        base_file=f"{slice_.partition}/{slice_.base.name}" if slice_.base else None,
        log_files=tuple(f"{slice_.partition}/{log.name}" for log in slice_.logs),
        carried_over=(),
        metrics=metrics,
    )
