"""The zone that a table's instants are read in. Pure, but for the process's own zone.

`hoodie.table.timeline.timezone` is UTC, or LOCAL: then each of Hudi's writers takes the zone of its own JVM
(org.apache.hudi.common.table.timeline.HoodieInstantTimeGenerator). A zone is named by one text all over the
engine: `UTC`, `LOCAL` (this process's own zone) or an IANA name that the table's owner states.

Where the clock is put back, an hour comes twice: instants of its first pass lie ahead of the clock in its second.
Where it is put forward, an hour is missing: a reading in it counts as that much later, as in Java.
"""

from __future__ import annotations

import calendar
import os
import time
from dataclasses import dataclass
from datetime import UTC as UTC_RULES
from datetime import datetime, timedelta, tzinfo
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

UTC: Final = "UTC"
LOCAL: Final = "LOCAL"

_MINUTE_MS: Final = 60_000
_LONGEST_REPEAT_MIN: Final = 180
_LOCALTIME: Final = "/etc/localtime"


@dataclass(frozen=True, slots=True)
class Zone:
    """Epoch ms ↔ wall clock. `rules`: None for the process's own, as the C library has them.

    Raises `ValueError` or `OverflowError` for years that are none.
    """

    name: str
    rules: tzinfo | None

    def wall(self, ms: int) -> datetime:
        """What the clock shows, to the second, without a zone."""
        return datetime.fromtimestamp(ms // 1000, self.rules).replace(tzinfo=None)

    def ms(self, wall: tuple[int, ...], *, second_pass: bool = False) -> int:
        """When the clock shows it (year to second), epoch ms; `second_pass`: the later time where it does so twice."""
        year, month, day, hour, minute, second = wall
        shown = datetime(year, month, day, hour, minute, second, tzinfo=self.rules, fold=int(second_pass))
        return int(shown.timestamp()) * 1000

    def offset_ms(self, ms: int) -> int:
        """How far the clock is ahead of UTC."""
        return calendar.timegm(self.wall(ms).timetuple()) * 1000 - ms // 1000 * 1000

    def comes_again(self, ms: int) -> bool:
        """True in the first pass of an hour that comes twice."""
        return self.ms(tuple(self.wall(ms).timetuple()[:6]), second_pass=True) > ms

    def comes_again_until(self, ms: int) -> int:
        """The end of that first pass, epoch ms to the minute; `ms` itself outside of one."""
        ends = (ms - ms % _MINUTE_MS + minute * _MINUTE_MS for minute in range(1, _LONGEST_REPEAT_MIN + 1))
        return next((end for end in ends if not self.comes_again(end)), ms) if self.comes_again(ms) else ms

    def described(self, ms: int) -> str:
        """Name and offset at a time: `America/Los_Angeles (UTC-08:00)`."""
        return f"{self.name} ({offset_text(self.offset_ms(ms))})"


def zone_of(timezone: str) -> Zone:
    """The zone behind `UTC`, `LOCAL` or an IANA name. Raises `ValueError` for any other text."""
    # The process's own may be another at each call: the C library follows the variable TZ after time.tzset().
    return Zone(_own_name(), None) if timezone == LOCAL else _fixed_zone(timezone)


@lru_cache(maxsize=64)
def _fixed_zone(timezone: str) -> Zone:
    if timezone == UTC:
        return Zone(UTC, UTC_RULES)
    try:
        return Zone(timezone, ZoneInfo(timezone))
    except (OSError, KeyError, ValueError):  # a folder of zones; no such zone; a path, or no zone's file
        raise ValueError(f"{timezone!r} is no time zone") from None


def _own_name() -> str:
    """What this process's zone is called: by the variable TZ, else by the machine's setting."""
    if named := os.environ.get("TZ", "").lstrip(":"):
        return named
    if os.path.islink(_LOCALTIME):
        _, found, name = os.readlink(_LOCALTIME).partition("zoneinfo/")
        if found:
            return name
    return time.tzname[0]


def offset_text(offset_ms: int) -> str:
    """`UTC-08:00`."""
    minutes = abs(offset_ms) // _MINUTE_MS
    return f"UTC{'-' if offset_ms < 0 else '+'}{minutes // 60:02d}:{minutes % 60:02d}"


def utc_text(ms: int) -> str:
    """A time for people: `2026-11-01 09:00:00 UTC`."""
    return f"{datetime.fromtimestamp(0, UTC_RULES) + timedelta(milliseconds=ms):%Y-%m-%d %H:%M:%S} UTC"
