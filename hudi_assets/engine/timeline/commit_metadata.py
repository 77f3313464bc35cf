"""Commit metadata (HoodieCommitMetadata, HoodieWriteStat) as values, and its JSON on version 6."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from sys import intern
from typing import Any, Final, NamedTuple, TypeVar

from hudi_assets.engine.errors import CorruptTable
from hudi_assets.engine.format.paths import inside_table
from hudi_assets.engine.model.plans import WRITER as WRITER
from hudi_assets.engine.timeline import commit_json
from hudi_assets.engine.timeline.plain_stats import plain_stat

SCHEMA: Final = "schema"
INTERNAL_SCHEMA: Final = "latest_schema"  # SerDeHelper.LATEST_SCHEMA: columns by id, of schema on read
THRESHOLD: Final = "hudi_assets.threshold"
CLOCK_TIME: Final = "hudi_assets.clock.time"
BATCH_ID: Final = "hudi_assets.batch.id"
EVENT_TIME: Final = "hudi_assets.event.time"
GUARDED: Final = "hudi_assets.guards"
EXECUTION: Final = "hudi_assets.execution"  # on a store: whose execution of the plan a compaction's commit is of

_Kind = TypeVar("_Kind")


class WriteStat(NamedTuple):
    """What one commit wrote into one file. `path` is table-relative; event times epoch ms.

    A tuple: a timeline may hold a million of them, and tuples are made in an eighth of the time.
    """

    path: str
    partition: str
    file_id: str
    prev_commit: str
    size: int
    num_writes: int = 0
    num_inserts: int = 0
    num_updates: int = 0
    num_deletes: int = 0
    logs_compacted: int = 0
    log_records: int = 0
    log_bytes_compacted: int = 0
    log_blocks: int = 0
    corrupt_blocks: int = 0
    rollback_blocks: int = 0
    min_event_time: int | None = None
    max_event_time: int | None = None
    log_version: int | None = None
    base_file: str | None = None
    log_files: tuple[str, ...] = ()

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
    def from_json(cls, stat: Any) -> WriteStat:
        """One stat of a commit file. Raises ValueError or `CorruptTable` for values that are none of Hudi's."""
        plain = plain_stat(stat) if type(stat) is dict else None
        return cls._checked(_typed(stat, dict, "a write stat") or {}) if plain is None else cls.of_fields(plain)

    @classmethod
    def of_fields(cls, values: tuple[Any, ...]) -> WriteStat:
        """One of values that are known to be right, in order: makes it without looking at any.

        A file group has many: of its partition, file id, base instant and base file one text is kept for all.
        """
        path, partition, file_id, prev_commit, *numbers, base_file, log_files = values
        shared = intern(partition), intern(file_id), intern(prev_commit)
        return tuple.__new__(cls, (path, *shared, *numbers, base_file and intern(base_file), log_files))

    @classmethod
    def _checked(cls, stat: Mapping[str, Any]) -> WriteStat:
        """The same, looking at each value by itself: what may be absent, and what is wrong."""

        def text(key: str) -> str:
            return _typed(stat.get(key), str, key) or ""

        def number(key: str) -> int:
            return _number(stat.get(key), key) or 0

        return cls(
            path=inside_table(text("path"), "commit", _named(stat)),
            partition=inside_table(text("partitionPath"), "commit", _named(stat)),
            file_id=text("fileId"),
            prev_commit=text("prevCommit") or "null",
            size=number("fileSizeInBytes"),
            num_writes=number("numWrites"),
            num_inserts=number("numInserts"),
            num_updates=number("numUpdateWrites"),
            num_deletes=number("numDeletes"),
            min_event_time=_number(stat.get("minEventTime"), "minEventTime"),
            max_event_time=_number(stat.get("maxEventTime"), "maxEventTime"),
            log_version=_number(stat.get("logVersion"), "logVersion"),
            base_file=_typed(stat.get("baseFile"), str, "baseFile"),
            log_files=tuple(
                _typed(name, str, "logFiles") or "" for name in _typed(stat.get("logFiles"), list, "logFiles") or ()
            ),
            logs_compacted=number("totalLogFilesCompacted"),
            log_records=number("totalLogRecords"),
            log_bytes_compacted=number("totalLogSizeCompacted"),
            log_blocks=number("totalLogBlocks"),
            corrupt_blocks=number("totalCorruptLogBlock"),
            rollback_blocks=number("totalRollbackBlocks"),
        )


