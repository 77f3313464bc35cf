"""The same compaction by this engine and by Apache Hudi, in turn, on copies of one table that Hudi wrote.

    make bench [ROWS=400000] [RUNS=3]

Prints ratios (Hudi's time / ours) with their spread: times alone say little about another machine. Both
plan and execute; both run warm, on all cores of this machine. Needs `scripts/interop-setup`.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

from hudi_client import Hudi  # noqa: E402

from hudi_assets.engine import HudiTable, Plan  # noqa: E402
from hudi_assets.engine.spark import local_session  # noqa: E402
from hudi_assets.home import home  # noqa: E402

RELEASE = "0.15.0"
UPSERTS = 4
BUCKETS = 4
OPTIONS = {
    "hoodie.table.name": "bench",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.partitionpath.field": "",
    "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
    "hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload",
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": str(BUCKETS),
    "hoodie.metadata.enable": "false",
    "hoodie.compact.inline": "false",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
}
EXPRESSIONS = ["count(1)", "sum(fare)", "sum(ts)", "max(note)"]
SETTINGS = {"hoodie.payload.event.time.field": "ts", "hudi_assets.writers": "stopped"}


def rows(numbers: np.ndarray[Any, np.dtype[np.int64]], step: int) -> pa.Table:
    """Rows of ten columns; `step` is the update's number and moves their event time on."""
    random = np.random.default_rng(step)
    size = len(numbers)
    floats = {name: random.random(size) * 100 for name in ("fare", "begin_lat", "begin_lon", "end_lat", "end_lon")}
    return pa.table(
        {
            "id": pa.array([f"trip-{n:010d}" for n in numbers]),
            "ts": pa.array(step * 3_600_000 + numbers * 7919 % 3_600_000),
            "rider": pa.array([f"rider-{n % 1000}" for n in numbers]),
            "driver": pa.array([f"driver-{n % 500}" for n in numbers]),
            **{name: pa.array(values) for name, values in floats.items()},
            "note": pa.array([f"{n * 2654435761 % (1 << 128):032x}" for n in numbers.tolist()]),
        }
    )


def write_table(hudi: Hudi, path: Path, count: int) -> None:
    """A first load into base files, then upserts of a tenth of the rows into Avro log files."""
    hudi.write(path, rows(np.arange(count), 0), OPTIONS | {"hoodie.datasource.write.operation": "bulk_insert"})
    for step in range(1, UPSERTS + 1):
        numbers = (np.arange(count // 10) * 7 + step * 1000) % count
        hudi.write(path, rows(numbers, step), OPTIONS | {"hoodie.datasource.write.operation": "upsert"})


def compact(spark: Any, path: Path) -> None:
    table = HudiTable.open(str(path), settings=SETTINGS)
    plan = table.plan_compaction(data_latency="0s")
    assert isinstance(plan, Plan)
    table.execute_compaction(spark, plan.instant)


def query(spark: Any, path: Path) -> Any:
    return HudiTable.open(str(path), settings=SETTINGS).snapshot(spark).selectExpr(*EXPRESSIONS).collect()


def timed(work: Callable[[], object]) -> float:
    started = time.monotonic()
    work()
    return time.monotonic() - started


def measure(count: int, runs: int) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder, Hudi(RELEASE) as hudi:
        source = Path(folder, "source")
        write_table(hudi, source, count)
        spark = local_session("bench", config={"spark.ui.showConsoleProgress": "false"})
        times: dict[str, list[tuple[float, float]]] = {"compact_avro_vs_hudi": [], "snapshot_avro_vs_hudi": []}
        for run in range(runs + 1):
            ours, theirs = (Path(shutil.copytree(source, Path(folder, f"{name}-{run}"))) for name in ("ours", "hudi"))
            read = timed(lambda ours=ours: query(spark, ours))
            read_hudi = timed(
                lambda theirs=theirs: hudi.ask("aggregate", path=str(theirs), query="snapshot", expressions=EXPRESSIONS)
            )
            merged = timed(lambda ours=ours: compact(spark, ours))
            merged_hudi = timed(lambda theirs=theirs: hudi.compaction(theirs, "run"))
            if run:  # the first one warms both up
                times["compact_avro_vs_hudi"].append((merged, merged_hudi))
                times["snapshot_avro_vs_hudi"].append((read, read_hudi))
            shutil.rmtree(ours)
            shutil.rmtree(theirs)
        spark.stop()
    work = f"{count} rows, {UPSERTS} upserts of {count // 10}, {BUCKETS} buckets"
    return [result(name, work, pairs) for name, pairs in times.items()]


def result(name: str, work: str, pairs: list[tuple[float, float]]) -> dict[str, Any]:
    ratios = [theirs / ours for ours, theirs in pairs]
    return {
        "name": name,
        "work": work,
        "against": f"Apache Hudi {RELEASE}",
        "ours_s": round(statistics.median(ours for ours, _ in pairs), 3),
        "peer_s": round(statistics.median(theirs for _, theirs in pairs), 3),
        "ratio": round(statistics.median(ratios), 2),
        "spread": [round(min(ratios), 2), round(max(ratios), 2)],
        "runs": len(pairs),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    found = measure(options.rows, options.runs)
    home().mkdir(parents=True, exist_ok=True)
    (home() / "bench.json").write_text(json.dumps({"rows": found}, indent=1) + "\n")
    columns = ("name", "against", "ours_s", "peer_s", "ratio", "spread", "runs")
    grid = Table(*columns, title=found[0]["work"], title_justify="left")
    for row in found:
        grid.add_row(*(str(row[column]) for column in columns))
    Console().print(grid)


if __name__ == "__main__":
    main()
