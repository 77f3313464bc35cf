"""What a table tells about itself to somebody who sets it up: `engine.profile` finds it."""

from __future__ import annotations

from dataclasses import dataclass

from hudi_assets.engine.model.units import EventTimeUnit


@dataclass(frozen=True, slots=True)
class Lateness:
    """How long after their event the sampled rows were committed, in ms: at a quantile, and the latest of them."""

    latency_ms: int
    quantile: float
    max_ms: int
    rows: int


@dataclass(frozen=True, slots=True)
class TimeColumn:
    """A column whose values can be event times. Times epoch ms, of the sampled rows.

    `inferred`: its integers count in a unit that their values tell, by `evidence`; nothing states it. `lateness` is
    None where it is not known when commits were made.
    """

    name: str
    type: str
    unit: EventTimeUnit
    low: int
    high: int
    rows: int
    nulls: int
    ordering: bool = False
    partition: bool = False
    inferred: bool = False
    evidence: str | None = None
    lateness: Lateness | None = None


@dataclass(frozen=True, slots=True)
class RuledOut:
    """A column of a type that event times may have, and why its values are none; `name` may be the ordering field."""

    name: str
    why: str


@dataclass(frozen=True, slots=True)
class Choice:
    """Which column to take event times from. `column` None: a person has to say, and `question` says what.

    `candidates`: all columns that come into question, the best first.
    """

    column: TimeColumn | None
    question: str | None
    candidates: tuple[TimeColumn, ...]
    ruled_out: tuple[RuledOut, ...] = ()


@dataclass(frozen=True, slots=True)
class SeenWriter:
    """Who made commits of the active timeline, as far as their metadata tell."""

    name: str
    commits: int
    last: str
    ours: bool = False


@dataclass(frozen=True, slots=True)
class SeenService:
    """A table service (compaction, clustering, …) that others ran: how often on the active timeline, and when last."""

    name: str
    times: int
    last: str


@dataclass(frozen=True, slots=True)
class SeenCleaner:
    """The newest clean: its policy, and how many commits it kept (None: that cannot be told)."""

    instant: str
    policy: str
    commits_retained: int | None
    ours: bool


@dataclass(frozen=True, slots=True)
class TableProfile:
    """A table as it presents itself. Reads only; nothing of it is a promise.

    `stated_field` and `stated_unit` are the table's own settings. `lock`: what says that writers share a lock, or None.
    `needs_stated_writers`: no plan is made until it is stated what other writers do.
    `pace_ms`: the median time between two delta commits.
    """

    path: str
    name: str
    table_version: int
    record_key: tuple[str, ...]
    partition_fields: tuple[str, ...]
    ordering_field: str | None
    stated_field: str | None
    stated_unit: str | None
    stated_latency: str | None
    choice: Choice
    sampled_files: int
    sampled_rows: int
    zone_problem: str | None
    writers: tuple[SeenWriter, ...]
    services: tuple[SeenService, ...]
    cleaner: SeenCleaner | None
    lock: str | None
    needs_stated_writers: bool
    metadata_table: bool
    commits: int
    pace_ms: int | None
    file_groups: int
    remaining_log_files: int
    remaining_bytes: int
    pending: tuple[str, ...]
