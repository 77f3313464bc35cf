"""Undoing what a crash left. Whoever holds the write lock knows that no writer or planner of ours lives."""

from __future__ import annotations

from .commit_metadata import GUARDED, WRITER, CommitMetadata
from .config import TableConfig
from .file_view import Layout
from .lock import write_lock
from .model import Action, Instant
from .publish import TEMP, Publisher, marked_files
from .state import TableState
from .storage import Storage

_LOCK_WAIT_S = 60.0


def recover(storage: Storage, config: TableConfig, layout: Layout, publisher: Publisher) -> tuple[str, ...]:
    """Undo unfinished writes and unpublished plans of ours; what was done, a sentence each."""
    with write_lock(storage, config, wait_s=_LOCK_WAIT_S):
        state = TableState.read(storage, config, layout, publisher.now_ms)
        done = undo_dead_writes(storage, layout, publisher, state)
        done = (*done, *undo_unpublished_plans(storage, layout, publisher, state))
        return (*done, *forget_old_markers(storage, publisher, state))


def undo_dead_writes(storage: Storage, layout: Layout, publisher: Publisher, state: TableState) -> tuple[str, ...]:
    """Take back unfinished delta commits of ours: their log files by marker, then their instants.

    Call it under the write lock only. Another engine's unfinished write is left alone.
    """
    done = []
    for instant in state.timeline.pending(Action.DELTA_COMMIT):
        if _is_ours(storage, layout, instant):
            files = marked_files(storage, instant.timestamp)
            for path in files:
                storage.delete(path)
            publisher.withdraw_write(instant.timestamp)
            done.append(f"took back the unfinished write {instant.timestamp} ({len(files)} log files)")
    return tuple(done)


def _is_ours(storage: Storage, layout: Layout, instant: Instant) -> bool:
    path = layout.instant_path(instant.timestamp, Action.DELTA_COMMIT, instant.state)
    return WRITER in CommitMetadata.from_json(storage.read(path), path).extra


def undo_unpublished_plans(
    storage: Storage, layout: Layout, publisher: Publisher, state: TableState
) -> tuple[str, ...]:
    """Remove the links of a plan whose planner died before publishing it, then its guard."""
    done = []
    for plan in state.pending_plans:
        guarded = plan.extra_metadata.get(GUARDED)
        if guarded is None:
            continue
        links = 0
        if state.plan(guarded) is None:
            for files in state.listing.values():
                for file in files:
                    log = layout.parse_log_file(file, "")
                    if log is not None and log.base_instant == guarded:
                        links += storage.delete(file.path)
        publisher.withdraw_guard(plan.instant)
        done.append(f"removed the guard {plan.instant} and {links} links of the unpublished plan {guarded}")
    return tuple(done)


def forget_old_markers(storage: Storage, publisher: Publisher, state: TableState) -> tuple[str, ...]:
    """Remove the markers of completed instants, which a crash right after the commit leaves."""
    completed = {i.timestamp for i in state.timeline.instants if i.is_completed}
    done = []
    for folder in storage.list_directories(TEMP):
        instant = folder.rsplit("/", 1)[-1]
        if instant in completed:
            publisher.forget_markers(instant)
            done.append(f"removed the markers of the completed instant {instant}")
    return tuple(done)
