"""Instants of the timeline: what was done, when it was requested, and how far it is."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Action(StrEnum):
    """Timeline actions (org.apache.hudi.common.table.timeline.HoodieTimeline)."""

    COMMIT = "commit"
    DELTA_COMMIT = "deltacommit"
    COMPACTION = "compaction"
    LOG_COMPACTION = "logcompaction"
    REPLACE_COMMIT = "replacecommit"
    CLUSTERING = "clustering"
    CLEAN = "clean"
    ROLLBACK = "rollback"
    SAVEPOINT = "savepoint"
    RESTORE = "restore"
    INDEXING = "indexing"


class State(StrEnum):
    REQUESTED = "requested"
    INFLIGHT = "inflight"
    COMPLETED = "completed"


@dataclass(frozen=True, slots=True, order=True)
class Instant:
    """One action on the timeline, in its latest state.

    `timestamp` is the requested time, which names it. `completion`: when it was completed, where the table's
    version keeps that (8 and later); as text it orders with the timestamps.
    """

    timestamp: str
    action: Action
    state: State
    file_name: str
    completion: str | None = None

    @property
    def is_completed(self) -> bool:
        return self.state is State.COMPLETED
