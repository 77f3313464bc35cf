"""The timeline as a value: which instants there are, and what that makes of a file. Pure.

Rules from org.apache.hudi.common.table.timeline.HoodieDefaultTimeline: an instant counts as committed
when it is completed on the active timeline, or older than the timeline's start (it was archived then).
"""

from __future__ import annotations

import calendar
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from functools import cached_property

from hudi_assets.engine.errors import CorruptTable
from hudi_assets.engine.model import Action, Instant, State
from hudi_assets.engine.timeline.zone import UTC, zone_of

_MARKS = str.maketrans("", "", "-T:")
_INSTANT = re.compile(r"\d{14}(?:\d{3})?", re.ASCII)
WRITES = (Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT)
_WRITE_TIMELINE = (*WRITES, Action.COMPACTION, Action.LOG_COMPACTION)
_PENDING_SERVICES = (
    Action.COMPACTION,
    Action.LOG_COMPACTION,
    Action.CLUSTERING,
    Action.REPLACE_COMMIT,
    Action.ROLLBACK,
    Action.RESTORE,
)


@dataclass(frozen=True)
class Timeline:
    """All instants of the active timeline, each in its latest state, ordered by time."""

    instants: tuple[Instant, ...]

    @cached_property
    def _completed_writes(self) -> frozenset[str]:
        return frozenset(i.timestamp for i in self.instants if i.is_completed and i.action in WRITES)

    @cached_property
    def start(self) -> str | None:
        """The first write or compaction: what lies before it was archived.

        Cleans and rollbacks are archived by a count of their own, so an older one may well still be there
        (HoodieTimelineArchiver; the views start from getWriteTimeline).
        """
        return next((i.timestamp for i in self.instants if i.action in _WRITE_TIMELINE), None)

    def is_committed(self, timestamp: str) -> bool:
        """True where a base file, log block or slice of this instant is to be read."""
        if timestamp in self._completed_writes:
            return True
        return self.is_archived(timestamp)

    def is_archived(self, timestamp: str) -> bool:
        """True for what is older than the active timeline."""
        return self.start is not None and timestamp < self.start

    @cached_property
    def completions(self) -> Mapping[str, str]:
        """Completed write → when it was completed; where the version does not say, its own time."""
        return {
            i.timestamp: i.completion or i.timestamp for i in self.instants if i.is_completed and i.action in WRITES
        }

    def completed(self, *actions: Action) -> tuple[Instant, ...]:
        return tuple(i for i in self.instants if i.is_completed and i.action in actions)

    def last_completed_first(self, *actions: Action) -> tuple[Instant, ...]:
        """In the order in which they took effect: a compaction at a past instant comes when it was completed."""
        return tuple(sorted(self.completed(*actions), key=lambda i: i.completion or i.timestamp, reverse=True))

    def pending(self, *actions: Action) -> tuple[Instant, ...]:
        return tuple(i for i in self.instants if not i.is_completed and i.action in actions)

    @property
    def pending_compactions(self) -> tuple[Instant, ...]:
        return self.pending(Action.COMPACTION)

    @property
    def pending_services(self) -> tuple[Instant, ...]:
        """Whatever keeps a new compaction from being planned: strictly one at a time."""
        return self.pending(*_PENDING_SERVICES)

    @property
    def inflight_writes(self) -> tuple[Instant, ...]:
        return self.pending(Action.DELTA_COMMIT, Action.COMMIT)

    @property
    def last(self) -> str | None:
        """The newest time on the timeline: a later instant is after everything that is on it."""
        return max((i.completion or i.timestamp for i in self.instants), default=None)

    @property
    def last_write(self) -> str | None:
        """The write that was completed last: where that is known, a compaction at a past instant may be."""
        return max(self.completions, key=lambda timestamp: self.completions[timestamp], default=None)


def latest_states(instants: Iterable[Instant]) -> tuple[Instant, ...]:
    """Of each instant the most advanced state; a compaction that completed is a commit then."""
    rank = {State.REQUESTED: 0, State.INFLIGHT: 1, State.COMPLETED: 2}
    best: dict[tuple[str, Action], Instant] = {}
    for instant in instants:
        action = Action.COMPACTION if instant.action is Action.COMMIT else instant.action
        action = Action.REPLACE_COMMIT if action is Action.CLUSTERING else action
        seen = best.get((instant.timestamp, action))
        if seen is None or rank[instant.state] > rank[seen.state]:
            best[(instant.timestamp, action)] = instant
    # A log compaction completes as a delta commit.
    written = {t for (t, action), i in best.items() if action is Action.DELTA_COMMIT and i.is_completed}
    current = [i for (t, action), i in best.items() if action is not Action.LOG_COMPACTION or t not in written]
    return tuple(sorted(current, key=lambda i: (i.timestamp, i.action)))


def format_instant(ms: int, timezone: str) -> str:
    """Epoch ms as a Hudi instant. `timezone` is the table's (`zone.py`): UTC, LOCAL or an IANA name."""
    if timezone == UTC:
        return time.strftime("%Y%m%d%H%M%S", time.gmtime(ms // 1000)) + f"{ms % 1000:03d}"
    # Four digits of the year too, which strftime does not promise.
    return f"{zone_of(timezone).wall(ms).isoformat()}".translate(_MARKS) + f"{ms % 1000:03d}"


def instant_ms(timestamp: str, timezone: str, *, second_pass: bool = False) -> int:
    """An instant as epoch ms. `timezone` is the table's (`zone.py`): UTC, LOCAL or an IANA name.

    In an hour that comes twice it is read in the first pass, unless `second_pass`.
    """
    text = timestamp if len(timestamp) == 17 else timestamp + "999"
    if text.startswith("0000000000000"):
        return 0  # Hudi's instants of a bootstrap are no times (HoodieTimeline.INIT_INSTANT_TS and the like)
    try:
        parts = time.strptime(text[:14], "%Y%m%d%H%M%S")
        if timezone == UTC:
            ms = calendar.timegm(parts) * 1000
        else:
            ms = zone_of(timezone).ms(parts[:6], second_pass=second_pass)
    except (ValueError, OverflowError, OSError):
        raise CorruptTable(f"The instant {timestamp} on the timeline is no point in time.") from None
    return ms + int(text[14:17])


def moved_instant(timestamp: str, by_ms: int) -> str:
    """The instant so many ms further on, or back, *as text*: its order is the timeline's, whatever the clock does."""
    return format_instant(instant_ms(timestamp, UTC) + by_ms, UTC)


def instant_ago(now_ms: int, ago_ms: int, timezone: str) -> str:
    """An instant so many ms ago, or longer where the clock was put back or forward since: none younger is below it."""
    by_the_clock = format_instant(now_ms - ago_ms, timezone)
    return min(by_the_clock, moved_instant(format_instant(now_ms, timezone), -ago_ms))


def local_date(ms: int, timezone: str) -> date:
    """The calendar day of an epoch time in the table's timezone."""
    return zone_of(timezone).wall(ms).date()


def is_instant(text: str) -> bool:
    return _INSTANT.fullmatch(text) is not None
