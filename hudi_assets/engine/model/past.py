"""What the timeline tells of the past: its compactions and what they cost, and the freshness after each write."""

from __future__ import annotations

from dataclasses import dataclass

from hudi_assets.engine.model.bills import DayBill
from hudi_assets.engine.model.results import Stats


@dataclass(frozen=True, slots=True)
class PastCompaction:
    """A completed compaction as its commit and the timeline's files tell of it, whoever made it. Times epoch ms.

    `duration_ms`: from when it was begun to its commit; None where the timeline's files do not say. `log_bytes`: of the
    log files that it merged. `base_bytes`: of the base files that it read; None where the size of one is not known any
    more. `bytes_written`: of its new base files.
    """

    instant: str
    threshold: int | None
    completed_ms: int
    duration_ms: int | None
    file_groups: int
    log_files: int
    log_bytes: int
    base_bytes: int | None
    bytes_written: int
    rows: int

    @property
    def bytes_read(self) -> int | None:
        return None if self.base_bytes is None else self.log_bytes + self.base_bytes


@dataclass(frozen=True, slots=True)
class PastFreshness:
    """The freshness around a write: just before it was completed, and just after. Event times epoch ms.

    `at_ms`: when that was, by the table's clock. `before`, `after`: None where no freshness is known. What remained
    after it: `remaining_log_files`, `remaining_bytes`.
    """

    instant: str
    is_compaction: bool
    at_ms: int
    before: int | None
    after: int | None
    remaining_log_files: int
    remaining_bytes: int


@dataclass(frozen=True, slots=True)
class TableMetrics:
    """What monitoring asks of a table, all of one reading.

    `read_at_ms`: the true clock then, epoch ms, whatever the table's clock says. `pending_since_ms`: when the oldest
    pending plan was published, by its file. `last_compaction`: None where the active timeline has none. `days`: what
    compactions came to, the last day first.
    """

    stats: Stats
    read_at_ms: int
    pending_since_ms: int | None
    last_compaction: PastCompaction | None
    days: tuple[DayBill, ...] = ()
