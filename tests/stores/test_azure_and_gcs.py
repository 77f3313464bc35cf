"""Tables in Azure and Google Cloud Storage: looked at as on a disk, and not changed."""

from __future__ import annotations

import pickle
import uuid
from pathlib import Path

import obstore
import pytest

from hudi_assets.engine import HudiTable, open_storage
from hudi_assets.engine.errors import InvalidInput, UnsupportedTable
from hudi_assets.engine.storage.azure import AzureStorage
from hudi_assets.engine.storage.probe import check_conditions
from tests.crash.tables import new_table, planned, snapshot, write, write_batches
from tests.stores.emulators import Emulator
from tests.tables.local_session import LocalSession

WRONG = [
    "gs://bucket",
    "gs:///t",
    "gs://bucket/a//b",
    "abfs://container/t",
    "abfss://container@account.dfs.core.windows.net",
    "abfss://container:KEY@account.dfs.core.windows.net/t",
    "abfss://container@account.dfs.core.windows.net/a/../b",
]


@pytest.mark.parametrize("path", WRONG)
def test_what_is_no_path(path: str) -> None:
    with pytest.raises(InvalidInput, match="that names no") as refused:
        open_storage(path)
    assert "KEY" not in str(refused.value)


@pytest.mark.parametrize("suffix", [".dfs.core.chinacloudapi.cn", ".dfs.core.usgovcloudapi.net", ".xcore.windows.net"])
def test_another_cloud_needs_its_endpoint(suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the account of that name in the public one is asked."""
    for name in ("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    path = f"abfss://container@account{suffix}/t"
    with pytest.raises(InvalidInput, match="the public Azure would be asked") as refused:
        open_storage(path)
    assert "AZURE_STORAGE_ENDPOINT" in str(refused.value.hint)
    monkeypatch.setenv("AZURE_STORAGE_ENDPOINT", "https://account.example")
    assert open_storage(path).base == path


@pytest.mark.parametrize("path", ["gs://bucket/t", "abfss://container@account.dfs.core.windows.net/t"])
def test_changes_and_options_are_refused(path: str) -> None:
    storage = open_storage(path)
    assert pickle.loads(pickle.dumps(storage)) == storage
    with pytest.raises(UnsupportedTable, match="can be looked at, but not changed"):
        storage.check_writable()
    with pytest.raises(InvalidInput, match=r"takes no storage options \(got account_key\)"):
        open_storage(path, {"account_key": "SECRET"})


@pytest.fixture(params=["azure", "gcs"])
def emulator(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Emulator:
    found: Emulator = request.getfixturevalue(request.param)
    for name, value in found.environment.items():
        monkeypatch.setenv(name, value)
    return found


@pytest.mark.parametrize("version", [6, 9])
def test_a_table_is_looked_at(emulator: Emulator, version: int, session: LocalSession, tmp_path: Path) -> None:
    disk = new_table(tmp_path / "t", version)
    write_batches(disk, session)
    disk.execute_compaction(session, planned(disk).instant)
    write(disk, session, 6, 9_500)
    path = emulator.upload(tmp_path / "t", f"tables/{uuid.uuid4().hex}")
    table = HudiTable.open(path)
    assert repr(table.stats()) == repr(disk.stats())
    assert repr(table.freshness()) == repr(disk.freshness())
    assert table.validate() == ()
    assert snapshot(table) == snapshot(disk)
    with pytest.raises(UnsupportedTable, match="not changed"):
        write(table, session, 0, 9_900)


def test_a_container_that_is_not_there(azure: Emulator, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in azure.environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(InvalidInput, match="no such bucket"):
        HudiTable.open(f"{azure.root.replace('lake', 'nolake')}/t")


def test_the_emulator_of_azure_keeps_to_conditions(azure: Emulator, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in azure.environment.items():
        monkeypatch.setenv(name, value)
    storage = AzureStorage(f"{azure.root}/probed")
    check_conditions(storage._store, storage._key, storage.base)


def test_the_mark_of_a_folder_is_no_file(azure: Emulator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Azure's Data Lake has one for each."""
    for name, value in azure.environment.items():
        monkeypatch.setenv(name, value)
    storage = AzureStorage(f"{azure.root}/{uuid.uuid4().hex}")
    storage.create("a/b/c", b"1")
    obstore.put(storage._store, storage._key("a/b"), b"", use_multipart=False)
    files, folders = storage.list_folder("a")
    assert (files, folders) == ([], ["a/b"])
