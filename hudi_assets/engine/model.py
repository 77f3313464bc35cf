"""The engine's values: frozen, comparable, free of I/O. Words are Hudi's own.

Event times are integers: epoch milliseconds, UTC, in every value here. Finer sources are floored for
a minimum and ceiled for a maximum, so that a range always covers its records.
Instants are Hudi's 17-digit strings `yyyyMMddHHmmssSSS`; they order as strings.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from hudi_assets.engine.event_time.inference import ColumnUnit


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


class MergeMode(StrEnum):
    """Which of a key's records wins; what a table has follows from its payload class (`docs/merge.md`).

    The first two are org.apache.hudi.common.config.RecordMergeMode's; the others are what Hudi 0.x does with
    OverwriteWithLatestAvroPayload and an ordering field, and with DefaultHoodieRecordPayload.
    """

    EVENT_TIME_ORDERING = "EVENT_TIME_ORDERING"
    COMMIT_TIME_ORDERING = "COMMIT_TIME_ORDERING"
    OVERWRITE_WITH_LATEST = "OVERWRITE_WITH_LATEST"
    EVENT_TIME_ORDERING_0X = "EVENT_TIME_ORDERING_0X"

    @property
    def compares_base_rows(self) -> bool:
        """True where a base row with a greater ordering value stays."""
        return self in (MergeMode.EVENT_TIME_ORDERING, MergeMode.EVENT_TIME_ORDERING_0X)


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


@dataclass(frozen=True, slots=True)
class EventTimeRange:
    """Smallest and largest event time in a log file, epoch ms; None where unknown.

    Unknown means "could be anything": such a log file is always selected and makes freshness null.
    `reason` says in words why a bound is unknown.
    """

    min: int | None
    max: int | None
    reason: str | None = None

    @property
    def known(self) -> bool:
        return self.min is not None and self.max is not None


class LogFile(NamedTuple):
    """One log file of a file slice. `path` is relative to the table's base path.

    A tuple: there may be a million of them, and tuples are made and compared in a third of the time.
    """

    path: str
    partition: str
    file_id: str
    base_instant: str
    version: int
    write_token: str
    size: int
    # The file that holds its bytes: what a symbolic link leads to; its own path for any other log file. Where a
    # carried-over file's bytes first were written, the timeline says (`slices.origins`).
    original: str

    @property
    def name(self) -> str:
        return self.path.rsplit("/", 1)[-1]

    @property
    def order(self) -> tuple[str, int, str]:
        """Hudi's log order within a slice: instant, version, write token (HoodieLogFile's comparator).

        The instant is the slice's own on version 6; on later ones, that of the delta commit which wrote the file.
        """
        return (self.base_instant, self.version, self.write_token)


LOG_ORDER: Final = attrgetter("base_instant", "version", "write_token")
"""`LogFile.order` as a sort key."""


@dataclass(frozen=True, slots=True)
class BaseFile:
    """One base file. `path` is relative to the table's base path."""

    path: str
    partition: str
    file_id: str
    instant: str
    write_token: str
    size: int

    @property
    def name(self) -> str:
        return self.path.rsplit("/", 1)[-1]


@dataclass(frozen=True, slots=True)
class FileSlice:
    """A base file (if there is one yet) and its log files, in log order."""

    partition: str
    file_id: str
    base_instant: str
    base_file: BaseFile | None
    log_files: tuple[LogFile, ...] = ()

    @property
    def next_log_version(self) -> int:
        return max((log.version for log in self.log_files), default=0) + 1


class CarryOver(NamedTuple):
    """A remaining log file shown in the new slice under another name (`link`). Table-relative.

    `target` is where its bytes first were written; that file may be cleaned by now. `source` is the old slice's file
    that the link was made from; None where that is the target.
    """

    link: str
    target: str
    source: str | None = None

    @property
    def made_from(self) -> str:
        """The old slice's file."""
        return self.source or self.target


@dataclass(frozen=True, slots=True)
class Operation:
    """The compaction of one file group: these log files into this base file, these carried over."""

    partition: str
    file_id: str
    base_instant: str
    base_file: str | None
    log_files: tuple[str, ...]
    carried_over: tuple[CarryOver, ...]
    metrics: Mapping[str, float]


