"""Our compaction plan is pending, and Hudi goes on: appends, executes the plan, takes a write back, cleans."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.interop.matrix.conftest import Table
from tests.interop.matrix.expectations import cells, expected
from tests.interop.matrix.kinds import Kind, shape_of
from tests.interop.matrix.stories import THRESHOLD
from tests.interop.matrix.subject import VIEWS, Question, Subject

pytestmark = [pytest.mark.interop, pytest.mark.timeout(1800)]


def ends(table: Subject, step: str) -> None:
    """The last words of every cell here: all readers agree with the oracle, and nothing is left over."""
    table.right(step, releases=table.kind.readers, questions=VIEWS)
    table.hudi_rs_right(step)
    table.ours_right(step, questions=VIEWS)
    table.metadata_table_right(step)
    assert not table.open().validate(), step


@pytest.mark.parametrize("kind", cells("append", "0.15.0-v6-metadata-off"))
def test_append(kind: Kind, told: Table) -> None:
    table = told(kind, shape_of(kind, "append"))
    with expected("append", kind):
        plan = table.we_plan(THRESHOLD)
        table.hudi_upserts((0, 120), (4, 35), (11, 131), (6, 136), deleted=[6])
        table.hudi_upserts((1, 141), (12, 15))
        table.right("Hudi appended", questions=VIEWS)
        table.ours_right("Hudi appended")
        table.we_execute(plan.instant)
        table.right("Hudi appended, we executed")
        table.ours_right("Hudi appended, we executed")
        ends(table, "Hudi appended, we executed")


def without_ranges_over(table: Subject, instant: str) -> Sequence[Question]:
    """All questions but for incremental ranges that hold this compaction."""
    at = table.oracle.time(instant)
    return [
        q
        for q in table.questions()
        if q.query != "incremental" or not (q.begin < at and (q.end is None or at <= q.end))
    ]


@pytest.mark.parametrize("kind", cells("execution", "1.2.0-v9-metadata-off"))
def test_execution(kind: Kind, told: Table) -> None:
    """On version 6 Hudi's own commit lists no carried-over log file, so its ranges over it lack their rows."""
    table = told(kind, shape_of(kind, "execution"))
    with expected("execution", kind):
        plan = table.we_plan(THRESHOLD)
        table.hudi_upserts((0, 120), (11, 131))
        assert table.hudi_compacts("execute") == [plan.instant]
        asked = table.questions() if kind.completion_times else without_ranges_over(table, plan.instant)
        table.right("Hudi executed", questions=asked)
        table.ours_right("Hudi executed")
        table.hudi_upserts((4, 144), (1, 15))
        table.we_compact(98)
        ends(table, "Hudi executed, we compacted again")


@pytest.mark.parametrize("kind", cells("rollback"))
def test_rollback(kind: Kind, told: Table) -> None:
    table = told(kind, shape_of(kind, "rollback"))
    with expected("rollback", kind):
        plan = table.we_plan(THRESHOLD)
        table.hudi_upserts((1, 110))
        commit = table.hudi_upserts((0, 120), (11, 131), (10, 140))
        takes_back(table, commit)
        table.hudi_upserts((4, 144), (7, 15))
        table.right("Hudi took a write back", questions=VIEWS)
        table.ours_right("Hudi took a write back")
        table.we_execute(plan.instant)
        table.right("Hudi took a write back, we executed")
        ends(table, "Hudi took a write back, we executed")


def takes_back(table: Subject, commit: str) -> None:
    """Hudi rolls its newest write back, by its procedure.

    That of 1.2.0 looks for the timeline of version 8 on a table of version 6; and it may compact the metadata table
    first, and then refuses a write that is older than that. There the write is made an unfinished one, which the next
    write of Hudi takes back.
    """
    if table.kind.release == "1.2.0" and (table.kind.version == 6 or table.kind.metadata):
        table.unfinish(commit)
    else:
        table.call("rollback_to_instant", f"instant_time=>'{commit}'")
        table.oracle.took_back(commit)


@pytest.mark.parametrize("kind", cells("clean"))
def test_clean(kind: Kind, told: Table) -> None:
    table = told(kind, shape_of(kind, "clean"))
    with expected("clean", kind):
        first = table.we_compact(10)
        table.hudi_upserts((0, 120), (1, 121), (2, 122), (6, 126))
        plan = table.we_plan(THRESHOLD + 30)
        before = _base_files(table)
        table.hudi_cleans()
        assert _base_files(table) < before, "Hudi cleaned no base file: this tests nothing"
        held = [q for q in table.questions() if _since(q, first.instant, table)]
        table.right("Hudi cleaned", questions=VIEWS)
        table.ours_right("Hudi cleaned", questions=held)
        table.we_execute(plan.instant)
        held = [q for q in table.questions() if _since(q, first.instant, table)]
        table.right("Hudi cleaned, we executed", questions=held)
        table.hudi_upserts((3, 133))
        table.hudi_cleans()
        ends(table, "Hudi cleaned again")


def _base_files(table: Subject) -> set[str]:
    return {
        str(file.relative_to(table.path)) for file in table.path.glob("**/*.parquet") if ".hoodie" not in file.parts
    }


def _since(question: Question, instant: str, table: Subject) -> bool:
    """True where the answer needs nothing that was there before an instant only."""
    if question.query == "time_travel":
        return question.as_of is not None and question.as_of >= instant
    return question.query != "incremental" or question.begin >= table.oracle.time(instant)
