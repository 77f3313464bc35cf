"""Log files as records.

Reading follows org.apache.hudi.common.table.log.AbstractHoodieLogRecordReader: blocks of instants that
are not committed are passed over; a rollback block removes its target's blocks read before it; a corrupt
block is passed over and counted.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import pyarrow as pa

from hudi_assets.engine.errors import CorruptTable, InvalidInput, UnsupportedTable, located
from hudi_assets.engine.format.avro import codec as avro_codec
from hudi_assets.engine.format.avro import project as avro_project
from hudi_assets.engine.format.avro.schema import META_COLUMNS
from hudi_assets.engine.format.log_file import delete_codec
from hudi_assets.engine.format.log_file.codec import BlockType, HeaderKey, LogBlock
from hudi_assets.engine.format.parquet_reader import (
    open_parquet,
    parquet_damage,
    read_columns,
    read_parquet,
    with_dictionaries,
)
from hudi_assets.engine.merging.delete_records import as_deletes
from hudi_assets.engine.merging.merge import IS_DELETED, KEY, LogRecords, Rows, size_of
from hudi_assets.engine.merging.ordering import Ordering, ordering_type
from hudi_assets.engine.merging.winners import Flags
from hudi_assets.engine.storage import Storage, each
from hudi_assets.engine.table.log_files.headers import log_headers
from hudi_assets.engine.table.settings.not_merged import LET_HUDI_BY_VERSION

log = logging.getLogger(__name__)

OPERATION = "_hoodie_operation"
_POSITIONS = HeaderKey.RECORD_POSITIONS
APPLIED_PROPERTY = "hudi_assets.applied"
"""In a block's schema: its deletes were merged into the base file already (see `residue`)."""
_AVRO_BLOCKS = "Let its writers write Avro blocks (hoodie.logfile.data.block.format=avro)."
NOT_READ_WIDER = "The table's schema has changed since in a way that is not read."


@dataclass(frozen=True, slots=True)
class CommittedInstants:
    """The timeline as a log reader needs it: what is completed, and where the active timeline starts.

    With `until`, as of that instant: later ones do not count. `unfinished`: log files of writes that were not
    completed; a rollback may delete them under the reader.
    """

    completed: frozenset[str]
    start: str | None
    until: str | None = None
    unfinished: frozenset[str] = frozenset()

    def __contains__(self, timestamp: str) -> bool:
        if self.until is not None and timestamp > self.until:
            return False
        return timestamp in self.completed or (self.start is not None and timestamp < self.start)


@dataclass(slots=True)
class LogScan:
    """The records of some log files of one slice, in log order, and what was passed over."""

    records: list[LogRecords]
    log_records: int = 0
    blocks: int = 0
    corrupt_blocks: int = 0
    rollback_blocks: int = 0


@dataclass(frozen=True, slots=True)
class StoredBlock:
    """A data or delete block that counts, in a log file of a slice; its content is still in the file."""

    path: str
    block: LogBlock

    def records(
        self,
        storage: Storage,
        schema: pa.Schema,
        ordering: Ordering,
        columns: Sequence[str] | None = None,
        chosen: Flags | None = None,
        dictionaries: frozenset[str] = frozenset(),
    ) -> LogRecords:
        """Its records in the columns of `schema`; with `columns`, rows in those of them alone.

        `chosen`: of an Avro data block, these rows; the others are stepped over by their lengths. `dictionaries`: text
        columns that may come as such.
        """
        where = f"{storage.base}: {self.path}"
        block = self._whole(storage)
        if chosen is not None:
            with _named(where):
                block = replace(block, content=avro_codec.chosen_records(block.content, chosen))
        return block_records(block, schema, ordering, where, columns, dictionaries)

    def to_look_at(
        self, storage: Storage, schema: pa.Schema, ordering: Ordering, columns: Sequence[str]
    ) -> tuple[LogRecords, str | None]:
        """Its records in those of the columns that a look asks for, and why they are not merged here (None: they are).

        Rows need not be whole: a column that they lack is null. Of partial updates `only` has all that they have.
        """
        where = f"{storage.base}: {self.path}"
        block = self._whole(storage)
        if block.type is BlockType.DELETE:
            return block_records(block, schema, ordering, where), None
        with _named(where):
            names = column_names(block)
            rows = data_block_table(block, [name for name in columns if name in names])
            asked = [field.with_nullable(True) for field in schema if field.name in columns]
            only = frozenset(names) if is_partial(block) else None
            problem = columns_not_merged(names) or _unordered(only, ordering) or _text_of_rows(block, schema, ordering)
            return Rows(avro_project.project(rows, pa.schema(asked)), only), problem

    @property
    def positions_in(self) -> str | None:
        """The instant of the base file in which the records have positions; None where they have none."""
        header = self.block.header
        return header.get(HeaderKey.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS) if _POSITIONS in header else None

    def _whole(self, storage: Storage) -> LogBlock:
        content = storage.read_at(self.path, self.block.content_offset, self.block.content_size)
        if len(content) < self.block.content_size:
            where = f"{storage.base}: {self.path}"
            raise CorruptTable("The log file ends within a block that was whole a moment ago.", where=where)
        return replace(self.block, content=content)

    def reads_chosen(self, deciding: Sequence[str]) -> bool:
        """True where the deciding columns, and then some of the rows, are decoded without the rest."""
        if is_partial(self.block):
            return False
        return self.block.type is BlockType.AVRO_DATA and avro_codec.picks(_avro_schema(self.block), deciding)


