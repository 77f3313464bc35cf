"""The owner's bounds: hours of the day, a gap between two compactions, bytes an hour."""

from __future__ import annotations

from hudi_assets.engine.model.units import DAY_MS, HOUR_MS, duration
from hudi_assets.engine.slo.values import Done, SloTerms


def spacing(terms: SloTerms, duration_ms: int, size: int) -> int:
    """From the start of a compaction to the earliest start of the next one."""
    paid = 0 if terms.bytes_per_hour is None else size * HOUR_MS // terms.bytes_per_hour
    return max(duration_ms, terms.least_gap_ms, paid)


def earliest(terms: SloTerms, last: Done | None, now_ms: int) -> tuple[int, str | None]:
    """When a compaction may start next, and which bound says so."""
    start, why = now_ms, None
    if last is not None:
        free = last.begun_ms + spacing(terms, 0, last.size)
        if free > now_ms:
            by_gap = last.begun_ms + terms.least_gap_ms == free
            bound = f"{duration(terms.least_gap_ms)} between two compactions" if by_gap else "the bytes an hour"
            start, why = free, bound
    opened = opens(terms, start)
    return opened, why if opened == start else "the hours of the day"


def opens(terms: SloTerms, at_ms: int) -> int:
    """The first moment from then on at which a compaction may start."""
    if terms.hours is None or _is_open(terms.hours, at_ms):
        return at_ms
    into_day = at_ms % DAY_MS
    begins = terms.hours[0] * HOUR_MS
    return at_ms - into_day + (begins if into_day < begins else begins + DAY_MS)


def last_open(terms: SloTerms, at_ms: float) -> float:
    """The last moment up to then at which a compaction may start."""
    if terms.hours is None or _is_open(terms.hours, at_ms):
        return at_ms
    into_day = at_ms % DAY_MS
    ends = terms.hours[1] * HOUR_MS
    return at_ms - into_day + (ends if into_day >= ends else ends - DAY_MS) - 1


def _is_open(hours: tuple[int, int], at_ms: float) -> bool:
    begins, ends = hours[0] * HOUR_MS, hours[1] * HOUR_MS
    into_day = at_ms % DAY_MS
    return begins <= into_day < ends if begins < ends else into_day >= begins or into_day < ends
