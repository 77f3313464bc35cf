"""Beside Apache Hudi with more in its metadata table than files and column statistics, and writes that look keys up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_assets.engine import HudiTable
from hudi_assets.engine.errors import UnsupportedTable
from hudi_assets.engine.queries.query import read_task
from hudi_assets.engine.table.metadata.partitions import named, table_properties
from scripts.hudi_client import Hudi
from scripts.hudi_rows import by_key, differences, read_with_hudi_rs
from tests.interop.beside import BATCHES, ON, Beside
from tests.interop.tables import START, rows

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(1800)]

LOCK = {"hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider"}
RECORD_INDEX = {
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.global.record.level.index.enable": "true",
}
SECONDARY = "secondary_index_idx_big"
EXPRESSION = "expr_index_idx_day"


def partitions(beside: Beside) -> set[str]:
    return set(named(table_properties(beside.table.state().storage)["hoodie.table.metadata.partitions"]))


def create_index(beside: Beside, statement: str) -> None:
    """By SQL, on the table of the catalog at its path."""
    options = {**beside.options, **LOCK}
    settings = {key: options[key] for key in options if key.startswith(("hoodie.metadata.", "hoodie.write."))}
    for key, value in settings.items():
        beside.hudi.ask("sql", statement=f"set {key}={value}")
    name = f"t{abs(hash(beside.path))}"
    beside.hudi.ask("sql", statement=f"create table if not exists {name} using hudi location '{beside.path}'")
    beside.hudi.ask("sql", statement=statement.format(table=name))
    for key in settings:  # the session is other tests' too
        beside.hudi.ask("sql", statement=f"reset {key}")


def finds(beside: Beside, numbers: list[int], step: str) -> None:
    """By the indexed column: each key by its value of today, and none by a value that it had."""
    now = {row["id"]: row["big"] for row in beside.hudi.read(beside.path, options=ON).to_pylist()}
    known = {f"k{number}": now[f"k{number}"] for number in numbers}
    written = {value for mark in range(4) for value in rows(numbers, lambda n: n, mark).column("big").to_pylist()}
    assert set(known.values()) < written
    for values in (set(known.values()), written - set(known.values())):
        where = f"big in ({', '.join(map(str, values))})"
        found = beside.hudi.read(beside.path, options=ON, where=where).to_pylist()
        expected = {key: value for key, value in known.items() if value in values}
        assert {row["id"]: row["big"] for row in found} == expected, step


@pytest.mark.parametrize("version", [8, 9])
def test_a_secondary_index_beside_our_compaction(version: int, hudi_1_2: Hudi, session: Any, path: Path) -> None:
    """It names keys, and the record index their file groups: a compaction changes neither."""
    beside = Beside(hudi_1_2, path, version, session, "RECORD_INDEX", RECORD_INDEX)
    beside.hudi_writes(range(9), 0, 0)
    create_index(beside, "create index idx_big on {table} (big)")
    assert {"record_index", SECONDARY} <= partitions(beside)
    beside.hudi_writes([0, 1, 2], 30, 1)
    beside.hudi_writes([4, 5], 60, 2)
    finds(beside, [0, 4, 6], "before")
    beside.compact(45)
    assert SECONDARY in partitions(beside)
    beside.is_true("our compaction")
    finds(beside, [0, 4, 6], "our compaction")
    beside.hudi_writes([0, 6, 9], 100, 3)
    finds(beside, [0, 4, 6, 9], "their write after it")
    beside.compact(1000)
    finds(beside, [0, 4, 6, 9], "our full compaction")
    with pytest.raises(UnsupportedTable, match="RECORD_INDEX"):
        beside.we_write([0], 110, 4)
    assert SECONDARY in partitions(beside)
    beside.is_true("the end")


def test_an_expression_index_is_switched_off(hudi_1_2: Hudi, session: Any, path: Path) -> None:
    """It has to know every base file: a compaction of ours is refused, or Hudi's next write builds it anew."""
    beside = Beside(hudi_1_2, path, 9, session, "BUCKET", RECORD_INDEX)
    for mark, (numbers, start) in enumerate(BATCHES):
        beside.hudi_writes(numbers, start, mark)
    expression = "create index idx_day on {table} using column_stats(ts) options(expr='from_unixtime', format='yyyy')"
    create_index(beside, expression)
    assert EXPRESSION in partitions(beside)
    with pytest.raises(UnsupportedTable, match=EXPRESSION):
        beside.plan(32)
    before = beside.is_true("refused")
    willing = HudiTable.open(str(path), settings={**beside.settings, "hudi_assets.metadata.switch.off": "true"})
    plan = willing.plan_compaction(threshold=START + 32 * 60_000)
    willing.execute_compaction(session, plan.instant)  # type: ignore[union-attr]
    assert EXPRESSION not in partitions(beside)
    assert beside.is_true("our compaction") == before
    beside.hudi_writes([0, 12], 100, 20)
    assert EXPRESSION in partitions(beside)
    after = beside.is_true("their write")
    # Milliseconds taken for seconds: the years have five digits, and a plus sign before them.
    by_year = beside.hudi.read(path, options=ON, where="from_unixtime(ts, 'yyyy') < '1970'")
    assert not differences(after, by_key(by_year))


