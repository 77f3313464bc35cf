"""What a policy proposes for a table: compact now, or wait."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StartNow:
    """Compact now, up to the threshold.

    `size`: what it reads and writes at most. `next_ms`: when what is left up to the
    watermark needs the next one; None where nothing is.
    `in_time`: by what was learnt, the SLO is kept for all rows that came in time.
    """

    threshold: int
    size: int
    groups: int
    logs: int
    next_ms: int | None
    in_time: bool
    why: str


@dataclass(frozen=True, slots=True)
class WaitUntil:
    """Nothing now; ask again at the latest then, and after each commit. `size`: what it would cost now."""

    until_ms: int
    size: int
    why: str


Proposal = StartNow | WaitUntil
