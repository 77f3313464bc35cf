"""Archiving: old instants leave the active timeline for the archived one, so that it never grows without bound.

The order is: files that no commit lists (once the commits are gone, nothing tells them from the right ones) → what must
be remembered → the archive's new file, whole → the unfinished states of the archived instants → their completed files,
oldest first. So an instant never looks unfinished, the timeline never has a hole, and a crash leaves what the next run
goes on with.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass

from hudi_assets.engine.actions.archiving.metadata_table import archive_metadata_table
from hudi_assets.engine.actions.archiving.plan import Bounds, keep_of, plan_archive
from hudi_assets.engine.actions.cleaning.clean import refuse_unstated_writers
from hudi_assets.engine.actions.cleaning.plan import earliest_to_retain, retention
from hudi_assets.engine.event_time.table_times import TableTimes
from hudi_assets.engine.model import Action, Instant, NothingToDo, State
from hudi_assets.engine.storage import Storage
from hudi_assets.engine.table.files.missing import refuse_missing
from hudi_assets.engine.table.files.orphans import instant_of, remove_orphans
from hudi_assets.engine.table.files.strays import remove_strays
from hudi_assets.engine.table.layout.seam import Layout
from hudi_assets.engine.table.metadata.own_timeline import OwnTimeline
from hudi_assets.engine.table.settings.compaction import TriggerName, parse_compaction_settings
from hudi_assets.engine.table.settings.config import TableConfig
from hudi_assets.engine.table.state import TableState
from hudi_assets.engine.timeline.archive.kind import TimelineFile
from hudi_assets.engine.timeline.instants import format_instant
from hudi_assets.engine.transaction.lock import write_lock
from hudi_assets.engine.transaction.publish import Publisher
from hudi_assets.engine.transaction.recover import clean_up

_LOCK_WAIT_S = 30.0
_COUNTING = (
    TriggerName.NUM_COMMITS,
    TriggerName.NUM_COMMITS_AFTER_LAST_REQUEST,
    TriggerName.NUM_AND_TIME,
    TriggerName.NUM_OR_TIME,
)
_ORDER = (State.REQUESTED, State.INFLIGHT, State.COMPLETED)


@dataclass(frozen=True, slots=True)
class ArchiveResult:
    """What was archived: the instants, oldest first, and the file that holds them (None: an earlier one)."""

    instants: tuple[str, ...]
    file: str | None


@dataclass(frozen=True)
class Archiver:
    """Archives one table's timeline."""

    storage: Storage
    config: TableConfig
    layout: Layout
    publisher: Publisher

    def archive(self) -> ArchiveResult | NothingToDo:
        """Archive what the settings say; first finish what a crash left."""
        keep = keep_of(self.config.properties, self.storage.base)
        refuse_unstated_writers(self.config, self.storage)
        self.layout.archive.refuse_unknown(self.config.properties, self.storage.base)
        self.storage.check_writable()
        with write_lock(self.storage, self.config, wait_s=_LOCK_WAIT_S, action="archives") as held:
            clean_up(self.storage, self.layout, self.publisher, self._state())
            remove_orphans(self._state(), self.publisher.metadata_table)
            remove_strays(self._state(), self.publisher.metadata_table)
            state = self._state()
            refuse_missing(state)
            listed = self._files()
            archived = self.layout.archive.archived(self.storage, listed)
            chosen = plan_archive(state.timeline, keep, self._bounds(state, listed, archived))
            if isinstance(chosen, NothingToDo):
                return chosen
            files = _files_of(listed, chosen)
            # The whole memory, not only that of the chosen: what is written is replaced whole.
            TableTimes(state).remember()
            new = [i for i in files if i.file_name not in archived]
            held.check()
            path = self.layout.archive.add(self.storage, [self._read(i) for i in new]) if new else None
            for instant in (*(i for i in files if not i.is_completed), *(i for i in files if i.is_completed)):
                self.storage.delete(f"{self.layout.timeline_folder}/{instant.file_name}")
            self.layout.archive.settle(self.storage, self.config.properties)
            self._archive_metadata_table()
            return ArchiveResult(tuple(i.timestamp for i in chosen), path)

    def _state(self) -> TableState:
        return TableState.read(self.storage, self.config, self.layout, self.publisher.now_ms)

    def _files(self) -> list[Instant]:
        """Every file of the active timeline."""
        names = (f.name for f in self.storage.list_files(self.layout.timeline_folder))
        return [instant for instant in map(self.layout.parse_instant, names) if instant is not None]

    def _bounds(self, state: TableState, listed: Iterable[Instant], archived: Container[str]) -> Bounds:
        properties, where = self.config.properties, self.storage.base
        keep = retention(properties, None, None, where)
        cleaned = earliest_to_retain(state.timeline, keep, state.read_at_ms, self.config.timezone)
        compaction = parse_compaction_settings(properties, where)
        return Bounds(
            cleaned_from=cleaned.timestamp if cleaned else None,
            uncommitted=_uncommitted(state),
            replacing=frozenset(r for key, r in state.replaced.items() if key in state.view_with_replaced.groups),
            deltas=compaction.max_delta_commits if compaction.trigger in _COUNTING else 0,
            archived=frozenset((i.timestamp, i.action) for i in listed if i.is_completed and i.file_name in archived),
            metadata_compacted=self._metadata_compacted(),
        )

    def _metadata_compacted(self) -> str | None:
        """The metadata table's last compaction ("": none yet); None where there is no metadata table."""
        if self.publisher.metadata_table is None:
            return None
        last = OwnTimeline.read(self.storage, self.layout).last_compaction
        return last.timestamp if last is not None else ""

    def _archive_metadata_table(self) -> None:
        if self.publisher.metadata_table is not None:
            start = self._state().timeline.start
            properties, timezone = self.config.properties, self.config.timezone
            archive_metadata_table(self.storage, self.layout, properties, data_start=start, timezone=timezone)

    def _read(self, instant: Instant) -> TimelineFile:
        path = f"{self.layout.timeline_folder}/{instant.file_name}"
        changed = self.storage.modified_ms(path)
        at = format_instant(changed, self.config.timezone) if changed is not None else None
        return TimelineFile(instant, self.storage.read(path), at, f"{self.storage.base}: {path}")


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
