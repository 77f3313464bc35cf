"""What a simulation is given: commits with their log files, and the base files there were before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, log
from statistics import pstdev
from typing import Final

from hudi_assets.engine.model.units import DAY_MS
from hudi_assets.engine.slo.learning import learn
from hudi_assets.engine.slo.values import Cut, Done

# (partition, file group in it)
Place = tuple[str, str]
# Of fewer compactions no machine is known.
_ENOUGH: Final = 3


@dataclass(frozen=True, slots=True)
class NewLog:
    """One commit's log file of a file group. `growth`: by how much its rows make the base file larger."""

    place: Place
    low: int
    high: int
    size: int
    growth: int


@dataclass(frozen=True, slots=True)
class Commit:
    """`at_ms`: when it was completed."""

    at_ms: int
    logs: tuple[NewLog, ...]


@dataclass(frozen=True, slots=True)
class Machine:
    """What compacts: so long for each start, so many bytes read and written in a second; it varies by `noise`.

    `publish_ms`: from a compaction's commit until readers see it.
    """

    fixed_ms: int = 45_000
    bytes_per_s: float = 100e6
    noise: float = 0.2
    publish_ms: int = 30_000


def machine_of(done: Sequence[Done]) -> Machine | None:
    """What made these compactions, by the line that the policy learns from them; None where they are few.

    When they were published they do not say.
    """
    if len(done) < _ENOUGH:
        return None
    speed = learn(done)
    strays = [log(one.duration_ms / speed.likely(one.size)) for one in done if one.duration_ms > 0]
    return Machine(
        fixed_ms=round(speed.fixed_ms),
        bytes_per_s=1000 / speed.ms_per_byte if speed.ms_per_byte > 0 else inf,
        noise=pstdev(strays) if strays else 0.0,
    )


@dataclass(frozen=True, slots=True)
class Feed:
    """Commits, oldest first. `bases`: bytes of the base files before; a file group that is not there has none.

    `latency_ms`: the data latency that the owner states. `until_ms`: when it ends. `stands_still`: the table's clock
    does, from one commit to the next. So it takes no time to compact, and nobody asks in between. `machine`: what
    compacted it, where that is known.
    """

    name: str
    commits: tuple[Commit, ...]
    bases: dict[Place, int]
    latency_ms: int
    until_ms: int
    cut: Cut = Cut.COMMITS
    stands_still: bool = False
    machine: Machine | None = None

    @property
    def days(self) -> float:
        return (self.until_ms - self.commits[0].at_ms) / DAY_MS if self.commits else 0.0