@dataclass(slots=True)
class FoundBlocks:
    """The blocks of some log files of one slice that count, in log order, and what was passed over."""

    blocks: list[StoredBlock]
    seen: int = 0
    corrupt: int = 0
    rollbacks: int = 0


def find_blocks(storage: Storage, paths: Iterable[str], committed: CommittedInstants) -> FoundBlocks:
    """Look through log files in the given (log) order, by their blocks' headers alone."""

    def headers(path: str) -> list[LogBlock]:
        try:
            return list(log_headers(storage, path))
        except FileNotFoundError:
            if path not in committed.unfinished:
                raise
            return []

    found, files = FoundBlocks([]), list(paths)
    for path, blocks in zip(files, each(storage, headers, files), strict=True):
        with located(f"{storage.base}: {path}"):
            for block in blocks:
                _look_at(block, path, committed, found)
    return found


def _look_at(block: LogBlock, path: str, committed: CommittedInstants, found: FoundBlocks) -> None:
    found.seen += 1
    if block.is_corrupt:
        _refuse_framed(block)
        found.corrupt += 1
        log.warning("%s: skipped a corrupt block: %s", path, block.problem)
        return
    refuse_unsupported(block)
    if block.type is BlockType.COMMAND:
        found.rollbacks += 1
        target = block.target_instant_time
        found.blocks = [stored for stored in found.blocks if stored.block.instant_time != target]
    elif block.instant_time in committed:
        found.blocks.append(StoredBlock(path, block))


def scan_logs(
    storage: Storage, paths: Iterable[str], schema: pa.Schema, ordering: Ordering, committed: CommittedInstants
) -> LogScan:
    """Read log files in the given (log) order; rows have the columns of `schema`, no others are read.

    `schema` has the record key and, where they are in the table, the ordering fields and `_hoodie_is_deleted`.
    """
    found = find_blocks(storage, paths, committed)
    records = [stored.records(storage, schema, ordering) for stored in found.blocks]
    count = sum(size_of(block) for block in records)
    return LogScan(records, count, found.seen, found.corrupt, found.rollbacks)


def _refuse_framed(block: LogBlock) -> None:
    """A torn write is passed over; a whole block that cannot be read is damage, and rows would be lost."""
    if block.framed:
        raise CorruptTable(
            f"The log block at byte {block.offset} is whole but cannot be read: {block.problem}.",
            hint="Restore the file from a copy.",
        )


def is_read(block: LogBlock) -> bool:
    """True for a block whose records can be read; False for kinds that are known and not read."""
    return block.type not in (BlockType.HFILE_DATA, BlockType.CDC)


def block_not_merged(block: LogBlock) -> str | None:
    """Why a block's records are not merged here, in a sentence; None where they are."""
    if not is_read(block):
        return f"Log blocks of type {block.type.name} are not merged here."
    if block.header.get(HeaderKey.COMPACTED_BLOCK_TIMES, "false").lower() != "false":
        return "A log block was written by log compaction, which is not merged here."
    return None


def is_partial(block: LogBlock) -> bool:
    """True for a data block whose rows have some of their columns alone, as MERGE INTO of Hudi 1.x writes them."""
    return block.is_data and block.header.get(HeaderKey.IS_PARTIAL, "false").lower() != "false"


def columns_not_merged(names: Sequence[str]) -> str | None:
    """Why rows of these columns are not whole rows of a table with meta columns; None where they are."""
    if OPERATION in names:
        return f"The rows have {OPERATION} (changelog mode), which is not merged here."
    if KEY not in names:
        return "The rows have no Hudi meta columns, which is not merged here."
    if all(name in META_COLUMNS for name in names):
        return "The rows have meta columns alone: a bootstrapped table has its data elsewhere."
    return None


def refuse_unsupported(block: LogBlock) -> None:
    """Refuse a block of a kind that is not merged, by name. The caller says of which file (`located`)."""
    if (problem := block_not_merged(block)) is not None:
        raise UnsupportedTable(problem, hint=LET_HUDI_BY_VERSION)


