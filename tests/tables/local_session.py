"""Spark's part of the engine, done in this process on Arrow tables: a step of a test costs milliseconds then.

`LocalSession` stands where a SparkSession stands. The engine's calls of Spark (`engine/spark/session.py`) are replaced
function by function; all else, down to what a worker runs, is the engine's own code. Tests with the `spark` marker run
those calls themselves.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_assets.engine.spark import session as spark_session
from hudi_assets.engine.spark.partitions import Places
from hudi_assets.engine.spark.session import ListedFile
from hudi_assets.engine.storage import Storage


class Frame:
    """An Arrow table with the little of a DataFrame that tests ask of it."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def toArrow(self) -> pa.Table:  # noqa: N802
        return self.table

    def rows(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.table.to_pylist()
        return rows

    def count(self) -> int:
        return len(self.table)


class LocalSession:
    """Stands for a SparkSession. `frame` makes what `upsert` and `delete` take."""

    def __init__(self, partitions: int = 2) -> None:
        self.partitions = partitions

    def frame(self, table: pa.Table) -> Frame:
        return Frame(table)

    def range(
        self,
        start: int,
        end: int | None = None,
        step: int = 1,
        numPartitions: int | None = None,  # noqa: N803
    ) -> Frame:
        first, last = (0, start) if end is None else (start, end)
        return Frame(pa.table({"id": pa.array(range(first, last, step), pa.int64())}))

    def rows(self, rows: Sequence[dict[str, Any]], schema: pa.Schema) -> Frame:
        return Frame(pa.Table.from_pylist(list(rows), schema))


class _Tokens:
    """Write tokens as Spark's are: unique among attempts."""

    number = 0
    current = "0-0-0"

    @classmethod
    def next(cls, partition: int) -> str:
        cls.number += 1
        cls.current = f"{partition}-0-{cls.number}"
        return cls.current


def ready_workers(session: LocalSession, storage: Storage, *, to_write: bool = False) -> None:
    return None


def schema_of(frame: Frame) -> pa.Schema:
    return frame.table.schema


def select(frame: Frame, names: Sequence[str]) -> Frame:
    return Frame(frame.table.select(list(names)))


def session_of(frame: Frame) -> LocalSession:
    return LocalSession()


def scratch_folder(session: LocalSession) -> str:
    return tempfile.gettempdir()


def map_rows(frame: Frame, function: Callable[[Iterator[pa.RecordBatch]], Any]) -> list[Any]:
    return [function(iter(frame.table.to_batches()))]


def run_tasks(session: LocalSession, function: Callable[[Any], Any], tasks: Sequence[Any]) -> list[Any]:
    results = []
    for number, task in enumerate(tasks):
        _Tokens.next(number)
        results.append(function(task))
    return results


def frame_from_tasks(
    session: LocalSession,
    function: Callable[[Any, Sequence[str]], Iterator[pa.RecordBatch]],
    tasks: Sequence[Any],
    schema: pa.Schema,
    places: Places,
) -> Frame:
    return Frame(pa.Table.from_batches([b for task in tasks for b in function(task, schema.names)], schema))


def parquet_frame(session: LocalSession, files: Sequence[ListedFile], schema: pa.Schema, places: Places) -> Frame:
    tables = [pq.ParquetFile(file.uri).read(use_threads=False) for file in files]
    target = spark_session.nullable(schema)  # as Spark's own reader has it
    return Frame(pa.concat_tables([_as(t, target) for t in tables] or [target.empty_table()]))


def _as(table: pa.Table, schema: pa.Schema) -> pa.Table:
    for field in schema:
        if field.name not in table.schema.names:
            table = table.append_column(field, pa.nulls(len(table), field.type))
    return table.select(schema.names).cast(schema)


def reads_by_itself(session: LocalSession, uri: str) -> bool:
    """A local table's files, as `parquet_frame` does."""
    return "://" not in uri


def parallelism(session: LocalSession) -> int:
    return session.partitions


def write_token() -> str:
    return _Tokens.current


_REPLACED = (
    ready_workers,
    schema_of,
    select,
    session_of,
    scratch_folder,
    map_rows,
    run_tasks,
    frame_from_tasks,
    parallelism,
    parquet_frame,
    reads_by_itself,
    write_token,
)


def install(patch: Callable[[Any, str, Any], None] = setattr) -> LocalSession:
    """Put these functions in the place of those that call Spark (for good, unless `patch` undoes it); a session."""
    for function in _REPLACED:
        patch(spark_session, function.__name__, function)
    return LocalSession()
