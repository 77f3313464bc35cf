"""A Spark in a process of its own that reads by name what stands in a metastore: one start for many questions."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

_PROGRAM = """
import json, sys
from pyspark.sql import SparkSession

uri, folder, settings = sys.argv[1:]
builder = (
    SparkSession.builder.master("local[1]")
    .config("spark.ui.enabled", "false")
    .config("spark.ui.showConsoleProgress", "false")
    .config("spark.sql.session.timeZone", "UTC")
    .config("spark.sql.catalogImplementation", "hive")
    .config("spark.hadoop.hive.metastore.uris", uri)
    .config("spark.sql.warehouse.dir", folder + "/warehouse")
    .config("spark.local.dir", folder + "/local")
    .config("spark.driver.memory", "512m")
    .config("spark.python.unix.domain.socket.enabled", "true")
)
for key, value in json.loads(settings).items():
    builder = builder.config(key, value)
spark = builder.getOrCreate()
spark.sparkContext.setLogLevel("OFF")
for line in sys.stdin:
    try:
        rows = [row.asDict(recursive=True) for row in spark.sql(json.loads(line)).collect()]
        print("ANSWER" + json.dumps({"rows": rows}, default=str), flush=True)
    except Exception as error:
        print("ANSWER" + json.dumps({"error": str(error)[:2000]}), flush=True)
"""


class ReaderError(RuntimeError):
    """What Spark said."""


class Reader:
    """Asks one Spark; `python` chooses the environment, and so the Spark. `settings`: of the session."""

    def __init__(
        self, uri: str, folder: Path, python: str = sys.executable, settings: Mapping[str, str] | None = None
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._log = (folder / "log").open("wb")
        self._process = subprocess.Popen(
            [python, "-c", _PROGRAM, uri, str(folder), json.dumps(dict(settings or {}))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            cwd=folder,
        )

    def rows(self, statement: str) -> list[dict[str, Any]]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(statement) + "\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            if line.startswith("ANSWER"):
                answer: dict[str, Any] = json.loads(line.removeprefix("ANSWER"))
                if "error" in answer:
                    raise ReaderError(answer["error"])
                found: list[dict[str, Any]] = answer["rows"]
                return found
        raise ReaderError("Spark ended")

    def properties(self, name: str) -> dict[str, str]:
        return {row["key"]: row["value"] for row in self.rows(f"SHOW TBLPROPERTIES {name}")}

    def __enter__(self) -> Reader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._log.close()
