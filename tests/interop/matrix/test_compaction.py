"""Hudi writes, we compact: Hudi's four queries are right before and after, and Hudi goes on."""

from __future__ import annotations

import pytest

from tests.interop.matrix.conftest import Table
from tests.interop.matrix.expectations import cells, expected
from tests.interop.matrix.kinds import Kind, Shape, other, shape_of
from tests.interop.matrix.stories import THRESHOLD
from tests.interop.matrix.subject import VIEWS, Subject

pytestmark = [pytest.mark.interop, pytest.mark.timeout(1800)]
TOPIC = "compaction"


def compacts_and_goes_on(table: Subject) -> None:
    table.right("as Hudi wrote it")
    with expected(TOPIC, table.kind):
        table.ours_right("as Hudi wrote it")
        plan = table.we_plan(THRESHOLD)
        table.right("our plan pending")
        table.we_execute(plan.instant)
        assert table.oracle.state().logs, "no log record remains: this tests too little"
        table.right("compacted by us")
        table.ours_right("compacted by us")
        table.right("compacted by us", releases=table.kind.readers, questions=VIEWS)
        table.hudi_rs_right("compacted by us")
        table.metadata_table_right("compacted by us")
        table.hudi_upserts((0, 120), (11, 131), (10, 95), deleted=[0])
        table.right("Hudi went on", questions=VIEWS)
        table.we_compact(98)
        table.hudi_upserts((4, 140), (9, 149))
        table.right("compacted again, Hudi went on")
        table.hudi_compacts()
        table.hudi_cleans()
        table.right("Hudi's own compaction and clean", releases=table.kind.readers, questions=VIEWS)
        table.hudi_rs_right("Hudi's own compaction and clean")
        table.ours_right("Hudi's own compaction and clean", questions=VIEWS)
        table.metadata_table_right("Hudi's own compaction and clean")


@pytest.mark.parametrize("kind", cells(TOPIC, "1.2.0-v9-metadata-on"))
def test_compaction(kind: Kind, told: Table) -> None:
    compacts_and_goes_on(told(kind, shape_of(kind, TOPIC)))


@pytest.mark.slow
@pytest.mark.parametrize("kind", cells(TOPIC))
def test_compaction_in_the_other_log_blocks(kind: Kind, told: Table) -> None:
    compacts_and_goes_on(told(kind, other(shape_of(kind, TOPIC))))


@pytest.mark.slow
@pytest.mark.parametrize("kind", cells(TOPIC))
def test_compaction_with_and_without_partitions(kind: Kind, told: Table) -> None:
    """And over each range there is."""
    shape = shape_of(kind, TOPIC)
    table = told(kind, Shape(shape.log_blocks, not shape.partitioned))
    table.every = 1
    compacts_and_goes_on(table)
