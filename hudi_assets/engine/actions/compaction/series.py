"""Compacting up to a threshold: as many plans as it takes, one after the other. Pure but for what it is given.

One plan may reach less than was asked for: where it is bounded (I/O, partitions), and on versions 8 and 9, where file
groups that need another cut wait for another plan.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hudi_assets.engine.model import CompactionResult, NoPlan, Plan


@dataclass(frozen=True, slots=True)
class CompactionSeries:
    """Compactions, in order, of one call. `threshold` (epoch ms) is what was asked for; None with Hudi's strategies.

    `in_the_way`: in words, why the threshold is not reached; None where it is.
    """

    threshold: int | None
    compactions: tuple[CompactionResult, ...]
    in_the_way: str | None


def run_series(
    threshold: int | None,
    most: int,
    *,
    plan: Callable[[], Plan | NoPlan],
    execute: Callable[[Plan], CompactionResult],
    is_reached: Callable[[], bool],
) -> CompactionSeries | NoPlan:
    """Plan and execute until the threshold (epoch ms) is reached; `NoPlan` where there is nothing to do.

    At most `most` times: as many as there are file groups with log files. Each plan takes all that is due of one file
    group at least, so more is due only where records came late meanwhile, and that might never end.
    """
    done: list[CompactionResult] = []
    while len(done) < most:
        found = plan()
        if isinstance(found, NoPlan):
            if not done:
                return found
            return CompactionSeries(threshold, tuple(done), None if is_reached() else found.reason)
        done.append(execute(found))
        if threshold is None or found.claims == threshold:
            return CompactionSeries(threshold, tuple(done), None)
    late = f"after {most} compactions log files are still due: records came late meanwhile"
    return CompactionSeries(threshold, tuple(done), None if is_reached() else late)
