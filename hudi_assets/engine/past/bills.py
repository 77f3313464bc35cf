"""What compactions cost and what they bought, one by one and by day."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from hudi_assets.engine.model import Bill, DayBill
from hudi_assets.engine.past.compactions import past_compactions
from hudi_assets.engine.past.freshness import back_in_time
from hudi_assets.engine.table.state import TableState


def bills_of(state: TableState) -> Iterator[Bill]:
    """Of the compactions on the active timeline, the one that was completed last first."""
    gained: dict[str, int | None] = {}
    past = back_in_time(state)
    for one in past_compactions(state):
        while one.instant not in gained and (write := next(past, None)) is not None:
            known = write.before is not None and write.after is not None
            gained[write.instant] = (write.after or 0) - (write.before or 0) if known else None
        yield Bill(
            instant=one.instant,
            completed_ms=one.completed_ms,
            bytes_read=one.bytes_read,
            bytes_written=one.bytes_written,
            duration_ms=one.duration_ms,
            gained_ms=gained.get(one.instant),
        )


def bill_of(state: TableState, instant: str) -> Bill | None:
    """Of one compaction; None where it is not on the active timeline."""
    return next((bill for bill in bills_of(state) if bill.instant == instant), None)


def by_day(bills: Iterable[Bill]) -> tuple[DayBill, ...]:
    """Added up by the day (UTC) on which they were completed, the last day first."""
    days: dict[str, list[Bill]] = {}
    for bill in bills:
        day = datetime.fromtimestamp(bill.completed_ms / 1000, UTC).date().isoformat()
        days.setdefault(day, []).append(bill)
    return tuple(_day(day, days[day]) for day in sorted(days, reverse=True))


def _day(day: str, bills: list[Bill]) -> DayBill:
    return DayBill(
        day=day,
        compactions=len(bills),
        bytes_read=sum(bill.bytes_read or 0 for bill in bills),
        bytes_written=sum(bill.bytes_written for bill in bills),
        duration_ms=sum(bill.duration_ms or 0 for bill in bills),
        gained_ms=sum(bill.gained_ms or 0 for bill in bills),
        unknown=sum(None in (bill.bytes_read, bill.duration_ms, bill.gained_ms) for bill in bills),
    )
