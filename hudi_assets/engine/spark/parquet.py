"""DataFrames that are plain Parquet files, for workers to read themselves.

Spark makes rows out of the columns of a Parquet file, and columns out of the rows again for Python. Where a DataFrame
is nothing but the rows of such files, a worker reads their columns as they are. What Spark would do to the rows on
their way (a filter, a type that it reads in a way of its own, a partition's value) is not done here: then the answer
is None, and the rows come from Spark.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_assets.engine.errors import HudiAssetsError
from hudi_assets.engine.storage import LocalStorage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

log = logging.getLogger(__name__)
_CATALYST = "org.apache.spark.sql.catalyst"
_SOURCES = "org.apache.spark.sql.execution.datasources"
_MOST_FILES = 500
"""Their footers are read by the driver, one after the other."""
_TASK_BYTES = 64 << 20
_TASKS_PER_CORE = 4
_BATCH_ROWS = 1 << 16
_ROOT = LocalStorage("")
"""Paths here are absolute ones, without the first slash."""
# Read otherwise than by default, or with errors passed over: what these do is left to Spark.
_NOT_WITH = {
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.parquet.fieldId.read.enabled": "false",
    "spark.sql.parquet.mergeSchema": "false",
}


@dataclass(frozen=True, slots=True)
class RowGroups:
    """Some row groups of one file, by number."""

    path: str
    numbers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PlainFiles:
    """A DataFrame's rows, in its own order: for each task some row groups, and the columns to read."""

    tasks: tuple[tuple[RowGroups, ...], ...]
    schema: pa.Schema

    def read(self, task: int) -> Iterator[pa.RecordBatch]:
        """The rows of one task. In a worker."""
        for groups in self.tasks[task]:
            with _ROOT.open(groups.path) as source, pq.ParquetFile(source) as file:
                for batch in file.iter_batches(
                    _BATCH_ROWS, row_groups=list(groups.numbers), columns=self.schema.names, use_threads=False
                ):
                    yield pa.RecordBatch.from_arrays(
                        [batch.column(name) for name in self.schema.names], schema=self.schema
                    )


def plain_files(frame: DataFrame, schema: pa.Schema, cores: int) -> PlainFiles | None:
    """The Parquet files that a DataFrame is, where it is nothing else; `schema` is its own, in Arrow."""
    if not all(_is_read_alike(field.type) for field in schema) or len(set(schema.names)) < len(schema.names):
        return None
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]

    try:
        splits = _splits(frame)
    except (Py4JError, AttributeError, TypeError) as error:  # TypeError: what was asked for is no method there
        log.info("Rows come from Spark: its plan cannot be looked at (%s)", error)
        return None
    if splits is None or len({split.path for split in splits}) > _MOST_FILES:
        return None
    groups = _row_groups(splits, schema)
    return None if groups is None else PlainFiles(_tasks(groups, cores), schema)


def _is_read_alike(kind: pa.DataType) -> bool:
    """Types that pyarrow and Spark read from Parquet as the same values, whoever wrote it and however Spark is set."""
    tests = (pa.types.is_string, pa.types.is_boolean, pa.types.is_signed_integer, pa.types.is_floating)
    return any(test(kind) for test in tests)


# ------------------------------------------------------------------------------------------ Spark's plan


@dataclass(frozen=True, slots=True)
class _Split:
    path: str
    size: int
    start: int
    length: int


def _splits(frame: Any) -> list[_Split] | None:
    """What Spark would read, in its order; None where its plan is more than a scan of local Parquet files."""
    settings = frame.sparkSession.conf
    if any(str(settings.get(key, value)).lower() != value for key, value in _NOT_WITH.items()):
        return None
    execution = frame._jdf.queryExecution()
    if not _is_plain_scan(execution.optimizedPlan()):
        return None
    found = []
    for partition in execution.toRdd().partitions():
        if partition.getClass().getName() != f"{_SOURCES}.FilePartition":
            return None
        for file in partition.files():
            uri = file.toPath().toUri()
            if uri.getScheme() != "file":
                return None
            found.append(_Split(uri.getPath().lstrip("/"), file.fileSize(), file.start(), file.length()))
    return found


