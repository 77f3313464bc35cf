"""The same work on tables in a bucket, by this engine and by Apache Hudi 1.2.0, and the requests that each makes.

    scripts/with-env scripts/hadoop-aws-setup
    scripts/with-env python -m benchmarks.on_minio [--rows 2000000] [--runs 3] [--write docs/reference/benchmarks.md]

A real MinIO on the same machine holds the tables. It has the same two cores as everybody. Each side works on a table
of its own, both of version 9. Requests are counted by MinIO's own trace, once each, while no time is taken.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyarrow import fs

from benchmarks import report
from benchmarks.__main__ import about
from benchmarks.data import Work, trips
from benchmarks.measuring import Answer, Contender, Times, check_same, in_turn, note, on_cores
from benchmarks.ours import Ours, session
from benchmarks.peers import HudiPeer
from benchmarks.report import Row, make_row
from benchmarks.server_trace import COLUMNS, counted
from hudi_assets.home import home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.stores.minio import Minio

RELEASE = "1.2.0"
OURS, SPARK = "ours", "spark.read.parquet"
BEGIN, END = "<!-- on a store: begin -->", "<!-- on a store: end -->"
Side = Ours | HudiPeer


@dataclass
class Requests:
    """Requests by kind, of each action of each side."""

    of: dict[tuple[str, str], Counter[str]] = field(default_factory=dict)

    def markdown(self) -> str:
        others = sorted({kind for counts in self.of.values() for kind in counts} - set(COLUMNS))
        columns = [*COLUMNS, *others]
        lines = [f"| requests | by | all | {' | '.join(columns)} |", "|---" * (len(columns) + 3) + "|"]
        for (action, name), counts in self.of.items():
            cells = (str(counts[kind] or "") for kind in columns)
            lines.append(f"| {action} | {name} | {counts.total()} | {' | '.join(cells)} |")
        return "\n".join(lines) + "\n"


class OnMinio:
    """The scenarios. Tables are made once; each compaction gets a copy, made by the store."""

    def __init__(self, minio: Minio, spark: SparkSession, hudi: HudiPeer, work: Work, runs: int) -> None:
        self._minio, self._work, self._runs = minio, work, runs
        self._short = max(runs, 7) if runs > 1 else 1
        self._ours = Ours(spark, work)
        self._sides: dict[str, Side] = {OURS: self._ours, hudi.name: hudi}
        self._hudi = hudi.name
        self.requests = Requests()

    def run(self) -> Iterator[Row]:
        for name, side in self._sides.items():
            self._count("load", name, partial(side.load, _table(name), self._work.load))
        yield self._upsert()
        yield self._snapshot()
        yield self._compaction()
        yield self._read_optimized()

    def _upsert(self) -> Row:
        *timed, last = self._work.upserts

        def upsert(name: str, side: Side, run: int) -> Answer:
            side.upsert(_table(name), timed[run])
            return None

        contenders = [Contender(name, partial(upsert, name, side)) for name, side in self._sides.items()]
        times = in_turn("upsert", contenders, len(timed) - 1)
        for name, side in self._sides.items():
            self._count("upsert", name, partial(side.upsert, _table(name), last))
        return self._row("store_upsert_vs_hudi", times, self._hudi)

    def _snapshot(self) -> Row:
        contenders = [
            Contender(name, lambda _, name=name, side=side: side.snapshot(_table(name)))  # type: ignore[misc]
            for name, side in self._sides.items()
        ]
        times = in_turn("snapshot query", contenders, self._runs)
        for name, side in self._sides.items():
            self._count("snapshot", name, partial(side.snapshot, _table(name)))
        return self._row("store_snapshot_vs_hudi", times, self._hudi)

    def _compaction(self) -> Row:
        def compact(side: Side, path: str) -> Answer:
            side.compact(path)
            return None

        contenders = [
            Contender(name, partial(compact, side), partial(self._copy, name), self._done)
            for name, side in self._sides.items()
        ]
        times = in_turn("compaction", contenders, self._runs)
        for name, side in self._sides.items():
            path = self._copy(name, -1)
            before = side.snapshot(path)
            self._count("compaction", name, partial(side.compact, path))
            check_same("compaction", {"before": before, "after": side.read_optimized(path)})
        return self._row("store_compact_vs_hudi", times, self._hudi)

    def _read_optimized(self) -> Row:
        """On a table that was compacted: that of `_compaction`."""
        path, theirs = (self._place(name, -1) for name in self._sides)
        files = [file.replace("s3://", "s3a://") for file in self._ours.read_optimized_files(path)]
        contenders = [
            Contender(OURS, lambda _: self._ours.read_optimized(path)),
            Contender(SPARK, lambda _: self._ours.plain_parquet(files)),
        ]
        times = in_turn("read-optimized query", contenders, self._short, 10 if self._runs > 1 else 1)
        self._count("read-optimized", OURS, partial(self._ours.read_optimized, path))
        self._count("read-optimized", SPARK, partial(self._ours.plain_parquet, files))
        self._count("read-optimized", self._hudi, partial(self._sides[self._hudi].read_optimized, theirs))
        return self._row("store_read_optimized_limit", times, SPARK)

    def _row(self, name: str, times: Times, peer: str) -> Row:
        row = make_row(name, f"{self._work.name}, in a bucket of a MinIO", times.of[OURS], {peer: times.of[peer]})
        by_cpu = make_row(name, row.work, times.cpu[OURS], {peer: times.cpu[peer]})
        note(f"{name}: {row.ratio:.2f} against {row.against}; by CPU {by_cpu.ratio:.2f}")
        return row

    def _count(self, action: str, name: str, work: Callable[[], object]) -> None:
        counts = self.requests.of[action, name] = counted(self._minio, work)
        note(f"{action}: {name}: {counts.total()} requests: {dict(counts)}")

    def _place(self, name: str, run: int) -> str:
        return f"{_table(name)}-{run}"

    def _copy(self, name: str, run: int) -> str:
        """A table again, by the store's own copies."""
        store, path = self._minio.arrow(), self._place(name, run)
        source, target = _in_bucket(_table(name)), _in_bucket(path)
        found: Any = store.get_file_info(fs.FileSelector(source, recursive=True))
        for file in found:
            if file.type == fs.FileType.File:
                store.copy_file(file.path, target + file.path.removeprefix(source))
        return path

    def _done(self, path: str, run: int) -> None:
        self._minio.arrow().delete_dir(_in_bucket(path))


