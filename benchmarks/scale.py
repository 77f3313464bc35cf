"""A table of very many log files: what each look costs, and which objects memory is made of.

    python -m benchmarks.scale [--version 9] [--partitions 1000] [--buckets 100] [--logs 10] [--commits 10]
        [--at FOLDER] [--what looks,kinds] [--objects 600000]

The table is as `many_files.py` makes it, in FOLDER, where it stays, or in memory for as long as the command runs. Looks
are made in one process, as a sensor makes them: a first one, two with nothing new, and after a commit of 100 log files
in one partition, and in all of them. `kinds` counts what such a process holds between two looks. `--objects`: how many
a process keeps, with columns for all else. Plans are measured by `many_files.py`.
"""

from __future__ import annotations

import argparse
import gc
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Final

from rich.console import Console
from rich.table import Table

from benchmarks.many_files import Shape, first_look, make, new_commit, take_back
from hudi_assets.engine.loaded import LOADED
from hudi_assets.engine.table.slices import kept
from hudi_assets.engine.timeline import decode_cache

_NO_VALUES: Final = (type, ModuleType, FunctionType)


@dataclass(frozen=True, slots=True)
class Step:
    """One look: seconds of CPU and of the wall, memory of the process after it and at its peak so far (MB)."""

    what: str
    cpu_s: float
    wall_s: float
    resident_mb: float
    peak_mb: float


def looks(path: str) -> Iterator[Step]:
    """Looks of one process, one after the other."""
    yield Step("before", 0.0, 0.0, *_resident())
    yield _step("first look", path)
    yield _step("next look", path)
    yield _step("next look", path)
    for what, partitions in (("one commit more, one partition", 1), ("one commit more, all partitions", None)):
        for _ in range(2):
            new_commit(path, partitions)
            time.sleep(2.5)  # a stream does not commit at each look
            yield _step(what, path)
    yield _step("next look", path)
    take_back(path)


def _step(what: str, path: str) -> Step:
    gc.collect()
    wall, cpu = time.perf_counter(), time.process_time()
    first_look(path)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    return Step(what, cpu, wall, *_resident())


def _resident() -> tuple[float, float]:
    gc.collect()
    status = Path("/proc/self/status").read_text()
    resident, peak = (int(status.partition(f"{key}:")[2].split()[0]) / 1024 for key in ("VmRSS", "VmHWM"))
    return resident, peak


def kinds(path: str) -> dict[str, tuple[int, int]]:
    """Kind of object → how many there are, and their bytes, of what is kept between two looks."""
    first_look(path)
    first_look(path)
    gc.collect()
    number: Counter[str] = Counter()
    size: Counter[str] = Counter()
    seen: set[int] = set()
    level: list[object] = [kept._KEEPERS, decode_cache.COMMITS, decode_cache.PLANS]
    while level:
        one = level.pop()
        if id(one) in seen or isinstance(one, _NO_VALUES):
            continue
        seen.add(id(one))
        kind = type(one).__name__
        if isinstance(one, str):
            kind = f"str {'of a path' if '/' in one else 'of a name' if one.endswith('-0') else 'else'}"
        number[kind] += 1
        size[kind] += sys.getsizeof(one)
        if isinstance(one, dict):
            level += one.keys()
        level += gc.get_referents(one)
    return {kind: (number[kind], size[kind]) for kind, _ in size.most_common(20)}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    for name, default in (asdict(Shape(partitions=1000, version=9, latency=20))).items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--at", help="a folder in which the table is made and kept; with --here, a table")
    parser.add_argument("--what", default="looks,kinds")
    parser.add_argument("--objects", type=int, default=LOADED.most)
    parser.add_argument("--here", action="store_true", help="in this process; prints JSON")
    asked = parser.parse_args()
    if asked.here:
        LOADED.most = asked.objects
        found = kinds(asked.at) if asked.what == "kinds" else [asdict(step) for step in looks(asked.at)]
        print(json.dumps(found))
        return
    shape = Shape(**{name: getattr(asked, name) for name in asdict(Shape())})
    memory = tempfile.TemporaryDirectory(prefix="scale_", dir="/dev/shm")
    with memory if asked.at is None else nullcontext(asked.at) as folder:
        path = f"{folder}/{shape.version}-{shape.log_files}"
        if not Path(path, ".hoodie").exists():
            make(path, shape)
        for what in asked.what.split(","):
            _show(what, path, shape, asked.objects)


def _show(what: str, path: str, shape: Shape, objects: int) -> None:
    command = [sys.executable, "-m", "benchmarks.scale", "--at", path, "--what", what, "--here"]
    command += ["--objects", str(objects)]
    found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    if what == "kinds":
        grid = Table("kind", "number", "MB", "bytes per log file")
        for kind, (number, size) in found.items():
            grid.add_row(kind, f"{number:,}", f"{size / 1e6:.1f}", f"{size / shape.log_files:.1f}")
        grid.add_row("together", "", "", f"{sum(size for _, size in found.values()) / shape.log_files:.0f}")
    else:
        grid = Table("what", "CPU", "clock", "resident", "peak")
        for step in (Step(**values) for values in found):
            memory = f"{step.resident_mb:.0f} MB", f"{step.peak_mb:.0f} MB"
            grid.add_row(step.what, f"{step.cpu_s:.2f} s", f"{step.wall_s:.2f} s", *memory)
    Console(width=100).print(f"{shape.log_files:,} log files, {shape.groups:,} file groups: {what}", grid)


if __name__ == "__main__":
    main()
