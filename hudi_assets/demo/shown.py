"""What `make run` shows: its progress, and at the end what came of it, in 80 columns."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

LATE_CHECK = "no_late_records"


@dataclass
class Summary:
    """What a replay did; its JSON is `.hudi-assets/last-run.json`."""

    days: int
    mode: str
    batches: int = 0
    rows: int = 0
    late_records: int = 0
    fallbacks_published: int = 0
    failed_runs: int = 0
    compactions: list[dict[str, Any]] = field(default_factory=list)
    checks_passed: int = 0
    checks_failed: list[str] = field(default_factory=list)
    queries: dict[str, dict[str, Any]] = field(default_factory=dict)
    freshness: str | None = None
    violations: int | None = None
    seconds: float = 0.0

    @property
    def late_alarms(self) -> int:
        """How often a check told of late rows, as it should in this stream."""
        return sum(failed.startswith(LATE_CHECK) for failed in self.checks_failed)

    @property
    def other_failures(self) -> list[str]:
        return sorted({failed for failed in self.checks_failed if not failed.startswith(LATE_CHECK)})


def progress_bar(console: Console) -> Progress:
    """As wide as it is at most, so that nothing of it is cut off at 80 columns."""
    return Progress(
        TextColumn("{task.description:<22}"),
        BarColumn(bar_width=12),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("left {task.fields[said]}"),
        console=console,
        redirect_stdout=False,
        redirect_stderr=False,
    )


def minute(time: str | None) -> str:
    """An ISO-8601 time to the minute and without its letters; the JSON has it in full."""
    return "none" if time is None else time[:16].replace("T", " ")


def show(summary: Summary, console: Console, table: str, details: Path) -> None:
    """What a replay did: its compactions, both views, the late rows, the checks, and where to look next."""
    console.print(_compaction_table(summary))
    console.print(_view_table(summary))
    for line in _story(summary):
        console.print(line, highlight=False, markup=False)
    for failed in summary.other_failures[:5]:
        console.print(f"  {failed}", style="yellow", soft_wrap=True, highlight=False, markup=False)
    if summary.violations is not None:
        console.print(f"Against the source CSV, at every compaction: {summary.violations} violations.")
    console.print(
        "\nWhere to look next:\n"
        "  make ui     Dagster: the assets, the sensor's ticks, the checks, pictures\n"
        "  make sql    spark-sql on the same catalog: SHOW TBLPROPERTIES flights_ro\n"
        f"  .venv/bin/hudi-assets status {table}\n"
        f"  {details}",
        soft_wrap=True,
        highlight=False,
    )


def _story(summary: Summary) -> list[str]:
    """The stream, its late rows, and the checks."""
    told = [
        f"{summary.rows:,} updates of flights were delivered, in {summary.batches} batches. "
        f"It took {summary.seconds:.0f} s."
    ]
    if summary.late_records:
        told.append(
            f"{summary.late_records:,} of them came late, as they do in this stream: below a freshness that was "
            f"already published. The check {LATE_CHECK} said so {_times(summary.late_alarms)}, and the freshness was "
            f"taken back {_times(summary.fallbacks_published)}. The next compaction takes them in."
        )
    others = summary.other_failures
    passed = f"{summary.checks_passed} checks passed"
    told.append(f"{passed}, and {len(others)} failed that should not:" if others else f"All other {passed}.")
    if summary.failed_runs:
        told.append(f"{summary.failed_runs} runs failed and were tried again: `make ui` shows their logs.")
    return told


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"


def _compaction_table(summary: Summary) -> Table:
    table = _table("Compactions: log files up to the threshold become base files")
    for heading in ("threshold", "log files merged", "log files left", "flights", "seconds"):
        table.add_column(heading, justify="left" if heading == "threshold" else "right")
    for entry in summary.compactions:
        counts = (f"{entry[name]:,}" for name in ("logs_compacted", "logs_remaining", "rows_written"))
        table.add_row(minute(entry["threshold"]), *counts, f"{entry['seconds']:.1f}")
    return table


def _view_table(summary: Summary) -> Table:
    table = _table("Both views now: the read-optimized one says how fresh it is")
    for heading in ("view", "flights", "holds all up to", "behind the clock"):
        table.add_column(heading, justify="right" if heading == "flights" else "left")
    for name, found in summary.queries.items():
        shown = found["behind"] or "unknown"
        table.add_row(name.replace("_", "-"), f"{found['rows']:,}", minute(found["freshness"]), shown)
    return table


def _table(title: str) -> Table:
    return Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD)
