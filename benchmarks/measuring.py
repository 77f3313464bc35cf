"""Taking times: contenders in turn, run after run, the first run a warm-up; and copies of tables to do it on."""

from __future__ import annotations

import math
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console

_CONSOLE = Console(stderr=True, width=140)
Answer = tuple[Any, ...] | None


class WrongAnswer(Exception):
    """Two contenders do not agree on the rows: their times compare nothing."""


@dataclass(frozen=True)
class Contender:
    """Somebody who does the work. Only `work` is timed; it gets what `prepare` made for the run."""

    name: str
    work: Callable[[Any], Answer]
    prepare: Callable[[int], Any] = lambda run: run
    finish: Callable[[Any, int], None] = lambda prepared, run: None


@dataclass
class Times:
    """Seconds by contender, one for each counted run: the clock's, and of CPU."""

    of: dict[str, list[float]] = field(default_factory=dict)
    cpu: dict[str, list[float]] = field(default_factory=dict)

    def add(self, name: str, seconds: float, cpu: float) -> None:
        self.of.setdefault(name, []).append(seconds)
        self.cpu.setdefault(name, []).append(cpu)


def in_turn(title: str, contenders: Sequence[Contender], runs: int, warm_ups: int = 1) -> Times:
    """Each contender once per run, in this order; `runs` of them count, after those that warm everybody up.

    Raises `WrongAnswer` where a run's answers differ.
    """
    times = Times()
    for run in range(1 - warm_ups, runs + 1):
        answers: dict[str, Answer] = {}
        for contender in contenders:
            prepared = contender.prepare(run)
            _settle()
            cpu, started = cpu_seconds(), time.perf_counter()
            answers[contender.name] = contender.work(prepared)
            seconds, cpu = time.perf_counter() - started, cpu_seconds() - cpu
            contender.finish(prepared, run)
            if run > 0:
                times.add(contender.name, seconds, cpu)
            say(title, run, contender.name, seconds, cpu)
        check_same(title, answers)
    return times


def _settle() -> None:
    """Wait until nobody is at work, some seconds at most: nobody pays for what another one writes or compiles."""
    os.sync()
    for _ in range(25):
        before = cpu_seconds()
        time.sleep(0.2)
        if cpu_seconds() - before < 0.04:
            return


def say(title: str, run: int, name: str, seconds: float, cpu: float) -> None:
    """A line of progress. CPU seconds tell more than the others while the machine has other work."""
    counted = f"run {run}" if run > 0 else "warm-up"
    note(f"{title}: {counted}: {name} {seconds:.2f} s ({cpu:.2f} s of CPU)")


def note(text: str) -> None:
    """Progress, beside the result."""
    _CONSOLE.print(text, highlight=False)


def cpu_seconds() -> float:
    """CPU, user and system, that this process and all that it started have used so far."""
    parents: dict[int, int] = {}
    used: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended meanwhile: its parent has its time
        pid = int(stat.parent.name)
        parents[pid] = int(fields[1])
        used[pid] = sum(map(int, fields[11:15]))  # its own, and that of its children that have ended
    return sum(ticks for pid, ticks in used.items() if _is_below(pid, os.getpid(), parents)) / os.sysconf("SC_CLK_TCK")


def _is_below(pid: int, ancestor: int, parents: dict[int, int]) -> bool:
    while pid not in (ancestor, 0):
        pid = parents.get(pid, 0)
    return pid == ancestor


def check_same(title: str, answers: dict[str, Answer]) -> None:
    """Raise `WrongAnswer` unless all that answered say the same; sums of floats may differ in their last digits."""
    given = {name: answer for name, answer in answers.items() if answer is not None}
    first = next(iter(given.values()), None)
    if first is None or all(_same(first, other) for other in given.values()):
        return
    raise WrongAnswer(f"{title}: " + "; ".join(f"{name} says {answer}" for name, answer in given.items()))


def _same(left: tuple[Any, ...], right: tuple[Any, ...]) -> bool:
    return len(left) == len(right) and all(
        math.isclose(a, b, rel_tol=1e-9) if isinstance(a, float) and isinstance(b, float) else a == b
        for a, b in zip(left, right, strict=True)
    )


def copy_of_table(source: Path, target: Path) -> Path:
    """A table again: its data files, which nobody writes again, as hard links, and its timeline copied."""
    for folder, _, files in os.walk(source):
        place = target / Path(folder).relative_to(source)
        place.mkdir(parents=True)
        inside = ".hoodie" in Path(folder).relative_to(source).parts
        for name in files:
            (shutil.copy2 if inside else os.link)(Path(folder, name), place / name)
    return target


@contextmanager
def on_cores(count: int) -> Iterator[None]:
    """Keep this process, and all that it starts, on `count` cores. Raises ValueError where there are fewer."""
    before = os.sched_getaffinity(0)
    if len(before) < count:
        raise ValueError(f"{count} cores are asked for; this process may use {len(before)}")
    os.sched_setaffinity(0, set(sorted(before)[:count]))
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
