"""A table on S3 through a real Spark, whose workers look for credentials of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.stores.minio import Minio
from tests.stores.test_changes import new_path, objects

pytestmark = pytest.mark.spark
ROOT = Path(__file__).parents[2]

LIFE = """
import json, sys
from hudi_assets.engine import HudiTable
from hudi_assets.engine.queries.query import read_task
from hudi_assets.engine.spark.start import local_session
from tests.tables.steps import at, planned
path, options = sys.argv[1], json.loads(sys.argv[2])
spark = local_session("stores", "local[2]", {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2"})
def rows(first, ts):
    return spark.createDataFrame([(f"k{i}", ts + i, i) for i in range(first, first + 6)], "id string, ts long, v long")
table = HudiTable.create(path, rows(0, 0).schema, record_key=["id"], ordering_field="ts", buckets=2, clock="commit",
                         data_latency="1s", table_version=9, storage_options=options)
for first, ts in ((0, 1_000), (3, 2_000), (6, 9_000)):
    table.upsert(spark, rows(first, ts), clock_time=at(ts + 2_000))
table.delete(spark, rows(0, 0).select("id").limit(1), clock_time=at(12_000))
plan = planned(table, 3_000)
table.execute_compaction(spark, plan.instant)
assert table.validate() == (), table.validate()
found = [row for task in table.snapshot_tasks() for batch in read_task(task) for row in batch.to_pylist()]
print("found " + json.dumps(sorted((row["id"], row["ts"]) for row in found)))
spark.stop()
"""


def life(minio: Minio, path: str, environment: dict[str, str], options: dict[str, str]) -> subprocess.CompletedProcess:  # type: ignore[type-arg]
    cleaned = {key: value for key, value in os.environ.items() if not key.startswith("AWS_")}
    return subprocess.run(
        [sys.executable, "-c", LIFE, path, json.dumps(options)],
        env={**cleaned, **environment, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_written_and_compacted_by_workers(minio: Minio) -> None:
    path = new_path()
    done = life(minio, path, minio.environment, {})
    assert done.returncode == 0, done.stderr
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("found "))
    found = dict(json.loads(line.removeprefix("found ")))
    assert len(found) == 11
    assert found["k11"] == 9_011
    secret = minio.secret_access_key
    assert secret not in done.stdout + done.stderr
    assert not any(secret.encode() in data for data in objects(minio, path).values())


@pytest.mark.thorough
def test_workers_without_credentials_say_so(minio: Minio) -> None:
    """Those of the options are the driver's alone: they are in no task."""
    # Where a machine's role would be asked for: nobody answers, and the library goes on for minutes.
    environment = {
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": minio.endpoint,
        "AWS_METADATA_ENDPOINT": minio.endpoint,
    }
    done = life(minio, new_path(), environment, minio.options)
    assert done.returncode != 0
    assert "No credentials for the store were found" in done.stderr or "the store refuses it" in done.stderr, (
        done.stderr
    )
    assert minio.secret_access_key not in done.stdout + done.stderr
