"""The archived timeline on version 6: log files `.hoodie/archived/.commits_.archive.N_1-0-1` of Avro data blocks.

`hoodie.archivelog.folder` names the folder. A table of version 6 that 1.2.0 made has `history` there, and
0.15.0 goes by it too (tried). TimelinePathProviderV1 has the rule. A metadata table has `archived` with both.

A record is a HoodieArchivedMetaEntry per file of the active timeline. Java's reader resolves by names from the schema
in the block's header to its own (tried with 0.15.0 and 1.2.0), so a block states only the fields that its
records have: what a timeline file holds in Avro goes in with the schema that it was written with.
"""

from __future__ import annotations

import io
import json
import re
import struct
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import Any, Final

import fastavro

from hudi_assets.engine.errors import CorruptTable, UnsupportedTable
from hudi_assets.engine.format.avro.container import checked, checked_schema
from hudi_assets.engine.format.avro.record import STRING, STRINGS, map_of, optional, record
from hudi_assets.engine.format.log_file.codec import CONTENT_VERSION, BlockType, HeaderKey, encode_block, read_blocks
from hudi_assets.engine.model import Action, Instant, Plan, State
from hudi_assets.engine.storage import Storage
from hudi_assets.engine.timeline.archive.kind import TimelineFile
from hudi_assets.engine.timeline.compaction_plan import archived_plan
from hudi_assets.engine.timeline.instants import WRITES

_FILE: Final = re.compile(r"\.commits_\.archive\.(\d+)(?:_[\d-]+)?")
_TOKEN: Final = "1-0-1"
_FOLDER: Final = "hoodie.archivelog.folder"
_DEFAULT_FOLDER: Final = "archived"
_FOLDER_NAME: Final = re.compile(r"\w[\w-]*")
# What else stands beside the timeline's files.
_TAKEN: Final = frozenset({"metadata", "timeline"})
_LENGTH: Final = struct.Struct(">i")
_COUNTS: Final = struct.Struct(">ii")
_NUMBERS: Final = (
    "numWrites",
    "numDeletes",
    "numUpdateWrites",
    "totalWriteBytes",
    "totalWriteErrors",
    "totalLogRecords",
    "totalLogFiles",
    "totalUpdatedRecordsCompacted",
    "numInserts",
    "totalLogBlocks",
    "totalCorruptLogBlock",
    "totalRollbackBlocks",
    "fileSizeInBytes",
)
_TEXTS: Final = ("fileId", "path", "prevCommit", "partitionPath")
_WRITE_STAT: Final = record(
    "HoodieWriteStat",
    [*(optional(name, STRING) for name in _TEXTS), *(optional(name, "long") for name in _NUMBERS)],
)
_COMMIT_FIELDS: Final[list[dict[str, object]]] = [
    optional("partitionToWriteStats", map_of({"type": "array", "items": _WRITE_STAT})),
    optional("extraMetadata", map_of(STRING)),
    {"name": "version", "type": ["int", "null"], "default": 1},
    optional("operationType", STRING),
]
_COMMIT: Final = record("HoodieCommitMetadata", _COMMIT_FIELDS)
_REPLACE: Final = record(
    "HoodieReplaceCommitMetadata", [*_COMMIT_FIELDS, optional("partitionToReplaceFileIds", map_of(STRINGS))]
)
_PLAN: Final = "hoodieCompactionPlan"
# Where a timeline file's own Avro record goes, by action and by whether the instant is completed.
_AVRO_FIELDS: Final = {
    (Action.CLEAN, True): "hoodieCleanMetadata",
    (Action.CLEAN, False): "hoodieCleanerPlan",
    (Action.ROLLBACK, True): "hoodieRollbackMetadata",
    (Action.COMPACTION, False): _PLAN,
    (Action.LOG_COMPACTION, False): _PLAN,
}
_COMPACTIONS: Final = (Action.COMPACTION, Action.LOG_COMPACTION)
_JSON_FIELDS: Final[Mapping[Action, tuple[str, Mapping[str, object]]]] = {
    Action.COMMIT: ("hoodieCommitMetadata", _COMMIT),
    Action.DELTA_COMMIT: ("hoodieCommitMetadata", _COMMIT),
    Action.REPLACE_COMMIT: ("hoodieReplaceCommitMetadata", _REPLACE),
}


@dataclass(frozen=True, slots=True)
class ArchivedEntry:
    """One file of the active timeline as an archived record. `schema_json` is the block's."""

    schema_json: str
    fields: Mapping[str, Any]


