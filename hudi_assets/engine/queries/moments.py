"""What people write for "as of" and for the ends of a range, as instants of a table's timeline. Pure.

Instants are compared as text, as Hudi does it. Forms and their meaning are those of
org.apache.hudi's HoodieSqlCommonUtils.formatQueryInstant, with time zones beside them.
"""

from __future__ import annotations

import re
import time
from datetime import datetime, timedelta

from hudi_assets.engine.errors import InvalidInput
from hudi_assets.engine.model.units import EPOCH
from hudi_assets.engine.timeline.instants import format_instant, is_instant

Moment = str | datetime
"""An instant (17 or 14 digits), an ISO-8601 text, or a datetime with a zone."""

EARLIEST = ""
"""Sorts before every instant."""

_FORMS = "an instant (yyyyMMddHHmmssSSS or yyyyMMddHHmmss), an ISO-8601 time, or a datetime with a zone"
_ZEROS = re.compile(r"0+")
_TO_THE_SECOND = re.compile(r"[^:.,]*:\d\d:\d\d(Z|[+-].*)?")


def parse_instant(value: Moment, timezone: str, what: str = "instant") -> str:
    """`value` as an instant in the table's `timezone` (hoodie.table.timeline.timezone: UTC or LOCAL).

    Text without a zone is in the timeline's own, as Hudi takes it; text to the second means that whole second,
    as Hudi 0.15 takes it. Finer than a millisecond is cut off.
    Raises `InvalidInput` for anything that is no point in time.
    """
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise InvalidInput(f"The {what} {value!r} has no time zone.", hint="Use an aware datetime.")
        return _from_datetime(value, timezone, what)
    text = value.strip() if isinstance(value, str) else ""
    if is_instant(text) and _is_date(text):
        return text
    try:
        # Python 3.11 also reads eight or more digits without a mark as a time: no form of ours.
        moment = datetime.fromisoformat(text) if "-" in text else None
    except ValueError:
        moment = None
    if moment is None:
        raise InvalidInput(f"The {what} {value!r} is not a point in time.", hint=f"Give {_FORMS}.")
    if _TO_THE_SECOND.fullmatch(text):
        moment = moment.replace(microsecond=999_000)
    if moment.tzinfo is not None:
        return _from_datetime(moment, timezone, what)
    return moment.strftime("%Y%m%d%H%M%S").zfill(14) + f"{moment.microsecond // 1000:03d}"


def states_zone(value: Moment) -> bool:
    """True for a time that has a zone of its own: which instant it is, depends on the timeline's."""
    if isinstance(value, datetime):
        return value.tzinfo is not None
    try:
        return "-" in value and datetime.fromisoformat(value.strip()).tzinfo is not None
    except (AttributeError, TypeError, ValueError):
        return False  # `parse_instant` says what it is


def parse_begin(value: Moment, timezone: str) -> str:
    """The (exclusive) begin of a range; "earliest" and rows of zeros, Hudi's "000", come before everything."""
    text = value.strip().lower() if isinstance(value, str) else ""
    if text == "earliest" or _ZEROS.fullmatch(text):
        return EARLIEST
    return parse_instant(value, timezone, "begin")


def _is_date(digits: str) -> bool:
    try:
        time.strptime(digits[:14], "%Y%m%d%H%M%S")
    except ValueError:
        return False
    return True


def _from_datetime(moment: datetime, timezone: str, what: str) -> str:
    try:
        return format_instant((moment - EPOCH) // timedelta(milliseconds=1), timezone)
    except (OverflowError, OSError, ValueError):
        raise InvalidInput(f"The {what} {moment!r} is out of range.") from None
