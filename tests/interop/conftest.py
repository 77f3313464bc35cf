"""One JVM per Hudi release, and one Spark of ours, for the whole session."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from scripts.hudi_client import RELEASES, Hudi
from tests.interop.readers import Readers


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local[2]")
        .appName("interop")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.memory", "2g")
        # Results come back over a socket that takes one connection: on a TCP port, any stranger's
        # probe of that port leaves PySpark waiting for ever.
        .config("spark.python.unix.domain.socket.enabled", "true")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


# Small tables and a short life: compiling everything twice costs a JVM more than it gains.
os.environ.setdefault("INTEROP_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")


@pytest.fixture(scope="session")
def hudi_0_15() -> Iterator[Hudi]:
    with Hudi("0.15.0") as hudi:
        yield hudi


@pytest.fixture(scope="session")
def hudi_1_2() -> Iterator[Hudi]:
    with Hudi("1.2.0") as hudi:
        yield hudi


@pytest.fixture
def readers(spark: SparkSession, hudi_0_15: Hudi, hudi_1_2: Hudi) -> Readers:
    return Readers(spark, dict(zip(RELEASES, (hudi_0_15, hudi_1_2), strict=True)))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "t"
