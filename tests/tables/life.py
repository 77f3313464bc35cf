"""A table told step by step, without Spark: upserts, compactions, and what is there after them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa

from hudi_assets.engine import HudiTable
from hudi_assets.engine.model import Action, Plan
from hudi_assets.engine.storage import LocalStorage
from hudi_assets.engine.transaction.publish import system_now_ms
from tests.races.player import timeline_of
from tests.tables.local_session import LocalSession
from tests.tables.steps import created, with_properties

SCHEMA = pa.schema([("id", pa.int64()), ("ts", pa.int64()), ("v", pa.int64()), ("p", pa.string())])
HOUR = 3_600_000


class Life:
    """A table whose upsert number n has event times from n seconds on. `hours`: how far its clock is ahead."""

    def __init__(self, path: Path, session: LocalSession, version: int = 6, **settings: str) -> None:
        self.path, self.session, self.number, self.hours = path, session, 0, 0
        empty = created(path, SCHEMA, partition_fields=["p"], buckets=1, clock="commit", table_version=version)
        with_properties(empty, settings)

    @property
    def table(self) -> HudiTable:
        config = HudiTable.open(str(self.path)).config
        storage = LocalStorage(str(self.path))
        return HudiTable(storage, config, now_ms=lambda: system_now_ms() + self.hours * HOUR)

    def upsert(
        self, partition: str = "", *, later: int = 0, ids: Iterable[int] = range(4), batch: str | None = None
    ) -> str:
        """Rows in both partitions, or in one; `later`: so much later event times, in ms. "": the batch was there."""
        frame = self.session.frame(self.rows(partition, later=later, ids=ids))
        at = datetime.fromtimestamp(self.number + 3, UTC)
        return self.table.upsert(self.session, frame, clock_time=at, batch_id=batch).instant or ""

    def rows(self, partition: str = "", *, later: int = 0, ids: Iterable[int] = range(4)) -> pa.Table:
        """The next upsert's."""
        self.number += 1
        rows = [
            {"id": i, "ts": self.number * 1000 + later + i, "v": self.number, "p": partition or "ab"[i % 2]}
            for i in ids
        ]
        return pa.Table.from_pylist(rows, SCHEMA)

    def compact(self, number: int | None = None) -> str:
        """Compact what upserts up to a number wrote (all)."""
        plan = self.table.plan_compaction(threshold=(self.number if number is None else number) * 1000 + 500)
        assert isinstance(plan, Plan), plan
        self.table.execute_compaction(self.session, plan.instant)
        return plan.instant

    def turns(self, count: int, carried: int = 1) -> None:
        """An upsert and a compaction of all but the newest `carried` upserts, so many times."""
        for _ in range(count):
            self.upsert()
            if self.number > carried:
                self.compact(self.number - carried)

    def snapshot(self) -> list[tuple[object, ...]]:
        rows = self.table.snapshot(self.session).rows()
        return sorted((r["id"], r["ts"], r["v"], r["p"]) for r in rows)

    def files(self) -> set[str]:
        return {f"{f.parent.name}/{f.name}" for f in self.path.glob("p=*/*") if "metadata" not in f.name}

    def timeline(self) -> set[str]:
        return {f.name for f in timeline_of(self.path).iterdir() if f.is_file() and f.name[0].isdigit()}

    def instants(self) -> list[str]:
        done = self.table.state().timeline.completed(Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT)
        return [i.timestamp for i in done]
