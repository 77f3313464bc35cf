"""Freshness: the promise that the read-optimized view holds every ingested record up to it. Pure.

F = min(watermark, m − 1 ms). The watermark is min(now, request time of the oldest unfinished write)
− data latency: everything up to it is committed, if the latency holds. m is the minimum event time over
every log file that no completed compaction has merged. So F follows from the table as it stands: it
survives other engines' compactions, moves on when nothing remains, and falls back when a late record
arrives below it.
"""

from __future__ import annotations

from collections.abc import Iterable

from .model import Freshness, LogFile
from .strategy import Summaries


def compute_freshness(
    logs: Iterable[LogFile],
    summaries: Summaries,
    *,
    now_ms: int,
    oldest_unfinished_ms: int | None,
    data_latency_ms: int | None,
    last_threshold: tuple[str, int] | None,
) -> Freshness:
    """The table's freshness now. All times epoch ms.

    Without a data latency the watermark is the last event-time compaction's threshold.
    """
    instant, threshold = last_threshold or (None, None)
    if data_latency_ms is not None:
        known = now_ms if oldest_unfinished_ms is None else min(now_ms, oldest_unfinished_ms)
        watermark: int | None = known - data_latency_ms
    else:
        watermark = threshold
    lowest, reason = _lowest(logs, summaries)
    if reason is None and watermark is None:
        reason = "no data latency is set and no event-time compaction has completed"
    freshness = None
    if reason is None and watermark is not None:
        freshness = watermark if lowest is None else min(watermark, lowest - 1)
    return Freshness(
        freshness=freshness,
        reason=reason,
        watermark=watermark,
        threshold=threshold,
        instant=instant,
        min_event_time=lowest,
        computed_at=now_ms,
    )


def _lowest(logs: Iterable[LogFile], summaries: Summaries) -> tuple[int | None, str | None]:
    """(minimum event time, None), or (None, why it is unknown)."""
    lowest: int | None = None
    for log in logs:
        summary = summaries[log.path]
        if summary.holds_nothing:
            continue
        if summary.min_event_time is None:
            return None, f"the event times of {log.path} are unknown: {summary.reason}"
        lowest = summary.min_event_time if lowest is None else min(lowest, summary.min_event_time)
    return lowest, None
