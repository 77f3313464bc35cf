"""A table whose block is wrong, where the others of its code location are to go on without it.

Dagster loads a code location as a whole: one wrong block takes all tables away. So such a table is one asset with one
check, which fails with what is wrong. Where definitions are validated, as by `dg check defs`, the load fails instead.
`HUDI_ASSETS_REFUSED_TABLES` says `show` or `fail`, whatever is at work.

The name that a wrong block gives may be no name for Dagster, or that of a right table. So what is made here has names
of its own: in `refused/<name>_<mark>` the mark is that of the block's place.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dagster import (
    AssetCheckEvaluation,
    AssetCheckKey,
    AssetCheckResult,
    AssetChecksDefinition,
    AssetKey,
    AssetSpec,
    Component,
    ComponentLoadContext,
    DefaultSensorStatus,
    Definitions,
    SensorDefinition,
    SensorEvaluationContext,
    SensorResult,
    asset_check,
    sensor,
)
from pydantic import BaseModel, ValidationError, create_model, model_validator

VARIABLE: Final = "HUDI_ASSETS_REFUSED_TABLES"
CHECK: Final = "block_is_right"
# Of the assets that stand for wrong tables, whatever group these name.
GROUP: Final = "refused"
# Dagster's: set by `dg check defs` and `dagster definitions validate`.
_VALIDATES: Final = "DAGSTER_IS_DEFS_VALIDATION_CLI"


@dataclass(frozen=True)
class Refused:
    """`why`: what is wrong with the table's block, and where it stands. `mark`: see `mark_of`."""

    name: str
    why: str
    mark: str

    @property
    def key(self) -> AssetKey:
        return AssetKey([GROUP, _usable(self.name, self.mark)])

    @property
    def check(self) -> AssetCheckKey:
        return AssetCheckKey(self.key, CHECK)


def are_shown() -> bool:
    """Whether wrong tables are shown, instead of failing the load."""
    default = "fail" if os.environ.get(_VALIDATES) == "1" else "show"
    said = os.environ.get(VARIABLE, default)
    if said not in ("fail", "show"):
        raise ValueError(f"{VARIABLE} is {said!r}: say show, or fail")
    return said == "show"


def in_words(error: ValidationError) -> str:
    """Each field and what is wrong with it, in one line."""
    return "; ".join(f"{'.'.join(map(str, one['loc']))} {one['msg']}".strip() for one in error.errors())


def mark_of(context: ComponentLoadContext, table: int | None = None) -> str:
    """Of a block's place below the folder of blocks, or of a table's in it: of no other, and alike on every machine."""
    at = context.component_path
    path = os.path.relpath(at.file_path, context.defs_module_path)
    place = (context.defs_module_name, path, at.instance_key, table)
    return hashlib.sha256(repr(place).encode()).hexdigest()[:8]


def _usable(name: str, mark: str) -> str:
    """A name that Dagster takes."""
    return re.sub(r"[^A-Za-z0-9_]", "_", f"{name[:60]}_{mark}")


def refused_table(name: str, problem: Exception, context: ComponentLoadContext, table: int | None = None) -> Refused:
    """`table`: which of the block's it is, where the block has many."""
    why = in_words(problem) if isinstance(problem, ValidationError) else str(problem)
    path = str(context.path)
    return Refused(name, why if path in why else f"{path}: {why}", mark_of(context, table))


def refused_block(name: object, problem: Exception, context: ComponentLoadContext) -> RefusedComponent:
    """Stands for a block that is wrong as a whole. One without a name is called as its folder is."""
    called = name if isinstance(name, str) and name else f"block_{context.path.stem}"
    return RefusedComponent(refused_table(called, problem, context))


@dataclass(frozen=True)
class RefusedComponent(Component):
    """Stands where a block is wrong."""

    refused: Refused

    def definitions(self) -> Definitions:
        return shown(self.refused.name, self.refused.mark, [self.refused])

    def build_defs(self, context: ComponentLoadContext) -> Definitions:
        return self.definitions()


@dataclass(frozen=True)
class WrongAttributes:
    """What Dagster hands on where the attributes in the YAML are not those of the component."""

    name: object
    problem: ValidationError


class Block(Component):
    """A component of ours: where wrong tables are shown, a block of it that is wrong takes no other away."""

    @classmethod
    def get_model_cls(cls) -> type[BaseModel] | None:
        """The model of the attributes, which is told of what is wrong with them by `WrongAttributes`. Its schema is
        the same, for `dg check yaml`."""
        model = super().get_model_cls()
        return None if model is None else _tolerant(model)

    @classmethod
    def load(cls, attributes: Any, context: ComponentLoadContext) -> Any:
        if isinstance(attributes, WrongAttributes):
            return refused_block(attributes.name, attributes.problem, context)
        try:
            return super().load(attributes, context)
        except Exception as problem:
            if not are_shown():
                raise
            return refused_block(getattr(attributes, "name", None), problem, context)


def _tolerant(model: type[BaseModel]) -> type[BaseModel]:
    def validate(data: Any, handler: Callable[[Any], Any]) -> Any:
        try:
            return handler(data)
        except ValidationError as problem:
            if not are_shown():
                raise
            return WrongAttributes(data.get("name") if isinstance(data, Mapping) else None, problem)

    wrap: Any = model_validator(mode="wrap")
    validators: Any = {"tolerates": wrap(validate)}
    return create_model(model.__name__, __base__=model, __validators__=validators)


def shown(block: str, mark: str, refused: Sequence[Refused]) -> Definitions:
    """Their assets, red, and the sensor that says so. `block` and `mark`: of the block that they stand in."""
    if not refused:
        return Definitions()
    specs = [
        AssetSpec(one.key, group_name=GROUP, description=f"{one.name} is not looked at. {one.why}") for one in refused
    ]
    name = f"refused_{_usable(block, mark)}"
    return Definitions(assets=specs, asset_checks=[_check(one) for one in refused], sensors=[_sensor(name, refused)])


def _check(refused: Refused) -> AssetChecksDefinition:
    @asset_check(asset=refused.key, name=CHECK, description="The table's block is right, so that it is looked at.")
    def block_is_right() -> AssetCheckResult:
        return AssetCheckResult(passed=False, description=refused.why)

    return block_is_right


def _sensor(name: str, refused: Sequence[Refused]) -> SensorDefinition:
    @sensor(
        name=name,
        minimum_interval_seconds=30,
        default_status=DefaultSensorStatus.RUNNING,
        description=f"Says what is wrong with {len(refused)} tables, which are not looked at.",
    )
    def evaluate(context: SensorEvaluationContext) -> SensorResult:
        storage = context.instance.event_log_storage
        known = storage.get_latest_asset_check_execution_by_key([one.check for one in refused])
        events = []
        for one in refused:
            record = known.get(one.check)
            last = record.evaluation if record else None
            if last is None or last.passed or last.description != one.why:
                events.append(AssetCheckEvaluation(one.key, CHECK, passed=False, description=one.why))
        names = ", ".join(one.name for one in refused)
        return SensorResult(asset_events=events, skip_reason=f"Not looked at, because their blocks are wrong: {names}.")

    return evaluate
