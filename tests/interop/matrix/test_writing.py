"""We create and write, Hudi reads and writes on: the four queries of both are right."""

from __future__ import annotations

import pytest

from tests.interop.matrix.conftest import Table
from tests.interop.matrix.expectations import cells, expected
from tests.interop.matrix.kinds import Kind, shape_of
from tests.interop.matrix.stories import THRESHOLD
from tests.interop.matrix.subject import VIEWS, Subject

pytestmark = [pytest.mark.interop, pytest.mark.timeout(1800)]


@pytest.mark.parametrize("kind", cells("writing", "1.2.0-v9-metadata-off"))
def test_our_table(kind: Kind, new: Table) -> None:
    table = new(kind, shape_of(kind, "writing"))
    with expected("writing", kind):
        table.create()
        table.we_upsert(*((number, number) for number in range(9)))
        table.we_upsert((0, 30), (1, 31), (4, 64), (9, 39))
        table.we_upsert((0, 20), (1, 31), (5, 65), (6, 26), deleted=[5])
        table.we_delete((7, 70), (3, 2))
        table.we_delete((8, 0), with_time=False)
        table.right("as we wrote it")
        table.ours_right("as we wrote it")
        table.hudi_upserts((2, 92), (10, 100))
        table.we_upsert((2, 95), (11, 101))
        table.we_compact(THRESHOLD)
        table.hudi_upserts((4, 104), (11, 105), deleted=[11])
        table.right("written by both, compacted by us")
        table.right("written by both, compacted by us", releases=kind.readers, questions=VIEWS)
        table.ours_right("written by both, compacted by us")
        table.hudi_rs_right("written by both, compacted by us")
        table.metadata_table_right("written by both, compacted by us")
        assert not table.open().validate()


@pytest.mark.parametrize("kind", cells("reading"))
def test_reading(kind: Kind, told: Table) -> None:
    """Our four queries of what Hudi wrote, and compacted itself."""
    table = told(kind, shape_of(kind, "reading"))
    with expected("reading", kind):
        table.ours_right("as Hudi wrote it")
        table.hudi_compacts()
        table.hudi_upserts((1, 121), (12, 122), deleted=[1])
        table.ours_right("Hudi compacted and wrote on")


@pytest.mark.parametrize("kind", cells("our-writes", "1.2.0-v9-metadata-on"))
def test_our_writes_into_theirs(kind: Kind, told: Table) -> None:
    """We write into a table that Hudi made: rows, tombstones and deletes."""
    table = told(kind, shape_of(kind, "our-writes"))
    table.switch_off = False
    with expected("our-writes", kind):
        writes_into(table)


@pytest.mark.parametrize("kind", cells("switched-off"))
def test_our_writes_with_statistics_switched_off(kind: Kind, told: Table) -> None:
    table = told(kind, shape_of(kind, "switched-off"))
    with expected("switched-off", kind):
        writes_into(table)


def writes_into(table: Subject) -> None:
    table.we_upsert((1, 131), (12, 132), (4, 10))
    table.we_upsert((6, 136), (9, 139), deleted=[9])
    table.we_delete((12, 140), (0, 141))
    table.right("we wrote")
    table.hudi_upserts((0, 150), (13, 151))
    table.we_compact(133)
    table.right("we wrote and compacted", releases=table.kind.readers)
    table.ours_right("we wrote and compacted")
    table.hudi_rs_right("we wrote and compacted")
    table.metadata_table_right("we wrote and compacted")
