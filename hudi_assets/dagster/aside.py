"""Looks that take longer than a tick may: they go on in a thread of the code server.

Dagster's daemon waits 60 seconds for a tick (`DAGSTER_SENSOR_GRPC_TIMEOUT_SECONDS`). Of one that takes longer it takes
neither events nor cursor. So the code server remembers what such a tick was busy with, and lets that look go on: its
thread runs to the end. The next looks at such a table are made beside the ticks, one or two at a time. A look that no
tick may come for reports itself what it saw. The run that it asks for, and what it leaves to the next look, are taken
by the first tick after its end.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from logging import getLogger
from math import inf
from typing import Any, Final

from dagster import DagsterInstance, SensorEvaluationContext, SensorResult

from hudi_assets.dagster.known import Known
from hudi_assets.engine import EnvironmentProblem, HudiAssetsError

# For Dagster's own part of a tick.
SPARE_SECONDS: Final = 10
# After so long a look that has not ended is a problem of its table. Or twice as long as the last one took.
HUNG_SECONDS: Final = 600
# A run that was asked for longer ago, and by two ticks, may be due no more: the next look tells.
STALE_SECONDS: Final = 300
# All looks, of all sensors, share the code server's processor with the ticks.
_TOGETHER: Final = 2


def is_daemons(context: SensorEvaluationContext) -> bool:
    """Whether the daemon makes this tick, and asks for its runs. "Test sensor" in Dagster's UI throws away what its
    tick finds. It says neither when the sensor was started nor when it ticked last; the daemon says one at least."""
    return context.last_sensor_start_time is not None or context.last_tick_completion_time is not None


def sensor_deadline() -> float:
    """How many seconds the daemon waits for a tick, as far as this process can tell: its environment may be another."""
    names = ("DAGSTER_SENSOR_GRPC_TIMEOUT_SECONDS", "DAGSTER_GRPC_TIMEOUT_SECONDS")
    return float(next(filter(None, map(os.environ.get, names)), 60))


@dataclass
class Aside:
    """A look in a thread of its own."""

    began: float
    hung_after: float = HUNG_SECONDS
    since: datetime = field(default_factory=lambda: datetime.now(UTC))
    found: SensorResult | None = None
    problem: BaseException | None = None
    ended: float | None = None

    @property
    def seconds(self) -> float:
        return (time.monotonic() if self.ended is None else self.ended) - self.began

    @property
    def is_hung(self) -> bool:
        return self.ended is None and self.seconds >= self.hung_after

    @property
    def is_kept(self) -> bool:
        """Of a tick's own look: whether it is at work still, or ended too late for its tick."""
        return self.ended is None or self.found is not None or self.problem is not None

    def is_stale(self, interval: float) -> bool:
        """Whether it ended so long ago that a tick should have taken it, where one is made after so many seconds."""
        return self.ended is not None and time.monotonic() - self.ended > max(STALE_SECONDS, 2 * interval)

    def hung(self) -> EnvironmentProblem:
        """Said of a look that should have ended long ago."""
        return EnvironmentProblem(
            f"The look has been at work for more than {int(self.seconds // 600 * 10)} minutes.",
            hint="Does the table's storage answer? The look of a very large table may take that long.",
        )

    def result(self) -> SensorResult:
        """Of a look that has ended. Raises what it raised."""
        if isinstance(self.problem, Exception):
            raise self.problem
        if self.problem is not None or self.found is None:
            raise EnvironmentProblem(f"The look was broken off: {self.problem!r}") from self.problem
        return self.found


@dataclass
class TickSeen:
    """A tick as the code server saw it, whatever the daemon took of it; seconds by the monotonic clock."""

    cursor: str | None
    began: float
    # Not so of a test, which leaves to the daemon's ticks what looks beside them have found.
    takes: bool = True
    # With which table it begins after a tick that was lost.
    first: str | None = None
    ended: float | None = None
    # The tables that it looked at, the last one last.
    looked: list[str] = field(default_factory=list)
    # The last of these looks.
    look: Aside | None = None
    # What it took of looks beside the ticks.
    taken: dict[str, Aside] = field(default_factory=dict)
    # It waits for Dagster's or a catalog's answer about many tables, or waited until it was too late.
    asking: bool = False
    # The one before was lost like that: this one does not ask.
    asks_not: bool = False

    @property
    def is_late(self) -> bool:
        """Whether the daemon waits for it no more, by now."""
        return self.takes and time.monotonic() - self.began > sensor_deadline()

    def was_lost(self, cursor: str | None) -> bool:
        """Whether the daemon gave it up: the same cursor comes again, and no answer came in time."""
        in_time = self.ended is not None and self.ended - self.began <= sensor_deadline()
        return (bool(self.looked) or self.asking) and cursor == self.cursor and not in_time


