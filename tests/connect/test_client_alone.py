"""PySpark's client (`pyspark-client`) in place of PySpark: it has no Java, and none is found."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.connect.server import ROOT, connect_server

CLIENT = "pyspark-client==4.2.0"
pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(600),
    pytest.mark.skipif(os.environ.get("SPARK_SESSION") != "connect", reason="make test-connect runs these"),
]


@pytest.fixture(scope="module")
def client() -> Path:
    """A folder with the client's package, which comes before PySpark on a path. Fetched once."""
    folder = ROOT / ".hudi-assets/cache" / CLIENT.replace("==", "-")
    if not (folder / "pyspark").exists():
        fetched = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder), CLIENT]
        subprocess.run(fetched, check=True, capture_output=True, text=True)
    return folder


def test_a_table_is_made_compacted_and_read(client: Path, tmp_path: Path) -> None:
    program = Path(__file__).with_name("client_alone.py")
    environment = {"PATH": "/nowhere", "HOME": str(tmp_path), "PYTHONPATH": os.pathsep.join([str(client), str(ROOT)])}
    with connect_server(tmp_path / "server", {"spark.ui.enabled": "false"}) as url:
        done = subprocess.run(
            [sys.executable, program, url, tmp_path / "t"], env=environment, capture_output=True, text=True, check=False
        )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [["a"], ["a", "b"]]
