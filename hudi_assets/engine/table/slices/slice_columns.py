"""The files and slices of a partition as columns: some twenty bytes for a log file in place of objects."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, repeat
from typing import Any, NamedTuple, Self

from hudi_assets.engine.columns import column
from hudi_assets.engine.model import BaseFile, FileSlice, LogFile
from hudi_assets.engine.storage import FileInfo
from hudi_assets.engine.table.slices.file_view import FileView

File = LogFile | BaseFile


@dataclass(frozen=True, slots=True)
class SliceColumns:
    """The slices of each file group, in order, and the place of each of their files among those of the listing.

    `slices`: of each file group how many; `instants`, `based` (0: it has no base file) and `logs`, of each slice.
    `names`: what the files' names are made of; None where the listing has to be parsed again.
    """

    file_ids: tuple[str, ...]
    slices: array[int]
    instants: Iterable[str]
    based: array[int]
    logs: array[int]
    bases_at: array[int]
    logs_at: array[int]
    names: _Names | None
    pending: Mapping[Any, Any]

    @classmethod
    def of(cls, view: FileView, files: Mapping[str, File], infos: Iterable[FileInfo], partition: str) -> SliceColumns:
        """`files`: the log and base files of the listing by path."""
        place = {path: n for n, path in enumerate([info.path for info in infos if info.path in files])}
        every = [slice_ for slices in view.groups.values() for slice_ in slices]
        bases = [slice_.base_file for slice_ in every if slice_.base_file is not None]
        logs = [log for slice_ in every for log in slice_.log_files]
        whole = len(bases) + len(logs) == len(files)
        return cls(
            tuple(file_id for _, file_id in view.groups),
            array("i", map(len, view.groups.values())),
            column([slice_.base_instant for slice_ in every]) if every else (),
            array("b", [slice_.base_file is not None for slice_ in every]),
            array("i", [len(slice_.log_files) for slice_ in every]),
            array("i", [place[base.path] for base in bases]),
            array("i", [place[log.path] for log in logs]),
            _Names.of(partition, bases, logs) if whole else None,
            view.pending,
        )

    def made(self, partition: str, parse: Callable[[], list[File]]) -> tuple[list[File], FileView]:
        """The files in the order of the listing, and their slices. `parse`: the listing's files, by their names."""
        files: list[Any]
        bases: Iterator[Any]
        logs: Iterator[Any]
        if self.names is None:
            files = [*parse()]
            bases, logs = map(files.__getitem__, self.bases_at), map(files.__getitem__, self.logs_at)
        else:
            files = [None] * (len(self.bases_at) + len(self.logs_at))
            bases = _placed(files, self.bases_at, self.names.bases(partition, self._ids(self.based)))
            logs = _placed(files, self.logs_at, self.names.logs(partition, self._ids(self.logs)))
        slices = zip(self.instants, self.based, self.logs, strict=True)
        groups = {}
        for file_id, number in zip(self.file_ids, self.slices, strict=True):
            groups[partition, file_id] = tuple(
                FileSlice(partition, file_id, instant, next(bases) if based else None, tuple(islice(logs, count)))
                for instant, based, count in islice(slices, number)
            )
        return files, FileView(groups, self.pending)

    def _ids(self, numbers: Iterable[int]) -> Iterator[str]:
        """The file id of each file. `numbers`: how many each slice has."""
        slices = iter(numbers)
        for file_id, number in zip(self.file_ids, self.slices, strict=True):
            yield from repeat(file_id, sum(islice(slices, number)))


def _placed(files: list[Any], places: Iterable[int], found: Iterable[Any]) -> Iterator[Any]:
    """Each of what is found, and put in its place."""
    for place, file in zip(places, found, strict=True):
        files[place] = file
    return iter(found)


class _Names(NamedTuple):
    """What base and log files are made of, besides partition and file id."""

    base_columns: tuple[Iterable[Any], ...]
    log_columns: tuple[Iterable[Any], ...]

    @classmethod
    def of(cls, partition: str, bases: list[BaseFile], logs: list[LogFile]) -> Self | None:
        """None where a file would not be made as it is: by another name, or a link."""
        base_columns = [(base.instant, base.write_token, base.size) for base in bases]
        log_columns = [(log.base_instant, log.version, log.write_token, log.size) for log in logs]
        made = cls(_columns(base_columns, 3), _columns(log_columns, 4))
        same = made.bases(partition, [base.file_id for base in bases]) == bases and (
            made.logs(partition, [log.file_id for log in logs]) == logs
        )
        return made if same else None

    def bases(self, partition: str, file_ids: Iterable[str]) -> list[BaseFile]:
        head = f"{partition}/" if partition else ""
        return [
            BaseFile(f"{head}{file_id}_{token}_{instant}.parquet", partition, file_id, instant, token, size)
            for file_id, instant, token, size in zip(file_ids, *self.base_columns, strict=True)
        ]

    def logs(self, partition: str, file_ids: Iterable[str]) -> list[LogFile]:
        head, make = f"{partition}/." if partition else ".", tuple.__new__
        rows = zip(file_ids, *self.log_columns, strict=True)
        return [
            make(
                LogFile,
                (
                    path := f"{head}{file_id}_{instant}.log.{version}{'_' if token else ''}{token}",
                    *(partition, file_id, instant, version, token, size, path),
                ),
            )
            for file_id, instant, version, token, size in rows
        ]


def _columns(rows: Sequence[tuple[Any, ...]], number: int) -> tuple[Iterable[Any], ...]:
    """`number`: how many columns there are, also where there is no row."""
    return tuple(map(column, zip(*rows, strict=True))) if rows else ((),) * number
