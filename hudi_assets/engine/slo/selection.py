"""What a compaction up to a threshold takes of a file group, as the planner does where nothing deletes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from hudi_assets.engine.slo.values import Cut, Group, Log


def taken_from(group: Group, cut: Cut) -> tuple[int, ...]:
    """For each log file, in log order, the least threshold that takes it."""
    lows = [log.low for log in group.logs]
    if cut is Cut.SLICE:
        return (min(lows, default=0),) * len(lows)
    if cut in (Cut.PREFIX, Cut.COMMITS):
        prefix = tuple(accumulate(reversed(lows), min))[::-1]
        return prefix if cut is Cut.PREFIX else _by_commit(group.logs, prefix)
    found = lows.copy()
    for n in reversed(range(len(lows))):
        # A later one that overlaps it could tie with it: this one comes along.
        later = (found[m] for m in range(n + 1, len(lows)) if group.logs[m].high >= lows[n])
        found[n] = min(lows[n], min(later, default=lows[n]))
    return tuple(found)


def _by_commit(logs: Sequence[Log], least: Sequence[int]) -> tuple[int, ...]:
    """Late rows have a log file of their own. But a commit's log files are at one instant, and no cut parts them."""
    first: dict[int, int] = {}
    return tuple(first.setdefault(log.committed_ms, at) for log, at in zip(logs, least, strict=True))


def taken(group: Group, threshold: int, cut: Cut) -> tuple[Log, ...]:
    """The log files that are taken, in log order."""
    return tuple(log for log, at in zip(group.logs, taken_from(group, cut), strict=True) if at <= threshold)
