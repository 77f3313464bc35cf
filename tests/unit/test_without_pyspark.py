"""The engine and the command line without PySpark: an extra, or the caller's own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_assets.engine import HudiTable

_SCHEMA = pa.schema([("id", pa.string()), ("at", pa.timestamp("us", tz="UTC"))])
_WITHOUT = """
import importlib.util
import sys

sys.modules["pyspark"] = sys.modules["py4j"] = None
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name == "pyspark" else found(name, package)
from hudi_assets.cli import main

main()
"""


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", _WITHOUT, *arguments], capture_output=True, text=True, check=False, timeout=120
    )


@pytest.mark.slow
def test_what_needs_no_spark_works_and_the_rest_says_what_to_install(tmp_path: Path) -> None:
    table = str(tmp_path / "t")
    HudiTable.create(table, _SCHEMA, record_key=["id"], ordering_field="at", data_latency="1h")
    status = _run("status", table)
    assert status.returncode == 0, status.stderr
    assert "freshness" in status.stdout
    read = _run("read", table)
    assert read.returncode == 1
    assert "This needs PySpark, which is not installed." in read.stderr
    assert "hudi-assets[spark]" in read.stderr
