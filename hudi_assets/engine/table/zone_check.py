"""Refusing to work in another zone than the table's writers."""

from __future__ import annotations

import heapq
import logging
from collections.abc import Callable, Mapping
from typing import Final

from hudi_assets.engine.errors import InvalidInput
from hudi_assets.engine.model import Instant
from hudi_assets.engine.storage import FileInfo
from hudi_assets.engine.table.settings.config import TIMELINE_ZONE, TableConfig
from hudi_assets.engine.timeline.writers_zone.evidence import (
    RECENT,
    Finding,
    SavedBy,
    Verdict,
    agrees_with_saved,
    judge,
    sightings,
    writers_zone,
)
from hudi_assets.engine.timeline.zone import LOCAL, offset_text, zone_of

log = logging.getLogger(__name__)

# Three states have a file each, and compactions say nothing.
_LOOKED_AT: Final = 8 * RECENT


def verdict_on(timezone: str, files: Mapping[str, FileInfo], parse_instant: Callable[[str], Instant | None]) -> Verdict:
    """What the newest files of a timeline, by name, say of a zone."""
    newest = heapq.nlargest(_LOOKED_AT, files.values(), key=lambda file: file.modified_ms)
    parsed = ((parse_instant(file.name), file.modified_ms) for file in newest)
    return judge(timezone, sightings((instant, modified) for instant, modified in parsed if instant is not None))


def zone_problem(config: TableConfig, verdict: Verdict, now_ms: int, where: str) -> InvalidInput | None:
    """Why instants cannot be made, or their age told, in the zone of the settings; None where they can.

    Where the zone is stated (UTC, or by the owner), only files that contradict it count. Where it is this process's
    own, something has to speak for it: else an instant of ours might lie ahead of the writers' clock.
    """
    if verdict.finding is Finding.DISAGREES and not _writers_are_ahead_of_utc(config, verdict):
        return _refusal(config, verdict, config.saved_by, now_ms, where)
    if config.timezone != LOCAL or verdict.finding is Finding.AGREES:
        return None
    saved = config.saved_by
    if verdict.offset_ms is None and saved is not None and agrees_with_saved(LOCAL, saved):
        return None
    if verdict.finding is Finding.NOTHING and saved is None:
        log.warning(
            "%s: nothing says in which time zone its instants are; this process's is taken, %s.",
            where,
            zone_of(LOCAL).described(now_ms),
        )
        return None
    return _refusal(config, verdict, saved, now_ms, where)


def _writers_are_ahead_of_utc(config: TableConfig, verdict: Verdict) -> bool:
    """In a table that states UTC: a writer, or a clock, is east of it. Instants of ours are above theirs then."""
    return config.states_utc and (verdict.offset_ms is None or verdict.offset_ms > 0)


def _refusal(config: TableConfig, verdict: Verdict, saved: SavedBy | None, now_ms: int, where: str) -> InvalidInput:
    zone = zone_of(config.timezone).described(now_ms)
    theirs = writers_zone(verdict, saved)
    if config.timezone == LOCAL:
        what = (
            "The table's instants are in the time zone of its writers (hoodie.table.timeline.timezone=LOCAL), and "
            f"this process is in {zone}"
        )
        hint = f"Start this process in their zone (TZ), or state it: {TIMELINE_ZONE}=America/Los_Angeles, say."
    elif TIMELINE_ZONE in config.properties:
        what = f"The table's instants are said to be in {zone} ({TIMELINE_ZONE})"
        hint = f"State the zone that the writers are in: {TIMELINE_ZONE}."
    else:
        what = f"The table states that its instants are in {zone} (hoodie.table.timeline.timezone)"
        hint = "Mend the writer whose instants are in another zone; see docs/explanation/timezones.md."
    if theirs is None:
        known = (
            f"and nothing tells whether that is the writers' ({verdict}: the table was copied, or the zone is another)"
        )
        return InvalidInput(f"{what}, {known}.", where=where, hint=hint)
    return InvalidInput(f"{what}; its writers are in {theirs}: {_evidence(verdict, saved)}.", where=where, hint=hint)


def _evidence(verdict: Verdict, saved: SavedBy | None) -> str:
    if verdict.offset_ms is None and saved is not None:
        return f"hoodie.properties was saved by a clock at {offset_text(saved.offset_ms)}"
    return str(verdict)
