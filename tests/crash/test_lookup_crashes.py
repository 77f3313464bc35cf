"""A crash at every storage operation of a write that finds its keys: its base files come whole or not at all."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_assets.engine import HudiTable
from tests.crash.faulty import faults
from tests.crash.tables import no_strays, snapshot
from tests.tables.local_session import LocalSession
from tests.tables.other_index import of_index

SCHEMA = pa.schema([("id", pa.int64()), ("ts", pa.int64()), ("v", pa.int64()), ("p", pa.string())])


def batch(session: LocalSession, v: int, *rows: tuple[int, int, str]) -> object:
    return session.rows([{"id": i, "ts": ts, "v": v, "p": p} for i, ts, p in rows], SCHEMA)


def new_table(path: Path, version: int, *, buckets: int = 4) -> HudiTable:
    return HudiTable.create(
        str(path),
        SCHEMA,
        record_key=["id"],
        ordering_field="ts",
        partition_fields=["p"],
        buckets=buckets,
        table_version=version,
    )


@pytest.fixture(params=[6, pytest.param(8, marks=pytest.mark.thorough), 9])
def path(session: LocalSession, tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """Partition a: a file group with a log file; partition b: a small file."""
    path = tmp_path / "table"
    table = of_index(new_table(path, request.param), "SIMPLE", **{"hoodie.index.bloom.num_entries": "20"})
    table.upsert(session, batch(session, 1, (1, 10, "a"), (2, 20, "a"), (3, 30, "b")))  # type: ignore[arg-type]
    table.upsert(session, batch(session, 2, (1, 40, "a")))  # type: ignore[arg-type]
    return path


def test_write(session: LocalSession, path: Path, tmp_path: Path) -> None:
    """A log file, a new file group and a grown one in one commit."""
    before = snapshot(HudiTable.open(str(path)))
    rows = batch(session, 3, (2, 50, "a"), (4, 60, "a"), (3, 70, "b"), (5, 80, "b"), (6, 90, "c"))

    def write(table: HudiTable) -> None:
        table.upsert(session, rows, batch_id="b")  # type: ignore[arg-type]

    reference = HudiTable.open(str(shutil.copytree(path, tmp_path / "reference")))
    write(reference)
    done = snapshot(reference)
    assert done == {(1, 40, 2), (2, 50, 3), (3, 70, 3), (4, 60, 3), (5, 80, 3), (6, 90, 3)}
    for copy, where in faults(path, tmp_path, write):
        table = HudiTable.open(str(copy))
        assert snapshot(table) in (before, done), where
        write(table)
        assert snapshot(table) == done, where
        table.recover()
        no_strays(table)
        files = [len(t.state().view.base_files) for t in (table, reference)]
        assert files[0] == files[1], where
        assert not table.validate()
