"""A look carries the table's numbers, and computes nothing twice for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hudi_assets.engine import status
from tests.tables.life import Life
from tests.tables.local_session import LocalSession


@pytest.mark.parametrize("version", [6, 9])
def test_the_numbers_are_those_of_stats(version: int, session: LocalSession, tmp_path: Path) -> None:
    life = Life(tmp_path / "t", session, version)
    life.turns(3)
    seen = life.table.look()
    assert seen.stats == life.table.stats()
    assert seen.stats.remaining_log_files
    assert seen.freshness is seen.stats.freshness


def test_the_freshness_is_computed_once(session: LocalSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    life = Life(tmp_path / "t", session)
    life.turns(2)
    computed: list[None] = []
    once = status.compute_freshness  # type: ignore[attr-defined]

    def counting(*args: Any, **given: Any) -> Any:
        computed.append(None)
        return once(*args, **given)

    monkeypatch.setattr(status, "compute_freshness", counting)
    life.table.look()
    assert len(computed) == 1
