"""A picture of what policies did with one feed: how far the freshness lagged, and what it cost."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure

from hudi_assets.engine import duration

if TYPE_CHECKING:
    from hudi_assets.engine import Comparison

_COLOURS: Final = ("#2f7ebc", "#f2a33a", "#7a7a7a", "#5b9a4c")
_HOUR_MS: Final = 3_600_000


def comparison_figure(found: Comparison) -> Figure:
    """The lag of ours, the sensor's, and of Hudi's best over time, and the bytes that each policy moved."""
    figure = Figure(figsize=(9.5, 5.2), dpi=100, layout="constrained")
    lags, costs = figure.subplots(2, 1, height_ratios=(3, 2))
    best = found.best_of_hudi or found.hudi[0]
    for outcome, colour in zip((found.ours, found.sensor, best), _COLOURS, strict=False):
        when = [datetime.fromtimestamp(at / 1000, UTC) for at, _ in outcome.lags]
        behind = [lag / _HOUR_MS for _, lag in outcome.lags]
        lags.plot(when, behind, color=colour, linewidth=1.1, label=outcome.policy)
    lags.axhline(found.slo_ms / _HOUR_MS, color="#b3202a", linestyle="--", label=f"SLO {duration(found.slo_ms)}")
    lags.set_title(found.feed, loc="left", fontsize=11, parse_math=False)
    lags.set_ylabel("hours behind")
    lags.set_ylim(bottom=0)
    locator = AutoDateLocator(minticks=4, maxticks=9)  # type: ignore[no-untyped-call]
    lags.xaxis.set_major_locator(locator)
    lags.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
    lags.legend(fontsize=8, frameon=False, loc="upper left")
    names = [outcome.policy + (" (tuned)" if outcome is found.tuned else "") for outcome in found.all]
    moved = [outcome.bytes_moved / 1e9 for outcome in found.all]
    keeps = ["#2f7ebc" if outcome.avoidable_min == 0 else "#cccccc" for outcome in found.all]
    costs.barh(range(len(names)), moved, color=keeps, height=0.7)
    costs.set_yticks(range(len(names)), names, fontsize=8, parse_math=False)
    costs.invert_yaxis()
    costs.set_xlabel("GB read and written; grey: it misses the SLO for rows that came in time")
    return figure
