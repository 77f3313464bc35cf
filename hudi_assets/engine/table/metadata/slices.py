"""The newest file slices of the metadata table's partitions: where a change is written, and what a look reads."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from hudi_assets.engine.errors import CorruptTable, UnsupportedTable
from hudi_assets.engine.model import Action, LogFile
from hudi_assets.engine.storage import FileInfo, Storage
from hudi_assets.engine.table.layout.interface import CompletionOf, Layout
from hudi_assets.engine.table.metadata.own_timeline import ROOT, OwnTimeline

FILES: Final = "files"
FOLDER: Final = f"{ROOT}/{FILES}"
_BASE: Final = re.compile(r"(?P<file_id>[^_.][^_]*)_(?P<token>[^_]+)_(?P<instant>\d{14,})\.hfile", re.ASCII)
_LOG: Final = re.compile(
    r"\.(?P<file_id>[^_]+)_(?P<instant>\d{14,})\.log\.(?P<version>\d{1,9})(?:_(?P<token>[^.]+))?", re.ASCII
)
_COMMITS: Final = (Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT)


@dataclass(frozen=True, slots=True)
class OwnBase:
    """A base file (an HFile) of the metadata table."""

    path: str
    file_id: str
    instant: str
    size: int

    @property
    def name(self) -> str:
        return self.path.rsplit("/", 1)[-1]


@dataclass(frozen=True, slots=True)
class FilesSlice:
    """The newest slice of a file group: its base file, if there is one, and its log files in log order.

    `instant` is its base instant. While a compaction of the metadata table is pending, that is the slice that it
    opens: `older` is the slice that it reads then.
    """

    file_id: str
    instant: str
    base: OwnBase | None
    logs: tuple[LogFile, ...]
    older: FilesSlice | None = None
    partition: str = FILES

    @property
    def folder(self) -> str:
        return f"{ROOT}/{self.partition}"


def files_slice(storage: Storage, layout: Layout, own: OwnTimeline) -> FilesSlice:
    """The newest slice of the files partition. `CorruptTable` where there is none, or more than one file group."""
    slices = newest_slices(storage, layout, own, FILES)
    if len(slices) != 1:
        raise CorruptTable(
            f"The metadata table's files partition has {len(slices)} file groups, not one.",
            where=f"{storage.base}: {FOLDER}",
            hint="Delete the metadata table with Hudi (hoodie.metadata.enable=false) and let it make a new one.",
        )
    return slices[0]


def newest_slices(storage: Storage, layout: Layout, own: OwnTimeline, partition: str) -> tuple[FilesSlice, ...]:
    """The newest slice of each file group of a partition, in the groups' order; `CorruptTable` where one has none."""
    bases, logs = _listed(storage, partition)
    groups = sorted({base.file_id for base in bases} | {log.file_id for log in logs})
    return tuple(
        _newest(
            storage,
            layout,
            own,
            partition,
            group,
            [base for base in bases if base.file_id == group],
            [log for log in logs if log.file_id == group],
        )
        for group in groups
    )


def _newest(
    storage: Storage,
    layout: Layout,
    own: OwnTimeline,
    partition: str,
    group: str,
    bases: list[OwnBase],
    logs: list[LogFile],
) -> FilesSlice:
    committed = {base.instant: base for base in bases if _counts(base.instant, own)}
    pending = sorted({i.timestamp for i in own.unfinished if i.action == Action.COMPACTION})
    cut = layout.cut(sorted({*committed, *pending}), logs, _completion_of(own))
    instants = sorted({i for i in (*committed, *cut) if _counts(i, own) or i in pending})
    if not instants:
        where = f"{storage.base}: {ROOT}/{partition}"
        raise CorruptTable(f"File group {group} of the metadata table has no slice.", where=where)
    found: FilesSlice | None = None
    for instant in instants:
        ordered = tuple(sorted(cut.get(instant, ()), key=lambda log: (log.base_instant, *log.order)))
        older = found if instant in pending and instant not in committed else None
        found = FilesSlice(group, instant, committed.get(instant), ordered, older, partition)
    assert found is not None
    return found


def replaced_files(
    storage: Storage, layout: Layout, own: OwnTimeline, keep: int, partition: str = FILES, group: str | None = None
) -> list[str]:
    """Files of the slices before the newest `keep` ones of a file group that have base files."""
    every_base, every_log = _listed(storage, partition)
    bases = [base for base in every_base if group in (None, base.file_id)]
    logs = [log for log in every_log if group in (None, log.file_id)]
    committed = sorted({base.instant for base in bases if _counts(base.instant, own)})
    if len(committed) <= keep:
        return []
    first = committed[-keep]
    cut = layout.cut(committed, logs, _completion_of(own))
    old = [log.path for instant, found in cut.items() if instant < first for log in found]
    return sorted(old) + sorted(base.path for base in bases if base.instant < first)


def bases_of(storage: Storage, slice_: FilesSlice, instant: str) -> list[str]:
    """The base files of a file group at an instant: more than one where an execution of its compaction died."""
    bases, _ = _listed(storage, slice_.partition)
    return [base.path for base in bases if (base.file_id, base.instant) == (slice_.file_id, instant)]


def _listed(storage: Storage, partition: str) -> tuple[list[OwnBase], list[LogFile]]:
    bases, logs = [], []
    for file in storage.list_files(f"{ROOT}/{partition}"):
        if (base := parse_base(file)) is not None:
            bases.append(base)
        elif (log := parse_log(file)) is not None:
            logs.append(log)
    return bases, logs


def _completion_of(own: OwnTimeline) -> CompletionOf:
    """Of what was archived nothing is known but that it was: its own time, so that it stays in the slice it was in."""
    completions = {i.timestamp: i.completion or i.timestamp for i in own.completed(*_COMMITS)}
    return lambda instant: completions.get(instant) or (instant if _is_archived(instant, own) else None)


def _counts(instant: str, own: OwnTimeline) -> bool:
    """A slice's base instant is completed, or older than the timeline's start (archived)."""
    return instant in {i.timestamp for i in own.completed(*_COMMITS)} or _is_archived(instant, own)


def _is_archived(instant: str, own: OwnTimeline) -> bool:
    first = min((i.timestamp for i in own.files if i.action in (*_COMMITS, Action.COMPACTION)), default=None)
    return first is not None and instant < first


def parse_base(file: FileInfo) -> OwnBase | None:
    match = _BASE.fullmatch(file.name)
    return None if match is None else OwnBase(file.path, match["file_id"], match["instant"], file.size)


def parse_log(file: FileInfo) -> LogFile | None:
    match = _LOG.fullmatch(file.name)
    if match is None:
        return None
    if file.link_target is not None:
        raise UnsupportedTable("The metadata table has a symbolic link.", where=file.path)
    return LogFile(
        path=file.path,
        partition=file.path.rpartition("/")[0].removeprefix(f"{ROOT}/"),
        file_id=match["file_id"],
        base_instant=match["instant"],
        version=int(match["version"]),
        write_token=match["token"] or "",
        size=file.size,
        original=file.path,
    )


def all_logs(storage: Storage) -> list[LogFile]:
    """Log files of every partition of the metadata table."""
    logs = []
    for folder in storage.list_directories(ROOT):
        if not folder.endswith("/.hoodie"):
            logs += [log for log in map(parse_log, storage.list_files(folder)) if log is not None]
    return logs
