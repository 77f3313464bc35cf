"""`hudi-assets report`: a table on one page of HTML that needs no network. Reads, never writes, the table."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING

from hudi_assets.engine import (
    DayBill,
    HudiAssetsError,
    HudiTable,
    PastCompaction,
    PastFreshness,
    TableMetrics,
    duration,
    iso,
)
from hudi_assets.reporting import pictures
from hudi_assets.sizes import size_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SHOWN_COMPACTIONS = 20
_SHOWN_DAYS = 14
_STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; color: #1d2733; background: #f4f6f8; margin: 0; }
main { max-width: 60rem; margin: 0 auto; padding: 1.5rem 1rem 3rem; }
h1 { font-size: 1.5rem; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: 1.1rem; margin: 0 0 .25rem; }
p { margin: .25rem 0 .75rem; }
.path { color: #55626f; overflow-wrap: anywhere; }
section { background: #fff; border: 1px solid #dde3e9; border-radius: 8px; padding: 1rem; margin-top: 1rem; }
.key { font-size: 1.15rem; }
.late { color: #b3202a; font-weight: 600; }
.wide { overflow-x: auto; }
.wide svg { display: block; width: 100%; min-width: 640px; height: auto; }
ul { margin: 0; padding-left: 1.2rem; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: .3rem .6rem; border-bottom: 1px solid #e6ebf0; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
footer { color: #55626f; font-size: .85rem; margin-top: 1.5rem; }
"""


@dataclass(frozen=True)
class Page:
    """What the page tells, looked up once, in the section that asks first: what cannot be read costs only these."""

    table: HudiTable
    slo_ms: int | None

    @cached_property
    def metrics(self) -> TableMetrics:
        return self.table.metrics()

    @cached_property
    def past(self) -> Sequence[PastFreshness]:
        return self.table.past_freshness()

    @cached_property
    def compactions(self) -> Sequence[PastCompaction]:
        return self.table.past_compactions()

    @cached_property
    def lateness(self) -> Sequence[tuple[int, int]]:
        return self.table.lateness()

    @property
    def lag_ms(self) -> int | None:
        promise = self.metrics.stats.freshness
        return None if promise.freshness is None else promise.computed_at - promise.freshness

    def html(self) -> str:
        name = escape(self.table.config.name)
        path = f"{escape(self.table.path)}, table version {self.table.config.table_version}"
        looked = f"Looked at {_minute(int(time.time() * 1000))} UTC, made by hudi-assets report."
        body = "\n".join(self._sections())
        return (
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f"<title>{name}: freshness and compaction</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n"
            f'<h1>{name}</h1>\n<p class="path">{path}</p>\n{body}\n<footer>{looked}</footer>\n'
            "</main>\n</body>\n</html>\n"
        )

    def _sections(self) -> Iterator[str]:
        yield f"<section>{_told(self._first)}</section>"
        yield _section(
            "How far the freshness was behind",
            "It grows with the clock and falls with each compaction. A gap: no freshness was known. By today's data "
            "latency, as far back as the active timeline goes; what was published then may have been lower.",
            self._lag,
        )
        yield _section(
            "Log files that are not compacted",
            "Each bar is a log file, from its smallest to its largest event time. A compaction up to the line takes "
            "those that begin at or below it.",
            self._bars,
        )
        yield _section("How many there were", "Log files left after each write.", self._remaining)
        yield _section(
            "What a compaction would cost now",
            "For each threshold the bytes to rewrite. The dots are the freshness that it would reach.",
            self._cost,
        )
        yield _section("What compactions cost", "Of those on the active timeline.", self._compactions)
        yield _section("What they cost by day", "They are added up. What is not known counts nothing.", self._days)
        yield _section(
            "How late records come",
            "Of the latest commits: how long after its event a record was committed, at the most.",
            self._lateness,
        )

    # -- in words ---------------------------------------------------------------------------------

    def _first(self) -> str:
        return f"{self._promise()}<ul>{''.join(f'<li>{fact}</li>' for fact in self._facts())}</ul>"

    def _promise(self) -> str:
        promise = self.metrics.stats.freshness
        if promise.freshness is None or self.lag_ms is None:
            why = escape(promise.reason or "unknown")
            return f'<p class="key late">No freshness can be promised: {why}.</p>'
        late = self.slo_ms is not None and self.lag_ms > self.slo_ms
        against = (
            "" if self.slo_ms is None else f", {'beyond' if late else 'within'} the SLO of {duration(self.slo_ms)}"
        )
        return (
            f'<p class="key{" late" if late else ""}">The read-optimized view holds every ingested record up to '
            f"{_minute(promise.freshness)} UTC. That is {duration(self.lag_ms)} behind the table's clock{against}.</p>"
        )

    def _facts(self) -> Iterator[str]:
        stats = self.metrics.stats
        if stats.remaining_log_files:
            oldest = (
                "" if stats.min_event_time is None else f" Their oldest event is of {_minute(stats.min_event_time)}."
            )
            yield (
                f"{_many(stats.remaining_log_files, 'log file')} ({size_of(stats.remaining_bytes)}) in "
                f"{_many(stats.remaining_file_slices, 'file slice')} are not compacted.{oldest}"
            )
        else:
            yield "All log files are compacted."
        yield from (f"{escape(rows.words)}." for rows in stats.freshness.hidden)
        yield f"The read-optimized view reads {_many(stats.base_files, 'base file')}, {size_of(stats.base_bytes)}."
        if stats.pending:
            yield f"A compaction is pending: {', '.join(stats.pending)}{self._since()}."
        if stats.inflight_writes:
            begun = ", ".join(stats.inflight_writes)
            yield f"{_many(len(stats.inflight_writes), 'write')} began and did not end: {begun}."
        yield self._last()
        with suppress(HudiAssetsError):  # the section on lateness says why
            yield from self._late_in_words()

    def _since(self) -> str:
        since = self.metrics.pending_since_ms
        return "" if since is None else f", published {duration(max(0, self.metrics.read_at_ms - since))} ago"

    def _last(self) -> str:
        last = self.metrics.last_compaction
        if last is None:
            return "No compaction is on the active timeline."
        took = "" if last.duration_ms is None else f" in {duration(last.duration_ms)}"
        read = "" if last.bytes_read is None else f"It read {size_of(last.bytes_read)} and"
        return (
            f"The last compaction, {last.instant}, merged {_many(last.log_files, 'log file')} into "
            f"{_many(last.file_groups, 'base file')}{took}. {read or 'It'} wrote {size_of(last.bytes_written)}."
        )

    def _late_in_words(self) -> Iterator[str]:
        if self.lateness:
            records = sum(count for _, count in self.lateness)
            share, longest = _quantile(self.lateness, 0.95), max(self.lateness)[0]
            yield (
                f"Of the last {records:,} records, 95 % were committed within {duration(share)} of their event, "
                f"and all within {duration(longest)}."
            )

    # -- in pictures ------------------------------------------------------------------------------

    def _lag(self) -> str | Figure:
        promise = self.metrics.stats.freshness
        if not self.past:
            return "Nothing is on the active timeline that could tell."
        return pictures.lag_figure(self.past, (promise.computed_at, promise.freshness), self.slo_ms)

    def _bars(self) -> str | Figure:
        pending = self.table.pending_plan()
        bars = self.table.log_bars(pending)
        if not any(bar.min_event_time is not None and bar.max_event_time is not None for bar in bars):
            return "There are none whose event times are known." if bars else "There are none."
        promise = self.metrics.stats.freshness
        threshold = pending.claims if pending is not None else promise.watermark
        return pictures.event_time_figure(bars, threshold, "")

    def _remaining(self) -> str | Figure:
        return (
            pictures.remaining_figure(self.past) if self.past else "Nothing is on the active timeline that could tell."
        )

    def _cost(self) -> str | Figure:
        if self.metrics.stats.pending:
            return "A compaction is pending: it comes first."
        curve = self.table.cost_curve()
        return pictures.cost_figure(curve) if curve else "There is nothing to compact."

    def _compactions(self) -> str:
        if not self.compactions:
            return "<p>There are none.</p>"
        gained: dict[str, int | None] = {}
        with suppress(HudiAssetsError):  # the costs stand by themselves
            gained = {bill.instant: bill.gained_ms for bill in self.table.bills()}
        rows = [_row(one, gained.get(one.instant)) for one in self.compactions[:_SHOWN_COMPACTIONS]]
        names = ("instant", "threshold (UTC)", "took", "log files", "base files", "read", "written", "freshness gained")
        picture = _drawn(pictures.compactions_figure(self.compactions[::-1]))
        return f"{picture}{_table(names, rows)}"

    def _days(self) -> str:
        names = (
            "day (UTC)",
            "compactions",
            "took",
            "read",
            "written",
            "freshness gained",
            "not all known",
        )
        rows = [_day_row(day) for day in self.metrics.days[:_SHOWN_DAYS]]
        return _table(names, rows) if rows else "<p>There are none.</p>"

    def _lateness(self) -> str | Figure:
        if not self.lateness:
            return "No commit says when its records happened."
        return pictures.lateness_figure(self.lateness, self.table.config.data_latency_ms)


