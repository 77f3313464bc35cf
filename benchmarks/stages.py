"""Parts of a piece of work, each timed by itself, in turn; and their table."""

from __future__ import annotations

import shutil
import statistics
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from benchmarks.measuring import Contender, in_turn

Stage = Callable[[Path], None]
"""Gets a path where nothing is. Its docstring says what it does."""


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
