"""Do the tests notice? Breaks the engine on purpose, one way at a time, and asks that some test fails.

    python -m tests.mutation.check            every breakage
    python -m tests.mutation.check 3 7        these
    python -m tests.mutation.check --every 5  each fifth: a slice for CI
    python -m tests.mutation.check --jobs 2   two at a time, each in a copy of its own
    python -m tests.mutation.check --green    the tests pass as they are: somebody else has seen that

The sources are copied first; nothing here changes the project. Exits 1 if a breakage survives, or no longer fits the
code (then the code has moved on: mend the breakage).
"""

from __future__ import annotations

import argparse
import queue
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from tests.mutation.breakages import BREAKAGES, Breakage
from tests.mutation.trial import compile_all, passes

ROOT = Path(__file__).resolve().parents[2]
Result = TypeVar("Result")


def copy_project(target: Path) -> None:
    """The files that git knows or would add: what a clone has, with what is not committed yet."""
    listed = ("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    for name in filter(None, names):
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, target / name, follow_symlinks=False)


def survives(breakage: Breakage, project: Path) -> tuple[bool, str]:
    file = project / breakage.file
    text = file.read_text()
    if text.count(breakage.old) != 1:
        return True, f"the text to break is {text.count(breakage.old)} times in {breakage.file}"
    file.write_text(text.replace(breakage.old, breakage.new))
    try:
        return passes(project, breakage.tests)
    finally:
        file.write_text(text)


class Copies:
    """Copies of the project, each lent to one piece of work at a time."""

    def __init__(self, folder: Path, jobs: int) -> None:
        self._free: queue.SimpleQueue[Path] = queue.SimpleQueue()
        for number in range(jobs):
            copy_project(folder / str(number))
            compile_all(folder / str(number))
            self._free.put(folder / str(number))

    def lent_to(self, work: Callable[[Path], Result]) -> Result:
        project = self._free.get()
        try:
            return work(project)
        finally:
            self._free.put(project)


def tried(number: int, breakage: Breakage, copies: Copies) -> bool:
    """Whether the breakage survives; says how it went."""

    def work(project: Path) -> bool:
        started = time.monotonic()
        alive, what = survives(breakage, project)
        said = "SURVIVES" if alive else "caught"
        print(f"{number:3d}  {said:8s} {time.monotonic() - started:6.1f} s  {breakage.what}  {what}", flush=True)
        return alive

    return copies.lent_to(work)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("numbers", nargs="*", type=int, help="numbers of breakages, from 1; default: all")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only each N-th")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="so many at a time (1)")
    parser.add_argument("--green", action="store_true", help="do not look first whether the tests pass unbroken")
    given = parser.parse_args()
    chosen = [(n, b) for n, b in enumerate(BREAKAGES, 1) if n in given.numbers or not given.numbers][:: given.every]
    with (
        tempfile.TemporaryDirectory(prefix="mutation-") as folder,
        ThreadPoolExecutor(max_workers=given.jobs) as pool,
    ):
        copies = Copies(Path(folder), given.jobs)
        every_test = [] if given.green else sorted({breakage.tests for _, breakage in chosen})
        for whole, what in pool.map(lambda tests: copies.lent_to(lambda project: passes(project, tests)), every_test):
            if not whole:
                print(f"The tests fail without any breakage: {what}")
                return 1
        left = sum(pool.map(lambda one: tried(one[0], one[1], copies), chosen))
    print(f"{len(chosen) - left} of {len(chosen)} breakages caught.")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
