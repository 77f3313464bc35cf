"""Task attempts that run on after their instant was completed: nothing of theirs counts, the next action removes it.

A late attempt is the task itself once more, with a write token of its own, as Spark runs it by speculation, by a retry,
or in an executor whose driver is dead.
"""

from __future__ import annotations

import functools
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_assets.engine import HudiTable
from hudi_assets.engine.actions.writing import exchange
from hudi_assets.engine.spark import session as spark_session
from hudi_assets.engine.storage import LocalStorage
from hudi_assets.engine.transaction.leftovers import leftovers
from tests.crash.faulty import Crash, dying
from tests.crash.tables import batch, new_table, no_strays, planned, snapshot, write
from tests.tables.local_session import Frame, LocalSession, _Tokens
from tests.tables.other_index import of_index
from tests.tables.steps import at

ALL = 10_000  # a threshold
ATTEMPTS = ".hoodie/.aux/hudi_assets/attempts"
VERSIONS = pytest.mark.parametrize("path", [6, 9], indirect=True)


class Tasks:
    """The tasks that ran in Spark's place; `late` runs the last ones again, with what they read then."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        run_tasks, parcels = spark_session.run_tasks, exchange.parcels_in_files
        self.last: tuple[Callable[[Any], Any], list[Any]] | None = None
        read: dict[Any, list[pa.RecordBatch]] = {}

        def remembered(session: Any, function: Callable[[Any], Any], tasks: Any) -> list[Any]:
            self.last = (function, list(tasks))
            return run_tasks(session, function, tasks)

        def kept(scratch: Any, places: Any) -> Iterator[pa.RecordBatch]:
            # The files are gone once the write is over: a late attempt has them open.
            if (key := tuple(places)) not in read:
                read[key] = list(parcels(scratch, places))
            return iter(read[key])

        patch.setattr(spark_session, "run_tasks", remembered)
        patch.setattr(exchange, "parcels_in_files", kept)

    def late(self) -> None:
        """The last tasks once more, with write tokens that follow those given out."""
        assert self.last is not None
        function, tasks = self.last
        for number, task in enumerate(tasks):
            _Tokens.next(number)
            function(task)


@pytest.fixture
def tasks(session: LocalSession, monkeypatch: pytest.MonkeyPatch) -> Tasks:
    return Tasks(monkeypatch)


def data_files(table: HudiTable) -> set[str]:
    return {file.path for files in table.state().listing.values() for file in files}


def staged(path: Path) -> list[Path]:
    return [file for file in (path / ATTEMPTS).rglob("*") if file.is_file()]


def check_late(table: HudiTable, session: Any, tasks: Tasks) -> None:
    """What the last tasks write once more is in no partition and no answer; the next write removes it."""
    path = Path(table.path)
    files, rows = data_files(table), snapshot(table)
    assert staged(path) == []
    tasks.late()
    assert data_files(table) == files
    assert snapshot(table) == rows
    assert staged(path)  # they did write
    assert {finding.kind for finding in table.validate()} == {"staged"}
    write(table, session, 4, 9_700)
    assert staged(path) == []
    assert not list((path / ATTEMPTS).iterdir())
    assert table.validate() == ()
    no_strays(table)


@VERSIONS
def test_compaction(session: Any, path: Path, tasks: Tasks) -> None:
    table = HudiTable.open(str(path))
    table.execute_compaction(session, planned(table).instant)
    check_late(table, session, tasks)


def test_residue_logs(session: Any, tmp_path: Path, tasks: Tasks) -> None:
    table = new_table(tmp_path / "t", 6, **{"hudi_assets.table.services": "ours", "hudi_assets.exact.split": "true"})
    write(table, session, 0, 1_000)
    plan = planned(table, 1_002)
    table.execute_compaction(session, plan.instant)
    residue = {file: file.stat().st_ino for file in Path(table.path).glob(f".*_{plan.instant}.log.1_0-0-0")}
    assert residue
    check_late(table, session, tasks)
    assert {file: file.stat().st_ino for file in residue} == residue


@VERSIONS
def test_writes(session: Any, path: Path, tasks: Tasks) -> None:
    table = HudiTable.open(str(path))
    write(table, session, 2, 9_600)
    check_late(table, session, tasks)
    table.delete(session, Frame(batch(0, 9_900).table.select(["id", "ts"])), clock_time=at(12_000))
    check_late(table, session, tasks)


@pytest.mark.parametrize("version", [6, 9])
def test_writes_that_look_keys_up(session: Any, tmp_path: Path, tasks: Tasks, version: int) -> None:
    table = of_index(new_table(tmp_path / "t", version), "SIMPLE")
    write(table, session, 0, 1_000)  # base files alone
    check_late(table, session, tasks)
    write(table, session, 2, 9_600)  # log files, and the small file's next version
    check_late(table, session, tasks)


@pytest.mark.parametrize("version", [6, 9])
def test_bulk_insert(session: Any, tmp_path: Path, tasks: Tasks, version: int) -> None:
    table = new_table(tmp_path / "t", version)
    table.bulk_insert(session, batch(0, 1_000), clock_time=at(2_000))
    check_late(table, session, tasks)


def on_living_storage(last: Any) -> Any:
    """The same tasks, of a driver that is dead: their storage is not."""
    function, todo = last
    [spec] = function.args
    reader = replace(spec.reader, storage=LocalStorage(spec.reader.storage.base))
    return functools.partial(function.func, replace(spec, reader=reader)), todo


@VERSIONS
@pytest.mark.parametrize("late", ["before the next execution", "beside it", "after its commit"])
def test_an_executor_outlives_its_driver(
    session: Any, path: Path, tmp_path: Path, tasks: Tasks, monkeypatch: pytest.MonkeyPatch, late: str
) -> None:
    """Another Spark executes the plan again: at the same instant, with the same write tokens."""
    table = HudiTable.open(str(path))
    rows, plan = snapshot(table), planned(table)
    monkeypatch.setattr(_Tokens, "number", 1_000)
    # The driver dies right before its first base file gets its name.
    rehearsal, storage = dying(shutil.copytree(path, tmp_path / "rehearsal"))
    rehearsal.execute_compaction(session, plan.instant)
    first = next(n for n, operation in enumerate(storage.operations, 1) if operation.startswith("publish"))
    monkeypatch.setattr(_Tokens, "number", 1_000)
    dead, _ = dying(path, first)
    with pytest.raises(Crash):
        dead.execute_compaction(session, plan.instant)
    tasks.last = on_living_storage(tasks.last)
    left = tasks.last

    def run_on() -> None:
        tasks.last, _Tokens.number = left, 1_000
        tasks.late()

    if late == "before the next execution":
        run_on()
    if late == "beside it":
        between = [run_on]
        publish = LocalStorage.publish

        def beside(self: LocalStorage, at_: str, name: str) -> None:
            while between:
                there = staged(path)
                between.pop()()
                assert len(staged(path)) == 2 * len(there)
            publish(self, at_, name)

        monkeypatch.setattr(LocalStorage, "publish", beside)
    _Tokens.number = 1_000
    result = table.execute_compaction(session, plan.instant)
    if late == "after its commit":
        run_on()
    written = {op.base_file: op.bytes_written for op in result.operations}
    assert {name: (path / name).stat().st_size for name in written} == written
    assert snapshot(table) == rows
    write(table, session, 4, 9_700)
    assert staged(path) == []
    assert table.validate() == ()
    no_strays(table)


# ------------------------------------------------------------------------------------- what is there already


def listed(table: HudiTable) -> str:
    """The last file that the newest write's commit lists."""
    state = table.state()
    [newest] = [i for i in state.timeline.instants if i.timestamp == state.timeline.last_write]
    return max(stat.path for stat in state.commit(newest).stats)


