"""Rollback, restore and unschedule beside Apache Hudi: what we take back, Hudi reads and goes on from; what Hudi
takes back, or began to, we go on from.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from hudi_assets.engine import CleanResult, HudiTable
from hudi_assets.engine.errors import CorruptTable, InvalidInput
from hudi_assets.engine.model import Action, Plan
from scripts.hudi_client import RELEASES, Hudi, HudiError
from scripts.hudi_rows import Rows
from tests.crash.faulty import Crash, DyingStorage
from tests.interop.readers import Readers
from tests.interop.tables import Shape, hudi_options, planned, rows
from tests.tables.local_session import LocalSession

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]
EACH = ["0.15.0", pytest.param("1.2.0", marks=pytest.mark.slow)]
STATED = {"hudi_assets.writers": "stopped", "hoodie.bucket.index.num.buckets": "2"}


@pytest.fixture
def readers(session: LocalSession, hudi_0_15: Hudi, hudi_1_2: Hudi) -> Readers:
    """Our engine in this process, beside both releases."""
    spark: Any = session
    return Readers(spark, dict(zip(RELEASES, (hudi_0_15, hudi_1_2), strict=True)))


def upsert(table: HudiTable, session: Any, numbers: Any, minute: float, mark: int) -> str:
    instant = table.upsert(session, session.frame(rows(numbers, lambda n: minute + n, mark))).instant
    assert instant is not None
    return instant


def with_history(path: Path, session: Any) -> HudiTable:
    """Two commits, both in every group."""
    table = Shape().create(path)
    upsert(table, session, range(12), 0, 0)
    upsert(table, session, range(0, 12, 2), 30, 1)
    return table


def hudi_writes(hudi: Hudi, table: HudiTable, numbers: Any, minute: float, mark: int) -> None:
    hudi.write(table.path, rows(numbers, lambda n: minute + n, mark), hudi_options(name=table.config.name))


def call(hudi: Hudi, table: HudiTable, procedure: str, **arguments: str) -> list[dict[str, Any]]:
    """One of Hudi's procedures, which take a table of the catalog; its rows."""
    name = f"t{abs(hash(table.path))}"
    properties = Path(table.path) / ".hoodie/hoodie.properties"
    stated = properties.read_bytes()
    # Without these the procedures make a metadata table, and 1.2.0's upgrade the table.
    for setting in ("hoodie.metadata.enable=false", "hoodie.write.table.version=6", "hoodie.write.auto.upgrade=false"):
        hudi.ask("sql", statement=f"set {setting}")
    hudi.ask("sql", statement=f"create table if not exists {name} using hudi location '{table.path}'")
    # That drops every key which Hudi does not know.
    properties.write_bytes(stated)
    properties.with_name(f".{properties.name}.crc").unlink(missing_ok=True)
    text = ", ".join(f"{key}=>'{value}'" for key, value in {"table": name, **arguments}.items())
    found: list[dict[str, Any]] = hudi.ask("sql", statement=f"call {procedure}({text})")["rows"]
    return found


def goes_on(readers: Readers, table: HudiTable, release: str, expected: Rows, step: str) -> None:
    """Every reader has these rows; Hudi writes on, then we do, and every reader follows."""
    assert readers.agree(table, step)["snapshot"] == expected, step
    hudi_writes(readers.hudi[release], table, [1, 40], 200, 7)
    after = readers.agree(table, f"{step}, {release} wrote")["snapshot"]
    assert {key for _, key in after} == {key for _, key in expected} | {"k1", "k40"}
    upsert(table, readers.spark, [1, 41], 300, 8)
    readers.agree(table, f"{step}, we wrote")
    table.execute_compaction(readers.spark, planned(table, 1000).instant)
    assert len(readers.agree(table, f"{step}, compacted")["snapshot"]) == len(after) + 1
    assert not table.validate()