NO_THRESHOLD = -(1 << 63)
"""The threshold of a plan that has none: another planner's, or a guard."""


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
    """A compaction plan as published at `instant`.

    `threshold` is the event time (epoch ms) up to which every log record is in the plan's operations. `query_time` is
    known where a plan is made, not where it is read back; None too where no other engine cleans what it replaces.
    So is `asked_for`, the threshold that was asked for: more than `claims` where that takes further plans.
    """

    instant: str
    threshold: int
    operations: tuple[Operation, ...]
    strategy: str
    extra_metadata: Mapping[str, str]
    query_time: QueryTime | None = field(default=None, compare=False)
    asked_for: int | None = field(default=None, compare=False)

    @property
    def is_first_of_several(self) -> bool:
        """Whether the threshold that was asked for takes more plans than this one."""
        return self.asked_for is not None and self.asked_for != self.claims

    @property
    def claims(self) -> int | None:
        """The threshold, None where the plan claims none: Hudi's strategies, or a bound that left unknown times out."""
        return None if self.threshold == NO_THRESHOLD else self.threshold


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


@dataclass(frozen=True, slots=True)
class LogBar:
    """One log file as the event-time picture draws it: its range, and whether it remains.

    `min_event_time` may be a bound by its commit (`CommitBound`); then the maximum is None.
    """

    name: str
    partition: str
    min_event_time: int | None
    max_event_time: int | None
    size: int
    compacted: bool


@dataclass(frozen=True, slots=True)
class OperationResult:
    """What the execution of one operation did."""

    partition: str
    file_id: str
    base_file: str
    rows: int
    logs_compacted: int
    logs_remaining: int
    log_records: int
    bytes_written: int
    corrupt_blocks: int = 0


@dataclass(frozen=True, slots=True)
class CompactionResult:
    """A completed compaction."""

    instant: str
    threshold: int | None
    operations: tuple[OperationResult, ...]
    seconds: float

    @property
    def rows(self) -> int:
        return sum(op.rows for op in self.operations)

    @property
    def logs_compacted(self) -> int:
        return sum(op.logs_compacted for op in self.operations)

    @property
    def logs_remaining(self) -> int:
        return sum(op.logs_remaining for op in self.operations)


@dataclass(frozen=True, slots=True)
class CommitResult:
    """A completed delta commit (or `instant` None when the input was empty: nothing was written)."""

    instant: str | None
    rows: int
    log_files: int
    bytes_written: int
    min_event_time: int | None
    max_event_time: int | None
    # Records at or below the freshness published before this commit: they make it fall back.
    late_records: int = 0
    base_files: int = 0


class BoundRule(StrEnum):
    """From when on records without event time count, by what is believed of the commit that brought them.

    LATENCY: by the data latency, none of them happened earlier than that before the commit. COMMIT: the owner says
    that a delete counts at its commit.
    """

    LATENCY = "commit less data latency"
    COMMIT = "commit"


@dataclass(frozen=True, slots=True)
class CommitBound:
    """How many log files have records without event time for which a bound by their commits stands.

    `min_event_time`: the smallest bound; `data_latency`: what was taken off (None: nothing). In ms.
    """

    rule: BoundRule
    data_latency: int | None
    log_files: int
    min_event_time: int


@dataclass(frozen=True, slots=True)
class Freshness:
    """The promise: the read-optimized view holds every ingested record with event time ≤ `freshness`.

    `freshness` None means no promise can be made; `reason` then says why, naming the file.
    `threshold` and `instant` are those of the last completed event-time compaction.
    `bounds`: for which log files a bound by their commits stands in place of event times that they do not have.
    `unit`: how the event-time column counts, and what says so; None where there is no such column.
    All times epoch ms; `computed_at` is the clock's time of the computation.
    """

    freshness: int | None
    reason: str | None
    watermark: int | None
    threshold: int | None
    instant: str | None
    min_event_time: int | None
    computed_at: int
    bounds: tuple[CommitBound, ...] = ()
    unit: ColumnUnit | None = None


@dataclass(frozen=True, slots=True)
class Look:
    """What decides about a table's next step, all of one reading.

    `due`: what planning would give now, or why nothing. `leftovers`: what `recover` would mend, in sentences.
    """

    freshness: Freshness
    pending: Plan | None
    due: Plan | NoPlan
    leftovers: tuple[str, ...]
    now_ms: int


@dataclass(frozen=True, slots=True)
class Stats:
    """The table's state in numbers (the RFC's metrics). Event times epoch ms.

    `min_event_time` is over all remaining log files; None when there are none, or when one is unknown.
    """

    table_version: int
    freshness: Freshness
    file_groups: int
    base_files: int
    base_bytes: int
    remaining_file_slices: int
    remaining_log_files: int
    remaining_bytes: int
    min_event_time: int | None
    pending: tuple[str, ...]
    last_compaction: str | None
    last_commit: str | None
    inflight_writes: tuple[str, ...]
    # Files of instants that are on no timeline (table-relative): `recover` removes what it safely can.
    orphans: tuple[str, ...] = ()
