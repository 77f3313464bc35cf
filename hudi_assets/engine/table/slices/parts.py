"""A table's partitions, each with its files and slices: kept for the next reading as long as nothing of it changes.

Whoever looks at a table often (`kept`) makes anew only the partitions that changed. What was told of one (`tell`) is
kept with it.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, TypeVar

from hudi_assets.engine.model import BaseFile, LogFile
from hudi_assets.engine.storage import FileInfo
from hudi_assets.engine.table.layout.interface import Layout
from hudi_assets.engine.table.slices.file_view import FileView

Value = TypeVar("Value")
Files = Mapping[str, LogFile | BaseFile]
"""By path, in the order of the listing."""


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """One partition of a reading. `infos`: its listing. `told`: what was asked of it, by question.

    `before`: what was told before it changed, until somebody has made use of it.
    """

    partition: str
    infos: list[FileInfo]
    files: Files
    view: FileView
    told: dict[Any, tuple[Hashable, Any]]
    before: dict[Any, tuple[Hashable, Any]]

    def was_told(self, question: Callable[..., Value], by: Hashable = None) -> Value | None:
        """What `tell` gave of it before it changed; None where that is not known."""
        known = self.before.get(question)
        value: Value | None = None if known is None or known[0] != by else known[1]
        return value

    def tell(self, question: Callable[..., Value], make: Callable[[], Value], by: Hashable = None) -> Value:
        """What `make` says of the partition: kept until the partition changes, or what it goes `by`."""
        known = self.told.get(question)
        if known is None or known[0] != by:
            self.told[question] = known = (by, make())
        value: Value = known[1]
        return value

    def has_told(self, question: Callable[..., object], by: Hashable = None) -> bool:
        """True where `tell` would not ask `make`."""
        known = self.told.get(question)
        return known is not None and known[0] == by

    @property
    def instants(self) -> frozenset[str]:
        """The instants in the names of its files."""
        return self.tell(_instants, lambda: _instants(self.files.values()))

    @property
    def remaining_logs(self) -> tuple[LogFile, ...]:
        """Every log file of the newest slices: no completed compaction has merged it."""
        return self.tell(_remaining, lambda: _remaining(self.view))

    @property
    def logs_before(self) -> tuple[LogFile, ...]:
        """The same before it changed; none where that is not known."""
        return self.was_told(_remaining) or ()

    @property
    def log_instants(self) -> frozenset[str]:
        """Those of its log files."""
        logs = (file for file in self.files.values() if isinstance(file, LogFile))
        return self.tell(_log_instants, lambda: _log_instants(logs))

    @property
    def has_doubles(self) -> bool:
        """True where a slice has several base files: which of them counts is for the commits to say."""
        return self.tell(_has_doubles, lambda: _has_doubles(self.files.values()))


def _instants(files: Iterable[LogFile | BaseFile]) -> frozenset[str]:
    return frozenset(map(instant_of, files))


def _remaining(view: FileView) -> tuple[LogFile, ...]:
    return tuple([log for slice_ in view.latest for log in slice_.log_files])


def _log_instants(logs: Iterable[LogFile]) -> frozenset[str]:
    return frozenset(log.base_instant for log in logs)


@dataclass(frozen=True, slots=True)
class Told:
    """What was told of completed instants, by question and name on the timeline; and of which nothing is lacking.

    `complete`: the names of writes whose files were there, or not needed any more. `remembered`: of those that are kept
    beyond their archiving.
    """

    by_commit: dict[tuple[Any, str], Any] = field(default_factory=dict)
    complete: set[str] = field(default_factory=set)
    remembered: set[str] = field(default_factory=set)
    others: dict[Any, tuple[Hashable, Any]] = field(default_factory=dict)

    def of(self, there: Container[str], *, lost: bool) -> Told:
        """For the next reading, whose timeline has the files `there`. `lost`: some data file has gone since."""
        return Told(
            {key: value for key, value in self.by_commit.items() if key[1] in there},
            set() if lost else {name for name in self.complete if name in there},
            {name for name in self.remembered if name in there},
            dict(self.others),
        )

    def tell(self, question: Callable[..., Value], make: Callable[[], Value], by: Hashable) -> Value:
        """As `Part.tell`, of the table: kept until what it goes `by` changes, or there is doubt."""
        known = self.others.get(question)
        if known is None or known[0] != by:
            self.others[question] = known = (by, make())
        value: Value = known[1]
        return value

    def of_commit(self, question: Callable[..., Value], name: str, make: Callable[[], Value]) -> Value:
        """What `make` says of the completed write of that name."""
        key = (question, name)
        if key not in self.by_commit:
            self.by_commit[key] = make()
        value: Value = self.by_commit[key]
        return value


def instant_of(file: LogFile | BaseFile) -> str:
    """The instant in a file's name."""
    return file.base_instant if isinstance(file, LogFile) else file.instant


def _has_doubles(files: Iterable[LogFile | BaseFile]) -> bool:
    slots = [(file.file_id, file.instant) for file in files if isinstance(file, BaseFile)]
    return len(slots) != len(set(slots))


def parse_again(infos: list[FileInfo], partition: str, layout: Layout, last: Part | None) -> Files:
    """The log and base files of a listing. A name that was parsed for the last one is not parsed again."""
    if last is None:
        return _by_path(layout.parse_files(infos, partition))
    if last.infos is infos:
        return last.files
    # An entry is the same object where nobody asked for the file again.
    before = frozenset(map(id, last.infos))
    fresh = [info for info in infos if id(info) not in before]
    stays = {info.path for info in infos}.difference(info.path for info in fresh)
    kept = {path: file for path, file in last.files.items() if path in stays}
    return {**kept, **_by_path(layout.parse_files(fresh, partition))}


def _by_path(files: Iterable[LogFile | BaseFile]) -> Files:
    return {file.path: file for file in files}


class Sizes(Mapping[str, int]):
    """Path → size of every log and base file that is there."""

    def __init__(self, files: Mapping[str, Files]) -> None:
        """`files`: by partition."""
        self._files = files

    def __getitem__(self, path: str) -> int:
        return self._files[path.rpartition("/")[0]][path].size

    def __iter__(self) -> Iterator[str]:
        return chain.from_iterable(self._files.values())

    def __len__(self) -> int:
        return sum(map(len, self._files.values()))
