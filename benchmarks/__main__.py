"""The same work by this engine and by its peers, in turn, on the same cores: ratios.

    make bench [ROWS=2000000] [RUNS=3] [WORK=trips|flights] [ONLY=row,row] [TABLES=folder] [LOG_FILES=100000]

Writes `.hudi-assets/bench.json` (the flights' beside it); `make bench-page` puts it into its page.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from benchmarks import report
from benchmarks.data import UPSERTS, WORKS
from benchmarks.measuring import on_cores
from benchmarks.scenarios import Asked, Scenarios
from hudi_assets.home import home


def main() -> None:
    rows = [goal.name for goal in report.GOALS]
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=2_000_000, help="of the first load; an upsert has a tenth")
    parser.add_argument("--upserts", type=int, default=UPSERTS, help="the first of them is not counted")
    parser.add_argument("--runs", type=int, default=3, help="counted runs, after one that is not")
    parser.add_argument("--work", choices=WORKS, default="trips")
    parser.add_argument("--only", default="", help=f"rows, comma-separated, of {', '.join(rows)}")
    parser.add_argument("--tables", type=Path, help="where the loaded tables are kept, or are from an earlier run")
    parser.add_argument("--log-files", type=int, default=100_000, help="of the table that is planned; in thousands")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--memory", default="4g", help="of each JVM")
    parser.add_argument("--hudi-codec", default="zstd", help="of Hudi's base files; its own default is gzip")
    parser.add_argument("--json", type=Path, help="the result: bench.json, or bench-flights.json")
    asked = parser.parse_args()
    only = [name for name in asked.only.split(",") if name]
    if unknown := set(only) - set(rows):
        parser.error(f"no such row: {', '.join(sorted(unknown))}")
    result = asked.json or report.bench_json(asked.work)
    home().mkdir(parents=True, exist_ok=True)
    with on_cores(asked.cores), tempfile.TemporaryDirectory(dir=home(), prefix="bench-") as scratch:
        folder = Path(scratch)
        # Spark's own scratch beside the tables: the same disk for everybody.
        os.environ["SPARK_LOCAL_DIRS"] = str(folder / "spark")
        (folder / "data").mkdir()
        work = WORKS[asked.work](folder / "data", asked.rows, asked.upserts)
        tables = asked.tables.absolute() / f"{asked.work}-{asked.rows}" if asked.tables else folder / "tables"
        size = Asked(frozenset(only or rows), asked.runs, asked.memory, asked.log_files, asked.hudi_codec)
        scenarios = Scenarios(work, folder, tables, size)
        found = []
        try:
            for row in scenarios.run():
                found.append(row)
                # Each row as soon as it is there: a run takes a while, and may be ended.
                result.write_text(report.to_json(found, **about(_command(), asked.cores, asked.memory)))
        finally:
            scenarios.close()
    report.show(found)


def _command() -> str:
    return "python -m benchmarks " + " ".join(sys.argv[1:])


def about(command: str, cores: int, memory: str) -> dict[str, str]:
    """What a result says of the run that it is of."""
    return {
        "command": command,
        "machine": f"{cores} cores of {platform.machine()}, {memory} for each JVM",
        "when": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    }


if __name__ == "__main__":
    main()