def refuse_columns(names: Sequence[str], where: str) -> None:
    """Refuse rows whose columns say that they are not whole rows of a table with meta columns."""
    if (problem := columns_not_merged(names)) is not None:
        raise UnsupportedTable(problem, where=where)


def block_records(
    block: LogBlock,
    schema: pa.Schema,
    ordering: Ordering,
    where: str,
    columns: Sequence[str] | None = None,
    dictionaries: frozenset[str] = frozenset(),
) -> LogRecords:
    """A data or delete block's records, in the table's schema; with `columns`, rows in those of them alone.

    `where`: table and file, for errors. `dictionaries`: text columns that may come as such.
    """
    if columns is not None:
        schema = pa.schema([field for field in schema if field.name in columns])
    with _named(where):
        if block.type is BlockType.DELETE:
            deletes = delete_codec.decode_deletes(block.content)
            return as_deletes(deletes, ordering_type(schema, ordering))
        if (problem := _text_of_rows(block, schema, ordering)) is not None:
            raise UnsupportedTable(problem, where=where, hint=_AVRO_BLOCKS)
        rows = _needed_columns(block, schema.names, where, dictionaries)
        only = None
        if is_partial(block):
            only = frozenset(column_names(block))
            if (problem := _unordered(only, ordering)) is not None:
                raise UnsupportedTable(problem, where=where, hint=LET_HUDI_BY_VERSION)
            schema = pa.schema([field.with_nullable(field.nullable or field.name not in only) for field in schema])
        return Rows(avro_project.project(rows, with_dictionaries(schema, rows.schema, dictionaries)), only)


def _unordered(only: frozenset[str] | None, ordering: Ordering) -> str | None:
    """Why partial updates of these columns are not merged here; None where they are."""
    if only is not None and len(ordering) > 1:
        return "Partial updates of a table with several ordering fields are not merged here."
    lacking = [] if only is None else [name for name in ordering if name not in only]
    if not lacking:
        return None
    return f"A partial update lacks the ordering field {lacking[0]}, by which it would be merged."


def _text_of_rows(block: LogBlock, schema: pa.Schema, ordering: Ordering) -> str | None:
    """Why these records are not merged here; None where they are.

    Hudi 1.2.0 does not hold on to a text that it reads from a Parquet block: it compares what its buffer holds then.
    """
    if len(ordering) < 2 or block.type is not BlockType.PARQUET_DATA:
        return None
    texts = [name for name in ordering if pa.types.is_string(schema.field(name).type)]
    if not texts:
        return None
    return f"Text of Parquet log blocks ({texts[0]}, one of several ordering fields) is not compared by Hudi as it is."


@contextmanager
def _named(where: str) -> Iterator[None]:
    """Errors name the table and the log file."""
    try:
        yield
    except CorruptTable as error:
        raise CorruptTable(error.what, where=where, hint=error.hint) from error
    except InvalidInput as error:
        raise UnsupportedTable(error.what, where=where, hint=NOT_READ_WIDER) from error
    except UnsupportedTable as error:
        raise UnsupportedTable(error.what, where=error.where or where, hint=error.hint) from error


def column_names(block: LogBlock) -> list[str]:
    """The columns of a data block's rows."""
    if block.type is not BlockType.PARQUET_DATA:
        return avro_codec.field_names(_avro_schema(block))
    with parquet_damage():
        names: list[str] = open_parquet(pa.BufferReader(block.content)).schema_arrow.names
        return names


def data_block_table(block: LogBlock, columns: Sequence[str] | None = None) -> pa.Table:
    """A data block's rows in the schema that its writer had, or those of the columns that it has."""
    if block.type is BlockType.PARQUET_DATA:
        return read_parquet(pa.BufferReader(block.content), columns)
    return avro_codec.decode_records(block.content, _avro_schema(block), columns)


def _needed_columns(block: LogBlock, columns: Sequence[str], where: str, dictionaries: frozenset[str]) -> pa.Table:
    """Those of the columns that the block has; refused by all of its columns' names."""
    if block.type is not BlockType.PARQUET_DATA:
        refuse_columns(avro_codec.field_names(_avro_schema(block)), where)
        return data_block_table(block, columns)
    with parquet_damage():
        file = open_parquet(pa.BufferReader(block.content), dictionaries=dictionaries)
        refuse_columns(file.schema_arrow.names, where)
        return read_columns(file, columns)


def _avro_schema(block: LogBlock) -> str:
    if block.schema is None:
        raise CorruptTable(f"The data block at byte {block.offset} has no schema.")
    return block.schema


def count_deleted(table: pa.Table) -> int:
    """Rows that are deletes by `_hoodie_is_deleted`."""
    if IS_DELETED not in table.schema.names:
        return 0
    return sum(1 for flag in table.column(IS_DELETED).to_pylist() if flag)
