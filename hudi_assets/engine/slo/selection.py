"""What a compaction up to a threshold takes of a file group, as the planner does where nothing deletes."""

from __future__ import annotations

from itertools import accumulate

from hudi_assets.engine.slo.values import Cut, Group, Log


def taken_from(group: Group, cut: Cut) -> tuple[int, ...]:
    """For each log file, in log order, the least threshold that takes it."""
    lows = [log.low for log in group.logs]
    if cut is Cut.SLICE:
        return (min(lows, default=0),) * len(lows)
    if cut is Cut.PREFIX:
        return tuple(accumulate(reversed(lows), min))[::-1]
    found = lows.copy()
    for n in reversed(range(len(lows))):
        # A later one that overlaps it could tie with it: this one comes along.
        later = (found[m] for m in range(n + 1, len(lows)) if group.logs[m].high >= lows[n])
        found[n] = min(lows[n], min(later, default=lows[n]))
    return tuple(found)


def taken(group: Group, threshold: int, cut: Cut) -> tuple[Log, ...]:
    """The log files that are taken, in log order."""
    return tuple(log for log, at in zip(group.logs, taken_from(group, cut), strict=True) if at <= threshold)