def archived_entry(instant: Instant, data: bytes, changed: str | None, where: str) -> ArchivedEntry:
    """A timeline file as MetadataConversionUtils makes it. `changed`: when the file was written, as an instant."""
    field, schema, value = _details(instant, data, where)
    own = [optional(field, schema)] if field is not None else []
    texts = [optional(name, STRING) for name in ("commitTime", "actionType", "actionState", "stateTransitionTime")]
    version: dict[str, object] = {"name": "version", "type": ["int", "null"], "default": 1}
    fields: dict[str, Any] = {
        "commitTime": instant.timestamp,
        "actionType": str(instant.action),
        "actionState": instant.state.upper(),
        "stateTransitionTime": changed,
        "version": 1,
    }
    if field is not None:
        fields[field] = value
    return ArchivedEntry(json.dumps(record("HoodieArchivedMetaEntry", [*own, *texts, version])), fields)


def _details(instant: Instant, data: bytes, where: str) -> tuple[str | None, object, object]:
    """(field, its schema, its value) of what the file says; nothing for an empty one."""
    action = instant.action
    if not data.strip():
        return None, None, None
    if action in _JSON_FIELDS:
        # Before completion such a file holds a workload profile at most, which nobody reads.
        field, schema = _JSON_FIELDS[action]
        return (field, schema, _commit(data, where)) if instant.is_completed else (None, None, None)
    avro_field = _AVRO_FIELDS.get((action, instant.is_completed))
    # A compaction's inflight file says at most who executes it.
    if avro_field is None or (action in _COMPACTIONS and instant.state is State.INFLIGHT):
        return None, None, None
    try:
        reader = fastavro.reader(io.BytesIO(checked(data, "timeline file", where)))
        schema = json.loads(reader.metadata["avro.schema"])
        return avro_field, schema, next(iter(reader))
    except CorruptTable:
        raise
    except Exception as error:  # fastavro raises many kinds on damaged bytes
        raise CorruptTable(f"A timeline file cannot be parsed: {error}.", where=where) from error


def _commit(data: bytes, where: str) -> dict[str, Any]:
    """HoodieCommitMetadata's JSON as its Avro form, which has fewer fields."""
    try:
        body = json.loads(data)
        stats = {
            partition: [{name: stat.get(name) for name in (*_TEXTS, *_NUMBERS)} for stat in of_partition]
            for partition, of_partition in (body.get("partitionToWriteStats") or {}).items()
        }
        return {
            "partitionToWriteStats": stats,
            "extraMetadata": {k: v for k, v in (body.get("extraMetadata") or {}).items() if v is not None},
            "version": 1,
            "operationType": "COMPACT" if body.get("compacted") else body.get("operationType"),
            "partitionToReplaceFileIds": body.get("partitionToReplaceFileIds"),
        }
    except (ValueError, AttributeError, TypeError) as error:
        raise CorruptTable(f"A commit file cannot be parsed: {error}.", where=where) from error


def encode_archive(entries: Iterable[ArchivedEntry]) -> bytes:
    """The archived log file: a data block for each run of entries of one schema, in their order."""
    blocks = []
    for schema_json, run in groupby(entries, key=lambda entry: entry.schema_json):
        schema = fastavro.parse_schema(json.loads(schema_json))
        records = [_encoded(schema, entry.fields) for entry in run]
        content = _COUNTS.pack(CONTENT_VERSION, len(records)) + b"".join(records)
        blocks.append(encode_block(BlockType.AVRO_DATA, {HeaderKey.SCHEMA: schema_json}, content))
    return b"".join(blocks)


def _encoded(schema: Any, fields: Mapping[str, Any]) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, schema, fields)
    return _LENGTH.pack(out.tell()) + out.getvalue()


def decode_archive(data: bytes, where: str) -> Iterator[dict[str, Any]]:
    """The records of an archived log file, ours or Hudi's, as dictionaries."""
    for block in read_blocks(data):
        if block.type is not BlockType.AVRO_DATA:
            continue
        try:
            schema = fastavro.parse_schema(checked_schema(json.loads(block.schema or "")))
            content = io.BytesIO(bytes(block.content))
            _, count = _COUNTS.unpack(content.read(_COUNTS.size))
            for _ in range(count):
                (length,) = _LENGTH.unpack(content.read(_LENGTH.size))
                entry = fastavro.schemaless_reader(io.BytesIO(content.read(length)), schema, None)
                if isinstance(entry, dict):
                    yield entry
        except Exception as error:  # fastavro raises many kinds on damaged bytes
            raise CorruptTable(f"An archived log file cannot be parsed: {error}.", where=where) from error


# ------------------------------------------------------------------------------------------- the folder


def archive_files(storage: Storage, folder: str = _DEFAULT_FOLDER) -> tuple[str, ...]:
    """The archived log files, oldest first. `folder`: in `.hoodie`."""
    numbered = [(int(m[1]), f.path) for f in storage.list_files(f".hoodie/{folder}") if (m := _FILE.fullmatch(f.name))]
    return tuple(path for _, path in sorted(numbered))


