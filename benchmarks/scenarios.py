"""What is measured: who does which work on which table, and the rows that come of the times."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import many_files
from benchmarks.bare import BarePyarrow, groups_of
from benchmarks.data import Work
from benchmarks.measuring import Answer, Contender, Times, check_same, copy_of_table, in_turn, note, say
from benchmarks.ours import Ours, session
from benchmarks.peers import HudiPeer, HudiRsPeer
from benchmarks.report import Row, make_row
from scripts.hudi_client import RELEASES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OURS, OURS_AVRO = "ours", "ours, on Hudi's table"
# What takes a second or less, unless only a single run is asked for: a JVM's compiler is busy with it for long.
SHORT_RUNS, SHORT_WARM_UPS = 7, 10


@dataclass(frozen=True, slots=True)
class Asked:
    """Which rows, from how many counted runs, and how large."""

    rows: frozenset[str]
    runs: int
    memory: str
    log_files: int
    hudi_codec: str


class Scenarios:
    """All of them share the tables, which are made once: the load and the upserts are measured while at it."""

    def __init__(self, work: Work, folder: Path, tables: Path, asked: Asked) -> None:
        self._work = work
        self._folder = folder
        self._tables = tables
        self._runs = asked.runs
        self._short_runs = max(asked.runs, SHORT_RUNS) if asked.runs > 1 else 1
        self._short_warm_ups = SHORT_WARM_UPS if asked.runs > 1 else 1
        self._memory = asked.memory
        self._hudi_codec = asked.hudi_codec
        self._many_files = many_files.Shape(buckets=asked.log_files // 1000)
        self._asked = asked.rows

    # -- who takes part; nobody is started who is not needed ------------------------------------------

    @cached_property
    def _spark(self) -> SparkSession:
        return session(self._memory)

    @cached_property
    def _ours(self) -> Ours:
        return Ours(self._spark, self._work)

    @cached_property
    def _hudis(self) -> dict[str, HudiPeer]:
        if all(row.endswith("_limit") for row in self._asked):
            return {}
        peers = (HudiPeer(release, self._work, self._memory, self._hudi_codec) for release in RELEASES)
        return {peer.name: peer for peer in peers}

    @cached_property
    def _bare_pool(self) -> BarePyarrow:
        return BarePyarrow()

    def close(self) -> None:
        """End every process that was started."""
        started = [*self.__dict__.get("_hudis", {}).values(), self.__dict__.get("_bare_pool")]
        for peer in started:
            if peer is not None:
                peer.close()
        if "_spark" in self.__dict__:
            self._spark.stop()

    # -- all of them -----------------------------------------------------------------------------------

    def run(self) -> Iterator[Row]:
        """The rows that were asked for, as they are found."""
        if self._asked != {"plan_100k_limit"}:
            yield from self._make_tables()
        for scenario in (self._snapshot, self._incremental, self._compaction, self._read_optimized, self._planning):
            yield from scenario()

    def _wants(self, *names: str) -> bool:
        return bool(self._asked & set(names))

    def _row(self, name: str, ours: str, times: Times, *peers: str, work: str | None = None) -> list[Row]:
        if name not in self._asked:
            return []
        row = make_row(name, work or self._work.name, times.of[ours], {peer: times.of[peer] for peer in peers})
        by_cpu = make_row(name, row.work, times.cpu[ours], {row.against: times.cpu[row.against]})
        note(f"{name}: {row.ratio:.2f} against {row.against}; by CPU {by_cpu.ratio:.2f}")
        return [row]

    def _table(self, name: str) -> Path:
        return self._tables / name.replace(" ", "-")

    @cached_property
    def _hudi_written(self) -> Path:
        """The table whose Avro logs we read and compact: the older release's, version 6."""
        return self._table(next(iter(self._hudis)))

    # -- load and upsert -------------------------------------------------------------------------------

    def _make_tables(self) -> list[Row]:
        names = [OURS, *self._hudis]
        if not self._wants("load_vs_hudi", "upsert_vs_hudi") and all(self._table(n).exists() for n in names):
            return []
        writers: dict[str, Ours | HudiPeer] = {OURS: self._ours, **self._hudis}
        runs = self._runs if self._wants("load_vs_hudi") else 0
        loads = [
            Contender(
                name,
                partial(self._load, writer),
                partial(self._place, "load", name),
                partial(self._keep_last, name, runs),
            )
            for name, writer in writers.items()
        ]
        rows = self._row("load_vs_hudi", OURS, in_turn("load", loads, runs), *self._hudis)
        upserts = [Contender(name, partial(self._upsert, name, writer)) for name, writer in writers.items()]
        times = in_turn("upsert", upserts, len(self._work.upserts) - 1)
        return rows + self._row("upsert_vs_hudi", OURS, times, *self._hudis)

    def _load(self, writer: Ours | HudiPeer, path: Path) -> Answer:
        writer.load(path, self._work.load)
        return writer.read_optimized(path)

    def _keep_last(self, name: str, runs: int, path: Path, run: int) -> None:
        if run < runs:
            shutil.rmtree(path)
            return
        target = self._table(name)
        shutil.rmtree(target, ignore_errors=True)
        target.parent.mkdir(parents=True, exist_ok=True)
        path.rename(target)

    def _upsert(self, name: str, writer: Ours | HudiPeer, run: int) -> Answer:
        writer.upsert(self._table(name), self._work.upserts[run])
        return None

    # -- queries ---------------------------------------------------------------------------------------

    def _snapshot(self) -> list[Row]:
        if not self._wants("snapshot_avro_vs_best", "snapshot_parquet_vs_best"):
            return []
        hudi_rs = HudiRsPeer(self._work)
        contenders = [
            _asking(OURS_AVRO, self._ours.snapshot, self._hudi_written),
            _asking(OURS, self._ours.snapshot, self._table(OURS)),
            *(_asking(name, peer.snapshot, self._table(name)) for name, peer in self._hudis.items()),
            _asking(hudi_rs.name, hudi_rs.snapshot, self._hudi_written),
        ]
        times = in_turn("snapshot query", contenders, self._runs)
        peers = (*self._hudis, hudi_rs.name)
        return [
            *self._row("snapshot_avro_vs_best", OURS_AVRO, times, *peers),
            *self._row("snapshot_parquet_vs_best", OURS, times, *peers),
        ]

    def _incremental(self) -> list[Row]:
        if not self._wants("incremental_vs_hudi"):
            return []
        contenders = [
            _asking(OURS, self._ours.incremental, self._table(OURS)),
            *(_asking(name, peer.incremental, self._table(name)) for name, peer in self._hudis.items()),
        ]
        times = in_turn("incremental query", contenders, self._short_runs, self._short_warm_ups)
        return self._row("incremental_vs_hudi", OURS, times, *self._hudis)

    def _read_optimized(self) -> list[Row]:
        """On a compacted table: the view that a user of this project reads."""
        if not self._wants("read_optimized_limit"):
            return []
        path = self._compacted_copy("read-optimized")
        files = self._ours.read_optimized_files(path)
        contenders = [
            Contender(OURS, lambda _: self._ours.read_optimized(path)),
            Contender("spark.read.parquet", lambda _: self._ours.plain_parquet(files)),
        ]
        times = in_turn("read-optimized query", contenders, self._short_runs, self._short_warm_ups)
        return self._row("read_optimized_limit", OURS, times, "spark.read.parquet")

    # -- compaction ------------------------------------------------------------------------------------

    def _compaction(self) -> list[Row]:
        if not self._wants("compact_avro_vs_hudi", "compact_parquet_vs_hudi", "compact_parquet_limit"):
            return []
        contenders = []
        if self._wants("compact_avro_vs_hudi"):
            source = next(iter(self._hudis))
            contenders.append(self._compactor(OURS_AVRO, source, self._ours))
        if self._wants("compact_parquet_vs_hudi", "compact_parquet_limit"):
            contenders.append(self._compactor(OURS, OURS, self._ours))
        contenders += [self._compactor(name, name, peer) for name, peer in self._hudis.items()]
        bare = self._bare() if self._wants("compact_parquet_limit") else None
        times = in_turn("compaction", [*contenders, *([bare] if bare else [])], self._runs)
        return [
            *self._row("compact_avro_vs_hudi", OURS_AVRO, times, *self._hudis),
            *self._row("compact_parquet_vs_hudi", OURS, times, *self._hudis),
            *self._row("compact_parquet_limit", OURS, times, BarePyarrow.name),
        ]

    def _place(self, what: str, name: str, run: int = 0) -> Path:
        return self._folder / f"{what}-{name.replace(' ', '-')}-{run}"

    def _compacted_copy(self, what: str) -> Path:
        path = copy_of_table(self._table(OURS), self._place(what, OURS))
        self._ours.compact(path)
        return path

    def _compactor(self, name: str, source: str, who: Ours | HudiPeer) -> Contender:
        def check(path: Path, run: int) -> None:
            if run == 0:
                before, after = self._ours.snapshot(self._table(source)), who.read_optimized(path)
                check_same("compaction", {f"{source}, before": before, f"{name}, after": after})
            shutil.rmtree(path)

        def prepare(run: int) -> Path:
            return copy_of_table(self._table(source), self._place("compact", name, run))

        return Contender(name, lambda path: who.compact(path), prepare, check)

    def _bare(self) -> Contender:
        path = self._compacted_copy("bare")
        groups = groups_of(self._ours.open(self._table(OURS)), self._ours.open(path))
        shutil.rmtree(path)
        return Contender(
            BarePyarrow.name,
            lambda out: self._bare_pool.compact(groups, out),
            partial(self._place, "bare", "result"),
            lambda out, run: shutil.rmtree(out),
        )

    # -- planning --------------------------------------------------------------------------------------

    def _planning(self) -> list[Row]:
        """Each measurement in a process of its own, so that nothing is remembered; its start is not counted."""
        if not self._wants("plan_100k_limit"):
            return []
        path = self._folder / "many-files"
        shape = self._many_files
        many_files.make(str(path), shape)
        limit = "listing and timeline alone"
        times = Times()
        for run in range(self._short_runs + 1):
            for name, what in ((OURS, "plan"), (limit, "limit")):
                done = many_files.apart(what, str(path))
                say("planning", run, name, done.wall_s, done.cpu_s)
                if run:
                    times.add(name, done.wall_s, done.cpu_s)
        shutil.rmtree(path)
        work = f"{shape.log_files:,} log files in {shape.groups:,} file groups of {shape.partitions} partitions"
        return self._row("plan_100k_limit", OURS, times, limit, work=work)


def _asking(name: str, query: Callable[[Path], Answer], path: Path) -> Contender:
    return Contender(name, lambda _: query(path))
