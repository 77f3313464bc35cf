"""The data latency that a table's commits show: how late records came, at a stated quantile. Pure.

A log file's lateness is its commit's time less its minimum event time, so it bounds the lateness of each of
its records from above; each log file counts as often as it has records. The commit's time is its
instant, the request of the write: a watermark is counted back from the oldest unfinished request, so what a
later write may still bring is late against its own. In a replayed stream it is the clock time.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

LATEST_COMMITS: Final = 30
"""Delta commits looked at: as many as Hudi keeps on the active timeline at most (hoodie.keep.max.commits), so
that what is learned does not jump when commits are archived."""


@dataclass(frozen=True, slots=True)
class LogEvidence:
    """What one delta commit says of one log file that it wrote. Times epoch ms; None where unknown."""

    instant: str
    commit_ms: int
    min_event_time: int | None
    records: int


@dataclass(frozen=True, slots=True)
class ObservedLatency:
    """The learned data latency and what it was learned from.

    `latency_ms` covers at least `quantile` of the records seen; `max_ms` covers all of them. `unknown` counts
    log files without known event times, which say nothing.
    """

    latency_ms: int
    quantile: float
    max_ms: int
    commits: int
    log_files: int
    records: int
    unknown: int
    first_instant: str
    last_instant: str


def observe(evidence: Iterable[LogEvidence], quantile: float) -> ObservedLatency | None:
    """The latency that log files show at a quantile (0 < quantile ≤ 1); None where none has an event time."""
    lateness: list[tuple[int, int]] = []
    instants: set[str] = set()
    unknown = 0
    for one in evidence:
        if one.min_event_time is None:
            unknown += 1
            continue
        # An event that lies ahead of its commit came in time.
        lateness.append((max(0, one.commit_ms - one.min_event_time), max(1, one.records)))
        instants.add(one.instant)
    if not lateness:
        return None
    lateness.sort()
    records = sum(count for _, count in lateness)
    return ObservedLatency(
        latency_ms=_quantile(lateness, quantile * records),
        quantile=quantile,
        max_ms=lateness[-1][0],
        commits=len(instants),
        log_files=len(lateness),
        records=records,
        unknown=unknown,
        first_instant=min(instants),
        last_instant=max(instants),
    )


def _quantile(lateness: list[tuple[int, int]], wanted: float) -> int:
    """The smallest value that at least `wanted` records do not exceed."""
    seen = 0
    for value, count in lateness:
        seen += count
        if seen >= wanted:
            return value
    return lateness[-1][0]