@dataclass(frozen=True, slots=True)
class ArchivedLogs:
    """The archived timeline of version 6 (`kind.Archive`). `folder`: in `.hoodie`."""

    folder: str

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> ArchivedLogs:
        """Where the table's settings put it."""
        return cls(properties.get(_FOLDER) or _DEFAULT_FOLDER)

    def refuse_unknown(self, properties: Mapping[str, str], where: str) -> None:
        del properties
        if self.folder in _TAKEN or not _FOLDER_NAME.fullmatch(self.folder):
            raise UnsupportedTable(f"{_FOLDER} is {self.folder!r}: only a folder in .hoodie is supported.", where=where)

    def is_there(self, storage: Storage) -> bool:
        return bool(archive_files(storage, self.folder))

    def completions(self, storage: Storage) -> Mapping[str, str]:
        """None: slices are not cut by them here."""
        del storage
        return {}

    def brought_rows(self, storage: Storage) -> Mapping[str, str]:
        return self.completions(storage)

    def completed(self, storage: Storage, wanted: Collection[str]) -> frozenset[str]:
        held = (_completed_writes(storage, path, storage.size(path)) for path in archive_files(storage, self.folder))
        return frozenset(wanted) & {instant for instants in held for instant in instants}

    def newest_replace(self, storage: Storage) -> str:
        paths = archive_files(storage, self.folder)
        return max((_newest_replace(storage, path, storage.size(path)) for path in paths), default="")

    def plans(self, storage: Storage, wanted: Collection[str]) -> tuple[Plan, ...]:
        found = []
        for path in archive_files(storage, self.folder):
            records = _plan_records(storage, path, storage.size(path))
            where = f"{storage.base}: {path}"
            found += [archived_plan(i, records[i], where) for i in sorted(records.keys() & wanted)]
        return tuple(found)

    def archived(self, storage: Storage, files: Iterable[Instant]) -> frozenset[str]:
        held = _newest_archived(storage, self.folder)
        return frozenset(i.file_name for i in files if (i.timestamp, i.action, i.state) in held)

    def add(self, storage: Storage, files: Sequence[TimelineFile]) -> str:
        entries = [archived_entry(f.instant, f.data, f.changed, f.where) for f in files]
        path = _next_archive_file(storage, self.folder)
        storage.create(path, encode_archive(entries))
        return path

    def settle(self, storage: Storage, properties: Mapping[str, str]) -> None:
        """Nothing: a log file stays as it is."""
        del storage, properties


@lru_cache(maxsize=1_000)
def _newest_replace(storage: Storage, path: str, size: int) -> str:
    """The newest replacecommit in a file of the archive ("": none)."""
    del size
    where, data = f"{storage.base}: {path}", storage.read(path)
    if any(block.is_corrupt for block in read_blocks(data)):
        raise CorruptTable("A block of the archive cannot be read.", where=where)
    records = decode_archive(data, where)
    replacing = (Action.REPLACE_COMMIT, Action.CLUSTERING)
    return max((r.get("commitTime") or "" for r in records if r.get("actionType") in replacing), default="")


@lru_cache(maxsize=1_000)
def _completed_writes(storage: Storage, path: str, size: int) -> frozenset[str]:
    """The writes that a file of the archive has as completed."""
    del size
    records = decode_archive(storage.read(path), f"{storage.base}: {path}")
    done = (r for r in records if r.get("actionState") == State.COMPLETED.upper() and r.get("actionType") in WRITES)
    return frozenset(r.get("commitTime") or "" for r in done)


@lru_cache(maxsize=100)
def _plan_records(storage: Storage, path: str, size: int) -> Mapping[str, object]:
    """Compaction → its plan, of those in a file of the archive."""
    del size
    records = decode_archive(storage.read(path), f"{storage.base}: {path}")
    plans = ((r.get("commitTime") or "", r.get(_PLAN)) for r in records if r.get("actionType") == Action.COMPACTION)
    return {instant: plan for instant, plan in plans if plan is not None}


def _next_archive_file(storage: Storage, folder: str) -> str:
    """The path of the next one."""
    path = f".hoodie/{folder}"
    numbers = [int(m[1]) for f in storage.list_files(path) if (m := _FILE.fullmatch(f.name))]
    return f"{path}/.commits_.archive.{max(numbers, default=0) + 1}_{_TOKEN}"


def _newest_archived(storage: Storage, folder: str) -> frozenset[tuple[str, Action, State]]:
    """(instant, action, state) of what the newest archived log file holds; nothing where a crash cut it short."""
    files: Sequence[str] = archive_files(storage, folder)
    if not files:
        return frozenset()
    try:
        records = list(decode_archive(storage.read(files[-1]), f"{storage.base}: {files[-1]}"))
    except CorruptTable:
        return frozenset()
    known = Action._value2member_map_
    return frozenset(
        (r["commitTime"], Action(r["actionType"]), State(r["actionState"].lower()))
        for r in records
        if r.get("actionType") in known and (r.get("actionState") or "").lower() in State._value2member_map_
    )
