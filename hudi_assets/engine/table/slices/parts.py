"""A table's partitions, each with its files and slices: kept for the next reading as long as nothing of it changes.

Whoever looks at a table often (`kept`) makes anew only the partitions that changed. What was told of one (`tell`) is
kept with it. Of a table of very many files most partitions keep columns alone, and make files and slices anew when they
are asked for (`loaded`). What every look asks (`settle`) is told before.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeVar

from hudi_assets.engine.columns import column
from hudi_assets.engine.loaded import LOADED
from hudi_assets.engine.model import BaseFile, FileSlice, LogFile
from hudi_assets.engine.storage import Listing
from hudi_assets.engine.table.layout.interface import Layout
from hudi_assets.engine.table.slices.file_view import FileView
from hudi_assets.engine.table.slices.slice_columns import SliceColumns

Value = TypeVar("Value")
Files = Mapping[str, LogFile | BaseFile]
"""By path, in the order of the listing."""

# Besides the listing's entries there are a file and its place in a slice.
_MORE_THAN_LISTED: Final = 2
# So there is room for those of others besides.
_AT_ONCE: Final = 2 * (1 + _MORE_THAN_LISTED)


class Counts(NamedTuple):
    """A partition in numbers."""

    file_groups: int = 0
    base_files: int = 0
    base_bytes: int = 0
    remaining_slices: int = 0
    remaining_logs: int = 0
    remaining_bytes: int = 0


class Bases(NamedTuple):
    """The newest base files' paths, in order, and a digest that differs where they do."""

    digest: bytes
    paths: Iterable[str]


class Part:
    """One partition of a reading. `infos`: its listing. `told`: what was asked of it, by question.

    `before`: what was told before it changed, until somebody has made use of it.
    """

    __slots__ = ("__weakref__", "_layout", "_objects", "_slices", "before", "infos", "partition", "told")

    def __init__(
        self,
        partition: str,
        infos: Listing,
        layout: Layout,
        files: Files,
        view: FileView,
        before: dict[Any, tuple[Hashable, Any]] | None = None,
    ) -> None:
        self.partition, self.infos, self._layout = partition, infos, layout
        self.told: dict[Any, tuple[Hashable, Any]] = {}
        self.before = {} if before is None else before
        self._objects: _Objects | None = _Objects(files, view)
        self._slices: SliceColumns | None = None

    def keep_few(self) -> None:
        """Give the objects up for columns once those of many other files are kept."""
        LOADED.add(self, len(self.infos) * _MORE_THAN_LISTED)

    def unload(self) -> None:
        objects = self._objects
        if objects is None:
            return
        self._settle()
        for _, value in list(self.told.values()):
            # What was told of each remaining log file has columns too.
            if (unload := getattr(value, "unload", None)) is not None:
                unload(objects.remaining)
        if self._slices is None:
            self._slices = SliceColumns.of(objects.view, objects.files, self.infos, self.partition)
        self._objects = None

    def _settle(self) -> None:
        """Tell what every look asks, while the objects are there."""
        _ = self.instants, self.log_instants, self.has_doubles, self.counts, self.bases, self.baseless, self.oldest_base

    @property
    def _there(self) -> _Objects:
        objects, slices = self._objects, self._slices
        if objects is None:
            assert slices is not None
            files, view = slices.made(self.partition, lambda: self._layout.parse_files(self.infos, self.partition))
            self._objects = objects = _Objects(_by_path(files), view)
            self.keep_few()
        return objects

    @property
    def files(self) -> Files:
        return self._there.files

    @property
    def view(self) -> FileView:
        return self._there.view

    @property
    def file_ids(self) -> Iterable[str]:
        """Of its file groups."""
        objects, slices = self._objects, self._slices
        if objects is None and slices is not None:
            return slices.file_ids
        return [file_id for _, file_id in self._there.view.groups]

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

    def is_told(self, question: Callable[..., Value], by: Hashable = None) -> Value | None:
        """What `tell` would give without asking `make`; None where it would ask."""
        known = self.told.get(question)
        value: Value | None = None if known is None or known[0] != by else known[1]
        return value

    @property
    def all_told(self) -> dict[Any, tuple[Hashable, Any]]:
        """What was told, for the partition that comes in its place: its log files among it."""
        return {**self.told, _remaining: (None, self.remaining_logs)}

    @property
    def instants(self) -> frozenset[str]:
        """The instants in the names of its files."""
        return self.tell(_instants, lambda: _instants(self.files.values()))

    @property
    def remaining_logs(self) -> tuple[LogFile, ...]:
        """Every log file of the newest slices: no completed compaction has merged it."""
        return self._there.remaining

    @property
    def has_logs(self) -> bool:
        """True where some log files remain."""
        return self.counts.remaining_logs > 0

    @property
    def number_of_logs(self) -> int:
        """How many log files remain."""
        return self.counts.remaining_logs

    @property
    def logs_before(self) -> tuple[LogFile, ...]:
        """The same before it changed; none where that is not known."""
        return self.was_told(_remaining) or ()

    @property
    def log_instants(self) -> frozenset[str]:
        """Those of its log files."""
        return self.tell(_log_instants, lambda: _log_instants(self.files.values()))

    @property
    def has_doubles(self) -> bool:
        """True where a slice has several base files: which of them counts is for the commits to say."""
        return self.tell(_has_doubles, lambda: _has_doubles(self.files.values()))

    @property
    def counts(self) -> Counts:
        return self.tell(_counts, lambda: _counts(self.view, self.remaining_logs))

    @property
    def bases(self) -> Bases:
        return self.tell(_bases, lambda: _bases(self.view))

    @property
    def baseless(self) -> tuple[FileSlice, ...]:
        """The slices above another one that have log files alone."""
        return self.tell(_baseless, lambda: _baseless(self.view))

    @property
    def oldest_base(self) -> str | None:
        """The oldest base instant of a newest slice with log files; None where there is none."""
        return self.tell(_oldest_base, lambda: _oldest_base(self.view))


