"""A crash at every storage operation of a bulk insert: its base files come all together or not at all."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from hudi_assets.engine import HudiTable
from tests.crash.faulty import faults
from tests.crash.tables import no_strays, snapshot
from tests.crash.test_lookup_crashes import batch, new_table
from tests.tables.local_session import LocalSession
from tests.tables.metadata import switch_on
from tests.tables.steps import rows_in


@pytest.fixture(params=[6, pytest.param(8, marks=pytest.mark.thorough), 9])
def path(session: LocalSession, tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """Partition a has rows in log files; partitions b and c are not there yet."""
    path = tmp_path / "table"
    table = new_table(path, request.param, buckets=2)
    table.upsert(session, batch(session, 1, (1, 10, "a"), (2, 20, "a")))  # type: ignore[arg-type]
    return path


def read_optimized(table: HudiTable) -> set[tuple[int, int, int]]:
    found = rows_in(table.read_optimized_tasks())
    assert len(found) == len({r["id"] for r in found})
    return {(r["id"], r["ts"], r["v"]) for r in found}


@pytest.mark.parametrize("metadata_table", [False, True], ids=["metadata-off", "metadata-on"])
def test_bulk_insert(session: LocalSession, path: Path, tmp_path: Path, metadata_table: bool) -> None:
    if metadata_table:
        path = make_with_metadata_table(session, path, tmp_path)
    before = snapshot(HudiTable.open(str(path)))
    rows = batch(session, 3, (3, 50, "b"), (4, 60, "b"), (5, 70, "b"), (6, 80, "c"), (6, 90, "c"))

    def load(table: HudiTable) -> None:
        table.bulk_insert(session, rows, batch_id="b")  # type: ignore[arg-type]

    reference = HudiTable.open(str(shutil.copytree(path, tmp_path / "reference")))
    load(reference)
    came = {(3, 50, 3), (4, 60, 3), (5, 70, 3), (6, 90, 3)}
    done = before | came
    assert snapshot(reference) == done
    for copy, where in faults(path, tmp_path, load):
        table = HudiTable.open(str(copy))
        assert (snapshot(table), read_optimized(table)) in ((before, set()), (done, came)), where
        load(table)
        assert (snapshot(table), read_optimized(table)) == (done, came), where
        table.recover()
        no_strays(table)
        # A base file of the dead attempt would count once the timeline's start has passed it.
        assert len(list(copy.rglob("*.parquet"))) == len(list(Path(reference.path).rglob("*.parquet"))), where
        assert not table.validate(), where


def make_with_metadata_table(session: LocalSession, path: Path, tmp_path: Path) -> Path:
    """The same table, written with a metadata table from its first row on."""
    version = HudiTable.open(str(path)).config.table_version
    made = tmp_path / "with-metadata-table"
    switch_on(new_table(made, version, buckets=2))
    table = HudiTable.open(str(made))
    table.upsert(session, batch(session, 1, (1, 10, "a"), (2, 20, "a")))  # type: ignore[arg-type]
    return made
