"""Payments, as the pages for users have them: a table that this project made, or one that others write."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from hudi_assets.engine import HudiTable
from hudi_assets.engine.storage import open_storage
from hudi_assets.engine.transaction.publish import system_now_ms
from tests.tables.local_session import LocalSession
from tests.tables.others import leave_to_others

_FIRST = datetime(2024, 5, 1, tzinfo=UTC)


def payments(
    path: Path,
    session: LocalSession,
    *,
    version: int,
    external: bool,
    event_time: str = "paid_at",
    commits_ago: Sequence[int] = (0, 0, 0),
) -> HudiTable:
    """Commits of ten payments each, whose event times are an hour apart; `commits_ago`: so many seconds ago.

    `external`: the table says nothing of what only this project would write into it.
    """
    named: dict[str, Any] = {} if external else {"event_time_field": event_time, "data_latency": "2h"}
    table = HudiTable.create(
        str(path),
        _schema(event_time),
        record_key=["id"],
        ordering_field=event_time,
        buckets=2,
        table_version=version,
        **named,
    )
    for hour, ago in enumerate(commits_ago):
        pay(table, session, hour, ago)
    if external:
        leave_to_others(path)
        _forget_event_time_field(path / ".hoodie/hoodie.properties")
    return HudiTable.open(str(path))


def pay(table: HudiTable, session: LocalSession, hour: int, seconds_ago: int = 0) -> str:
    """One commit, of event times so many hours after the first; its instant."""
    at = HudiTable(open_storage(table.path), table.config, now_ms=lambda: system_now_ms() - 1000 * seconds_ago)
    event_time, first = table.config.ordering_field, _FIRST + timedelta(hours=hour)
    rows = [{"id": f"{hour + n}", event_time: first + timedelta(minutes=n), "amount": 1.0 + n} for n in range(10)]
    instant = at.upsert(session, session.rows(rows, _schema(event_time))).instant
    assert instant is not None
    return instant


def _schema(event_time: str) -> pa.Schema:
    return pa.schema([("id", pa.string()), (event_time, pa.timestamp("us", tz="UTC")), ("amount", pa.float64())])


def _forget_event_time_field(properties: Path) -> None:
    """Hudi's writers keep it in their own options."""
    lines = properties.read_text().splitlines()
    properties.write_text("\n".join(line for line in lines if "event.time.field" not in line) + "\n")
