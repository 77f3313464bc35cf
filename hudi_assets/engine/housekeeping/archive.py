"""Archiving: old instants leave the active timeline for the archived one, so that it never grows without bound.

The order is: what must be remembered → base files that an archived commit does not name → the archived log file,
whole → the unfinished states of the archived instants → their completed files, oldest first. So an instant never
looks unfinished, the timeline never has a hole, and a crash leaves what the next run goes on with.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hudi_assets.engine.concurrency.lock import write_lock
from hudi_assets.engine.errors import UnsupportedTable
from hudi_assets.engine.housekeeping.archive_plan import Bounds, keep_of, plan_archive
from hudi_assets.engine.housekeeping.clean import refuse_unstated_writers
from hudi_assets.engine.housekeeping.clean_plan import earliest_to_retain, retention
from hudi_assets.engine.housekeeping.clean_state import inventory
from hudi_assets.engine.layout.seam import Layout
from hudi_assets.engine.model import Action, Instant, NothingToDo, State
from hudi_assets.engine.settings.compaction import TriggerName, parse_compaction_settings
from hudi_assets.engine.settings.config import TableConfig
from hudi_assets.engine.slices.missing import refuse_missing
from hudi_assets.engine.slices.orphans import remove_orphans
from hudi_assets.engine.state import TableState
from hudi_assets.engine.storage import Storage
from hudi_assets.engine.timeline.archived import archived_entry, encode_archive, newest_archived, next_archive_file
from hudi_assets.engine.timeline.instants import WRITES, format_instant
from hudi_assets.engine.timeline.publish import Publisher
from hudi_assets.engine.undo.recover import clean_up

_LOCK_WAIT_S = 30.0
_COUNTING = (
    TriggerName.NUM_COMMITS,
    TriggerName.NUM_COMMITS_AFTER_LAST_REQUEST,
    TriggerName.NUM_AND_TIME,
    TriggerName.NUM_OR_TIME,
)
_FOLDER = "hoodie.archivelog.folder"
_DEFAULT_FOLDER = "archived"
_ORDER = (State.REQUESTED, State.INFLIGHT, State.COMPLETED)


@dataclass(frozen=True, slots=True)
class ArchiveResult:
    """What was archived: the instants, oldest first, and the log file that holds them (None: an earlier one)."""

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
        self._refuse_other_folder()
        self.storage.check_writable()
        with write_lock(self.storage, self.config, wait_s=_LOCK_WAIT_S, action="archives") as held:
            clean_up(self.storage, self.layout, self.publisher, self._state())
            remove_orphans(self._state())
            state = self._state()
            refuse_missing(state)
            archived = newest_archived(self.storage)
            chosen = plan_archive(state.timeline, keep, self._bounds(state, archived))
            if isinstance(chosen, NothingToDo):
                return chosen
            files = self._files_of(chosen)
            # The whole memory, not only that of the chosen: what is written is replaced whole.
            state.remember()
            new = [i for i in files if (i.timestamp, i.action, i.state) not in archived]
            held.check()
            self._delete_strays(state, chosen)
            path = self._write(new) if new else None
            for instant in (*(i for i in files if not i.is_completed), *(i for i in files if i.is_completed)):
                self.storage.delete(f"{self.layout.timeline_folder}/{instant.file_name}")
            return ArchiveResult(tuple(i.timestamp for i in chosen), path)

    def _refuse_other_folder(self) -> None:
        folder = self.config.properties.get(_FOLDER) or _DEFAULT_FOLDER
        if folder != _DEFAULT_FOLDER:
            raise UnsupportedTable(f"{_FOLDER} is {folder!r}: only the default is supported.", where=self.storage.base)

    def _state(self) -> TableState:
        return TableState.read(self.storage, self.config, self.layout, self.publisher.now_ms)

    def _bounds(self, state: TableState, archived: Iterable[tuple[str, Action, State]]) -> Bounds:
        properties, where = self.config.properties, self.storage.base
        keep = retention(properties, None, None, where)
        cleaned = earliest_to_retain(state.timeline, keep, state.read_at_ms, self.config.timezone)
        compaction = parse_compaction_settings(properties, where)
        return Bounds(
            cleaned_from=cleaned.timestamp if cleaned else None,
            uncommitted=_uncommitted(state),
            replacing=frozenset(r for key, r in state.replaced.items() if key in state.view_with_replaced.groups),
            deltas=compaction.max_delta_commits if compaction.trigger in _COUNTING else 0,
            archived=frozenset((t, action) for t, action, stage in archived if stage is State.COMPLETED),
        )

    def _files_of(self, chosen: tuple[Instant, ...]) -> list[Instant]:
        """All states of the chosen instants that have a file, in order."""
        wanted = {(i.timestamp, _begun_as(i.action)) for i in chosen}
        listed = (self.layout.parse_instant(f.name) for f in self.storage.list_files(self.layout.timeline_folder))
        found = [i for i in listed if i is not None and (i.timestamp, _begun_as(i.action)) in wanted]
        return sorted(found, key=lambda i: (i.timestamp, _begun_as(i.action), _ORDER.index(i.state)))

    def _delete_strays(self, state: TableState, chosen: tuple[Instant, ...]) -> None:
        """Base files of task attempts that did not count: without the commit nothing tells them from the right one."""
        going = {i.timestamp: i for i in chosen if i.action in WRITES}
        groups = state.view_with_replaced.groups
        for (key, instant), paths in inventory(state).strays.items():
            named = {stat.path for stat in state.commit(going[instant]).stats} if instant in going else frozenset()
            right = next((s.base_file for s in groups.get(key, ()) if s.base_instant == instant), None)
            if right is not None and right.path in named:
                for path in paths:
                    self.storage.delete(path)

    def _write(self, instants: list[Instant]) -> str:
        entries = []
        for instant in instants:
            path = f"{self.layout.timeline_folder}/{instant.file_name}"
            changed = self.storage.modified_ms(path)
            at = format_instant(changed, self.config.timezone) if changed is not None else None
            entries.append(archived_entry(instant, self.storage.read(path), at, f"{self.storage.base}: {path}"))
        name = next_archive_file(self.storage)
        self.storage.create(name, encode_archive(entries))
        return name


def _begun_as(action: Action) -> Action:
    """A compaction completes as a commit, a clustering as a replacecommit (HoodieInstant.getComparableAction)."""
    same = {Action.COMPACTION: Action.COMMIT, Action.CLUSTERING: Action.REPLACE_COMMIT}
    return same.get(action, Action.DELTA_COMMIT if action is Action.LOG_COMPACTION else action)


def _uncommitted(state: TableState) -> frozenset[str]:
    """Instants of base files and slices that are not on the timeline, and not older than it."""
    known = {i.timestamp for i in state.timeline.instants}
    found = set()
    for partition, files in state.listing.items():
        for file in files:
            log, base = state.layout.parse_log_file(file, partition), state.layout.parse_base_file(file, partition)
            instant = state.slice_instant(log) if log else base.instant if base else None
            if instant is not None and instant not in known and not state.timeline.is_committed(instant):
                found.add(instant)
    return frozenset(found)
