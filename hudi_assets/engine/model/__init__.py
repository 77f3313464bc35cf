"""Values."""

from hudi_assets.engine.model.files import LOG_ORDER, BaseFile, CarryOver, FileSlice, LogFile
from hudi_assets.engine.model.instants import Action, Instant, State
from hudi_assets.engine.model.merge_mode import MergeMode
from hudi_assets.engine.model.plans import NO_THRESHOLD, NoPlan, NothingToDo, Operation, Plan, QueryTime
from hudi_assets.engine.model.results import (
    BoundRule,
    CommitBound,
    CommitResult,
    CompactionResult,
    Freshness,
    LogBar,
    Look,
    OperationResult,
    Stats,
)
from hudi_assets.engine.model.units import EventTimeRange

__all__ = [
    "LOG_ORDER",
    "NO_THRESHOLD",
    "Action",
    "BaseFile",
    "BoundRule",
    "CarryOver",
    "CommitBound",
    "CommitResult",
    "CompactionResult",
    "EventTimeRange",
    "FileSlice",
    "Freshness",
    "Instant",
    "LogBar",
    "LogFile",
    "Look",
    "MergeMode",
    "NoPlan",
    "NothingToDo",
    "Operation",
    "OperationResult",
    "Plan",
    "QueryTime",
    "State",
    "Stats",
]
