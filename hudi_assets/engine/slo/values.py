"""What the policy is told and what it answers. All times epoch ms, all sizes bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from statistics import median
from typing import Final

from hudi_assets.engine.errors import InvalidInput
from hudi_assets.engine.model.units import duration

# The event time of a log file of which none is known: older than all.
UNKNOWN: Final = -(1 << 62)
HOURS_HINT: Final = "Give from 0 to 23 and to 0 to 24, as 22-6."


class Cut(StrEnum):
    """What a plan may take of a slice's log files."""

    RANGES = "ranges"  # version 6 with event-time ordering: those at the threshold, and earlier ones that they overlap
    PREFIX = "prefix"  # version 6 with other orderings: all up to the last of those
    COMMITS = "commits"  # versions 8 and 9: all up to the end of the commit that the last of those is of
    SLICE = "slice"  # by `hudi_assets.compaction.whole.slices`: all, where anything is at the threshold


@dataclass(frozen=True, slots=True)
class Log:
    """A log file: its commit's completion, its least and greatest event time."""

    committed_ms: int
    low: int
    high: int
    size: int


@dataclass(frozen=True, slots=True)
class Group:
    """A file group's newest slice. `logs` in log order; none of them is without rows."""

    partition: str
    file_id: str
    base_bytes: int
    logs: tuple[Log, ...]


@dataclass(frozen=True, slots=True)
class View:
    """A table as it stands. `groups`: those with log files. `latency_ms`: the data latency."""

    groups: tuple[Group, ...]
    latency_ms: int
    cut: Cut


@dataclass(frozen=True, slots=True)
class Done:
    """A compaction of the past. `size`: what it read and wrote."""

    begun_ms: int
    duration_ms: int
    size: int


@dataclass(frozen=True, slots=True)
class History:
    """What the past teaches. `done`: oldest first. `publish_ms`: from a compaction's commit to its publication."""

    done: tuple[Done, ...] = ()
    commit_gap_ms: int = 600_000
    publish_ms: int = 60_000


def commit_gap(times: Sequence[int]) -> int:
    """The usual time between two commits that were completed then, in order."""
    gaps = [later - earlier for earlier, later in pairwise(times)]
    return round(median(gaps)) if gaps else History().commit_gap_ms


@dataclass(frozen=True, slots=True)
class Clock:
    """Now, and how long until somebody asks again at the latest."""

    now_ms: int
    tick_ms: int = 60_000

    def __post_init__(self) -> None:
        if self.tick_ms <= 0:
            raise InvalidInput("Nobody asks again after no time.", hint="Give a tick of a millisecond or more.")


@dataclass(frozen=True, slots=True)
class SloTerms:
    """What the owner says.

    `slo_ms`: the published freshness is never further behind the clock. `late_every_ms`: rows that came when the SLO
    was broken already are compacted at once, but no sooner than this after the last compaction began; default a
    quarter of the SLO. Bounds: `least_gap_ms` between two starts; `bytes_per_hour`, on average; `hours` of the day
    (UTC), from and to, in which a compaction may start.
    """

    slo_ms: int
    late_every_ms: int | None = None
    least_gap_ms: int = 0
    bytes_per_hour: int | None = None
    hours: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        if self.slo_ms <= 0:
            raise InvalidInput(f"An SLO of {duration(self.slo_ms)} is none.", hint="Give a duration, as 6h.")
        if self.bytes_per_hour is not None and self.bytes_per_hour <= 0:
            raise InvalidInput("No bytes an hour is no bound.", hint="Give 1 or more, or leave it out.")
        if self.hours is not None:
            begins, ends = self.hours
            if begins == ends or not (0 <= begins < 24 and 0 <= ends <= 24):
                raise InvalidInput(f"{self.hours} are no hours of the day.", hint=HOURS_HINT)

    @property
    def late_gap_ms(self) -> int:
        return self.slo_ms // 4 if self.late_every_ms is None else self.late_every_ms
