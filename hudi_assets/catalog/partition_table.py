"""The freshness of each partition as a small table beside the views, for readers who need not wait for a hot partition.

Its rows are one small Parquet file below the table's `.hoodie`, where nobody looks for data files, and whoever may
read the table may read it. Each publication writes a file in a folder of its own and then moves the entry there by one
call. So a reader has one publication's rows or the next one's, and what it began to read stays for an hour after that.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from typing import Final, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_assets.catalog import hive
from hudi_assets.catalog.hive import Entry
from hudi_assets.catalog.publication import PATH, replaced
from hudi_assets.catalog.same_table import is_same_location
from hudi_assets.catalog.spark_types import hive_columns
from hudi_assets.catalog.thrift_values import Struct, structure, text, texts
from hudi_assets.catalog.views import PARQUET, new_entry_fields, storage_of
from hudi_assets.engine import PARTITION_TABLES, InvalidInput, PublishedPartitions, Storage

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
# What microseconds in 64 bits reach, years 290309 BC to 294246.
_FIRST_MS: Final = -(2**63 // 1000)
_LAST_MS: Final = (2**63 - 1) // 1000
# A folder that readers were sent away from is left to those who read it then.
_LEFT_TO_READERS_MS: Final = 3_600_000


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


def write_rows(storage: Storage, read: PublishedPartitions, before: Mapping[str, str]) -> str:
    """Write the rows where no reader is sent yet, and return the folder, relative to the table's path.

    `before`: the parameters of the entry that is there, whose folder lies beside.
    """
    parent = before.get(FOLDER, "").rpartition("/")[0] or f"{PARTITION_TABLES}/{uuid.uuid4().hex[:16]}"
    folder = f"{parent}/{_now_ms():013d}-{uuid.uuid4().hex[:8]}"
    storage.replace(f"{folder}/partitions.parquet", parquet_bytes(read))
    return folder


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
    def parameters(self) -> Mapping[str, str] | None:
        """Of the entry that is there; None where none of ours is."""

    def put(self, location: str, properties: Mapping[str, str]) -> None:
        """Make the entry, or send its readers to this folder (a URI)."""

    def drop(self) -> None:
        """Take the entry out; its files stay."""


@contextmanager
def beside_views(
    stands: Standing, storage: Storage, read: PublishedPartitions | None, properties: Mapping[str, str]
) -> Iterator[None]:
    """Around what publishes the views: the table of the partitions is put after them.

    Where it is not wanted it goes before them. A publisher that dies in between leaves properties that name a table
    which is not there, and the next look mends that. Of a table that no properties name nobody would know.
    """
    if read is None:
        before = stands.parameters
        if before is not None:
            stands.drop()
        yield
        if before is not None:
            delete_rows(storage, before)
        return
    folder = write_rows(storage, read, stands.parameters or {})  # where that cannot be done, nothing is published
    yield
    stands.put(storage.uri(folder), {**properties, FOLDER: folder})
    delete_left(storage, folder)


def new_table(database: str, name: str, owner: str, location: str, properties: Mapping[str, str]) -> Entry:
    """An external table over a folder. `location`: its URI; `properties`: the publication's, and the folder."""
    fields = {
        **new_entry_fields(database, name, owner),
        hive.STORAGE: storage_of(hive_columns(SCHEMA), location, {}, PARQUET),
        hive.PARAMETERS: texts({"EXTERNAL": "TRUE", **properties}),
        hive.KIND: text("EXTERNAL_TABLE"),
    }
    return Entry(Struct(fields))


def moved(entry: Entry, location: str, properties: Mapping[str, str]) -> Entry:
    """The table over another folder; what somebody else set of it stays."""
    storage = entry.table.struct(hive.STORAGE).fields | {2: text(location)}
    parameters = replaced(entry.parameters, properties)
    return entry.replaced({hive.STORAGE: structure(storage), hive.PARAMETERS: texts(parameters)})


def delete_rows(storage: Storage, published: Mapping[str, str]) -> None:
    """Of an entry that was dropped."""
    storage.delete_tree(published[FOLDER].rpartition("/")[0])


def delete_left(storage: Storage, folder: str) -> None:
    """Delete what lies beside a folder and was left by readers an hour ago: when the next one was made."""
    for old, following in pairwise(sorted(storage.list_directories(folder.rpartition("/")[0]))):
        begun = following.rpartition("/")[2].partition("-")[0]
        if old < folder and begun.isdigit() and int(begun) < _now_ms() - _LEFT_TO_READERS_MS:
            storage.delete_tree(old)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
