"""Avro of rollback and restore on the timeline (HoodieRollbackPlan, HoodieRollbackMetadata, HoodieRestorePlan,
HoodieRestoreMetadata), as values.

Hudi names files by absolute paths there. Read back, a file is its folder in the table and its name, so
that a plan still holds after the table was moved, and none leads out of the table. What this project wrote
says so in the Avro file's own header, which Java reads past.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import fastavro

from hudi_assets.engine.errors import CorruptTable
from hudi_assets.engine.format.avro.container import checked
from hudi_assets.engine.format.paths import inside_table
from hudi_assets.engine.timeline.commit_metadata import WRITER

Uri = Callable[[str], str]
_WRITER_NAME: Final = "hudi-assets"
_NAMESPACE: Final = "org.apache.hudi.avro.model"
_STRING: Final = {"type": "string", "avro.java.string": "String"}
_STRINGS: Final = {"type": "array", "items": _STRING}
_SIZES: Final = ["null", {"type": "map", "values": "long", "avro.java.string": "String"}]


def _record(name: str, *fields: dict[str, object], **more: object) -> dict[str, object]:
    return {"type": "record", "name": name, "fields": list(fields), **more}


def _map_of(values: object) -> dict[str, object]:
    return {"type": "map", "values": values, "avro.java.string": "String"}


_INSTANT: Final = _record(
    "HoodieInstantInfo", {"name": "commitTime", "type": _STRING}, {"name": "action", "type": _STRING}
)
_REQUEST: Final = _record(
    "HoodieRollbackRequest",
    {"name": "partitionPath", "type": _STRING},
    {"name": "fileId", "type": ["null", _STRING], "default": None},
    {"name": "latestBaseInstant", "type": ["null", _STRING], "default": None},
    {"name": "filesToBeDeleted", "type": _STRINGS, "default": []},
    {"name": "logBlocksToBeDeleted", "type": _SIZES, "default": None},
)
_VERSION: Final = {"name": "version", "type": ["int", "null"], "default": 1}
_PLAN: Final = _record(
    "HoodieRollbackPlan",
    {"name": "instantToRollback", "type": ["null", _INSTANT], "default": None},
    {"name": "RollbackRequests", "type": ["null", {"type": "array", "items": _REQUEST}], "default": None},
    _VERSION,
    namespace=_NAMESPACE,
)
_PARTITION: Final = _record(
    "HoodieRollbackPartitionMetadata",
    {"name": "partitionPath", "type": _STRING},
    {"name": "successDeleteFiles", "type": _STRINGS},
    {"name": "failedDeleteFiles", "type": _STRINGS},
    {"name": "rollbackLogFiles", "type": _SIZES, "default": None},
    {"name": "logFilesFromFailedCommit", "type": _SIZES, "default": None},
)
_METADATA: Final = _record(
    "HoodieRollbackMetadata",
    {"name": "startRollbackTime", "type": _STRING},
    {"name": "timeTakenInMillis", "type": "long"},
    {"name": "totalFilesDeleted", "type": "int"},
    {"name": "commitsRollback", "type": _STRINGS},
    {"name": "partitionMetadata", "type": _map_of(_PARTITION)},
    _VERSION,
    {"name": "instantsRollback", "type": {"type": "array", "items": _INSTANT}, "default": []},
    namespace=_NAMESPACE,
)
_RESTORE_PLAN: Final = _record(
    "HoodieRestorePlan",
    {"name": "instantsToRollback", "type": {"type": "array", "items": _INSTANT}, "default": []},
    {"name": "version", "type": ["int", "null"], "default": 2},
    {"name": "savepointToRestoreTimestamp", "type": ["null", _STRING], "default": None},
    namespace=_NAMESPACE,
)
_RESTORE_METADATA: Final = _record(
    "HoodieRestoreMetadata",
    {"name": "startRestoreTime", "type": _STRING},
    {"name": "timeTakenInMillis", "type": "long"},
    {"name": "instantsToRollback", "type": _STRINGS},
    {"name": "hoodieRestoreMetadata", "type": _map_of({"type": "array", "items": ["null", _METADATA]})},
    _VERSION,
    {
        "name": "restoreInstantInfo",
        "type": {"type": "array", "items": f"{_NAMESPACE}.HoodieInstantInfo"},
        "default": [],
    },
    namespace=_NAMESPACE,
)


@dataclass(frozen=True, slots=True)
class InstantInfo:
    """An instant as rollback and restore name it: a completed compaction is a `commit`, as in Hudi."""

    timestamp: str
    action: str


@dataclass(frozen=True, slots=True)
class RollbackRequest:
    """What a rollback takes out of one file group: whole files, or its blocks in log files (path → bytes).

    Never both in one request: Java's executor then looks at the files only. Paths are table-relative.
    """

    partition: str
    file_id: str
    base_instant: str
    files: tuple[str, ...] = ()
    log_blocks: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RollbackPlan:
    """Everything that a rollback does, so that it can be done again after a crash."""

    target: InstantInfo
    requests: tuple[RollbackRequest, ...]
    ours: bool = True

    @property
    def files(self) -> tuple[str, ...]:
        return tuple(path for request in self.requests for path in request.files)


@dataclass(frozen=True, slots=True)
class RestorePlan:
    """The instants to take back, newest first, and the savepoint's."""

    savepoint: str
    instants: tuple[InstantInfo, ...]
    ours: bool = True


