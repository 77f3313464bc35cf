"""Records of the metadata table's files partition: values of an HFile ↔ which files a partition has. Pure.

One record has the list of the partitions, one for each partition has its files (HoodieMetadataPayload). A
log block's record is a change: files that came with their sizes, files that went. Merging follows
HoodieTableMetadataUtil.combineFileSystemMetadata of 1.2.0.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache, reduce
from typing import Any, Final

import fastavro

from hudi_assets.engine.errors import CorruptTable, InvalidInput
from hudi_assets.engine.format.avro.container import checked_schema
from hudi_assets.engine.format.avro.schema import META_COLUMNS
from hudi_assets.engine.format.hfile.file import Entry

PARTITION_LIST_KEY: Final = "__all_partitions__"
NON_PARTITIONED: Final = "."
"""HoodieTableMetadata.NON_PARTITIONED_NAME: the key, and the name in the list, of a table without partitions."""

_FILE_NAME: Final = META_COLUMNS[4]
_LARGEST: Final = 2**63 - 1


class RecordType(IntEnum):
    """MetadataPartitionType's numbers."""

    PARTITION_LIST = 1
    FILES = 2
    COLUMN_STATS = 3
    BLOOM_FILTERS = 4
    RECORD_INDEX = 5
    PARTITION_STATS = 6
    SECONDARY_INDEX = 7


@dataclass(frozen=True, slots=True)
class ListedFile:
    """A file's size in bytes (0 in the list of partitions), or that it went."""

    size: int
    deleted: bool = False


GONE: Final = ListedFile(0, deleted=True)


@dataclass(frozen=True)
class FilesRecord:
    """The files of one partition, or with the key PARTITION_LIST_KEY the partitions of the table."""

    key: str
    files: Mapping[str, ListedFile]

    @property
    def type(self) -> RecordType:
        return RecordType.PARTITION_LIST if self.key == PARTITION_LIST_KEY else RecordType.FILES

    @property
    def present(self) -> dict[str, int]:
        """Name → size of what is there."""
        return {name: file.size for name, file in self.files.items() if not file.deleted}


def partition_key(partition: str) -> str:
    """A partition's path as the metadata table names it."""
    return partition or NON_PARTITIONED


def partition_path(key: str) -> str:
    """The other way round."""
    return "" if key == NON_PARTITIONED else key


def partition_list(added: Iterable[str], deleted: Iterable[str] = ()) -> FilesRecord:
    """The record that adds partitions (paths) to the table's, and takes some away."""
    files = {partition_key(path): ListedFile(0) for path in added}
    return FilesRecord(PARTITION_LIST_KEY, files | {partition_key(path): GONE for path in deleted})


def partition_files(partition: str, added: Mapping[str, int], deleted: Iterable[str] = ()) -> FilesRecord:
    """The record that adds files (name → size) to a partition's (path), and takes some away."""
    files = {name: ListedFile(size) for name, size in added.items()}
    return FilesRecord(partition_key(partition), files | dict.fromkeys(deleted, GONE))


# ---------------------------------------------------------------------------------------------- merging


def combine(older: FilesRecord, newer: FilesRecord) -> FilesRecord:
    """One record for both. A file that went leaves nothing where it was listed, and a tombstone where it was not.

    Sizes only grow, so the larger one counts. (0.15 forgets a file that went twice, as if it had never been
    mentioned: write a tombstone once.)
    """
    files = dict(older.files)
    for name, file in newer.files.items():
        known = files.get(name)
        if known is None:
            files[name] = file
        elif not file.deleted:
            files[name] = ListedFile(max(file.size, known.size))
        elif not known.deleted:
            del files[name]
    return FilesRecord(newer.key, files)


def merge(base: FilesRecord | None, changes: Iterable[FilesRecord]) -> FilesRecord | None:
    """A base file's record and those of log blocks in log order: as in Hudi, the changes first, then on the base."""
    logged = list(changes)
    if not logged:
        return base
    change = reduce(combine, logged)
    return change if base is None else combine(base, change)


