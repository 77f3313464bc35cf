"""Looks that take longer than a tick may: they go on in a thread of the code server, and a later tick reports them.

Dagster's daemon waits 60 seconds for a tick (`DAGSTER_SENSOR_GRPC_TIMEOUT_SECONDS`). Of one that takes longer it takes
neither events nor cursor. So the code server remembers what such a tick was busy with. A look that does not fit into a
tick is made beside the ticks: they say that it is at work, and the first one after its end reports what it saw.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from math import inf
from typing import Any, Final

from dagster import DagsterInstance, SensorEvaluationContext, SensorResult

from hudi_assets.engine import EnvironmentProblem

# For Dagster's own part of a tick.
SPARE_SECONDS: Final = 10
# After so long a look that has not ended is a problem of its table.
HUNG_SECONDS: Final = 600


def sensor_deadline() -> float:
    """How many seconds the daemon waits for a tick, as far as this process can tell: its environment may be another."""
    names = ("DAGSTER_SENSOR_GRPC_TIMEOUT_SECONDS", "DAGSTER_GRPC_TIMEOUT_SECONDS")
    return float(next(filter(None, map(os.environ.get, names)), 60))


@dataclass
class PastTick:
    """A tick as the code server saw it, whatever the daemon took of it; seconds by the monotonic clock."""

    cursor: str | None
    began: float
    ended: float | None = None
    # The tables that it looked at, the last one last.
    looked: list[str] = field(default_factory=list)

    def was_lost(self, cursor: str | None) -> bool:
        """Whether the daemon gave it up: the same cursor comes again, and no answer came in time."""
        in_time = self.ended is not None and self.ended - self.began <= sensor_deadline()
        return bool(self.looked) and cursor == self.cursor and not in_time


@dataclass
class Aside:
    """A look in a thread of its own."""

    began: float
    found: SensorResult | None = None
    problem: Exception | None = None
    ended: float | None = None

    @property
    def seconds(self) -> float:
        return (time.monotonic() if self.ended is None else self.ended) - self.began

    def hung(self) -> EnvironmentProblem | None:
        """Said of a look that should have ended long ago."""
        if self.ended is not None or self.seconds < HUNG_SECONDS:
            return None
        return EnvironmentProblem(
            f"The look has been at work for more than {int(self.seconds // 600 * 10)} minutes.",
            hint="Does the table's storage answer? The look of a very large table may take that long.",
        )

    def result(self) -> SensorResult:
        """Of a look that has ended. Raises what it raised."""
        if self.problem is not None:
            raise self.problem
        return self.found or SensorResult()


@dataclass
class Memory:
    """What the code server remembers of one sensor."""

    last: PastTick | None = None
    # Table → how many seconds its last look took.
    took: dict[str, float] = field(default_factory=dict)
    aside: dict[str, Aside] = field(default_factory=dict)

    def begin(self, cursor: str | None, names: Sequence[str], asked: str | None) -> tuple[PastTick, str | None]:
        """A new tick, and with which table it begins. After a tick that was lost: with the one that it did not get
        through with, or after that, where it was alone."""
        lost = self.last if self.last is not None and self.last.was_lost(cursor) else None
        self.last = PastTick(cursor, time.monotonic())
        at = lost.looked[-1] if lost else None
        if lost is None or at is None or at not in names:
            return self.last, asked
        if lost.ended is None:
            self.took[at] = inf  # it is not through with it yet
        return self.last, at if len(lost.looked) > 1 else names[(names.index(at) + 1) % len(names)]

    def is_slow(self, name: str) -> bool:
        """Whether a look at this table does not fit into a tick."""
        return name in self.aside or self.took.get(name, 0) > sensor_deadline() - SPARE_SECONDS

    def look_aside(
        self, context: SensorEvaluationContext, name: str, look: Callable[[DagsterInstance], SensorResult]
    ) -> Aside:
        """The look at this table: begun now, at work, or at its end; of that the next call knows nothing any more."""
        if name not in self.aside:
            self.aside[name] = _begun(context, look)
            return self.aside[name]
        found = self.aside[name]
        if found.ended is not None:
            self.took[name] = found.seconds
            del self.aside[name]
        return found


def _begun(context: SensorEvaluationContext, look: Callable[[DagsterInstance], SensorResult]) -> Aside:
    """With an instance of its own: the tick's ends with the tick."""
    made = Aside(time.monotonic())
    ref = context.instance_ref
    own: Any = nullcontext(context.instance) if ref is None else DagsterInstance.from_ref(ref)

    def work() -> None:
        try:
            with own as instance:
                made.found = look(instance)
        except Exception as problem:  # whoever takes the result raises it
            made.problem = problem
        finally:
            made.ended = time.monotonic()

    threading.Thread(target=work, name="look", daemon=True).start()
    return made
