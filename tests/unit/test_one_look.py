"""What a sensor asks, all of one reading, is what each question answers by itself."""

from __future__ import annotations

import gc
from dataclasses import replace
from pathlib import Path

import pytest

from hudi_assets.engine import HudiTable, NoPlan
from hudi_assets.engine.model import Look
from hudi_assets.engine.storage import LocalStorage
from tests.tables.life import Life
from tests.tables.local_session import LocalSession


def asked_singly(table: HudiTable) -> Look:
    digest = table.publication().view_digest
    return Look(table.stats(), table.pending_plan(), table.due_compaction(), table.leftovers(), table.now_ms(), digest)


def same(table: HudiTable) -> bool:
    seen, singly = table.look(), asked_singly(table)
    assert seen.refused is None  # though nothing may be due, or a plan pending
    if not isinstance(seen.due, NoPlan) and not isinstance(singly.due, NoPlan):
        seen = replace(seen, due=replace(seen.due, instant=singly.due.instant))  # that of the moment
    return seen == singly


@pytest.mark.parametrize("version", [6, 9])
def test_the_answers_are_those_of_the_questions(version: int, session: LocalSession, tmp_path: Path) -> None:
    life = Life(tmp_path / "t", session, version)
    life.turns(3)
    assert same(life.table)
    life.upsert()
    assert life.table.look().pending is None
    life.table.plan_compaction(threshold=life.number * 1000 + 500)
    assert life.table.look().pending is not None
    assert same(life.table)


def test_the_timeline_is_listed_once_and_each_folder_too(session: LocalSession, tmp_path: Path) -> None:
    life = Life(tmp_path / "t", session)
    life.turns(2)
    listed: list[str] = []

    class Counting(LocalStorage):
        def list_folder(self, directory: str):  # type: ignore[no-untyped-def]
            listed.append(directory)
            return super().list_folder(directory)

    table = HudiTable(Counting(life.table.path), life.table.config)
    table.look()
    assert [listed.count(folder) for folder in ("p=a", "p=b", ".hoodie")] == [1, 1, 1]


def test_looks_leave_nothing_to_the_garbage_collector(session: LocalSession, tmp_path: Path) -> None:
    life = Life(tmp_path / "t", session)
    life.turns(2)
    HudiTable.open(life.table.path).look()
    gc.collect()
    gc.disable()  # a sensor looks for months, and a plan over many files keeps the collector off what is old
    try:
        HudiTable.open(life.table.path).look()
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_a_damaged_table_has_none_due_and_says_why(session: LocalSession, tmp_path: Path) -> None:
    life = Life(tmp_path / "t", session)
    life.turns(2)
    min((tmp_path / "t").glob("*/*.parquet")).unlink()
    seen = life.table.look()
    assert isinstance(seen.due, NoPlan)
    assert "missing" in seen.due.reason
    assert seen.freshness.freshness is None
    assert seen.freshness.reason
