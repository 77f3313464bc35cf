"""A table that was opened with one version and has another by now: Apache Hudi 1.x upgrades tables by itself.

Who went on by the settings of before would look at a timeline on which nothing is, promise all, and write where no
reader looks.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hudi_assets.engine import Conflict, HudiTable
from tests.tables.life import SCHEMA, Life
from tests.tables.local_session import LocalSession

REPORTS: list[Callable[[HudiTable, LocalSession], object]] = [
    lambda table, _: table.freshness(),
    lambda table, _: table.partition_freshness(),
    lambda table, _: table.look(),
    lambda table, _: table.metrics(),
    lambda table, _: table.validate(),
    lambda table, _: table.publication(),
    lambda table, session: table.snapshot(session),
    lambda table, session: table.read_optimized(session),
]
CHANGES: list[Callable[[HudiTable, LocalSession], object]] = [
    lambda table, session: table.upsert(
        session,
        session.rows([{"id": 1, "ts": 9_000, "v": 1, "p": "a"}], SCHEMA),
        clock_time=datetime.fromtimestamp(9, UTC),
    ),
    lambda table, _: table.plan_compaction(),
    lambda table, _: table.savepoint("20200101000000000"),
    lambda table, _: table.clean(),
    lambda table, _: table.archive(),
    lambda table, _: table.recover(),
]


def all_files(path: Path) -> set[str]:
    """But for the locks and what is beside the table."""
    return {str(one) for one in path.rglob("*") if one.is_file() and ".aux" not in one.parts}


@pytest.mark.parametrize(("before", "after"), [(6, 9), (9, 6)])
def test_a_table_that_is_upgraded_is_to_be_opened_again(
    session: LocalSession, tmp_path: Path, before: int, after: int
) -> None:
    life = Life(tmp_path / "t", session, before)
    life.turns(2)
    held = life.table
    assert held.freshness().freshness is not None
    shutil.rmtree(life.path)
    life = Life(tmp_path / "t", session, after)
    life.turns(2)
    files = all_files(life.path)
    for action in (*REPORTS, *CHANGES):
        with pytest.raises(Conflict, match=f"has version {after} by now, and had {before} when it was opened"):
            action(held, session)
    assert all_files(life.path) == files
    assert life.table.freshness().freshness is not None


def test_versions_with_one_timeline_are_told_apart_by_who_changes_the_table(
    session: LocalSession, tmp_path: Path
) -> None:
    """From 8 to 9 the properties change that say how records are merged. Files and event times are the same."""
    life = Life(tmp_path / "t", session, 8)
    life.turns(2)
    held, promised = life.table, life.table.freshness()
    properties = life.path / ".hoodie/hoodie.properties"
    properties.write_text(properties.read_text().replace("hoodie.table.version=8", "hoodie.table.version=9"))
    assert held.freshness() == promised
    for action in CHANGES:
        with pytest.raises(Conflict, match="Open it again"):
            action(held, session)


def test_properties_that_are_gone_for_a_moment_hinder_nobody(session: LocalSession, tmp_path: Path) -> None:
    """Whoever changes them takes them away, and has a copy beside them meanwhile."""
    life = Life(tmp_path / "t", session, 6)
    held = life.table
    (life.path / ".hoodie/hoodie.properties").rename(life.path / ".hoodie/hoodie.properties.backup")
    assert held.freshness().reason is None or "version" not in str(held.freshness().reason)
    held.recover()
