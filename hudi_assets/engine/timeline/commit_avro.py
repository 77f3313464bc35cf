"""Commit metadata on versions 8 and 9: HoodieCommitMetadata and HoodieReplaceCommitMetadata in Avro container files.

Hudi's CommitMetadataSerDeV2 writes so. Fields are taken by name from the schema that the file brings along:
releases 1.0 to 1.2 differ in which there are. An empty file has no stats; JSON is what version 6 left behind.
"""

from __future__ import annotations

from typing import Any, Final

from hudi_assets.engine.errors import CorruptTable
from hudi_assets.engine.format.avro.record import (
    MAGIC,
    STRING,
    STRINGS,
    decode,
    encode,
    map_of,
    optional,
    record,
    version_field,
)
from hudi_assets.engine.timeline.commit_metadata import CommitMetadata

_RUNTIME_STATS: Final = record(
    "HoodieRuntimeStats",
    [optional(name, "long") for name in ("totalScanTime", "totalCreateTime", "totalUpsertTime")],
)
# In the order of Hudi 1.2: its reader resolves by name, so the order says nothing.
_STAT_FIELDS: Final[dict[str, object]] = {
    "fileId": STRING,
    "path": STRING,
    "prevCommit": STRING,
    "numWrites": "long",
    "numDeletes": "long",
    "numUpdateWrites": "long",
    "totalWriteBytes": "long",
    "totalWriteErrors": "long",
    "partitionPath": STRING,
    "totalLogRecords": "long",
    "totalLogFiles": "long",
    "totalUpdatedRecordsCompacted": "long",
    "numInserts": "long",
    "totalLogBlocks": "long",
    "totalCorruptLogBlock": "long",
    "totalRollbackBlocks": "long",
    "fileSizeInBytes": "long",
    "logVersion": "int",
    "logOffset": "long",
    "baseFile": STRING,
    "logFiles": STRINGS,
    "cdcStats": map_of("long"),
    "prevBaseFile": STRING,
    "minEventTime": "long",
    "maxEventTime": "long",
    "runtimeStats": _RUNTIME_STATS,
    "totalLogFilesCompacted": "long",
    "totalLogReadTimeMs": "long",
    "totalLogSizeCompacted": "long",
    "tempPath": STRING,
    "numUpdates": "long",
}
# Java unboxes these: absent, they would be no numbers.
_ZERO: Final = ("totalLogReadTimeMs", "numUpdates")
_COMMIT_FIELDS: Final[list[dict[str, object]]] = [
    optional(
        "partitionToWriteStats",
        map_of(
            {
                "type": "array",
                "items": record("HoodieWriteStat", [optional(name, kind) for name, kind in _STAT_FIELDS.items()]),
            }
        ),
    ),
    optional("compacted", "boolean"),
    optional("extraMetadata", map_of(STRING)),
    version_field(),
    optional("operationType", STRING),
]
COMMIT: Final = record("HoodieCommitMetadata", _COMMIT_FIELDS)
REPLACE: Final = record(
    "HoodieReplaceCommitMetadata", [*_COMMIT_FIELDS, optional("partitionToReplaceFileIds", map_of(STRINGS))]
)


def encode_commit(metadata: CommitMetadata) -> bytes:
    """The file of a commit or delta commit; that of a replacecommit where file groups are replaced."""
    body: dict[str, Any] = {**metadata.to_body(), "version": 1}
    body["partitionToWriteStats"] = {
        partition: [dict.fromkeys(_ZERO, 0) | {k: v for k, v in stat.items() if k in _STAT_FIELDS} for stat in stats]
        for partition, stats in body["partitionToWriteStats"].items()
    }
    return encode(REPLACE if metadata.replaced else COMMIT, body)


def decode_commit(data: bytes, where: str) -> CommitMetadata:
    """A commit, delta commit or replacecommit, ours or Hudi's, of any state. Raises `CorruptTable`."""
    if data.startswith(MAGIC):
        return CommitMetadata.of_body(decode(data, where), where)
    text = data.strip()
    if not text or text.startswith(b"{"):
        return CommitMetadata.from_json(data, where)
    raise CorruptTable(
        "A commit file is neither Avro nor JSON.",
        where=where,
        hint="Restore the file, or roll the instant back with Hudi.",
    )
