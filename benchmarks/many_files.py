"""Planning and looking at tables of very many files: tables made on disk, and the measurements on them.

    python benchmarks/many_files.py [--version 6] [--partitions 100] [--buckets 10,100,1000] [--logs 10] [--commits 10]
        [--what limit,plan,...] [--runs 5]

The tables, one for each number of buckets, are as this engine writes them, by its own names and commits, but for the
files themselves: those are holes of the stated size, which nothing here opens. Every measurement runs in a process of
its own, in turn with those of all tables: what grows in proportion costs each log file the same in each of them.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import fastavro
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from hudi_assets.engine import HudiTable, NoPlan
from hudi_assets.engine.event_time.table_times import TableTimes
from hudi_assets.engine.model import Action, State
from hudi_assets.engine.storage import Storage, open_storage
from hudi_assets.engine.table.layout.interface import Layout
from hudi_assets.engine.table.record_keys import bucket_file_id
from hudi_assets.engine.timeline.commit_metadata import (
    CLOCK_TIME,
    EVENT_TIME,
    SCHEMA,
    WRITER,
    CommitMetadata,
    WriteStat,
)

SCHEMA_OF_ROWS: Final = pa.schema([("id", pa.int64()), ("day", pa.string()), ("ts", pa.int64())])
SETTINGS: Final = {"hudi_assets.writers": "stopped"}
_BASE_BYTES: Final = 4_000_000
_LOG_BYTES: Final = 40_000
_STEP: Final = timedelta(minutes=1)
_FIRST: Final = datetime(2026, 1, 1, tzinfo=UTC)
_HOUR_MS: Final = 3_600_000


@dataclass(frozen=True, slots=True)
class Shape:
    """How many files a table has. Every file group has a base file and `logs` log files.

    `commits`: delta commits that wrote the log files, a multiple of `logs`: each wrote logs / commits of the groups.
    `latency`: the data latency in hours. Log files have an hour each, so it says how many are not due; 0: half of them.
    """

    partitions: int = 100
    buckets: int = 100
    logs: int = 10
    commits: int = 10
    version: int = 6
    latency: int = 0

    @property
    def groups(self) -> int:
        return self.partitions * self.buckets

    @property
    def log_files(self) -> int:
        return self.groups * self.logs


# ------------------------------------------------------------------------------------------------ tables


def make(path: str, shape: Shape) -> HudiTable:
    """A table of this shape at a path that holds none. Log n of each group has the event times of hour n.

    Unless its data latency says otherwise, a compaction takes the older half of the log files.
    """
    table = HudiTable.create(
        path,
        SCHEMA_OF_ROWS,
        record_key=["id"],
        ordering_field="ts",
        partition_fields=["day"],
        buckets=shape.buckets,
        table_version=shape.version,
        event_time_unit="ms",
        clock="commit",
        data_latency=timedelta(hours=shape.latency or shape.logs / 2),
    )
    _Maker(table, shape).make()
    return HudiTable.open(path, settings=SETTINGS)


class _Maker:
    def __init__(self, table: HudiTable, shape: Shape) -> None:
        self.storage: Storage = open_storage(table.path)
        self.layout: Layout = table.state().layout
        self.shape = shape
        state = table.state()
        self.extra = {SCHEMA: state.avro_schema, EVENT_TIME: TableTimes(state).tag, WRITER: "hudi-assets"}
        self.groups = [
            (f"day={day:05d}", bucket_file_id(bucket, str(uuid.UUID(int=day * 1_000_003 + bucket))))
            for day in range(shape.partitions)
            for bucket in range(shape.buckets)
        ]

    def make(self) -> None:
        for partition in dict.fromkeys(partition for partition, _ in self.groups):
            self.storage.create(f"{partition}/.hoodie_partition_metadata", b"commitTime=20260101000000000\n")
        first = _instant(0)
        self._commit(0, [self._base(first, *group) for group in self.groups], 0)
        share = self.shape.commits // self.shape.logs
        for number in range(self.shape.commits):
            mine = [group for n, group in enumerate(self.groups) if n % share == number % share]
            stats = [self._log(first, number + 1, number // share, *group) for group in mine]
            self._commit(number + 1, stats, number // share + 1)

    def _base(self, instant: str, partition: str, file_id: str) -> WriteStat:
        name = self.layout.base_file_name(file_id, "0-1-0", instant)
        self._hole(f"{partition}/{name}", _BASE_BYTES)
        return WriteStat(f"{partition}/{name}", partition, file_id, "null", _BASE_BYTES, num_writes=1000)

    def _log(self, base: str, commit: int, hour: int, partition: str, file_id: str) -> WriteStat:
        instant, version = (base, hour + 1) if not self.layout.cuts_by_completion else (_instant(commit), 1)
        name = self.layout.log_file_name(file_id, instant, version, "0-1-0")
        size = _LOG_BYTES + commit
        self._hole(f"{partition}/{name}", size)
        return WriteStat(
            path=f"{partition}/{name}",
            partition=partition,
            file_id=file_id,
            prev_commit=base,
            size=size,
            num_writes=100,
            num_updates=100,
            min_event_time=_ms(_FIRST) + hour * _HOUR_MS + commit,
            max_event_time=_ms(_FIRST) + (hour + 1) * _HOUR_MS - 1,
            log_version=version,
            base_file=self.layout.base_file_name(file_id, "0-1-0", base),
            log_files=(name,),
        )

    def _hole(self, path: str, size: int) -> None:
        with open(self.storage.uri(path), "xb") as file:
            file.truncate(size)

    def _commit(self, number: int, stats: list[WriteStat], hours: int) -> None:
        instant = _instant(number)
        extra = self.extra | {CLOCK_TIME: str(_ms(_FIRST) + hours * _HOUR_MS)}
        content = self.layout.encode_commit(CommitMetadata("UPSERT", tuple(stats), extra))
        for state in (State.REQUESTED, State.INFLIGHT):
            self.storage.create(self.layout.instant_path(instant, Action.DELTA_COMMIT, state), b"")
        done = self.layout.instant_path(instant, Action.DELTA_COMMIT, State.COMPLETED, _instant(number, 30))
        self.storage.create(done, content)


def _instant(number: int, seconds: int = 0) -> str:
    return f"{_FIRST + number * _STEP + timedelta(seconds=seconds):%Y%m%d%H%M%S}000"


def _ms(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)


# ------------------------------------------------------------------------------------------ measurements


def limit(path: str) -> int:
    """What no planner can do without: every partition listed with sizes, and the timeline's commits parsed.

    Bare: os.scandir and a stat per file, json.loads or fastavro per commit, and nothing made of what they give.
    """
    files = 0
    with os.scandir(path) as partitions:
        for partition in partitions:
            if partition.name == ".hoodie":
                continue
            with os.scandir(partition.path) as entries:
                files += sum(1 for entry in entries if entry.stat().st_size)
    for folder in (Path(path, ".hoodie"), Path(path, ".hoodie/timeline")):
        for file in sorted(folder.glob("*.deltacommit")):
            _parsed(file)
    return files


def _parsed(file: Path) -> object:
    data = file.read_bytes()
    if data.startswith(b"{"):
        return json.loads(data)
    with open(file, "rb") as source:
        return list(fastavro.reader(source))


def plan(path: str) -> int:
    """Open the table and plan, without publishing: the plan's log files."""
    found = HudiTable.open(path, settings=SETTINGS).plan_compaction(dry_run=True)
    assert not isinstance(found, NoPlan), found.reason
    return sum(len(op.log_files) for op in found.operations)


