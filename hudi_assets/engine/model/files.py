"""Base files, log files and the file slices that they make. Paths are relative to the table's base path."""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter
from typing import Final, NamedTuple


class LogFile(NamedTuple):
    """One log file of a file slice (HoodieLogFile). `path` is relative to the table's base path, `size` is in bytes.

    `base_instant` is the instant in its name: its slice's on version 6, its delta commit's on versions 8 and 9.

    A tuple: there may be a million of them, and tuples are made and compared in a third of the time.
    """

    path: str
    partition: str
    file_id: str
    base_instant: str
    version: int
    write_token: str
    size: int
    # The file that holds its bytes: what a symbolic link leads to; its own path for any other log file. Where a
    # carried-over file's bytes first were written, the timeline says (`table.files.origins`).
    original: str

    @property
    def name(self) -> str:
        return self.path.rsplit("/", 1)[-1]

    @property
    def order(self) -> tuple[str, int, str]:
        """Hudi's log order within a slice: instant, version, write token (HoodieLogFile's comparator).

        The instant is the slice's own on version 6; on later ones, that of the delta commit which wrote the file.
        """
        return (self.base_instant, self.version, self.write_token)


LOG_ORDER: Final = attrgetter("base_instant", "version", "write_token")
"""`LogFile.order` as a sort key."""


@dataclass(frozen=True, slots=True)
class BaseFile:
    """One base file. `path` is relative to the table's base path."""

    path: str
    partition: str
    file_id: str
    instant: str
    write_token: str
    size: int

    @property
    def original(self) -> str:
        """The file that holds its bytes, as a log file says it: no base file is carried over."""
        return self.path

    @property
    def name(self) -> str:
        return self.path.rsplit("/", 1)[-1]


@dataclass(frozen=True, slots=True)
class FileSlice:
    """A base file (if there is one yet) and its log files, in log order."""

    partition: str
    file_id: str
    base_instant: str
    base_file: BaseFile | None
    log_files: tuple[LogFile, ...] = ()

    @property
    def next_log_version(self) -> int:
        return max((log.version for log in self.log_files), default=0) + 1


class CarryOver(NamedTuple):
    """A remaining log file shown in the new slice under another name (`link`). Table-relative.

    `target` is where its bytes first were written; that file may be cleaned by now. `source` is the old slice's file
    that the link was made from; None where that is the target.
    """

    link: str
    target: str
    source: str | None = None

    @property
    def made_from(self) -> str:
        """The old slice's file."""
        return self.source or self.target


GroupKey = tuple[str, str]  # (partition, file id)