def _is_plain_scan(plan: Any) -> bool:
    if plan.getClass().getName() == f"{_CATALYST}.plans.logical.Project":
        chosen = plan.projectList()
        names = {chosen.apply(number).getClass().getName() for number in range(chosen.size())}
        if names != {f"{_CATALYST}.expressions.AttributeReference"}:
            return False
        plan = plan.child()
    if plan.getClass().getName() != f"{_SOURCES}.LogicalRelation":
        return False
    relation = plan.relation()
    return bool(
        relation.getClass().getName() == f"{_SOURCES}.HadoopFsRelation"
        and relation.fileFormat().getClass().getName() == f"{_SOURCES}.parquet.ParquetFileFormat"
        and relation.partitionSchema().length() == 0
        and relation.bucketSpec().isEmpty()
        and relation.options().size() == int(relation.options().contains("path"))  # where it is, and nothing else
    )


# ------------------------------------------------------------------------------------------ the files' footers


@dataclass(frozen=True, slots=True)
class _Group:
    path: str
    number: int
    bytes: int


def _row_groups(splits: Sequence[_Split], schema: pa.Schema) -> list[_Group] | None:
    """Each row group once, in the splits' order; None where a file is not what Spark has listed, or has other types."""
    files: dict[str, pq.FileMetaData] = {}
    found = []
    for split in splits:
        if split.path not in files:
            footer = _footer(split, schema)
            if footer is None:
                return None
            files[split.path] = footer
        footer = files[split.path]
        for number in range(footer.num_row_groups):
            start, size = _extent(footer.row_group(number))
            # As parquet-mr deals them out: the split with a group's middle has the group.
            if split.start <= start + size // 2 < split.start + split.length:
                found.append(_Group(split.path, number, size))
    return found if len(found) == sum(footer.num_row_groups for footer in files.values()) else None


def _footer(split: _Split, schema: pa.Schema) -> pq.FileMetaData | None:
    """A file's footer, where its columns are those of the DataFrame, each once, in the same types."""
    try:
        if _ROOT.size(split.path) != split.size:
            return None
        with _ROOT.open(split.path) as source, pq.ParquetFile(source) as file:
            footer, held = file.metadata, file.schema_arrow
    except (OSError, pa.ArrowException, HudiAssetsError):
        return None
    lowered = [name.lower() for name in held.names]
    fits = all(
        lowered.count(field.name.lower()) == 1
        and field.name in held.names
        and held.field(field.name).type == field.type
        for field in schema
    )
    return footer if fits else None


def _extent(group: pq.RowGroupMetaData) -> tuple[int, int]:
    """Where a row group begins, and its bytes in the file."""
    columns = [group.column(number) for number in range(group.num_columns)]
    first = columns[0]
    pages = [first.data_page_offset]
    if first.dictionary_page_offset:
        pages.append(first.dictionary_page_offset)
    return min(pages), sum(column.total_compressed_size for column in columns)


def _tasks(groups: Sequence[_Group], cores: int) -> tuple[tuple[RowGroups, ...], ...]:
    """Row groups dealt to tasks in their order, some tasks for each core: then none waits long for the last one."""
    total = sum(group.bytes for group in groups)
    most = min(_TASK_BYTES, -(-total // (_TASKS_PER_CORE * cores)))
    tasks: list[list[_Group]] = []
    held = most
    for group in groups:
        if held + group.bytes // 2 >= most:
            tasks.append([])
            held = 0
        tasks[-1].append(group)
        held += group.bytes
    return tuple(tuple(_by_file(task)) for task in tasks)


def _by_file(task: Sequence[_Group]) -> Iterator[RowGroups]:
    numbers: list[int] = []
    for place, group in enumerate(task):
        numbers.append(group.number)
        following = task[place + 1] if place + 1 < len(task) else None
        if following is None or following.path != group.path:
            yield RowGroups(group.path, tuple(numbers))
            numbers = []
