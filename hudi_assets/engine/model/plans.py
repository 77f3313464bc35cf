"""Compaction plans, and why there is none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from hudi_assets.engine.model.files import CarryOver


@dataclass(frozen=True, slots=True)
class Operation:
    """The compaction of one file group (HoodieCompactionOperation): these log files into a new base file.

    Paths are table-relative. `base_instant` is the old slice's, `base_file` its base file (None: it has none).
    `metrics` are Hudi's estimates of the work, by name: TOTAL_IO_MB and the like in MB, TOTAL_LOG_FILES_SIZE in bytes.
    """

    partition: str
    file_id: str
    base_instant: str
    base_file: str | None
    log_files: tuple[str, ...]
    carried_over: tuple[CarryOver, ...]
    metrics: Mapping[str, float]


NO_THRESHOLD = -(1 << 63)
"""The threshold of a plan that has none: another planner's, or a guard."""
WRITER: Final = "hudi_assets.writer"
"""The key in a plan's or a commit's metadata that says that this engine made it."""


@dataclass(frozen=True, slots=True)
class QueryTime:
    """For how long queries that run on what a plan replaces still find it, where another engine's cleaner takes it.

    `minutes`: an estimate, from the pace of the commits. `words`: the same as a sentence, with what would make it more.
    `short`: less than `hudi_assets.query.grace`. `refused`: less than `hudi_assets.query.grace.least`: such a plan is
    not published. `key`, `needed`: a setting of the cleaner's, and the value at which it leaves the grace.
    """

    minutes: float
    words: str
    short: bool
    refused: bool
    key: str
    needed: int

    @property
    def warning(self) -> str | None:
        """The sentence, where it says too little time."""
        return self.words if self.short or self.refused else None


@dataclass(frozen=True, slots=True)
class Plan:
    """A compaction plan (HoodieCompactionPlan) as published at `instant`.

    `threshold` is the event time (epoch ms) up to which every log record is in the plan's operations. `query_time` is
    known where a plan is made, not where it is read back; None too where no other engine cleans what it replaces.
    So is `asked_for`, the threshold that was asked for: more than `claims` where that takes further plans.
    `left`: the partitions in which log files stay that the plan does not take. Hudi 1.2 looks for its next plan there,
    and else only where somebody has written since.
    """

    instant: str
    threshold: int
    operations: tuple[Operation, ...]
    strategy: str
    extra_metadata: Mapping[str, str]
    query_time: QueryTime | None = field(default=None, compare=False)
    asked_for: int | None = field(default=None, compare=False)
    left: tuple[str, ...] = field(default=(), compare=False)

    @property
    def is_first_of_several(self) -> bool:
        """Whether the threshold that was asked for takes more plans than this one."""
        return self.asked_for is not None and self.asked_for != self.claims

    @property
    def claims(self) -> int | None:
        """The threshold, None where the plan claims none: Hudi's strategies, or a bound that left unknown times out."""
        return None if self.threshold == NO_THRESHOLD else self.threshold

    @property
    def is_ours(self) -> bool:
        """Whether this engine made the plan. Those of other engines are theirs to execute."""
        return WRITER in self.extra_metadata


@dataclass(frozen=True, slots=True)
class NoPlan:
    """Why there is nothing to plan, in words a person reads ("compaction 2026… is pending").

    `query_time`: of the plan that there would be, where that is the reason.
    """

    reason: str
    query_time: QueryTime | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class NothingToDo:
    """Why an action other than a compaction has nothing to do, in words a person reads."""

    reason: str


class StrategyName(StrEnum):
    """The compaction strategies there are, by class name."""

    EVENT_TIME = "EventTimeBasedCompactionStrategy"
    LOG_FILE_SIZE = "LogFileSizeBasedCompactionStrategy"
    LOG_FILE_NUM = "LogFileNumBasedCompactionStrategy"
    BOUNDED_IO = "BoundedIOCompactionStrategy"
    DAY = "DayBasedCompactionStrategy"
    BOUNDED_PARTITION = "BoundedPartitionAwareCompactionStrategy"
    UNBOUNDED_PARTITION = "UnBoundedPartitionAwareCompactionStrategy"
    UNBOUNDED = "UnBoundedCompactionStrategy"

    @property
    def class_name(self) -> str:
        return _PACKAGE + self.value


_PACKAGE: Final = "org.apache.hudi.table.action.compact.strategy."
