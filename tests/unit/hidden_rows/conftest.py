"""Tables with rows in no view: a third row behind a compaction, or behind a base file; and what comes before."""

from __future__ import annotations

from pathlib import Path

import pytest

from hudi_assets.engine import HudiTable
from tests.tables.local_session import LocalSession
from tests.tables.other_index import of_index
from tests.unit.hidden_rows.growing import GrowingTable
from tests.unit.hidden_rows.steps import execute
from tests.unit.test_past_instants import SCHEMA, Clock, Table, moved


@pytest.fixture
def table(session: LocalSession, tmp_path: Path) -> Table:
    path = tmp_path / "t"
    HudiTable.create(
        str(path), SCHEMA, record_key=["id"], ordering_field="ts", buckets=1, data_latency="1s", table_version=9
    )
    return Table(path, session, Clock())


@pytest.fixture
def three(table: Table) -> list[str]:
    """Delta commits of event times 1000, 2000 and 9000, each with a row of its own."""
    return [table.put(key, ts) for key, ts in ((1, 1_000), (2, 2_000), (3, 9_000))]


@pytest.fixture
def above(table: Table, three: list[str]) -> str:
    """A plan of the first two, above the third's completion: as clocks that differ or are put back leave it."""
    plan = table.plan(2_000)
    above = moved(table.open().state().timeline.completions[three[2]], 1)
    (table.timeline / f"{plan.instant}.compaction.requested").rename(table.timeline / f"{above}.compaction.requested")
    return above


@pytest.fixture
def hidden(table: Table, above: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The same, executed: the third row is in no view."""
    execute(table, above, monkeypatch)
    assert set(table.rows()) == {1, 2}
    return above


@pytest.fixture(params=[6, 8, 9])
def growing(session: LocalSession, tmp_path: Path, request: pytest.FixtureRequest) -> GrowingTable:
    path = tmp_path / "g"
    created = HudiTable.create(
        str(path), SCHEMA, record_key=["id"], ordering_field="ts", data_latency="1s", table_version=request.param
    )
    of_index(created, "SIMPLE")
    return GrowingTable(path, session, Clock())


@pytest.fixture
def two(growing: GrowingTable) -> list[str]:
    """Delta commits that each made the one base file larger, of event times 1000 and 2000."""
    return [growing.put(key, ts) for key, ts in ((1, 1_000), (2, 2_000))]


@pytest.fixture
def unseen(growing: GrowingTable, two: list[str]) -> str:
    """A third one, of event time 9000, by a writer whose clock is behind."""
    third = growing.begun_at(growing.put(3, 9_000), moved(two[1], -3))
    assert two[0] < third < two[1]
    assert set(growing.rows()) == {1, 2}
    return third