@pytest.mark.parametrize("release", EACH)
def test_our_rollback(release: str, path: Path, readers: Readers) -> None:
    table = with_history(path, readers.spark)
    before = readers.agree(table, "before")["snapshot"]
    newest = upsert(table, readers.spark, [0, 1, 20, 21], 60, 2)
    assert readers.agree(table, "written")["snapshot"] != before
    table.rollback(newest)
    timeline = readers.hudi[release].timeline(path)
    assert [i[1:] for i in timeline[-1:]] == [("rollback", "COMPLETED")]
    if release == "0.15.0":
        shown = call(readers.hudi[release], table, "show_rollbacks")
        assert [(row["instant"], row["rollback_instant"]) for row in shown] == [(timeline[-1][0], newest)]
    goes_on(readers, table, release, before, "rolled back")


def test_hudis_rollback_of_what_was_cleaned(path: Path, readers: Readers) -> None:
    """Hudi asks nothing. The slices that the compaction read are gone: its readers miss their rows, ours say so."""
    hudi = readers.hudi["0.15.0"]
    table = with_history(path, readers.spark)
    before = readers.agree(table, "before")["snapshot"]
    compaction = planned(table, 1000).instant
    table.execute_compaction(readers.spark, compaction)
    assert isinstance(table.clean(policy="KEEP_LATEST_FILE_VERSIONS", retained=1), CleanResult)
    assert readers.agree(table, "cleaned")["snapshot"] == before
    with pytest.raises(InvalidInput, match="clean"):
        table.rollback(compaction)
    call(hudi, table, "rollback_to_instant", instant_time=compaction)
    assert len(hudi.read(table.path)) < len(before)
    with pytest.raises(CorruptTable, match="it is gone"):
        HudiTable.open(table.path, settings=STATED).snapshot_tasks()


@pytest.mark.parametrize("release", EACH)
@pytest.mark.slow
def test_our_unschedule(release: str, path: Path, readers: Readers) -> None:
    table = with_history(path, readers.spark)
    before = readers.agree(table, "before")["snapshot"]
    plan = planned(table, 12)
    assert any(op.carried_over for op in plan.operations)
    table.unschedule(plan.instant)
    goes_on(readers, table, release, before, "unscheduled")


@pytest.mark.parametrize("release", EACH)
@pytest.mark.slow
def test_our_restore(release: str, path: Path, readers: Readers) -> None:
    table = with_history(path, readers.spark)
    before = readers.agree(table, "before")["snapshot"]
    savepoint = table.savepoint()
    plan = planned(table, 12)
    table.execute_compaction(readers.spark, plan.instant)
    upsert(table, readers.spark, [0, 1, 20, 21], 60, 2)
    hudi_writes(readers.hudi[release], table, [0, 30], 70, 3)
    planned(table, 64)
    upsert(table, readers.spark, [0], 80, 4)
    table.restore(savepoint)
    timeline = readers.hudi[release].timeline(path)
    assert [i[1:] for i in timeline] == [
        ("deltacommit", "COMPLETED"),
        ("deltacommit", "COMPLETED"),
        ("savepoint", "COMPLETED"),
        ("restore", "COMPLETED"),
    ]
    goes_on(readers, table, release, before, "restored")


def test_hudi_rolls_our_commit_back(path: Path, readers: Readers) -> None:
    """Hudi 1.2.0's procedure cannot: on a table of version 6 it looks for the timeline of version 8."""
    release = "0.15.0"
    table = with_history(path, readers.spark)
    before = readers.agree(table, "before")["snapshot"]
    newest = upsert(table, readers.spark, [0, 1, 2], 60, 2)
    call(readers.hudi[release], table, "rollback_to_instant", instant_time=newest)
    assert not any(i.timestamp == newest for i in table.state().timeline.instants)
    goes_on(readers, table, release, before, "Hudi rolled back")


