"""What came of a policy: bytes, compactions, and for how long the SLO was missed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hudi_assets.engine.model.units import MINUTE_MS
from hudi_assets.engine.slo.values import Log


@dataclass(frozen=True, slots=True)
class Outcome:
    """`starts`: how often it compacted, with as many `compactions` as that needed plans. Neither counts the last one,
    of all that remains; the bytes do. `missed_min`: minutes in which the published freshness was further behind than
    the SLO. `avoidable_min`: those of them that are due to rows that came in time: a policy could have kept the SLO.
    `lags`: (when, ms behind), if asked.
    """

    policy: str
    starts: int
    compactions: int
    bytes_read: int
    bytes_written: int
    missed_min: float
    avoidable_min: float
    lags: tuple[tuple[int, int], ...] = ()

    @property
    def bytes_moved(self) -> int:
        return self.bytes_read + self.bytes_written


@dataclass(frozen=True, slots=True)
class Life:
    """A log file, and when what it holds was published in a base file."""

    log: Log
    published_ms: int


def missed(lives: Iterable[Life], slo_ms: int, publish_ms: int, until_ms: int) -> tuple[float, float]:
    """(minutes in which the SLO was missed, those due to rows that came in time), up to the end.

    Its rows are in no base file that is published while the freshness lies below its least event time.
    """
    spans, avoidable = [], []
    for life in lives:
        due = life.log.low - 1 + slo_ms
        begun, ended = max(life.log.committed_ms, due), min(life.published_ms, until_ms)
        if begun < ended:
            spans.append((begun, ended))
            if due >= life.log.committed_ms + publish_ms:
                avoidable.append((begun, ended))
    return _together(spans) / MINUTE_MS, _together(avoidable) / MINUTE_MS


def _together(spans: Iterable[tuple[int, int]]) -> int:
    """How long at least one of them lasts."""
    total = 0
    last: int | None = None
    for begun, ended in sorted(spans):
        begun = begun if last is None else max(begun, last)
        if ended > begun:
            total, last = total + ended - begun, ended
    return total


def lags(lives: Iterable[Life], latency_ms: int, looks: Iterable[int]) -> tuple[tuple[int, int], ...]:
    """How far the published freshness was behind, at each look. They are in order."""
    events = sorted((life.log.committed_ms, life.published_ms, life.log.low) for life in lives)
    found, remaining, at = [], [], 0
    for now in looks:
        while at < len(events) and events[at][0] <= now:
            remaining.append(events[at])
            at += 1
        remaining = [one for one in remaining if one[1] > now]
        lowest = min((low for _, _, low in remaining), default=None)
        mark = now - latency_ms
        found.append((now, now - (mark if lowest is None else min(mark, lowest - 1))))
    return tuple(found)