def _table(name: str) -> str:
    return f"s3a://lake/{name.replace(' ', '-')}"


def _in_bucket(path: str) -> str:
    return path.removeprefix("s3a://")


def measured(asked: argparse.Namespace, folder: Path) -> tuple[list[Row], Requests]:
    """All rows, and the requests, with a MinIO, a Hudi and a Spark that end with it."""
    from tests.stores.minio import hadoop_aws, minio_program, running_minio

    program, theirs, mine = minio_program(), hadoop_aws("3.3.4"), hadoop_aws("3.5.0")
    if program is None or not theirs or not mine:
        raise SystemExit("Run scripts/stores-setup, scripts/interop-setup and scripts/hadoop-aws-setup first.")
    (folder / "data").mkdir()
    work = trips(folder / "data", asked.rows, asked.upserts)
    with running_minio(program, folder / "minio") as minio:
        os.environ.update(minio.environment)
        hudi = HudiPeer(RELEASE, work, asked.memory, "zstd", jars=theirs, settings=minio.spark_settings)
        spark = session(asked.memory, mine)
        try:
            scenarios = OnMinio(minio, spark, hudi, work, asked.runs)
            return list(scenarios.run()), scenarios.requests
        finally:
            hudi.close()
            spark.stop()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.on_minio", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=2_000_000, help="of the first load; an upsert has a tenth")
    parser.add_argument("--upserts", type=int, default=8, help="the first warms up, the last is counted, not timed")
    parser.add_argument("--runs", type=int, default=3, help="counted runs, after one that is not")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--memory", default="4g", help="of each JVM")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="a Markdown page with the marks in it")
    asked = parser.parse_args()
    home().mkdir(parents=True, exist_ok=True)
    with on_cores(asked.cores), tempfile.TemporaryDirectory(dir=home(), prefix="bench-") as scratch:
        os.environ["SPARK_LOCAL_DIRS"] = str(Path(scratch) / "spark")
        rows, requests = measured(asked, Path(scratch))
    report.show(rows)
    command = " ".join(["python -m benchmarks.on_minio", *_without_page(sys.argv[1:])]).strip()
    text = f"{report.markdown(rows, about(command, asked.cores, asked.memory))}\n{requests.markdown()}"
    print(text)
    if asked.write:
        asked.write.write_text(report.put_into(asked.write.read_text(), text, BEGIN, END))


def _without_page(arguments: list[str]) -> list[str]:
    if "--write" not in arguments:
        return arguments
    at = arguments.index("--write")
    return arguments[:at] + arguments[at + 2 :]


if __name__ == "__main__":
    main()
