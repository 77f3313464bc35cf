"""A small table with one of everything, and all that can be asked of it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from hudi_assets.engine import HudiTable
from hudi_assets.engine.errors import HudiAssetsError
from hudi_assets.engine.model import Action, Plan
from hudi_assets.engine.queries.query import ReadTask, read_task
from hudi_assets.engine.table.settings.config import LOG_BLOCK_FORMAT
from hudi_assets.engine.timeline import decode_cache
from hudi_assets.engine.timeline.commit_metadata import EVENT_TIME
from tests.tables.local_session import LocalSession
from tests.tables.steps import created

SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("ts", pa.int64(), nullable=False),
        pa.field("v", pa.int64()),
        pa.field("price", pa.decimal128(12, 3)),
        pa.field("words", pa.list_(pa.string())),
        pa.field("blob", pa.binary()),
        pa.field("p", pa.string(), nullable=False),
    ]
)
# A map sends an Avro block through the slower of the two readers.
SCHEMA_WITH_MAP = pa.schema([*SCHEMA, pa.field("scores", pa.map_(pa.string(), pa.int64()))])
Rows = frozenset[tuple[Any, ...]]


@dataclass(frozen=True)
class Fuzzed:
    """The table under test and the session that writes it."""

    path: Path
    session: LocalSession
    rows: Rows

    def files(self, test: Callable[[str], bool]) -> list[Path]:
        """The table's files whose relative path passes, in a stable order."""
        found = [p for p in self.path.rglob("*") if p.is_file() and test(str(p.relative_to(self.path)))]
        return sorted(found)

    @contextmanager
    def damaged(self, file: Path, data: bytes) -> Iterator[None]:
        """Put other bytes in a file's place for a while; what shares its inode stays whole."""
        before = file.read_bytes()
        _swap(file, data)
        try:
            yield
        finally:
            _swap(file, before)


def _swap(file: Path, data: bytes) -> None:
    scratch = file.with_name("fuzz-scratch")
    scratch.write_bytes(data)
    os.replace(scratch, file)


def rows(numbers: range, ts: int, schema: pa.Schema) -> list[dict[str, Any]]:
    return [
        {
            "id": f"k{n}",
            "ts": ts + n,
            "v": n * 100 + ts,
            "price": None,
            "words": [f"w{n}", None] if n % 3 else None,
            "blob": bytes([n % 256]) * (n % 7),
            "p": "ab"[n % 2],
            **({"scores": [(f"s{n}", n)]} if "scores" in schema.names else {}),
        }
        for n in numbers
    ]


def build(path: Path, session: LocalSession, *, with_map: bool = False, version: int = 6) -> Fuzzed:
    """Two partitions of two buckets: Avro and Parquet log blocks, deletes, a completed compaction with carried-over
    logs (versions 8 and 9: at a past instant), a pending one with logs appended beside it."""
    schema = SCHEMA_WITH_MAP if with_map else SCHEMA
    table = created(path, schema, partition_fields=["p"], log_block_format="avro", table_version=version)
    parquet = HudiTable.open(str(path), settings={LOG_BLOCK_FORMAT: "parquet"})

    def write(into: HudiTable, numbers: range, ts: int) -> None:
        into.upsert(session, session.rows(rows(numbers, ts, schema), schema))

    def delete(numbers: range, ts: int) -> None:
        table.delete(session, session.frame(pa.Table.from_pylist(rows(numbers, ts, schema), schema)))

    def compact(threshold: int, *, execute: bool) -> None:
        plan = table.plan_compaction(threshold=threshold)
        assert isinstance(plan, Plan)
        if execute:
            table.execute_compaction(session, plan.instant)

    write(table, range(24), 1_000)
    write(parquet, range(12, 30), 2_000)
    delete(range(4), 1_500)
    write(table, range(6, 10), 9_000)
    compact(5_000, execute=True)
    few = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.cleaner.commits.retained": "1"}
    HudiTable.open(str(path), settings=few).archive()
    assert list(path.glob(".hoodie/archived/.commits_.archive.*" if version == 6 else ".hoodie/timeline/history/*"))
    table.savepoint(comment="before more")
    write(parquet, range(20), 10_000)
    write(table, range(40, 44), 10_200)
    table.rollback(table.state().timeline.completed(Action.DELTA_COMMIT)[-1].timestamp)
    table = HudiTable.open(str(path), settings={"hudi_assets.query.grace": "0s"})
    table.clean(policy="KEEP_LATEST_FILE_VERSIONS", retained=1)
    write(table, range(28, 36), 11_000)
    compact(10_500, execute=False)
    write(table, range(2, 6), 12_000)
    delete(range(30, 32), 12_500)
    if version == 6:
        _as_written_by_java(path, table)
    return Fuzzed(path, session, snapshot(table))


def _as_written_by_java(path: Path, table: HudiTable) -> None:
    """The last delta commit without what ours says of event times: its log files are scanned, and the scan kept."""
    last = table.state().timeline.completed(Action.DELTA_COMMIT)[-1].timestamp
    file = path / f".hoodie/{last}.deltacommit"
    body = json.loads(file.read_text())
    del body["extraMetadata"][EVENT_TIME]
    file.write_text(json.dumps(body))
    forget()
    HudiTable.open(str(path)).freshness()
    assert (path / ".hoodie/.aux/hudi_assets/event_times.json").exists()


def snapshot(table: HudiTable) -> Rows:
    return frozenset(
        (row["_hoodie_record_key"], row["_hoodie_commit_time"], row["ts"], row["v"], str(row["words"]), row["p"])
        for task in table.snapshot_tasks()
        for batch in read_task(task)
        for row in batch.to_pylist()
    )


def forget() -> None:
    """A process keeps parsed commits and plans: damage that leaves size and time as they are has to be seen."""
    decode_cache.COMMITS.clear()
    decode_cache.PLANS.clear()


def _travel(look: Callable[[str], Sequence[ReadTask]]) -> object:
    return [list(read_task(task)) for task in look("20200101000000000")]


def ask_everything(fuzzed: Fuzzed) -> tuple[Rows | None, str | None]:
    """Every look at the table. The snapshot's rows, or the error that refused them; any other exception passes."""
    forget()
    try:
        table = HudiTable.open(str(fuzzed.path))
    except HudiAssetsError as error:
        return None, str(error)
    answer, refused = None, None
    try:
        answer = snapshot(table)
    except HudiAssetsError as error:
        refused = str(error)
    looks: tuple[Callable[[], object], ...] = (
        table.read_optimized_files,
        table.stats,
        table.freshness,
        table.pending_plan,
        table.carried_over,
        table.log_bars,
        table.committed_batches,
        lambda: table.plan_compaction(threshold=9_500, dry_run=True),
        lambda: list(table.log_event_times()),
        lambda: table.clean(policy="KEEP_LATEST_FILE_VERSIONS", retained=1, dry_run=True),
    )
    for name in ("incremental_tasks", "time_travel_tasks"):
        look = getattr(table, name, None)
        if look is not None:
            looks = (*looks, partial(_travel, look))
    for name in ("validate", "savepoints", "cost_curve", "observed_latency"):
        if hasattr(table, name):
            looks = (*looks, getattr(table, name))
    for look in looks:
        with suppress(HudiAssetsError):
            look()
    return answer, refused