@pytest.mark.parametrize("release", EACH)
def test_hudi_takes_our_unfinished_write_back(release: str, path: Path, readers: Readers) -> None:
    table = with_history(path, readers.spark)
    before = readers.agree(table, "before")["snapshot"]
    rehearsal = shutil.copytree(path, path.with_name("rehearsal"))
    storage = DyingStorage(str(rehearsal))
    upsert(HudiTable(storage, table.config), readers.spark, [0, 1, 20, 21], 60, 2)
    n = next(n for n, op in enumerate(storage.operations, 1) if op.endswith(".deltacommit"))
    with pytest.raises(Crash):
        upsert(HudiTable(DyingStorage(table.path, n), table.config), readers.spark, [0, 1, 20, 21], 60, 2)
    assert table.state().timeline.inflight_writes
    hudi_writes(readers.hudi[release], table, [1, 40], 200, 7)
    assert not table.state().timeline.inflight_writes
    # 0.15.0 takes its rollback's instant after its write's, and its reader stops at a block that is later than the last
    # commit: it misses its own rows behind the rollback block until the next commit.
    upsert(table, readers.spark, [1, 41], 300, 8)
    after = readers.agree(table, "taken back, both wrote on")["snapshot"]
    assert {key for _, key in after} == {key for _, key in before} | {"k1", "k40", "k41"}
    assert not table.validate()


@pytest.mark.parametrize("release", EACH)
@pytest.mark.slow
def test_hudi_restores_our_savepoint(release: str, path: Path, readers: Readers) -> None:
    table = with_history(path, readers.spark)
    before = readers.agree(table, "before")["snapshot"]
    savepoint = table.savepoint()
    table.execute_compaction(readers.spark, planned(table, 12).instant)
    upsert(table, readers.spark, [0, 1, 20, 21], 60, 2)
    call(readers.hudi[release], table, "rollback_to_savepoint", instant_time=savepoint)
    goes_on(readers, table, release, before, "Hudi restored")


def dies_executing(table: HudiTable, session: Any, plan: Plan) -> None:
    """An executor of ours that dies right before its commit."""
    rehearsal = Path(table.path).with_name("rehearsal")
    shutil.copytree(table.path, rehearsal, symlinks=True)
    storage = DyingStorage(str(rehearsal))
    HudiTable(storage, table.config).execute_compaction(session, plan.instant)
    last = next(n for n, op in enumerate(storage.operations, 1) if op.endswith(f"{plan.instant}.commit"))
    with pytest.raises(Crash):
        HudiTable(DyingStorage(table.path, last), table.config).execute_compaction(session, plan.instant)
    assert list(Path(table.path).rglob("*.parquet"))


@pytest.mark.parametrize("release", EACH)
def test_hudi_rolls_our_attempt_back_and_executes(release: str, path: Path, readers: Readers) -> None:
    table = with_history(path, readers.spark)
    before = readers.agree(table, "before")["snapshot"]
    plan = planned(table, 12)
    dies_executing(table, readers.spark, plan)
    readers.hudi[release].compaction(path, "execute")
    assert table.pending_plan() is None
    goes_on(readers, table, release, before, "Hudi executed")


@pytest.mark.parametrize("release", EACH)
@pytest.mark.slow
def test_hudi_executes_after_our_rollback_of_an_attempt(release: str, path: Path, readers: Readers) -> None:
    table = with_history(path, readers.spark)
    before = readers.agree(table, "before")["snapshot"]
    plan = planned(table, 12)
    dies_executing(table, readers.spark, plan)
    assert table.rollback(plan.instant).still_planned
    assert readers.agree(table, "attempt rolled back")["snapshot"] == before
    readers.hudi[release].compaction(path, "execute")
    assert table.pending_plan() is None
    goes_on(readers, table, release, before, "Hudi executed")


