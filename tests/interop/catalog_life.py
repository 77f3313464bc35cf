"""A table of Apache Hudi's, its sensor and its catalog: steps at random by Hudi, the command line and Dagster.

After each step the next look comes, then what is published is compared: freshness with the engine's, and what Spark
reads by name with Hudi's own read-optimized and snapshot queries.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa

from hudi_assets.catalog.publishing import Form
from hudi_assets.engine import Conflict, InvalidInput, NoPlan
from hudi_assets.engine.model import Action
from hudi_assets.engine.table.settings.merging import TABLE_SERVICES
from hudi_assets.engine.timeline.instants import WRITES
from scripts.hudi_client import Hudi, HudiError
from scripts.hudi_rows import Rows, by_key, differences
from tests.catalog.reader import Reader
from tests.catalog.world import World
from tests.interop.tables import MINUTE

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("text", pa.string()), ("part", pa.string())])
SETTINGS = {
    "hoodie.payload.event.time.field": "ts",
    "hudi_assets.event.time.unit": "ms",
    "hudi_assets.query.grace": "0s",
    "hudi_assets.data.latency": "1h",
    "hudi_assets.metadata.switch.off": "true",
}
# How long ago the events of a write may be, in ms; those of the last hour are younger than the data latency.
RECENT, LATE = 180 * MINUTE, 600 * MINUTE
_LOCK = "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider"
_LOCKED = {
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.cleaner.policy.failed.writes": "LAZY",
    "hoodie.write.lock.provider": _LOCK,
}


@dataclass(frozen=True)
class Shape:
    """A kind of table: its version, and the index that Hudi places rows by.

    `locked`: all writers take Hudi's file lock, as they must on version 6 where one may be at work while we plan; else
    they are stopped meanwhile. `compactor`: Hudi compacts too. On version 6 with a lock we then refuse to plan.
    """

    version: int
    index: str = "BUCKET"
    locked: bool = False
    compactor: bool = True

    @property
    def is_refused(self) -> bool:
        return self.locked and self.compactor and self.version == 6

    @property
    def name(self) -> str:
        said = ["locked"] * self.locked + ["ours"] * (not self.compactor)
        return "-".join([str(self.version), self.index.lower(), *said])

    @property
    def services(self) -> dict[str, str]:
        """What Hudi's procedures have to be told too."""
        return {
            "hoodie.metadata.enable": "false",
            "hoodie.write.table.version": str(self.version),
            "hoodie.write.auto.upgrade": "false",
            **(_LOCKED if self.locked else {}),
        }

    @property
    def ours(self) -> dict[str, str]:
        """Settings by which we read the table."""
        return SETTINGS | {
            "hudi_assets.writers": "locked" if self.locked else "stopped",
            "hoodie.index.type": self.index,
            **({} if self.compactor else {TABLE_SERVICES: "ours"}),
        }

    def options(self, name: str) -> dict[str, str]:
        """Of Hudi's writes: two partitions, and no table services unless a step asks for them."""
        return {
            "hoodie.table.name": name,
            "hoodie.datasource.write.table.type": "MERGE_ON_READ",
            "hoodie.datasource.write.operation": "upsert",
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.datasource.write.partitionpath.field": "part",
            "hoodie.datasource.write.hive_style_partitioning": "true",
            "hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload",
            "hoodie.payload.event.time.field": "ts",
            "hoodie.payload.ordering.field": "ts",
            "hoodie.index.type": self.index,
            "hoodie.bucket.index.num.buckets": "1",
            "hoodie.compact.inline": "false",
            "hoodie.clean.automatic": "false",
            "hoodie.archive.automatic": "false",
            "hoodie.table.timeline.timezone": "UTC",
            **self.services,
        }


