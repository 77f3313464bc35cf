"""One YAML block for many tables: what they share is said once, and one sensor looks at all of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dagster import ComponentLoadContext, Definitions, Model, Resolvable
from pydantic import Field, ValidationError, field_validator, model_validator

from hudi_assets.components.fields import checked_interval, interval_of
from hudi_assets.components.hudi_table import HudiTableComponent, TableParts
from hudi_assets.components.refused import (
    Block,
    Refused,
    are_shown,
    in_words,
    mark_of,
    refused_block,
    refused_table,
    shown,
)
from hudi_assets.dagster.aside import sensor_deadline
from hudi_assets.dagster.round import Limits, Watched, tables_job, tables_trigger
from hudi_assets.engine import parse_latency


class RoundModel(Model, Resolvable):
    """The sensor of all tables of a block."""

    name: str | None = None
    look_every: str = "1m"
    """After so long at most each table is looked at again, as `1m`, where ticks take no more than two thirds of it."""
    minimum_interval_seconds: int | None = Field(default=None, ge=1)
    """Dagster's own, from the beginning of a tick to the next one's. None: two thirds of `look_every`."""
    look_seconds: float = 40
    """How long a tick may look; the next one goes on. Dagster gives a sensor 60 s in all."""
    most_events: int = Field(default=500, ge=1)
    """Later ticks report the rest. Failing checks, and tables that are to be compacted, do not wait."""
    running: bool = True

    @field_validator("look_every")
    @classmethod
    def _is_a_duration(cls, text: str) -> str:
        return checked_interval("sensor.look_every", text)

    @field_validator("look_seconds")
    @classmethod
    def _ends_in_time(cls, seconds: float) -> float:
        if not 0 <= seconds < sensor_deadline():
            raise ValueError(
                f"has to be less than the {sensor_deadline():g} s after which Dagster gives a tick up, with all that "
                "it says (DAGSTER_SENSOR_GRPC_TIMEOUT_SECONDS, of the daemon and of the code server)"
            )
        return seconds


class HudiTablesComponent(Block, Model, Resolvable):
    """Many Hudi tables: each has the fields of `HudiTableComponent`, of which `defaults` has those that they share."""

    name: str = "tables"
    defaults: dict[str, Any] = Field(default_factory=dict)
    tables: list[dict[str, Any]]
    sensor: RoundModel = Field(default_factory=RoundModel)

    @model_validator(mode="after")
    def _tables_are_right(self) -> HudiTablesComponent:
        if not are_shown():
            self.components()
        return self

    def components(self) -> list[HudiTableComponent]:
        """A component for each table. Raises ValueError, which names the table."""
        names: set[str] = set()
        return [self._component(number, table, names) for number, table in enumerate(self.tables)]

    def _component(self, number: int, table: Mapping[str, Any], names: set[str]) -> HudiTableComponent:
        """`names`: of the tables before this one."""
        name = table.get("name", f"number {number + 1}")
        of_all = {"sensor": self.sensor.model_dump(include={"look_every", "minimum_interval_seconds"})}
        try:
            made = HudiTableComponent(**merged(merged(of_all, self.defaults), table))
        except ValidationError as error:
            raise ValueError(f"tables: {name}: {in_words(error)}") from error
        if made.name in names:
            raise ValueError(f"tables: {made.name} comes twice; give each table a name of its own")
        names.add(made.name)
        return made

    def _parts(self, context: ComponentLoadContext, key: str) -> tuple[list[TableParts], list[Refused]]:
        """Of each table that is right; and those that are not, where they are to be shown. Raises else."""
        names: set[str] = set()
        found, refused = [], []
        for number, table in enumerate(self.tables):
            try:
                found.append(self._component(number, table, names).parts(context, key))
            except Exception as problem:
                if not are_shown():
                    raise
                name = str(table.get("name") or f"{self.name}_table_{number + 1}")
                refused.append(refused_table(name, problem, context, number))
        return found, refused

    def build_defs(self, context: ComponentLoadContext) -> Definitions:
        try:
            return self._definitions(context)
        except Exception as problem:
            if not are_shown():
                raise
            return refused_block(self.name, problem, context).definitions()

    def _definitions(self, context: ComponentLoadContext) -> Definitions:
        # One resource for all: Dagster goes through all resources for each asset and check.
        key = f"{self.name}_tables"
        parts, refused = self._parts(context, key)
        wrong = shown(self.name, mark_of(context), refused)
        if not parts:
            return wrong
        shared = {key: {one.table.name: one.resource for one in parts}}
        job = tables_job(self.name, [one.table for one in parts])
        trigger = tables_trigger(
            self.sensor.name or f"{self.name}_event_time_trigger",
            job,
            [Watched(one.table, one.resource) for one in parts],
            interval=interval_of(self.sensor.look_every, self.sensor.minimum_interval_seconds),
            limits=Limits(
                self.sensor.look_seconds, self.sensor.most_events, parse_latency(self.sensor.look_every) / 1000
            ),
            running=self.sensor.running,
        )
        return Definitions.merge(
            *(one.definitions for one in parts), Definitions(jobs=[job], sensors=[trigger], resources=shared), wrong
        )


def merged(defaults: Mapping[str, Any], table: Mapping[str, Any]) -> dict[str, Any]:
    """A table's fields over the shared ones; in mappings (`settings`, `tags`, `sensor`) key by key."""
    result = dict(defaults)
    for key, value in table.items():
        both = isinstance(value, Mapping) and isinstance(result.get(key), Mapping)
        result[key] = merged(result[key], value) if both else value
    return result
