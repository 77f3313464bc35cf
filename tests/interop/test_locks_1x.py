"""Locks beside Apache Hudi 1.2.0 on a version 9 table: its file-system lock both ways, and its storage-based one."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hudi_assets.engine import HudiTable
from hudi_assets.engine.errors import Conflict, UnsupportedTable
from hudi_assets.engine.table.settings.config import WRITERS
from hudi_assets.engine.transaction.file_lock import LOCK_PATH
from hudi_assets.engine.transaction.lock import write_lock
from hudi_assets.engine.transaction.lock_providers import LOCK_PROVIDER
from scripts.hudi_client import Hudi, HudiError
from tests.interop.test_concurrency import JAVA
from tests.interop.test_markers import SETTINGS, options, rows, values, written
from tests.races.player import rows_of

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(900)]

IMPATIENT = {key: JAVA[key] for key in ("hoodie.write.lock.num_retries", "hoodie.write.lock.client.num_retries")}
STORAGE_LOCK = "org.apache.hudi.client.transaction.lock.StorageBasedLockProvider"


def locked(table: HudiTable, **more: str) -> HudiTable:
    return HudiTable.open(table.path, settings={**SETTINGS, WRITERS: "locked", **more})


@pytest.mark.parametrize("own_folder", [False, True])
def test_hudi_waits_for_our_lock(hudi_1_2: Hudi, path: Path, tmp_path: Path, own_folder: bool) -> None:
    table = written(hudi_1_2, path, "9")
    before = rows_of(table)
    folder = {LOCK_PATH: str(tmp_path / "locks")} if own_folder else {}
    (tmp_path / "locks").mkdir()
    ours = locked(table, **folder)
    with (
        write_lock(ours._table.storage, ours.config, wait_s=1, action="holds it for a test"),
        pytest.raises(HudiError, match="Unable to acquire"),
    ):
        hudi_1_2.write(path, rows(90_000), options("9", **IMPATIENT, **folder))
    assert rows_of(table) == before
    hudi_1_2.write(path, rows(95_000), options("9", **folder))
    assert rows_of(table) == values(rows(95_000))


def test_we_wait_for_hudis_lock(hudi_1_2: Hudi, path: Path) -> None:
    table = locked(written(hudi_1_2, path, "9"))
    said = set()
    with ThreadPoolExecutor(1) as pool:
        for ts in range(90_000, 99_000, 1_000):
            future = pool.submit(hudi_1_2.write, path, rows(ts), options("9"))
            while not future.done():
                if (path / ".hoodie/lock").exists():
                    try:
                        with write_lock(table._table.storage, table.config, wait_s=0):
                            pass
                    except Conflict as conflict:
                        said.add(conflict.what)
                time.sleep(0.001)
            future.result()
            if said:
                break
    assert said, "Hudi took no lock that we could see"
    assert all("Another engine holds Hudi's lock" in what for what in said)
    assert rows_of(table) == values(rows(ts))


def test_the_storage_based_lock_is_none_on_a_local_file_system(hudi_1_2: Hudi, path: Path) -> None:
    """Apache Hudi refuses it too; so a local table has no writers that hold it."""
    table = written(hudi_1_2, path, "9")
    with pytest.raises(HudiError, match="StorageLock"):
        hudi_1_2.write(path, rows(90_000), options("9", **{LOCK_PROVIDER: STORAGE_LOCK}))
    ours = locked(table, **{LOCK_PROVIDER: STORAGE_LOCK})
    with pytest.raises(UnsupportedTable, match="StorageBasedLockProvider"):
        ours.plan_compaction(threshold=20_000)