@dataclass
class Life(World):
    """`synced`: by which name Hive sync keeps the table; None where it does not. `refused`: steps that could not be."""

    hudi: Hudi = field(kw_only=True)
    path: Path = field(kw_only=True)
    shape: Shape = field(kw_only=True)
    synced: str | None = None
    keys: int = 0
    deleted: set[int] = field(default_factory=set)
    came: Counter[str] = field(default_factory=Counter)
    refused: dict[str, list[str]] = field(default_factory=dict)

    # -- what Hudi does ---------------------------------------------------------------------------

    def upsert(self) -> None:
        self._write(self._rows(2))

    def late(self) -> None:
        self._write(self._rows(2), within=LATE)

    def delete(self) -> None:
        alive = [n for n in range(self.keys) if n not in self.deleted]
        if len(alive) > 3:
            gone = self.chance.choice(alive)
            self._write([gone], {"hoodie.datasource.write.operation": "delete"})
            self.deleted.add(gone)

    def compact_inline(self) -> None:
        more = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "1"}
        self._write(self._rows(2), more)

    def write_with_all_services(self) -> None:
        """Compacts, cleans and archives, with the shortest retention that Hudi takes."""
        more = {
            "hoodie.compact.inline": str(self.shape.compactor).lower(),
            "hoodie.compact.inline.max.delta.commits": "2",
            "hoodie.clean.automatic": "true",
            "hoodie.archive.automatic": "true",
            "hoodie.cleaner.commits.retained": "1",
            "hoodie.clean.commits.retained": "1",
            "hoodie.keep.min.commits": "3",
            "hoodie.keep.max.commits": "5",
        }
        self._write(self._rows(2), more)

    def overwrite_a_partition(self) -> None:
        rows = [n for n in self._rows(4) if n % 2] or [1]
        self._write(
            [n for n in rows if n not in self.deleted], {"hoodie.datasource.write.operation": "insert_overwrite"}
        )

    def schedule(self) -> None:
        """Hudi's own plan, which stays pending."""
        self.hudi.compaction(self.path, "schedule", **self.shape.services)

    def execute(self) -> None:
        """Hudi executes what is pending: our plan, or its own."""
        self.hudi.compaction(self.path, "execute", **self.shape.services)

    def hudi_compacts_our_plan(self) -> None:
        if not isinstance(self.table.plan_compaction(), NoPlan):
            self.execute()

    def hudi_cleans(self) -> None:
        self.call("run_clean", "clean_policy=>'KEEP_LATEST_FILE_VERSIONS', file_versions_retained=>1")

    def hudi_rolls_back(self) -> None:
        """Not what a plan or a clean came after: Hudi asks nothing, and then some rows are gone for every reader
        (`test_hudis_rollback_of_what_was_cleaned`). A delta commit takes log files alone, where keys have buckets."""
        state, newest = self.table.state(), self.newest
        deltas = {one.timestamp for one in state.timeline.completed(Action.DELTA_COMMIT)}
        later: list[str] = []
        if newest not in deltas or self.shape.index != "BUCKET":
            later += [one.timestamp for one in state.timeline.completed(Action.CLEAN)]
            later += [plan.instant for plan in state.pending_plans]
        if any(instant > newest for instant in later):
            raise InvalidInput("A plan or a clean came after the newest write.")
        self.call("rollback_to_instant", f"instant_time=>'{self.newest}'")

    def hudi_clusters(self) -> None:
        self.call("run_clustering", "op=>'scheduleandexecute'")

    # -- what we do -------------------------------------------------------------------------------

    def plan(self) -> None:
        self.table.plan_compaction(threshold=self._threshold())

    def compact_in_part(self) -> None:
        self.command_is_done("compact", "--threshold", str(self._threshold()), *self.settings)

    def compact(self) -> None:
        self.command_is_done("compact", *self.settings)

    def compact_and_publish(self) -> None:
        self.command_is_done("compact", "--publish", *self.settings, *self.place)

    def clean(self) -> None:
        self.command_is_done("clean", "--retained", "1", "--policy", "KEEP_LATEST_FILE_VERSIONS", *self.writers)

    def archive(self) -> None:
        self.command_is_done("archive", *self.writers)

    def publish(self) -> None:
        self.command_is_done("publish", *self.settings, *self.place)

    def roll_back(self) -> None:
        self.command_is_done("rollback", self.newest, *self.writers)

    def time_passes(self) -> None:
        time.sleep(1.2)

    # -- a life -----------------------------------------------------------------------------------

    @property
    def steps(self) -> list[Callable[[], None]]:
        many = [self.upsert] * 4 + [self.late, self.delete] * 2
        hudi = [self.write_with_all_services, self.overwrite_a_partition]
        hudi += [self.hudi_cleans, self.hudi_cleans, self.hudi_rolls_back]
        if self.shape.compactor:
            hudi += [self.compact_inline, self.compact_inline, self.schedule, self.execute, self.hudi_compacts_our_plan]
        if self.shape.index != "BUCKET":  # its file groups' names hold the bucket: Hudi's next write would fail
            hudi += [self.hudi_clusters]
        ours = [self.plan, self.compact_in_part, self.compact_in_part, self.compact, self.compact_and_publish]
        ours += [self.clean, self.clean, self.archive, self.publish, self.roll_back, self.time_passes]
        return [*many, *hudi, *ours, self.run_of_dagster, self.run_of_dagster]

    def begin(self) -> None:
        for _ in range(2):
            self._write(self._rows(4))
        if self.shape.is_refused:
            self.compact_inline()
        else:
            self.compact()
        self.publish()

    def live(self, steps: int, reader: Reader) -> None:
        for number in range(1, steps + 1):
            began = [time.monotonic()]
            for part in (self.step, self.look, self.check):
                part()
                began.append(time.monotonic())
            self.compare(reader)
            began.append(time.monotonic())
            took = " ".join(f"{end - start:.1f}" for start, end in pairwise(began))
            print(f"{number} {self.done[-1]}: {took} s (step, look, check, reading)", flush=True)

    def look(self) -> None:
        """The tick of a table that cannot be compacted fails, and makes the catalog true all the same."""
        with suppress(*[InvalidInput] * self.shape.is_refused):
            super().look()

    def step(self) -> None:
        """What cannot be done now (nothing to roll back, something builds on it) is noted."""
        chosen = self.chance.choice(self.steps)
        name = chosen.__name__
        self.done.append(name)
        self.came[name] += 1
        try:
            chosen()
        except (InvalidInput, Conflict, HudiError) as problem:
            self.done[-1] += " (refused)"
            self.refused.setdefault(name, []).append(str(problem))

    def compare(self, reader: Reader) -> None:
        queries = ("read_optimized", "snapshot")
        theirs = self.hudi.answers(self.path, [{"query": query} for query in queries])
        for query, name, rows in zip(queries, (self.names.ro, self.names.rt), theirs, strict=True):
            if self.names.form is Form.SYNCED:  # a session keeps a table's list of files
                reader.rows(f"REFRESH TABLE {name}")
            unlike = differences(_plain(rows.to_pylist()), _plain(reader.rows(f"SELECT * FROM {name}")))
            assert not unlike, f"{name} is not Hudi's {query} answer: {unlike} after {self.done}"

    # -- the parts of a step ----------------------------------------------------------------------

    @property
    def newest(self) -> str:
        return self.table.state().timeline.completed(*WRITES)[-1].timestamp

    @property
    def settings(self) -> list[str]:
        return [f for key, value in self.shape.ours.items() for f in ("--set", f"{key}={value}")]

    @property
    def writers(self) -> list[str]:
        return ["--writers", self.shape.ours["hudi_assets.writers"]]

    @property
    def place(self) -> list[str]:
        form = ["--synced"] if self.names.form is Form.SYNCED else []
        return ["--metastore", self.uri, "--ro", self.names.ro, "--rt", self.names.rt, *form]

    def command_is_done(self, *arguments: str) -> None:
        """Nothing to do is well too."""
        code = self.command(*arguments)
        if code not in (0, 3):
            raise InvalidInput(f"{arguments[0]} ended with {code}")

    def call(self, procedure: str, arguments: str) -> None:
        """One of Hudi's procedures that take a table of the catalog.

        Making its entry drops keys that Hudi does not know: the file is put back.
        """
        properties = self.path / ".hoodie/hoodie.properties"
        before = properties.read_bytes()
        name = f"t{abs(hash(str(self.path)))}"
        for key, value in self.shape.services.items():
            self.hudi.ask("sql", statement=f"set {key}={value}")
        self.hudi.ask("sql", statement=f"create table if not exists {name} using hudi location '{self.path}'")
        if properties.read_bytes() != before:
            properties.write_bytes(before)
            properties.with_name(f".{properties.name}.crc").unlink(missing_ok=True)
        self.hudi.ask("sql", statement=f"call {procedure}(table=>'{name}', {arguments})")

    def _threshold(self) -> int:
        return _now() - self.chance.randint(70 * MINUTE, LATE)

    def _rows(self, most: int) -> list[int]:
        """Some keys, new and old; none that was deleted: Hudi's releases disagree about late records of those."""
        alive = [n for n in range(self.keys) if n not in self.deleted]
        new = list(range(self.keys, self.keys + self.chance.randint(0 if alive else 1, most)))
        self.keys += len(new)
        return new + self.chance.sample(alive, min(len(alive), self.chance.randint(1, 3)))

    def _write(self, numbers: Iterable[int], more: Mapping[str, str] | None = None, *, within: int = RECENT) -> None:
        now = _now()
        rows: list[dict[str, Any]] = [
            {
                "id": f"k{number}",
                "ts": now - self.chance.randint(1, within),
                "text": f"{len(self.done)}",
                "part": "ab"[number % 2],
            }
            for number in numbers
        ]
        sync = {} if self.synced is None else _sync(self.uri, self.synced)
        mode = "append" if (self.path / ".hoodie").exists() else "overwrite"
        options = self.shape.options(self.synced or "t") | sync | dict(more or {})
        self.hudi.write(self.path, pa.Table.from_pylist(rows, SCHEMA), options, mode=mode)


def _sync(uri: str, name: str) -> dict[str, str]:
    said = {
        "enable": "true",
        "mode": "hms",
        "metastore.uris": uri,
        "database": "default",
        "table": name,
        "partition_fields": "part",
        "partition_extractor_class": "org.apache.hudi.hive.MultiPartKeysValueExtractor",
    }
    return {f"hoodie.datasource.hive_sync.{key}": value for key, value in said.items()}


def _plain(rows: list[dict[str, Any]]) -> Rows:
    return by_key(pa.Table.from_pylist(rows)) if rows else {}


def _now() -> int:
    return round(1000 * time.time())
