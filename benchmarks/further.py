"""The measurements beside the table of ratios: each command, run, with what it printed.

    make bench-further [ARGS='--only growth']
    python -m benchmarks.further [--write docs/reference/benchmarks.md] [--only growth] [--looks 10000]
        [--list] [--trial]

Growth of a compaction, what a partial one costs, planning of up to a million log files, the sensor's look, where the
time of a load and of an incremental query goes, what a filter saves.
"""

from __future__ import annotations

import argparse
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.report import put_into
from hudi_assets.home import project_root

BEGIN, END = "<!-- further: begin -->", "<!-- further: end -->"
_MANY = "python benchmarks/many_files.py"


@dataclass(frozen=True, slots=True)
class Sizes:
    """Rows of the tables that grow; buckets of a hundred partitions, with ten log files each; looks in a row."""

    rows: int = 2_000_000
    buckets: tuple[int, int, int] = (10, 100, 1000)
    looks: int = 10_000


TRIAL = Sizes(rows=20_000, buckets=(1, 2, 3), looks=20)


def commands_of(sizes: Sizes) -> tuple[str, ...]:
    """What is run, in this order."""
    few, *_ = sizes.buckets
    return (
        f"python -m benchmarks.growth --what records --rows {sizes.rows}",
        f"python -m benchmarks.growth --what partial --rows {sizes.rows}",
        f"{_MANY} --buckets {','.join(map(str, sizes.buckets))} --what limit,plan,publish --runs 2",
        f"{_MANY} --buckets {few} --what limit,first_look,next_look",
        f"{_MANY} --buckets {few} --looks {sizes.looks}",
        f"python -m benchmarks.load_stages --rows {sizes.rows}",
        f"python -m benchmarks.incremental_stages --rows {sizes.rows}",
        f"python -m benchmarks.filter_stages --rows {sizes.rows}",
    )


def output_of(command: str) -> str:
    """What a command prints, run by this Python. Raises CalledProcessError where it fails."""
    _, *arguments = shlex.split(command)
    done = subprocess.run(
        [sys.executable, *arguments], cwd=project_root(), check=True, stdout=subprocess.PIPE, text=True
    )
    return done.stdout


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.further", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", type=Path, metavar="PAGE", help="a Markdown page with the marks in it")
    parser.add_argument("--only", default="", help="commands that contain this text")
    parser.add_argument("--list", action="store_true", help="print the commands, run none")
    parser.add_argument("--looks", type=int, default=Sizes().looks, help="how often the same table is looked at")
    parser.add_argument("--trial", action="store_true", help="small sizes, to see that each command works")
    asked = parser.parse_args()
    sizes = TRIAL if asked.trial else Sizes(looks=asked.looks)
    commands = [command for command in commands_of(sizes) if asked.only in command]
    if asked.list:
        print("\n".join(commands))
        return
    for command in commands:
        print(f"$ {command}", flush=True)
        printed = output_of(command)
        print(printed, flush=True)
        if asked.write:
            write_into(asked.write, command, printed, commands_of(sizes))


def write_into(page: Path, command: str, printed: str, order: Sequence[str]) -> None:
    """Put what a command printed between the page's marks, in place of what it printed before."""
    text = page.read_text()
    between = text.partition(BEGIN)[2].partition(END)[0]
    blocks = {block.partition("\n")[0]: block for block in re.findall(r"```\n\$ (.*?\n)```\n", between, re.DOTALL)}
    blocks[command] = f"{command}\n{printed.rstrip()}\n"
    ordered = [f"```\n$ {blocks[known]}```\n" for known in order if known in blocks]
    page.write_text(put_into(text, "\n".join(ordered), BEGIN, END))


if __name__ == "__main__":
    main()
