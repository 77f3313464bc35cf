"""Archiving: old instants leave the active timeline for the archived one, so that it never grows without bound.

The order is: files that no commit lists (once the commits are gone, nothing tells them from the right ones) → what must
be remembered → the archive's new file, whole → the unfinished states of the archived instants → their completed files,
oldest first. So an instant never looks unfinished, the timeline never has a hole, and a crash leaves what the next run
goes on with.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass

from hudi_assets.engine.actions.archiving.checkpoints import last_checkpoints
from hudi_assets.engine.actions.archiving.metadata_table import archive_metadata_table
from hudi_assets.engine.actions.archiving.plan import Bounds, keep_of, plan_archive
from hudi_assets.engine.actions.cleaning.plan import earliest_to_retain, retention
from hudi_assets.engine.event_time.table_times import TableTimes
from hudi_assets.engine.model import Action, Instant, NothingToDo, State
from hudi_assets.engine.table.files.missing import refuse_missing
from hudi_assets.engine.table.files.orphans import remove_orphans
from hudi_assets.engine.table.files.strays import remove_strays
from hudi_assets.engine.table.metadata.own_timeline import OwnTimeline
from hudi_assets.engine.table.settings.compaction import TriggerName, parse_compaction_settings
from hudi_assets.engine.table.slices.parts import instant_of
from hudi_assets.engine.table.state import TableState
from hudi_assets.engine.timeline.archive.kind import Archive, TimelineFile
from hudi_assets.engine.timeline.instants import format_instant
from hudi_assets.engine.transaction.open_table import OpenTable
from hudi_assets.engine.transaction.transaction import transaction

_COUNTING = (
    TriggerName.NUM_COMMITS,
    TriggerName.NUM_COMMITS_AFTER_LAST_REQUEST,
    TriggerName.NUM_AND_TIME,
    TriggerName.NUM_OR_TIME,
)
_ORDER = (State.REQUESTED, State.INFLIGHT, State.COMPLETED)


@dataclass(frozen=True, slots=True)
class ArchiveResult:
    """What was archived: the instants, oldest first.

    `file` holds them, table-relative; None where an earlier archiving had written it.
    """

    instants: tuple[str, ...]
    file: str | None


@dataclass(frozen=True)
class Archiver:
    """Archives one table's timeline."""

    table: OpenTable

    @property
    def timeline_archive(self) -> Archive:
        return self.table.layout.archive(self.table.config.properties)

    def archive(self) -> ArchiveResult | NothingToDo:
        """Archive what the settings say; first finish what a crash left."""
        keep = keep_of(self.table.config.properties, self.table.path)
        self.timeline_archive.refuse_unknown(self.table.config.properties, self.table.path)
        with transaction(self.table, "archives", needs_stated_writers=True) as tx:
            remove_orphans(tx.read(), self.table.publisher.metadata_table)
            remove_strays(tx.read(), self.table.publisher.metadata_table)
            state = tx.read()
            refuse_missing(state)
            listed = self._files()
            archived = self.timeline_archive.archived(self.table.storage, listed)
            chosen = plan_archive(state.timeline, keep, self._bounds(state, listed, archived))
            if isinstance(chosen, NothingToDo):
                return chosen
            files = _files_of(listed, chosen)
            # The whole memory, not only that of the chosen: what is written is replaced whole.
            TableTimes(state).remember()
            new = [i for i in files if i.file_name not in archived]
            tx.check()
            path = self.timeline_archive.add(self.table.storage, [self._read(i) for i in new]) if new else None
            for instant in (*(i for i in files if not i.is_completed), *(i for i in files if i.is_completed)):
                self.table.storage.delete(f"{self.table.layout.timeline_folder}/{instant.file_name}")
            self.timeline_archive.settle(self.table.storage, self.table.config.properties)
            self._archive_metadata_table()
            return ArchiveResult(tuple(i.timestamp for i in chosen), path)

    def _files(self) -> list[Instant]:
        """Every file of the active timeline."""
        names = (f.name for f in self.table.storage.list_files(self.table.layout.timeline_folder))
        return [instant for instant in map(self.table.layout.parse_instant, names) if instant is not None]

    def _bounds(self, state: TableState, listed: Iterable[Instant], archived: Container[str]) -> Bounds:
        properties, where = self.table.config.properties, self.table.path
        keep = retention(properties, None, None, where)
        cleaned = earliest_to_retain(state.timeline, keep, state.read_at_ms, self.table.config.timezone)
        compaction = parse_compaction_settings(properties, where)
        return Bounds(
            cleaned_from=cleaned.timestamp if cleaned else None,
            uncommitted=_uncommitted(state) | self._taken_back(),
            replacing=frozenset(r for key, r in state.replaced.items() if key in state.view_with_replaced.groups),
            deltas=compaction.max_delta_commits if compaction.trigger in _COUNTING else 0,
            archived=frozenset((i.timestamp, i.action) for i in listed if i.is_completed and i.file_name in archived),
            metadata_compacted=self._metadata_compacted(),
            checkpoints=last_checkpoints(state),
        )

    def _taken_back(self) -> frozenset[str]:
        """Of what was taken back a log file may be given its name yet. On version 6 that does not tell its commit."""
        is_harmed = self.table.layout.late_requests_harm(self.table.storage.capabilities)
        return self.table.publisher.taken_back.gone() if is_harmed else frozenset()

    def _metadata_compacted(self) -> str | None:
        """The metadata table's last compaction ("": none yet); None where there is no metadata table."""
        if self.table.publisher.metadata_table is None:
            return None
        last = OwnTimeline.read(self.table.storage, self.table.layout).last_compaction
        return last.timestamp if last is not None else ""

    def _archive_metadata_table(self) -> None:
        if self.table.publisher.metadata_table is not None:
            start = self.table.read().timeline.start
            properties, timezone = self.table.config.properties, self.table.config.timezone
            archive_metadata_table(
                self.table.storage, self.table.layout, properties, data_start=start, timezone=timezone
            )

    def _read(self, instant: Instant) -> TimelineFile:
        path = f"{self.table.layout.timeline_folder}/{instant.file_name}"
        changed = self.table.storage.modified_ms(path)
        at = format_instant(changed, self.table.config.timezone) if changed is not None else None
        return TimelineFile(instant, self.table.storage.read(path), at, f"{self.table.path}: {path}")


def _files_of(listed: Iterable[Instant], chosen: tuple[Instant, ...]) -> list[Instant]:
    """All states of the chosen instants that have a file, in order."""
    wanted = {(i.timestamp, _begun_as(i.action)) for i in chosen}
    found = [i for i in listed if (i.timestamp, _begun_as(i.action)) in wanted]
    return sorted(found, key=lambda i: (i.timestamp, _begun_as(i.action), _ORDER.index(i.state)))


def _begun_as(action: Action) -> Action:
    """A compaction completes as a commit, a clustering as a replacecommit (HoodieInstant.getComparableAction)."""
    same = {Action.COMPACTION: Action.COMMIT, Action.CLUSTERING: Action.REPLACE_COMMIT}
    return same.get(action, Action.DELTA_COMMIT if action is Action.LOG_COMPACTION else action)


def _uncommitted(state: TableState) -> frozenset[str]:
    """Instants in the names of base and log files that are not on the timeline, and not older than it."""
    known = {i.timestamp for i in state.timeline.instants}
    found = {instant_of(file) for files in state.data_files.values() for file in files}
    return frozenset(i for i in found - known if not state.timeline.is_committed(i))
