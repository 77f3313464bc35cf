"""What compactions took and gave."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set

from hudi_assets.engine.model import Action, Instant, PastCompaction, Plan, State
from hudi_assets.engine.table.state import TableState
from hudi_assets.engine.timeline.instants import WRITES, instant_ms


def past_compactions(state: TableState) -> Iterator[PastCompaction]:
    """Those of the active timeline, the one that was completed last first."""
    for instant in state.timeline.last_completed_first(Action.COMMIT):
        yield _past_compaction(state, instant)


def _past_compaction(state: TableState, instant: Instant) -> PastCompaction:
    commit = state.commit(instant)
    written = [stat for stat in commit.stats if stat.log_version is None and stat.path]
    plan = state.plan(instant.timestamp)
    threshold = commit.threshold
    if threshold is None and plan is not None:  # Apache Hudi may have executed our plan
        threshold = plan.claims
    stated = sum(stat.log_bytes_compacted for stat in written)
    return PastCompaction(
        instant=instant.timestamp,
        threshold=threshold,
        completed_ms=completed_ms(state, instant),
        duration_ms=_duration_ms(state, instant),
        file_groups=len(written),
        log_files=sum(stat.logs_compacted for stat in written),
        log_bytes=stated if (merged := _logs_read(state, plan)) is None else merged,
        base_bytes=_base_read(state, plan),
        bytes_written=sum(stat.size for stat in written),
        rows=sum(stat.num_writes for stat in written),
    )


def completed_ms(state: TableState, instant: Instant) -> int:
    """When a write was completed, epoch ms by the true clock."""
    if instant.completion is not None and state.zone_problem is None:
        return instant_ms(instant.completion, state.config.timezone)
    return state.timeline_files[instant.file_name].modified_ms


def _duration_ms(state: TableState, instant: Instant) -> int | None:
    begun = _written_ms(state, instant.timestamp, State.INFLIGHT)
    taken = None if begun is None else completed_ms(state, instant) - begun
    return taken if taken is not None and taken >= 0 else None


def pending_since(state: TableState) -> int | None:
    times = (_written_ms(state, plan.instant, State.REQUESTED) for plan in state.executable_plans)
    return min((time for time in times if time is not None), default=None)


def _written_ms(state: TableState, timestamp: str, stage: State) -> int | None:
    """When the file of a compaction's stage was written. The instant does not say: it may lie in the past."""
    path = state.layout.instant_path(timestamp, Action.COMPACTION, stage)
    file = state.timeline_files.get(path.rsplit("/", 1)[-1])
    return None if file is None else file.modified_ms


def _base_read(state: TableState, plan: Plan | None) -> int | None:
    """The bytes of the base files that a plan names; None where the size of one is forgotten."""
    return None if plan is None else _size_of(state, {_name(op.base_file) for op in plan.operations if op.base_file})


def _logs_read(state: TableState, plan: Plan | None) -> int | None:
    """The same of its log files. Write stats of Hudi 1.2.0 have another number as `totalLogSizeCompacted`."""
    return None if plan is None else _size_of(state, {_name(log) for op in plan.operations for log in op.log_files})


def file_size(state: TableState, path: str) -> int | None:
    """The bytes of a file that is there, or that a commit of the active timeline names."""
    return _size_of(state, {_name(path)})


def _size_of(state: TableState, names: Set[str]) -> int | None:
    known = state.derive(_sizes_there)
    if not known.keys() >= names:
        known = {**known, **state.derive(_sizes_stated)}
    return sum(known[name] for name in names) if known.keys() >= names else None


def _sizes_there(state: TableState) -> Mapping[str, int]:
    """Name → size of the base and log files that are there."""
    return {_name(path): size for path, size in state.sizes.items()}


def _sizes_stated(state: TableState) -> Mapping[str, int]:
    """Name → size of the files that commits of the active timeline name."""
    return {_name(stat.path): stat.size for i in state.timeline.completed(*WRITES) for stat in state.commit(i).stats}


def _name(path: str) -> str:
    return path.rsplit("/", 1)[-1]
