"""Hudi has a compaction or clustering pending: we plan nothing, and say why; afterwards we go on."""

from __future__ import annotations

import pytest

from hudi_assets.engine import NoPlan
from tests.interop.matrix import timeline_files
from tests.interop.matrix.conftest import Table
from tests.interop.matrix.expectations import cells, expected
from tests.interop.matrix.kinds import Kind, shape_of
from tests.interop.matrix.subject import VIEWS, Subject
from tests.interop.tables import MINUTE, START

pytestmark = [pytest.mark.interop, pytest.mark.timeout(1800)]


def no_plan(table: Subject) -> str:
    found = table.open().plan_compaction(threshold=START + 40 * MINUTE)
    assert isinstance(found, NoPlan), found
    return found.reason


@pytest.mark.parametrize("kind", cells("their-plan", "0.15.0-v6-metadata-off"))
def test_compaction(kind: Kind, told: Table) -> None:
    table = told(kind, shape_of(kind, "their-plan"))
    assert not table.hudi_compacts("schedule")
    (pending,) = timeline_files.unfinished(table.path, "compaction")
    with expected("their-plan", kind):
        assert pending in no_plan(table)
        table.hudi_upserts((0, 120), (11, 131))
        table.ours_right("Hudi's compaction pending", questions=VIEWS)
        assert table.hudi_compacts("execute") == [pending]
        table.hudi_upserts((1, 30), (4, 134))
        table.we_compact(121)
        table.right("Hudi compacted, then we did")
        table.ours_right("Hudi compacted, then we did")
        table.metadata_table_right("Hudi compacted, then we did")


@pytest.mark.parametrize("kind", cells("their-plan", "1.2.0-v9-metadata-off"))
def test_we_execute_theirs(kind: Kind, told: Table) -> None:
    """A plan of Hudi's is as good as one of ours to execute."""
    table = told(kind, shape_of(kind, "their-plan"))
    table.hudi_compacts("schedule")
    (pending,) = timeline_files.unfinished(table.path, "compaction")
    table.hudi_upserts((0, 120), (11, 131))
    with expected("their-plan", kind):
        table.we_execute(pending)
        table.right("we executed Hudi's plan")
        table.ours_right("we executed Hudi's plan")
        table.hudi_upserts((4, 134))
        table.metadata_table_right("we executed Hudi's plan")


@pytest.mark.parametrize("kind", cells("their-plan", "0.15.0-v6-metadata-off"))
def test_clustering(kind: Kind, told: Table) -> None:
    table = told(kind, shape_of(kind, "their-plan"))
    table.hudi_compacts()
    table.call("run_clustering", "op=>'schedule'")
    (pending,) = timeline_files.unfinished(table.path, "replacecommit", "clustering")
    with expected("their-plan", kind):
        assert pending in no_plan(table)
