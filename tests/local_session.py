"""Spark's part of the engine, done in this process on Arrow tables: a step of a test costs milliseconds then.

`LocalSession` stands where a SparkSession stands. The engine's Spark seam (`engine/spark.py`) is replaced function
by function; all else, down to what a worker runs, is the engine's own code. Tests with the `spark` marker run the
seam itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hudi_assets.engine import spark as seam
from hudi_assets.engine.writing import exchange


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


def use_this_python(session: LocalSession) -> None:
    return None


def schema_of(frame: Frame) -> pa.Schema:
    return frame.table.schema


def select(frame: Frame, names: Sequence[str]) -> Frame:
    return Frame(frame.table.select(list(names)))


class LocalPacked:
    """Stands for `exchange.Packed`: the pieces as Spark would carry them."""

    def __init__(self, pieces: list[pa.RecordBatch], partitions: int) -> None:
        found = [row["note"] for piece in pieces for row in piece.select(["note"]).to_pylist() if row["note"]]
        self._sizes, notes = seam.unwrap(found[0])
        self.notes = tuple(notes)
        self._pieces = pa.Table.from_batches(pieces)
        self._partitions = partitions

    def run(self, work: exchange.Work) -> list[Any]:
        if not self._sizes:
            return []
        homes, tasks = exchange.assign(self._sizes, self._partitions)
        results = []
        for number in range(tasks):
            slots = pa.array([slot for slot, home in homes.items() if home == number], pa.int32())
            here = pc.and_(pc.is_in(self._pieces["slot"], slots), pc.is_valid(self._pieces["data"]))
            part = self._pieces.filter(here).select(["stream", "piece", "data"])
            results.append(work(exchange.parcels_of(part.to_batches()), _Tokens.next(number)))
        return results


@contextmanager
def packed(frame: Frame, pack: exchange.Pack) -> Iterator[LocalPacked]:
    partitions = LocalSession().partitions
    slots = exchange.SLOTS_PER_CORE * partitions
    yield LocalPacked(list(exchange.packing(pack, iter(frame.table.to_batches()), slots, 0)), partitions)


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
    size: int,
) -> Frame:
    return Frame(pa.Table.from_batches([b for task in tasks for b in function(task, schema.names)], schema))


def parquet_frame(session: LocalSession, files: Sequence[str], schema: pa.Schema) -> Frame:
    tables = [pq.ParquetFile(path).read(use_threads=False) for path in files]
    return Frame(pa.concat_tables([_as(t, schema) for t in tables] or [schema.empty_table()]))


def _as(table: pa.Table, schema: pa.Schema) -> pa.Table:
    for field in schema:
        if field.name not in table.schema.names:
            table = table.append_column(field, pa.nulls(len(table), field.type))
    return table.select(schema.names).cast(schema)


def parallelism(session: LocalSession) -> int:
    return session.partitions


def write_token() -> str:
    return _Tokens.current


_REPLACED = (
    use_this_python,
    schema_of,
    select,
    run_tasks,
    frame_from_tasks,
    parallelism,
    parquet_frame,
    write_token,
)


def install(patch: Callable[[Any, str, Any], None] = setattr) -> LocalSession:
    """Put these functions in the seam's place (for good, unless `patch` undoes it) and give a session."""
    for function in _REPLACED:
        patch(seam, function.__name__, function)
    patch(exchange, packed.__name__, packed)
    return LocalSession()
