"""The owner's bounds: hours of the day, a gap between two compactions, bytes an hour."""

from __future__ import annotations

from dataclasses import dataclass

from hudi_assets.engine.errors import InvalidInput
from hudi_assets.engine.model.units import DAY_MS, HOUR_MS, duration
from hudi_assets.engine.slo.values import Done, SloTerms


@dataclass(frozen=True, slots=True)
class Apart:
    """How far two starts lie apart again and again, whatever a policy does. `bound` says why, `cure` what helps."""

    ms: int
    bound: str
    cure: str


def apart(terms: SloTerms) -> Apart:
    """By the gap and the hours. What the bytes an hour allow is known only when a compaction is due."""
    gap = terms.least_gap_ms
    found = [Apart(gap, f"starts are {duration(gap)} or more apart (least gap)", "a shorter least gap")]
    if terms.hours is not None:
        begins, ends = terms.hours
        found.append(_by_hours(gap, ((ends - begins) % 24 or 24) * HOUR_MS))
    return max(found, key=lambda one: one.ms)


def _by_hours(gap: int, open_ms: int) -> Apart:
    """Where of each day `open_ms` allow a start. Again and again one comes as many days later as the gap has begun."""
    days = max(1, -(-gap // DAY_MS))
    if gap >= (days - 1) * DAY_MS + open_ms:  # so none comes a day sooner: the last moment of the hours is outside
        in_days = "" if days == 1 else f"in {days} days, "
        once = f"a least gap of {duration(gap)} allows one start {in_days}in the {duration(open_ms)} of a day that "
        return Apart(days * DAY_MS, f"{once}allow any", "a shorter least gap, or more hours")
    closed = days * DAY_MS - open_ms
    if days == 1:
        return Apart(closed, f"no hour of {duration(closed)} a day allows a start", "more hours")
    both = f"with a least gap of {duration(gap)} some starts are {duration(closed)} apart"
    return Apart(closed, f"{both}, as {duration(open_ms)} of a day allow any", "a shorter least gap, or more hours")


def check_bounds(terms: SloTerms, latency_ms: int = 0, tick_ms: int = 0) -> None:
    """Refuse bounds by which no policy keeps the SLO while rows come.

    Right before a start the freshness lies a data latency and the time since the last start behind the clock, and a
    tick more where somebody looks that often only. A compaction takes time besides.

    Raises:
        InvalidInput: They do not go together.
    """
    bound = apart(terms)
    behind = latency_ms + bound.ms + tick_ms
    if bound.ms == 0 or behind < terms.slo_ms:
        return
    others = [(latency_ms, "of data latency"), (tick_ms, "until the next look")]
    more = "".join(f", with {duration(ms)} {what}" for ms, what in others if ms)
    raise InvalidInput(
        f"No compaction keeps an SLO of {duration(terms.slo_ms)}: {bound.bound}{more}. So the freshness comes to lie "
        f"{duration(behind)} behind the clock before one starts, which takes time too.",
        hint=f"Give an SLO of more than {duration(behind)}, or {bound.cure}.",
    )


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
