"""How many requests the name node is asked: of a table of two file groups with six log files, version 9."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from hudi_assets.engine import HudiTable
from hudi_assets.engine.hudi_table import table as opening
from tests.crash.tables import BATCHES, SCHEMA, planned, write
from tests.stores.folder_hdfs import FolderHdfs
from tests.stores.test_changes import SETTINGS
from tests.tables.local_session import LocalSession
from tests.tables.steps import created

# Requests in all, and of these listings. docs/how-to/hdfs.md has them.
BUDGETS = {
    "status": (13, 2),
    "validate": (17, 5),
    "plan --dry-run": (14, 2),
    "upsert": (125, 18),
    "compact": (360, 42),
}
ASKS: dict[str, Any] = {
    "status": lambda table, session: table.stats(),
    "validate": lambda table, session: table.validate(),
    "plan --dry-run": lambda table, session: table.plan_compaction(threshold=2_000, dry_run=True),
    "upsert": lambda table, session: write(table, session, 6, 9_500),
    "compact": lambda table, session: table.execute_compaction(session, planned(table).instant),
}


class Counted:
    """The name node, and what it was asked."""

    def __init__(self, node: Any) -> None:
        self._node, self.asked = node, Counter[str]()

    def __getattr__(self, name: str) -> Any:
        self.asked[name] += 1
        return getattr(self._node, name)


@pytest.mark.parametrize("ask", ASKS)
def test_requests(ask: str, session: LocalSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "open_storage", lambda path, options=None: FolderHdfs(path))
    path = str(tmp_path / "t")
    created(path, SCHEMA, clock="commit", table_version=9)
    table = HudiTable.open(path, settings=SETTINGS)
    for first, ts in BATCHES:
        write(table, session, first, ts)
    table = HudiTable.open(path, settings=SETTINGS)
    storage: Any = table._table.storage
    storage.node = Counted(storage.node)
    ASKS[ask](table, session)
    most, most_lists = BUDGETS[ask]
    assert storage.node.asked.total() <= most
    assert storage.node.asked["list_status"] <= most_lists
