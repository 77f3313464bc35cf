"""The fewest bytes that any policy could move on a small feed, and whether any could keep the SLO: by trying them all.

It knows the future. Compactions take no time, and base files do not grow. It chooses thresholds, as a plan does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from hudi_assets.engine.slo.selection import taken_from
from hudi_assets.engine.slo.simulation.feed import Commit, Feed
from hudi_assets.engine.slo.values import Cut, Group, Log

HOUR = 3_600_000
MINUTE = 60_000
# Commits come at full hours, event times are of half past, so that nothing is due when something comes.
ASKED = 20 * MINUTE


@dataclass(frozen=True)
class Optimum:
    """`moved`: bytes; infinity where no policy keeps the SLO."""

    moved: float


def optimum(feed: Feed, slo_ms: int, late_ms: int) -> Optimum:
    """`late_ms`: by when after their commit rows are to be compacted that came when the SLO was broken already."""
    logs = [(commit.at_ms, new) for commit in feed.commits for new in commit.logs]
    known = [Log(at, new.low, new.high, new.size) for at, new in logs]
    places = [new.place for _, new in logs]
    dues = [new.low + slo_ms if new.low + slo_ms >= at else at + late_ms for at, new in logs]
    hours = sorted({at for at, _ in logs})
    points = sorted({hour + n * HOUR + ASKED for hour in hours for n in range(slo_ms // HOUR + 2)})

    def taken(left: frozenset[int], threshold: int) -> tuple[frozenset[int], int]:
        gone: set[int] = set()
        moved = 0
        for place in {places[n] for n in left}:
            of_it = sorted(n for n in left if places[n] == place)
            group = Group(*place, feed.bases.get(place, 0), tuple(known[n] for n in of_it))
            mine = [n for n, at in zip(of_it, taken_from(group, feed.cut), strict=True) if at <= threshold]
            if mine:
                gone |= set(mine)
                moved += 2 * group.base_bytes + sum(known[n].size for n in mine)
        return left - gone, moved

    @cache
    def best(at: int, left: frozenset[int]) -> float:
        if at == len(points):
            return 0.0 if not left else math.inf
        now = points[at]
        since = points[at - 1] if at else -math.inf
        left = left | {n for n, log in enumerate(known) if since < log.committed_ms <= now}
        if any(dues[n] < now for n in left):
            return math.inf
        found = best(at + 1, left)
        for threshold in {known[n].low for n in left}:
            rest, moved = taken(left, threshold)
            found = min(found, moved + best(at + 1, rest))
        return found

    return Optimum(best(0, frozenset()))


def small_feed(
    arrivals: Sequence[tuple[int, int, int]], bases: Sequence[int], cut: Cut, *, wide: bool = False, until_h: int = 60
) -> Feed:
    """(hour of the commit, file group, hours late) of each log file. `wide`: it reaches up to its commit."""
    from hudi_assets.engine.slo.simulation.feed import NewLog

    by_hour: dict[int, dict[int, int]] = {}
    for hour, group, late in arrivals:
        of_hour = by_hour.setdefault(hour, {})
        of_hour[group] = max(late, of_hour.get(group, 0))
    commits = []
    for hour in sorted(by_hour):
        lows = {group: _START + (hour - late) * HOUR - 30 * MINUTE for group, late in by_hour[hour].items()}
        logs = tuple(
            NewLog(("", str(group)), low, _START + hour * HOUR - 1 if wide else low, 1, 0)
            for group, low in lows.items()
        )
        commits.append(Commit(_START + hour * HOUR, logs))
    sizes = {("", str(n)): base for n, base in enumerate(bases)}
    return Feed("small", tuple(commits), sizes, 30 * MINUTE, _START + until_h * HOUR, cut)


_START = 1_780_272_000_000
