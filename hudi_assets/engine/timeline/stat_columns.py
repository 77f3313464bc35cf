"""The write stats of a commit as columns: a tenth of the memory that a tuple for each takes.

A process keeps what it has decoded (`decode_cache`), and a timeline may hold millions. The names of a file are told
once of each: path, base file and log files of a stat have its file id in them, and the rest is the same for many.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, repeat
from typing import Any, Final, overload

from hudi_assets.engine.columns import Texts, column
from hudi_assets.engine.timeline.commit_metadata import CommitMetadata, WriteStat

# Of fewer stats, tuples are as small.
_FEW: Final = 64
# A block ends with a partition, if it has so many rows; with any row, if it has as many as the second says.
_ROWS, _MOST_ROWS = 1_000, 10_000
_PATH, _FILE_ID = WriteStat._fields.index("path"), WriteStat._fields.index("file_id")
_LOG_VERSION: Final = WriteStat._fields.index("log_version")
_BASE_FILE, _LOG_FILES = WriteStat._fields.index("base_file"), WriteStat._fields.index("log_files")
_OWN: Final = "own"
_make: Final[Callable[[Iterable[Any]], WriteStat]] = partial(tuple.__new__, WriteStat)


def with_columns(commit: CommitMetadata) -> CommitMetadata:
    """The commit with its stats as columns, where they are many."""
    stats = in_few_bytes(commit.stats)
    return commit if stats is commit.stats else replace(commit, stats=stats)


def in_few_bytes(stats: Sequence[WriteStat]) -> Sequence[WriteStat]:
    """The same stats, as columns where they are many."""
    return stats if len(stats) < _FEW else StatColumns.of(stats)


def stats_in(stats: Sequence[WriteStat], partitions: Collection[str]) -> Iterator[WriteStat]:
    """Those of files in the folders of some partitions."""
    if isinstance(stats, StatColumns):
        return stats.in_partitions(partitions)
    return (stat for stat in stats if _folder(stat.path) in partitions)


def base_stats_of(stats: Sequence[WriteStat]) -> Sequence[WriteStat]:
    """Those that are not of log files, in few bytes."""
    found = stats.not_of_logs() if isinstance(stats, StatColumns) else (s for s in stats if s.log_version is None)
    return in_few_bytes(tuple(found))


def partitions_of(stats: Sequence[WriteStat]) -> set[str]:
    """The partitions that they name, and those in whose folders their files are: no writer tells two."""
    if isinstance(stats, StatColumns):
        return set(chain.from_iterable(block.partitions for block in stats.blocks))
    return _partitions(stats)


def _partitions(stats: Iterable[WriteStat]) -> set[str]:
    pairs = {(stat.partition, _folder(stat.path)) for stat in stats}
    return {partition for pair in pairs for partition in pair}


def _folder(path: str) -> str:
    return path[: max(0, path.rfind("/"))]


@dataclass(frozen=True, slots=True, eq=False)
class StatColumns(Sequence[WriteStat]):
    """Write stats, each made when it is asked for."""

    blocks: tuple[_Block, ...]
    rows: int

    @classmethod
    def of(cls, stats: Iterable[WriteStat]) -> StatColumns:
        blocks: list[_Block] = []
        begun: list[WriteStat] = []
        for stat in stats:
            if len(begun) >= _ROWS and (stat.partition != begun[-1].partition or len(begun) >= _MOST_ROWS):
                blocks.append(_Block.of(begun))
                begun = []
            begun.append(stat)
        if begun:
            blocks.append(_Block.of(begun))
        return cls(tuple(blocks), sum(block.rows for block in blocks))

    def in_partitions(self, partitions: Collection[str]) -> Iterator[WriteStat]:
        wanted = frozenset(partitions)
        for block in self.blocks:
            if block.partitions <= wanted:
                yield from block
            elif not block.partitions.isdisjoint(wanted):
                yield from (stat for stat in block if _folder(stat.path) in wanted)

    def not_of_logs(self) -> Iterator[WriteStat]:
        for block in self.blocks:
            if not block.is_of_logs:
                yield from (stat for stat in block if stat.log_version is None)

    def __iter__(self) -> Iterator[WriteStat]:
        for block in self.blocks:
            yield from block

    def __len__(self) -> int:
        return self.rows

    @overload
    def __getitem__(self, place: int) -> WriteStat: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[WriteStat, ...]: ...
    def __getitem__(self, place: int | slice) -> WriteStat | tuple[WriteStat, ...]:
        return tuple(self)[place]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StatColumns | tuple) and len(self) == len(other) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True, slots=True)
class _Block:
    """Some of the stats. `columns`: in the order of a stat's fields, but for what is told by `heads` and `tails`.

    A path is head, file id and tail; a base file is file id and tail. `_OWN`: a stat's only log file is its path's.
    """

    rows: int
    partitions: frozenset[str]
    is_of_logs: bool
    columns: tuple[Iterable[Any], ...]
    heads: Iterable[str] | None
    tails: Iterable[str] | None
    base_tails: Iterable[str] | None

    @classmethod
    def of(cls, stats: Sequence[WriteStat]) -> _Block:
        fields = list(zip(*stats, strict=True))
        columns: list[Iterable[Any]] = [
            values if place == _FILE_ID else column(values)
            for place, values in enumerate(fields)
            if place not in (_PATH, _BASE_FILE, _LOG_FILES)
        ]
        ids = fields[_FILE_ID]
        heads, tails = _parted(fields[_PATH], ids) or (None, None)
        based = _tails(fields[_BASE_FILE], ids)
        columns.insert(_PATH, () if heads is not None else column(fields[_PATH]))
        columns.insert(_BASE_FILE, () if based is not None else column(fields[_BASE_FILE]))
        columns.insert(_LOG_FILES, _log_files(fields[_LOG_FILES], fields[_PATH]))
        of_logs = None not in fields[_LOG_VERSION]
        return cls(len(stats), frozenset(_partitions(stats)), of_logs, tuple(columns), heads, tails, based)

    def __iter__(self) -> Iterator[WriteStat]:
        columns: list[Iterable[Any]] = list(self.columns)
        ids = self.columns[_FILE_ID]
        if self.heads is not None and self.tails is not None:
            columns[_PATH] = map("".join, zip(self.heads, ids, self.tails, strict=True))
        if self.base_tails is not None:
            columns[_BASE_FILE] = map(str.__add__, ids, self.base_tails)
        logs = columns[_LOG_FILES]
        if logs == _OWN:
            columns[_PATH] = paths = list(columns[_PATH])
            columns[_LOG_FILES] = [(path[path.rfind("/") + 1 :],) for path in paths]
        elif isinstance(logs, Texts):
            columns[_LOG_FILES] = (tuple(text.split("\0")[:-1]) for text in logs)
        return map(_make, zip(*columns, strict=True))


def _parted(paths: Sequence[str], ids: Sequence[str]) -> tuple[Iterable[str], Iterable[str]] | None:
    """What comes before and after the file ids; None where one is not in its path."""
    parts = list(map(str.partition, paths, ids)) if all(ids) else []
    if not parts or not all(part[1] for part in parts):
        return None
    return column([part[0] for part in parts]), column([part[2] for part in parts])


def _tails(names: Sequence[str | None], ids: Sequence[str]) -> Iterable[str] | None:
    """What comes after the file ids; None where a name does not begin with its own."""
    known = [name for name in names if name is not None]
    if len(known) < len(names) or not all(map(str.startswith, known, ids)):
        return None
    return column([name[len(file_id) :] for name, file_id in zip(known, ids, strict=True)])


def _log_files(names: Sequence[tuple[str, ...]], paths: Sequence[str]) -> Iterable[Any]:
    if all(len(own) == 1 and path[path.rfind("/") + 1 :] == own[0] for own, path in zip(names, paths, strict=True)):
        return _OWN
    if not any(names):
        return column(names)
    texts = ["".join(map(str.__add__, several, repeat("\0"))) for several in names]
    odd = any("\n" in text for text in texts) or any(
        text.count("\0") != len(n) for text, n in zip(texts, names, strict=True)
    )
    return tuple(names) if odd else Texts.of(texts)
