"""Driving a real table in this process, and telling the oracle what happened from the raw files."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa

from hudi_assets.engine import HudiTable, NoPlan, Plan
from hudi_assets.engine.model import MergeMode
from hudi_assets.engine.storage import Storage
from hudi_assets.engine.table.record_keys import bucket_ids
from tests.machine.oracle import Event, Merge, Oracle, Shown
from tests.tables.local_session import Frame, LocalSession

SCHEMA = pa.schema(
    [("id", pa.string()), ("part", pa.string()), ("ts", pa.int64()), ("seq", pa.int64()), ("v", pa.int64())]
)
BUCKETS = 2
LATENCY_MS = 3_000
FIRST_CLOCK = 100_000
# The true clock of the first instant; each reading is a millisecond later.
_EPOCH_MS = 1_760_000_000_000


class Ticking:
    """A clock that moves on by a millisecond whenever it is read: no test waits for time to pass."""

    def __init__(self, ms: int = _EPOCH_MS) -> None:
        self.ms = ms

    def __call__(self) -> int:
        self.ms += 1
        return self.ms


@dataclass(frozen=True)
class Variant:
    """How a table of the machine is made."""

    ordering: str = "ts"
    block_format: str = "parquet"
    carry_over: str = "auto"
    services: str = "shared"
    exact: bool = False
    partitioned: bool = True
    version: int = 6
    deletes_at_commit: bool = False
    by_0_x: bool = False
    whole: bool = False

    @property
    def is_in_buckets(self) -> bool:
        """One that there may be in a bucket: on version 6 plans take whole slices there."""
        return self.past_instants or self.whole

    @property
    def past_instants(self) -> bool:
        """Compactions are planned at past instants, and slices cut by completion times."""
        return self.version >= 8


@dataclass
class TableUnderTest:
    """A table, its oracle, and the clock of its stream."""

    path: Path
    session: LocalSession
    variant: Variant
    now_ms: Ticking = field(default_factory=Ticking)
    clock: int = FIRST_CLOCK
    value: int = 0
    links: dict[str, dict[str, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        variant = self.variant
        HudiTable.create(
            str(self.path),
            SCHEMA,
            record_key=["id"],
            ordering_field=variant.ordering,
            event_time_field="ts",
            partition_fields=["part"] if variant.partitioned else [],
            buckets=BUCKETS,
            clock="commit",
            data_latency=LATENCY_MS,
            log_block_format=variant.block_format,
            table_version=variant.version,
            merge_mode=MergeMode.EVENT_TIME_ORDERING_0X if variant.by_0_x else MergeMode.EVENT_TIME_ORDERING,
        )
        properties = self.path / ".hoodie/hoodie.properties"
        own = {
            "hudi_assets.carry.over": variant.carry_over,
            "hudi_assets.table.services": variant.services,
            "hudi_assets.exact.split": str(variant.exact).lower(),
            "hudi_assets.compaction.whole.slices": str(variant.whole).lower(),
            "hudi_assets.deletes.event.time": "commit" if variant.deletes_at_commit else "latency",
            "hoodie.keep.min.commits": "5",
            "hoodie.keep.max.commits": "7",
            "hoodie.cleaner.commits.retained": "3",
            **({"hudi_assets.query.grace": "0s"} if variant.past_instants else {}),
        }
        properties.write_text(properties.read_text() + "".join(f"{k}={v}\n" for k, v in own.items()))
        self.oracle = Oracle(
            by_event_time=variant.ordering == "ts", past_instants=variant.past_instants, by_0_x=variant.by_0_x
        )

    def open(self, storage: Storage | None = None) -> HudiTable:
        opened = HudiTable.open(str(self.path))
        return HudiTable(storage or opened._table.storage, opened.config, now_ms=self.now_ms)

    # -- actions: each tells the oracle what the raw files say ------------------------------------

    def rows(self, picked: list[tuple[str, int, int]]) -> Frame:
        """Rows for (key, event time, ordering value) with values never seen before."""
        rows = []
        for key, ts, seq in picked:
            self.value += 1
            rows.append({"id": key, "part": _part(key), "ts": ts, "seq": seq, "v": self.value})
        return self.session.rows(rows, SCHEMA)

    def keys(self, picked: list[tuple[str, int | None]]) -> Frame:
        """Deletes for (key, ordering value or None)."""
        ordering = self.variant.ordering
        with_order = any(order is not None for _, order in picked)
        names = ["id", "part", *([ordering] if with_order else [])]
        rows = [{"id": key, "part": _part(key), ordering: order} for key, order in picked]
        return self.session.frame(pa.Table.from_pylist(rows, SCHEMA).select(names))

    def upsert(self, frame: Frame, storage: Storage | None = None) -> str | None:
        result = self.open(storage).upsert(self.session, frame, clock_time=_at(self.clock))
        return result.instant

    def bulk_insert(self, frame: Frame, storage: Storage | None = None) -> str | None:
        result = self.open(storage).bulk_insert(self.session, frame, clock_time=_at(self.clock))
        return result.instant

    def delete(self, frame: Frame, storage: Storage | None = None) -> str | None:
        result = self.open(storage).delete(self.session, frame, clock_time=_at(self.clock))
        return result.instant

    def tell_write(
        self, instant: str, frame: Frame, *, deletes: bool, happened: Mapping[str, int] | None = None
    ) -> None:
        """Tell the oracle a commit: which log file each event went to, by the raw commit file.

        `happened`: of keys whose deletes have no event time, when they truly were deleted.
        """
        bound = self.clock if self.variant.deletes_at_commit else self.clock - LATENCY_MS
        written = self._log_paths(instant)
        events = []
        for row in frame.rows():
            group = self.group_of(row["id"])
            paths = written.get(group, [])
            if deletes and not paths:
                continue  # no such file group, so no such key
            order = row.get(self.variant.ordering)
            ts = row.get("ts")
            late = ts is not None and ts <= self.clock - LATENCY_MS
            home = paths[0] if late or deletes else paths[-1]
            true = ts if ts is not None else (happened or {}).get(row["id"], self.clock)
            events.append(Event(instant, group, row["id"], ts, order, row.get("v"), {home}, true, bound))
        if not deletes:
            events.sort(key=lambda e: e.ts or 0)
        self.oracle.wrote(instant, events, self._completion(instant, "deltacommit"))

    def tell_load(self, instant: str, frame: Frame) -> None:
        """Tell the oracle a bulk insert: its rows are in base files, none in a log file."""
        order = self.variant.ordering
        events = [
            Event(instant, self.group_of(row["id"]), row["id"], row["ts"], row[order], row["v"]) for row in frame.rows()
        ]
        self.oracle.loaded(instant, events, self._completion(instant, "deltacommit"))

    def _completion(self, instant: str, action: str) -> str:
        """When an instant was completed, by its file's name; its own time where that does not say."""
        (file,) = self.completed(instant, action)
        return file.name.split(".")[0].split("_")[-1]

    def _log_paths(self, instant: str) -> dict[tuple[str, int], list[str]]:
        (file,) = self.completed(instant, "deltacommit")
        data = file.read_bytes()
        commit: Any = next(iter(fastavro.reader(io.BytesIO(data)))) if data[:3] == b"Obj" else json.loads(data)
        found: dict[tuple[str, int], list[tuple[int, str]]] = {}
        for partition, stats in commit["partitionToWriteStats"].items():
            for stat in stats:
                found.setdefault((partition, int(stat["fileId"][:8])), []).append((stat["logVersion"], stat["path"]))
        return {group: [path for _, path in sorted(logs)] for group, logs in found.items()}

    def plan(self, threshold: int | None, storage: Storage | None = None) -> Plan | NoPlan:
        return self.open(storage).plan_compaction(threshold=threshold)

    def tell_plan(self, instant: str) -> None:
        links: dict[str, str] = {}
        for op in self.raw_plan(instant)["operations"]:
            folder = op["partitionPath"] + "/" if op["partitionPath"] else ""
            links |= {folder + c["symlink"]: folder + c["target"] for c in op["symlinkOperations"]}
        self.oracle.published(instant, links)

    def raw_plan(self, instant: str) -> dict[str, Any]:
        with open(self.timeline / f"{instant}.compaction.requested", "rb") as file:
            (plan,) = list(fastavro.reader(file))
        assert isinstance(plan, dict)
        return plan

    def execute(self, instant: str, storage: Storage | None = None) -> None:
        self.open(storage).execute_compaction(self.session, instant)

    def tell_compaction(self, instant: str) -> None:
        raw = self.raw_plan(instant)
        paths, residue = set(), {}
        for op in raw["operations"]:
            folder = op["partitionPath"] + "/" if op["partitionPath"] else ""
            paths |= {folder + name for name in op["deltaFilePaths"]}
            if raw["extraMetadata"].get("hudi_assets.residue") == "true":
                group = (op["partitionPath"], int(op["fileId"][:8]))
                residue[group] = f"{folder}.{op['fileId']}_{instant}.log.1_0-0-0"
        threshold = int(raw["extraMetadata"]["hudi_assets.threshold"])
        merge = Merge(instant, threshold, frozenset(paths), residue, self.variant.exact)
        self.oracle.compacted(merge, self._completion(instant, "commit"))

    def groups_with_files(self) -> set[tuple[str, int]]:
        """The file groups that some data file is of, by name."""
        found = set()
        for path in self.files():
            partition, _, name = path.rpartition("/")
            found.add((partition, int(name.lstrip(".")[:8])))
        return found

    # -- symbolic links ---------------------------------------------------------------------------

    def symbolic_links(self) -> dict[Path, Path]:
        """The log files that are symbolic links, each with the file that it leads to."""
        logs = (file for file in self.path.rglob(".*.log.*") if file.is_symlink())
        return {link: link.resolve() for link in logs}

    @staticmethod
    def slice_instant(log: Path) -> str:
        """The base instant of a log file's slice, by its name."""
        return log.name.split("_")[1].split(".")[0]

    def newest_base(self, log: Path, besides: list[str]) -> str:
        """The instant of the newest base file of a log file's group, but for those of these instants."""
        group = log.name[1:].split("_")[0]
        instants = (file.stem.split("_")[2] for file in log.parent.glob(f"{group}_*.parquet"))
        return max((i for i in instants if i not in besides), default="")

    @contextmanager
    def without(self, file: Path) -> Iterator[None]:
        """A file is not there for a while."""
        away = self.path.with_name("away")
        file.rename(away)
        try:
            yield
        finally:
            away.rename(file)

    # -- looking ----------------------------------------------------------------------------------

    def group_of(self, key: str) -> tuple[str, int]:
        bucket = int(bucket_ids([pa.array([key])], BUCKETS, complex_keys=False)[0])
        return (f"part={_part(key)}" if self.variant.partitioned else "", bucket)

    def shown(self, frame: Frame) -> Shown:
        result: Shown = {}
        ordering = self.variant.ordering
        for row in frame.rows():
            assert row["id"] not in result, f"key {row['id']} came twice"
            assert row["_hoodie_record_key"] == row["id"]
            result[row["id"]] = (row["ts"], row[ordering], row["v"], row["_hoodie_commit_time"])
        return result

    def instants(self) -> list[str]:
        """Completed delta commits and compactions on the active timeline, by file name."""
        names = (p.name for p in self.timeline.glob("*"))
        return sorted(n.split(".")[0].split("_")[0] for n in names if n.endswith((".deltacommit", ".commit")))

    @property
    def timeline(self) -> Path:
        return self.path / (".hoodie/timeline" if self.variant.past_instants else ".hoodie")

    def completed(self, instant: str, action: str) -> list[Path]:
        """The files that say an instant is completed: one, or none."""
        return [*self.timeline.glob(f"{instant}.{action}"), *self.timeline.glob(f"{instant}_*.{action}")]

    def files(self) -> Mapping[str, int]:
        """Every data file under the table, with its size."""
        found = (p for p in self.path.rglob("*") if not p.is_dir() and ".hoodie" not in p.parts)
        return {str(p.relative_to(self.path)): p.stat().st_size for p in found if "partition_metadata" not in p.name}


def attempt(action: Callable[[], Any], *refusals: type[Exception]) -> Any:
    """The action's result, or its refusal as a value."""
    try:
        return action()
    except refusals as error:
        return error


def _part(key: str) -> str:
    return "ab"[int(key[1:]) % 2]


def _at(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)
