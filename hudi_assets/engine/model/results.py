"""What the engine answers: freshness, statistics, and what a commit or a compaction did."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

import pyarrow as pa

from hudi_assets.engine.model.bills import Bill
from hudi_assets.engine.model.column_unit import ColumnUnit
from hudi_assets.engine.model.plans import NoPlan, Plan
from hudi_assets.engine.model.proposals import Proposal
from hudi_assets.engine.model.units import duration, iso


@dataclass(frozen=True, slots=True)
class LogBar:
    """One log file as the event-time picture draws it: its range in epoch ms, its bytes, and whether it remains.

    `min_event_time` may be a bound by its commit (`CommitBound`); then the maximum is None. `compacted`: a plan takes
    the file.
    """

    name: str
    partition: str
    min_event_time: int | None
    max_event_time: int | None
    size: int
    compacted: bool


@dataclass(frozen=True, slots=True)
class OperationResult:
    """What the execution of one operation did, in one file group.

    `base_file`: the new one, table-relative, with `rows` rows and `bytes_written` bytes. `logs_compacted` and
    `logs_remaining` count log files, `log_records` the records in those that were merged. `corrupt_blocks`: blocks that
    were passed over, because a writer died in them.
    """

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
    """A completed compaction.

    `threshold` (epoch ms) is what its plan claimed; None where it claimed none. `seconds`: how long the execution took.
    Rows and log files are sums over the operations. `bill`: what it cost and bought; None where that could not be told
    after it was committed.
    """

    instant: str
    threshold: int | None
    operations: tuple[OperationResult, ...]
    seconds: float
    bill: Bill | None = None

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
    """A completed delta commit (or `instant` None when the input was empty: nothing was written).

    `rows` counts rows, of a delete the deleted keys; `log_files` and `base_files` the files that were written, with
    `bytes_written` bytes. The event times are the range of what came, epoch ms; None where no row has one.
    """

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

    @property
    def words(self) -> str:
        """E.g. `2 log files with records without event time: commit less data latency (2 h), 2026-01-01T10:00:00Z`."""
        files = "1 log file" if self.log_files == 1 else f"{self.log_files} log files"
        latency = "" if self.data_latency is None else f" ({duration(self.data_latency)})"
        return f"{files} with records without event time: {self.rule}{latency}, {iso(self.min_event_time)}"


@dataclass(frozen=True, slots=True)
class HiddenRows:
    """Files of a delta commit whose rows are in no view: they lie behind the base files of the instant `behind`.

    They are log files, or base files that were made of those; of such a base file the rows of this commit alone.

    `min_event_time` (epoch ms) is their smallest, or what bounds it; None where it is unknown, or they hold no record.
    """

    delta_commit: str
    behind: str
    files: int
    min_event_time: int | None

    @property
    def log_files(self) -> int:
        """The old name of `files`."""
        warnings.warn("HiddenRows.log_files will go: use HiddenRows.files.", DeprecationWarning, stacklevel=2)
        return self.files

    @property
    def words(self) -> str:
        """E.g. `1 file of delta commit 2026… is in no view, behind 2026…: from 2026-01-01T10:00:00Z on`."""
        files = "1 file" if self.files == 1 else f"{self.files} files"
        since = "event times unknown" if self.min_event_time is None else f"from {iso(self.min_event_time)} on"
        verb = "is" if self.files == 1 else "are"
        return f"{files} of delta commit {self.delta_commit} {verb} in no view, behind {self.behind}: {since}"


@dataclass(frozen=True, slots=True)
class Freshness:
    """The promise: the read-optimized view holds every ingested record with event time ≤ `freshness`.

    `freshness` None means no promise can be made; `reason` then says why, naming the file.
    `watermark`: everything up to it is taken to be committed. `min_event_time`: the smallest in a remaining log file.
    `threshold` and `instant` are those of the last completed event-time compaction.
    `bounds`: for which log files a bound by their commits stands in place of event times that they do not have.
    `hidden`: rows in no view, below which the promise stops though no log file with them remains.
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
    hidden: tuple[HiddenRows, ...] = ()


@dataclass(frozen=True, slots=True)
class PartitionFreshness:
    """What the read-optimized view of one partition promises: every ingested record in it up to `freshness`, epoch ms.

    None: no promise can be made, and `reason` says why. `holds_back`: it lies below what the partition could promise if
    nothing remained in it. `remaining_…` counts what no compaction has merged yet.
    """

    partition: str
    freshness: int | None
    reason: str | None
    holds_back: bool
    remaining_log_files: int
    remaining_bytes: int


@dataclass(frozen=True, slots=True)
class PublishedPartitions:
    """What a catalog is told of the partitions, all of one reading.

    `watermark`: the freshness of a partition in which nothing remains, epoch ms. `instant`: of the newest completed
    write; None where there is none. `computed_at`: the table's clock then, epoch ms.
    """

    partitions: tuple[PartitionFreshness, ...]
    watermark: int | None
    instant: str | None
    computed_at: int

    @property
    def digest(self) -> str:
        """Differs where there are other partitions, or one promises something else than the watermark of the time."""
        told = sorted(
            (one.partition, one.freshness if one.holds_back else None, one.reason or "") for one in self.partitions
        )
        return hashlib.sha256(repr(told).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Stats:
    """The table's state in numbers (the RFC's metrics). Event times epoch ms, sizes in bytes.

    `remaining_…` counts what no compaction has merged yet. `min_event_time` is over all remaining log files; None when
    there are none, or when one is unknown. `pending`: instants of compactions that are planned and not completed.
    `last_compaction`, `last_commit`: instants of the newest that are completed. `inflight_writes`: instants of
    unfinished writes.
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


@dataclass(frozen=True, slots=True)
class Publication:
    """What a catalog is told of a table, all of one reading.

    `instant_ms`: when the freshness's compaction was planned, epoch ms.
    `groups`: the current base files (absolute paths) by the columns that they have, each with Spark SQL per column.
    `view_digest` differs where files or columns of the read-optimized view do.
    """

    path: str
    freshness: Freshness
    instant_ms: int | None
    schema: pa.Schema
    groups: tuple[tuple[tuple[str, ...], Mapping[str, str]], ...]
    view_digest: str
    # None unless the freshness of each partition is published too.
    partitions: PublishedPartitions | None = None


@dataclass(frozen=True, slots=True)
class Look:
    """What decides about a table's next step, and its numbers, all of one reading.

    `pending`: the plan that waits for execution. `due`: what planning would give now, or why nothing. `leftovers`: what
    `recover` would mend, in sentences. `now_ms`: the table's clock, epoch ms. `proposal`: what the policy says, where a
    freshness SLO was given; `due` follows it. `refused`: why what would be due is not planned, where that lasts until
    somebody does something: the executor would refuse it, the table is damaged, or its event times cannot be read.
    """

    stats: Stats
    pending: Plan | None
    due: Plan | NoPlan
    leftovers: tuple[str, ...]
    now_ms: int
    # As in `Publication`: differs where a published read-optimized view names other files or columns than now.
    view_digest: str = ""
    proposal: Proposal | None = None
    # As in `Publication`.
    partitions: PublishedPartitions | None = None
    refused: str | None = None

    @property
    def freshness(self) -> Freshness:
        """What the read-optimized view promises now."""
        return self.stats.freshness
