"""What is done with such a table, and what is asked of it."""

from __future__ import annotations

import pytest

from hudi_assets.engine.actions.compaction import executor
from hudi_assets.engine.table.files.hidden import hidden_files
from tests.unit.test_past_instants import Table


def execute(table: Table, instant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As an engine does that looks for nothing."""
    with monkeypatch.context() as patch:
        patch.setattr(executor, "refuse_stragglers", lambda state, plan: None)
        table.open().execute_compaction(table.session, instant)


def found(table: Table) -> set[str]:
    return {one.delta_commit.timestamp for one in hidden_files(table.open().state())}


def findings(table: Table, **settings: str) -> dict[str, tuple[str, str, str]]:
    return {one.kind: (one.path, one.what, one.hint) for one in table.open(**settings).validate()}
