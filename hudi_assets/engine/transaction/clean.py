"""Carrying out a published clean, and finishing what a crash left of cleans and savepoints.

The order is requested → inflight → delete → metadata table → completed. Whoever comes later can go on from any point:
the plan names the files, and a file that is gone already counts as deleted.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from dataclasses import dataclass

from hudi_assets.engine.model import Action, State
from hudi_assets.engine.model.cleans import CleanPlan
from hudi_assets.engine.storage import Storage
from hudi_assets.engine.table.files.cleaned import inventory, read_pending_cleans
from hudi_assets.engine.table.files.needed import Inventory, deletable, links_into, slice_files
from hudi_assets.engine.table.state import TableState
from hudi_assets.engine.timeline.clean_metadata import CleanMetadata, PublishedClean, encode_clean
from hudi_assets.engine.transaction.open_table import OpenTable

log = logging.getLogger(__name__)
SAVEPOINT_MARK = b'{"hudi_assets.writer": "hudi-assets"}'


@dataclass(frozen=True, slots=True)
class CleanResult:
    """A clean: the files that it deleted (would delete, where `instant` is None: a dry run), table-relative.

    `earliest_retained` is the oldest instant as of which everything can be read; None with
    KEEP_LATEST_FILE_VERSIONS, which promises no instant.
    """

    instant: str | None
    policy: str
    earliest_retained: str | None
    deleted: tuple[str, ...]
    bytes_deleted: int = 0


def execute_clean(table: OpenTable, state: TableState, clean: PublishedClean) -> CleanResult:
    """Delete what a published clean names, and complete it. Call it under the write lock.

    The table may have changed since the plan was made, so what is needed *now* is kept: the newest slices,
    savepoints, what a pending compaction reads.
    """
    storage, layout, publisher = table.storage, table.layout, table.publisher
    started = time.monotonic()
    requested, inflight = (
        layout.instant_path(clean.instant, Action.CLEAN, stage) for stage in (State.REQUESTED, State.INFLIGHT)
    )
    if not storage.exists(inflight):
        storage.create(inflight, storage.read(requested))
    found = inventory(state)
    deleted = _deletable(state, found, clean.plan)
    own_linked_files(storage, links_into(found, frozenset(deleted)))
    for file in deleted:
        storage.delete(file)
    for partition in clean.plan.files:
        if storage.is_directory(partition):
            storage.sync(partition)
    earliest = clean.plan.earliest_retained
    metadata = CleanMetadata(
        instant=clean.instant,
        policy=clean.plan.policy,
        earliest_retained=earliest.timestamp if earliest else "",
        last_completed=clean.plan.last_completed,
        deleted=deleted,
        milliseconds=round((time.monotonic() - started) * 1000),
        extra=clean.extra,
    )
    if publisher.completed_path(publisher.read_timeline(), clean.instant, Action.CLEAN) is None:
        if (metadata_table := publisher.metadata_table) is not None:
            metadata_table.record(clean.instant, {}, _names_by_partition(deleted))
        publisher.complete(clean.instant, Action.CLEAN, encode_clean(metadata))
    return CleanResult(
        clean.instant, clean.plan.policy, metadata.earliest_retained or None, deleted, size_of(state, deleted)
    )


def _names_by_partition(paths: Iterable[str]) -> dict[str, list[str]]:
    names: dict[str, list[str]] = {}
    for path in paths:
        partition, _, name = path.rpartition("/")
        names.setdefault(partition, []).append(name)
    return names


def size_of(state: TableState, paths: Iterable[str]) -> int:
    """Bytes of the files that were there in a reading of the table."""
    sizes = {file.path: file.size for files in state.listing.values() for file in files}
    return sum(sizes.get(path, 0) for path in paths)


def _deletable(state: TableState, found: Inventory, plan: CleanPlan) -> tuple[str, ...]:
    """The plan's files but those of slices that are needed now. What is gone already counts as deleted."""
    home = {
        path: (key, slice_.base_instant)
        for key, slices in found.groups.items()
        for slice_ in slices
        for path in (*slice_files(slice_), *found.strays.get((key, slice_.base_instant), ()))
    }
    planned = {home[path] for path in plan.paths if path in home}
    free = deletable(found, planned)
    listed = {file.path for files in state.listing.values() for file in files}
    return tuple(p for p in plan.paths if home.get(p) in free or (p not in home and p not in listed))


def own_linked_files(storage: Storage, links: Iterable[str]) -> None:
    """Put the file in the place of each symbolic link to it: its target is about to go."""
    for link in links:
        storage.own(link)


def finish_cleans(table: OpenTable, state: TableState) -> tuple[CleanResult, ...]:
    """Finish pending cleans: ours, and another engine's where the settings say that no other engine is at work."""
    return tuple(
        execute_clean(table, state, clean)
        for clean in read_pending_cleans(state)
        if clean.is_ours or table.config.writers == "stopped"
    )


def finish_pending(table: OpenTable, state: TableState) -> tuple[str, ...]:
    """What recovery does about cleans and savepoints, a sentence each. Call it under the write lock."""
    done = [f"finished the clean {c.instant} ({len(c.deleted)} files)" for c in finish_cleans(table, state)]
    return (*done, *withdraw_dead_savepoints(state))


def withdraw_dead_savepoints(state: TableState) -> tuple[str, ...]:
    """Take back savepoints of ours that were begun and not completed: they protect nothing yet."""
    done = []
    for instant in state.timeline.pending(Action.SAVEPOINT):
        path = state.layout.instant_path(instant.timestamp, Action.SAVEPOINT, State.INFLIGHT)
        if is_our_savepoint(state.storage, path):
            state.storage.delete(path)
            done.append(f"took back the unfinished savepoint {instant.timestamp}")
    return tuple(done)


def is_our_savepoint(storage: Storage, path: str) -> bool:
    """Hudi leaves a savepoint's inflight file empty; ours says whose it is."""
    return storage.exists(path) and storage.read(path) == SAVEPOINT_MARK
