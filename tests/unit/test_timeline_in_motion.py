"""A plan is withdrawn, or a commit archived, between a reading's listing of the timeline and its look into the file."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_assets.engine import Conflict, HudiTable
from hudi_assets.engine.model import Plan
from hudi_assets.engine.storage import LocalStorage
from tests.tables.life import Life
from tests.tables.local_session import LocalSession


class Vanishing(LocalStorage):
    """Deletes a file of the timeline just before it is read, so many times: each reading lists it first."""

    def __init__(self, base: str, name: str, times: int) -> None:
        super().__init__(base)
        self.name, self.times, self.met = name, times, 0

    def read(self, path: str) -> bytes:
        if path.endswith(self.name) and self.met < self.times:
            self.met += 1
            raise FileNotFoundError(2, "No such file or directory", path)
        return super().read(path)


ASK: dict[str, Callable[[HudiTable], object]] = {
    "plan": lambda table: table.plan_compaction(threshold=1_000),
    "due": lambda table: table.due_compaction(),
    "pending": lambda table: table.pending_plan(),
    "look": lambda table: table.look(),
    "freshness": lambda table: table.freshness(),
}


def vanishing(life: Life, times: int) -> Vanishing:
    """A table with a pending plan, whose file goes."""
    plan = life.table.plan_compaction(threshold=life.number * 1000 + 500)
    assert isinstance(plan, Plan)
    return Vanishing(life.table.path, f"{plan.instant}.compaction.requested", times)


@pytest.mark.parametrize("asked", ASK)
def test_a_file_of_the_timeline_that_is_gone_is_a_conflict(asked: str, session: LocalSession, tmp_path: Path) -> None:
    life = Life(tmp_path / "t", session)
    life.upsert()
    storage = vanishing(life, times=1_000)
    with pytest.raises(Conflict, match=re.escape(storage.name)) as refused:
        ASK[asked](HudiTable(storage, life.table.config))
    assert refused.value.hint == "Ask again."
    assert storage.met


@pytest.mark.parametrize("asked", ["look", "freshness"])
def test_what_only_reads_asks_again_by_itself(asked: str, session: LocalSession, tmp_path: Path) -> None:
    life = Life(tmp_path / "t", session)
    life.upsert()
    storage = vanishing(life, times=2)
    ASK[asked](HudiTable(storage, life.table.config))
    assert storage.met == 2
