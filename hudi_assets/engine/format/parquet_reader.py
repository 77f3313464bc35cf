"""Parquet files, read so that a damaged or hostile one is refused before it fills the memory."""

from __future__ import annotations

import io
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_assets.engine.errors import CorruptTable


def read_parquet(source: pa.NativeFile | BinaryIO, columns: Sequence[str] | None = None) -> pa.Table:
    """A whole Parquet file, or some columns of it; CorruptTable where it is none."""
    with parquet_damage():
        return read_columns(open_parquet(source), columns)


def open_parquet(
    source: pa.NativeFile | BinaryIO, buffer: int = 0, dictionaries: Collection[str] = ()
) -> pq.ParquetFile:
    """A Parquet file whose footer claims no more than its size can hold. Call it within `parquet_damage`.

    With a `buffer` (bytes) so much of each column is read at a time; else all that a row group has of it.
    Those of the `dictionaries` that the file has as such are read so: they are not spread to be collected again.
    """
    file = pq.ParquetFile(source, buffer_size=buffer)
    _refuse_bomb(file.metadata, source.seek(0, io.SEEK_END))
    names = _repeating(file.metadata, dictionaries) if dictionaries else []
    if not names:
        return file
    return pq.ParquetFile(source, metadata=file.metadata, read_dictionary=names, buffer_size=buffer)


def _repeating(metadata: pq.FileMetaData, names: Collection[str]) -> list[str]:
    """Columns that are dictionaries in the file, as far as a footer tells it: few bytes for each value."""
    found = []
    for number in range(metadata.num_columns):
        chunks = [metadata.row_group(group).column(number) for group in range(metadata.num_row_groups)]
        if chunks and chunks[0].path_in_schema in names and all(_is_dictionary(chunk) for chunk in chunks):
            found.append(chunks[0].path_in_schema)
    return found


def _is_dictionary(chunk: pq.ColumnChunkMetaData) -> bool:
    return bool(
        chunk.physical_type == "BYTE_ARRAY"
        and chunk.has_dictionary_page
        and chunk.total_uncompressed_size <= _INDEX_BYTES * chunk.num_values + _SMALL
    )


def with_dictionaries(schema: pa.Schema, read: pa.Schema, names: Collection[str]) -> pa.Schema:
    """A schema in which those of the columns are dictionaries that were read as such, of the same values."""
    return pa.schema([_as_read(field, read) if field.name in names else field for field in schema])


def _as_read(field: pa.Field, read: pa.Schema) -> pa.Field:
    kind = read.field(field.name).type if field.name in read.names else field.type
    return field.with_type(kind) if pa.types.is_dictionary(kind) and kind.value_type == field.type else field


def read_columns(file: pq.ParquetFile, columns: Sequence[str] | None = None) -> pa.Table:
    """Those of the columns that the file has (None: all of them). Call it within `parquet_damage`.

    On this thread alone: Spark's tasks are the parallelism, and pyarrow's reader threads can end the
    process when it exits.
    """
    table = file.read(columns=columns, use_threads=False)
    table.validate(full=True)  # text that is no UTF-8 would surface anywhere
    return table


@contextmanager
def parquet_damage() -> Iterator[None]:
    """CorruptTable for what pyarrow raises where Parquet data is damaged."""
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise CorruptTable(f"Parquet data cannot be read: {error}.") from error


def _refuse_bomb(metadata: pq.FileMetaData, size: int) -> None:
    """A few bytes can claim any number of equal values. Rows of a Hudi table have keys, which do not compress so."""
    unpacked = sum(metadata.row_group(number).total_byte_size for number in range(metadata.num_row_groups))
    if metadata.num_rows > _MOST_ROWS + 64 * size or unpacked > _MOST_BYTES + 256 * size:
        raise CorruptTable(
            f"{size} bytes of Parquet claim to hold {metadata.num_rows} rows of {unpacked} bytes: no rows with keys do."
        )


_MOST_ROWS = 1 << 20


_MOST_BYTES = 64 << 20


_INDEX_BYTES = 3  # of a dictionary's index, and of its texts' part in it: more, and the texts hardly repeat


_SMALL = 4 << 10
