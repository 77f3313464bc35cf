"""Spark's own speculation on two workers: attempts that lost write after the commit, and nothing of theirs counts.

COMPACTIONS: how many on each table version (`make test-cluster`: 10). A suite of its own: skipped without that word.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster.cluster import cluster
from tests.cluster.driver import PROJECT

COMPACTIONS = int(os.environ.get("COMPACTIONS", "0"))
pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.timeout(900 + 120 * COMPACTIONS),
    pytest.mark.skipif(not COMPACTIONS, reason="a suite of its own: make test-cluster"),
]


@pytest.mark.parametrize("version", [6, 9])
def test_attempts_that_lost_leave_nothing_that_counts(tmp_path: Path, version: int) -> None:
    with cluster(tmp_path) as master:
        command = [sys.executable, "-m", "tests.cluster.driver", master, str(tmp_path / "t"), str(version)]
        environment = {**os.environ, "PYTHONPATH": PROJECT, "SPARK_LOCAL_IP": "127.0.0.1"}
        done = subprocess.run(
            [*command, str(COMPACTIONS)], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
    print(done.stdout)
    assert done.returncode == 0, done.stderr[-4000:]
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    *steps, end = lines
    assert [step["action"] for step in steps] == ["upsert", "upsert", "compaction"] * COMPACTIONS
    for step in steps:
        assert step["attempt"] == "late", step  # else Spark started no other one
        assert step["staged"] >= 1, step
        assert step["new_files"] == [], step
        assert step["left_of_before"] == 0, step  # the next action has removed it
        assert step["found"] == ["staged"], step
    assert (end["found"], end["staged"]) == ([], 0)
    assert end["rows"] == end["read_optimized"] == end["expected"]
