"""Recovering from what a crash left: what was begun is finished, or undone.

Whoever holds the write lock knows that no writer or planner of ours lives, or that it can change nothing any more
(`lease`). Each transaction begins with this.
"""

from __future__ import annotations

from hudi_assets.engine.model import Action, State
from hudi_assets.engine.model.units import DAY_MS
from hudi_assets.engine.storage import SCRATCH, Storage
from hudi_assets.engine.table.files.strays import Strays
from hudi_assets.engine.table.state import TableState
from hudi_assets.engine.timeline.attempts import staged_instants
from hudi_assets.engine.timeline.commit_metadata import GUARDED
from hudi_assets.engine.timeline.markers import TEMP, marked_files
from hudi_assets.engine.transaction.heartbeat import Heartbeats
from hudi_assets.engine.transaction.lease import has_leases
from hudi_assets.engine.transaction.open_table import OpenTable
from hudi_assets.engine.transaction.publish import Publisher
from hudi_assets.engine.transaction.restore import finish_restores
from hudi_assets.engine.transaction.rollback import finish_rollbacks
from hudi_assets.engine.transaction.rollback_plan import appended_logs, block_instants, is_ours
from hudi_assets.engine.transaction.taken_back import Note

_LOCK_WAIT_S = 60.0
_SCRATCH_MS = DAY_MS  # a file is written in less than a day


def recover_dead_work(table: OpenTable, state: TableState, *, spare: str = "") -> tuple[str, ...]:
    """What everybody who changes the table does first, under the write lock; `spare` is an unfinished write to keep.

    Raises `Conflict` where a rollback or restore of another engine is unfinished.
    """
    finished = finish_rollbacks(table, state)
    finished += finish_restores(table, state)
    if finished:
        state = table.read()
    return (
        *finished,
        *undo_dead_writes(table, state, spare=spare),
        *undo_unpublished_plans(table, state),
        *tidy_metadata_table(table.publisher),
        *forget_old_markers(table),
        *forget_dead_heartbeats(table, state),
        *forget_scratch(table.storage, table.publisher),
    )


def undo_dead_writes(table: OpenTable, state: TableState, *, spare: str = "") -> tuple[str, ...]:
    """Take back unfinished delta commits of ours: their log files by marker, then their instants.

    Call it under the write lock only. Another engine's unfinished write is left alone. So is one of ours that gives
    signs of life although its lease has ended: a clock that is wrong is no death.
    """
    storage, publisher = table.storage, table.publisher
    beats = Heartbeats.of(storage, table.config, table.now_ms) if has_leases(storage) else None
    done = []
    for instant in state.timeline.pending(Action.DELTA_COMMIT):
        if beats is not None and beats.is_alive(instant.timestamp):
            continue
        if instant.timestamp != spare and is_ours(state, instant):
            files = marked_files(storage, instant.timestamp)
            publisher.taken_back.add(instant.timestamp, Note(whole=True, data=frozenset(files)))
            if (metadata_table := publisher.metadata_table) is not None:
                # First: once the instant is gone from the timeline, what is recorded of it would count.
                metadata_table.undo(instant.timestamp, files)
            for path in files:
                storage.delete(path)
            publisher.withdraw_write(instant.timestamp)
            if beats is not None:
                publisher.withdraw_late(instant.timestamp, Action.DELTA_COMMIT)
            done.append(f"took back the unfinished write {instant.timestamp} ({len(files)} log files)")
    return tuple(done)


def undo_unpublished_plans(table: OpenTable, state: TableState) -> tuple[str, ...]:
    """Remove the links of a plan whose planner died before publishing it, then its guard."""
    storage, publisher = table.storage, table.publisher
    done = []
    for plan in state.pending_plans:
        guarded = plan.extra_metadata.get(GUARDED)
        if guarded is None:
            continue
        links = 0
        withdrawn = _is_withdrawn(state, plan.instant, guarded)
        if withdrawn:
            # Its requests may be under way yet, and writers append to the slice of a plan that they see.
            for stage in (State.INFLIGHT, State.REQUESTED):
                storage.delete(state.layout.instant_path(guarded, Action.COMPACTION, stage))
            done.append(f"withdrew the plan {guarded}, as was begun")
        if withdrawn or (state.plan(guarded) is None and not state.timeline.is_committed(guarded)):
            paths = _links_of(state, guarded)
            if (metadata_table := publisher.metadata_table) is not None:
                metadata_table.forget(paths)
            links = sum(storage.delete(path) for path in paths)
        publisher.withdraw_guard(plan.instant)
        done.append(f"removed the guard {plan.instant} and {links} links of the unpublished plan {guarded}")
    return tuple(done)


