"""What a configuration of the zoo is: how its table differs from the plain one, and what is expected of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

import pyarrow as pa

from hudi_assets.engine import HudiAssetsError, UnsupportedTable
from scripts.hudi_client import Hudi
from tests.interop.tables import MINUTE, START, hudi_options

DAY = 86_400_000
LATENCY_MS = 3_600_000
STATED = {
    "hudi_assets.writers": "stopped",
    "hoodie.payload.event.time.field": "ts",
    "hudi_assets.data.latency": "1h",
    "hudi_assets.query.grace": "0s",
}
VERSION = "hoodie.write.table.version"
INDEX = "hoodie.index.type"


@dataclass(frozen=True)
class EventTime:
    """The event-time column: its type, its value at epoch ms, and the ms from one event of the story to the next."""

    name: str
    type: pa.DataType
    value: Callable[[int], Any]
    step: int = MINUTE
    unit: str | None = None  # hudi_assets.event.time.unit

    def at(self, minute: int) -> int:
        """Epoch ms of the event at a minute of the story."""
        return START - START % self.step + minute * self.step


def _moment(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)


def _day(ms: int) -> date:
    return _moment(ms).date()


MILLISECONDS = EventTime("long, ms", pa.int64(), lambda ms: ms, unit="ms")
SECONDS = EventTime("long, s", pa.int64(), lambda ms: ms // 1000, unit="s")
MICROSECONDS = EventTime("long, us", pa.int64(), lambda ms: ms * 1000, unit="us")
UNSTATED = EventTime("long, unit not stated", pa.int64(), lambda ms: ms)
TIMESTAMP = EventTime("timestamp", pa.timestamp("us", tz="UTC"), _moment)
DATE = EventTime("date", pa.date32(), _day, step=DAY)
TEXT = EventTime("text", pa.string(), lambda ms: _moment(ms).strftime("%Y-%m-%dT%H:%M:%SZ"), unit="iso")


class Deletes(StrEnum):
    """How the story's delete is written."""

    OPERATION = "the delete operation"
    ROW = "a row that says so"
    ROW_WITHOUT_TIME = "a row that says so, of which Hudi writes the key alone"


@dataclass(frozen=True)
class Refused:
    """Our refusal: a part of its words, and its kind."""

    words: str
    error: type[HudiAssetsError] = UnsupportedTable


Columns = Callable[[int, int, str], dict[str, Any]]


@dataclass(frozen=True)
class Batch:
    """One commit of the story: keys, minute of key 0's event, and I (rows), U (some columns) or D (delete)."""

    keys: tuple[int, ...]
    minute: int
    kind: str


# The third batch is late. The last one comes after our first compaction.
STORY = (
    Batch(tuple(range(8)), 0, "I"),
    Batch((0, 1, 2, 3), 30, "U"),
    Batch((2, 5), 20, "U"),
    Batch((4,), 58, "D"),
    Batch((1, 6), 90, "U"),
    Batch((0, 3, 8), 120, "I"),
)
BEFORE = 5
THRESHOLD = 40


@dataclass(frozen=True)
class Configuration:
    """One configuration. The plain one: bucket index, DefaultHoodieRecordPayload, no metadata table, no services.

    `options` stand over the plain writer's; None takes one away. `columns`: further ones, by key, number of the batch
    and its kind. `by_path`: columns that Hudi shows as the partition path has them. `write`: how a batch is written.

    Expected: `looked` is why even looks are refused, `merged` why compaction and queries of log files by us are,
    `compacted` why our compaction alone is, `by_hudi` why our plan is not executed by Hudi. None: it works. `failing`:
    words of Hudi's queries that may fail, by their kinds (`incremental`). `fills`: records before a range of commits
    do, and of the range Hudi shows nulls. `note` is for the page.
    """

    name: str
    release: str = "1.2.0"
    version: int = 9
    options: Mapping[str, str | None] = field(default_factory=dict)
    metadata: bool = False
    time: EventTime = MILLISECONDS
    columns: Columns | None = None
    deletes: Deletes = Deletes.OPERATION
    partitions: tuple[str, str] = ("a", "b")
    moves: bool = False  # the fifth batch puts key 6 into the other partition
    settings: Mapping[str, str] = field(default_factory=dict)
    by_path: tuple[str, ...] = ()
    write: Callable[[Hudi, Configuration, Path, int], None] | None = None
    looked: Refused | None = None
    merged: Refused | None = None
    compacted: Refused | None = None
    by_hudi: Refused | None = None
    failing: Mapping[str, str] = field(default_factory=dict)
    fills: bool = False
    note: str = ""
    quick: bool = False  # in the slice of each change

    @property
    def id(self) -> str:
        """The name as a file's and a test's."""
        return re.sub(r"[^a-z0-9.]+", "-", self.name.lower()).strip("-") + f"-{self.release}-v{self.version}"

    @property
    def completion_times(self) -> bool:
        """True where incremental ranges go by completion times."""
        return self.version >= 8

    def writer_options(self) -> dict[str, str]:
        """DataSource options of the table's writer."""
        given: dict[str, str | None] = {
            **hudi_options(name="t", buckets=1),
            VERSION: str(self.version),
            "hoodie.metadata.enable": str(self.metadata).lower(),
            **self.options,
        }
        return {key: value for key, value in given.items() if value is not None}

    def stated(self) -> dict[str, str]:
        """The settings that we open the table with."""
        unit = {"hudi_assets.event.time.unit": self.time.unit} if self.time.unit else {}
        bucket = self.writer_options().get(INDEX) == "BUCKET"
        buckets = {INDEX: "BUCKET", "hoodie.bucket.index.num.buckets": "1"} if bucket else {}
        return {**STATED, **unit, **buckets, **self.settings}

    def rows(self, batch: Batch, number: int) -> pa.Table:
        """What a batch writes. An update of some columns leaves the others at their default, which is null."""
        some = batch.kind == "U"
        more = self.columns or _no_columns
        rows = [
            {
                "id": f"k{key}",
                "p": self._partition(key, number),
                "ts": self.time.value(self.time.at(batch.minute + key)),
                "a": None if some and number % 2 == 0 else f"{number}-{key}",
                "b": None if some and number != 2 else number * 100 + key,
                **more(key, number, batch.kind),
            }
            for key in batch.keys
        ]
        further = [pa.field(name, _type_of(value)) for name, value in more(0, number, "I").items()]
        return pa.Table.from_pylist(rows, pa.schema([*self._own_columns(), *further]))

    def _own_columns(self) -> Iterable[pa.Field]:
        yield pa.field("id", pa.string())
        yield pa.field("p", pa.string())
        yield pa.field("ts", self.time.type)
        yield pa.field("a", pa.string())
        yield pa.field("b", pa.int64())

    def _partition(self, key: int, number: int) -> str:
        moved = self.moves and key == 6 and number == 4
        return self.partitions[(key + moved) % 2]


def _no_columns(key: int, number: int, kind: str) -> dict[str, Any]:
    return {}


def _type_of(value: object) -> pa.DataType:
    return pa.bool_() if isinstance(value, bool) else pa.int64() if isinstance(value, int) else pa.string()
