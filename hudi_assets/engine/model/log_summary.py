"""What is known of a log file's event times without its records. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from hudi_assets.engine.model import BoundRule


class Since(NamedTuple):
    """The oldest block of a log file with such records: its instant, and its commit's clock time in a replayed stream.

    `clock_ms` is None where the block does not say.
    """

    instant: str
    clock_ms: int | None = None


class Undated(NamedTuple):
    """A log file with records that have no event time: since when, and the range (epoch ms) of its other records.

    `rows` and `deletes` are None where it has none such; `low` and `high` where all its records are such.
    """

    rows: Since | None
    deletes: Since | None
    low: int | None = None
    high: int | None = None


class Bound(NamedTuple):
    """No record of the log file happened before `at` (epoch ms), if `rule` holds."""

    at: int
    rule: BoundRule


class LogSummary(NamedTuple):
    """What selection knows of a log file without its data. Event times epoch ms, None where one is unknown.

    `deletes` counts delete records (None: unknown), `barriers` those of them in commit order, which no other record
    is compared with; `rollbacks` command blocks that roll an instant back. `not_merged`: why its records are not merged
    here, in a sentence. `partial`: some are partial updates. `nulls`: one of several ordering fields is null in
    some. `bound`: for the promise, of a log file whose event times are unknown.
    """

    min_event_time: int | None
    max_event_time: int | None
    deletes: int | None
    rollbacks: int = 0
    reason: str | None = None
    records: int | None = None
    barriers: int = 0
    undated: Undated | None = None
    not_merged: str | None = None
    partial: bool = False
    nulls: bool = False
    bound: Bound | None = None

    @classmethod
    def stated(cls, low: int, high: int, deletes: int) -> LogSummary:
        """What a write stat says; quicker to make than by the arguments' names, and there may be a million."""
        return tuple.__new__(cls, (low, high, deletes, 0, None, None, 0, None, None, False, False, None))

    @property
    def known(self) -> bool:
        return self.min_event_time is not None and self.max_event_time is not None

    @property
    def dated(self) -> tuple[int, int] | None:
        """The range of the records that have an event time; None where there are none, or it is unknown."""
        low, high = self.min_event_time, self.max_event_time
        if low is None and self.undated is not None:
            low, high = self.undated.low, self.undated.high
        return None if low is None or high is None else (low, high)

    @property
    def counts_from(self) -> int | None:
        """The event time from which on the file counts for the promise: its minimum, or what bounds it."""
        if self.min_event_time is not None or self.bound is None:
            return self.min_event_time
        return self.bound.at

    @property
    def lowest(self) -> float:
        """As `highest`, the smallest: minus infinity where it is unknown, infinity where there is none."""
        if self.min_event_time is not None:
            return self.min_event_time
        if self.undated is None or self.undated.rows is not None:
            return -math.inf
        return math.inf if self.undated.low is None else self.undated.low

    @property
    def highest(self) -> float:
        """The greatest event time that is compared with others, where the event time orders records.

        Deletes in commit order are not compared. Infinity where it is unknown, minus infinity where there is none.
        """
        if self.max_event_time is not None:
            return self.max_event_time
        if self.undated is None or self.undated.rows is not None:
            return math.inf
        return -math.inf if self.undated.high is None else self.undated.high

    @property
    def holds_nothing(self) -> bool:
        """True for a log file without a record of its own: command blocks alone, or tombstones (see below)."""
        return self.records == 0

    @property
    def holds_tombstones_only(self) -> bool:
        """True for a residue log of deletes without event time: a base file was merged with them already."""
        return self.records == 0 and bool(self.deletes)


Summaries = Mapping[str, LogSummary]


class ScannedLog(NamedTuple):
    """What a log file itself says, and the newest instant of its blocks ("": it has none).

    Of an event-time column of integers the summary has the counts, whatever their unit.
    """

    summary: LogSummary
    last_instant: str


def to_json(summary: LogSummary) -> list[Any]:
    """The summary as it is kept beside the table; a bound depends on settings, and is not."""
    values = list(summary[:-1])
    if summary.nulls:
        return values
    if summary.partial:
        return values[:-1]
    return values[:-2] if summary.not_merged is not None else values[:-3]


def from_json(values: list[Any]) -> LogSummary:
    """What `to_json` gave; ValueError or TypeError for anything else."""
    low, high, deletes, rollbacks, reason, records, barriers, undated, *more = values
    if len(more) > 3:
        raise ValueError("there are too many values")
    if undated is not None:
        rows, gone, least, most = undated
        undated = Undated(Since(*rows) if rows else None, Since(*gone) if gone else None, least, most)
    return LogSummary(low, high, deletes, rollbacks, reason, records, barriers, undated, *more)
