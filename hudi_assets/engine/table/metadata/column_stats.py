"""The metadata table's column_stats partition: an entry for each indexed column of each base file.

Hudi's data skipping takes a file that has entries for some of a filter's columns for one whose other columns are null
(ColumnStatsIndexSupport.transpose), and a writer's bloom index that goes by the metadata table does not look into a
base file without an entry for its record keys. So a new base file gets an entry for every column that the partition
indexes.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_assets.engine.errors import CorruptTable
from hudi_assets.engine.format import parquet_footer as footer_stats
from hudi_assets.engine.format.hfile.file import Entry, HFileReader
from hudi_assets.engine.storage import Storage
from hudi_assets.engine.table.layout.interface import Layout
from hudi_assets.engine.table.metadata.index_keys import column_key, group_of, stats_key
from hudi_assets.engine.table.metadata.own_timeline import OwnTimeline
from hudi_assets.engine.table.metadata.partitions import COMPLETED, INFLIGHT, named, table_properties
from hudi_assets.engine.table.metadata.reader import ValidInstants, base_entries, log_entries
from hudi_assets.engine.table.metadata.records import RecordType, decode_row, encode_row
from hudi_assets.engine.table.metadata.slices import FilesSlice, newest_slices

COLUMN_STATS: Final = "column_stats"
INDEX_DEFS_PATH: Final = "hoodie.table.index.defs.path"
_FIELD: Final = "ColumnStatsMetadata"
_BASE_FILE: Final = ".parquet"
_TYPED: Final = "V2"
_DEFINITIONS: Final = "indexDefinitions"
_AT_A_TIME: Final = 8
_COLUMN_HASH: Final = 12  # letters


@dataclass(frozen=True, slots=True)
class Definition:
    """What `.hoodie/.index_defs` says of the partition: its columns, and whether bounds come with their types (V2)."""

    columns: frozenset[str]
    typed: bool


@dataclass(frozen=True)
class ColumnStatsIndex:
    """The partition as it stands on the metadata table's timeline."""

    storage: Storage
    slices: tuple[FilesSlice, ...]
    valid: ValidInstants

    @classmethod
    def of(cls, storage: Storage, layout: Layout, own: OwnTimeline, valid: ValidInstants) -> ColumnStatsIndex | None:
        """None where the table has none."""
        properties = table_properties(storage)
        if COLUMN_STATS not in {*named(properties.get(COMPLETED)), *named(properties.get(INFLIGHT))}:
            return None
        slices = newest_slices(storage, layout, own, COLUMN_STATS)
        return cls(storage, slices, valid) if slices else None

    def changes(
        self, added: Mapping[str, Collection[str]], deleted: Mapping[str, Collection[str]]
    ) -> dict[FilesSlice, list[tuple[str, dict[str, Any]]]]:
        """(key, fields) of the records for base files that come and files that go, by file group; partition → names."""
        found: dict[FilesSlice, list[tuple[str, dict[str, Any]]]] = {}
        for key, fields in (*self._added(added), *self._gone(deleted)):
            row = {"type": int(RecordType.COLUMN_STATS), _FIELD: fields}
            found.setdefault(self.slices[group_of(key, len(self.slices))], []).append((key, row))
        return {slice_: sorted(rows, key=lambda row: row[0].encode()) for slice_, rows in found.items()}

    def _added(self, added: Mapping[str, Collection[str]]) -> Iterator[tuple[str, dict[str, Any]]]:
        files = [(p, name) for p, names in sorted(added.items()) for name in sorted(names) if name.endswith(_BASE_FILE)]
        with ThreadPoolExecutor(_AT_A_TIME) as pool:
            read = pool.map(lambda one: self._footer(*one), files)
            for (partition, name), columns in zip(files, read, strict=True):
                for stats in columns:
                    fields = footer_stats.as_record(stats, name, typed=self._typed)
                    yield stats_key(stats.column, partition, name), fields

    def _footer(self, partition: str, name: str) -> list[footer_stats.ColumnStats]:
        path = f"{partition}/{name}" if partition else name
        try:
            with self.storage.open(path) as source, pq.ParquetFile(source) as file:
                return footer_stats.footer_stats(file, self._is_indexed)
        except (pa.ArrowInvalid, FileNotFoundError) as error:
            where = f"{self.storage.base}: {path}"
            raise CorruptTable(f"A base file cannot be read: {str(error)[:200]}.", where=where) from error

    def _gone(self, deleted: Mapping[str, Collection[str]]) -> Iterator[tuple[str, dict[str, Any]]]:
        if not deleted:
            return
        columns = self._definition.columns if self._definition else self._logged | self._compacted
        for partition, names in sorted(deleted.items()):
            for name in names:
                for column in columns:
                    yield stats_key(column, partition, name), footer_stats.gone(column, name)

    # -- which columns ----------------------------------------------------------------------------

    @cached_property
    def _definition(self) -> Definition | None:
        """What Hudi 1.x keeps of its indexes; 0.15.0 keeps nothing."""
        return read_definition(self.storage)

    @property
    def _typed(self) -> bool:
        return self._definition is not None and self._definition.typed

    def _is_indexed(self, column: str) -> bool:
        if self._definition is not None:
            return column in self._definition.columns
        # Nothing says it but what is there; where nothing is, 0.15.0's default: every column.
        return not self._has_entries or column in self._logged or self._in_base_files(column)

    def decimals_with_wrapper(self, columns: Mapping[str, pa.DataType]) -> dict[str, pa.DataType]:
        """Those of some columns of decimals whose bounds are kept as DecimalWrapper, which not every value fits."""
        return {} if self._typed else {path: kind for path, kind in columns.items() if self._is_indexed(path)}

    @cached_property
    def _logged(self) -> frozenset[str]:
        """The columns that log files have entries of."""
        found = set()
        for slice_ in self.slices:
            logs = (*(slice_.older.logs if slice_.older else ()), *slice_.logs)
            for block in log_entries(self.storage, logs, self.valid):
                found |= {_column_of(decode_row(entry, block.schema)[1]) for entry in block.entries}
        return frozenset(found)

    @cached_property
    def _compacted(self) -> frozenset[str]:
        """The columns that base files have entries of: the first entry of each column is read."""
        found: dict[bytes, str] = {}
        for reader in self._readers:
            for key, value in reader:
                if key[:_COLUMN_HASH] not in found and reader.schema is not None:
                    found[key[:_COLUMN_HASH]] = _column_of(decode_row((key, value), reader.schema)[1])
        return frozenset(found.values())

    @cached_property
    def _readers(self) -> tuple[HFileReader, ...]:
        parts = (part for slice_ in self.slices for part in (slice_, slice_.older) if part and part.base)
        bases = (part.base for part in parts if part.base)
        return tuple(HFileReader(partial(self.storage.read_at, base.path), base.size) for base in bases)

    @cached_property
    def _has_entries(self) -> bool:
        return bool(self._logged) or any(len(reader) for reader in self._readers)

    def _in_base_files(self, column: str) -> bool:
        prefix = column_key(column).encode()
        return any(next(reader.starting_with(prefix), None) is not None for reader in self._readers)


