"""The bytes below which nobody stays who keeps an SLO, not even who knows the future.

Each file group by itself, with compactions that take no time: what is found so is less than any policy can reach, and
not always within reach. Rows that came too late may wait for ever.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from hudi_assets.engine.slo.simulation.feed import Feed, Machine, Place
from hudi_assets.engine.slo.values import Cut


class _Log(NamedTuple):
    """`until`: when it has to be in a base file."""

    committed: int
    until: float
    size: int
    growth: int


def least_bytes(feed: Feed, slo_ms: int, machine: Machine | None = None) -> int | None:
    """Bytes read and written; None for tables whose plans may take any range, of which a bound is not known.

    As in a simulation, what remains at the end is compacted once more.
    """
    if feed.cut is Cut.RANGES:
        return None
    publish_ms = (machine or feed.machine or Machine()).publish_ms
    groups: dict[Place, list[_Log]] = {}
    for commit in feed.commits:
        for log in commit.logs:
            until: float = log.low - 1 + slo_ms - publish_ms
            if until < commit.at_ms or until + publish_ms >= feed.until_ms:
                until = math.inf  # it came too late; or nobody looks any more when it is due
            groups.setdefault(log.place, []).append(_Log(commit.at_ms, until, log.size, log.growth))
    return sum(_least_of(logs, feed.bases.get(place, 0)) for place, logs in groups.items())


def _least_of(logs: Sequence[_Log], base: int) -> int:
    """Of one file group. Each compaction takes all up to some log file, and rewrites what the ones before it made."""
    bases = list(accumulate((log.growth for log in logs), initial=base))
    best = [0] * (len(logs) + 1)
    for first in reversed(range(len(logs))):
        until, found = math.inf, math.inf
        for last in range(first, len(logs)):
            until = min(until, logs[last].until)
            if logs[last].committed > until:
                break
            found = min(found, best[last + 1])
        best[first] = int(found) + 2 * bases[first]
    return best[0] + sum(log.size + log.growth for log in logs)
