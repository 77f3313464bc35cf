"""How long a replaced file slice stays for the queries that read it, and whether Hudi's own cleaner leaves it so long.

On versions 8 and 9 a compaction is planned at a past instant C. Hudi's cleaner (CleanPlanner) judges the age of what it
replaced by C: with ten commits retained and ten since C, the next clean takes the replaced files, right after the
compaction was completed (tried with 1.2.0). Ours counts from when the compaction was *completed*, and waits for
the grace besides; Hudi's does neither, so it has to retain enough, which `cleaner_shortfall` says. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Final

from hudi_assets.engine.errors import InvalidInput
from hudi_assets.engine.event_time.units import duration, parse_latency
from hudi_assets.engine.housekeeping.clean_plan import RETAINED, CleaningPolicy, retention
from hudi_assets.engine.model import Action
from hudi_assets.engine.settings.config import QUERY_GRACE
from hudi_assets.engine.timeline.instants import WRITES, Timeline, format_instant, instant_ms

DEFAULT_GRACE_MS: Final = 3_600_000
_AUTOMATIC: Final = "hoodie.clean.automatic"
_HOUR_MS: Final = 3_600_000


def query_grace_ms(properties: Mapping[str, str], where: str, *, back_dated: bool) -> int:
    """The table's setting. By default an hour where compactions are back-dated; else none: Hudi's retention counts."""
    given = properties.get(QUERY_GRACE)
    if given is None:
        return DEFAULT_GRACE_MS if back_dated else 0
    try:
        return parse_latency(given)
    except InvalidInput:
        raise InvalidInput(f"{QUERY_GRACE} is {given!r}.", where=where, hint="Give a duration: 1h, 30m, 0s.") from None


@dataclass(frozen=True, slots=True)
class Shortfall:
    """Hudi's cleaner would take files too soon: `key` is `has`, and has to be `needed`."""

    policy: CleaningPolicy
    key: str
    has: int
    needed: int
    grace_ms: int

    def __str__(self) -> str:
        return (
            f"Hudi's cleaner ({self.policy}) would delete the files that this compaction replaces within the query "
            f"grace of {duration(self.grace_ms)}: {self.key} is {self.has}, and has to be {self.needed} or more on "
            "every writer"
        )


def cleaner_shortfall(
    properties: Mapping[str, str],
    timeline: Timeline,
    cut: str,
    *,
    grace_ms: int,
    now_ms: int,
    timezone: str,
    where: str,
) -> Shortfall | None:
    """What Hudi's cleaner lacks if a compaction at the instant `cut` is completed now; None where it retains enough.

    `properties` are the table's settings, which state how the writers clean (else Hudi's defaults count). The commits
    of the next grace are taken to be as many as in the last one.
    """
    if grace_ms == 0 or properties.get(_AUTOMATIC, "true").strip().lower() == "false":
        return None
    keep = retention(properties, None, None, where)
    key, _ = RETAINED[keep.policy]
    if keep.policy is CleaningPolicy.KEEP_LATEST_COMMITS:
        since = sum(1 for i in timeline.instants if i.action in (*WRITES, Action.COMPACTION) and i.timestamp > cut)
        needed = since + _expected(timeline, WRITES, grace_ms, now_ms, timezone) + 1
    elif keep.policy is CleaningPolicy.KEEP_LATEST_BY_HOURS:
        needed = ceil((now_ms - instant_ms(cut, timezone) + grace_ms) / _HOUR_MS)
    else:
        # The slice of this compaction, those of the next ones, and the one that they replace.
        needed = 2 + _expected(timeline, (Action.COMMIT,), grace_ms, now_ms, timezone)
    return Shortfall(keep.policy, key, keep.retained, needed, grace_ms) if keep.retained < needed else None


def _expected(timeline: Timeline, actions: tuple[Action, ...], grace_ms: int, now_ms: int, timezone: str) -> int:
    """How many of the actions will complete in the grace, at the rate that the timeline shows of the last one."""
    since = format_instant(now_ms - grace_ms, timezone)
    done = [i for i in timeline.completed(*actions) if (i.completion or i.timestamp) > since]
    writes = timeline.completed(*WRITES)
    if not done:
        return 0
    oldest = instant_ms(min(i.completion or i.timestamp for i in writes), timezone)
    seen_ms = min(grace_ms, max(1, now_ms - oldest))
    return ceil(len(done) * grace_ms / seen_ms)
