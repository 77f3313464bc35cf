"""`hudi-assets report`: a table on one page of HTML. Starts no Spark."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated

import typer

from hudi_assets.cli.output import print_text
from hudi_assets.cli.table import EventTimeField, EventTimeUnitOption, SettingsOption, TablePath, open_table
from hudi_assets.engine import EnvironmentProblem


def report(
    path: TablePath,
    out: Annotated[Path, typer.Option(metavar="FILE", help="The page: FILE.html.")],
    slo: Annotated[str | None, typer.Option(metavar="DURATION", help="How far the freshness may lag, as 6h.")] = None,
    event_time_field: EventTimeField = None,
    event_time_unit: EventTimeUnitOption = None,
    settings: SettingsOption = None,
) -> None:
    """A page on the table: its freshness over time, remaining log files, costs of compactions, lateness."""
    from hudi_assets.monitoring.tables import slo_ms

    # Else it tells at length where it keeps its fonts when the user has no home.
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    try:
        from hudi_assets.reporting.page import Page
    except ModuleNotFoundError as error:
        raise EnvironmentProblem(
            "The report's pictures need matplotlib.", hint="Install the extra: pip install 'hudi-assets[report]'."
        ) from error
    table = open_table(path, event_time_field, settings=settings, event_time_unit=event_time_unit)
    page = Page(table, slo_ms(slo, "--slo")).html()
    out.write_text(page, "utf-8")
    print_text(f"The report on {table.config.name} is in {out}.")
