"""Event times: parsing what people write, and reading a column's values as epoch milliseconds.

Units: a timestamp or date column needs none, text is ISO-8601. A column of integers has one by setting
(`hudi_assets.event.time.unit`: s, ms or us); where none is stated, its values may tell (see `inference`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from hudi_assets.engine.errors import InvalidInput

_PARTS = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d|w)")
MINUTE_MS: Final = 60_000
HOUR_MS: Final = 60 * MINUTE_MS
DAY_MS: Final = 24 * HOUR_MS
_MS = {"ms": 1, "s": 1000, "m": MINUTE_MS, "h": HOUR_MS, "d": DAY_MS, "w": 7 * DAY_MS}
_1980_S, _2100_S = 315_532_800, 4_102_444_800
_COMPACT_DATE = 8  # 20240501
Time = int | str | datetime
"""Epoch ms, ISO-8601 text, or a datetime with a zone."""
Latency = timedelta | str | int
"""A timedelta, text such as `2h`, or ms."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class EventTimeUnit(StrEnum):
    """How an event-time column counts."""

    SECONDS = "s"
    MILLIS = "ms"
    MICROS = "us"
    ISO = "iso"
    TIMESTAMP = "timestamp"
    DATE = "date"


MICROS_OF: Final = {EventTimeUnit.SECONDS: 1_000_000, EventTimeUnit.MILLIS: 1000, EventTimeUnit.MICROS: 1}
"""The units that integers may count in, by their length in microseconds."""


def iso(ms: int | None) -> str | None:
    """A time as text.

    Args:
        ms: Epoch milliseconds, or None.

    Returns:
        ISO-8601 in UTC, e.g. `2013-01-01T05:00:00Z`, with milliseconds where there are any; `… ms` beyond the year
        9999; None for None.
    """
    if ms is None:
        return None
    try:
        text = (EPOCH + timedelta(milliseconds=ms)).isoformat(timespec="milliseconds")
    except OverflowError:
        return f"{ms} ms"
    return text.replace("+00:00", "Z").replace(".000Z", "Z")


def duration(ms: int) -> str:
    """A duration as text.

    Args:
        ms: Milliseconds, also below 0.

    Returns:
        The two largest of its units: `1 d 2 h`, `45 min`, `3.2 s`.
    """
    sign, rest = ("-" if ms < 0 else ""), abs(ms)
    if rest < 60_000:
        return f"{sign}{rest / 1000:g} s"
    parts = []
    for name, size in (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000)):
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count} {name}")
    return sign + " ".join(parts[:2])


def parse_time(value: int | str | datetime, what: str = "threshold") -> int:
    """A point in time as epoch ms: an int (epoch ms), a datetime with a zone, or an ISO-8601 string.

    A string without a zone is taken as UTC. Raises `InvalidInput` for anything else.
    """
    if isinstance(value, bool):
        raise InvalidInput(f"The {what} {value!r} is not a point in time.")
    if isinstance(value, int):
        return value
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise InvalidInput(f"The {what} {value!r} has no time zone.", hint="Use an aware datetime.")
        return (value - EPOCH) // timedelta(milliseconds=1)
    text = str(value).strip()
    if re.fullmatch(r"-?\d{9,}", text):
        if _1980_S <= int(text) < _2100_S:
            raise InvalidInput(
                f"The {what} {text} looks like seconds ({iso(int(text) * 1000)}).",
                hint="Give ISO-8601, or epoch milliseconds.",
            )
        return int(text)
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInput(
            f"The {what} {text!r} is not a point in time.",
            hint="Give ISO-8601, as 2013-01-05T12:00:00Z, or epoch milliseconds of nine digits or more.",
        ) from None
    return parse_time(parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC), what)


def parse_latency(value: int | str | timedelta) -> int:
    """A duration, of a data latency or an interval, in milliseconds.

    Args:
        value: Milliseconds, a timedelta, or text such as `2h`, `90m`, `1d 12h`.

    Raises:
        InvalidInput: It is no duration, or is below 0.
    """
    if isinstance(value, timedelta):
        ms = value // timedelta(milliseconds=1)
    elif isinstance(value, int) and not isinstance(value, bool):
        ms = value
    else:
        text = str(value).strip().lower()
        parts = _PARTS.findall(text)
        if not parts or _PARTS.sub("", text).strip():
            raise InvalidInput(f"{value!r} is not a duration.", hint="Give one as 2h, 90m or 1d 12h.")
        ms = round(sum(float(number) * _MS[unit] for number, unit in parts))
    if ms < 0:
        raise InvalidInput(f"The duration {value!r} is negative.")
    return ms


