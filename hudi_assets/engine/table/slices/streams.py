"""File slices as a merge reads them: base rows part by part, log blocks one by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO, Final

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_assets.engine.errors import CorruptTable, InvalidInput, UnsupportedTable
from hudi_assets.engine.format.avro.project import project
from hudi_assets.engine.format.parquet_reader import open_parquet, parquet_damage, with_dictionaries
from hudi_assets.engine.merging.merge import LogRecords, head_columns
from hudi_assets.engine.merging.winners import Flags
from hudi_assets.engine.storage import Storage
from hudi_assets.engine.table.layout.names import instant_in_name
from hudi_assets.engine.table.log_files.reader import NOT_READ_WIDER, FoundBlocks, find_blocks, refuse_columns
from hudi_assets.engine.table.slices.reader import SliceReader

_MOST_ROWS: Final = 1 << 20
_UNPACKED: Final = 4  # bytes in Arrow per byte of encoded Parquet, at most, as long as nothing was tried
_TRIED: Final = 1 << 10
_BUFFER: Final = 1 << 20


@dataclass(frozen=True)
class BaseRows:
    """The rows of a base file, in the table's schema; CorruptTable and UnsupportedTable name the file."""

    storage: Storage
    path: str
    schema: pa.Schema  # with meta columns
    dictionaries: frozenset[str] = frozenset()  # columns that may come as dictionaries, where the file has them so

    def fits(self, most_bytes: int) -> bool:
        """True where all columns of all rows surely take no more in Arrow; False too for a file that cannot be read."""
        try:
            with self.storage.open(self.path) as source, parquet_damage():
                file = open_parquet(source)
                return file.metadata.num_rows <= _MOST_ROWS and _unpacked(file) <= most_bytes
        except (CorruptTable, FileNotFoundError):
            return False  # reading it says what is wrong

    def tables(self, columns: Sequence[str], most_bytes: int) -> Iterator[pa.Table]:
        """Some columns of all rows in their order, about `most_bytes` of them in Arrow at a time."""
        where = f"{self.storage.base}: {self.path}"
        try:
            with self.storage.open(self.path) as source:
                yield from self._tables(source, pa.schema([f for f in self.schema if f.name in columns]), most_bytes)
        except FileNotFoundError:
            raise CorruptTable("A base file is missing.", where=where, hint="Was it cleaned?") from None
        except CorruptTable as error:
            raise CorruptTable(error.what, where=where, hint=error.hint) from error
        except InvalidInput as error:
            raise UnsupportedTable(error.what, where=where, hint=NOT_READ_WIDER) from error

    def _tables(self, source: BinaryIO, schema: pa.Schema, most_bytes: int) -> Iterator[pa.Table]:
        with parquet_damage():
            file = open_parquet(source, _BUFFER, self.dictionaries)
        refuse_columns(file.schema_arrow.names, f"{self.storage.base}: {self.path}")
        with parquet_damage():
            batches = _batches(file, schema.names, _rows_within(file, schema.names, most_bytes))
        seen = 0
        while True:
            with parquet_damage():
                batch = next(batches, None)
                if batch is None:
                    break
                batch.validate(full=True)  # text that is no UTF-8 would surface anywhere
            seen += len(batch)
            rows = pa.Table.from_batches([batch])
            yield project(rows, with_dictionaries(schema, rows.schema, self.dictionaries))
        if seen != file.metadata.num_rows:
            raise CorruptTable(f"The file has {seen} rows where its footer says {file.metadata.num_rows}.")


def _batches(file: pq.ParquetFile, columns: Sequence[str], rows: int) -> Iterator[pa.RecordBatch]:
    # On this thread alone, as `read_columns`.
    batches: Iterator[pa.RecordBatch] = file.iter_batches(batch_size=rows, columns=list(columns), use_threads=False)
    return batches


def _unpacked(file: pq.ParquetFile) -> int:
    """Bytes in Arrow that all rows take at most."""
    groups = (file.metadata.row_group(number) for number in range(file.metadata.num_row_groups))
    encoded: int = sum(group.total_byte_size for group in groups)
    return encoded * _UNPACKED


def _rows_within(file: pq.ParquetFile, columns: Sequence[str], most_bytes: int) -> int:
    """How many rows take about `most_bytes` in Arrow."""
    if _unpacked(file) <= most_bytes:
        return _MOST_ROWS
    tried = next(_batches(file, columns, _TRIED), None)
    size = tried.nbytes // len(tried) + 1 if tried is not None and len(tried) else 1
    return max(_TRIED, min(_MOST_ROWS, most_bytes // size))


@dataclass(frozen=True)
class StoredSlice:
    """A file slice in its files, for `merging.passes.SliceMerge`.

    With `dictionaries` text columns come as such where a file has them so; those that a merge looks at do not. Where
    rows have gaps, it looks at all.
    """

    reader: SliceReader
    base_file: str | None
    found: FoundBlocks
    dictionaries: frozenset[str]

    @classmethod
    def open(
        cls, reader: SliceReader, base_file: str | None, log_files: tuple[str, ...], dictionaries: bool = False
    ) -> StoredSlice:
        """Looks through the log files' block headers."""
        dictionaries = dictionaries and reader.gaps is None
        texts = {field.name for field in reader.schema if field.type == pa.string()} if dictionaries else set()
        found = find_blocks(reader.storage, log_files, reader.committed)
        return cls(reader, base_file, found, frozenset(texts.difference(head_columns(reader.ordering))))

    @property
    def schema(self) -> pa.Schema:
        return self.reader.schema

    @property
    def block_sizes(self) -> Sequence[int]:
        return [stored.block.content_size for stored in self.found.blocks]

    @property
    def by_positions(self) -> bool:
        """As PositionBasedFileGroupRecordBuffer asks: all blocks have positions, and in this base file."""
        base = self.base_file and instant_in_name(self.base_file)
        return bool(base) and all(stored.positions_in == base for stored in self.found.blocks)

    def base(self, columns: Sequence[str], most_bytes: int) -> Iterator[pa.Table]:
        if self.base_file:
            yield from self._base_rows(self.base_file).tables(columns, most_bytes)

    def base_fits(self, most_bytes: int) -> bool:
        return self.base_file is None or self._base_rows(self.base_file).fits(most_bytes)

    def _base_rows(self, path: str) -> BaseRows:
        return BaseRows(self.reader.storage, path, self.reader.schema, self.dictionaries)

    def reads_chosen(self, number: int) -> bool:
        return self.found.blocks[number].reads_chosen(head_columns(self.reader.ordering))

    def block(self, number: int, columns: Sequence[str], chosen: Flags | None = None) -> LogRecords:
        reader, stored = self.reader, self.found.blocks[number]
        return stored.records(reader.storage, reader.schema, reader.ordering, columns, chosen, self.dictionaries)
