"""Our bulk insert beside Apache Hudi: it reads the base files, upserts into their file groups, and compacts them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_assets.engine import HudiTable
from hudi_assets.engine.queries.query import ReadTask, read_task
from hudi_assets.engine.transaction.publish import Publisher
from scripts.hudi_client import Hudi
from scripts.hudi_rows import Rows, by_key, differences, read_with_hudi_rs
from tests.interop.beside import SETTINGS, Beside, frame
from tests.interop.tables import START, Shape, hudi_options, rows

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(1800)]

RELEASES = [pytest.param(("0.15.0", 6), id="0.15.0-v6"), pytest.param(("1.2.0", 9), id="1.2.0-v9")]


@pytest.fixture(params=RELEASES)
def beside(request: pytest.FixtureRequest, path: Path, session: Any) -> Beside:
    release, version = request.param
    hudi: Hudi = request.getfixturevalue({"0.15.0": "hudi_0_15", "1.2.0": "hudi_1_2"}[release])
    return Beside(hudi, path, version, session)


def ours(tasks: list[ReadTask]) -> Rows:
    return by_key(pa.Table.from_batches([batch for task in tasks for batch in read_task(task)]))


def same(answer: Rows, other: Rows, step: str) -> None:
    assert not (unlike := differences(answer, other)), f"{step}:\n" + "\n".join(unlike)


def willing(beside: Beside) -> HudiTable:
    """The table with leave to switch off what a write of ours would make untrue in its metadata table (1.2.0's)."""
    return HudiTable.open(str(beside.path), settings={**SETTINGS, "hudi_assets.metadata.switch.off": "true"})


def test_hudi_reads_and_goes_on(beside: Beside) -> None:
    """A table that is ours: both views of everybody after the load, after Hudi's upsert and both compactions."""
    hudi, path = beside.hudi, beside.path
    table = Shape(options={"table_version": beside.version}).create(path)
    twice = pa.concat_tables([rows(range(12), lambda n: n, 0), rows([3], lambda n: 1, 1)])
    done = table.bulk_insert(beside.session, frame(twice))
    assert done.instant is not None
    loaded = ours(table.read_optimized_tasks())
    first = rows(range(12), lambda n: n, 0).to_pylist()
    assert {key: row["text"] for (_, key), row in loaded.items()} == {row["id"]: row["text"] for row in first}
    for view in ("snapshot", "read_optimized"):
        same(loaded, by_key(hudi.read(path, view)), f"Hudi's {view} of the load")
        same(loaded, by_key(read_with_hudi_rs(str(path), view)), f"hudi-rs's {view} of the load")
    same(loaded, by_key(hudi.read(path, "time_travel", as_of=done.instant)), "Hudi's time travel to the load")

    options = {**hudi_options(name="t"), "hoodie.write.table.version": str(beside.version)}
    options["hoodie.write.auto.upgrade"] = "false"
    hudi.write(path, rows([0, 1, 12], lambda n: 20 + n, 1), options)
    table = HudiTable.open(str(path), settings=SETTINGS)
    upserted = ours(table.snapshot_tasks())
    assert len(upserted) == 13
    same(upserted, by_key(hudi.read(path, "snapshot")), "Hudi's upsert into our base files")
    same(loaded, by_key(hudi.read(path, "read_optimized")), "the read-optimized view beside Hudi's log files")
    plan = table.plan_compaction(threshold=START + 10**9)
    table.execute_compaction(beside.session, plan.instant)  # type: ignore[union-attr]
    same(upserted, by_key(hudi.read(path, "read_optimized")), "our compaction")
    hudi.write(path, rows([2, 13], lambda n: 60 + n, 2), options)
    hudi.compaction(path, "run")
    last = ours(HudiTable.open(str(path), settings=SETTINGS).read_optimized_tasks())
    assert len(last) == 14
    same(last, by_key(hudi.read(path, "read_optimized")), "Hudi's compaction")


def test_into_new_partitions_of_a_table_with_a_metadata_table(beside: Beside) -> None:
    """Hudi's own table: it finds our base files through its metadata table, and compacts them."""
    beside.hudi_writes(range(0, 12, 3), 0, 0)
    fresh = [n for n in range(12) if n % 3]
    willing(beside).bulk_insert(beside.session, frame(beside.batch(fresh, 0, 1)))
    assert len(beside.is_true("bulk insert")) == 12
    beside.hudi_writes([0, 1, 2], 30, 2)
    beside.is_true("Hudi's upsert")
    beside.compact(1000)
    assert len(beside.is_true("our compaction")) == 12


def test_a_dead_one_is_taken_back_by_hudi(beside: Beside, monkeypatch: pytest.MonkeyPatch) -> None:
    """Our process is gone before its commit: Hudi's next write removes the base files that the markers name."""
    beside.hudi_writes(range(0, 12, 3), 0, 0)
    with monkeypatch.context() as patch:
        patch.setattr(Publisher, "commit_write", _die)
        with pytest.raises(Gone):
            willing(beside).bulk_insert(beside.session, frame(beside.batch([1, 2], 0, 1)))
    assert list(beside.path.glob("p=b/*.parquet"))
    beside.hudi_writes([0], 30, 2)
    assert not list(beside.path.glob("p=b/*.parquet"))
    assert len(beside.is_true("after Hudi's rollback")) == 4


class Gone(BaseException):
    """The end of a process: nothing of the engine sees to what it leaves."""


def _die(*_: object) -> None:
    raise Gone