@pytest.mark.parametrize("release", EACH)
@pytest.mark.slow
def test_hudi_finishes_our_rollback(release: str, path: Path, readers: Readers) -> None:
    """Our rollback dies after each of its steps; Hudi's next write ends it."""
    origin = with_history(path, readers.spark)
    newest = upsert(origin, readers.spark, [0, 1, 20, 21], 60, 2)
    rehearsal = shutil.copytree(path, path.with_name("rehearsal"))
    storage = DyingStorage(str(rehearsal))
    HudiTable(storage, origin.config).rollback(newest)
    before = Readers(readers.spark, {}).ours(HudiTable.open(str(rehearsal)), "snapshot")
    begun = next(n for n, op in enumerate(storage.operations, 1) if op.endswith(".rollback.requested"))
    ended = next(n for n, op in enumerate(storage.operations, 1) if op.endswith(".rollback"))
    for n in sorted({begun, begun + 1, begun + 2, begun + 4, ended - 1}):
        copy = Path(shutil.copytree(path, path.with_name(f"died-{n}")))
        with pytest.raises(Crash):
            HudiTable(DyingStorage(str(copy), n, after=True), origin.config).rollback(newest)
        table = HudiTable.open(str(copy))
        assert table.state().timeline.pending(Action.ROLLBACK), storage.operations[n - 1]
        hudi_writes(readers.hudi[release], table, [50], 400, 9)
        where = f"died after {storage.operations[n - 1]}"
        rows_now = readers.agree(table, where)["snapshot"]
        if any(i.timestamp == newest for i in table.state().timeline.instants):
            # Published and not begun: Hudi's writer takes only unfinished writes back, ours ends it.
            table.recover()
            rows_now = readers.agree(table, where)["snapshot"]
        assert {k: v for k, v in rows_now.items() if k[1] != "k50"} == before, where
        assert not table.state().timeline.pending(Action.ROLLBACK), where
        assert not table.validate(), where


@pytest.mark.parametrize("release", EACH)
def test_hudi_waits_for_our_restore(release: str, path: Path, readers: Readers) -> None:
    """While a restore of ours is unfinished, Hudi refuses to write; ours goes on with it."""
    table = with_history(path, readers.spark)
    before = readers.agree(table, "before")["snapshot"]
    savepoint = table.savepoint()
    upsert(table, readers.spark, [0, 1, 20, 21], 60, 2)
    storage = DyingStorage(str(shutil.copytree(path, path.with_name("rehearsal"))))
    HudiTable(storage, table.config).restore(savepoint)
    n = next(n for n, op in enumerate(storage.operations, 1) if op.endswith(".restore.inflight"))
    with pytest.raises(Crash):
        HudiTable(DyingStorage(table.path, n, after=True), table.config).restore(savepoint)
    with pytest.raises(HudiError, match=r"(?i)restore"):
        hudi_writes(readers.hudi[release], table, [50], 400, 9)
    assert table.recover()
    goes_on(readers, table, release, before, "restore finished")


@pytest.mark.parametrize("release", EACH)
def test_hudis_own_table(release: str, path: Path, readers: Readers) -> None:
    """Base files of inserts, a compaction of Hudi's, its savepoint and an unfinished write: all taken back here."""
    hudi = readers.hudi[release]
    options = hudi_options(name="t")
    data = [rows(range(8), lambda n: n, 0), rows(range(4, 10), lambda n: 20 + n, 1), rows([0, 30, 31], lambda n: 40, 2)]
    hudi.write(path, data[0], options)
    hudi.write(path, data[1], options)
    table = HudiTable.open(str(path), settings=STATED)
    before = readers.agree(table, "two commits")["snapshot"]
    hudi.write(path, data[2], options)
    newest = table.state().timeline.last_write
    assert newest is not None
    copy = HudiTable.open(str(shutil.copytree(path, path.with_name("unfinished"))), settings=STATED)
    table.rollback(newest)
    assert readers.agree(table, "rolled back")["snapshot"] == before
    assert not table.validate()

    (Path(copy.path) / f".hoodie/{newest}.deltacommit").unlink()
    assert readers.agree(copy, "unfinished")["snapshot"] == before
    copy.rollback(newest)
    assert readers.agree(copy, "unfinished one rolled back")["snapshot"] == before
    assert not copy.validate()

    savepoint = table.state().timeline.last_write
    assert savepoint is not None
    call(hudi, table, "create_savepoint", commit_time=savepoint)
    hudi.write(path, data[2], options)
    hudi.compaction(path, "run")
    hudi.write(path, rows([5, 32], lambda n: 90, 3), options)
    with pytest.raises(InvalidInput, match="Delete the savepoint first"):
        table.rollback(savepoint)
    table.restore(savepoint)
    assert readers.agree(table, "restored")["snapshot"] == before
    assert not table.validate()
    hudi.write(path, data[2], options)
    readers.agree(table, "Hudi wrote after the restore")


