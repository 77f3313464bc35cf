"""What the policy says of its choice."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from hudi_assets.engine.model.units import DAY_MS, HOUR_MS, duration, iso
from hudi_assets.engine.slo.bounds import apart

if TYPE_CHECKING:
    from hudi_assets.engine.slo.levels import Work
    from hudi_assets.engine.slo.values import History, SloTerms, View


def can_wait(work: Work, needed: int) -> str:
    """Why nothing is done now."""
    return (
        f"the SLO of {duration(work.terms.slo_ms)} needs no compaction until {iso(needed)}: the oldest remaining event "
        f"is of {_oldest(work)}; compacting all that remains now would move {megabytes(work.size)} and take up to "
        f"{_taken(work, work.size)}"
    )


def bound_holds(work: Work, size: int, bound: str, free: int, needed: float) -> str:
    """Why nothing is done although it is needed, and how much later than the SLO needs that will be."""
    late_ms = 60_000 * -(-int(free - needed) // 60_000) if free - needed < math.inf else 0
    late = f", {duration(late_ms)} later than it is needed" if late_ms > 0 else ""
    return (
        f"a compaction that would move {megabytes(size)} is needed for the SLO of {duration(work.terms.slo_ms)}, "
        f"but {bound} allow none until {iso(free)}{late}"
    )


def used_of_bytes(history: History, bytes_per_hour: int, now: int) -> str:
    """How much of the bytes an hour was used up in the last day, or as far back as compactions are remembered."""
    since = max(now - DAY_MS, min(now, history.done[0].begun_ms))  # which lies ahead where the clock was put back
    moved = sum(one.size for one in history.done if one.begun_ms >= since)
    allowed = bytes_per_hour * (now - since) // HOUR_MS
    return (
        f"; since {iso(since)} compactions moved {megabytes(moved)}, and the bytes an hour allow {megabytes(allowed)}"
    )


def starts(work: Work, size: int, left: str, next_ms: int | None, *, in_time: bool) -> str:
    """Why it starts now, and why up to there."""
    slo = duration(work.terms.slo_ms)
    due = min(level.due for level in work.levels)
    if work.levels[0].late < math.inf:
        why = f"rows of {_oldest(work)} came when the SLO of {slo} was broken for them already"
    else:
        why = f"rows of {_oldest(work)} must be in a published base file by {iso(int(due))} for the SLO of {slo}"
    cost = f"the compaction moves {megabytes(size)} and takes up to {_taken(work, size)}"
    then = "" if next_ms is None else f"; what waits needs the next one by {iso(next_ms)}"
    missed = "" if in_time else "; it is too late for the SLO all the same"
    return f"{why}; {cost}; {left}{then}{missed}"


def left_out(groups: int, size: int) -> str:
    """What waits for a later compaction."""
    if not groups:
        return "it takes every remaining log file up to the watermark"
    return f"{groups} file groups wait, since taking them now would rewrite {megabytes(size)} that can be put off"


def above_watermark(work: Work, view: View) -> str:
    """Why nothing is done although it is needed: a compaction would move no freshness."""
    return (
        f"the oldest remaining event is of {_oldest(work)}, above the watermark, which lies "
        f"{duration(view.latency_ms)} behind the clock"
    )


def with_reach(why: str, view: View, terms: SloTerms) -> str:
    """What is said of a proposal, and why no policy keeps the SLO, where none does."""
    bound = apart(terms)
    behind = view.latency_ms + bound.ms
    if behind < terms.slo_ms:
        return why
    also = f", and {bound.bound}" if bound.ms else ""
    return (
        f"{why}; no compaction keeps an SLO of {duration(terms.slo_ms)} with a data latency of "
        f"{duration(view.latency_ms)}{also}: the freshness lies {duration(behind)} behind the clock "
        f"{'before one starts' if bound.ms else 'at the best'}"
    )


def megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"


def _oldest(work: Work) -> str:
    return iso(work.levels[0].oldest) or ""


def _taken(work: Work, size: int) -> str:
    return duration(60_000 * -(-work.speed.at_most(size) // 60_000))
