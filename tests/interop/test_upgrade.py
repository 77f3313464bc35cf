"""A table of ours that Apache Hudi 1.2.0 upgrades by itself with its next write, while a process holds it open."""

from __future__ import annotations

from pathlib import Path

import pytest

from hudi_assets.engine import Conflict, HudiTable
from scripts.hudi_client import Hudi
from tests.interop.tables import hudi_options
from tests.tables.life import Life
from tests.tables.local_session import LocalSession

pytestmark = pytest.mark.interop


def test_who_holds_it_open_is_told_to_open_it_again(hudi_1_2: Hudi, path: Path, session: LocalSession) -> None:
    """The timeline goes to another folder, so without a word it would be an empty table, fresh up to the watermark."""
    life = Life(path, session, 6)
    life.turns(2)
    held = life.table
    assert held.freshness().freshness is not None
    by_itself = {"hoodie.write.table.version": "9", "hoodie.write.auto.upgrade": "true"}  # both as they are by default
    options = {**hudi_options(name="t", buckets=1), **by_itself}
    hudi_1_2.write(path, life.rows("a"), options)
    assert HudiTable.open(str(path)).config.table_version > 6
    assert not list((path / ".hoodie").glob("*.deltacommit"))
    for action in (held.freshness, held.look, held.plan_compaction, held.recover):
        with pytest.raises(Conflict, match="by now, and had 6 when it was opened"):
            action()
    assert HudiTable.open(str(path)).freshness().freshness is not None