def _section(title: str, words: str, made: Callable[[], str | Figure]) -> str:
    return f"<section><h2>{title}</h2><p>{words}</p>{_told(made)}</section>"


def _told(made: Callable[[], str | Figure]) -> str:
    """What cannot be told, or drawn, is said in words: the rest of the page stands."""
    try:
        found = made()
        if not isinstance(found, str):
            return _drawn(found)
    except (HudiAssetsError, ValueError, ArithmeticError) as problem:
        return f"<p>This cannot be told: {escape(str(problem))}</p>"
    return found if found.startswith("<") else f"<p>{escape(found)}</p>"


def _drawn(figure: Figure) -> str:
    return f'<div class="wide">{pictures.svg(figure)}</div>'


def _table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{name}</th>" for name in names)
    body = "".join(f"<tr>{''.join(f'<td>{escape(value)}</td>' for value in row)}</tr>" for row in rows)
    return f'<div class="wide"><table><tr>{head}</tr>{body}</table></div>'


def _row(one: PastCompaction, gained_ms: int | None) -> Sequence[str]:
    return (
        one.instant,
        _minute(one.threshold),
        "" if one.duration_ms is None else duration(one.duration_ms),
        f"{one.log_files:,}",
        f"{one.file_groups:,}",
        "" if one.bytes_read is None else size_of(one.bytes_read),
        size_of(one.bytes_written),
        "" if gained_ms is None else duration(gained_ms),
    )


def _day_row(day: DayBill) -> Sequence[str]:
    return (
        day.day,
        f"{day.compactions:,}",
        duration(day.duration_ms),
        size_of(day.bytes_read),
        size_of(day.bytes_written),
        duration(day.gained_ms),
        f"{day.unknown:,}",
    )


def _minute(ms: int | None) -> str:
    """UTC, to the minute."""
    return (iso(ms) or "none")[:16].replace("T", " ")


def _many(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def _quantile(lateness: Sequence[tuple[int, int]], wanted: float) -> int:
    """The smallest lateness that so much of the records does not exceed."""
    ordered = sorted(lateness)
    left = wanted * sum(count for _, count in ordered)
    for late, count in ordered:
        left -= count
        if left <= 0:
            return late
    return ordered[-1][0]
