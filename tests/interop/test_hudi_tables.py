"""Tables that Apache Hudi writes: our engine compacts them on event time, and Hudi goes on using them."""

from __future__ import annotations

from functools import partial
from operator import add
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_assets.engine import HudiTable
from scripts.hudi_client import Hudi
from scripts.hudi_rows import Rows, by_key, differences
from tests.interop.readers import History, Readers, same_incremental, same_time_travel
from tests.interop.tables import Shape, compacted, copy_of, frame, hudi_options, planned, rows

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]

SETTINGS = {
    "hudi_assets.writers": "stopped",
    "hoodie.payload.event.time.field": "ts",
    "hudi_assets.event.time.unit": "ms",
}
BATCHES = [(range(9), 0), ([0, 1, 2, 9], 30), ([3, 4, 5], 60), ([1, 9, 10], 90)]


def written_by(hudi: Hudi, path: Path, options: dict[str, str]) -> HudiTable:
    """Four upserts and a delete by Hudi: a base file and four or five log files in the fullest file group."""
    for mark, (numbers, start) in enumerate(BATCHES):
        hudi.write(path, rows(numbers, partial(add, start), mark), options)
    keys = rows([6], lambda n: 100, 9)
    hudi.write(path, keys, {**options, "hoodie.datasource.write.operation": "delete"})
    return HudiTable.open(str(path), settings=SETTINGS)


def of(hudi: Hudi, path: Path, view: str = "snapshot") -> Rows:
    return by_key(hudi.read(path, view))


def values(answer: Rows) -> dict[tuple[str, str], dict[str, object]]:
    """Rows without Hudi's meta columns: what an expectation made by hand can say."""
    return {
        key: {name: value for name, value in row.items() if not name.startswith("_hoodie_")}
        for key, row in answer.items()
    }


CASES = [
    pytest.param({}, {}, id="avro-logs"),
    pytest.param({}, {"hoodie.logfile.data.block.format": "parquet"}, id="parquet-logs", marks=pytest.mark.slow),
    pytest.param({"record_key": ("id", "region")}, {}, id="complex-key", marks=pytest.mark.slow),
    pytest.param({"partition": ""}, {}, id="unpartitioned", marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("layout", "more"), CASES)
def test_hudi_writes_we_compact_hudi_goes_on(
    layout: dict[str, object], more: dict[str, str], path: Path, readers: Readers
) -> None:
    hudi = readers.hudi["0.15.0"]
    options = hudi_options(name="t", **layout, **more)  # type: ignore[arg-type]
    table = written_by(hudi, path, options)
    before = readers.agree(table, "written by Hudi")
    result = compacted(table, readers.spark, 40)
    assert result.logs_compacted > 0
    assert result.logs_remaining > 0, "nothing was carried over, so this tests too little"
    after = readers.agree(table, "compacted by us")
    assert not differences(before["snapshot"], after["snapshot"])
    assert len(after["read_optimized"]) >= len(before["read_optimized"])

    more_rows = rows([0, 7, 11], lambda n: 120 + n, 5)
    hudi.write(path, more_rows, options)
    appended = readers.agree(table, "Hudi appended")
    expected = {**values(before["snapshot"]), **values(by_key(with_meta(more_rows, table)))}
    assert values(appended["snapshot"]) == expected

    compacted(table, readers.spark, 75)
    # Hudi plans nothing without a delta commit after the last compaction.
    hudi.write(path, rows([8], lambda n: 150, 6), options)
    last = readers.agree(table, "compacted by us again, Hudi appended")
    hudi.compaction(path, "run")
    hudi.clean(path)
    full = readers.agree(table, "Hudi's own full compaction and clean")
    assert full["snapshot"] == last["snapshot"]
    assert full["read_optimized"]


def with_meta(written: pa.Table, table: HudiTable) -> pa.Table:
    """The rows with the two meta columns that `by_key` needs, as Hudi's key generators fill them."""
    config = table.config
    keys, partitions = [], []
    for row in written.to_pylist():
        pairs = [f"{name}:{row[name]}" for name in config.record_key]
        keys.append(",".join(pairs) if len(pairs) > 1 else row[config.record_key[0]])
        partitions.append("/".join(f"{name}={row[name]}" for name in config.partition_fields))
    return written.append_column("_hoodie_partition_path", pa.array(partitions, pa.string())).append_column(
        "_hoodie_record_key", pa.array(keys, pa.string())
    )


def test_hudi_cleans_the_slice_that_carried_over_logs_came_from(path: Path, readers: Readers) -> None:
    """The old slice goes, with the names the carried-over logs first had; their rows stay."""
    hudi = readers.hudi["0.15.0"]
    options = hudi_options(name="t")
    table = written_by(hudi, path, options)
    before = of(hudi, path)
    result = compacted(table, readers.spark, 40)
    assert result.logs_remaining > 0
    hudi.clean(path)
    carried = table.carried_over()
    assert any(not (path / c.target).exists() for c in carried), "Hudi cleaned no target: this tests nothing"
    assert all((path / c.link).exists() for c in carried)
    after = readers.agree(table, "old slices cleaned")
    assert not differences(before, after["snapshot"])


@pytest.mark.slow
@pytest.mark.parametrize("release", ["0.15.0", "1.2.0"])
def test_answers_through_time_do_not_change(release: str, path: Path, readers: Readers) -> None:
    hudi = readers.hudi[release]
    options = hudi_options(name="t", buckets=1)
    table = written_by(readers.hudi["0.15.0"], path, options)
    before, after = History(hudi, copy_of(path)), History(hudi, path)
    plan = planned(table, 40)
    same_time_travel(before, after)
    table.execute_compaction(readers.spark, plan.instant)
    same_time_travel(before, after)
    same_incremental(before, after)


@pytest.mark.slow
@pytest.mark.parametrize("writer", ["ours", "hudi"])
def test_hudi_executes_our_pending_plan(writer: str, path: Path, readers: Readers) -> None:
    """`run_compaction(op => 'execute')` on our plan, with an upsert beside it: every row is still there."""
    hudi = readers.hudi["0.15.0"]
    options = hudi_options(name=path.name)
    if writer == "hudi":
        table = written_by(hudi, path, options)
    else:
        table = Shape().create(path)
        for mark, (numbers, start) in enumerate(BATCHES):
            batch = rows(numbers, partial(add, start), mark)
            table.upsert(readers.spark, frame(readers.spark, batch))
    plan = planned(table, 40)
    assert any(operation.carried_over for operation in plan.operations)
    hudi.write(path, rows([2, 12], lambda n: 130 + n, 6), options)
    before = readers.agree(table, "Hudi appended beside our pending plan", hudi_rs=False)
    compactions = hudi.compaction(path, "execute")
    assert [(c["timestamp"], c["state"]) for c in compactions] == [(plan.instant, "COMPLETED")]
    assert table.pending_plan() is None
    after = readers.agree(table, "Hudi executed our plan")
    assert not differences(before["snapshot"], after["snapshot"])
    for key, row in after["snapshot"].items():
        if row["ts"] <= plan.threshold:
            assert after["read_optimized"][key]["ts"] >= row["ts"]
    hudi.write(path, rows([3], lambda n: 150, 7), options)
    last = readers.agree(table, "Hudi appended after it")
    hudi.compaction(path, "run")
    hudi.clean(path)
    full = readers.agree(table, "Hudi's full compaction and clean afterwards")
    assert not differences(last["snapshot"], full["snapshot"])
