"""What all tests share: one Spark session for the whole run."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from hudi_assets.engine.spark.start import local_session
from tests import examples, quick_machine
from tests.connect.server import connect_server
from tests.tables.local_session import LocalSession, install

CONNECT = os.environ.get("SPARK_SESSION") == "connect"
quick_machine.load()
examples.load()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    return quick_machine.scheduler(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items if CONNECT else []:
        if item.get_closest_marker("classic"):
            item.add_marker(pytest.mark.skip(reason="asks the Java of a session of this process"))


def pytest_collection_finish() -> None:
    """Thousands of tests live until the end: the collector need not look at them again and again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A small Spark session: two threads, UTC, everything it writes under pytest's temporary directory.

    With SPARK_SESSION=connect it is one of Spark Connect, and its server a process of its own.
    """
    folder = tmp_path_factory.mktemp("spark")
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.warehouse.dir": (folder / "warehouse").as_uri(),
        "spark.local.dir": str(folder / "local"),
        "spark.driver.extraJavaOptions": f"-Dderby.system.home={folder / 'derby'}",
        "spark.driver.memory": "1g",
    }
    with _connected(folder, settings) if CONNECT else nullcontext(local_session("tests", "local[2]", settings)) as made:
        yield made
        made.stop()


@contextmanager
def _connected(folder: Path, settings: Mapping[str, str]) -> Iterator[SparkSession]:
    with connect_server(folder / "server", settings) as url:
        yield SparkSession.Builder().remote(url).getOrCreate()


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> LocalSession:
    """The engine without Spark, in this process: for many small steps. See tests/tables/local_session.py."""
    return install(monkeypatch.setattr)