class _Objects:
    """A partition's files and slices."""

    __slots__ = ("_remaining", "files", "view")

    def __init__(self, files: Files, view: FileView) -> None:
        self.files, self.view = files, view
        self._remaining: tuple[LogFile, ...] | None = None

    @property
    def remaining(self) -> tuple[LogFile, ...]:
        if self._remaining is None:
            self._remaining = _remaining(self.view)
        return self._remaining


def _instants(files: Iterable[LogFile | BaseFile]) -> frozenset[str]:
    return frozenset(map(instant_of, files))


def _remaining(view: FileView) -> tuple[LogFile, ...]:
    return tuple([log for slice_ in view.latest for log in slice_.log_files])


def _log_instants(files: Iterable[LogFile | BaseFile]) -> frozenset[str]:
    return frozenset(file.base_instant for file in files if isinstance(file, LogFile))


def _counts(view: FileView, logs: Sequence[LogFile]) -> Counts:
    return Counts(
        len(view.groups),
        len(view.base_files),
        sum(base.size for base in view.base_files),
        sum(1 for slice_ in view.latest if slice_.log_files),
        len(logs),
        sum(log.size for log in logs),
    )


def _bases(view: FileView) -> Bases:
    paths = sorted(base.path for base in view.base_files)
    return Bases(
        hashlib.sha256("\n".join(paths).encode("utf-8", "surrogatepass")).digest(), column(paths) if paths else ()
    )


def _baseless(view: FileView) -> tuple[FileSlice, ...]:
    above = (slice_ for slices in view.groups.values() for slice_ in slices[1:])
    return tuple(slice_ for slice_ in above if slice_.base_file is None and slice_.log_files)


def _oldest_base(view: FileView) -> str | None:
    return min((slice_.base_instant for slice_ in view.latest if slice_.log_files), default=None)


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


def are_few(parts: Iterable[Part]) -> bool:
    """True where all of them may have objects at once."""
    return sum(len(part.infos) for part in parts) <= LOADED.most // _AT_ONCE


def few_at_once(parts: Iterable[Part]) -> Iterator[list[Part]]:
    """Several parts at a time, of so few files together that all of them may have objects; once none where none is."""
    some: list[Part] = []
    files = 0
    for part in parts:
        if some and files + len(part.infos) > LOADED.most // _AT_ONCE:
            yield some
            some, files = [], 0
        some.append(part)
        files += len(part.infos)
    yield some


def remaining_of(parts: Iterable[Part]) -> Iterator[LogFile]:
    """The remaining log files of some partitions, one after the other."""
    return (log for part in parts for log in part.remaining_logs)


def parse_again(infos: Listing, partition: str, layout: Layout, last: Part | None) -> Files:
    """The log and base files of a listing. A name that was parsed for the last one is not parsed again."""
    if last is None:
        return _by_path(layout.parse_files(infos, partition))
    if last.infos is infos:
        return last.files
    # An entry is the same object where nobody asked for the file again.
    entries, held = infos.entries, last.infos.entries
    before = frozenset(map(id, held))
    fresh = [info for info in entries if id(info) not in before]
    stays = {info.path for info in entries}.difference(info.path for info in fresh)
    kept = {path: file for path, file in last.files.items() if path in stays}
    return {**kept, **_by_path(layout.parse_files(fresh, partition))}


def _by_path(files: Iterable[LogFile | BaseFile]) -> Files:
    return {file.path: file for file in files}