def read_definition(storage: Storage) -> Definition | None:
    """The partition's definition; None where there is none."""
    path, definitions = _definitions(storage)
    own = definitions.get(COLUMN_STATS)
    if own is None:
        return None
    try:
        return Definition(frozenset(map(str, own["sourceFields"])), own.get("version", "V1") == _TYPED)
    except (KeyError, TypeError, AttributeError) as error:
        raise _unreadable(storage, path, error) from error


def forget_definition(storage: Storage) -> None:
    """Take the partition's definition out of the table's, as Hudi does where it drops column_stats."""
    path, definitions = _definitions(storage)
    if definitions.pop(COLUMN_STATS, None) is not None:
        storage.replace(path, json.dumps({_DEFINITIONS: definitions}, indent=2).encode())


def _definitions(storage: Storage) -> tuple[str, dict[str, Any]]:
    """The file of the definitions of indexes, and what it says; nothing where there is none."""
    path = table_properties(storage).get(INDEX_DEFS_PATH)
    if not path or not storage.exists(path):
        return "", {}
    try:
        return path, dict(json.loads(storage.read(path))[_DEFINITIONS])
    except (ValueError, KeyError, TypeError) as error:
        raise _unreadable(storage, path, error) from error


def _unreadable(storage: Storage, path: str, error: Exception) -> CorruptTable:
    return CorruptTable(f"The definitions of indexes cannot be read: {error!r}.", where=f"{storage.base}: {path}")


def _column_of(row: Mapping[str, Any]) -> str:
    fields = row.get(_FIELD)
    if not isinstance(fields, dict) or not isinstance(fields.get("columnName"), str):
        raise CorruptTable("A record of the metadata table's column_stats names no column.")
    return str(fields["columnName"])


def merged_stats(
    storage: Storage, slice_: FilesSlice, valid: ValidInstants, schema: str, base_file: str
) -> list[Entry]:
    """What a file group holds, as entries of its next base file: of each key what was written last."""
    below = base_entries(storage, slice_.base)
    newest: dict[str, dict[str, Any]] = {}
    for block in ([below] if below else []) + log_entries(storage, slice_.logs, valid):
        for entry in block.entries:
            key, row = decode_row(entry, block.schema, tell_unions=True)
            newest[key] = row
    kept = sorted((key.encode(), key) for key, row in newest.items() if not _is_deleted(row))
    return [encode_row(key, newest[key], schema, base_file=base_file) for _, key in kept]


def _is_deleted(row: Mapping[str, Any]) -> bool:
    fields = row.get(_FIELD)
    own = fields[1] if isinstance(fields, tuple) else fields
    return not isinstance(own, dict) or bool(own.get("isDeleted"))
