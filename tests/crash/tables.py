"""The tables that crash tests start from, what is written to them, and what they have to show after a crash."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from hudi_assets.engine import HudiTable
from hudi_assets.engine.model import Plan
from hudi_assets.engine.queries.query import read_task
from hudi_assets.engine.storage import LocalStorage
from tests.tables.local_session import Frame
from tests.tables.steps import at, created, with_properties

SCHEMA = pa.schema([("id", pa.int64()), ("ts", pa.int64()), ("v", pa.int64())])
THRESHOLD = 2_000
# First key and first ordering value of each write: at THRESHOLD two are compacted, and one remains.
BATCHES = ((0, 1_000), (2, 1_500), (4, 9_000))
Row = tuple[int, int, int]
Rows = set[Row]


def batch(first: int, ts: int) -> Any:
    """Six rows, of both file groups."""
    rows = [{"id": i, "ts": ts + i, "v": i * 10 + ts} for i in range(first, first + 6)]
    return Frame(pa.Table.from_pylist(rows, SCHEMA))


def new_table(path: Path, version: int = 6, **properties: str) -> HudiTable:
    """An empty table of two file groups, whose clock is that of its commits. `properties`: of hoodie.properties."""
    return with_properties(created(path, SCHEMA, clock="commit", table_version=version), properties)


def carried_by(mode: str) -> dict[str, str]:
    """The settings with which remaining log files are carried over by hard link, symbolic link or copy."""
    alone = {"hudi_assets.table.services": "ours"} if mode == "symlink" else {}
    return {"hudi_assets.carry.over": mode, **alone}


def write(table: HudiTable, session: Any, first: int, ts: int) -> str:
    """A batch in one commit; its instant."""
    instant = table.upsert(session, batch(first, ts), clock_time=at(ts + 1_000)).instant
    assert instant is not None
    return instant


def write_batches(table: HudiTable, session: Any) -> Path:
    """Three log files in each of the two file groups; the table's path."""
    for first, ts in BATCHES:
        write(table, session, first, ts)
    return Path(table.path)


def planned(table: HudiTable, threshold: int = THRESHOLD) -> Plan:
    plan = table.plan_compaction(threshold=threshold)
    assert isinstance(plan, Plan)
    return plan


def rows_of(batches: list[pa.RecordBatch]) -> Rows:
    """The rows, each key once."""
    rows = [(r["id"], r["ts"], r["v"]) for batch in batches for r in batch.to_pylist()]
    assert len(rows) == len({row[0] for row in rows})
    return set(rows)


def snapshot(table: HudiTable) -> Rows:
    return rows_of([batch for task in table.snapshot_tasks() for batch in read_task(task)])


def on_timeline(table: HudiTable, instant: str) -> bool:
    return any(i.timestamp == instant for i in table.state().timeline.instants)


def no_strays(table: HudiTable, where: str = "") -> None:
    """Every log and base file belongs to a slice, and no scratch or marker is left."""
    state = table.state()
    shown = {f.path for s in state.view.groups.values() for x in s for f in x.log_files}
    shown |= {x.base_file.path for s in state.view.groups.values() for x in s if x.base_file}
    on_disk = {f.path for files in state.listing.values() for f in files if not f.name.startswith(".hoodie")}
    assert on_disk == shown, where
    named = ((log.path, state.layout.delta_commit_of(log)) for log in state.remaining_logs)
    dead = [path for path, instant in named if instant is not None and instant not in state.committed]
    assert dead == [], where
    assert LocalStorage(table.path).list_directories(".hoodie/.temp") == [], where
