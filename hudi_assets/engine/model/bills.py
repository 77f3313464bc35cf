"""What compactions cost, and what they bought."""

from __future__ import annotations

from dataclasses import dataclass

from hudi_assets.engine.model.units import HOUR_MS


@dataclass(frozen=True, slots=True)
class Bill:
    """Of one compaction, by the timeline. `completed_ms`: epoch ms.

    `bytes_read`: of base and log files; `bytes_written`: of its base files. `gained_ms`: by how much the freshness
    moved on, in event time, at the moment of its commit. None where the timeline does not say, or not any more.
    """

    instant: str
    completed_ms: int
    bytes_read: int | None
    bytes_written: int
    duration_ms: int | None
    gained_ms: int | None

    @property
    def bytes_per_hour(self) -> float | None:
        """Read and written for each hour of freshness; None where it bought none, or something is not known."""
        if self.bytes_read is None or not self.gained_ms:
            return None
        return (self.bytes_read + self.bytes_written) * HOUR_MS / self.gained_ms


@dataclass(frozen=True, slots=True)
class DayBill:
    """Of all compactions that were completed on a day, `2026-01-31` (UTC).

    `unknown`: of so many something is not known. It counts for nothing in the sums.
    """

    day: str
    compactions: int
    bytes_read: int
    bytes_written: int
    duration_ms: int
    gained_ms: int
    unknown: int
