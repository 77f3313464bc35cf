"""We die in each phase of a write, a plan and an execution; Hudi goes on, and no row is lost, doubled or half there."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from scripts.hudi_client import HudiError
from tests.crash.faulty import Crash, DyingStorage
from tests.interop.matrix import timeline_files
from tests.interop.matrix.conftest import Table
from tests.interop.matrix.expectations import cells, expected
from tests.interop.matrix.kinds import KINDS, Kind, shape_of
from tests.interop.matrix.stories import THRESHOLD
from tests.interop.matrix.subject import VIEWS, Subject

pytestmark = [pytest.mark.interop, pytest.mark.timeout(3600)]
PHANTOMS = "0.15.0-v6-metadata-on"  # its readers look for each log file that a marker names
ROWS = ((0, 120.0), (4, 124.0), (11, 131.0), (8, 15.0))


def phase(operation: str) -> str:
    """An operation without what differs from run to run and from file group to file group."""
    name = re.sub(r"p=[abc]|log\.\d+|_\d+-\d+-\d+", "", operation)
    name = re.sub(r"[0-9a-f-]{30,}|\d{3,}", "#", name)
    return re.sub(r"^(\w+) (?:/\S*/)?(?=[^/]+$)", r"\1 ", name)


def phases(operations: list[str]) -> list[int]:
    """The number of the last operation of each phase: what was written before it is all there."""
    last = {phase(operation): number for number, operation in enumerate(operations, 1)}
    return sorted(last.values())


def dies(table: Subject, act: Callable[[Subject, DyingStorage], object], number: int) -> str:
    """Die right before a changing operation; its words."""
    storage = DyingStorage(str(table.path), number)
    with pytest.raises(Crash):
        act(table, storage)
    return f"died before {storage.operations[-1]}"


def rehearsed(table: Subject, act: Callable[[Subject, DyingStorage], object], to: Path) -> list[str]:
    storage = DyingStorage(str(to))
    act(table.copied(to), storage)
    return storage.operations


def writes(table: Subject, storage: DyingStorage) -> None:
    table.we_upsert(*ROWS, storage=storage)


def plans(table: Subject, storage: DyingStorage) -> None:
    table.we_plan(THRESHOLD, table.open(storage))


def executes(table: Subject, storage: DyingStorage) -> None:
    (instant,) = timeline_files.unfinished(table.path, "compaction")
    table.compactions_told(lambda: table.open(storage).execute_compaction(table.session, instant))


def hudi_goes_on(table: Subject, where: str) -> None:
    """Hudi writes, and executes what it finds pending; then we look the table through.

    It cannot execute a guard, and stops before the plans behind it: at them it comes once we have removed the guard.
    """
    table.hudi_upserts((1, 141), (12, 142))
    # After taking our write back 0.15.0 shows a write of its own from the next commit on.
    table.hudi_upserts((2, 152), (12, 153))
    table.right(f"{where}; Hudi wrote", questions=VIEWS)
    table.ours_right(f"{where}; Hudi wrote", questions=VIEWS)
    if guards := timeline_files.guards(table.path):
        with pytest.raises(HudiError, match=f"{min(guards)}.compaction.inflight does not exist"):
            table.hudi_compacts("execute")
        table.right(f"{where}; Hudi stopped at the guard", questions=VIEWS)
        table.open().recover()
    if timeline_files.unfinished(table.path, "compaction"):
        table.hudi_compacts("execute")
        table.right(f"{where}; Hudi executed", questions=VIEWS)
    table.open().recover()
    table.ours_right(f"{where}; recovered", questions=VIEWS)
    table.hudi_rs_right(f"{where}; recovered")
    table.metadata_table_right(f"{where}; recovered")
    assert not table.open().validate(), where
    assert not timeline_files.unfinished(table.path, "deltacommit"), where


@pytest.mark.parametrize("kind", cells("our-crash"))
@pytest.mark.parametrize("act", [writes, plans, executes])
def test_each_phase(kind: Kind, act: Callable[[Subject, DyingStorage], object], told: Table) -> None:
    table = told(kind, shape_of(kind, "our-crash"))
    with expected("our-crash", kind):
        if act is executes:
            table.we_plan(THRESHOLD)
        operations = rehearsed(table, act, table.path.with_name("rehearsal"))
        for number in phases(operations):
            if kind.name == PHANTOMS and act is writes and ".marker." in operations[number - 1]:
                continue  # test_between_a_marker_and_its_log_file shows what comes of it
            copy = table.copied(table.path.with_name(f"died-{number}"))
            hudi_goes_on(copy, dies(copy, act, number))


@pytest.mark.parametrize("kind", cells("our-crash", "0.15.0-v6-metadata-off"))
def test_before_the_commit(kind: Kind, told: Table) -> None:
    """The phase in which most is there that does not count."""
    table = told(kind, shape_of(kind, "our-crash"))
    with expected("our-crash", kind):
        for act, last in ((writes, "deltacommit"), (executes, "commit")):
            copy = table.copied(table.path.with_name(f"died-{last}"))
            if act is executes:
                copy.we_plan(THRESHOLD)
            operations = rehearsed(copy, act, table.path.with_name(f"rehearsal-{last}"))
            number = next(n for n, op in enumerate(operations, 1) if re.search(rf"\d\.{last}$", op))
            hudi_goes_on(copy, dies(copy, act, number))


@pytest.mark.parametrize("recovered", [True, False])
def test_between_a_marker_and_its_log_file(recovered: bool, told: Table) -> None:
    """0.15.0 takes the marker for a file, lists it in its metadata table, does not find it; not where we recovered."""
    (kind,) = (k for k in KINDS if k.name == PHANTOMS)
    table = told(kind, shape_of(kind, "our-crash"))
    operations = rehearsed(table, writes, table.path.with_name("rehearsal"))
    first_log = next(n for n, op in enumerate(operations, 1) if re.search(r"\.log\.[^ /]*$", op) and "marker" not in op)
    where = dies(table, writes, first_log)
    if recovered:
        table.open().recover()
    # Of other file groups than the missing file's, whose name would be filled else.
    table.hudi_upserts((1, 141), (12, 142))
    table.hudi_upserts((2, 152), (12, 153))
    if recovered:
        table.right(f"{where}; recovered, Hudi wrote", questions=VIEWS)
        table.metadata_table_right(f"{where}; recovered, Hudi wrote")
    else:
        with pytest.raises(HudiError, match="FileNotFoundException"):
            table.right(f"{where}; Hudi wrote", questions=VIEWS)
