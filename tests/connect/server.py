"""A Spark Connect server of PySpark's own Spark, on a free port of the loopback address."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyspark

from tests.ports import answers, free_port

ROOT = Path(__file__).resolve().parents[2]
_MAIN = "org.apache.spark.sql.connect.service.SparkConnectServer"
_UP_S = 180.0


@contextmanager
def connect_server(
    folder: Path, settings: Mapping[str, str], master: str = "local[2]", *, python: str | None = None
) -> Iterator[str]:
    """Its address (`sc://…`). What it writes is in `folder`.

    `python`: of its workers, without this project. Default: this Python, with this project.
    """
    folder.mkdir(parents=True, exist_ok=True)
    port = free_port()
    home = Path(pyspark.__file__).parent
    said = {"spark.connect.grpc.binding.address": "127.0.0.1", "spark.connect.grpc.binding.port": str(port)}
    said |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1", **settings}
    command = [str(home / "bin/spark-submit"), "--master", master, "--class", _MAIN]
    command += [part for key, value in said.items() for part in ("--conf", f"{key}={value}")]
    environment = {**os.environ, "SPARK_HOME": str(home), "PYSPARK_PYTHON": python or sys.executable}
    environment["PYTHONPATH"] = "" if python else str(ROOT)
    log = folder / "server.log"
    with log.open("wb") as out:
        server = subprocess.Popen(
            [*command, "spark-internal"],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    try:
        end = time.monotonic() + _UP_S
        while not answers(port):
            if server.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"The Connect server did not start: {log.read_text('utf-8', 'replace')[-3000:]}")
            time.sleep(0.2)
        yield f"sc://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(180)  # what sessions have sent to it is removed first
