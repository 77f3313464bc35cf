"""Reading file slices: base files and log files as rows of the table's schema, on any machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_assets.engine.errors import CorruptTable, InvalidInput, UnsupportedTable
from hudi_assets.engine.format.avro import project as avro_project
from hudi_assets.engine.format.parquet_reader import open_parquet, parquet_damage, read_columns
from hudi_assets.engine.merging.gaps import Gaps
from hudi_assets.engine.merging.merge import head_columns, merge
from hudi_assets.engine.merging.ordering import Ordering
from hudi_assets.engine.merging.passes import DEFAULT_MEMORY
from hudi_assets.engine.model import MergeMode
from hudi_assets.engine.storage import Storage
from hudi_assets.engine.table.log_files.reader import (
    NOT_READ_WIDER,
    CommittedInstants,
    LogScan,
    refuse_columns,
    scan_logs,
)


@dataclass(frozen=True)
class SliceReader:
    """What is needed to read and merge file slices of one table, on any machine.

    With `columns`, rows have those of the schema's columns alone, and no other is read but those that the merge
    looks at.
    """

    storage: Storage
    schema: pa.Schema  # with meta columns
    ordering: Ordering  # empty where the table has no ordering field
    committed: CommittedInstants
    mode: MergeMode = MergeMode.EVENT_TIME_ORDERING
    columns: tuple[str, ...] | None = None
    memory: int = DEFAULT_MEMORY  # bytes, for one slice of a query
    gaps: Gaps | None = None  # what is one, where rows have some

    @property
    def shown(self) -> pa.Schema:
        """The columns of the rows that are read."""
        return self.schema if self.columns is None else pa.schema([self.schema.field(name) for name in self.columns])

    @property
    def merged(self) -> pa.Schema:
        """`shown`, and what the merge looks at: record key, ordering fields, `_hoodie_is_deleted`."""
        if self.columns is None:
            return self.schema
        names = {*self.columns, *head_columns(self.ordering)}
        return pa.schema([field for field in self.schema if field.name in names])

    def read(self, base_file: str | None, log_files: tuple[str, ...]) -> tuple[pa.Table, LogScan]:
        """The merged rows of a base file and log files, and what the logs held."""
        if base_file and not log_files:
            return self.read_base(base_file, self.shown), LogScan([])
        base, scan = self.scan(base_file, log_files)
        rows = merge(base, scan.records, self.ordering, self.merged, self.mode, self.gaps)
        return rows.select(self.shown.names), scan

    def scan(self, base_file: str | None, log_files: tuple[str, ...]) -> tuple[pa.Table | None, LogScan]:
        """The rows of a base file, and the records of log files, before they are merged."""
        base = self.read_base(base_file) if base_file else None
        return base, scan_logs(self.storage, log_files, self.merged, self.ordering, self.committed)

    def read_base(self, path: str, schema: pa.Schema | None = None) -> pa.Table:
        """A base file's rows in `schema`, some of the table's columns (by default those that a merge needs)."""
        target = self.merged if schema is None else schema
        where = f"{self.storage.base}: {path}"
        with self._open_base(path) as file:
            table = read_columns(file, None if target == self.schema else target.names)
        try:
            return avro_project.project(table, target)
        except InvalidInput as error:
            raise UnsupportedTable(error.what, where=where, hint=NOT_READ_WIDER) from error

    def base_footer(self, path: str) -> pq.FileMetaData:
        """A base file's footer, with the statistics of its columns."""
        with self._open_base(path) as file:
            return file.metadata

    @contextmanager
    def _open_base(self, path: str) -> Iterator[pq.ParquetFile]:
        where = f"{self.storage.base}: {path}"
        try:
            with self.storage.open(path) as source, parquet_damage():
                file = open_parquet(source)
                refuse_columns(file.schema_arrow.names, where)
                yield file
        except FileNotFoundError:
            raise CorruptTable("A base file is missing.", where=where, hint="Was it cleaned?") from None
        except CorruptTable as error:
            raise CorruptTable(error.what, where=where) from error


@dataclass(frozen=True, slots=True)
class SliceTask:
    """One file slice to read for a query; `size` is that of its files in bytes."""

    base_file: str | None
    log_files: tuple[str, ...]
    size: int = 0
