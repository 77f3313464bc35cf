"""A crash at every storage operation of what writes Hudi's metadata table beside the table.

At each fault the table is read *through* the metadata table, as Hudi's readers do, by the rules of 0.15 and of
1.x for what counts in it: the answer is that of before or of after. The next run makes it list what is there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hudi_assets.engine import HudiTable
from hudi_assets.engine.format.avro.schema import META_COLUMNS
from hudi_assets.engine.model import Action
from hudi_assets.engine.queries.query import read_task, snapshot_tasks
from hudi_assets.engine.storage import FileInfo
from hudi_assets.engine.table.metadata.column_stats import COLUMN_STATS
from hudi_assets.engine.table.metadata.own_timeline import ROOT, OwnTimeline
from hudi_assets.engine.table.metadata.reader import ValidInstants, merged_records
from hudi_assets.engine.table.metadata.records import PARTITION_LIST_KEY, partition_path
from hudi_assets.engine.table.metadata.slices import files_slice
from hudi_assets.engine.table.state import TableState
from hudi_assets.engine.transaction.clean import CleanResult
from tests.crash import faulty
from tests.crash.tables import SCHEMA, Rows, new_table, on_timeline, planned, rows_of, write, write_batches
from tests.tables.metadata import column_stats, in_metadata_table, on_disk, switch_on
from tests.tables.steps import with_properties

# So many that both file groups of column_stats surely get entries: each run has the same operations.
INDEXED = (*META_COLUMNS, *SCHEMA.names)


class OldRules(ValidInstants):
    """What counts in the metadata table for 0.15: instants completed in the data table, and its own suffixed ones."""

    def __contains__(self, timestamp: object) -> bool:
        if not isinstance(timestamp, str):
            return False
        done = {i.timestamp for i in self.data.instants if i.is_completed}
        own = {i.timestamp for i in self.own.completed(Action.DELTA_COMMIT)}
        suffixed = len(timestamp) == 20 or timestamp.startswith("0000")
        return timestamp in done or (suffixed and timestamp in own)


RULES = (ValidInstants, OldRules)


def through_metadata_table(table: HudiTable, rules: type[ValidInstants]) -> Rows:
    """The snapshot that a reader gets which believes the metadata table instead of listing."""
    state = table.state()
    own = OwnTimeline.read(state.storage, state.layout)
    records = merged_records(state.storage, files_slice(state.storage, state.layout, own), rules(own, state.timeline))
    listing = {}
    for key, record in records.items():
        if key != PARTITION_LIST_KEY:
            folder = partition_path(key)
            listing[folder] = [FileInfo(f"{folder}/{name}".lstrip("/"), size) for name, size in record.present.items()]
    seen = replace(state)
    seen.__dict__["listing"] = listing
    return _rows_of(seen)


def _rows_of(state: TableState) -> Rows:
    return rows_of([batch for task in snapshot_tasks(state) for batch in read_task(task)])


def snapshot(table: HudiTable) -> Rows:
    """As it is listed; through the metadata table it is the same."""
    rows = _rows_of(table.state())
    for rules in RULES if table.config.table_version == 6 else RULES[:1]:
        assert through_metadata_table(table, rules) == rows, rules
    return rows


def create(path: Path, version: int = 6, properties: Mapping[str, str] | None = None) -> HudiTable:
    table = new_table(path, version)
    # On version 6 the files partition alone; on 8 and 9 column statistics of base files too.
    switch_on(table, *([] if version == 6 else [COLUMN_STATS]), indexed=None if version == 6 else INDEXED)
    return with_properties(table, {"hudi_assets.query.grace": "0s", **(properties or {})})


@pytest.fixture(params=[*(pytest.param(version, marks=pytest.mark.thorough) for version in (6, 8)), 9])
def version(request: pytest.FixtureRequest) -> int:
    number: int = request.param
    return number


@pytest.fixture
def path(session: Any, tmp_path: Path, version: int) -> Path:
    """Two file groups with three log files each: two to compact at THRESHOLD, one remains."""
    table = create(tmp_path / "table", version)
    path = write_batches(table, session)
    assert in_metadata_table(table) == on_disk(table)
    return path


def faults(
    path: Path, tmp_path: Path, action: Callable[[HudiTable], object], *, writes: bool = True
) -> Iterator[tuple[HudiTable, str]]:
    """The table after `action` died in it, for each fault; and what it died of.

    `writes`: the action changes the metadata table.
    """
    written = False
    for copy, where in faulty.faults(path, tmp_path, action):
        written |= ROOT in where
        yield HudiTable.open(str(copy)), where
    assert written == writes, "the metadata table was not written"


def is_true(table: HudiTable, where: str) -> None:
    """The metadata table lists what is there, and nothing in it is unfinished."""
    assert in_metadata_table(table) == on_disk(table), where
    if table.config.table_version != 6:
        base_files = {name for files in on_disk(table).values() for name in files if name.endswith(".parquet")}
        assert column_stats(table).keys() == {(name, column) for name in base_files for column in INDEXED}, where
    state = table.state()
    assert list(OwnTimeline.read(state.storage, state.layout).unfinished) == [], where
    assert table.validate() == (), where


def test_write(session: Any, path: Path, tmp_path: Path) -> None:
    before = snapshot(HudiTable.open(str(path)))
    for victim, where in faults(path, tmp_path, lambda t: write(t, session, 4, 9_500)):
        seen = snapshot(victim)
        done = seen != before
        victim.recover()
        assert snapshot(victim) == seen, where
        if not done:
            write(victim, session, 4, 9_500)
        write(victim, session, 20, 9_900)
        assert {r for r in snapshot(victim) if r[0] < 20} != before, where
        is_true(victim, where)


def test_plan(session: Any, path: Path, tmp_path: Path, version: int) -> None:
    before = snapshot(HudiTable.open(str(path)))
    for victim, where in faults(path, tmp_path, planned, writes=version == 6):
        assert snapshot(victim) == before, where
        victim.recover()
        is_true(victim, where)
        if victim.pending_plan() is None:
            planned(victim)
        write(victim, session, 20, 9_900)
        pending = victim.pending_plan()
        assert pending is not None
        victim.execute_compaction(session, pending.instant)
        assert {r for r in snapshot(victim) if r[0] < 20} == before, where
        is_true(victim, where)


def test_execution(session: Any, path: Path, tmp_path: Path) -> None:
    table = HudiTable.open(str(path))
    before, plan = snapshot(table), planned(table)
    for victim, where in faults(path, tmp_path, lambda t: t.execute_compaction(session, plan.instant)):
        assert snapshot(victim) == before, where
        write(victim, session, 20, 9_900)  # what another writer records meanwhile stays
        pending = victim.pending_plan()
        if pending is not None:
            victim.execute_compaction(session, pending.instant)
        victim.recover()
        assert {r for r in snapshot(victim) if r[0] < 20} == before, where
        is_true(victim, where)


def test_rollback_of_a_commit(session: Any, path: Path, tmp_path: Path) -> None:
    table = HudiTable.open(str(path))
    before = snapshot(table)
    newest = write(table, session, 4, 9_500)
    with_it = snapshot(table)
    for victim, where in faults(path, tmp_path, lambda t: t.rollback(newest)):
        assert snapshot(victim) in (before, with_it), where
        victim.recover()
        if on_timeline(victim, newest):
            victim.rollback(newest)
        assert snapshot(victim) == before, where
        is_true(victim, where)
        write(victim, session, 4, 9_500)
        assert snapshot(victim) == with_it, where
        is_true(victim, where)


def test_rollback_of_a_commit_that_the_metadata_table_has_compacted(session: Any, path: Path, tmp_path: Path) -> None:
    table = HudiTable.open(str(path))
    before = snapshot(table)
    newest = write(table, session, 4, 9_500)
    _compact_metadata_table(table)
    for victim, where in faults(path, tmp_path, lambda t: t.rollback(newest)):
        victim.recover()
        if on_timeline(victim, newest):
            victim.rollback(newest)
        assert snapshot(victim) == before, where
        is_true(victim, where)
        write(victim, session, 4, 9_500)
        is_true(victim, where)


def _compact_metadata_table(table: HudiTable) -> None:
    metadata_table = table._table.publisher.metadata_table
    assert metadata_table is not None
    metadata_table._compaction.compact()


def test_rollback_of_a_compaction(session: Any, path: Path, tmp_path: Path) -> None:
    table = HudiTable.open(str(path))
    before, plan = snapshot(table), planned(table)
    table.execute_compaction(session, plan.instant)
    is_true(table, "executed")
    for victim, where in faults(path, tmp_path, lambda t: t.rollback(plan.instant)):
        assert snapshot(victim) == before, where
        victim.recover()
        if on_timeline(victim, plan.instant):
            victim.rollback(plan.instant)
        assert snapshot(victim) == before, where
        is_true(victim, where)


def test_unschedule(session: Any, path: Path, tmp_path: Path, version: int) -> None:
    table = HudiTable.open(str(path))
    before, plan = snapshot(table), planned(table)
    for victim, where in faults(path, tmp_path, lambda t: t.unschedule(plan.instant), writes=version == 6):
        assert snapshot(victim) == before, where
        victim.recover()
        if victim.pending_plan() is not None:
            victim.unschedule(plan.instant)
        assert snapshot(victim) == before, where
        is_true(victim, where)


def test_clean(session: Any, path: Path, tmp_path: Path) -> None:
    table = HudiTable.open(str(path))
    before, plan = snapshot(table), planned(table)
    table.execute_compaction(session, plan.instant)

    def clean(victim: HudiTable) -> None:
        assert isinstance(victim.clean(policy="KEEP_LATEST_FILE_VERSIONS", retained=1), CleanResult)

    for victim, where in faults(path, tmp_path, clean):
        assert snapshot(victim) == before, where
        victim.recover()
        victim.clean(policy="KEEP_LATEST_FILE_VERSIONS", retained=1)
        assert snapshot(victim) == before, where
        is_true(victim, where)


@pytest.mark.slow
def test_restore(session: Any, path: Path, tmp_path: Path) -> None:
    table = HudiTable.open(str(path))
    before = snapshot(table)
    savepoint = table.savepoint()
    plan = planned(table)
    write(table, session, 4, 9_500)
    table.execute_compaction(session, plan.instant)
    write(table, session, 30, 9_600)
    for victim, where in faults(path, tmp_path, lambda t: t.restore(savepoint)):
        began = bool(victim.state().timeline.pending(Action.RESTORE))
        victim.recover()
        if not began:
            victim.restore(savepoint)
        assert snapshot(victim) == before, where
        is_true(victim, where)


def test_write_that_compacts_the_metadata_table(session: Any, tmp_path: Path, version: int) -> None:
    path = tmp_path / "table"
    table = create(path, version, {"hoodie.metadata.compact.max.delta.commits": "2"})
    write_batches(table, session)
    before = snapshot(table)
    for victim, where in faults(path, tmp_path, lambda t: write(t, session, 4, 9_500)):
        seen = snapshot(victim)
        victim.recover()
        assert snapshot(victim) == seen, where
        if seen == before:
            write(victim, session, 4, 9_500)
        write(victim, session, 20, 9_900)
        is_true(victim, where)
        state = victim.state()
        own = OwnTimeline.read(state.storage, state.layout)
        assert len(own.completed(Action.COMMIT)) >= 2, where
        assert len(list(Path(victim.path, ROOT, "files").glob("*.hfile"))) <= 3, where  # the next compaction cleans
        assert len(files_slice(state.storage, state.layout, own).logs) <= 3, where
