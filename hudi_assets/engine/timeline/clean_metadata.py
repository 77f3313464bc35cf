"""Avro of a clean and of a savepoint on the timeline: HoodieCleanerPlan, HoodieCleanMetadata,
HoodieSavepointMetadata (org.apache.hudi.avro.model), as Hudi 0.15 writes them into container files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from hudi_assets.engine.errors import CorruptTable
from hudi_assets.engine.format.avro.record import (
    STRING,
    STRINGS,
    decode,
    encode,
    map_of,
    optional,
    record,
    version_field,
)
from hudi_assets.engine.format.paths import inside_folder, inside_table
from hudi_assets.engine.model import Action, Instant, State
from hudi_assets.engine.model.cleans import CleaningPolicy, CleanPlan
from hudi_assets.engine.timeline.commit_metadata import WRITER

SAVEPOINTED: Final = "savepointed_timestamps"
_WRITER_NAME: Final = "hudi-assets"
_VERSION: Final = 2

CLEANER_PLAN: Final = record(
    "HoodieCleanerPlan",
    [
        optional(
            "earliestInstantToRetain",
            record(
                "HoodieActionInstant",
                [{"name": name, "type": STRING} for name in ("timestamp", "action", "state")],
            ),
        ),
        {"name": "lastCompletedCommitTimestamp", "type": STRING, "default": ""},
        {"name": "policy", "type": STRING},
        optional("filesToBeDeletedPerPartition", map_of(STRINGS)),
        version_field(),
        optional(
            "filePathsToBeDeletedPerPartition",
            map_of(
                {
                    "type": "array",
                    "items": record(
                        "HoodieCleanFileInfo",
                        [optional("filePath", STRING), optional("isBootstrapBaseFile", "boolean")],
                    ),
                }
            ),
        ),
        optional("partitionsToBeDeleted", STRINGS),
        optional("extraMetadata", map_of(STRING)),
    ],
)
CLEAN_METADATA: Final = record(
    "HoodieCleanMetadata",
    [
        {"name": "startCleanTime", "type": STRING},
        {"name": "timeTakenInMillis", "type": "long"},
        {"name": "totalFilesDeleted", "type": "int"},
        {"name": "earliestCommitToRetain", "type": STRING},
        {"name": "lastCompletedCommitTimestamp", "type": STRING, "default": ""},
        {
            "name": "partitionMetadata",
            "type": map_of(
                record(
                    "HoodieCleanPartitionMetadata",
                    [
                        {"name": "partitionPath", "type": STRING},
                        {"name": "policy", "type": STRING},
                        {"name": "deletePathPatterns", "type": STRINGS},
                        {"name": "successDeleteFiles", "type": STRINGS},
                        {"name": "failedDeleteFiles", "type": STRINGS},
                        optional("isPartitionDeleted", "boolean"),
                    ],
                )
            ),
        },
        version_field(),
        optional("bootstrapPartitionMetadata", map_of("org.apache.hudi.avro.model.HoodieCleanPartitionMetadata")),
        optional("extraMetadata", map_of(STRING)),
    ],
)
SAVEPOINT_METADATA: Final = record(
    "HoodieSavepointMetadata",
    [
        {"name": "savepointedBy", "type": STRING},
        {"name": "savepointedAt", "type": "long"},
        {"name": "comments", "type": STRING},
        {
            "name": "partitionMetadata",
            "type": map_of(
                record(
                    "HoodieSavepointPartitionMetadata",
                    [{"name": "partitionPath", "type": STRING}, {"name": "savepointDataFile", "type": STRINGS}],
                )
            ),
        },
        version_field(),
    ],
)


@dataclass(frozen=True, slots=True)
class CleanMetadata:
    """A completed clean. `deleted` are table-relative paths; `earliest_retained` is "" where the policy has none."""

    instant: str
    policy: str
    earliest_retained: str
    last_completed: str
    deleted: tuple[str, ...]
    milliseconds: int = 0
    extra: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PublishedClean:
    """A clean plan as read from the timeline: what it names, and whether it is this project's."""

    instant: str
    plan: CleanPlan
    extra: Mapping[str, str]

    @property
    def is_ours(self) -> bool:
        return WRITER in self.extra


@dataclass(frozen=True, slots=True)
class Savepoint:
    """A savepoint: the files (table-relative) that the table was made of at its instant."""

    instant: str
    files: tuple[str, ...]
    user: str = ""
    comment: str = ""
    created_ms: int = 0


# ---------------------------------------------------------------------------------------------- cleans


def clean_extra(savepoints: Iterable[str]) -> dict[str, str]:
    """Extra metadata of a clean of ours. Hudi's next clean looks again at partitions of savepoints that went."""
    return {WRITER: _WRITER_NAME, SAVEPOINTED: ",".join(sorted(savepoints))}


def encode_clean_plan(plan: CleanPlan, savepoints: Iterable[str], uri: Mapping[str, str]) -> bytes:
    """The `.clean.requested` file; `.inflight` is the same. `uri`: each path as Hudi's file systems name it."""
    earliest = plan.earliest_retained
    return encode(
        CLEANER_PLAN,
        {
            "earliestInstantToRetain": earliest
            and {"timestamp": earliest.timestamp, "action": str(earliest.action), "state": State.COMPLETED.upper()},
            "lastCompletedCommitTimestamp": plan.last_completed,
            "policy": str(plan.policy),
            "filesToBeDeletedPerPartition": {},
            "version": _VERSION,
            "filePathsToBeDeletedPerPartition": {
                partition: [{"filePath": uri[path], "isBootstrapBaseFile": False} for path in paths]
                for partition, paths in plan.files.items()
            },
            "partitionsToBeDeleted": [],
            "extraMetadata": clean_extra(savepoints),
        },
    )