# ---------------------------------------------------------------------------------------- entries of HFiles


def encode(record: FilesRecord, schema: str, *, base_file: str | None = None) -> Entry:
    """A record as an HFile's entry; `base_file`: its own name, where it goes into a base file.

    InvalidInput for what Hudi's readers refuse: a file of a partition without bytes, a name with a slash.
    """
    for name, file in record.files.items():
        if record.type is RecordType.FILES and (not name or "/" in name):
            raise InvalidInput(f"{name!r} is no file's name.", where=record.key)
        smallest = 1 if record.type is RecordType.FILES and not file.deleted else 0
        if not smallest <= file.size <= _LARGEST:
            raise InvalidInput(f"{name} has {file.size} bytes.", where=record.key)
    row = {
        "type": int(record.type),
        "filesystemMetadata": {
            name: {"size": file.size, "isDeleted": file.deleted} for name, file in sorted(record.files.items())
        },
    }
    return encode_row(record.key, row, schema, base_file=base_file)


def encode_row(key: str, fields: Mapping[str, Any], schema: str, *, base_file: str | None = None) -> Entry:
    """Any record as an HFile's entry, from the fields that it has. InvalidInput where they do not fit the schema."""
    parsed, names = _parsed(schema)
    row: dict[str, Any] = dict.fromkeys(names) | {"key": ""} | dict(fields)  # the entry's key is the record's
    if base_file is not None:
        row[_FILE_NAME] = base_file
    out = io.BytesIO()
    try:
        fastavro.schemaless_writer(out, parsed, row)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
        raise InvalidInput(f"A record does not fit the metadata table's schema: {error}.") from error
    return key.encode(), out.getvalue()


def decode(entry: Entry, schema: str) -> FilesRecord:
    """An entry of the files partition; CorruptTable for any other, and where bytes and schema do not agree."""
    key, row = decode_row(entry, schema)
    files = row.get("filesystemMetadata") or {}
    expected = RecordType.PARTITION_LIST if key == PARTITION_LIST_KEY else RecordType.FILES
    if row.get("type") != expected or not isinstance(files, dict):
        raise CorruptTable(f"The record {key[:100]!r} of the metadata table has type {row.get('type')}.")
    try:
        listed = {name: ListedFile(int(file["size"]), bool(file["isDeleted"])) for name, file in files.items()}
    except (KeyError, TypeError, ValueError) as error:
        raise CorruptTable(f"The record {key[:100]!r} of the metadata table lists no files: {error!r}.") from error
    return FilesRecord(key, listed)


def decode_row(entry: Entry, schema: str, *, tell_unions: bool = False) -> tuple[str, dict[str, Any]]:
    """Any record of the metadata table as its key and its fields; `tell_unions`: a record in a union with its name."""
    try:
        key = str(entry[0], "utf-8")
        parsed, _ = _parsed(schema)
        source = io.BytesIO(entry[1])
        row = fastavro.schemaless_reader(source, parsed, None, return_record_name=tell_unions)
    except CorruptTable:
        raise
    except Exception as error:
        # fastavro has no error of its own: damaged bytes surface as whatever its C code trips over.
        raise CorruptTable(f"A record of the metadata table cannot be read: {str(error)[:200]}.") from error
    if source.tell() != len(entry[1]) or not isinstance(row, dict):
        raise CorruptTable(f"The record {key[:100]!r} of the metadata table does not end where its bytes end.")
    return key, row


@lru_cache(maxsize=16)
def _parsed(schema: str) -> tuple[Any, tuple[str, ...]]:
    try:
        checked = checked_schema(json.loads(schema))
        names = tuple(field["name"] for field in checked["fields"])
        parsed = fastavro.parse_schema(checked)
    except Exception as error:
        raise CorruptTable(f"The schema of the metadata table's records cannot be read: {str(error)[:200]}.") from error
    if not {"key", "type", "filesystemMetadata"} <= set(names):
        raise CorruptTable("The schema of the metadata table's records has no key, type or files.")
    return parsed, names
