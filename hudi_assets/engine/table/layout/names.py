"""Names of base and log files, the same in every table version (org.apache.hudi.common.fs.FSUtils).

The instant in a log file's name is its slice's base instant on version 6, its delta commit's on 8 and 9.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable
from sys import intern
from typing import Final

from hudi_assets.engine.errors import CorruptTable, UnsupportedTable
from hudi_assets.engine.model import BaseFile, LogFile
from hudi_assets.engine.storage import FileInfo

_BASE = re.compile(r"(?P<file_id>[^_.][^_]*)_(?P<token>[^_]+)_(?P<instant>\d{14,17})\.parquet", re.ASCII)
_LOG = re.compile(r"\.(?P<file_id>[^_]+)_(?P<instant>\d{14,17})\.log\.(?P<version>\d+)(?:_(?P<token>[^.]+))?", re.ASCII)
# What these say of rows is in log and base files too.
_CHANGES = re.compile(r"\.(?P<file_id>[^_]+)_(?P<instant>\d{14,17})\.log\.\d+(?:_[^.]+)?\.cdc", re.ASCII)
# Data files of kinds that are not read: passed over, their rows would be missing.
_OTHER_FILES = {
    "ORC base files": re.compile(r"[^_.][^_]*_[^_]+_\d{14,17}\.orc", re.ASCII),
    "HFile base files": re.compile(r"[^_.][^_]*_[^_]+_\d{14,17}\.hfile", re.ASCII),
}

_JAVAS_INT: Final = 1 << 31
_MOST_COUNTED: Final = 1 << 20


def token_of_once(task: int = 0) -> str:
    """A write token that occurs once: a name that was ever deleted is never made again.

    So a delete that arrives late, of a file that a dead execution left, finds nothing. Three of Java's numbers, as Hudi
    reads them (FSUtils.LOG_FILE_PATTERN). `task`: the number of Spark's partition.
    """
    return f"{task}-{secrets.randbelow(_JAVAS_INT)}-{secrets.randbelow(_JAVAS_INT)}"


def is_token_of_once(token: str) -> bool:
    """As far as its numbers tell: Spark's count from 0, and are not both above a million. A few by chance are below."""
    numbers = token.split("-")[1:]
    return len(numbers) == 2 and all(number.isdecimal() and int(number) > _MOST_COUNTED for number in numbers)


def log_version(path: str) -> int:
    """The version in a log file's name."""
    match = _LOG.fullmatch(path.rpartition("/")[2])
    if match is None:
        raise CorruptTable("This is no log file's name.", where=path)
    return int(match["version"])


def instant_in_name(path: str) -> str | None:
    """The instant in a base file's name."""
    match = _BASE.fullmatch(path.rpartition("/")[2])
    return match["instant"] if match else None


def holds_changes(name: str) -> bool:
    """True for a file of change data beside a slice's files (`hoodie.table.cdc.enabled`)."""
    return _CHANGES.fullmatch(name) is not None


def slice_of_changes(name: str) -> tuple[str, str] | None:
    """The file group and the base instant that a file of change data stands beside; None for other files."""
    match = _CHANGES.fullmatch(name)
    return (match["file_id"], match["instant"]) if match else None


class FileNames:
    """The part of a layout that names files."""

    __slots__ = ()

    def parse_file(self, file: FileInfo, partition: str) -> LogFile | BaseFile | None:
        """What a file is by its name; None for neither a log nor a base file."""
        return next(iter(self.parse_files((file,), partition)), None)

    def parse_files(self, files: Iterable[FileInfo], partition: str) -> list[LogFile | BaseFile]:
        """The log and base files among a partition's files, in their order; others, and broken links, are left out."""
        found: list[LogFile | BaseFile] = []
        # Many files share a file id, an instant, a write token: one text is kept of each, as in write stats.
        match_log, make = _LOG.fullmatch, tuple.__new__
        for file in files:
            path = file.path
            match = match_log(path, path.rfind("/") + 1)
            if match is None:
                if (base := self.parse_base_file(file, partition)) is not None and not file.broken:
                    found.append(base)
                continue
            link = file.link_target
            if link is not None:
                _refuse_outside(file)
                if file.broken:
                    continue
            file_id, instant, version, token = match.groups("")
            shared = intern(file_id), intern(instant), int(version), intern(token)
            found.append(make(LogFile, (path, partition, *shared, file.size, link or path)))
        return found

    def parse_base_file(self, file: FileInfo, partition: str) -> BaseFile | None:
        match = _BASE.fullmatch(file.name)
        if match is None:
            _refuse_other(file)
            return None
        _refuse_outside(file)
        file_id, token, instant = map(intern, match.groups())
        return BaseFile(file.path, partition, file_id, instant, token, file.size)

    def parse_log_file(self, file: FileInfo, partition: str) -> LogFile | None:
        match = _LOG.fullmatch(file.name)
        if match is None:
            return None
        _refuse_outside(file)
        file_id, instant, version, token = match.groups("")
        path, link = file.path, file.link_target
        return LogFile(path, partition, file_id, instant, int(version), token, file.size, link or path)

    def base_file_name(self, file_id: str, token: str, instant: str) -> str:
        return f"{file_id}_{token}_{instant}.parquet"

    def log_file_name(self, file_id: str, instant: str, version: int, token: str) -> str:
        return f".{file_id}_{instant}.log.{version}_{token}"


def _refuse_other(file: FileInfo) -> None:
    for kind, pattern in _OTHER_FILES.items():
        if pattern.fullmatch(file.name):
            raise UnsupportedTable(f"The table holds {kind}, which are not supported.", where=file.path)


def _refuse_outside(file: FileInfo) -> None:
    if file.link_target is not None and file.link_target.startswith(("/", "../")):
        raise CorruptTable("A symbolic link leads out of the table.", where=f"{file.path} → {file.link_target}")
