"""What a run takes from typed to done, with a Spark of its own and with the shared one, in turn.

    scripts/with-env python -m benchmarks.shared_spark [--runs 3]

A compaction of a table of some 15 KiB by the command line, and the asset `ro_snapshot` of the demo's table in a process
of Dagster's (`dagster asset materialize`), which loads what a run of `make ui` loads. Everything is in a new home.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa

from hudi_assets.engine import HudiTable, local_session
from hudi_assets.home import project_root
from hudi_assets.shared_spark.wanted import SHARED

COMPACT = ("--threshold", "2024-05-01T09:00:00Z", "--writers", "stopped")
OWN, FIRST, NEXT = "own", "shared, first call", "shared, next call"


class Bench:
    """One home, with tables as they are before each run."""

    def __init__(self, home: Path) -> None:
        self.environment = {**os.environ, "HUDI_ASSETS_HOME": str(home), "DAGSTER_HOME": str(home / "dagster")}
        self.small, self.flights = home / "small", home / "warehouse/flights"
        self.kept = home / "kept"
        self.seconds: dict[tuple[str, str], list[float]] = {}

    def prepare(self) -> None:
        """Make both tables. The demo's has a plan that is pending."""
        self.run([sys.executable, "-m", "hudi_assets.demo", "--days", "1"])
        self.run([*_CLI, "plan", str(self.flights), "--threshold", "2013-01-01T23:00:00Z"])
        schema = pa.schema([("id", pa.string()), ("paid_at", pa.timestamp("us", "UTC"))])
        table = HudiTable.create(str(self.small), schema, record_key=["id"], ordering_field="paid_at", buckets=1)
        spark = local_session()
        for id_, hour in (("a", 8), ("b", 11)):
            rows = [{"id": id_, "paid_at": datetime(2024, 5, 1, hour, tzinfo=UTC)}]
            table.upsert(spark, spark.createDataFrame(pa.Table.from_pylist(rows, schema)))
        spark.stop()
        for path in (self.small, self.flights):
            shutil.copytree(path, self.kept / path.name)

    def run(self, command: list[str], more: Mapping[str, str] | None = None) -> None:
        done = subprocess.run(
            command,
            env=self.environment | dict(more or {}),
            cwd=project_root(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)} failed: {done.stdout[-3000:]}")

    def time(self, what: str, how: str, path: Path, command: list[str]) -> None:
        """Let the table be as it was, and take the time of the command."""
        shutil.rmtree(path)
        shutil.copytree(self.kept / path.name, path)
        begun = time.monotonic()
        self.run(command, {SHARED: "0" if how == OWN else "1"})
        took = time.monotonic() - begun
        self.seconds.setdefault((what, how), []).append(took)
        print(f"{what}, {how}: {took:.1f} s (load {os.getloadavg()[0]:.1f})", flush=True)

    def stop_shared(self) -> None:
        subprocess.run([*_CLI, "spark", "stop", "--now"], env=self.environment, capture_output=True, check=False)


_MODULE = "hudi_assets.definitions"
_CLI = [sys.executable, "-m", "hudi_assets.cli"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3)
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory(prefix="shared-spark-") as folder:
        bench = Bench(Path(folder))
        bench.prepare()
        compact = [*_CLI, "compact", str(bench.small), *COMPACT]
        dagster = [
            "dagster",
            "asset",
            "materialize",
            "-m",
            "hudi_assets.definitions",
            "--select",
            "flights/ro_snapshot",
        ]
        try:
            for _ in range(runs):
                bench.stop_shared()
                for how in (OWN, FIRST, NEXT):
                    bench.time("compact", how, bench.small, compact)
                for how in (OWN, NEXT):
                    bench.time("ro_snapshot", how, bench.flights, dagster)
        finally:
            bench.stop_shared()
    print("\n| | runs | s, median | least | most |\n|---|---|---|---|---|")
    for (what, how), took in bench.seconds.items():
        print(f"| {what}, {how} | {runs} | {statistics.median(took):.1f} | {min(took):.1f} | {max(took):.1f} |")


if __name__ == "__main__":
    main()
