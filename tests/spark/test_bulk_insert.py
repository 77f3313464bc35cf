"""The way of rows through a real Spark: checked once, shuffled as parcels, written as base files and log files."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from hudi_assets.engine import HudiTable, InvalidInput
from hudi_assets.engine.actions.writing import exchange
from hudi_assets.engine.spark import session as spark_session
from tests.tables.steps import created

pytestmark = pytest.mark.spark
SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("p", pa.string()), ("words", pa.list_(pa.string()))])
COUNT = 20_000


@pytest.fixture(params=["files", "shuffle"])
def exchanged(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How parcels travel: in files of this machine, or by Spark's shuffle, as on a cluster."""
    if request.param == "shuffle":
        monkeypatch.setattr(spark_session, "scratch_folder", lambda session: None)
    return str(request.param)


def rows(count: int) -> pa.Table:
    """Some megabytes, so that a parcel has many pieces; each key has three rows, the middle one being the newest."""
    numbers = range(count)
    return pa.table(
        {
            "id": [f"key-{n // 3:06d}-é" for n in numbers],
            "ts": [n - n % 3 + (5 if n % 3 == 1 else 0) for n in numbers],
            "p": [f"part {n // 3 % 3}" for n in numbers],
            "words": [[f"{n:0100d}", None] for n in numbers],
        },
        SCHEMA,
    )


def newest(table: pa.Table) -> set[tuple[str, int, str]]:
    best: dict[str, tuple[int, str]] = {}
    for row in table.to_pylist():
        if row["id"] not in best or row["ts"] >= best[row["id"]][0]:
            best[row["id"]] = (row["ts"], row["words"][0])
    return {(key, ts, word) for key, (ts, word) in best.items()}


def answer(frame: object) -> set[tuple[str, int, str]]:
    found = [(r["id"], r["ts"], r["words"][0]) for r in frame.select("id", "ts", "words").collect()]  # type: ignore[attr-defined]
    assert len(found) == len({key for key, _, _ in found})
    return set(found)


@pytest.mark.usefixtures("exchanged")
def test_a_first_load_and_upserts(spark: SparkSession, tmp_path: Path) -> None:
    how = {"event_time_unit": "ms", "partition_fields": ["p"], "buckets": 4, "data_latency": "0s"}
    table = created(tmp_path / "t", SCHEMA, table_version=9, **how)
    loaded = rows(COUNT)
    frame = spark.createDataFrame(loaded).repartition(5, "id")
    done = table.bulk_insert(spark, frame)
    assert (done.rows, done.base_files, done.log_files) == (COUNT, len(table.read_optimized_files()), 0)
    assert done.base_files > 3
    expected = newest(loaded)
    assert answer(table.read_optimized(spark)) == answer(table.snapshot(spark)) == expected
    with pytest.raises(InvalidInput, match="holds rows"):
        table.bulk_insert(spark, frame)
    before = table.state().timeline.instants
    faulty = spark.createDataFrame(pa.concat_tables([loaded, pa.Table.from_pylist([{"ts": 1, "p": "part 1"}], SCHEMA)]))
    with pytest.raises(InvalidInput, match=f"1 of {COUNT + 1} rows have no record key"):
        table.upsert(spark, faulty)
    path_like = spark.createDataFrame(pa.Table.from_pylist([{"id": "x", "ts": 1, "p": "a/b"}], SCHEMA))
    with pytest.raises(InvalidInput, match="folder's name"):
        table.upsert(spark, path_like)
    assert table.state().timeline.instants == before
    update = rows(300)
    update = update.set_column(1, "ts", pa.compute.add(update["ts"], 10**6))
    assert table.upsert(spark, spark.createDataFrame(update)).rows == 100
    assert answer(table.snapshot(spark)) == newest(pa.concat_tables([loaded, update]))
    assert not table.validate()


@pytest.mark.usefixtures("exchanged")
def test_equal_ordering_values_keep_the_order_of_the_rows(spark: SparkSession, tmp_path: Path) -> None:
    """Over several Spark partitions."""
    table = HudiTable.create(
        str(tmp_path / "t"), SCHEMA, record_key=["id"], ordering_field="ts", event_time_unit="ms", data_latency="0s"
    )
    many = [{"id": f"k{n % 50}", "ts": 1, "p": "x", "words": [str(n)]} for n in range(1000)]
    frame = spark.createDataFrame(pa.Table.from_pylist(many, SCHEMA)).coalesce(4)
    table.upsert(spark, frame)
    assert answer(table.snapshot(spark)) == {(f"k{n}", 1, str(950 + n)) for n in range(50)}


def test_what_each_task_gets_without_numbered_partitions(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where tasks are found by hash: Spark before 4.1 has no partition numbers."""
    monkeypatch.setattr(spark_session, "scratch_folder", lambda session: None)
    monkeypatch.setattr("pyspark.sql.DataFrame.repartitionById", None, raising=False)
    monkeypatch.setattr("pyspark.sql.classic.dataframe.DataFrame.repartitionById", None, raising=False)
    batch = pa.RecordBatch.from_pydict({"n": list(range(10))})

    def pack(batches: object, slots: int) -> object:
        for slot in range(6):
            yield exchange.Parcel(slot, batch.slice(slot, 1))
        yield exchange.Note(slots)

    def work(batches: object, token: str) -> list[int]:
        return [n for part in batches for n in part.column(0).to_pylist()]  # type: ignore[attr-defined]

    with exchange.packed(spark.range(0, 2, 1, 2), pack) as packed:  # type: ignore[arg-type]
        assert packed.notes == (32, 32)
        found = packed.run(work)
    assert sorted(n for part in found for n in part) == sorted([*range(6), *range(6)])
    assert all(part.count(n) in (0, 2) for part in found for n in range(6))


@pytest.mark.classic
def test_files_of_parcels_are_deleted(spark: SparkSession) -> None:
    """After the work, and after an error in it."""
    folder = Path(spark_session.scratch_folder(spark) or "")
    assert folder.is_dir()

    def pack(batches: object, slots: int) -> object:
        yield exchange.Parcel(1, pa.RecordBatch.from_pydict({"n": [1]}))

    def work(batches: object, token: str) -> None:
        list(batches)  # type: ignore[call-overload]
        raise InvalidInput("no")

    with exchange.packed(spark.range(0, 2, 1, 2), pack) as packed:  # type: ignore[arg-type]
        assert len(list(folder.glob("parcels-*/*"))) == 2
        with pytest.raises(InvalidInput, match="no"):
            packed.run(work)
    assert not list(folder.glob("parcels-*"))
