"""Where the bytes of carried-over log files first were written.

A compaction's commit says it of the files that it carries over, its plan where Apache Hudi executed it; of archived
ones, the memory that is kept beside the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from hudi_assets.engine.model import Action, LogFile
from hudi_assets.engine.storage import FileInfo
from hudi_assets.engine.timeline.carried_over import SYMLINK_OPERATIONS, decode_carried_over

if TYPE_CHECKING:
    from hudi_assets.engine.table.state import TableState


def origin_of(state: TableState, log: LogFile) -> str:
    """The path under which a log file's bytes first were written; its own where nothing tells of another."""
    if not state.layout.makes_links:
        return log.path
    # A plan made before the first original was stated names the link before; a symbolic link tells by itself.
    path = carried_over_at(state, log.base_instant).get(log.path, log.original)
    if path == log.path:
        return path
    seen = {log.path}
    while path not in seen:
        seen.add(path)
        path = _before(state, path) or path
    return path


def first_path(state: TableState, path: str) -> str:
    """The same of a path: that of a log file that a plan names, which may be gone by now."""
    if not state.layout.makes_links:
        return path
    log = state.layout.parse_log_file(FileInfo(path, 0), path.rpartition("/")[0])
    return path if log is None else origin_of(state, log)


def _before(state: TableState, path: str) -> str | None:
    log = state.layout.parse_log_file(FileInfo(path, 0), path.rpartition("/")[0])
    return None if log is None else carried_over_at(state, log.base_instant).get(path)


def carried_over_at(state: TableState, instant: str) -> Mapping[str, str]:
    """Link → target of the compaction at an instant; empty where there was none, or nothing tells of it."""
    traces = state.derive(_traces)
    found = traces.get(instant)
    if found is None:
        found = traces[instant] = _told(state, instant)
    return found


def _told(state: TableState, instant: str) -> Mapping[str, str]:
    completed = next((i for i in state.timeline.completed(Action.COMMIT) if i.timestamp == instant), None)
    stated = state.commit(completed).extra.get(SYMLINK_OPERATIONS) if completed else None
    if completed and stated:
        return decode_carried_over(stated, f"{state.storage.base}: {completed.file_name}")
    plan = state.plan(instant)
    if plan is not None:
        return {c.link: c.target for op in plan.operations for c in op.carried_over}
    return state.archived_facts.memory.origins.get(instant, {}) if state.timeline.is_archived(instant) else {}


def _traces(state: TableState) -> dict[str, Mapping[str, str]]:
    """Compaction → link → target, of those that were asked for."""
    del state
    return {}
