"""Writing a base file: a Parquet file with Hudi's footer keys, row group by row group."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from contextlib import suppress
from types import TracebackType
from typing import Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from hudi_assets.engine.format.bloom import BloomSettings, bloom_footer, joined_ranges, key_range
from hudi_assets.engine.format.parquet_distinct import dictionary_columns
from hudi_assets.engine.format.parquet_required import with_stand_ins
from hudi_assets.engine.merging.merge import KEY
from hudi_assets.engine.storage import NewFile, Storage
from hudi_assets.engine.table.settings.parquet import BY_DEFAULT, ParquetSettings

FILE_NAME: Final = "_hoodie_file_name"
ROW_GROUP_ROWS: Final = 1 << 20
ROW_GROUP_BYTES: Final = 128 << 20
# From this release on Spark's files have dates of the proleptic Gregorian calendar, as ours do. In files that name no
# release, Spark 3 refuses dates before 1582 and timestamps before 1900: they may be of the Julian one.
_CALENDAR_OF_SPARK: Final = "3.1.0"
# Rows that the writer takes at a time. With fewer, the bounds of a dictionary's texts are looked for again and again;
# a page ends with such a batch.
_BATCH_ROWS: Final = 1 << 13


class BaseFileWriter:
    """Writes one base file from tables in the order in which they come.

    Text columns may come as dictionaries: those that do are written as such, without being looked up again.
    Held at a time: the rows of one row group, `row_group_bytes` of them in Arrow or what the settings say if that is
    less, and the keys where there is a bloom filter. Used as a context: what an error interrupts is never there.
    `name`: the file's own, where it is written under another one (`timeline.attempts`).
    """

    def __init__(
        self,
        storage: Storage,
        path: str,
        schema: pa.Schema,
        avro_schema: str,
        bloom: BloomSettings | None,
        row_group_bytes: int = ROW_GROUP_BYTES,
        settings: ParquetSettings = BY_DEFAULT,
        *,
        name: str | None = None,
    ) -> None:
        self.rows = 0
        self._storage = storage
        self._path = path
        self._schema = schema
        self._avro_schema = avro_schema
        self._bloom = bloom
        self._most_bytes = min(row_group_bytes, settings.block_size or row_group_bytes)
        self._settings = settings
        self._name = pa.array([name or path.rpartition("/")[2]])
        self._waiting: list[pa.Table] = []
        self._held = 0
        self._range: Mapping[str, str] | None = None
        self._keys: list[pa.ChunkedArray] = []
        self._file: NewFile | None = None
        self._parquet: pq.ParquetWriter | None = None
        self._written: pa.Schema | None = None  # with the dictionaries that the first row group has

    def __enter__(self) -> Self:
        self._file = self._storage.open_new(self._path)
        return self

    def write(self, rows: pa.Table) -> None:
        """Append rows; their `_hoodie_file_name` becomes this file's, whether they have it or not."""
        if not len(rows):
            return
        rows = self._named(rows)
        keys = rows.column(KEY)
        self._range = joined_ranges(self._range, key_range(keys))
        if self._bloom:
            self._keys.append(keys)
        self.rows += len(rows)
        for part in self._parts(rows):
            self._waiting.append(part)
            self._held += part.nbytes
            if self._held >= self._most_bytes:
                self._flush()

    def _parts(self, rows: pa.Table) -> list[pa.Table]:
        """The rows, in parts that fit a row group where its size is the owner's word."""
        if self._settings.block_size is None or rows.nbytes <= self._most_bytes:
            return [rows]
        size = max(1, len(rows) * self._most_bytes // rows.nbytes)
        return [rows.slice(start, size) for start in range(0, len(rows), size)]

    def _named(self, rows: pa.Table) -> pa.Table:
        columns = {name: rows.column(name) for name in rows.schema.names}
        name = pa.DictionaryArray.from_arrays(pa.array(np.zeros(len(rows), np.int32)), self._name)
        columns[FILE_NAME] = pa.chunked_array([name])
        fields = [_as_dictionary(f) if _is_dictionary(columns[f.name]) else f for f in self._schema]
        return pa.Table.from_arrays([columns[field.name] for field in fields], schema=pa.schema(fields))

    def _flush(self) -> None:
        if self._written is None:
            self._written = self._shape()
        columns = [
            _joined([chunk for rows in self._waiting for chunk in rows.column(field.name).chunks], field)
            for field in self._written
        ]
        rows = pa.Table.from_arrays(columns, schema=self._written)
        self._waiting, self._held = [], 0
        if self._parquet is None:
            self._parquet = pq.ParquetWriter(
                self._file,
                self._written,
                compression=self._settings.codec,
                use_dictionary=dictionary_columns(rows) if self._settings.dictionary else False,
                write_batch_size=_BATCH_ROWS,
                store_schema=False,  # dictionaries are none of the readers' business: the footer has the table's
            )
        self._parquet.write_table(with_stand_ins(rows), row_group_size=ROW_GROUP_ROWS)

    def _shape(self) -> pa.Schema:
        """The schema with dictionaries for the columns that have come as such."""
        if not self._settings.dictionary:
            return self._schema
        came = {name for rows in self._waiting for name in rows.schema.names if _is_dictionary(rows.column(name))}
        return pa.schema([_as_dictionary(field) if field.name in came else field for field in self._schema])

    def _footer(self) -> dict[str, str]:
        """The keys of org.apache.hudi.avro.HoodieAvroWriteSupport, and Spark's own, for the calendar."""
        keys = pa.chunked_array([c for column in self._keys for c in column.chunks], self._schema.field(KEY).type)
        return {
            "parquet.avro.schema": self._avro_schema,
            **(self._range or key_range(keys)),
            **(bloom_footer(keys, self._bloom) if self._bloom else {}),
            "org.apache.spark.version": _CALENDAR_OF_SPARK,
            # As pyarrow does it: types that Parquet has no word for come back as they were.
            "ARROW:schema": base64.b64encode(self._schema.serialize()).decode("ascii"),
        }

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._abandon()
            return
        try:
            self._finish()
        except BaseException:
            self._abandon()
            raise

    def _finish(self) -> None:
        if self._waiting or self._parquet is None:
            self._flush()
        assert self._file is not None
        assert self._parquet is not None
        self._parquet.add_key_value_metadata(self._footer())
        self._parquet.close()
        self._file.close()

    def _abandon(self) -> None:
        # A full disk fails the footer too; what matters is the first error.
        if self._parquet is not None:
            with suppress(pa.ArrowException, OSError):
                self._parquet.close()
        if self._file is not None:
            self._file.abort()

    def sync(self) -> int:
        """Make the closed file's bytes survive a power cut; their number. Its name does once it is published."""
        self._storage.sync(self._path)
        return self._storage.size(self._path)


def _is_dictionary(column: pa.ChunkedArray) -> bool:
    return bool(pa.types.is_dictionary(column.type))


def _as_dictionary(field: pa.Field) -> pa.Field:
    return field.with_type(pa.dictionary(pa.int32(), field.type))


def _joined(chunks: list[pa.Array], field: pa.Field) -> pa.ChunkedArray:
    """The chunks as a column of a type that is a dictionary, or is not."""
    if not pa.types.is_dictionary(field.type):
        chunks = [chunk.dictionary_decode() if pa.types.is_dictionary(chunk.type) else chunk for chunk in chunks]
        return pa.chunked_array(chunks, field.type)
    chunks = [chunk if pa.types.is_dictionary(chunk.type) else chunk.dictionary_encode() for chunk in chunks]
    return pa.chunked_array(chunks, field.type).unify_dictionaries()


def write_base_file(
    storage: Storage,
    path: str,
    rows: pa.Table,
    avro_schema: str,
    bloom: BloomSettings | None,
    settings: ParquetSettings = BY_DEFAULT,
    *,
    name: str | None = None,
) -> int:
    """Write a base file that holds these rows; its size in bytes."""
    with BaseFileWriter(storage, path, rows.schema, avro_schema, bloom, settings=settings, name=name) as writer:
        for start in range(0, max(1, len(rows)), ROW_GROUP_ROWS):
            writer.write(rows.slice(start, ROW_GROUP_ROWS))
    return writer.sync()
