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
    from hudi_assets.engine.state import TableState


class Origins:
    """What one reading of a table tells of it."""

    def __init__(self, state: TableState) -> None:
        self._state = state
        self._known: dict[str, Mapping[str, str]] = {}
        self._compactions = {i.timestamp: i for i in state.timeline.completed(Action.COMMIT)}

    def of(self, log: LogFile) -> str:
        """The path under which a log file's bytes first were written; its own where nothing tells of another."""
        if not self._state.layout.carries_logs_over:
            return log.path
        # A plan made before the first original was stated names the link before; a symbolic link tells by itself.
        path = self.at(log.base_instant).get(log.path, log.original)
        if path == log.path:
            return path
        seen = {log.path}
        while path not in seen:
            seen.add(path)
            path = self._before(path) or path
        return path

    def _before(self, path: str) -> str | None:
        log = self._state.layout.parse_log_file(FileInfo(path, 0), path.rpartition("/")[0])
        return None if log is None else self.at(log.base_instant).get(path)

    def at(self, instant: str) -> Mapping[str, str]:
        """Link → target of the compaction at an instant; empty where there was none, or nothing tells of it."""
        found = self._known.get(instant)
        if found is None:
            found = self._known[instant] = self._told(instant)
        return found

    def _told(self, instant: str) -> Mapping[str, str]:
        state = self._state
        completed = self._compactions.get(instant)
        stated = state.commit(completed).extra.get(SYMLINK_OPERATIONS) if completed else None
        if completed and stated:
            return decode_carried_over(stated, f"{state.storage.base}: {completed.file_name}")
        plan = state.plan(instant)
        if plan is not None:
            return {c.link: c.target for op in plan.operations for c in op.carried_over}
        return self._remembered.get(instant, {}) if state.timeline.is_archived(instant) else {}

    @property
    def _remembered(self) -> Mapping[str, Mapping[str, str]]:
        return self._state.kept_memory.memory.origins
