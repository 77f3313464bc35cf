"""One YAML block for many tables: what they share is said once, and one sensor looks at all of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dagster import Component, ComponentLoadContext, Definitions, Model, Resolvable
from pydantic import Field, ValidationError, field_validator, model_validator

from hudi_assets.components.hudi_table import HudiTableComponent
from hudi_assets.dagster.aside import sensor_deadline
from hudi_assets.dagster.round import Watched, tables_job, tables_trigger


class RoundModel(Model, Resolvable):
    """The sensor of all tables of a block."""

    name: str | None = None
    minimum_interval_seconds: int = 60
    look_seconds: float = 40
    """How long a tick may look; the next one goes on. Dagster gives a sensor 60 s in all."""
    running: bool = True

    @field_validator("look_seconds")
    @classmethod
    def _ends_in_time(cls, seconds: float) -> float:
        if not 0 <= seconds < sensor_deadline():
            raise ValueError(
                f"has to be less than the {sensor_deadline():g} s after which Dagster gives a tick up, with all that "
                "it says (DAGSTER_SENSOR_GRPC_TIMEOUT_SECONDS, of the daemon and of the code server)"
            )
        return seconds


class HudiTablesComponent(Component, Model, Resolvable):
    """Many Hudi tables: each has the fields of `HudiTableComponent`, of which `defaults` has those that they share."""

    name: str = "tables"
    defaults: dict[str, Any] = Field(default_factory=dict)
    tables: list[dict[str, Any]]
    sensor: RoundModel = Field(default_factory=RoundModel)

    @model_validator(mode="after")
    def _tables_are_right(self) -> HudiTablesComponent:
        names = [one.name for one in self.components()]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"tables: {twice} comes twice; give each table a name of its own")
        return self

    def components(self) -> list[HudiTableComponent]:
        """A component for each table. Raises ValueError, which names the table."""
        found = []
        of_all = {"sensor": {"minimum_interval_seconds": self.sensor.minimum_interval_seconds}}
        for number, table in enumerate(self.tables):
            name = table.get("name", f"number {number + 1}")
            try:
                found.append(HudiTableComponent(**merged(merged(of_all, self.defaults), table)))
            except ValidationError as error:
                problems = "; ".join(f"{'.'.join(map(str, one['loc']))} {one['msg']}".strip() for one in error.errors())
                raise ValueError(f"tables: {name}: {problems}") from error
        return found

    def build_defs(self, context: ComponentLoadContext) -> Definitions:
        # One resource for all: Dagster goes through all resources for each asset and check.
        key = f"{self.name}_tables"
        parts = [one.parts(context, key) for one in self.components()]
        shared = {key: {one.table.name: one.resource for one in parts}}
        job = tables_job(self.name, [one.table for one in parts])
        trigger = tables_trigger(
            self.sensor.name or f"{self.name}_event_time_trigger",
            job,
            [Watched(one.table, one.resource) for one in parts],
            interval=self.sensor.minimum_interval_seconds,
            seconds=self.sensor.look_seconds,
            running=self.sensor.running,
        )
        return Definitions.merge(
            *(one.definitions for one in parts), Definitions(jobs=[job], sensors=[trigger], resources=shared)
        )


def merged(defaults: Mapping[str, Any], table: Mapping[str, Any]) -> dict[str, Any]:
    """A table's fields over the shared ones; in mappings (`settings`, `tags`, `sensor`) key by key."""
    result = dict(defaults)
    for key, value in table.items():
        both = isinstance(value, Mapping) and isinstance(result.get(key), Mapping)
        result[key] = merged(result[key], value) if both else value
    return result
