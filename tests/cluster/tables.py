"""A table whose actions a driver elsewhere goes through (`steps`), and what it is to give."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from hudi_assets.engine import HudiTable
from tests.cluster.driver import PROJECT
from tests.tables.local_session import LocalSession
from tests.tables.steps import created

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64())])
OLD = 1_650_000_000_000
BETWEEN = "2023-01-01T00:00:00Z"
ROWS = 20
DONE = {
    "snapshot before": ROWS,
    "upsert": 40,
    "delete": 1,
    "compact": 1,
    "log files left": 3,
    "read_optimized": ROWS,
    "incremental": ROWS + 39,
    "snapshot": ROWS + 39,
}


def a_table(path: Path, session: LocalSession) -> HudiTable:
    """Of version 9, with rows of before BETWEEN in log files."""
    table = created(path, SCHEMA, event_time_unit="ms", table_version=9)
    table.upsert(session, session.rows([{"id": f"o{n}", "ts": OLD + n} for n in range(ROWS)], SCHEMA))
    return table


def steps(
    master: str, table: HudiTable, folder: Path, *settings: str, python: str = "", more: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """What each action gave, or in which words it was refused. `python`: the workers'. `more`: for its environment."""
    command = [sys.executable, "-m", "tests.cluster.steps", master, table.path, BETWEEN, *settings]
    environment = {**os.environ, "PYTHONPATH": PROJECT, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": python}
    environment |= more or {}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    print(done.stdout)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {line["action"]: line.get("gave", line.get("refused")) for line in lines}