def encode_rollback_plan(plan: RollbackPlan, uri: Uri) -> bytes:
    """The `.rollback.requested` file."""
    requests = [
        {
            "partitionPath": r.partition,
            "fileId": r.file_id,
            "latestBaseInstant": r.base_instant,
            "filesToBeDeleted": [_absolute(path, uri) for path in r.files],
            "logBlocksToBeDeleted": {_absolute(path, uri): size for path, size in r.log_blocks.items()},
        }
        for r in plan.requests
    ]
    return _encode(
        _PLAN, {"instantToRollback": _info(plan.target), "RollbackRequests": requests, "version": 1}, ours=plan.ours
    )


def decode_rollback_plan(data: bytes, where: str) -> RollbackPlan:
    """A `.rollback.requested` file, ours or Hudi's."""
    record, ours = _decode(data, where)
    target = record.get("instantToRollback")
    if not target:
        raise CorruptTable("The rollback plan names no instant.", where=where)
    requests = tuple(
        RollbackRequest(
            partition=inside_table(r["partitionPath"], "rollback plan", where),
            file_id=r.get("fileId") or "",
            base_instant=r.get("latestBaseInstant") or "",
            files=tuple(_relative(r["partitionPath"], path) for path in r.get("filesToBeDeleted") or ()),
            log_blocks={
                _relative(r["partitionPath"], path): size
                for path, size in (r.get("logBlocksToBeDeleted") or {}).items()
            },
        )
        for r in record.get("RollbackRequests") or ()
    )
    return RollbackPlan(InstantInfo(target["commitTime"], target["action"]), requests, ours)


def rollback_record(
    instant: str, plan: RollbackPlan, blocks: Mapping[str, Mapping[str, int]], taken_ms: int, uri: Uri
) -> dict[str, Any]:
    """HoodieRollbackMetadata as a record. `blocks`: partition → log files that the rollback wrote → bytes."""
    partitions: dict[str, Any] = {}
    for request in plan.requests:
        entry = partitions.setdefault(
            request.partition,
            {
                "partitionPath": request.partition,
                "successDeleteFiles": [],
                "failedDeleteFiles": [],
                "rollbackLogFiles": {
                    _absolute(path, uri): size for path, size in blocks.get(request.partition, {}).items()
                },
                "logFilesFromFailedCommit": {},
            },
        )
        entry["successDeleteFiles"] += [uri(path) for path in request.files]
        entry["logFilesFromFailedCommit"] |= {_absolute(p, uri): size for p, size in request.log_blocks.items()}
    return {
        "startRollbackTime": instant,
        "timeTakenInMillis": taken_ms,
        "totalFilesDeleted": len(plan.files),
        "commitsRollback": [plan.target.timestamp],
        "partitionMetadata": partitions,
        "version": 1,
        "instantsRollback": [_info(plan.target)],
    }


def encode_rollback_metadata(record: Mapping[str, Any]) -> bytes:
    """The completed `.rollback` file."""
    return _encode(_METADATA, dict(record))


def decode_rollback_metadata(data: bytes, where: str) -> dict[str, Any]:
    return _decode(data, where)[0]


def encode_restore_plan(plan: RestorePlan) -> bytes:
    """The `.restore.requested` file."""
    return _encode(
        _RESTORE_PLAN,
        {
            "instantsToRollback": [_info(one) for one in plan.instants],
            "version": 2,
            "savepointToRestoreTimestamp": plan.savepoint,
        },
        ours=plan.ours,
    )


def decode_restore_plan(data: bytes, where: str) -> RestorePlan:
    record, ours = _decode(data, where)
    instants = tuple(InstantInfo(i["commitTime"], i["action"]) for i in record.get("instantsToRollback") or ())
    return RestorePlan(record.get("savepointToRestoreTimestamp") or "", instants, ours)


def encode_restore_metadata(
    instant: str, plan: RestorePlan, done: Mapping[str, Mapping[str, Any]], taken_ms: int
) -> bytes:
    """The completed `.restore` file. `done`: instant → its rollback's metadata record."""
    return _encode(
        _RESTORE_METADATA,
        {
            "startRestoreTime": instant,
            "timeTakenInMillis": taken_ms,
            "instantsToRollback": [one.timestamp for one in plan.instants],
            "hoodieRestoreMetadata": {timestamp: [dict(record)] for timestamp, record in done.items()},
            "version": 1,
            "restoreInstantInfo": [_info(one) for one in plan.instants],
        },
    )


def _encode(schema: dict[str, object], record: dict[str, Any], *, ours: bool = True) -> bytes:
    out = io.BytesIO()
    fastavro.writer(
        out, fastavro.parse_schema(schema, named_schemas={}), [record], metadata={WRITER: _WRITER_NAME} if ours else {}
    )
    return out.getvalue()


def _decode(data: bytes, where: str) -> tuple[dict[str, Any], bool]:
    """The one record, and whether this project wrote it."""
    try:
        reader = fastavro.reader(io.BytesIO(checked(data, "file", where)))
        records = list(reader)
        ours = WRITER in reader.metadata
    except Exception as error:  # fastavro raises many kinds on damaged bytes
        raise CorruptTable(f"The file cannot be parsed as Avro: {error}.", where=where) from error
    if len(records) != 1 or not isinstance(records[0], dict):
        raise CorruptTable("The file does not hold one record.", where=where)
    return records[0], ours


def _info(one: InstantInfo) -> dict[str, str]:
    return {"commitTime": one.timestamp, "action": one.action}


def _absolute(path: str, uri: Uri) -> str:
    """As Hadoop's Path prints it: with a scheme, nothing escaped."""
    text = uri(path)
    return f"file:{text}" if text.startswith("/") else text


def _relative(partition: str, path: str) -> str:
    name = path.rsplit("/", 1)[-1]
    return f"{partition}/{name}" if partition else name
