"""What a rollback takes out of the table: whole files where they hold nothing else, blocks otherwise.

Where Hudi looks for it too (MarkerBasedRollbackStrategy, ListingBasedRollbackStrategy of 0.15): the write stats of a
completed instant, the markers of an unfinished one, and every file that carries the instant in its name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from hudi_assets.engine.errors import UnsupportedTable
from hudi_assets.engine.model import Action, BaseFile, Instant, LogFile, Plan
from hudi_assets.engine.storage import FileInfo, Storage
from hudi_assets.engine.table.layout.interface import Layout
from hudi_assets.engine.table.log_files.headers import log_headers
from hudi_assets.engine.table.state import TableState
from hudi_assets.engine.timeline import compaction_plan
from hudi_assets.engine.timeline.commit_metadata import WRITER
from hudi_assets.engine.timeline.markers import all_marked_files
from hudi_assets.engine.timeline.rollback_metadata import InstantInfo, RollbackPlan, RollbackRequest
from hudi_assets.engine.timeline.whole_files import read_settled


def is_ours(state: TableState, instant: Instant) -> bool:
    """True where an unfinished write's own file says that this project began it."""
    path = f"{state.layout.timeline_folder}/{instant.file_name}"
    begun = read_settled(state.storage, path, lambda data: state.layout.decode_commit(data, path), may_be_empty=True)
    return WRITER in begun.extra


def plan_write_rollback(state: TableState, target: Instant) -> RollbackPlan:
    """The rollback of a delta commit, or of a replacecommit: its files go, or its blocks are taken back."""
    if target.action is Action.LOG_COMPACTION:
        raise UnsupportedTable("Log compactions cannot be rolled back.", where=f"{state.storage.base} {target}")
    wanted = _named(state, target) | {f.path for f in files_of_slice(state, target.timestamp)}
    foreign = not target.is_completed and (target.action is not Action.DELTA_COMMIT or not is_ours(state, target))
    if foreign:
        # Another engine's markers may be gone with its machine: its blocks are still there.
        wanted |= {log.path for log in _logs(state) if target.timestamp in block_instants(state.storage, log)}
    return RollbackPlan(InstantInfo(target.timestamp, target.action), tuple(_requests(state, target.timestamp, wanted)))


def plan_attempt_rollback(state: TableState, target: Instant, plan: Plan) -> RollbackPlan:
    """The rollback of a compaction's attempt: its base files and residue logs. The plan's links stay."""
    groups = {(op.partition, op.file_id) for op in plan.operations}
    residue = residue_paths(state, plan)
    wanted = set()
    for file in files_of_slice(state, target.timestamp):
        parsed = _parsed(state.layout, file)
        own = isinstance(parsed, BaseFile) or file.path in residue
        if own and parsed is not None and (parsed.partition, parsed.file_id) in groups:
            wanted.add(file.path)
    return RollbackPlan(InstantInfo(target.timestamp, Action.COMPACTION), tuple(_as_requests(state, wanted)))


def residue_paths(state: TableState, plan: Plan) -> frozenset[str]:
    """Where an execution of the plan leaves residue logs, if it does."""
    return compaction_plan.residue_paths(plan, state.layout.log_file_name)


def plan_compaction_rollback(state: TableState, target: Instant) -> RollbackPlan:
    """The rollback of a compaction, plan and all: every file of the slices that it opened.

    Only for a compaction that no later write depends on: what else is in its slices was taken back before.
    """
    action = Action.COMMIT if target.is_completed else Action.COMPACTION
    wanted = {file.path for file in files_of_slice(state, target.timestamp)}
    return RollbackPlan(InstantInfo(target.timestamp, action), tuple(_as_requests(state, wanted)))


# ---------------------------------------------------------------------------------------- finding files


def _named(state: TableState, target: Instant) -> set[str]:
    if not target.is_completed:
        return set(all_marked_files(state.storage, target.timestamp))
    # A base file's stat of an update names the new base file; its instant is checked by what it holds.
    return {stat.path for stat in state.commit(target).stats if stat.path}


def files_of_slice(state: TableState, instant: str) -> Iterator[FileInfo]:
    """Base and log files that carry the instant in their names."""
    for partition, files in state.listing.items():
        for file in files:
            log = state.layout.parse_log_file(file, partition)
            base = state.layout.parse_base_file(file, partition) if log is None else None
            if (log and log.base_instant == instant) or (base and base.instant == instant):
                yield file


def appended_logs(state: TableState, plan: Plan) -> Iterator[LogFile]:
    """Log files in a pending compaction's slices that are neither its links nor its residue."""
    own = {carried.link for op in plan.operations for carried in op.carried_over} | residue_paths(state, plan)
    for file in files_of_slice(state, plan.instant):
        log = state.layout.parse_log_file(file, file.path.rpartition("/")[0])
        if log is not None and log.path not in own:
            yield log


def _logs(state: TableState) -> Iterator[LogFile]:
    for files in state.data_files.values():
        yield from (file for file in files if isinstance(file, LogFile))


def _parsed(layout: Layout, file: FileInfo) -> LogFile | BaseFile | None:
    partition = file.path.rpartition("/")[0]
    return layout.parse_log_file(file, partition) or layout.parse_base_file(file, partition)


def block_instants(storage: Storage, log: LogFile) -> frozenset[str]:
    """The instants whose blocks a log file holds; a rollback block counts for its target. Reads headers only."""
    found = set()
    for block in log_headers(storage, log.path, log.size):
        if block.is_corrupt:
            continue
        instant = block.target_instant_time if block.command is not None else block.instant_time
        if instant:
            found.add(instant)
    return frozenset(found)


# ------------------------------------------------------------------------------------- making requests


def _requests(state: TableState, instant: str, wanted: Iterable[str]) -> Iterator[RollbackRequest]:
    """Requests for files that exist; a log file that holds other instants' blocks too stays."""
    shared: list[LogFile] = []
    whole: set[str] = set()
    infos = {file.path: file for files in state.listing.values() for file in files}
    for path in wanted:
        if path not in infos:
            continue
        parsed = _parsed(state.layout, infos[path])
        if isinstance(parsed, LogFile):
            others = block_instants(state.storage, parsed) - {instant}
            if others and parsed.base_instant != instant:
                shared.append(parsed)
            else:
                whole.add(path)
        elif parsed is not None and parsed.instant == instant:
            whole.add(path)
    yield from _as_requests(state, whole)
    slices = sorted(shared, key=lambda log: (log.partition, log.file_id, log.base_instant, log.order))
    for key, logs in groupby(slices, key=lambda log: (log.partition, log.file_id, log.base_instant)):
        partition, file_id, base = key
        yield RollbackRequest(partition, file_id, base, log_blocks={log.path: log.size for log in logs})


def _as_requests(state: TableState, paths: Iterable[str]) -> Iterator[RollbackRequest]:
    """One request per slice, in a fixed order."""
    infos = {file.path: file for files in state.listing.values() for file in files}
    keyed = []
    for path in paths:
        parsed = _parsed(state.layout, infos[path])
        if parsed is None:
            continue
        base = parsed.base_instant if isinstance(parsed, LogFile) else parsed.instant
        keyed.append(((parsed.partition, parsed.file_id, base), path))
    for key, group in groupby(sorted(keyed), key=lambda pair: pair[0]):
        partition, file_id, base = key
        yield RollbackRequest(partition, file_id, base, tuple(path for _, path in group))
