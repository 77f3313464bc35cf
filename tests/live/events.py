"""The stream's events as a pure function of their number: the oracle's side, and the same in Spark SQL for the writer.

Keys are of three kinds. `a…`: events in order. `l…`: some come late, none is a delete. `d…`: in order, now an
insert or update, now a delete. A late record never meets a delete: there Hudi's releases differ among themselves.
Needs nothing but Python: the writer runs it in Hudi's own environment.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

LATE_MS = 8_000
_LATE_EVERY = 60  # event numbers: late records come in some commits, not in all

# The same rules as `event` below; `at` is the event's time on the clock in epoch ms, `value` its number.
SQL = {
    "id": "case when value % 10 < 6 then concat('a', (value * 7) % 180) "
    "when value % 10 < 9 then concat('l', value % 60) else concat('d', (value div 10) % 20) end",
    "ts": f"at - case when value % 10 between 6 and 8 and (value div {_LATE_EVERY}) % 4 = 2 then {LATE_MS} else 0 end",
    "v": "value",
    "_hoodie_is_deleted": "value % 10 = 9 and (value div 200) % 2 = 1",
}


@dataclass(frozen=True, slots=True)
class Event:
    """`ts` is the event time, epoch ms; `number` tells it from every other one."""

    key: str
    ts: int
    number: int
    deleted: bool


def event(number: int, start_ms: int, per_second: int) -> Event:
    """The event of a number, in a rate source that started at `start_ms`."""
    at = start_ms + round(number * 1000 / per_second)
    kind = number % 10
    if kind < 6:
        return Event(f"a{number * 7 % 180}", at, number, deleted=False)
    if kind < 9:
        late = LATE_MS if number // _LATE_EVERY % 4 == 2 else 0
        return Event(f"l{number % 60}", at - late, number, deleted=False)
    return Event(f"d{number // 10 % 20}", at, number, deleted=number // 200 % 2 == 1)


@dataclass(frozen=True, slots=True)
class Stream:
    """What a rate source has given: events 0 to any number."""

    start_ms: int
    per_second: int

    def events(self, start: int, end: int) -> Iterator[Event]:
        return (event(number, self.start_ms, self.per_second) for number in range(start, end))

    def rows(self, end: int) -> dict[str, tuple[int, int]]:
        """key → (event time, number) of what a snapshot shows after the first `end` events."""
        return {key: (one.ts, one.number) for key, one in winners(self.events(0, end)).items() if not one.deleted}

    def written(self, ends: Sequence[int]) -> Iterator[Event]:
        """What batches up to these numbers leave: a writer of Hudi combines the rows of a key in a commit first."""
        for start, end in pairwise((0, *ends)):
            yield from winners(self.events(start, end)).values()


def winners(events: Iterable[Event]) -> dict[str, Event]:
    """key → the event with the greatest event time; ties: the later one."""
    best: dict[str, Event] = {}
    for one in events:
        if one.key not in best or one.ts >= best[one.key].ts:
            best[one.key] = one
    return best
