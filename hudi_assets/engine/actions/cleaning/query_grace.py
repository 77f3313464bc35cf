"""How long a replaced file slice stays for the queries that read it, with our cleaner and with Hudi's.

On versions 8 and 9 a compaction is planned at a past instant C. Hudi's cleaner (CleanPlanner) judges the age of what it
replaced by C: with ten commits retained and ten since C, the next clean takes the replaced files, right after the
compaction was completed (tried with 1.2.0). Ours counts from when the compaction was *completed*, and waits for
the grace besides; Hudi's does neither. No row is lost by it, but a query that still reads those files fails. So
`query_time` says how long such queries have, at the pace of the commits. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Final

from hudi_assets.engine.actions.cleaning.plan import RETAINED, Retention, retention
from hudi_assets.engine.errors import InvalidInput
from hudi_assets.engine.model import Action, Instant, QueryTime
from hudi_assets.engine.model.cleans import CleaningPolicy
from hudi_assets.engine.model.units import HOUR_MS, MINUTE_MS, duration, parse_latency
from hudi_assets.engine.table.settings.config import QUERY_GRACE, QUERY_GRACE_LEAST
from hudi_assets.engine.timeline.instants import WRITES, Timeline, instant_ms

DEFAULT_GRACE_MS: Final = HOUR_MS
_AUTOMATIC: Final = "hoodie.clean.automatic"


def query_grace_ms(properties: Mapping[str, str], where: str, *, back_dated: bool) -> int:
    """The table's setting. By default an hour where compactions are back-dated; else none: Hudi's retention counts."""
    given = _stated(properties, QUERY_GRACE, where)
    if given is None:
        return DEFAULT_GRACE_MS if back_dated else 0
    return given


def least_grace_ms(properties: Mapping[str, str], where: str) -> int:
    """What queries must have, else a plan is refused: the table's setting, else a grace that is stated, else nothing.

    Whoever states a grace says how long queries take; the default grace is no such statement.
    """
    least = _stated(properties, QUERY_GRACE_LEAST, where)
    return (_stated(properties, QUERY_GRACE, where) or 0) if least is None else least


def _stated(properties: Mapping[str, str], key: str, where: str) -> int | None:
    given = properties.get(key)
    if given is None:
        return None
    try:
        return parse_latency(given)
    except InvalidInput:
        raise InvalidInput(f"{key} is {given!r}.", where=where, hint="Give a duration: 1h, 30m, 0s.") from None


def query_time(
    properties: Mapping[str, str], timeline: Timeline, cut: str, *, now_ms: int, timezone: str, where: str
) -> QueryTime | None:
    """How long queries on what a compaction at the instant `cut`, completed now, replaces will find it.

    None where nobody cleans, where no clean is in sight, and where both the grace and the least are 0.
    `properties` are the table's settings, which state how the writers clean (else Hudi's defaults count).
    """
    grace = query_grace_ms(properties, where, back_dated=True)
    least = least_grace_ms(properties, where)
    if properties.get(_AUTOMATIC, "true").strip().lower() == "false" or not (grace or least):
        return None
    keep = retention(properties, None, None, where)
    left = _left(keep, timeline, cut, max(grace, least), now_ms, timezone)
    if left is None:
        return None
    words = (
        f"Queries that still read what this compaction replaces have about {_about(left.ms)} before Hudi's cleaner "
        f"({keep.policy}) deletes it: {left.why}. Such a query fails and has to be repeated; no row is lost. "
        f"To leave it {duration(max(grace, least))}, on every writer and here: {left.cure}"
    )
    return QueryTime(
        minutes=round(left.ms / MINUTE_MS, 2),
        words=f"{words}.",
        short=left.ms < grace,
        refused=left.ms < least,
        key=left.key,
        needed=left.needed,
    )


@dataclass(frozen=True, slots=True)
class _Left:
    """The time until a clean takes the files, why, and how much of what would have to be retained for the grace."""

    ms: int
    why: str
    keep: Retention
    policy: CleaningPolicy
    needed: int

    @property
    def key(self) -> str:
        return RETAINED[self.policy][0]

    @property
    def cure(self) -> str:
        if self.policy is self.keep.policy:
            return f"{self.key}={self.needed} or more; it is {self.keep.retained}"
        return f"hoodie.cleaner.policy={self.policy} with {self.key}={self.needed} or more"


def _left(keep: Retention, timeline: Timeline, cut: str, grace_ms: int, now_ms: int, timezone: str) -> _Left | None:
    writes = _Pace.of(timeline.completed(*WRITES), keep.retained, now_ms, timezone)
    if writes is None:
        return None
    age = max(0, now_ms - instant_ms(cut, timezone))
    by_hours = CleaningPolicy.KEEP_LATEST_BY_HOURS, ceil((age + grace_ms) / HOUR_MS)
    if keep.policy is CleaningPolicy.KEEP_LATEST_BY_HOURS:
        ms = max(writes.ms, keep.retained * HOUR_MS - age)
        return _Left(ms, f"the plan's instant lies {_about(age)} back", keep, *by_hours)
    if keep.policy is CleaningPolicy.KEEP_LATEST_COMMITS:
        since = sum(1 for i in timeline.instants if i.action in (*WRITES, Action.COMPACTION) and i.timestamp > cut)
        left = max(1, keep.retained - since)
        why = f"that comes with {_counted(left, 'more commit')}, {writes}; {since} lie after the plan's instant already"
        enough = keep.policy, since + ceil(grace_ms / writes.ms) + 1
        # Of commits that span less than the grace, a number would be projected from a burst.
        return _Left(left * writes.ms, why, keep, *(enough if writes.span_ms >= grace_ms else by_hours))
    if keep.retained == 1:
        return _Left(writes.ms, f"that comes with 1 more commit, {writes}", keep, keep.policy, 2)
    done = _Pace.of(timeline.completed(Action.COMMIT), keep.retained, now_ms, timezone)
    if done is None:
        return None
    left = keep.retained - 1
    why = f"that comes with {_counted(left, 'more compaction')}, {done}"
    # The slice of this compaction, those of the next ones, and the one that they replace.
    return _Left(left * done.ms, why, keep, keep.policy, 2 + ceil(grace_ms / done.ms))


@dataclass(frozen=True, slots=True)
class _Pace:
    """Milliseconds from one to the next, over the last `count`, and until now: neither a burst nor a pause decides."""

    ms: int
    count: int
    span_ms: int

    @classmethod
    def of(cls, done: Sequence[Instant], most: int, now_ms: int, timezone: str) -> _Pace | None:
        times = sorted(_times(done, timezone))[-most:]
        if not times:
            return None
        span = max(len(times), now_ms - times[0])
        return cls(span // len(times), len(times), span)

    def __str__(self) -> str:
        return f"at the pace of the last {self.count}, which span {_about(self.span_ms)}"


def _times(done: Iterable[Instant], timezone: str) -> list[int]:
    return [instant_ms(i.completion or i.timestamp, timezone) for i in done]


def _counted(number: int, what: str) -> str:
    return f"1 {what}" if number == 1 else f"{number} {what}s"


def _about(ms: int) -> str:
    """A duration in whole minutes, or below one in seconds."""
    if ms < MINUTE_MS:
        return duration(ms if ms < 1_000 else round(ms, -3))
    return duration(round(ms / MINUTE_MS) * MINUTE_MS)