def unit_of(type_: pa.DataType, setting: str | None, column: str) -> EventTimeUnit | None:
    """The unit of an event-time column, from its type and the setting.

    None: the column's integers count in a unit that nobody stated. `InvalidInput` where there can be none.
    """
    if pa.types.is_timestamp(type_):
        return EventTimeUnit.TIMESTAMP
    if pa.types.is_date(type_):
        return EventTimeUnit.DATE
    if pa.types.is_integer(type_):
        allowed = list(MICROS_OF)
    elif pa.types.is_string(type_) or pa.types.is_large_string(type_):
        allowed = [EventTimeUnit.ISO]
    else:
        raise InvalidInput(
            f"Column {column!r} of type {type_} cannot be an event time.",
            hint="Use a timestamp, date, long or ISO-8601 string column.",
        )
    if setting is None:
        return allowed[0] if len(allowed) == 1 else None
    unit = next((u for u in allowed if u.value == setting), None)
    if unit is None:
        choices = ", ".join(u.value for u in allowed)
        raise InvalidInput(
            f"Event-time unit {setting!r} does not fit column {column!r} of type {type_}.",
            hint=f"It may be: {choices}.",
        )
    return unit


def to_micros(column: pa.Array | pa.ChunkedArray, unit: EventTimeUnit) -> pa.ChunkedArray:
    """The column as int64 epoch microseconds, nulls kept. Text that is no ISO time raises `InvalidInput`."""
    chunked = column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])
    if unit is EventTimeUnit.TIMESTAMP:
        # Casting to a coarser unit floors no better than Python would ask: go through microseconds.
        stamps = chunked.cast(pa.timestamp("us", tz=chunked.type.tz), safe=False)
        return stamps.cast(pa.int64())
    if unit is EventTimeUnit.DATE:
        days = chunked.cast(pa.date32()).cast(pa.int32()).cast(pa.int64())
        return pc.multiply(days, pa.scalar(86_400_000_000, pa.int64()))
    if unit is EventTimeUnit.ISO:
        return _iso_micros(chunked)
    try:
        return pc.multiply_checked(chunked.cast(pa.int64()), pa.scalar(MICROS_OF[unit], pa.int64()))
    except pa.ArrowInvalid:
        raise InvalidInput("An event time is too far from 1970 to be one.", hint="Check the unit.") from None


def _iso_micros(text: pa.ChunkedArray) -> pa.ChunkedArray:
    # Arrow parses zoned and naive text by different types, so each distinct text goes through Python.
    encoded = pc.dictionary_encode(text.combine_chunks() if text.num_chunks != 1 else text.chunk(0))
    values = pa.array([None if t is None else _iso_to_micros(t) for t in encoded.dictionary.to_pylist()], pa.int64())
    return pa.chunked_array([values.take(encoded.indices)])


def _iso_to_micros(text: str) -> int:
    try:
        # Of digits alone Python would make a date and a time where it can: 1712010112345 becomes the year 1712.
        parsed = datetime.fromisoformat("" if text.isdigit() and len(text) != _COMPACT_DATE else text)
    except ValueError:
        raise InvalidInput(f"{text!r} is not an ISO-8601 event time.") from None
    aware = parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)
    return (aware - EPOCH) // timedelta(microseconds=1)


def in_millis(count: int, unit: EventTimeUnit, *, ceiled: bool = False) -> int:
    """A count of `unit` as epoch ms, floored, or ceiled as a maximum has to be."""
    micros = count * MICROS_OF[unit]
    return -(-micros // 1000) if ceiled else micros // 1000


def in_counts(ms: int, unit: EventTimeUnit) -> int:
    """Epoch ms as a column of `unit` counts them: what `in_millis` was made of, but for what it rounded."""
    return ms * 1000 // MICROS_OF[unit]


@dataclass(frozen=True, slots=True)
class EventTimeRange:
    """Smallest and largest event time in a log file, epoch ms; None where unknown.

    Unknown means "could be anything": such a log file is always selected and makes freshness null.
    `reason` says in words why a bound is unknown.
    """

    min: int | None
    max: int | None
    reason: str | None = None

    @property
    def known(self) -> bool:
        return self.min is not None and self.max is not None


def range_of(column: pa.Array | pa.ChunkedArray, unit: EventTimeUnit | None, where: str) -> EventTimeRange:
    """The range of a column in epoch ms, minimum floored and maximum ceiled; unknown if it has a null.

    Without a unit: the smallest and greatest of the column's integers as they are.
    """
    if len(column) == 0:
        return EventTimeRange(None, None, f"{where} holds no record")
    if column.null_count:
        return EventTimeRange(None, None, f"{where} has {column.null_count} records without event time")
    if unit is None:
        counted = pc.min_max(column).as_py()
        return EventTimeRange(int(counted["min"]), int(counted["max"]))
    bounds = pc.min_max(to_micros(column, unit)).as_py()
    return EventTimeRange(bounds["min"] // 1000, -(-bounds["max"] // 1000))


def join_ranges(ranges: list[EventTimeRange]) -> EventTimeRange:
    """The range that covers all of these; unknown as soon as one is."""
    for one in ranges:
        if not one.known:
            return one
    lows = [r.min for r in ranges if r.min is not None]
    highs = [r.max for r in ranges if r.max is not None]
    return EventTimeRange(min(lows), max(highs)) if lows else EventTimeRange(None, None, "no records")


EVENT_TIME_UNIT: Final = "hudi_assets.event.time.unit"
