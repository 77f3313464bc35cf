"""Instants that were made in a zone east of the writers': they lie ahead of true time. Pure.

Until the writers' clock has passed such an instant, what they begin lies below it. Behind a compaction's base file Hudi
does not show it as new, and its own compaction is refused (tried with 0.15.0 on version 6).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hudi_assets.engine.model import Action, Instant, State
from hudi_assets.engine.timeline.instants import instant_ms
from hudi_assets.engine.timeline.writers_zone.evidence import QUARTER_MS, Finding, Verdict
from hudi_assets.engine.timeline.zone import UTC, utc_text

_BEGINS = (Action.COMMIT, Action.COMPACTION, Action.DELTA_COMMIT)
_MOST_MS = 104 * QUARTER_MS


@dataclass(frozen=True, slots=True)
class Ahead:
    """An instant ahead of its own file: by `ahead_ms`, until `passed_ms` (epoch ms) by the writers' clock.

    `hidden`: delta commits that were begun after it was completed, and have earlier instants.
    """

    instant: Instant
    ahead_ms: int
    passed_ms: int
    hidden: tuple[str, ...]

    def __str__(self) -> str:
        hours, minutes = divmod(round(self.ahead_ms / 60_000), 60)
        what = (
            f"{self.instant.action} {self.instant.timestamp} was begun {hours} h {minutes:02d} min ahead of the "
            "writers' clock: in a process of another time zone."
        )
        if self.hidden:
            what += f" {len(self.hidden)} delta commits since have earlier instants: {', '.join(self.hidden[:3])}"
            what += " …" if len(self.hidden) > 3 else "."
        return what

    def way_out(self, *, appends_to_planned_slice: bool) -> str:
        """What can be done for the table: it depends on where its layout puts what is written after a plan."""
        passed = f"{utc_text(self.passed_ms)}, when the writers' clock has passed it"
        if self.instant.action is Action.DELTA_COMMIT:
            return f"Let nobody write or compact before {passed}."
        if self.hidden and not appends_to_planned_slice:
            # Their log files are their own: without the compaction they are in the newest slice again.
            return (
                "Stop the writers' cleaner and compaction; "
                f"from {passed}, roll {self.instant.timestamp} back, and compact again."
            )
        if self.hidden:
            # Hudi may have put them into the compaction's own slices: a rollback would take them along.
            return (
                "Do not roll it back: log files of those commits may be in its slices. Stop the writers' cleaner and "
                f"compaction; from {passed}, write the rows of those commits once more, or restore a savepoint."
            )
        return f"Stop the writers until {passed}; or roll {self.instant.timestamp} back then, and compact again."


def ahead_of_time(files: Sequence[tuple[Instant, int]], timezone: str, verdict: Verdict) -> list[Ahead]:
    """The writes and compactions that were begun ahead of the writers' clock.

    `files`: each file of the timeline with its modification time, epoch ms; `verdict`: what the writers' files say of
    `timezone`. Where nothing is known of their clock, nothing is found.
    """
    if verdict.finding is not Finding.AGREES and verdict.offset_ms is None:
        return []
    begun = {i.timestamp: (i, ms) for i, ms in files if i.state is State.REQUESTED and i.action in _BEGINS}
    completed = {i.timestamp: (i, ms) for i, ms in files if i.state is State.COMPLETED and i.action in _BEGINS}
    found = []
    for timestamp, (instant, made_ms) in sorted(begun.items()):
        if verdict.finding is Finding.AGREES or verdict.offset_ms is None:
            true_ms = instant_ms(timestamp, timezone)
        else:
            true_ms = instant_ms(timestamp, UTC) - verdict.offset_ms
        if not QUARTER_MS // 2 < true_ms - made_ms <= _MOST_MS:
            continue
        shown, since_ms = completed.get(timestamp, (instant, made_ms))
        hidden = (
            other.timestamp
            for other, other_ms in begun.values()
            if other.action is Action.DELTA_COMMIT and other.timestamp < timestamp and other_ms > since_ms
        )
        found.append(Ahead(shown, true_ms - made_ms, true_ms, tuple(sorted(hidden))))
    return found
