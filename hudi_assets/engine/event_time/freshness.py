"""Freshness: the promise that the read-optimized view holds every ingested record up to it. Pure.

F = min(watermark, m − 1 ms). The watermark is min(now, request time of the oldest unfinished write)
− data latency: everything up to it is committed, if the latency holds. m is the minimum event time over
every log file that no completed compaction has merged. So F follows from the table as it stands: it
survives other engines' compactions, moves on when nothing remains, and falls back when a late record
arrives below it. Rows that a completed commit wrote and no view shows stop it as remaining ones do.
For records without event time a bound by their commit stands (`commit_bound`).
"""

from __future__ import annotations

from collections.abc import Iterable

from hudi_assets.engine.model import BaseFile, CommitBound, Freshness, HiddenRows, LogFile
from hudi_assets.engine.model.column_unit import ColumnUnit
from hudi_assets.engine.model.log_summary import Summaries
from hudi_assets.engine.table.settings.config import NAME_A_COLUMN, STATE_A_LATENCY


def compute_freshness(
    logs: Iterable[LogFile],
    summaries: Summaries,
    *,
    now_ms: int,
    oldest_unfinished_ms: int | None,
    data_latency_ms: int | None,
    last_threshold: tuple[str, int] | None,
    no_latency_reason: str | None = None,
    missing: str | None = None,
    column: str | None = None,
    bounds: tuple[CommitBound, ...] = (),
    unit: ColumnUnit | None = None,
    hidden: tuple[HiddenRows, ...] = (),
) -> Freshness:
    """The table's freshness now. All times epoch ms.

    Without a data latency the watermark is the last event-time compaction's threshold, unless
    `no_latency_reason` says why a latency that should be there is missing. `missing` names a file of the
    table that is gone: what it held is in no view. `column` is the event-time column, `unit` its unit, for the reader.
    `hidden`: rows in no view; where the event times of some are unknown, `missing` says why.
    """
    instant, threshold = last_threshold or (None, None)
    mark = watermark(now_ms, oldest_unfinished_ms, data_latency_ms)
    if mark is None and no_latency_reason is None:
        mark = threshold
    lowest, reason = lowest_of(logs, summaries, data_latency_ms)
    reason = missing or reason
    if reason is None and mark is None:
        reason = no_latency_reason or f"{no_threshold_reason(column)}; no data latency is set: {STATE_A_LATENCY}"
    freshness = None
    if reason is None and mark is not None:
        lows = (lowest, *(rows.min_event_time for rows in hidden))
        freshness = min([mark, *(low - 1 for low in lows if low is not None)])
    return Freshness(
        freshness=freshness,
        reason=reason,
        watermark=mark,
        threshold=threshold,
        instant=instant,
        min_event_time=lowest,
        computed_at=now_ms,
        bounds=bounds,
        unit=unit,
        hidden=hidden,
    )


def no_threshold_reason(column: str | None) -> str:
    """Why a table has no threshold, as the end of a sentence.

    Args:
        column: The event-time column; None where none is known. A compaction counts for the column that it was planned
            with.
    """
    if column is None:
        return f"no event-time column is known: {NAME_A_COLUMN}"
    return f"no event-time compaction by column {column!r} has completed"


def watermark(now_ms: int, oldest_unfinished_ms: int | None, data_latency_ms: int | None) -> int | None:
    """Everything up to it is committed, if the data latency holds; None without a latency."""
    if data_latency_ms is None:
        return None
    known = now_ms if oldest_unfinished_ms is None else min(now_ms, oldest_unfinished_ms)
    return known - data_latency_ms


def lowest_of(
    files: Iterable[LogFile | BaseFile], summaries: Summaries, data_latency_ms: int | None
) -> tuple[int | None, str | None]:
    """Of some files (minimum event time, None), or (None, why it is unknown)."""
    lowest: int | None = None
    for file in files:
        summary = summaries[file.path]
        if summary.holds_nothing:
            continue
        low = summary.counts_from
        if low is None:
            hint = "; a data latency would bound them" if summary.undated and data_latency_ms is None else ""
            return None, f"the event times of {file.path} are unknown: {summary.reason}{hint}"
        lowest = low if lowest is None else min(lowest, low)
    return lowest, None
