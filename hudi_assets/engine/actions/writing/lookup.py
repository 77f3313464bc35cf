"""Writing where the index looks keys up (SIMPLE, BLOOM): updates go to the key's file group, new keys to base files.

As Hudi's HoodieSimpleIndex tags records and its UpsertDeltaCommitPartitioner places them: Hudi's own writers find keys
in base files only, so a new key must be in one at once: in a small file's next version, or in a new file group's first.
Each partition of the table is one task: it reads the key column of the partition's base files.
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from hudi_assets.engine.actions.writing.bulk_insert import group_base
from hudi_assets.engine.actions.writing.log_files import (
    Target,
    WriteSpec,
    Written,
    delete_log,
    ensure_partition,
    group_logs,
)
from hudi_assets.engine.actions.writing.packing import groups_of
from hudi_assets.engine.errors import CorruptTable
from hudi_assets.engine.format.bloom import BloomSettings
from hudi_assets.engine.merging.merge import KEY, Rows
from hudi_assets.engine.model.files import GroupKey
from hudi_assets.engine.queries.query import slice_reader
from hudi_assets.engine.table.index import bloom_filter_of, names_bucket
from hudi_assets.engine.table.slices.reader import SliceReader
from hudi_assets.engine.table.state import TableState

_NEW = -1


@dataclass(frozen=True, slots=True)
class Place:
    """A file group of a partition, by its number among the write's targets.

    `room` bytes are left in its base file for new keys: 0 where it is no small file, or has log files.
    """

    number: int
    file_id: str
    base_file: str | None
    base_instant: str
    log_files: tuple[str, ...]
    room: int


@dataclass(frozen=True)
class Lookup:
    """What a worker needs to find keys, and to write base files of up to `base_file_size` bytes."""

    reader: SliceReader
    places: Mapping[str, tuple[Place, ...]]  # by partition
    bloom: BloomSettings | None
    base_file_size: int


def lookup_of(state: TableState) -> Lookup:
    """How the keys of a table are found as it stands."""
    sizes = state.config.compaction
    by_partition: dict[str, list[Place]] = {}
    numbers = group_numbers(state)
    for slice_ in state.view.latest:
        key, base = (slice_.partition, slice_.file_id), slice_.base_file
        small = base is not None and base.size < sizes.small_file_limit
        grows = small and not slice_.log_files and key not in state.view.pending
        by_partition.setdefault(slice_.partition, []).append(
            Place(
                number=numbers[key],
                file_id=slice_.file_id,
                base_file=base.path if base else None,
                base_instant=slice_.base_instant,
                log_files=tuple(log.path for log in slice_.log_files),
                room=max(0, sizes.base_file_size - base.size) if base and grows else 0,
            )
        )
    return Lookup(
        slice_reader(state),
        {partition: tuple(places) for partition, places in by_partition.items()},
        bloom_filter_of(state),
        sizes.base_file_size,
    )


def group_numbers(state: TableState) -> dict[GroupKey, int]:
    """A number for each file group, within its partition."""
    numbers: dict[GroupKey, int] = {}
    seen: dict[str, int] = {}
    for key in sorted(state.view.groups):
        numbers[key] = seen.get(key[0], 0)
        seen[key[0]] = numbers[key] + 1
    return numbers


# ------------------------------------------------------------------------------------------ finding keys


def find(lookup: Lookup, partition: str, keys: pa.ChunkedArray) -> pl.Series:
    """Per key the number of its file group, -1 for a new one. `CorruptTable` where a key is in several."""
    wanted = pl.DataFrame({"key": pl.Series("key", keys.combine_chunks(), dtype=pl.String)})
    unique = wanted.unique()
    places = lookup.places.get(partition, ())
    found = _joined([_in_base(lookup.reader, place, unique) for place in places if place.base_file])
    missing = unique.join(found, on="key", how="anti")
    if len(missing):
        # A row of Hudi's is in a base file first; one of a pending compaction's slice may be in a log file alone.
        found = pl.concat([found, _joined([_in_logs(lookup.reader, p, missing) for p in places if p.log_files])])
    twice = found.filter(pl.col("key").is_duplicated())
    if len(twice):
        raise CorruptTable(
            f"The key {twice['key'][0]!r} is in several file groups of partition {partition!r}.",
            where=lookup.reader.storage.base,
            hint="Inserts of Hudi without a look at the index do that; delete the key with Hudi, and write it anew.",
        )
    return wanted.join(found, on="key", how="left", maintain_order="left")["number"].fill_null(_NEW)


def _joined(parts: Sequence[pl.DataFrame]) -> pl.DataFrame:
    return pl.concat([pl.DataFrame(schema={"key": pl.String, "number": pl.Int64}), *parts])


def _in_base(reader: SliceReader, place: Place, wanted: pl.DataFrame) -> pl.DataFrame:
    assert place.base_file is not None
    where = f"{reader.storage.base}: {place.base_file}"
    try:
        with reader.storage.open(place.base_file) as source, pq.ParquetFile(source) as file:
            keys = file.read(columns=[KEY], use_threads=False).column(0)
    except (pa.ArrowException, FileNotFoundError) as error:
        raise CorruptTable(f"A base file's keys cannot be read: {error}.", where=where) from error
    return _numbered(keys, place, wanted)


def _in_logs(reader: SliceReader, place: Place, wanted: pl.DataFrame) -> pl.DataFrame:
    _, scan = reader.scan(None, place.log_files)
    parts = [part.table.column(KEY).combine_chunks() for part in scan.records if isinstance(part, Rows)]
    return _numbered(pa.chunked_array(parts, pa.string()), place, wanted)


def _numbered(keys: pa.ChunkedArray, place: Place, wanted: pl.DataFrame) -> pl.DataFrame:
    held = pl.DataFrame({"key": pl.Series("key", keys.combine_chunks(), dtype=pl.String)})
    return wanted.join(held, on="key", how="semi").with_columns(pl.lit(place.number, pl.Int64).alias("number"))


# ------------------------------------------------------------------------------------------- in a worker


def write_found_rows(spec: WriteSpec, lookup: Lookup, batches: Iterator[pa.RecordBatch], token: str) -> list[Written]:
    """Write one Spark partition's rows: log files for keys that are there, base files for those that are new."""
    written: list[Written] = []
    counter = 0
    for partition, _, found in groups_of(batches, spec.config):
        rows = found.combine_chunks()
        numbers = find(lookup, partition, rows.column(KEY))
        ensure_partition(spec.storage, partition, spec.instant)
        growing = _growing(lookup, partition, rows) if (numbers == _NEW).any() else None
        for number in numbers.unique().sort():
            if number == _NEW or (growing is not None and number == growing.number):
                continue
            part = rows.filter((numbers == number).to_arrow())
            logs = group_logs(spec, partition, spec.target(partition, number), part, token, counter)
            counter += len(part)
            written += logs
        inserted = numbers.is_in([_NEW, *([growing.number] if growing else [])])
        shares = _shares(spec, lookup, partition, growing, rows.filter(inserted.to_arrow()), numbers.filter(inserted))
        for share in shares:
            written += _base_file(spec, lookup, partition, share, token, counter)
            counter += len(share.rows)
    return written


