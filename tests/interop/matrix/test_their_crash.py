"""Hudi's JVM is killed (-9) while it writes or compacts; we take back what is unfinished, and both go on."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from scripts.hudi_client import Hudi, HudiError
from tests.interop.matrix import timeline_files
from tests.interop.matrix.conftest import Table
from tests.interop.matrix.expectations import cells, expected
from tests.interop.matrix.kinds import KINDS, Kind, shape_of
from tests.interop.matrix.stories import THRESHOLD
from tests.interop.matrix.subject import VIEWS, Subject, batch

pytestmark = [pytest.mark.interop, pytest.mark.timeout(1800)]


def _children(pid: int) -> Iterator[int]:
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            yield int(child)
            yield from _children(int(child))


def killed(hudi: Hudi, when: Callable[[], bool], work: Callable[[], object]) -> bool:
    """Do `work` beside, and kill Hudi's processes as soon as `when` holds; False where the work was done first."""
    pids = [*_children(hudi._process.pid), hudi._process.pid]
    failed: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except (HudiError, OSError, ValueError) as error:
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    while thread.is_alive() and not when():
        time.sleep(0.002)
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    thread.join()
    return bool(failed)


def dies_writing(table: Subject, doomed: Hudi, at: str) -> None:
    """Kill a writer when its instant's `at` file, or its first log file, is there."""
    before = {f.path.name for f in timeline_files.files(table.path)}
    logs = set(table.path.rglob(".*.log.*"))

    def reached() -> bool:
        if at == "data":
            return bool({p for p in table.path.rglob(".*.log.*") if ".hoodie" not in p.parts} - logs)
        return any(f.state == at for f in timeline_files.files(table.path) if f.path.name not in before)

    data = batch([(0, 120), (4, 124), (11, 131)], table.mark + 1)
    table.mark += 1
    known = set(timeline_files.completed_writes(table.path))
    hudi, table.hudi = table.hudi, lambda _: doomed
    killed(doomed, reached, lambda: table._hudi_writes(data, {}))
    table.hudi = hudi
    table.tell_write(known, data, inserts_into_base=True)


@pytest.mark.parametrize("kind", cells("their-crash"))
def test_killed_writing(kind: Kind, told: Table) -> None:
    """Requested, inflight, or with data written: by kind of table another one."""
    at = ("inflight", "data", "requested")[KINDS.index(kind) % 3]
    table = told(kind, shape_of(kind, "their-crash"))
    with Hudi(kind.release) as doomed:
        dies_writing(table, doomed, at)
    with expected("their-crash", kind):
        goes_on(table, f"killed at {at}")


@pytest.mark.parametrize("kind", cells("their-crash"))
def test_write_without_its_commit(kind: Kind, told: Table) -> None:
    """As if it had died just before its last word."""
    table = told(kind, shape_of(kind, "their-crash"))
    commit = table.hudi_upserts((0, 120), (4, 124), (11, 131))
    table.unfinish(commit)
    with expected("their-crash", kind):
        goes_on(table, "without its commit")


def goes_on(table: Subject, where: str) -> None:
    """We take back what is unfinished, write, compact; Hudi writes on."""
    table.right(where, questions=VIEWS)
    table.ours_right(where, questions=VIEWS)
    for instant in sorted(timeline_files.unfinished(table.path, "deltacommit", "commit")):
        table.open().rollback(instant)
    table.ours_right(f"{where}, taken back", questions=VIEWS)
    table.right(f"{where}, taken back", questions=VIEWS)
    table.we_upsert((1, 141), (12, 142))
    table.we_compact(THRESHOLD)
    table.hudi_upserts((2, 152), (13, 153))
    table.right(f"{where}, taken back, all wrote on")
    table.ours_right(f"{where}, taken back, all wrote on")
    table.metadata_table_right(f"{where}, taken back, all wrote on")
    assert not table.open().validate()


@pytest.mark.parametrize("kind", cells("their-crash"))
def test_killed_compacting(kind: Kind, told: Table) -> None:
    """Hudi dies executing its compaction: we execute the same plan."""
    table = told(kind, shape_of(kind, "their-crash"))
    table.hudi_compacts("schedule")
    (pending,) = timeline_files.unfinished(table.path, "compaction")

    def inflight() -> bool:
        return any(f.requested == pending and f.state == "inflight" for f in timeline_files.files(table.path))

    with Hudi(kind.release) as doomed:
        hudi, table.hudi = table.hudi, lambda _: doomed
        table.compactions_told(lambda: killed(doomed, inflight, lambda: table.hudi_compacts_untold("execute")))
        table.hudi = hudi
    with expected("their-crash", kind):
        if timeline_files.unfinished(table.path, "compaction"):
            table.we_execute(pending)
        table.right("we executed after Hudi died")
        table.ours_right("we executed after Hudi died")
        table.hudi_upserts((4, 134), (13, 153))
        table.right("Hudi wrote on", questions=VIEWS)
        table.metadata_table_right("Hudi wrote on")
        assert not table.open().validate()
