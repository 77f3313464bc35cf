"""Commit metadata (HoodieCommitMetadata, HoodieWriteStat) as values, and its JSON on version 6."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from .errors import CorruptTable

SCHEMA: Final = "schema"
THRESHOLD: Final = "hudi_assets.threshold"
CLOCK_TIME: Final = "hudi_assets.clock.time"
BATCH_ID: Final = "hudi_assets.batch.id"
WRITER: Final = "hudi_assets.writer"
EVENT_TIME: Final = "hudi_assets.event.time"
GUARDED: Final = "hudi_assets.guards"


@dataclass(frozen=True, slots=True)
class WriteStat:
    """What one commit wrote into one file. `path` is table-relative; event times epoch ms."""

    path: str
    partition: str
    file_id: str
    prev_commit: str
    size: int
    num_writes: int = 0
    num_inserts: int = 0
    num_updates: int = 0
    num_deletes: int = 0
    min_event_time: int | None = None
    max_event_time: int | None = None
    log_version: int | None = None
    base_file: str | None = None
    log_files: tuple[str, ...] = ()
    logs_compacted: int = 0
    log_records: int = 0
    log_bytes_compacted: int = 0
    log_blocks: int = 0
    corrupt_blocks: int = 0
    rollback_blocks: int = 0

    def to_json(self) -> dict[str, Any]:
        """HoodieWriteStat's fields, or HoodieDeltaWriteStat's for a log file."""
        stat: dict[str, Any] = {
            "fileId": self.file_id,
            "path": self.path,
            "cdcStats": None,
            "prevCommit": self.prev_commit,
            "numWrites": self.num_writes,
            "numDeletes": self.num_deletes,
            "numUpdateWrites": self.num_updates,
            "numInserts": self.num_inserts,
            "totalWriteBytes": self.size,
            "totalWriteErrors": 0,
            "tempPath": None,
            "partitionPath": self.partition,
            "totalLogRecords": self.log_records,
            "totalLogFilesCompacted": self.logs_compacted,
            "totalLogSizeCompacted": self.log_bytes_compacted,
            "totalUpdatedRecordsCompacted": 0,
            "totalLogBlocks": self.log_blocks,
            "totalCorruptLogBlock": self.corrupt_blocks,
            "totalRollbackBlocks": self.rollback_blocks,
            "fileSizeInBytes": self.size,
            "minEventTime": self.min_event_time,
            "maxEventTime": self.max_event_time,
            "runtimeStats": None,
        }
        if self.log_version is not None:
            stat |= {
                "logVersion": self.log_version,
                "logOffset": 0,
                "baseFile": self.base_file or "",
                "logFiles": list(self.log_files),
                "recordsStats": {"val": None},
            }
        return stat

    @classmethod
    def from_json(cls, stat: Mapping[str, Any]) -> WriteStat:
        return cls(
            path=stat.get("path") or "",
            partition=stat.get("partitionPath") or "",
            file_id=stat.get("fileId") or "",
            prev_commit=stat.get("prevCommit") or "null",
            size=stat.get("fileSizeInBytes") or 0,
            num_writes=stat.get("numWrites") or 0,
            num_inserts=stat.get("numInserts") or 0,
            num_updates=stat.get("numUpdateWrites") or 0,
            num_deletes=stat.get("numDeletes") or 0,
            min_event_time=stat.get("minEventTime"),
            max_event_time=stat.get("maxEventTime"),
            log_version=stat.get("logVersion"),
            base_file=stat.get("baseFile"),
            log_files=tuple(stat.get("logFiles") or ()),
            logs_compacted=stat.get("totalLogFilesCompacted") or 0,
            log_records=stat.get("totalLogRecords") or 0,
            log_bytes_compacted=stat.get("totalLogSizeCompacted") or 0,
            log_blocks=stat.get("totalLogBlocks") or 0,
            corrupt_blocks=stat.get("totalCorruptLogBlock") or 0,
            rollback_blocks=stat.get("totalRollbackBlocks") or 0,
        )


@dataclass(frozen=True, slots=True)
class CommitMetadata:
    """One commit. Stats keep their order: on version 6 a group's base file comes last."""

    operation: str
    stats: tuple[WriteStat, ...]
    extra: Mapping[str, str] = field(default_factory=dict)
    compacted: bool = False
    replaced: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def threshold(self) -> int | None:
        text = self.extra.get(THRESHOLD)
        return int(text) if text is not None else None

    @property
    def clock_time(self) -> int | None:
        text = self.extra.get(CLOCK_TIME)
        return int(text) if text is not None else None

    def to_json(self) -> bytes:
        by_partition: dict[str, list[dict[str, Any]]] = {}
        for stat in self.stats:
            by_partition.setdefault(stat.partition, []).append(stat.to_json())
        body = {
            "partitionToWriteStats": by_partition,
            "compacted": self.compacted,
            "extraMetadata": dict(self.extra),
            "operationType": self.operation,
        }
        return json.dumps(body, indent=1).encode()

    @classmethod
    def from_json(cls, data: bytes, where: str) -> CommitMetadata:
        """Parse a completed commit file; an empty one (Hudi writes such) has no stats."""
        if not data.strip():
            return cls("UNKNOWN", ())
        try:
            body = json.loads(data)
            stats = tuple(
                WriteStat.from_json(stat)
                for group in (body.get("partitionToWriteStats") or {}).values()
                for stat in group
            )
            return cls(
                operation=body.get("operationType") or "UNKNOWN",
                stats=stats,
                extra={k: v for k, v in (body.get("extraMetadata") or {}).items() if v is not None},
                compacted=bool(body.get("compacted")),
                replaced=body.get("partitionToReplaceFileIds") or {},
            )
        except (ValueError, AttributeError, TypeError) as error:
            raise CorruptTable(
                f"A commit file cannot be parsed: {error}.",
                where=where,
                hint="Restore the file, or roll the instant back with Hudi.",
            ) from error
