"""Queries as Spark DataFrames."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from . import spark
from .execute import SliceReader, SliceTask, read_slice
from .state import TableState

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class ReadTask:
    """One file slice of a snapshot query; picklable, readable on any machine that reaches the table."""

    reader: SliceReader
    slice: SliceTask


def read_task(task: ReadTask) -> Iterator[pa.RecordBatch]:
    """A task's rows, in the table's schema."""
    yield from read_slice(task.reader, task.slice)


def slice_reader(state: TableState) -> SliceReader:
    return SliceReader(state.storage, state.schema, state.config.ordering_field, state.committed)


def snapshot_tasks(state: TableState) -> list[ReadTask]:
    """The snapshot view, one task per file slice."""
    reader = slice_reader(state)
    return [
        ReadTask(
            reader,
            SliceTask(s.base_file.path if s.base_file else None, tuple(log.path for log in s.log_files)),
        )
        for s in state.view.latest
    ]


def snapshot_frame(session: SparkSession, state: TableState) -> DataFrame:
    reader = slice_reader(state)
    slices = [task.slice for task in snapshot_tasks(state)]
    return spark.frame_from_tasks(session, lambda task: read_slice(reader, task), slices, state.schema)


def read_optimized_frame(session: SparkSession, state: TableState) -> DataFrame:
    """Spark's own Parquet reader on the newest base file of each group."""
    return spark.parquet_frame(session, [state.storage.uri(base.path) for base in state.view.base_files], state.schema)
