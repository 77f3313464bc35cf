"""A table whose block is wrong, where the others of its code location are to go on without it.

Dagster loads a code location as a whole: one wrong block takes all tables away. A service may ask for another answer by
`HUDI_ASSETS_REFUSED_TABLES=show`. Then such a table is one asset with one check, which fails with what is wrong.
Without the variable, as in `dg check defs`, the load fails as ever.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from dagster import (
    AssetCheckEvaluation,
    AssetCheckKey,
    AssetCheckResult,
    AssetChecksDefinition,
    AssetKey,
    AssetSpec,
    DefaultSensorStatus,
    Definitions,
    SensorDefinition,
    SensorEvaluationContext,
    SensorResult,
    asset_check,
    sensor,
)

VARIABLE: Final = "HUDI_ASSETS_REFUSED_TABLES"
CHECK: Final = "block_is_right"


@dataclass(frozen=True)
class Refused:
    """`why`: what is wrong with the table's block, and where it stands."""

    name: str
    why: str

    @property
    def key(self) -> AssetKey:
        return AssetKey([self.name, "freshness"])

    @property
    def check(self) -> AssetCheckKey:
        return AssetCheckKey(self.key, CHECK)


def are_shown() -> bool:
    """Whether wrong tables are shown, instead of failing the load."""
    said = os.environ.get(VARIABLE, "fail")
    if said not in ("fail", "show"):
        raise ValueError(f"{VARIABLE} is {said!r}: say show, or fail (as where it is not set)")
    return said == "show"


def shown(block: str, refused: Sequence[Refused]) -> Definitions:
    """Their assets, red, and the sensor that says so."""
    if not refused:
        return Definitions()
    specs = [
        AssetSpec(one.key, group_name=one.name, description=f"This table is not looked at. {one.why}")
        for one in refused
    ]
    return Definitions(assets=specs, asset_checks=[_check(one) for one in refused], sensors=[_sensor(block, refused)])


def _check(refused: Refused) -> AssetChecksDefinition:
    @asset_check(asset=refused.key, name=CHECK, description="The table's block is right, so that it is looked at.")
    def block_is_right() -> AssetCheckResult:
        return AssetCheckResult(passed=False, description=refused.why)

    return block_is_right


def _sensor(block: str, refused: Sequence[Refused]) -> SensorDefinition:
    @sensor(
        name=f"{block}_refused",
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
