"""A file slice's rows, merged within the reader's memory, and as batches that cross to the JVM."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import pyarrow as pa

from hudi_assets.engine.merging.passes import SliceMerge
from hudi_assets.engine.table.slices.reader import SliceReader, SliceTask
from hudi_assets.engine.table.slices.streams import BaseRows, StoredSlice

_BATCH_ROWS = 1 << 14  # few enough for their columns to stay in the processor's cache


def read_slice(reader: SliceReader, task: SliceTask) -> Iterator[pa.Table]:
    """A file slice's merged rows, in parts, in the columns that the reader shows."""
    names = reader.shown.names
    if task.log_files:
        whole = replace(reader, schema=reader.merged, columns=None)
        source = StoredSlice.open(whole, task.base_file, task.log_files)
        for table in SliceMerge(source, reader.ordering, reader.mode, reader.memory, gaps=reader.gaps).rows():
            yield table.select(names)
    elif task.base_file:
        for table in BaseRows(reader.storage, task.base_file, reader.shown).tables(names, reader.memory // 4):
            yield table.select(names)


def in_batches(tables: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
    """The rows in batches of a size that is good to cross with; small tables go together."""
    held: list[pa.Table] = []
    rows = 0
    for table in tables:
        held.append(table)
        rows += len(table)
        if rows >= _BATCH_ROWS:
            yield from _batches(held)
            held, rows = [], 0
    if rows:
        yield from _batches(held)


def _batches(tables: list[pa.Table]) -> Iterator[pa.RecordBatch]:
    whole = [table for table in tables if len(table) >= _BATCH_ROWS]
    small = [table for table in tables if len(table) < _BATCH_ROWS]
    together = [pa.concat_tables(small).combine_chunks()] if small else []
    for table in (*together, *whole):
        yield from table.to_batches(max_chunksize=_BATCH_ROWS)