def _is_withdrawn(state: TableState, guard: str, guarded: str) -> bool:
    """In a bucket, version 6: did whoever made the guard want to delete this plan? Not where rows came to its slice."""
    if guard == guarded or not state.layout.late_requests_harm(state.storage.capabilities):
        return False
    plan = next((one for one in state.executable_plans if one.instant == guarded), None)
    if plan is None:
        return False
    logs = appended_logs(state, plan)
    return not any(i in state.committed for log in logs for i in block_instants(state.storage, log))


def tidy_metadata_table(publisher: Publisher) -> tuple[str, ...]:
    """Undo what a dead process of ours began in the metadata table."""
    table = publisher.metadata_table
    return () if table is None else table.tidy()


def _links_of(state: TableState, instant: str) -> list[str]:
    """The log files of the slices that a plan at an instant would have opened."""
    files = (file for listed in state.listing.values() for file in listed)
    logs = (state.layout.parse_log_file(file, "") for file in files)
    return [log.path for log in logs if log is not None and log.base_instant == instant]


def forget_old_markers(table: OpenTable) -> tuple[str, ...]:
    """Clean up after instants that are completed, or gone from the timeline.

    A crash right after a commit leaves its markers. A Spark task that outlives its job leaves markers, and staged files
    (of an earlier release: the marked files), of an instant that is completed or was taken back: a marked file would
    count, or come to count once the timeline's start has passed it.
    """
    storage = table.storage
    found = {*(folder.rpartition("/")[2] for folder in storage.list_directories(TEMP)), *staged_instants(storage)}
    # Read after the folders: another engine's write, begun meanwhile, is on the timeline before it marks.
    state = table.read()
    timeline, strays = state.timeline, Strays(state)
    known = {i.timestamp: i for i in timeline.instants}
    done = []
    for instant in sorted(found):
        if timeline.is_committed(instant):
            # Archived meanwhile, it may be: then its files are the table's.
            for path in strays.marked(instant):
                storage.delete(path)
        elif instant not in known:
            if storage.exists(f"{TEMP}/{instant}/MARKERS.type"):
                continue  # another engine's
            for path in marked_files(storage, instant):
                storage.delete(path)
        elif not known[instant].is_completed:
            continue
        table.publisher.forget_markers(instant)
        done.append(f"removed what was left of the instant {instant}")
    return tuple(done)


def forget_dead_heartbeats(table: OpenTable, state: TableState) -> tuple[str, ...]:
    """Remove the heartbeats that dead writers and executors left."""
    completed = frozenset(i.timestamp for i in state.timeline.instants if i.is_completed)
    unfinished = frozenset(i.timestamp for i in state.timeline.instants if not i.is_completed)
    beats = Heartbeats.of(table.storage, table.config, table.now_ms)
    return tuple(f"removed the heartbeat of {instant}" for instant in beats.forget_dead(completed, unfinished))


def forget_scratch(storage: Storage, publisher: Publisher) -> tuple[str, ...]:
    """Remove what a killed process left of a file that it had not put in its place yet. Executors may be at work."""
    old = publisher.now_ms() - _SCRATCH_MS
    found = storage.list_files(f"{SCRATCH}/tmp")
    # A stream's file is hidden beside the one that it becomes: the holder's of a lock.
    found += (file for file in storage.list_files(SCRATCH) if file.name.startswith(".") and file.name.endswith(".tmp"))
    dead = [file.path for file in found if file.modified_ms < old]
    return tuple(f"removed the unfinished file {path}" for path in dead if storage.delete(path))
