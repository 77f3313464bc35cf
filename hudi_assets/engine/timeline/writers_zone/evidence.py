"""Which zone a table's writers are in, by what they left: instants beside the modification times of their files. Pure.

A file of the timeline that is made right after its instant was taken was modified, in true time, when the clock of its
writer showed that instant. Offsets of zones are whole quarter hours. So, read in the right zone, such a file is
as old as its instant, but for seconds; read in another, it lies whole quarter hours off:

- *before* its instant: then the reading is wrong for sure. No file is older than its instant;
- *behind* it: the writers' zone lies west, or the files were copied or restored since. A copy puts all files at about
  one time, whatever their instants: so files whose times follow their instants were not copied.

Where the files say nothing, what Hudi writes on top of hoodie.properties may: one time in UTC, and again by its clock.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from hudi_assets.engine.model import Action, Instant, State
from hudi_assets.engine.timeline.instants import instant_ms
from hudi_assets.engine.timeline.zone import offset_text, utc_text, zone_of

QUARTER_MS: Final = 900_000
RECENT: Final = 20
# A file is modified within so long of its instant, by the clocks of two machines.
_PROMPT_MS: Final = 60_000
# From the zone furthest east (+14 h) to the one furthest west (-12 h).
_MOST_QUARTERS: Final = 26 * 4
_FOLLOWS_MS: Final = 10_000
_SAVED_AT = re.compile(r"^#.*?(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.\d+)?Z\s*$", re.MULTILINE | re.ASCII)
# java.util.Date.toString, as java.util.Properties.store writes it.
_JAVA_DATE = re.compile(r"^#\w{3} (\w{3}) (\d\d) (\d\d):(\d\d):(\d\d) (\S{1,40}) (\d{4})\s*$", re.MULTILINE | re.ASCII)
_MONTHS: Final = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]


@dataclass(frozen=True, slots=True)
class Sighting:
    """A file of the timeline that was made right after `time` (an instant) was taken. `modified_ms`: epoch ms."""

    file: str
    time: str
    modified_ms: int


@dataclass(frozen=True, slots=True)
class SavedBy:
    """When hoodie.properties was saved last, epoch ms, and the offset of that writer's clock, by its own words."""

    ms: int
    offset_ms: int
    zone: str


class Finding(Enum):
    AGREES = auto()
    DISAGREES = auto()  # the zone is wrong
    UNSURE = auto()  # nothing speaks for the zone; `offset_ms` may say what for
    NOTHING = auto()  # there is no evidence


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the files say of a zone. `witness` tells it best; `offset_ms`: the writers' clock, where that is plain."""

    finding: Finding
    witness: Sighting | None = None
    offset_ms: int | None = None

    def __str__(self) -> str:
        """The witness in words."""
        if self.witness is None:
            return "no file tells"
        return f"{self.witness.file} is of {utc_text(self.witness.modified_ms)}"


def sightings(files: Iterable[tuple[Instant, int]]) -> list[Sighting]:
    """The files that tell, newest first: of (instant, modification time, epoch ms).

    A compaction of ours is planned at a past instant, or by this very process's zone; a savepoint bears the instant of
    the commit that it protects.
    """
    found = []
    for instant, modified_ms in files:
        if instant.action in (Action.COMPACTION, Action.COMMIT) or instant.timestamp.startswith("0000000000000"):
            continue
        if instant.completion is not None:
            found.append(Sighting(instant.file_name, instant.completion, modified_ms))
        elif instant.state is State.REQUESTED:
            found.append(Sighting(instant.file_name, instant.timestamp, modified_ms))
    return sorted(found, key=lambda one: one.modified_ms, reverse=True)[:RECENT]


