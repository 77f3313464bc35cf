"""In which unit the integers of an event-time column count, where its own values can tell. Pure.

A unit is possible for a file where all of the file's values, read in it, lie between 1980 and the time at which the
file was committed (and some leeway). The units are a thousand apart, and no commit is a thousand times as far from
1970 as 1980 is: so at most one is possible. `docs/decisions/0012-units-of-event-times.md` says why these bounds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from hudi_assets.engine.errors import InvalidInput
from hudi_assets.engine.model.units import EVENT_TIME_UNIT, MICROS_OF, EventTimeUnit, in_millis, iso

EARLIEST_MS: Final = 315_532_800_000
"""1980-01-01. Before it, and after 1978-01-11, lies 9999-12-31 read in a unit a thousand times too small."""
LEEWAY_MS: Final = 2 * 86_400_000
"""By how much an event may lie after its commit: clocks that are wrong, and instants of any time zone read as UTC."""
_WORDS: Final = {
    EventTimeUnit.SECONDS: "seconds",
    EventTimeUnit.MILLIS: "milliseconds",
    EventTimeUnit.MICROS: "microseconds",
}
_CHOICES: Final = ", ".join(MICROS_OF)


class Source(StrEnum):
    """Where an event-time column's unit is from."""

    TYPE = "type"
    SETTING = "setting"
    DEFAULT = "default"  # of the tables that this project creates, before it stated the unit in each
    VALUES = "values"


@dataclass(frozen=True, slots=True)
class ColumnUnit:
    """How an event-time column counts, and what says so. `unit` None: unknown.

    `source`: whether the type, a setting, a default or the values say so. `evidence`: what the values say, in words.
    `problem`: why nothing can be promised on these event times, as the end of a sentence; `hint`: what to do about it.
    """

    column: str
    unit: EventTimeUnit | None
    source: Source
    evidence: str | None = None
    problem: str | None = None
    hint: str | None = None

    @property
    def tag(self) -> str:
        """Column and unit, as our commits state them."""
        return f"{self.column}:{self.unit or '?'}"

    def refusal(self, where: str) -> InvalidInput:
        """The problem as an error."""
        problem = self.problem or ""
        return InvalidInput(f"{problem[:1].upper()}{problem[1:]}.", where=where, hint=self.hint)


@dataclass(frozen=True, slots=True)
class Counts:
    """The smallest and the greatest value of the column in one file, and when that was committed (epoch ms)."""

    where: str
    low: int
    high: int
    committed_ms: int


def possible_units(counts: Counts) -> tuple[EventTimeUnit, ...]:
    """The units in which all of a file's values are plausible event times."""
    return tuple(unit for unit, micros in MICROS_OF.items() if _plausible(counts, micros * 1000))


def _plausible(counts: Counts, nanos: int) -> bool:
    earliest, latest = EARLIEST_MS * 1_000_000, (counts.committed_ms + LEEWAY_MS) * 1_000_000
    return earliest <= counts.low * nanos and counts.high * nanos <= latest


def infer(column: str, files: Sequence[Counts]) -> ColumnUnit:
    """The one unit that is possible for every file; else why there is none."""
    if not files:
        return _unknown(
            column,
            f"nothing says how column {column!r} counts: no unit is stated, and there is no value to tell it by",
        )
    by_unit: dict[EventTimeUnit, Counts] = {}
    for one in files:
        possible = possible_units(one)
        if len(possible) != 1:
            return _unknown(column, _implausible(column, one), _likely(one))
        by_unit.setdefault(possible[0], one)
    if len(by_unit) > 1:
        looks = " and ".join(f"{_WORDS[unit]} in {one.where}" for unit, one in by_unit.items())
        return _unknown(column, f"the values of column {column!r} look like {looks}, and no unit is stated")
    unit = next(iter(by_unit))
    return ColumnUnit(column, unit, Source.VALUES, _evidence(unit, files))


def contradiction(stated: ColumnUnit, files: Iterable[Counts]) -> ColumnUnit | None:
    """The stated unit with its problem, where a file's values are plausible in another unit and not in this one.

    Values that are plausible in none are the owner's word: event times of 1970, or of next year.
    """
    for one in files:
        possible = possible_units(one)
        if stated.unit is not None and possible and stated.unit not in possible:
            problem = (
                f"the values of column {stated.column!r} look like {_WORDS[possible[0]]} ({_read(one, possible[0])}), "
                f"and its unit is {'stated as' if stated.source is Source.SETTING else 'by default'} {stated.unit}"
            )
            hint = f"If they are, state {EVENT_TIME_UNIT}={possible[0]}."
            return ColumnUnit(stated.column, stated.unit, stated.source, None, problem, hint)
    return None


def _unknown(column: str, problem: str, likely: EventTimeUnit | None = None) -> ColumnUnit:
    which = f"={likely}, if that is what they are" if likely else f": {_CHOICES}"
    return ColumnUnit(column, None, Source.VALUES, None, problem, f"State {EVENT_TIME_UNIT}{which}.")


def _implausible(column: str, one: Counts) -> str:
    likely = _likely(one)
    if likely is not None:
        looks = f"look like {_WORDS[likely]}, and do not fit in ({_read(one, likely)})"
    elif _plausible(one, 1):
        looks = f"look like nanoseconds, which are not supported ({one.low} to {one.high} in {one.where})"
    else:
        looks = f"({one.low} to {one.high} in {one.where}) fit none of {_CHOICES}"
    return f"the values of column {column!r} {looks}, and no unit is stated"


def _likely(one: Counts) -> EventTimeUnit | None:
    """The unit in which the file's greatest value is plausible, or else its smallest."""
    for value in (one.high, one.low):
        possible = possible_units(Counts(one.where, value, value, one.committed_ms))
        if possible:
            return possible[0]
    return None


def _read(one: Counts, unit: EventTimeUnit) -> str:
    return f"{_times(one.low, one.high, unit)} in {one.where}"


def _evidence(unit: EventTimeUnit, files: Sequence[Counts]) -> str:
    low, high = min(one.low for one in files), max(one.high for one in files)
    count = "1 file" if len(files) == 1 else f"{len(files)} files"
    return f"in no other unit does each value of {count} lie between 1980 and its commit ({_times(low, high, unit)})"


def _times(low: int, high: int, unit: EventTimeUnit) -> str:
    return f"{iso(in_millis(low, unit))} to {iso(in_millis(high, unit, ceiled=True))}"
