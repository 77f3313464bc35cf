"""A table in HDFS through a real Spark, whose own reader knows hdfs:// without anything to add."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.stores.hdfs import Hdfs
from tests.stores.test_hdfs_tables import new_path
from tests.stores.test_with_spark import LIFE

pytestmark = [pytest.mark.spark, pytest.mark.thorough]
ROOT = Path(__file__).parents[2]

ALSO = """
ro = table.read_optimized(spark)
files = ro.inputFiles()
spark.sql("CREATE TEMPORARY VIEW by_spark AS SELECT * FROM parquet.`" + files[0] + "`")
print("seen " + json.dumps([sorted(files), ro.count(), spark.table("by_spark").count(), table.snapshot(spark).count()]))
spark.stop()
"""


def test_written_compacted_and_read(hdfs: Hdfs) -> None:
    path = new_path(hdfs)
    code = LIFE.replace("spark.stop()\n", "") + ALSO
    done = subprocess.run(
        [sys.executable, "-c", code, path, "{}"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = (line.partition(" ") for line in done.stdout.splitlines() if "[" in line)
    said = {word: json.loads(rest) for word, _, rest in lines}
    found = dict(said["found"])
    files, in_view, in_file, in_snapshot = said["seen"]
    assert len(found) == 11
    assert in_snapshot == 11
    assert all(file.startswith(f"{path}/") for file in files)
    assert 0 < in_file <= in_view
    assert "no file system for" not in done.stderr