def stray_beside(table: HudiTable, name: str) -> Path:
    """A copy of a file under the name that another attempt would have given it."""
    base = name.endswith(".parquet")
    token = name.split("_")[1] if base else name.rsplit("_", 1)[1]
    stray = name.replace(f"_{token}_", "_7-7-777_") if base else f"{name.removesuffix(token)}7-7-777"
    return Path(shutil.copy(Path(table.path, name), Path(table.path, stray)))


def recover(table: HudiTable) -> None:
    assert [sentence for sentence in table.recover() if "that their commits do not list" in sentence]


def clean(table: HudiTable) -> None:
    table.clean(retained=10)


@VERSIONS
@pytest.mark.parametrize("action", [recover, clean])
@pytest.mark.parametrize("kind", ["two_base_files", "stray"])
def test_files_that_no_commit_lists(session: Any, path: Path, kind: str, action: Callable[[HudiTable], None]) -> None:
    """As an earlier release's attempt left them: told by what the commits list."""
    table = HudiTable.open(str(path))
    if kind == "stray":
        write(table, session, 2, 9_600)
    else:
        table.execute_compaction(session, planned(table, ALL).instant)
    files, rows = data_files(table), snapshot(table)
    stray = stray_beside(table, listed(table))
    assert [(finding.kind, finding.path) for finding in table.validate()] == [(kind, stray.name)]
    if kind == "two_base_files":
        assert any("base files that their commits do not list" in one for one in leftovers(table.state(), lambda: 0))
        assert snapshot(table) == rows
    action(table)
    assert data_files(table) == files
    assert snapshot(table) == rows
    assert table.validate() == ()


