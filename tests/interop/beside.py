"""A table with Hudi's metadata table that one release of Apache Hudi and we use in turn, compared at each step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from hudi_assets.engine import HudiTable
from hudi_assets.engine.model import Action, Plan
from hudi_assets.engine.queries.query import read_task
from scripts.hudi_client import Hudi
from scripts.hudi_rows import Rows, by_key, differences, read_with_hudi_rs
from tests.interop.tables import START, hudi_options, rows
from tests.tables.local_session import Frame
from tests.tables.metadata import in_metadata_table, on_disk

MINUTE = 60_000
ON = {"hoodie.metadata.enable": "true", "hoodie.enable.data.skipping": "true"}
BATCHES = ((range(9), 0), ([0, 1, 2, 9], 30), ([3, 4, 5], 60), ([1, 9, 10], 90))
STATED = {
    "hudi_assets.writers": "stopped",
    "hoodie.payload.event.time.field": "ts",
    "hudi_assets.event.time.unit": "ms",
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": "2",
}
SETTINGS = STATED | {"hudi_assets.query.grace": "0s"}


def frame(table: pa.Table) -> Any:
    return Frame(table)


@dataclass(frozen=True)
class Beside:
    """A table that one release of Hudi and we use in turn."""

    hudi: Hudi
    path: Path
    version: int
    session: Any
    index: str = "BUCKET"
    more: Mapping[str, str] = field(default_factory=dict)  # options of Hudi's writes

    @property
    def options(self) -> dict[str, str]:
        version = {"hoodie.write.table.version": str(self.version), "hoodie.write.auto.upgrade": "false"}
        return {**hudi_options(name="t"), **ON, **version, "hoodie.index.type": self.index, **self.more}

    @property
    def settings(self) -> dict[str, str]:
        """Ours. What a write would make untrue in the metadata table is not to be switched off."""
        return {**SETTINGS, "hoodie.index.type": self.index}

    @property
    def willing(self) -> dict[str, str]:
        """What our writes need beside `settings` where Hudi keeps partition_stats by itself.

        On version 9 it does, on version 8 beside any index but BUCKET.
        """
        kept = self.version == 9 or (self.version == 8 and self.index != "BUCKET")
        return {"hudi_assets.metadata.switch.off": "true"} if kept else {}

    @property
    def table(self) -> HudiTable:
        return HudiTable.open(str(self.path), settings=self.settings)

    def batch(self, numbers: Any, start: int, mark: int) -> pa.Table:
        return rows(numbers, lambda n: start + n, mark)

    def hudi_writes(self, numbers: Any, start: int, mark: int, **more: str) -> None:
        self.hudi.write(self.path, self.batch(numbers, start, mark), {**self.options, **more})

    def we_write(self, numbers: Any, start: int, mark: int, **settings: str) -> None:
        table = HudiTable.open(str(self.path), settings={**self.settings, **settings})
        table.upsert(self.session, frame(self.batch(numbers, start, mark)))

    def plan(self, minute: int) -> Plan:
        plan = self.table.plan_compaction(threshold=START + minute * MINUTE)
        assert isinstance(plan, Plan), plan
        return plan

    def compact(self, minute: int) -> None:
        self.table.execute_compaction(self.session, self.plan(minute).instant)

    def hudi_compacts(self, op: str) -> None:
        assert self.hudi.compaction(self.path, op, **{**ON, "hoodie.write.table.version": str(self.version)})

    def read(self, query: str, on: bool, **more: str) -> Rows:
        options = ON if on else {"hoodie.metadata.enable": "false"}
        return by_key(self.hudi.read(self.path, query, options=options, **more))

    def snapshot(self) -> Rows:
        return self.read("snapshot", True)

    def is_true(self, step: str) -> Rows:
        """All of Hudi's queries are the same with and without the metadata table; it lists what is there."""
        assert self._listed() == on_disk(self.table), step
        assert self.table.validate() == (), step
        assert self._found_by_hudi() == [], step
        writes = [i.timestamp for i in self.table.state().timeline.completed(Action.DELTA_COMMIT, Action.COMMIT)]
        queries: list[tuple[str, dict[str, str]]] = [("snapshot", {}), ("read_optimized", {})]
        cleaned = bool(self.table.state().timeline.completed(Action.CLEAN))
        queries += [("time_travel", {"as_of": writes[-1 if cleaned else len(writes) // 2]})]
        begin = writes[-2 if cleaned else 0]
        queries += [("incremental", {"begin": begin, "end": end}) for end in writes[-2:] if end > begin]
        for query, more in queries:
            unlike = differences(self.read(query, False, **more), self.read(query, True, **more))
            assert not unlike, f"{step}, {query} {more}:\n" + "\n".join(unlike)
        answer = self.snapshot()
        if self.version == 9 and not self.table.state().timeline.pending_compactions:
            # hudi-rs lists through the metadata table of versions 8 and 9.
            unlike = differences(answer, by_key(read_with_hudi_rs(str(self.path), "snapshot")))
            assert not unlike, f"{step}, hudi-rs:\n" + "\n".join(unlike)
        tasks = self.table.snapshot_tasks()
        ours = by_key(pa.Table.from_batches([batch for task in tasks for batch in read_task(task)]))
        assert not (unlike := differences(ours, answer)), f"{step}:\n" + "\n".join(unlike)
        return answer

    def _listed(self) -> dict[str, dict[str, int]]:
        """What the metadata table lists. 0.15.0 gives the log files of a write that it takes back one byte."""
        there = on_disk(self.table)
        return {
            partition: {
                name: there.get(partition, {}).get(name, size) if size == 1 and name.startswith(".") else size
                for name, size in files.items()
            }
            for partition, files in in_metadata_table(self.table).items()
        }

    def _found_by_hudi(self) -> list[Any]:
        """What `validate_metadata_table_files` finds. It takes a table of the catalog only."""
        folder = self.path / ".hoodie"
        kept = (folder / "hoodie.properties").read_bytes()
        name = f"t{abs(hash(self.path))}"
        self.hudi.ask("sql", statement=f"create table if not exists {name} using hudi location '{self.path}'")
        found = self.hudi.ask("sql", statement=f"call validate_metadata_table_files(table=>'{name}')")["rows"]
        # Creating it has written the properties anew, without those that Hudi does not know.
        (folder / "hoodie.properties").write_bytes(kept)
        (folder / ".hoodie.properties.crc").unlink(missing_ok=True)
        assert isinstance(found, list)
        return found
