"""Table version 6: how files and instants are named, slices are cut and logs are carried over.

Names from org.apache.hudi.common.fs.FSUtils and HoodieInstant (0.15). A log file's name carries the
base instant of its slice, so a remaining log enters the new slice under a new name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from hudi_assets.engine.errors import CorruptTable, UnsupportedTable
from hudi_assets.engine.model import Action, BaseFile, CarryOver, FileSlice, Instant, LogFile, State
from hudi_assets.engine.storage import FileInfo
from hudi_assets.engine.timeline.instants import is_instant

_BASE = re.compile(r"(?P<file_id>[^_.][^_]*)_(?P<token>[^_]+)_(?P<instant>\d{14,17})\.parquet", re.ASCII)
_LOG = re.compile(r"\.(?P<file_id>[^_]+)_(?P<instant>\d{14,17})\.log\.(?P<version>\d+)(?:_(?P<token>[^.]+))?", re.ASCII)
# Data files of kinds that are not read: passed over, their rows would be missing.
_OTHER_FILES = {
    "change data (.cdc log files)": re.compile(r"\.[^_]+_\d{14,17}\.log\.\d+(?:_[^.]+)?\.cdc", re.ASCII),
    "ORC base files": re.compile(r"[^_.][^_]*_[^_]+_\d{14,17}\.orc", re.ASCII),
    "HFile base files": re.compile(r"[^_.][^_]*_[^_]+_\d{14,17}\.hfile", re.ASCII),
}
_SUFFIXES = {a.value: a for a in Action if a is not Action.CLUSTERING}


@dataclass(frozen=True, slots=True)
class LayoutV6:
    """The table-version seam, as version 6 answers it."""

    version: int = 6
    timeline_folder: str = ".hoodie"

    # -- timeline ---------------------------------------------------------------------------------

    def parse_instant(self, file_name: str) -> Instant | None:
        """A timeline file's name as an instant; None for any other file in the folder."""
        parts = file_name.split(".")
        if not is_instant(parts[0]) or not 2 <= len(parts) <= 3:
            return None
        timestamp, *rest = parts
        if rest == ["inflight"]:
            return Instant(timestamp, Action.COMMIT, State.INFLIGHT, file_name)
        action = _SUFFIXES.get(rest[0])
        if action is None:
            return None
        if len(rest) == 1:
            return Instant(timestamp, action, State.COMPLETED, file_name)
        if rest[1] not in (State.REQUESTED, State.INFLIGHT):
            return None
        return Instant(timestamp, action, State(rest[1]), file_name)

    def instant_path(self, timestamp: str, action: Action, state: State) -> str:
        """Where an instant's state is written. A compaction completes as a commit."""
        if state is State.COMPLETED:
            name = Action.COMMIT if action is Action.COMPACTION else action
            return f"{self.timeline_folder}/{timestamp}.{name}"
        return f"{self.timeline_folder}/{timestamp}.{action}.{state}"

    # -- files ------------------------------------------------------------------------------------

    def parse_base_file(self, file: FileInfo, partition: str) -> BaseFile | None:
        match = _BASE.fullmatch(file.name)
        if match is None:
            _refuse_other(file)
            return None
        _refuse_outside(file)
        return BaseFile(file.path, partition, match["file_id"], match["instant"], match["token"], file.size)

    def parse_log_file(self, file: FileInfo, partition: str) -> LogFile | None:
        match = _LOG.fullmatch(file.name)
        if match is None:
            return None
        _refuse_outside(file)
        return LogFile(
            path=file.path,
            partition=partition,
            file_id=match["file_id"],
            base_instant=match["instant"],
            version=int(match["version"]),
            write_token=match["token"] or "",
            size=file.size,
            original=file.link_target or file.path,
        )

    def base_file_name(self, file_id: str, token: str, instant: str) -> str:
        return f"{file_id}_{token}_{instant}.parquet"

    def log_file_name(self, file_id: str, base_instant: str, version: int, token: str) -> str:
        return f".{file_id}_{base_instant}.log.{version}_{token}"

    # -- slices -----------------------------------------------------------------------------------

    def slice_instant(self, log: LogFile) -> str:
        """The base instant of the slice that a log file belongs to: its name says so."""
        return log.base_instant

    def carry_over(
        self, slice_: FileSlice, remaining: tuple[LogFile, ...], instant: str, first: int = 1
    ) -> tuple[CarryOver, ...]:
        """Names under which the remaining logs show in the slice at `instant`, in log order, from version `first`.

        A chain of links stays flat: what is itself carried over is carried over from its original.
        """
        folder = f"{slice_.partition}/" if slice_.partition else ""
        return tuple(
            CarryOver(
                folder + self.log_file_name(slice_.file_id, instant, version, log.write_token),
                log.original,
            )
            for version, log in enumerate(remaining, start=first)
        )


def _refuse_other(file: FileInfo) -> None:
    for kind, pattern in _OTHER_FILES.items():
        if pattern.fullmatch(file.name):
            raise UnsupportedTable(f"The table holds {kind}, which are not supported.", where=file.path)


def _refuse_outside(file: FileInfo) -> None:
    if file.link_target is not None and file.link_target.startswith(("/", "../")):
        raise CorruptTable("A symbolic link leads out of the table.", where=f"{file.path} → {file.link_target}")
