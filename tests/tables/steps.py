"""Steps on a table that most tests need: make, plan, compact, read, set."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from hudi_assets.engine import CompactionResult, Frame, HudiTable, Plan, ReadTask, Session
from hudi_assets.engine.model.units import Time


def at(ms: int) -> datetime:
    """A moment of the table's clock, by epoch ms."""
    return datetime.fromtimestamp(ms / 1000, UTC)


def created(path: Path | str, schema: pa.Schema, **how: Any) -> HudiTable:
    """An empty table with the key `id`, ordered by `ts`. `how`: as `HudiTable.create` takes it; it comes first."""
    usual: dict[str, Any] = {"record_key": ["id"], "ordering_field": "ts", "buckets": 2, "data_latency": "1s"}
    return HudiTable.create(str(path), schema, **{**usual, **how})


def planned(table: HudiTable, threshold: Time | None = None, **how: Any) -> Plan:
    """The plan that is published; there has to be something to do. `how`: as `HudiTable.plan_compaction` takes it."""
    plan = table.plan_compaction(threshold=threshold, **how)
    assert isinstance(plan, Plan), plan
    return plan


def compact(table: HudiTable, session: Session[Frame], threshold: Time | None = None, **how: Any) -> CompactionResult:
    """One plan, executed. There has to be something to do."""
    return table.execute_compaction(session, planned(table, threshold, **how).instant)


def rows_in(tasks: Iterable[ReadTask]) -> list[dict[str, Any]]:
    """The rows that a query's tasks read, in their order."""
    return [row for task in tasks for batch in task.read() for row in batch.to_pylist()]


def with_properties(table: HudiTable, properties: dict[str, str]) -> HudiTable:
    """The table, opened again, with these lines more in its hoodie.properties."""
    file = Path(table.path, ".hoodie/hoodie.properties")
    file.write_text(file.read_text() + "".join(f"{key}={value}\n" for key, value in properties.items()))
    return HudiTable.open(table.path)
