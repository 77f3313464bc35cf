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
        return clean_up(storage, layout, publisher, TableState.read(storage, config, layout, publisher.now_ms))


def clean_up(storage: Storage, layout: Layout, publisher: Publisher, state: TableState) -> tuple[str, ...]:
    """What every writer and planner does first, under the write lock."""
    return (
        *undo_dead_writes(storage, layout, publisher, state),
        *undo_unpublished_plans(storage, layout, publisher, state),
        *forget_old_markers(storage, publisher, state),
    )


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
    """Clean up after instants that are completed, or gone from the timeline.

    A crash right after a commit leaves its markers. A Spark task that outlives its failed job writes marked
    files after its instant was taken back: they would count once the timeline's start has passed it.
    """
    known = {i.timestamp: i for i in state.timeline.instants}
    done = []
    for folder in storage.list_directories(TEMP):
        instant = folder.rsplit("/", 1)[-1]
        if instant not in known:
            if storage.exists(f"{folder}/MARKERS.type"):
                continue  # another engine's
            for path in marked_files(storage, instant):
                storage.delete(path)
        elif not known[instant].is_completed:
            continue
        publisher.forget_markers(instant)
        done.append(f"removed what was left of the instant {instant}")
    return tuple(done)
