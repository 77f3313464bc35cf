"""A store whose names for Spark are no paths of this machine: nothing of a table lands beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hudi_assets.engine import HudiTable
from hudi_assets.engine.errors import Conflict
from hudi_assets.engine.storage import LocalStorage
from hudi_assets.engine.transaction.lock import WRITE, table_lock
from tests.crash.tables import new_table, planned, snapshot, write_batches
from tests.tables.local_session import LocalSession


class Store(LocalStorage):
    """Files of this machine under a scheme of its own."""

    def uri(self, path: str) -> str:
        return f"store://{super().uri(path)}"


def opened(path: Path) -> HudiTable:
    return HudiTable(Store(str(path)), HudiTable.open(str(path)).config)


def test_a_table_is_written_and_compacted(
    session: LocalSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new_table(tmp_path / "t")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    table = opened(tmp_path / "t")
    write_batches(table, session)
    before = snapshot(table)
    any_session: Any = session
    table.execute_compaction(any_session, planned(table).instant)
    assert snapshot(opened(tmp_path / "t")) == before
    assert list((tmp_path / "here").iterdir()) == [], "a lock was made under the name for Spark"


def test_its_lock_is_the_tables(tmp_path: Path) -> None:
    config = new_table(tmp_path / "t").config
    own, plain = Store(str(tmp_path / "t")), LocalStorage(str(tmp_path / "t"))
    again = table_lock(plain, WRITE, config=config, wait_s=0)
    with table_lock(own, WRITE, config=config, wait_s=0), pytest.raises(Conflict), again:
        pass