def write_found_deletes(
    spec: WriteSpec, lookup: Lookup, batches: Iterator[pa.RecordBatch], token: str
) -> list[Written]:
    """Write one Spark partition's deletes, of the keys that there are."""
    written = []
    for partition, _, found in groups_of(batches, spec.config):
        rows = found.combine_chunks()
        numbers = find(lookup, partition, rows.column(KEY))
        for number in numbers.unique().sort():
            if number != _NEW:
                part = rows.filter((numbers == number).to_arrow())
                written.append(delete_log(spec, partition, spec.target(partition, number), token, part))
    return written


def _per_row(rows: pa.Table) -> int:
    """Bytes of a row in memory: on disk it is less, so files stay below their limit."""
    size: int = rows.nbytes
    return max(1, math.ceil(size / len(rows)))


def _growing(lookup: Lookup, partition: str, rows: pa.Table) -> Place | None:
    """The small file that new keys go to: the one with the most room."""
    with_room = [place for place in lookup.places.get(partition, ()) if place.room >= _per_row(rows)]
    return max(with_room, key=lambda place: (place.room, place.file_id), default=None)


@dataclass(frozen=True, slots=True)
class _Share:
    """The rows of one base file: of a small file's next version (`place`), or of a new file group's first."""

    place: Place | None
    file_id: str
    rows: pa.Table


def _shares(
    spec: WriteSpec, lookup: Lookup, partition: str, growing: Place | None, rows: pa.Table, numbers: pl.Series
) -> Iterator[_Share]:
    """New keys, and the rows of keys in the growing file, spread over base files."""
    if not len(rows):
        return
    keys, per_row = pl.Series("key", rows.column(KEY).combine_chunks()), _per_row(rows)
    new = keys.filter(numbers == _NEW).unique(maintain_order=True)
    room = growing.room // per_row if growing is not None else 0
    if growing is not None:
        mask = (numbers != _NEW) | keys.is_in(new[:room].implode())
        yield _Share(growing, growing.file_id, rows.filter(mask.to_arrow()))
    size = max(1, lookup.base_file_size // per_row)
    for start in range(room, len(new), size):
        mask = keys.is_in(new[start : start + size].implode())
        yield _Share(None, _new_file_id(spec.instant, partition, start), rows.filter(mask.to_arrow()))


def _base_file(
    spec: WriteSpec, lookup: Lookup, partition: str, share: _Share, token: str, counter: int
) -> list[Written]:
    """Write one share; nothing where all of a new file group's rows are deletes."""
    place = share.place
    prior = place.base_instant if place is not None else spec.instant
    target = Target(share.file_id, prior, spec.instant, 1, "", (), place is None)
    base = lookup.reader.read_base(place.base_file) if place is not None and place.base_file else None
    return group_base(spec, partition, target, share.rows, token, counter, bloom=lookup.bloom, grown=base)


def _new_file_id(instant: str, partition: str, number: int) -> str:
    """Derived, not random: a task that runs again names the same file group. Never one like a bucket's."""
    for attempt in range(100):
        found = f"{uuid.uuid5(uuid.NAMESPACE_URL, f'{instant}/{partition}/{number}/{attempt}')}-0"
        if not names_bucket(found):
            return found
    raise AssertionError("unreachable: one name in 40,000 is like a bucket's")
