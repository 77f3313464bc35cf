"""An executor that is killed in a compaction: Spark runs its task again, and nothing of the lost one counts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster.cluster import cluster
from tests.cluster.driver import GROUPS, PROJECT

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not os.environ.get("COMPACTIONS"), reason="a suite of its own: make test-cluster"),
]


@pytest.mark.parametrize("version", [6, 9])
def test_what_a_lost_executor_wrote_does_not_count(tmp_path: Path, version: int) -> None:
    with cluster(tmp_path) as master:
        done = subprocess.run(
            [sys.executable, "-m", "tests.cluster.killed", master, str(tmp_path / "t"), str(version)],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": PROJECT, "SPARK_LOCAL_IP": "127.0.0.1"},
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr[-4000:]
    (said,) = (json.loads(line) for line in done.stdout.splitlines() if line.startswith("{"))
    print(said)
    assert said == {
        "written_by_then": True,
        "base_files": GROUPS,
        "staged": 0,
        "found": [],
        "read_optimized": 2_500,
        "rows": 2_500,
    }
