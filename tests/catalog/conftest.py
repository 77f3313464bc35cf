"""One metastore, and one Spark that reads what stands in it, for all tests of this folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from hudi_assets.catalog import metastore as metastore_module
from hudi_assets.catalog.metastore import Metastore
from hudi_assets.catalog.places import METASTORE
from tests.catalog.reader import Reader


@dataclass(frozen=True)
class Served:
    home: Path
    uri: str


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The home directory's own metastore, as the command line and Dagster start it."""
    metastore = Metastore(tmp_path_factory.mktemp("home"))
    uri = metastore.acquire(os.getpid())
    yield Served(metastore.home, uri)
    metastore.stop()


@pytest.fixture(scope="session")
def reader(served: Served, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    with Reader(served.uri, tmp_path_factory.mktemp("reader")) as opened:
        yield opened


@pytest.fixture
def home(served: Served, monkeypatch: pytest.MonkeyPatch) -> Path:
    """For what asks the environment where the catalog is."""
    monkeypatch.setenv("HUDI_ASSETS_HOME", str(served.home))
    monkeypatch.delenv(METASTORE, raising=False)
    assert metastore_module.Metastore(served.home).is_running()
    return served.home