def decode_clean_plan(instant: str, data: bytes, where: str) -> PublishedClean:
    """A clean plan, ours or Apache Hudi's. A file is its partition and its name: the table may have moved."""
    body = decode(data, where)
    files: dict[str, tuple[str, ...]] = {}
    for partition, entries in (body.get("filePathsToBeDeletedPerPartition") or {}).items():
        if any(entry["isBootstrapBaseFile"] for entry in entries):
            raise CorruptTable("The clean plan names bootstrap files, which are not supported.", where=where)
        files[partition] = _paths(partition, [_name(entry["filePath"]) for entry in entries], where)
    for partition, names in (body.get("filesToBeDeletedPerPartition") or {}).items():
        files.setdefault(partition, _paths(partition, [_name(name) for name in names], where))
    policy, earliest = body.get("policy") or "", body.get("earliestInstantToRetain")
    if policy not in CleaningPolicy.__members__:
        raise CorruptTable(f"The clean plan's policy is {policy!r}.", where=where)
    plan = CleanPlan(
        CleaningPolicy(policy),
        _completed_instant(earliest) if earliest else None,
        body.get("lastCompletedCommitTimestamp") or "",
        files,
    )
    return PublishedClean(instant, plan, body.get("extraMetadata") or {})


def _completed_instant(instant: Mapping[str, str]) -> Instant:
    timestamp, action = instant["timestamp"], instant["action"]
    known = Action(action) if action in Action._value2member_map_ else Action.COMMIT
    return Instant(timestamp, known, State.COMPLETED, f"{timestamp}.{action}")


def _name(path: str | None) -> str:
    return (path or "").rsplit("/", 1)[-1]


def encode_clean(metadata: CleanMetadata) -> bytes:
    """The completed `.clean` file."""
    by_partition: dict[str, list[str]] = {}
    for path in metadata.deleted:
        partition, _, name = path.rpartition("/")
        by_partition.setdefault(partition, []).append(name)
    return encode(
        CLEAN_METADATA,
        {
            "startCleanTime": metadata.instant,
            "timeTakenInMillis": metadata.milliseconds,
            "totalFilesDeleted": len(metadata.deleted),
            "earliestCommitToRetain": metadata.earliest_retained,
            "lastCompletedCommitTimestamp": metadata.last_completed,
            "partitionMetadata": {
                partition: {
                    "partitionPath": partition,
                    "policy": metadata.policy,
                    "deletePathPatterns": names,
                    "successDeleteFiles": names,
                    "failedDeleteFiles": [],
                    "isPartitionDeleted": False,
                }
                for partition, names in by_partition.items()
            },
            "version": _VERSION,
            "bootstrapPartitionMetadata": {},
            "extraMetadata": dict(metadata.extra),
        },
    )


def decode_clean(instant: str, data: bytes, where: str) -> CleanMetadata:
    """A completed clean, ours or Apache Hudi's."""
    body = decode(data, where)
    partitions: Mapping[str, Any] = body.get("partitionMetadata") or {}
    return CleanMetadata(
        instant=instant,
        policy=next((p["policy"] for p in partitions.values()), ""),
        earliest_retained=body.get("earliestCommitToRetain") or "",
        last_completed=body.get("lastCompletedCommitTimestamp") or "",
        deleted=tuple(
            path
            for partition, stat in partitions.items()
            for path in _paths(partition, [_name(name) for name in stat["successDeleteFiles"]], where)
        ),
        milliseconds=body.get("timeTakenInMillis") or 0,
        extra=body.get("extraMetadata") or {},
    )


# ------------------------------------------------------------------------------------------ savepoints


def encode_savepoint(savepoint: Savepoint) -> bytes:
    """The completed `.savepoint` file."""
    by_partition: dict[str, list[str]] = {}
    for path in savepoint.files:
        partition, _, name = path.rpartition("/")
        by_partition.setdefault(partition, []).append(name)
    return encode(
        SAVEPOINT_METADATA,
        {
            "savepointedBy": savepoint.user,
            "savepointedAt": savepoint.created_ms,
            "comments": savepoint.comment,
            "partitionMetadata": {
                partition: {"partitionPath": partition, "savepointDataFile": names}
                for partition, names in by_partition.items()
            },
            "version": 1,
        },
    )


def decode_savepoint(instant: str, data: bytes, where: str) -> Savepoint:
    """A completed savepoint, ours or Apache Hudi's."""
    body = decode(data, where)
    files = tuple(
        path
        for partition, stat in (body.get("partitionMetadata") or {}).items()
        for path in _paths(partition, stat["savepointDataFile"], where)
    )
    return Savepoint(
        instant, files, body.get("savepointedBy") or "", body.get("comments") or "", body.get("savepointedAt") or 0
    )


def _paths(partition: str, names: Sequence[str], where: str) -> tuple[str, ...]:
    inside_table(partition, "timeline file", where)
    for name in names:
        inside_folder(name, "timeline file", where)
    return tuple(f"{partition}/{name}" if partition else name for name in names)
