"""`hudi-assets simulate`: what freshness SLOs would cost, by this policy and by others. Starts no Spark."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from hudi_assets.cli.groups import with_groups
from hudi_assets.cli.output import OUT, print_json, print_text
from hudi_assets.cli.slo import Bounds
from hudi_assets.cli.table import AsJson, DataLatency, EventTimeField, EventTimeUnitOption, SettingsOption, open_table
from hudi_assets.engine import (
    DISTRIBUTIONS,
    Comparison,
    EnvironmentProblem,
    Feed,
    InvalidInput,
    Outcome,
    compare,
    duration,
    feed_of,
)


@with_groups
def simulate(
    path: Annotated[
        str | None, typer.Argument(metavar="PATH", help="A table, whose own past is taken.", show_default=False)
    ] = None,
    slo: Annotated[str, typer.Option(metavar="DURATION,…", help="One SLO or several, as 1h,6h,1d.")] = "6h",
    distribution: Annotated[
        str | None,
        typer.Option(metavar="NAME,…", help=f"Made-up rows: {', '.join(DISTRIBUTIONS)}. Default: all of them."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of what is random.")] = 1,
    bounds: Bounds = Bounds(),  # noqa: B008 - frozen
    picture: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The first of the simulations as a picture: FILE.svg.")
    ] = None,
    data_latency: DataLatency = None,
    event_time_field: EventTimeField = None,
    event_time_unit: EventTimeUnitOption = None,
    settings: SettingsOption = None,
    as_json: AsJson = False,
) -> None:
    """What a freshness SLO would cost: bytes, compactions and minutes missed, by this policy and by Hudi's triggers."""
    if path is not None and distribution is not None:
        raise InvalidInput("Give a table or --distribution, not both.")
    slos = [bounds.terms(one, data_latency) for one in slo.split(",")]
    if path is not None:
        table = open_table(path, event_time_field, settings=settings, event_time_unit=event_time_unit)
        feeds = [table.past_feed(data_latency=data_latency)]
    else:
        names = list(DISTRIBUTIONS) if distribution is None else distribution.split(",")
        feeds = [feed_of(name.strip(), seed=seed) for name in names]
        if data_latency is not None:
            raise InvalidInput("--data-latency goes with a table.", hint="Leave it out.")
    found: list[Comparison] = []
    for feed in feeds:
        for terms in slos:
            drawn = picture is not None and not found
            one = compare(feed, terms, seed=seed, with_lags=drawn)
            if drawn and picture is not None:
                _draw(one, picture)
            found.append(one)
            if not as_json:
                _show(feed, one)
    if as_json:
        print_json({"simulations": [_json(one) for one in found]})
    elif picture is not None:
        print_text(f"The picture is in {picture}.")


def _draw(one: Comparison, picture: Path) -> None:
    # Else it tells at length where it keeps its fonts when the user has no home.
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    try:
        from hudi_assets.reporting.pictures import svg
        from hudi_assets.reporting.simulations import comparison_figure
    except ModuleNotFoundError as error:
        raise EnvironmentProblem(
            "The picture needs matplotlib.", hint="Install the extra: pip install 'hudi-assets[report]'."
        ) from error
    picture.write_text(svg(comparison_figure(one)), "utf-8")


def _show(feed: Feed, one: Comparison) -> None:
    print_text(f"{feed.name}, SLO {duration(one.slo_ms)}, {feed.days:.1f} days, {len(feed.commits)} commits")
    grid = Table(box=None, pad_edge=False)
    grid.add_column("policy", min_width=24)
    for heading in ("moved", "of ours", "runs", "missed", "in time"):
        grid.add_column(heading, justify="right")
    for outcome in one.all:
        tuned = " (tuned)" if outcome is one.tuned else ""
        grid.add_row(outcome.policy + tuned, *_cells(outcome, one.ours))
    if one.least is not None:
        grid.add_row("nobody can move less", *_cells_of(one.least, one.ours), "", "", "")
    OUT.print(grid, markup=False)
    print_text(
        "moved: GB read and written; missed: minutes beyond the SLO; in time: those for rows that came in time.\n"
    )


def _cells(outcome: Outcome, ours: Outcome) -> Sequence[str]:
    minutes = (f"{one:,.0f} min" if one == 0 or one >= 1 else "<1 min" for one in _missed(outcome))
    return (*_cells_of(outcome.bytes_moved, ours), str(outcome.starts), *minutes)


def _cells_of(moved: int, ours: Outcome) -> Sequence[str]:
    ratio = moved / ours.bytes_moved if ours.bytes_moved else 1.0
    return f"{moved / 1e9:,.1f}", f"{ratio:.2f}"


def _missed(outcome: Outcome) -> tuple[float, float]:
    return outcome.missed_min, outcome.avoidable_min


def _json(one: Comparison) -> dict[str, Any]:
    def fields(outcome: Outcome | None) -> dict[str, Any] | None:
        if outcome is None:
            return None
        return {
            "policy": outcome.policy,
            "starts": outcome.starts,
            "compactions": outcome.compactions,
            "bytes_read": outcome.bytes_read,
            "bytes_written": outcome.bytes_written,
            "missed_minutes": round(outcome.missed_min, 2),
            "missed_minutes_in_time": round(outcome.avoidable_min, 2),
        }

    return {
        "feed": one.feed,
        "slo_ms": one.slo_ms,
        "ours": fields(one.ours),
        "sensor": fields(one.sensor),
        "hudi": [fields(outcome) for outcome in one.hudi],
        "tuned": fields(one.tuned),
        "least_bytes": one.least,
    }
