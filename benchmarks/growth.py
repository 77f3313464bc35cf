"""How a compaction's time and memory grow with the log records, and what a partial one costs.

    python -m benchmarks.growth [--what records,partial] [--rows 500000] [--runs 3]

`records`: the same base files with 1, 4 and 16 times as many log records. `partial`: of ten upserts the first is
compacted, 90 % of the log bytes remain; against all ten, and against a table that has the first alone.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.data import HOUR_MS, Work, trips
from benchmarks.measuring import Contender, copy_of_table, in_turn, on_cores
from benchmarks.ours import Ours, session
from hudi_assets.home import home

FACTORS = (1, 4, 16)
_STEPS = 10
_MEMORY = "2g"


@dataclass(frozen=True, slots=True)
class Grown:
    """A compaction of a table with so many log records: seconds, and the largest worker's peak memory in MB."""

    log_records: int
    log_bytes: int
    seconds: float
    cpu: float
    peak_mb: float


def written(work: Work, path: Path, upserts: int) -> Path:
    """A table of this engine with the first load and some of the upserts."""
    spark = session(_MEMORY)
    ours = Ours(spark, work)
    ours.load(path, work.load)
    for rows in work.upserts[:upserts]:
        ours.upsert(path, rows)
    spark.stop()
    return path


def log_bytes(path: Path) -> int:
    return sum(file.stat().st_size for file in path.rglob(".*.log.*"))


def peak_of_workers_mb() -> float:
    """The greatest memory that a Python worker of this process's Spark ever had, MB (VmHWM)."""
    parents = {}
    peaks = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            status = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines() if ":" in line)
        except OSError:
            continue  # it has ended meanwhile
        pid = int(folder.name)
        parents[pid] = int(status["PPid"])
        if "VmHWM" in status and "pyspark.daemon" in (folder / "cmdline").read_text():
            peaks[pid] = int(status["VmHWM"].split()[0]) / 1024

    def is_ours(pid: int) -> bool:
        while pid > 1 and pid != os.getpid():
            pid = parents.get(pid, 0)
        return pid == os.getpid()

    return max((peak for pid, peak in peaks.items() if is_ours(pid)), default=0.0)


def records(folder: Path, rows: int, runs: int) -> list[Grown]:
    """×1, ×4 and ×16 log records over the same base files."""
    found = []
    for factor in FACTORS:
        size = rows // 20 * factor // 4
        place = folder / f"records-{factor}"
        place.mkdir()
        work = trips(place, rows, upserts=4, size=size)
        source = written(work, place / "table", 4)
        spark = session(_MEMORY)  # of its own: the peak of its workers is this compaction's
        ours = Ours(spark, work)
        compactor = _compactor(f"{4 * size:,} log records", ours, source, folder / "copy")
        times = in_turn("compaction", [compactor], runs)
        seconds, cpu = (statistics.median(all_[compactor.name]) for all_ in (times.of, times.cpu))
        found.append(Grown(4 * size, log_bytes(source), seconds, cpu, peak_of_workers_mb()))
        spark.stop()
        shutil.rmtree(place)
    return found


def partial(folder: Path, rows: int, runs: int) -> dict[str, tuple[float, float]]:
    """Median seconds, the clock's and of CPU: all ten upserts, the first of them, and the first where it is alone."""
    work = trips(folder, rows, upserts=_STEPS)
    whole = written(work, folder / "whole", _STEPS)
    alone = written(work, folder / "alone", 1)
    spark = session(_MEMORY)
    ours = Ours(spark, work)
    first = 2 * HOUR_MS - 1  # the greatest event time of the first upsert
    contenders = [
        _compactor("full", ours, whole, folder / "copy"),
        _compactor("the first upsert of ten, the others remain", ours, whole, folder / "copy", first),
        _compactor("the first upsert, no other there", ours, alone, folder / "copy", first),
    ]
    times = in_turn("compaction", contenders, runs)
    spark.stop()
    print(f"log bytes: {log_bytes(whole):,} in all, {log_bytes(alone):,} in the first upsert's")
    return {name: (statistics.median(times.of[name]), statistics.median(times.cpu[name])) for name in times.of}


def _compactor(name: str, ours: Ours, source: Path, copy: Path, threshold: int | None = None) -> Contender:
    """Who compacts a copy of a table, anew in each run."""
    return Contender(
        name,
        lambda path: ours.compact(path, threshold),
        lambda run: copy_of_table(source, copy),
        lambda path, run: shutil.rmtree(path),
    )


def show_records(found: list[Grown]) -> None:
    """With what each further record costs: the same in each line where the growth is linear."""
    grid = Table("log records", "log MB", "seconds", "of CPU", "µs of CPU per further record", "peak of a worker")
    for before, one in zip([None, *found], found, strict=False):
        more = "" if before is None else f"{(one.cpu - before.cpu) / (one.log_records - before.log_records) * 1e6:.2f}"
        cells = (f"{one.log_bytes / 1e6:.0f}", f"{one.seconds:.2f}", f"{one.cpu:.2f}", more, f"{one.peak_mb:.0f} MB")
        grid.add_row(f"{one.log_records:,}", *cells)
    Console(width=120).print(grid)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--what", default="records,partial")
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--runs", type=int, default=3)
    asked = parser.parse_args()
    home().mkdir(parents=True, exist_ok=True)
    with on_cores(2), tempfile.TemporaryDirectory(dir=home(), prefix="growth-") as scratch:
        os.environ["SPARK_LOCAL_DIRS"] = f"{scratch}/spark"
        if "records" in asked.what:
            show_records(records(Path(scratch), asked.rows, asked.runs))
        if "partial" in asked.what:
            for name, (seconds, cpu) in partial(Path(scratch), asked.rows, asked.runs).items():
                print(f"{name}: {seconds:.2f} s, {cpu:.2f} s of CPU")


if __name__ == "__main__":
    main()