@dataclass
class Memory:
    """What the code server remembers of one sensor."""

    last: TickSeen | None = None
    # Table → how many seconds its last look took.
    took: dict[str, float] = field(default_factory=dict)
    aside: dict[str, Aside] = field(default_factory=dict)
    # Tables that are to be looked at beside the ticks, in this order.
    waiting: list[str] = field(default_factory=list)
    # Table → when a tick began to look at it last.
    seen_at: dict[str, float] = field(default_factory=dict)

    def waited(self, name: str, now: float) -> float:
        """For how many seconds no tick looked at the table, until now; 0 where none has yet."""
        before, self.seen_at[name] = self.seen_at.get(name, now), now
        return now - before

    def begin(self, cursor: str | None, names: list[str], *, takes: bool = True) -> TickSeen:
        """A new tick. After one that was lost it begins with the table that that did not get through with, or after
        it, where it was alone; and what that took is there again. One that was lost while it asked was through.

        A test, which does not take, comes between no two of the daemon's ticks."""
        if not takes:
            return TickSeen(cursor, time.monotonic(), takes)
        lost = self.last if self.last is not None and self.last.was_lost(cursor) else None
        self.last = tick = TickSeen(cursor, time.monotonic())
        if lost is None:
            return tick
        self.aside = lost.taken | self.aside
        tick.asks_not = lost.asking
        at = lost.looked[-1] if lost.looked else None
        if at is not None and lost.look is not None and lost.look.is_kept:
            self.aside.setdefault(at, lost.look)  # at work still, or it was until too late
        if at in names:
            through = lost.asking or len(lost.looked) == 1
            tick.first = names[(names.index(at) + 1) % len(names)] if through else at
        return tick

    def has_given_up(self, tick: TickSeen) -> bool:
        """Whether the daemon waits for this tick no more, and another one is at work."""
        return tick.takes and self.last is not tick

    def is_slow(self, name: str) -> bool:
        """Whether a look at this table does not fit into a tick."""
        return name in self.aside or name in self.waiting or self.took.get(name, 0) > sensor_deadline() - SPARE_SECONDS

    def look_within(
        self,
        tick: TickSeen,
        name: str,
        look: Callable[[], SensorResult],
        report: Callable[[SensorResult, datetime], SensorResult],
    ) -> SensorResult:
        """A look in the tick's own thread.

        Where the daemon has given the tick up before the look's end, the next tick finds the look here. `report`: what
        it saw then, and when it began; what is left is for that tick to take.
        """
        tick.looked.append(name)
        tick.look = made = Aside(time.monotonic())
        try:
            found = look()
            if tick.is_late:
                made.found = found = report(found, made.since)
            return found
        except BaseException as problem:
            if tick.is_late:
                made.problem = problem.with_traceback(None)  # its frames hold the look
            raise
        finally:
            made.ended = time.monotonic()
            self.took[name] = made.seconds

    def ended(self) -> list[str]:
        """Tables whose look beside the ticks has come to its end."""
        return [name for name, look in list(self.aside.items()) if look.ended is not None]

    def look_aside(self, tick: TickSeen, name: str, begin: Callable[[float], Aside]) -> Aside | None:
        """The look at this table: begun now, at work, or at its end, and then it is the tick's that takes it.

        None where it waits for others. One that hangs is not waited for.
        """
        with _beginning:
            found = self.aside.get(name)
            if found is None:
                if name not in self.waiting:
                    self.waiting.append(name)
                if self.waiting.index(name) >= _TOGETHER - _at_work():
                    return None
                self.waiting.remove(name)
                took = self.took.get(name, inf)
                found = self.aside[name] = begin(HUNG_SECONDS if took == inf else max(HUNG_SECONDS, 2 * took))
        if found.ended is not None and tick.takes:
            self.took[name] = found.seconds
            tick.taken[name] = found
            self.aside.pop(name, None)  # a tick that was given up may still be at work
        return found


# Sensor → its memory, one in each code server.
_memories: dict[str, Memory] = {}
# Ticks of several sensors may be made at once.
_beginning = threading.Lock()


def _at_work() -> int:
    """How many looks are at work beside the ticks of all sensors. One that hangs is not waited for."""
    looks = [look for memory in list(_memories.values()) for look in list(memory.aside.values())]
    return sum(look.ended is None and not look.is_hung for look in looks)


def memory_of(sensor: str) -> Memory:
    return _memories.setdefault(sensor, Memory())


def begun(context: SensorEvaluationContext, look: Callable[[Known], SensorResult], hung_after: float) -> Aside:
    """With an instance of its own: the tick's ends with the tick."""
    made = Aside(time.monotonic(), hung_after)
    ref = context.instance_ref
    ticks = context.instance if ref is None else None

    def work() -> None:
        try:
            own: Any = nullcontext(ticks) if ref is None else DagsterInstance.from_ref(ref)
            with own as instance:
                made.found = look(Known(instance, made.since))
        except BaseException as problem:  # whoever takes the result raises it
            if not isinstance(problem, HudiAssetsError):
                getLogger(__name__).warning("A look beside the ticks failed", exc_info=True)
            made.problem = problem.with_traceback(None)  # its frames hold the look
        finally:
            made.ended = time.monotonic()

    threading.Thread(target=work, name="look", daemon=True).start()
    return made