@pytest.mark.parametrize("release", EACH)
@pytest.mark.slow
def test_restore_over_an_insert_overwrite(release: str, path: Path, readers: Readers) -> None:
    """A replacecommit later than the savepoint goes, and the file groups that it replaced are back."""
    hudi = readers.hudi[release]
    table = with_history(path, readers.spark)
    table.execute_compaction(readers.spark, planned(table, 12).instant)
    before = readers.agree(table, "before")["snapshot"]
    savepoint = table.savepoint()
    options = hudi_options(name="t") | {"hoodie.datasource.write.operation": "insert_overwrite"}
    hudi.write(path, rows([0, 3, 60], lambda n: 100 + n, 3), options)
    assert table.state().timeline.completed(Action.REPLACE_COMMIT)
    assert len(readers.agree(table, "overwritten")["snapshot"]) != len(before)
    newest = table.state().timeline.last_write
    assert newest is not None
    with pytest.raises(InvalidInput, match="replacecommit is not rolled back here"):
        table.rollback(newest)
    table.restore(savepoint)
    goes_on(readers, table, release, before, "restored")


@pytest.mark.slow
def test_bucket_group_that_was_new_vanishes(path: Path, readers: Readers) -> None:
    table = Shape().create(path)
    upsert(table, readers.spark, [0], 0, 0)
    before = readers.agree(table, "one group")["snapshot"]
    groups = set(table.state().view.groups)
    newest = upsert(table, readers.spark, range(12), 60, 2)
    assert set(table.state().view.groups) > groups
    table.rollback(newest)
    assert set(table.state().view.groups) == groups
    goes_on(readers, table, "0.15.0", before, "groups gone")


@pytest.mark.slow
def test_blocks_of_several_commits_in_one_log_file(path: Path, readers: Readers) -> None:
    """As appends on HDFS make them: the log file stays, and a rollback block takes our part of it back."""
    table = Shape(buckets=1, partition_fields=()).create(path)
    upsert(table, readers.spark, range(6), 0, 0)
    second = upsert(table, readers.spark, range(3), 30, 1)
    before = readers.ours(table, "snapshot")
    newest = upsert(table, readers.spark, range(2, 5), 60, 2)
    logs = {log.version: path / log.path for log in table.state().remaining_logs}
    logs[2].write_bytes(logs[2].read_bytes() + logs[3].read_bytes())
    logs[3].unlink()
    commit = path / f".hoodie/{newest}.deltacommit"
    commit.write_text(commit.read_text().replace(logs[3].name, logs[2].name))
    assert readers.agree(table, "appended")["snapshot"] != before
    result = table.rollback(newest)
    assert (result.files_deleted, result.rollback_blocks) == (0, 1)
    assert logs[2].exists()
    assert readers.agree(table, "rolled back by block")["snapshot"] == before
    assert any(i.timestamp == second for i in table.state().timeline.instants)
    upsert(table, readers.spark, [0, 9], 90, 3)
    readers.agree(table, "written on")