LOOKED_UP = [
    pytest.param(release, version, index, id=f"{release}-v{version}-{index}")
    for release, version in (("0.15.0", 6), ("1.2.0", 6), ("1.2.0", 8), ("1.2.0", 9))
    for index in ("BLOOM", "SIMPLE")
]


@pytest.mark.parametrize(("release", "version", "index"), LOOKED_UP)
def test_our_writes_that_look_keys_up(
    release: str, version: int, index: str, request: pytest.FixtureRequest, session: Any, path: Path
) -> None:
    """They write base files by delta commits: new ones, and new versions of small ones, all listed."""
    hudi: Hudi = request.getfixturevalue("hudi_0_15" if release == "0.15.0" else "hudi_1_2")
    beside = Beside(hudi, path, version, session, index)
    beside.hudi_writes(range(6), 0, 0)
    beside.we_write([0, 1, 6, 7], 20, 10, **beside.willing)
    assert len(beside.is_true("our inserts into Hudi's base files")) == 8
    beside.hudi_writes([1, 6, 8], 40, 11)
    before = beside.is_true("their write after ours")
    beside.we_write([2, 6, 8, 9, 10], 60, 12, **beside.willing)
    assert len(beside.is_true("our write beside log files")) == 11
    beside.table.rollback(beside.table.state().timeline.last_write or "")
    assert beside.is_true("our write taken back") == before
    beside.we_write([2, 8, 9], 62, 13, **beside.willing)
    beside.compact(45)
    beside.is_true("our compaction")
    beside.hudi_writes([2, 3, 9, 11], 90, 14)
    after = beside.is_true("their write after it")
    assert len(after) == 11
    beside.hudi_compacts("run")
    assert beside.is_true("their compaction") == after


def test_hudi_rs_shows_no_group_of_log_files_alone(hudi_1_2: Hudi, session: Any, path: Path) -> None:
    """Where it goes by the metadata table, whoever wrote that: here Hudi itself, without blocking other writers."""
    alone = {
        "hoodie.table.type": "MERGE_ON_READ",
        "hoodie.index.bucket.engine": "SIMPLE",
        "hoodie.write.concurrency.mode": "NON_BLOCKING_CONCURRENCY_CONTROL",
        "hoodie.cleaner.policy.failed.writes": "LAZY",
        "hoodie.clean.failed.writes.policy": "LAZY",
        **LOCK,
    }
    beside = Beside(hudi_1_2, path, 9, session, "BUCKET", alone)
    beside.hudi_writes([0, 3, 6], 0, 0)
    assert not list(path.rglob("*.parquet"))
    shown = beside.snapshot()
    assert len(shown) == 3
    tasks = beside.table.snapshot_tasks()
    ours = by_key(pa.Table.from_batches([batch for task in tasks for batch in read_task(task)]))
    assert not differences(ours, shown)
    assert read_with_hudi_rs(str(path), "snapshot").num_rows == 0
