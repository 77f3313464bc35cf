"""Parts of a piece of work, each timed by itself, in turn; and their table."""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.data import Work, trips
from benchmarks.measuring import Contender, in_turn, on_cores
from benchmarks.ours import session
from hudi_assets.home import home

Stage = Callable[[Path], None]
"""Gets a path where nothing is. Its docstring says what it does."""

Make = Callable[[Any, Work, Path], Mapping[str, Stage]]
"""From a Spark session, the trips of `make bench` and an empty folder, the stages by name."""


def main(module: str, description: str, make: Make, *, runs: int, warm_ups: int = 1) -> None:
    """The command of a module with stages: on two cores, in one Spark session, from `--rows` trips."""
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{module}", description=description.splitlines()[0])
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--runs", type=int, default=runs, help="counted runs, after those that warm up")
    parser.add_argument("--warm-ups", type=int, default=warm_ups)
    parser.add_argument("--memory", default="4g", help="of the JVM")
    asked = parser.parse_args()
    home().mkdir(parents=True, exist_ok=True)
    with on_cores(2), tempfile.TemporaryDirectory(dir=home(), prefix="bench-") as scratch:
        folder = Path(scratch)
        os.environ["SPARK_LOCAL_DIRS"] = str(folder / "spark")
        (folder / "data").mkdir()
        spark = session(asked.memory)
        try:
            show(make(spark, trips(folder / "data", asked.rows), folder), folder / "made", asked.runs, asked.warm_ups)
        finally:
            spark.stop()


def show(stages: Mapping[str, Stage], place: Path, runs: int, warm_ups: int = 1) -> None:
    """Print each stage's CPU seconds and the clock's, medians of the runs that count, and what it does."""
    contenders = [Contender(name, stage, lambda run: place, partial(_clear, place)) for name, stage in stages.items()]
    times = in_turn("stage", contenders, runs, warm_ups)
    print("| stage | CPU | clock | what |\n|---|---|---|---|")
    for name, stage in stages.items():
        cpu, clock = (statistics.median(of[name]) for of in (times.cpu, times.of))
        print(f"| {name} | {cpu:.2f} s | {clock:.2f} s | {' '.join((stage.__doc__ or '').split())} |")


def _clear(place: Path, path: Path, run: int) -> None:
    shutil.rmtree(place, ignore_errors=True)
