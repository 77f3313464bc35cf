"""Every policy on one feed: ours, this project's sensor, Hudi's triggers as they come, and one tuned afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from hudi_assets.engine.model.units import HOUR_MS, MINUTE_MS
from hudi_assets.engine.slo.simulation.feed import Feed, Machine
from hudi_assets.engine.slo.simulation.least import least_bytes
from hudi_assets.engine.slo.simulation.outcome import Outcome
from hudi_assets.engine.slo.simulation.policies import CompactEvery, HudiTrigger, Ours
from hudi_assets.engine.slo.simulation.run import simulate
from hudi_assets.engine.slo.values import SloTerms

# Shares of the SLO that a TIME_ELAPSED is tried with.
SHARES: Final = (0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)
_BOUND: Final = 2_000_000_000


@dataclass(frozen=True, slots=True)
class Comparison:
    """`hudi`: its triggers with their default numbers. `tuned`: of those with a TIME_ELAPSED the one that moves the
    fewest bytes of all that keep the SLO, found afterwards; None where none keeps it. `least`: bytes that nobody who
    keeps the SLO can stay below; None where that is not known (`least_bytes`).
    """

    feed: str
    slo_ms: int
    ours: Outcome
    sensor: Outcome
    hudi: tuple[Outcome, ...]
    tuned: Outcome | None
    least: int | None = None

    @property
    def best_of_hudi(self) -> Outcome | None:
        """Of those with their default numbers that keep the SLO the one that moves the fewest bytes."""
        return fewest(self.hudi, self.ours, self.slo_ms)

    @property
    def all(self) -> tuple[Outcome, ...]:
        return (self.ours, self.sensor, *self.hudi, *([self.tuned] if self.tuned else []))


def compare(
    feed: Feed, terms: SloTerms, machine: Machine | None = None, *, seed: int = 1, with_lags: bool = False
) -> Comparison:
    """What each policy moves, and for how long it misses the SLO, for rows that came in time and for all.

    Args:
        feed: Of `feed_of`, or a table's own past (`HudiTable.past_feed`).
        terms: The SLO, and the bounds of this project's policy.
        machine: How fast it compacts. Default: as the table's compactions did, else 45 s and a second for each 100 MB.
        seed: Of how much durations vary.
        with_lags: Note how far the freshness is behind over time, for a picture.

    Returns:
        What came of each policy. Of Hudi's TIME_ELAPSED also the best of many values, found afterwards.
    """
    slo = terms.slo_ms

    def run(policy: Ours | CompactEvery | HudiTrigger) -> Outcome:
        return simulate(feed, policy, slo, machine, seed=seed, with_lags=with_lags)

    ours = run(Ours(terms))
    return Comparison(
        feed=feed.name,
        slo_ms=slo,
        ours=ours,
        sensor=run(CompactEvery(slo // 4, slo)),
        hudi=tuple(run(policy) for policy in defaults()),
        least=least_bytes(feed, slo, machine),
        tuned=fewest([run(HudiTrigger(None, round(slo * share))) for share in SHARES], ours, slo),
    )


def defaults() -> tuple[HudiTrigger, ...]:
    """Hudi's triggers by its default numbers: five commits, an hour. And a strategy with an I/O bound."""
    return (
        HudiTrigger(5),
        HudiTrigger(None, HOUR_MS),
        HudiTrigger(5, HOUR_MS),
        HudiTrigger(5, None, _BOUND),
    )


def fewest(outcomes: Sequence[Outcome], ours: Outcome, slo_ms: int) -> Outcome | None:
    """Of those that keep the SLO for all rows that came in time; where rows came too late, hardly worse than ours."""
    most = ours.missed_min + slo_ms / 4 / MINUTE_MS
    keeps = [one for one in outcomes if one.avoidable_min == 0 and one.missed_min <= most]
    return min(keeps, key=lambda one: one.bytes_moved, default=None)
