"""What commits state of event times, kept beyond their archiving beside the table."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Final, Protocol

from hudi_assets.engine.model import Instant
from hudi_assets.engine.model.column_unit import ColumnUnit
from hudi_assets.engine.table.files.hidden import all_hidden_files
from hudi_assets.engine.table.files.origins import origin_of
from hudi_assets.engine.table.slices.parts import few_at_once, remaining_of
from hudi_assets.engine.table.state import TableState
from hudi_assets.engine.timeline.archived_facts import (
    EventTimeMemory,
    HiddenMemory,
    LogMemory,
    Memory,
    newest_batches,
    stated_logs,
    write_memory,
)
from hudi_assets.engine.timeline.commit_metadata import BATCH_ID, WriteStat
from hudi_assets.engine.timeline.instants import WRITES

# A look that goes on from the last one leaves so many more for later.
_LOOKS_LEAVE: Final = 8


class Times(Protocol):
    """Event times of one reading of a table (`TableTimes`)."""

    @property
    def state(self) -> TableState: ...
    @property
    def unit(self) -> ColumnUnit: ...
    @property
    def tag(self) -> str: ...
    @property
    def stated_threshold(self) -> tuple[str, int] | None: ...


def archived_batches(state: TableState) -> Mapping[str, str]:
    """batch id → instant, of archived commits."""
    batches = state.archived_facts.memory.batches.items()
    return {batch: instant for batch, instant in batches if state.timeline.is_archived(instant)}


def remember(times: Times, newest: int) -> None:
    """Keep what the completed writes state, but for the `newest` ones."""
    state = times.state
    completed = state.timeline.completed(*WRITES)
    settled = completed[: max(0, len(completed) - newest)]
    if not settled:
        return
    remembered = state.reading.told.remembered
    fresh = [instant for instant in settled if instant.file_name not in remembered]
    if newest and remembered and _may_wait(state, fresh):
        return
    names = [instant.file_name for instant in settled]
    made_from = _made_from(times, settled)
    if made_from == state.archived_facts.made_from:
        remembered.update(names)
        return
    memory = state.archived_facts.memory.only(state.timeline.is_committed)
    batches = dict(memory.batches)
    for instant in settled:
        if batch := state.commit(instant).extra.get(BATCH_ID):
            batches[batch] = instant.timestamp
    columns = dict(memory.columns)
    if state.config.event_time_field is not None and times.unit.unit is not None:
        columns[times.tag] = _column_memory(times, settled, memory.of(times.tag))
    write_memory(state.storage, Memory(columns, newest_batches(batches), _origins(state), _hidden(state)), made_from)
    remembered.update(names)


def _may_wait(state: TableState, fresh: Sequence[Instant]) -> bool:
    """True where a later look can keep these: no archiver takes so new ones, unless somebody has it leave few.

    Then log files are read for what was forgotten. A batch that was forgotten would be written twice.
    """
    if len(fresh) > _LOOKS_LEAVE:
        return False
    return state.config.merging.ours or not any(state.commit(instant).extra.get(BATCH_ID) for instant in fresh)


def _made_from(times: Times, settled: Iterable[Instant]) -> str:
    """What a memory follows from: it stays the same while this does.

    The log files that remain change only with the timeline, or where somebody puts back what was lost.
    """
    state = times.state
    by_event_time = state.config.event_time_field is not None
    files = (state.timeline_files[i.file_name] for i in settled)
    commits = [(file.name, file.size, file.modified_ms) for file in files]
    stated = (times.tag, times.stated_threshold) if by_event_time else None
    hidden = [log.path for log in all_hidden_files(state)]
    facts = (commits, stated, hidden) if hidden else (commits, stated)
    return hashlib.sha256(repr(facts).encode()).hexdigest()


def _column_memory(times: Times, settled: tuple[Instant, ...], before: EventTimeMemory) -> EventTimeMemory:
    state = times.state
    hidden = [log.path for log in all_hidden_files(state)]
    commits = [(i.timestamp, state.commit(i)) for i in settled]
    logs: dict[str, LogMemory] = {}
    for parts in few_at_once(state.parts[partition] for partition in sorted(state.parts)):
        remaining = (path for log in remaining_of(parts) for path in (log.path, log.original))
        paths = dict.fromkeys(chain(remaining, hidden))
        logs |= {path: before.logs[path] for path in paths if path in before.logs}
        logs |= stated_logs(commits, times.tag, paths)
    stated = times.stated_threshold
    is_settled = stated is not None and stated[0] <= settled[-1].timestamp
    return EventTimeMemory(stated if is_settled else before.threshold, logs)


def _origins(state: TableState) -> dict[str, dict[str, str]]:
    """Compaction → carried-over log file → where its bytes first were written, of the log files that remain."""
    found: dict[str, dict[str, str]] = {}
    parts = [state.parts[partition] for partition in sorted(state.parts)]
    for log in remaining_of(parts) if state.layout.makes_links else ():
        if (origin := origin_of(state, log)) != log.path:
            found.setdefault(log.base_instant, {})[log.path] = origin
    return found


def _hidden(state: TableState) -> dict[str, HiddenMemory]:
    """Also what was written again: that is said by the settings of one process, and may be taken back."""
    return {
        file.path: HiddenMemory(
            file.delta_commit.timestamp,
            file.completion,
            file.stat.size,
            file.behind.timestamp,
            file.behind.action.value,
            file.stat.prev_commit,
        )
        for file in all_hidden_files(state)
    }


def remembered_stats(times: Times) -> dict[str, WriteStat]:
    """Write stats of archived commits of ours."""
    state = times.state
    oldest = state.archived_facts.oldest
    if not oldest or not state.timeline.is_archived(oldest):
        return {}
    return {
        path: _stat_of(path, log)
        for path, log in state.archived_facts.memory.of(times.tag).logs.items()
        if state.timeline.is_archived(log.instant)
    }


def _stat_of(path: str, log: LogMemory) -> WriteStat:
    return WriteStat(
        path=path,
        partition=path.rpartition("/")[0],
        file_id="",
        prev_commit="",
        size=log.size,
        num_deletes=log.deletes,
        min_event_time=log.min_event_time,
        max_event_time=log.max_event_time,
    )
