"""What a simulation is given: commits with their log files, and the base files there were before."""

from __future__ import annotations

from dataclasses import dataclass

from hudi_assets.engine.model.units import DAY_MS
from hudi_assets.engine.slo.values import Cut

# (partition, file group in it)
Place = tuple[str, str]


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
class Feed:
    """Commits, oldest first. `bases`: bytes of the base files before; a file group that is not there has none.

    `latency_ms`: the data latency that the owner states. `until_ms`: when it ends.
    """

    name: str
    commits: tuple[Commit, ...]
    bases: dict[Place, int]
    latency_ms: int
    until_ms: int
    cut: Cut = Cut.PREFIX

    @property
    def days(self) -> float:
        return (self.until_ms - self.commits[0].at_ms) / DAY_MS if self.commits else 0.0


@dataclass(frozen=True, slots=True)
class Machine:
    """What compacts: so long for each compaction, so many bytes read and written in a second; it varies by `noise`.

    `publish_ms`: from a compaction's commit until readers see it.
    """

    fixed_ms: int = 45_000
    bytes_per_s: float = 100e6
    noise: float = 0.2
    publish_ms: int = 30_000
