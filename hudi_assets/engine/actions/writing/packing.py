"""A DataFrame's rows, checked, and put together by file group before they travel. Pure Arrow."""

from __future__ import annotations

import json
import zlib
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import pyarrow as pa

from hudi_assets.engine.actions.writing.exchange import Note, Parcel
from hudi_assets.engine.actions.writing.row_checks import RowCount, count_rows, fitting
from hudi_assets.engine.merging.merge import KEY
from hudi_assets.engine.table.metadata.decimal_limits import Columns
from hudi_assets.engine.table.record_keys import bucket_ids, partition_paths, record_keys
from hudi_assets.engine.table.settings.config import TableConfig

Numbers = np.ndarray[tuple[int], np.dtype[np.intp]]
PARTITION = "_hoodie_partition_path"
_GROUPS = b"hudi_assets.groups"
"""In the schema of a parcel: [partition, bucket, rows] of each file group, in the order of its rows."""
_PARCEL_BYTES = 32 << 20


@dataclass(frozen=True)
class Packing:
    """What a worker needs to check rows and to know their file groups. Picklable."""

    config: TableConfig
    not_null: tuple[str, ...]
    by_value: pa.Schema  # columns whose values are tried: see `evolution.by_value`
    tight: Columns | None = None  # columns whose values need room in the metadata table: see `count_rows`

    def pack(self, batches: Iterator[pa.RecordBatch], slots: int) -> Iterator[Parcel | Note]:
        """Parcels of rows sorted by file group, then the `RowCount`. Faulty rows are counted, and nothing travels."""
        count = RowCount()
        waiting: list[pa.RecordBatch] = []
        size = 0
        for batch in fitting(_bounded(batches), self.by_value):
            count += count_rows([batch], self.config, self.not_null, self.tight)
            if count.faults:
                waiting = []
                continue
            if waiting and size + batch.nbytes > _PARCEL_BYTES:
                count.groups |= yield from parcels(waiting, self.config, slots)
                waiting, size = [], 0
            waiting.append(batch)
            size += batch.nbytes
        count.groups |= yield from parcels(waiting, self.config, slots)
        yield Note(count)


def _bounded(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The batches, none much larger than a parcel."""
    for batch in batches:
        step = max(1, len(batch) * _PARCEL_BYTES // max(1, batch.nbytes))
        for start in range(0, len(batch), step):
            yield batch.slice(start, step)


def parcels(
    batches: Sequence[pa.RecordBatch], config: TableConfig, slots: int
) -> Generator[Parcel, None, frozenset[tuple[str, int]]]:
    """The rows of some batches, a parcel for each slot that they go to. Returns their file groups."""
    if not batches:
        return frozenset()
    rows = pa.Table.from_batches(batches).combine_chunks().to_batches()[0]
    numbers, groups = _groups(rows, config)
    homes = [_slot(partition, bucket, slots) for partition, bucket in groups]
    in_order = sorted(range(len(groups)), key=lambda number: (homes[number], number))
    rank = np.empty(len(groups), np.uint16 if len(groups) <= 1 << 16 else np.int64)
    rank[in_order] = np.arange(len(groups))
    ranks = rank[numbers]
    sizes = np.bincount(ranks).tolist()
    if len(groups) > 1:
        # Rows of a group keep the order they came in: of two equal ordering values the later one wins.
        rows = rows.take(pa.array(np.argsort(ranks, kind="stable")))
    start = 0
    for slot, members in groupby(zip(in_order, sizes, strict=True), key=lambda member: homes[member[0]]):
        listed = [(*groups[number], size) for number, size in members]
        size = sum(size for _, _, size in listed)
        named = rows.schema.with_metadata({_GROUPS: json.dumps(listed).encode()})
        yield Parcel(slot, pa.RecordBatch.from_arrays(rows.slice(start, size).columns, schema=named))
        start += size
    return frozenset(groups)


def _groups(rows: pa.RecordBatch, config: TableConfig) -> tuple[Numbers, list[tuple[str, int]]]:
    """Per row the number of its file group, and the groups: partition path and bucket (0 where there are none)."""
    count = config.buckets or 1
    codes = bucket_ids([rows.column(n) for n in config.record_key], count, complex_keys=config.complex_keys)
    paths = [""]
    if config.partitioned:
        encoded = partition_paths(
            [rows.column(name) for name in config.partition_fields],
            config.partition_fields,
            hive_style=config.hive_style,
            url_encode=config.url_encode,
        ).dictionary_encode()
        paths = encoded.dictionary.to_pylist()
        codes = encoded.indices.to_numpy().astype(np.int64) * count + codes
    present, numbers = np.unique(codes, return_inverse=True)
    return numbers, [(paths[code // count], code % count) for code in present.tolist()]


def _slot(partition: str, bucket: int, slots: int) -> int:
    """Buckets of one partition go round the slots."""
    return (zlib.crc32(partition.encode()) + bucket) % slots


def groups_of(batches: Iterable[pa.RecordBatch], config: TableConfig) -> Iterator[tuple[str, int, pa.Table]]:
    """Partition path, bucket and rows (record key and partition path in front) of each file group in some parcels.

    The rows lie where the parcels do, in as many chunks.
    """
    found: dict[tuple[str, int], list[pa.RecordBatch]] = {}
    for batch in batches:
        start = 0
        for partition, bucket, size in json.loads(batch.schema.metadata[_GROUPS]):
            found.setdefault((partition, bucket), []).append(batch.slice(start, size))
            start += size
    for partition, bucket in sorted(found):
        parts = found.pop((partition, bucket))
        keys = [
            record_keys([part.column(n) for n in config.record_key], config.record_key, config.complex_keys)
            for part in parts
        ]
        rows = pa.Table.from_batches(parts, parts[0].schema.remove_metadata())
        rows = rows.add_column(0, PARTITION, pa.repeat(pa.scalar(partition, pa.string()), len(rows)))
        yield partition, bucket, rows.add_column(0, KEY, pa.chunked_array(keys, pa.string()))
