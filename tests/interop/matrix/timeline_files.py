"""A table's timeline, plans and log files as bare files: what the harness believes without asking any engine."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import fastavro

from tests.interop.matrix.oracle import Compaction, Group

_NAME = re.compile(r"(?P<requested>\d{14,17})(?:_(?P<completed>\d{14,17}))?(?:\.(?P<rest>[a-z.]+))?")
_WRITES = {"deltacommit", "commit", "replacecommit"}


@dataclass(frozen=True, order=True)
class File:
    """One timeline file. `completed` only where the table version has completion times."""

    requested: str
    action: str
    state: str
    completed: str | None
    path: Path


def folder(table: Path) -> Path:
    newer = table / ".hoodie/timeline"
    return newer if newer.is_dir() else table / ".hoodie"


def files(table: Path) -> Iterator[File]:
    """Every timeline file, in no order; a commit's bare `.inflight` is of the action `commit`."""
    for path in folder(table).iterdir():
        match = _NAME.fullmatch(path.name)
        if match is None or not path.is_file():
            continue
        *action, last = (match["rest"] or "").split(".")
        state = last if last in ("requested", "inflight") else "completed"
        named = (action[0] if action else "commit") if state != "completed" else last
        yield File(match["requested"], named, state, match["completed"], path)


def completed(table: Path, *actions: str) -> dict[str, File]:
    """Instant → its completed file, of these actions."""
    return {f.requested: f for f in files(table) if f.state == "completed" and f.action in actions}


def completed_writes(table: Path) -> dict[str, File]:
    return completed(table, *_WRITES)


def unfinished(table: Path, *actions: str) -> set[str]:
    """Instants of these actions that are requested or inflight, and not completed."""
    done = {f.requested for f in files(table) if f.state == "completed"}
    return {f.requested for f in files(table) if f.action in actions and f.state != "completed"} - done


def guards(table: Path) -> set[str]:
    """Pending compactions that compact nothing."""
    pending = (folder(table) / f"{instant}.compaction.requested" for instant in unfinished(table, "compaction"))
    return {path.name[:17] for path in pending if not _plan(path)["operations"]}


def _plan(path: Path) -> dict[str, Any]:
    (plan,) = list(fastavro.reader(BytesIO(path.read_bytes())))
    assert isinstance(plan, dict)
    return plan


def checksum_of(path: Path) -> Path:
    """The file in which Java's local file system keeps a file's checksum."""
    return path.with_name(f".{path.name}.crc")


def compaction(table: Path, instant: str) -> Compaction:
    """What a compaction plan merges: by the instants in the blocks of the log files that it names."""
    plan = _plan(folder(table) / f"{instant}.compaction.requested")
    merged: dict[Group, frozenset[str]] = {}
    operations: list[Mapping[str, Any]] = plan["operations"] or []
    for operation in operations:
        partition = operation["partitionPath"]
        names = [Path(name).name for name in operation["deltaFilePaths"]]
        found = {instant for name in names for instant in block_instants(table / partition / name)}
        merged[partition, int(operation["fileId"][:8])] = frozenset(found)
    return Compaction(instant, merged)


def logs_of(table: Path, instant: str) -> list[Path]:
    """The log files whose blocks an instant wrote."""
    found = (log for log in table.rglob(".*.log.*") if ".hoodie" not in log.relative_to(table).parts)
    return [log for log in found if log.suffix != ".crc" and instant in block_instants(log)]


def block_instants(log: Path) -> Iterator[str]:
    """INSTANT_TIME of each block of a log file (`docs/reference/log_format.md`)."""
    data = log.read_bytes()
    at = 0
    while at < len(data):
        assert data[at : at + 6] == b"#HUDI#", f"{log} at byte {at}"
        (size,) = struct.unpack_from(">q", data, at + 6)
        (pairs,) = struct.unpack_from(">i", data, at + 22)
        here = at + 26
        for _ in range(pairs):
            key, length = struct.unpack_from(">ii", data, here)
            if key == 0:
                yield data[here + 8 : here + 8 + length].decode()
            here += 8 + length
        at += 14 + size
