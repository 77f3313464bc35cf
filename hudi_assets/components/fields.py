"""The fields of a block that have fields of their own, and durations as blocks say them."""

from __future__ import annotations

import importlib
from typing import Any

from dagster import Model, Resolvable
from pydantic import Field, ValidationInfo, field_validator

from hudi_assets.dagster.assets import BatchSource
from hudi_assets.engine import HudiAssetsError, parse_latency, terms_of

_LEAST_INTERVAL_MS = 1000


class SourceModel(Model, Resolvable):
    """A batch source: the Python path of a class and the arguments it is made with."""

    type: str
    options: dict[str, Any] = Field(default_factory=dict)

    def load(self) -> BatchSource:
        module, _, name = self.type.rpartition(".")
        try:
            made = getattr(importlib.import_module(module), name)(**self.options)
        except (ImportError, AttributeError, ValueError) as error:
            raise ValueError(f"source.type: no class at {self.type!r}: {error}") from error
        if not isinstance(made, BatchSource):
            raise TypeError(f"source.type: {self.type!r} has no batches, rows and schema; a source needs all three")
        return made


class IngestModel(Model, Resolvable):
    """A schedule that ingests the windows of a `source` that have ended."""

    cron: str
    most_windows: int = 100
    """At most so many windows in one run."""
    running: bool = True


class SensorModel(Model, Resolvable):
    name: str | None = None
    look_every: str = "1m"
    """After so long at most the table is looked at again, as `1m`, where ticks take no more than two thirds of it."""
    minimum_interval_seconds: int | None = Field(default=None, ge=1)
    """Dagster's own, from the beginning of a tick to the next one's. None: two thirds of `look_every`."""
    report_every: str = "5m"
    """How often freshness, lag and sizes are reported while nothing calls for a reader, as `5m`."""
    running: bool = True

    @field_validator("report_every", "look_every")
    @classmethod
    def _is_a_duration(cls, text: str, info: ValidationInfo) -> str:
        field = f"sensor.{info.field_name}"
        return checked_duration(field, text) if info.field_name == "report_every" else checked_interval(field, text)

    @property
    def interval(self) -> int:
        return interval_of(self.look_every, self.minimum_interval_seconds)

    @property
    def longest_ms(self) -> int:
        """For how long at most nobody looks."""
        given = self.minimum_interval_seconds
        return parse_latency(self.look_every) if given is None else 1000 * given


class BoundsModel(Model, Resolvable):
    """What comes before the SLO, where a table is compacted by it. Durations as `30m`."""

    late_every: str | None = None
    """Rows that came when the SLO was broken already: so long after the last compaction. None: a quarter of the SLO."""
    least_gap: str | None = None
    """Between the starts of two compactions."""
    bytes_per_hour: int | None = Field(default=None, ge=1)
    """Read and written, on average."""
    hours: str | None = None
    """Of the day (UTC) to start in, as `22-6`."""

    @field_validator("late_every", "least_gap")
    @classmethod
    def _is_a_duration(cls, text: str | None, info: ValidationInfo) -> str | None:
        return None if text is None else checked_duration(f"bounds.{info.field_name}", text)

    @field_validator("hours")
    @classmethod
    def _are_hours(cls, text: str | None) -> str | None:
        try:
            terms_of("2d", hours=text)  # all hours of a day keep that; those of the block are held to its SLO
        except HudiAssetsError as error:
            raise ValueError(f"bounds.hours: {error}") from error
        return text


def interval_of(look_every: str, given: int | None) -> int:
    """Dagster's interval, in seconds. It counts from the beginning of a tick, and the daemon is up to 5 s late.

    Two thirds leave room for that, and for a table's place in a tick.
    """
    return max(1, parse_latency(look_every) * 2 // 3000) if given is None else given


def checked_duration(field: str, text: str) -> str:
    try:
        parse_latency(text)
    except HudiAssetsError as error:
        raise ValueError(f"{field}: {error}") from error
    return text


def checked_interval(field: str, text: str) -> str:
    """A duration in which somebody can look."""
    if parse_latency(checked_duration(field, text)) < _LEAST_INTERVAL_MS:
        raise ValueError(f"{field}: {text!r} is less than a second")
    return text
