"""New instants: later than every one on the timeline, never ahead of true time in the table's zone."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from hudi_assets.engine.errors import Conflict
from hudi_assets.engine.timeline.instants import format_instant, instant_ms
from hudi_assets.engine.timeline.zone import LOCAL, UTC, utc_text, zone_of

_PATIENCE_MS: Final = 60_000


def next_instant(
    last: str | None, now_ms: Callable[[], int], timezone: str, where: str, *, completes: bool = False
) -> str:
    """The current time as an instant above `last` (None: the first); waits for the next millisecond if need be.

    `Conflict` where `last` lies a minute ahead or more, and in the first pass of an hour that comes twice: what
    other writers begin in the second pass would lie below the instant, and Hudi would hide it behind a compaction
    of ours. Where the instant only `completes` what was begun before, it is given: nothing is placed by it.
    """
    while True:
        now = now_ms()
        if not completes:
            _refuse_first_pass(now, timezone, where)
        instant = format_instant(now, timezone)
        if last is None or instant > last:
            return instant
        # By the text: a clock that is put back within the minute must not look like a wrong one.
        ahead = instant_ms(last[:17], UTC) - instant_ms(instant, UTC)
        if ahead > _PATIENCE_MS:
            raise _ahead(last, ahead, now, timezone, where)
        time.sleep(0.001)


def _refuse_first_pass(now: int, timezone: str, where: str) -> None:
    if timezone == UTC or not (zone := zone_of(timezone)).comes_again(now):
        return
    raise Conflict(
        f"The clock of {zone.described(now)}, by which this table's instants go, is about to be put back: the present "
        "hour comes twice, and what is begun in it later would have earlier instants.",
        where=where,
        hint=f"Try again from {utc_text(zone.comes_again_until(now))} on.",
    )


def _ahead(last: str, ahead_ms: int, now: int, timezone: str, where: str) -> Conflict:
    zone = zone_of(timezone)
    if instant_ms(last[:17], timezone) <= now:
        why = "That clock was put back, and goes through the same hour again."
        hint = f"Try again from {utc_text(now + ahead_ms)} on."
    else:
        why = "A clock is wrong, or it was made in another time zone."
        hint = f"Set the clock, or wait until {utc_text(now + ahead_ms)}; for zones see docs/explanation/timezones.md."
    own = " (the zone of this process)" if timezone == LOCAL else ""
    return Conflict(
        f"The timeline's last instant {last} lies ahead of this machine's clock, which shows "
        f"{format_instant(now, timezone)} in {zone.described(now)}{own}. {why}",
        where=where,
        hint=hint,
    )
