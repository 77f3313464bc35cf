"""The table that a crash test starts from, where it makes none of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.crash import faulty, tables
from tests.crash.tables import new_table, write_batches
from tests.in_buckets import IN_BUCKETS


@pytest.fixture(autouse=True)
def _in_buckets(monkeypatch: pytest.MonkeyPatch) -> None:
    if IN_BUCKETS:
        from tests.stores.folder import tables_in_buckets

        tables_in_buckets(monkeypatch.setattr, faulty, tables)


@pytest.fixture(params=[6, pytest.param(8, marks=pytest.mark.thorough), 9])
def path(session: Any, tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """Two file groups with three log files each: two to compact at THRESHOLD, one that remains.

    Of the table version that the parameter says.
    """
    return write_batches(new_table(tmp_path / "table", request.param), session)
