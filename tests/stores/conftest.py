"""The stores that the contract suite is run on."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from hudi_assets.engine.storage import LocalStorage, Storage, open_storage
from tests.ports import free_port
from tests.stores.emulators import Emulator, azurite_program, fake_gcs_program, running_azurite, running_fake_gcs
from tests.stores.folder_hdfs import FolderHdfs
from tests.stores.hdfs import Hdfs, mini_cluster, running_hdfs
from tests.stores.memory import MemoryStorage
from tests.stores.minio import BUCKET, Minio, minio_program, running_minio


@pytest.fixture(scope="session")
def minio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Minio]:
    program = minio_program()
    if program is None:
        pytest.skip("there is no MinIO: make test-stores builds it, HUDI_ASSETS_MINIO names one")
    with running_minio(program, tmp_path_factory.mktemp("minio") / "data") as server:
        yield server


@pytest.fixture(scope="session")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hdfs]:
    jar = mini_cluster()
    if jar is None:
        pytest.skip("there is no HDFS: make test-hdfs fetches it, and runs this")
    with running_hdfs(jar, tmp_path_factory.mktemp("hdfs") / "data") as cluster:
        yield cluster


@pytest.fixture(scope="session")
def azure() -> Iterator[Emulator]:
    program = azurite_program()
    if program is None:
        pytest.skip("there is no Azurite: make test-emulators fetches it")
    with running_azurite(program, free_port()) as emulator:
        yield emulator


@pytest.fixture(scope="session")
def gcs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    program = fake_gcs_program()
    if program is None:
        pytest.skip("there is no fake-gcs-server: make test-emulators builds it")
    with running_fake_gcs(program, free_port(), tmp_path_factory.mktemp("gcs")) as emulator:
        yield emulator


@pytest.fixture(params=["local", "memory", "s3", "folder-hdfs", "hdfs", "azure"])
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Storage:
    """An empty store of each kind. A new kind is a line here, and a name in `params`."""
    if request.param == "local":
        return LocalStorage(str(tmp_path / "table"))
    if request.param == "memory":
        return MemoryStorage()
    if request.param == "folder-hdfs":
        return FolderHdfs(str(tmp_path / "table"))
    if request.param == "hdfs":
        cluster: Hdfs = request.getfixturevalue("hdfs")
        return open_storage(f"{cluster.uri}/tests/{uuid.uuid4().hex}")
    if request.param == "azure":
        emulator: Emulator = request.getfixturevalue("azure")
        for name, value in emulator.environment.items():
            monkeypatch.setenv(name, value)
        return open_storage(f"{emulator.root}/tests/{uuid.uuid4().hex}")
    server: Minio = request.getfixturevalue("minio")
    return open_storage(f"s3://{BUCKET}/tests/{uuid.uuid4().hex}", server.options)