def publish(path: str) -> int:
    """Open the table, plan and publish; the plan is withdrawn outside the measurement."""
    found = HudiTable.open(path, settings=SETTINGS).plan_compaction()
    assert not isinstance(found, NoPlan), found.reason
    return sum(len(op.log_files) for op in found.operations)


def first_look(path: str) -> int:
    """What a sensor asks of a table at its first tick: freshness, a pending plan, what is due, what was left."""
    return look(HudiTable.open(path, settings=SETTINGS))


def look(table: HudiTable) -> int:
    """What a sensor asks at each tick (`hudi_assets.dagster.sensors`)."""
    seen = table.look()
    assert seen.freshness.reason is None, seen.freshness.reason
    assert seen.pending is None
    assert not seen.leftovers
    assert seen.now_ms
    return 0 if isinstance(seen.due, NoPlan) else len(seen.due.operations)


_MANY: Final = 10_000
_MORE: Final = _instant(_MANY)


def new_commit(path: str, partitions: int | None = 1, files: int = 100) -> None:
    """One more commit: a log file for each of so many file groups, in the first partitions (None: in all of them)."""
    table = HudiTable.open(path, settings=SETTINGS)
    state, storage = table.state(), open_storage(path)
    number = sum(instant.action is Action.DELTA_COMMIT for instant in state.timeline.instants)
    instant, done = _instant(_MANY + number), _instant(_MANY + number, 30)
    last = state.commit([i for i in state.timeline.completed(Action.DELTA_COMMIT) if i.timestamp < _MORE][-1])
    chosen = sorted(state.listing)[:partitions]
    slices = [s for s in state.view.latest if s.partition in chosen]
    stats = []
    for slice_ in slices[:: max(1, len(slices) // files)]:
        name_instant, version = state.layout.new_log(slice_, instant)
        name = state.layout.log_file_name(slice_.file_id, name_instant, version, "0-1-0")
        partition, size = slice_.partition, _LOG_BYTES
        with open(storage.uri(f"{partition}/{name}"), "xb") as file:
            file.truncate(size)
        like = next(stat for stat in last.stats if stat.partition == partition)
        at = f"{partition}/{name}"
        stats.append(like._replace(path=at, file_id=slice_.file_id, size=size, log_version=version, log_files=(name,)))
    content = state.layout.encode_commit(CommitMetadata("UPSERT", tuple(stats), last.extra))
    for one in (State.REQUESTED, State.INFLIGHT):
        storage.create(state.layout.instant_path(instant, Action.DELTA_COMMIT, one), b"")
    storage.create(state.layout.instant_path(instant, Action.DELTA_COMMIT, State.COMPLETED, done), content)


def take_back(path: str) -> None:
    """Take back what `new_commit` made."""
    state = HudiTable.open(path, settings=SETTINGS).state()
    for instant in state.timeline.completed(Action.DELTA_COMMIT):
        if instant.timestamp >= _MORE:
            for stat in state.commit(instant).stats:
                state.storage.delete(stat.path)
            for file in state.timeline_files:
                if file.startswith(instant.timestamp):
                    state.storage.delete(f"{state.layout.timeline_folder}/{file}")


WHAT: Final[dict[str, Callable[[str], int]]] = {
    "limit": limit,
    "plan": plan,
    "publish": publish,
    "first_look": first_look,
    "next_look": first_look,  # after one that is not measured
    "commit_look": first_look,  # the same, after a commit of 100 log files in one partition
    "spread_look": first_look,  # the same, in all partitions
}


@dataclass(frozen=True, slots=True)
class Measured:
    """One run: seconds of CPU (user and system) and of the wall, peak memory of the process in MB."""

    what: str
    cpu_s: float
    wall_s: float
    peak_mb: float
    found: int


def measured(what: str, path: str) -> Measured:
    """One measurement, in this process."""
    if what.endswith("_look") and what != "first_look":
        first_look(path)
        if what != "next_look":
            new_commit(path)
            time.sleep(2.5)  # a stream does not commit at each look
            first_look(path)
            new_commit(path, 1 if what == "commit_look" else None)
    gc.collect()
    wall, cpu = time.perf_counter(), time.process_time()
    found = WHAT[what](path)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    take_back(path)
    if what == "publish":
        table = HudiTable.open(path, settings=SETTINGS)
        pending = table.pending_plan()
        assert pending is not None
        table.unschedule(pending.instant)
    return Measured(what, cpu, wall, _peak_mb(), found)


def _peak_mb() -> float:
    """This program's own: ru_maxrss begins with that of the process that started it."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def apart(what: str, path: str) -> Measured:
    """One measurement, in a process of its own."""
    command = [sys.executable, __file__, "--at", path, "--what", what, "--here"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return Measured(**json.loads(done.stdout))


def many_looks(path: str, times: int) -> None:
    """Look so often, in one process; prints memory (MB) and seconds now and then."""
    table = HudiTable.open(path, settings=SETTINGS)
    started = time.perf_counter()
    for number in range(1, times + 1):
        look(HudiTable.open(table.path, settings=SETTINGS))
        if number in (1, 10, 100) or number % max(1, times // 10) == 0:
            resident = int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / (1 << 20)
            print(f"{number} looks: {resident:.0f} MB, {time.perf_counter() - started:.1f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    for name, default in asdict(Shape()).items():
        several = name == "buckets"
        parser.add_argument(
            f"--{name}", **({"default": str(default)} if several else {"type": int, "default": default})
        )
    parser.add_argument("--what", default="limit,plan", help=f"of {', '.join(WHAT)}, comma-separated")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--at", help="a folder in which the tables are made and kept; with --here, a table")
    parser.add_argument("--here", action="store_true", help="in this process; prints JSON")
    parser.add_argument("--looks", type=int, help="look so often in one process instead")
    asked = parser.parse_args()
    if asked.here:
        print(json.dumps(asdict(measured(asked.what, asked.at))))
        return
    common = {name: getattr(asked, name) for name in asdict(Shape()) if name != "buckets"}
    shapes = [Shape(buckets=int(buckets), **common) for buckets in asked.buckets.split(",")]
    with tempfile.TemporaryDirectory(prefix="many_files_") if asked.at is None else nullcontext(asked.at) as folder:
        tables = {f"{folder}/{shape.log_files}": shape for shape in shapes}
        for path, shape in tables.items():
            if not Path(path, ".hoodie").exists():
                make(path, shape)
            if asked.looks:
                many_looks(path, asked.looks)
        if not asked.looks:
            _show(tables, asked.what.split(","), asked.runs)


def _show(tables: Mapping[str, Shape], what: Sequence[str], runs: int) -> None:
    """Medians of the runs; the ratio is that of a run to the same run of the first of `what`, over the same table."""
    rounds = [{(path, one): apart(one, path) for path in tables for one in what} for _ in range(runs)]
    grid = Table(
        "log files", "in groups", "what", "CPU", "clock", "µs of CPU per log file", "peak", f"CPU / {what[0]}'s"
    )
    for path, shape in tables.items():
        for one in what:
            done = [measured[path, one] for measured in rounds]
            cpu = statistics.median(run.cpu_s for run in done)
            ratios = sorted(
                run.cpu_s / measured[path, what[0]].cpu_s for run, measured in zip(done, rounds, strict=True)
            )
            grid.add_row(
                f"{shape.log_files:,}",
                f"{shape.groups:,}",
                one,
                f"{cpu:.2f} s",
                f"{statistics.median(run.wall_s for run in done):.2f} s",
                f"{cpu / shape.log_files * 1e6:.1f}",
                f"{max(run.peak_mb for run in done):.0f} MB",
                "" if one == what[0] else f"{statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})",
            )
    Console(width=120).print(grid)


if __name__ == "__main__":
    main()