def _named(stat: Mapping[str, Any]) -> str:
    return f"write stat of {str(stat.get('fileId'))[:100]}"


def int64(text: str) -> int:
    """A decimal number of 64 bits; ValueError for anything else."""
    value = int(text) if len(text) <= 30 else 1 << 64
    if not -(1 << 63) <= value < 1 << 63:
        raise ValueError(f"{text[:30]} is out of range")
    return value


def _number(value: object, key: str) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not -(1 << 63) <= value < 1 << 63:
        raise ValueError(f"{key} is {str(value)[:40]!r}, which is no 64-bit number")
    return value


def _typed(value: Any, kind: type[_Kind], key: str) -> _Kind | None:
    if value is None or isinstance(value, kind):
        return value
    raise ValueError(f"{key} is {str(value)[:40]!r}, which is no {kind.__name__}")


@dataclass(frozen=True, slots=True)
class CommitMetadata:
    """One commit. Stats keep their order: on version 6 a group's base file comes last."""

    operation: str
    stats: Sequence[WriteStat]
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

    def to_body(self) -> dict[str, Any]:
        """HoodieCommitMetadata's fields; HoodieReplaceCommitMetadata's where file groups are replaced."""
        by_partition: dict[str, list[dict[str, Any]]] = {}
        for stat in self.stats:
            by_partition.setdefault(stat.partition, []).append(stat.to_json())
        body: dict[str, Any] = {
            "partitionToWriteStats": by_partition,
            "compacted": self.compacted,
            "extraMetadata": dict(self.extra),
            "operationType": self.operation,
        }
        if self.replaced:
            body["partitionToReplaceFileIds"] = {p: list(ids) for p, ids in self.replaced.items()}
        return body

    def to_json(self) -> bytes:
        return json.dumps(self.to_body(), separators=(",", ":")).encode()

    @classmethod
    def from_json(cls, data: bytes, where: str) -> CommitMetadata:
        """Parse a completed commit file; an empty one (Hudi writes such) has no stats."""
        if not data or data.isspace():
            return cls("UNKNOWN", ())
        if (decoded := commit_json.decode(data)) is not None:
            stats, fields = decoded
            return cls.of_body({**fields, "partitionToWriteStats": {}}, where, map(WriteStat.of_fields, stats))
        try:
            body = _typed(json.loads(data), dict, "the file") or {}
        except (ValueError, RecursionError) as error:
            raise _unreadable(error, where) from error
        return cls.of_body(body, where)

    @classmethod
    def of_body(cls, body: Mapping[str, Any], where: str, known: Iterable[WriteStat] = ()) -> CommitMetadata:
        """A commit from its fields, whichever file format they were in. Raises `CorruptTable`.

        `known`: write stats that are not among the fields.
        """
        try:
            stats = list(known)
            for group in _mapping(body, "partitionToWriteStats").values():
                stats += map(WriteStat.from_json, _typed(group, list, "partitionToWriteStats") or ())
            extra = {k: _typed(v, str, k) or "" for k, v in _mapping(body, "extraMetadata").items() if v is not None}
            for key in (THRESHOLD, CLOCK_TIME):
                if key in extra:
                    int64(extra[key])
            return cls(
                operation=_typed(body.get("operationType"), str, "operationType") or "UNKNOWN",
                stats=tuple(stats),
                extra=extra,
                compacted=bool(body.get("compacted")),
                replaced={
                    inside_table(partition, "commit", where): tuple(
                        _typed(i, str, partition) or "" for i in _typed(ids, list, partition) or ()
                    )
                    for partition, ids in _mapping(body, "partitionToReplaceFileIds").items()
                },
            )
        except (ValueError, TypeError, RecursionError) as error:
            raise _unreadable(error, where) from error
        except CorruptTable as error:
            raise CorruptTable(error.what, where=f"{where}, {error.where}") from error


def _unreadable(error: Exception, where: str) -> CorruptTable:
    return CorruptTable(
        f"A commit file cannot be parsed: {error}.",
        where=where,
        hint="Restore the file, or roll the instant back with Hudi.",
    )


def _mapping(body: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    return _typed(body.get(key), dict, key) or {}
