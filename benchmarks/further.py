"""The measurements beside the table of ratios: each command, run, with what it printed.

    make bench-further [ARGS='--only growth']
    python -m benchmarks.further [--write docs/benchmarks.md] [--only growth] [--list]

Growth of a compaction, what a partial one costs, planning of up to a million log files, the sensor's look.
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
from pathlib import Path

from benchmarks.report import put_into
from hudi_assets.home import project_root

BEGIN, END = "<!-- further: begin -->", "<!-- further: end -->"
_MANY = "python benchmarks/many_files.py"
COMMANDS = (
    "python -m benchmarks.growth --what records --rows 2000000",
    "python -m benchmarks.growth --what partial --rows 2000000",
    f"{_MANY} --buckets 10 --what limit,plan,publish",
    f"{_MANY} --buckets 100 --what limit,plan,publish",
    f"{_MANY} --buckets 1000 --what limit,plan --runs 2",
    f"{_MANY} --buckets 10 --what limit,first_look,next_look",
    f"{_MANY} --buckets 10 --looks 10000",
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
    asked = parser.parse_args()
    commands = [command for command in COMMANDS if asked.only in command]
    if asked.list:
        print("\n".join(commands))
        return
    blocks = []
    for command in commands:
        print(f"$ {command}", flush=True)
        printed = output_of(command)
        print(printed, flush=True)
        blocks.append(f"```\n$ {command}\n{printed.rstrip()}\n```\n")
        if asked.write:
            asked.write.write_text(put_into(asked.write.read_text(), "\n".join(blocks), BEGIN, END))


if __name__ == "__main__":
    main()