def judge(timezone: str, seen: Sequence[Sighting]) -> Verdict:
    """Whether the writers' clock is that of `timezone`. `seen`: the newest first, as `sightings` has them.

    Where writers have changed their zone (or their clock was put back, and that of `timezone` was not), the newest
    count: one of them is enough to be unsure.
    """
    if not seen:
        return Verdict(Finding.NOTHING)
    lags = [lag_ms(timezone, one) for one in seen]
    shifts = [_shift(lag) for lag in lags]
    agreeing = [place for place, shift in enumerate(shifts) if shift == 0]
    last_agreeing = agreeing[-1] if agreeing else len(seen)
    for other in sorted({s for s in shifts[:last_agreeing] if s}, key=shifts.index):
        group = [place for place, one in enumerate(shifts) if one == other]
        if _follow([seen[place] for place in group], [lags[place] for place in group]):
            return Verdict(Finding.DISAGREES, seen[group[0]], _offset(timezone, seen[group[0]], other))
    first_agreeing = agreeing[0] if agreeing else len(seen)
    for place, lag in enumerate(lags[:first_agreeing]):
        # Older than its instant. Days are no zone's doing: some clock was wrong.
        if -_MOST_QUARTERS * QUARTER_MS <= lag < -QUARTER_MS // 2:
            ahead = shifts[place]
            return Verdict(Finding.DISAGREES, seen[place], _offset(timezone, seen[place], ahead) if ahead else None)
    if agreeing and not any(shifts[:first_agreeing]):
        return Verdict(Finding.AGREES, seen[agreeing[0]])
    for place, shift in enumerate(shifts):
        if shift:
            return Verdict(Finding.UNSURE, seen[place], _offset(timezone, seen[place], shift))
    return Verdict(Finding.UNSURE, seen[0])


def lag_ms(timezone: str, one: Sighting) -> int:
    """How much younger than its instant a file is, if instants are read in a zone; below 0: it is older."""
    lags = [one.modified_ms - instant_ms(one.time, timezone, second_pass=later) for later in (False, True)]
    return min(lags, key=abs)


def _shift(lag: int) -> int | None:
    """The whole quarter hours of a lag; None where it is no such number, or more than zones can differ by."""
    shift = round(lag / QUARTER_MS)
    plain = abs(lag - shift * QUARTER_MS) <= _PROMPT_MS and abs(shift) <= _MOST_QUARTERS
    return shift if plain else None


def _follow(group: Sequence[Sighting], lags: Sequence[int]) -> bool:
    """True where the files' times follow their instants, which those of a copy do not."""
    times = [instant_ms(one.time, "UTC") for one in group]
    spread = max(times) - min(times)
    return spread >= _FOLLOWS_MS and max(lags) - min(lags) <= spread // 2


def _offset(timezone: str, one: Sighting, shift: int) -> int:
    return zone_of(timezone).offset_ms(one.modified_ms) - shift * QUARTER_MS


def saved_by(properties: str) -> SavedBy | None:
    """What the comments on top of a hoodie.properties of Hudi's say of its writer's clock; None where they do not."""
    saved, dated = _SAVED_AT.search(properties), _JAVA_DATE.search(properties)
    if saved is None or dated is None or dated[1] not in _MONTHS:
        return None
    true_ms = calendar.timegm(tuple(int(part) for part in saved.groups())) * 1000
    day, hour, minute, second = (int(dated[n]) for n in range(2, 6))
    wall_ms = calendar.timegm((int(dated[7]), _MONTHS.index(dated[1]) + 1, day, hour, minute, second)) * 1000
    quarters = _shift(wall_ms - true_ms)
    return None if quarters is None else SavedBy(true_ms, quarters * QUARTER_MS, dated[6])


def saved_lines(properties: str) -> str:
    """The comments that `saved_by` reads, for whoever writes the file anew; "" where there are none."""
    if saved_by(properties) is None:
        return ""
    found = (_SAVED_AT.search(properties), _JAVA_DATE.search(properties))
    return "".join(f"{line[0].strip()}\n" for line in found if line is not None)


def agrees_with_saved(timezone: str, saved: SavedBy) -> bool:
    """True where the clock of a zone showed what the writer of hoodie.properties saw."""
    return zone_of(timezone).offset_ms(saved.ms) == saved.offset_ms


def writers_zone(verdict: Verdict, saved: SavedBy | None) -> str | None:
    """The writers' offset in words, as far as it is known; where Hudi has named their zone, by that name too."""
    if verdict.offset_ms is None:
        return None if saved is None else f"{offset_text(saved.offset_ms)} ({saved.zone})"
    same = saved is not None and saved.offset_ms == verdict.offset_ms
    return offset_text(verdict.offset_ms) + (f" ({saved.zone})" if saved is not None and same else "")
