"""What the timeline says about cleans and savepoints, and what a cleaner has to know of the files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache

from hudi_assets.engine.model import Action, BaseFile, FileSlice, Instant, State
from hudi_assets.engine.model.files import GroupKey
from hudi_assets.engine.storage import Storage
from hudi_assets.engine.table.files.hidden import hidden_files
from hudi_assets.engine.table.files.needed import Inventory, SliceKey
from hudi_assets.engine.table.layout.names import slice_of_changes
from hudi_assets.engine.table.state import TableState
from hudi_assets.engine.timeline.clean_metadata import (
    CleanMetadata,
    PublishedClean,
    Savepoint,
    decode_clean,
    decode_clean_plan,
    decode_savepoint,
)
from hudi_assets.engine.timeline.compaction_plan import decode_plan
from hudi_assets.engine.timeline.whole_files import read_settled


@lru_cache(maxsize=1_000)
def _clean(storage: Storage, path: str, instant: str, size: int) -> CleanMetadata:
    del size  # a completed clean never changes, so a process reads each one once
    return read_settled(storage, path, lambda data: decode_clean(instant, data, f"{storage.base}: {path}"))


def read_cleans(state: TableState) -> tuple[CleanMetadata, ...]:
    """The completed cleans on the active timeline, oldest first. An empty file (Hudi leaves such) says nothing."""
    return tuple(
        _clean(state.storage, _path(state, i), i.timestamp, state.timeline_sizes[i.file_name])
        for i in state.timeline.completed(Action.CLEAN)
        if state.timeline_sizes.get(i.file_name)
    )


def read_pending_cleans(state: TableState) -> tuple[PublishedClean, ...]:
    """Cleans that were published and did not finish, oldest first."""
    found = []
    for instant in state.timeline.pending(Action.CLEAN):
        # Hudi writes the plan into both files.
        for stage in (State.REQUESTED, State.INFLIGHT):
            path = state.layout.instant_path(instant.timestamp, Action.CLEAN, stage)
            if state.timeline_sizes.get(path.rsplit("/", 1)[-1]):
                found.append(_pending(state.storage, path, instant.timestamp))
                break
    return tuple(found)


def _pending(storage: Storage, path: str, instant: str) -> PublishedClean:
    return read_settled(storage, path, lambda data: decode_clean_plan(instant, data, f"{storage.base}: {path}"))


def read_savepoints(state: TableState) -> tuple[Savepoint, ...]:
    """The completed savepoints, oldest first."""
    return tuple(
        _savepoint(state.storage, _path(state, i), i.timestamp) for i in state.timeline.completed(Action.SAVEPOINT)
    )


def _savepoint(storage: Storage, path: str, instant: str) -> Savepoint:
    return read_settled(storage, path, lambda data: decode_savepoint(instant, data, f"{storage.base}: {path}"))


def inventory(state: TableState) -> Inventory:
    """All file groups, and what binds a cleaner's hands."""
    groups = state.view_with_replaced.groups
    return Inventory(
        timeline=state.timeline,
        groups=groups,
        strays=_strays(state),
        replaced=state.replaced,
        compacting=_compacting(state),
        savepointed=frozenset(path for savepoint in read_savepoints(state) for path in savepoint.files),
        hidden=frozenset(file.path for file in hidden_files(state)),
        links={f.path: f.link_target for files in state.listing.values() for f in files if f.link_target},
        completions={i: state.completion_of(i) for i in {*_opening(groups), *state.replaced.values()}},
    )


def _opening(groups: Mapping[GroupKey, tuple[FileSlice, ...]]) -> Iterator[str]:
    return (slice_.base_instant for slices in groups.values() for slice_ in slices)


def _strays(state: TableState) -> dict[SliceKey, tuple[str, ...]]:
    """What goes with a slice and is no file of it.

    Base files of task attempts that did not count, beside the one that the commit names; links to nothing; change data.
    """
    named = {
        slice_.base_file.path
        for slices in state.view_with_replaced.groups.values()
        for slice_ in slices
        if slice_.base_file
    }
    found: dict[SliceKey, tuple[str, ...]] = {}
    for partition, files in state.data_files.items():
        for base in files:
            if isinstance(base, BaseFile) and base.path not in named and state.timeline.is_committed(base.instant):
                slot = ((partition, base.file_id), base.instant)
                found[slot] = (*found.get(slot, ()), base.path)
    for link in state.broken_links:
        log = state.layout.parse_log_file(link, link.path.rpartition("/")[0])
        if log is not None:
            slot = ((log.partition, log.file_id), state.slice_instant(log))
            found[slot] = (*found.get(slot, ()), log.path)
    for partition, listed in state.listing.items():
        for file in listed:
            if (beside := slice_of_changes(file.name)) is not None:
                slot = ((partition, beside[0]), beside[1])
                found[slot] = (*found.get(slot, ()), file.path)
    return found


def _compacting(state: TableState) -> dict[GroupKey, str]:
    """Base instant of the slice that a pending compaction or log compaction of a group reads."""
    plans = list(state.pending_plans)
    for instant in state.timeline.pending(Action.LOG_COMPACTION):
        path = state.layout.instant_path(instant.timestamp, Action.LOG_COMPACTION, State.REQUESTED)
        if state.timeline_sizes.get(path.rsplit("/", 1)[-1]):
            where = f"{state.storage.base}: {path}"
            plans.append(decode_plan(instant.timestamp, state.storage.read(path), where))
    found: dict[GroupKey, str] = {}
    for plan in plans:
        for op in plan.operations:
            key = (op.partition, op.file_id)
            found[key] = min(op.base_instant, found.get(key, op.base_instant))
    return found


def _path(state: TableState, instant: Instant) -> str:
    return f"{state.layout.timeline_folder}/{instant.file_name}"
