"""The freshness of each partition as a small table beside the views, for readers who need not wait for a hot partition.

Its rows are one small Parquet file below the table's `.hoodie`, where nobody looks for data files, and whoever may
read the table may read it. Each publication writes a file in a folder of its own and then moves the entry there by one
call. So a reader has one publication's rows or the next one's, and what it began to read stays for an hour after that.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_assets.catalog.connections import AnyEntry, Connection, E, external_table
from hudi_assets.catalog.partition_folders import Folders, file_in
from hudi_assets.catalog.publication import PATH, PUBLICATION, replaced
from hudi_assets.catalog.same_table import is_same_location
from hudi_assets.catalog.spark_types import hive_columns
from hudi_assets.catalog.views import PARQUET
from hudi_assets.engine import PARTITION_TABLES, InvalidInput, PartitionFreshness, PublishedPartitions, Storage

FOLDER: Final = "hudi_assets.folder"
SCHEMA: Final = pa.schema(
    [
        ("partition_path", pa.string()),
        ("freshness", pa.timestamp("us", tz="UTC")),
        ("freshness_ms", pa.int64()),
        ("reason", pa.string()),
        ("behind", pa.bool_()),
        ("log_files", pa.int64()),
        ("log_bytes", pa.int64()),
        ("as_of_instant", pa.string()),
        ("computed_at", pa.timestamp("us", tz="UTC")),
    ]
)
# By which promises are compared.
_PROMISE: Final = ["partition_path", "freshness_ms"]
# What microseconds in 64 bits reach, years 290309 BC to 294246.
_FIRST_MS: Final = -(2**63 // 1000)
_LAST_MS: Final = (2**63 - 1) // 1000


def is_ours(parameters: Mapping[str, str], path: str) -> bool:
    """True for the entry that was made here for the table at `path`."""
    of = parameters.get(PATH)
    folder = parameters.get(FOLDER, "")
    return of is not None and folder.startswith(f"{PARTITION_TABLES}/") and is_same_location(of, path)


def not_ours(where: str) -> InvalidInput:
    return InvalidInput(
        "Something else has the name of the table with the freshness of the partitions.",
        where=where,
        hint="Drop it, choose another name for the read-optimized view, or leave hudi_assets.publish.partitions out.",
    )


def parquet_bytes(read: PublishedPartitions) -> bytes:
    """The rows, the partition that is furthest behind first."""
    rows = [
        {
            "partition_path": one.partition,
            "freshness": _timestamp(one.freshness),
            "freshness_ms": one.freshness,
            "reason": one.reason,
            "behind": one.holds_back,
            "log_files": one.remaining_log_files,
            "log_bytes": one.remaining_bytes,
            "as_of_instant": read.instant,
            "computed_at": _timestamp(read.computed_at),
        }
        for one in read.partitions
    ]
    out = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(rows, SCHEMA), out)
    return bytes(out.getvalue())


def _timestamp(ms: int | None) -> int | None:
    """Microseconds; None also for a time that they do not reach, as an event time may be that only stands for none."""
    return ms * 1000 if ms is not None and _FIRST_MS <= ms <= _LAST_MS else None


class Standing(Protocol):
    """The table in one catalog, as a publisher has found it."""

    @property
    def place(self) -> str:
        """Which entry it is, of which catalog. Another one each time, where nobody knows the catalog."""

    @property
    def parameters(self) -> Mapping[str, str] | None:
        """Of the entry that is there; None where none of ours is."""

    def put(self, location: str, properties: Mapping[str, str]) -> None:
        """Make the entry, or send its readers to this folder (a URI)."""

    def drop(self) -> None:
        """Take the entry out; its files stay."""

    def may_name(self, folder: str, error: Exception) -> bool:
        """Whether readers may be sent to the folder after all, where `put` has failed."""


@contextmanager
def beside_views(
    stands: Standing, storage: Storage, read: PublishedPartitions | None, properties: Mapping[str, str]
) -> Iterator[None]:
    """Around what publishes the views: promises that fall are told before them, those that rise after them.

    So at no time the table promises what is not in the read-optimized view, and neither does what a publisher leaves
    that dies in between. Where some fall and others rise, it has the lower one of each in the meantime.

    Where it is not wanted it goes before the views. If the publisher dies then, they name a table which is not there,
    and the next look mends that. Of a table that no properties name nobody would know.
    """
    told = stands.parameters or {}
    folder = told.get(FOLDER, "")
    own = hashlib.sha256(stands.place.encode()).hexdigest()[:16]
    folders = Folders(storage, folder.rpartition("/")[0] or f"{PARTITION_TABLES}/{own}", folder)
    if read is None:
        if stands.parameters is not None:
            stands.drop()
            folders.delete_left()
        yield
        return
    folders.delete_left()
    try:
        lower = lowered(read, _published(storage, told))
        first = None if lower is None else folders.write(parquet_bytes(lower))
        last = None if lower == read else folders.write(parquet_bytes(read))
        if first is not None:
            # With more to come it is of no publication: it must not count as together with the views.
            mark = properties if last is None else {**properties, PUBLICATION: uuid.uuid4().hex}
            _send(stands, storage, folders, first, mark)
        yield
        if last is not None:
            _send(stands, storage, folders, last, properties)
    except BaseException:
        folders.discard_unseen()
        raise


def _send(stands: Standing, storage: Storage, folders: Folders, folder: str, properties: Mapping[str, str]) -> None:
    """Send readers to a folder."""
    folders.mark_seen(folder)
    try:
        stands.put(storage.uri(folder), {**properties, FOLDER: folder})
    except Exception as error:
        if not stands.may_name(folder, error):
            folders.mark_unseen(folder)
        raise


def lowered(read: PublishedPartitions, published: Mapping[str, int | None]) -> PublishedPartitions | None:
    """Of each partition the lower one of both promises; None where none falls. `published`: what readers are told now.

    A partition that they are told nothing of stays out, and so does one that is gone.
    """
    now = {one.partition: one.freshness for one in read.partitions}
    if not any(_is_lower(now.get(partition), was) for partition, was in published.items()):
        return None
    rows = (_at_most(one, published[one.partition]) for one in read.partitions if one.partition in published)
    return replace(read, partitions=tuple(rows))


def _is_lower(now: int | None, was: int | None) -> bool:
    return was is not None and (now is None or now < was)


def _at_most(one: PartitionFreshness, most: int | None) -> PartitionFreshness:
    if one.freshness is None or (most is not None and one.freshness <= most):
        return one
    return replace(one, freshness=most, reason="it is being published" if most is None else None)


def _published(storage: Storage, told: Mapping[str, str]) -> dict[str, int | None]:
    """Each partition's freshness as readers are told it. What cannot be read tells them nothing."""
    if FOLDER not in told:
        return {}
    try:
        data = storage.read(file_in(told[FOLDER]))
    except FileNotFoundError:
        return {}
    try:
        found = pq.read_table(pa.BufferReader(data), columns=_PROMISE)
        return dict(zip(*(found[name].to_pylist() for name in _PROMISE), strict=True))
    except (pa.ArrowException, OSError, KeyError):  # damaged
        return {}


def new_table(
    catalog: Connection[Any], database: str, name: str, owner: str, location: str, properties: Mapping[str, str]
) -> AnyEntry:
    """An external table over a folder. `location`: its URI; `properties`: the publication's, and the folder."""
    parameters = {"EXTERNAL": "TRUE", **properties}
    return external_table(catalog, database, name, owner, hive_columns(SCHEMA), location, PARQUET, parameters)


def moved(entry: E, location: str, properties: Mapping[str, str]) -> E:
    """The table over another folder; what somebody else set of it stays."""
    return entry.with_location(location).with_parameters(replaced(entry.parameters, properties))