@VERSIONS
@pytest.mark.parametrize("compacted", [True, False])
def test_a_marker_of_a_completed_instant_names_a_stray(session: Any, path: Path, compacted: bool) -> None:
    """An earlier release's attempt left both: every action looks at markers, none lists the table for that."""
    table = HudiTable.open(str(path))
    if compacted:
        table.execute_compaction(session, planned(table, ALL).instant)
    else:
        write(table, session, 2, 9_600)
    name = listed(table)
    instant, rows = table.state().timeline.last_write, snapshot(table)
    stray = stray_beside(table, name)
    for marked in (stray.name, name):
        marker = path / f".hoodie/.temp/{instant}/{marked}.marker.CREATE"
        marker.parent.mkdir(parents=True, exist_ok=True)
        marker.touch()
    table.plan_compaction(threshold=100)
    assert not stray.exists()
    assert (path / name).exists()
    assert snapshot(table) == rows
    no_strays(table)


def test_a_pending_plan_keeps_what_it_reads(session: Any, path: Path) -> None:
    table = HudiTable.open(str(path))
    rows = snapshot(table)
    write(table, session, 4, 9_000)
    stray = stray_beside(table, listed(table))
    plan = planned(table, ALL)
    assert any(stray.name in op.log_files for op in plan.operations)
    table.recover()
    assert stray.exists()
    table.execute_compaction(session, plan.instant)
    assert snapshot(table) == rows
    recover(table)
    assert not stray.exists()


def test_other_engines_log_files_stay(session: Any, path: Path) -> None:
    """Only their writer could say that a file which its commit does not list holds nothing of its own."""
    table = HudiTable.open(str(path))
    instant = write(table, session, 2, 9_600)
    stray = stray_beside(table, listed(table))
    for commit in [*path.glob(f".hoodie/{instant}.*"), *path.glob(f".hoodie/timeline/{instant}*.*")]:
        commit.write_bytes(commit.read_bytes().replace(b"hudi_assets.writer", b"other_engine.writr"))
    table = HudiTable.open(str(path))
    assert table.validate() == ()
    table.recover()
    assert stray.exists()


def test_of_several_base_files_whose_commit_is_archived_the_oldest_counts(session: Any, path: Path) -> None:
    """Hudi's archiver leaves strays: what a lost attempt wrote came after the commit."""
    table = HudiTable.open(str(path))
    table.execute_compaction(session, planned(table, ALL).instant)
    name, rows = listed(table), snapshot(table)
    for n, names in enumerate((("0-0-0", 60), ("7-7-777", 120))):
        token, later = names
        stray = stray_beside(table, name).rename(path / name.replace(f"_{name.split('_')[1]}_", f"_{token}{n}_"))
        stray.write_bytes(b"torn")
        changed = (path / name).stat().st_mtime + later
        os.utime(stray, (changed, changed))
    instant = table.state().timeline.last_write
    write(table, session, 4, 9_700)
    rows = snapshot(table)
    newest = table.state().timeline.last_write
    for file in (path / ".hoodie").rglob("*"):
        if file.is_file() and file.name[:17].isdigit() and file.name[:17] != newest:
            file.unlink()
    table = HudiTable.open(str(path))
    assert instant not in {i.timestamp for i in table.state().timeline.instants}
    assert snapshot(table) == rows
    assert len([f for f in table.validate() if f.kind == "two_base_files"]) == 2
