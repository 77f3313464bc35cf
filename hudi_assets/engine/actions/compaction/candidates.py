"""What a compaction would take of each file slice: in few bytes, since of a large table there are a million. Pure.

Whoever orders them asks for numbers. Slice and log files are made again, from those of their partition, when somebody
asks for them (`whole`). So ask one partition after the other: else each is made very often (`table.slices.parts`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from hudi_assets.engine.model import FileSlice, LogFile
from hudi_assets.engine.table.layout.interface import Span
from hudi_assets.engine.table.slices.file_view import FileView

_MB: Final = 1024 * 1024
_ANY: Final = ("", "~")


class Candidate(Protocol):
    """A file slice with the log files that its compaction would merge, before bounds cut the plan."""

    @property
    def partition(self) -> str: ...
    @property
    def file_id(self) -> str: ...
    @property
    def number(self) -> int:
        """How many log files are chosen."""
        ...

    @property
    def metrics(self) -> Mapping[str, float]: ...
    @property
    def span(self) -> Span:
        """Where a plan may stand that takes it."""
        ...

    @property
    def whole(self) -> WholeCandidate:
        """With its slice and log files."""
        ...

    def lowest(self, lowest_of: Callable[[Iterable[LogFile]], float]) -> float:
        """What the strategy says of the chosen log files."""
        ...


@dataclass(frozen=True, slots=True)
class WholeCandidate:
    """One with its slice and log files."""

    slice_: FileSlice
    chosen: tuple[LogFile, ...]
    metrics: Mapping[str, float]
    span: Span = _ANY

    @property
    def partition(self) -> str:
        return self.slice_.partition

    @property
    def file_id(self) -> str:
        return self.slice_.file_id

    @property
    def number(self) -> int:
        return len(self.chosen)

    @property
    def whole(self) -> WholeCandidate:
        return self

    @property
    def remain(self) -> tuple[LogFile, ...]:
        """What is not chosen of the slice, in its order."""
        if len(self.chosen) == len(self.slice_.log_files):
            return ()
        chosen = {log.path for log in self.chosen}
        return tuple([log for log in self.slice_.log_files if log.path not in chosen])

    def lowest(self, lowest_of: Callable[[Iterable[LogFile]], float]) -> float:
        return lowest_of(self.chosen)


class SlicesOf:
    """The slices of one partition from which a selection is made, made when they are asked for."""

    __slots__ = ("_considered", "_spans", "_view", "partition")

    def __init__(self, view: FileView, partition: str, considered: Callable[[FileSlice], FileSlice]) -> None:
        """`considered`: as `Placement.considered`."""
        self._view, self.partition, self._considered = view, partition, considered
        self._spans: dict[Span, Span] = {}

    def __iter__(self) -> Iterator[tuple[int, FileSlice]]:
        """Those with log files, each with its place."""
        for place, slice_ in enumerate(self._view.latest_of(self.partition)):
            if slice_.log_files:
                yield place, self._considered(slice_)

    def at(self, place: int) -> FileSlice:
        return self._considered(self._view.latest_of(self.partition)[place])

    def once(self, span: Span) -> Span:
        """The same for all that have the same: there are many slices, and few commits."""
        return self._spans.setdefault(span, span)


class FewBytes:
    """One in few bytes. `place`: which of its partition's slices; `mask`: which of its log files, a bit for each.

    `lowest`: by the one strategy that is asked. `file_size`: as for `metrics_of`.
    """

    __slots__ = (
        *("_base_bytes", "_file_size", "_log_bytes", "_lowest", "_mask", "_place", "_slices"),
        *("file_id", "number", "span"),
    )

    def __init__(
        self, slices: SlicesOf, place: int, mask: int, whole: WholeCandidate, lowest: float, file_size: int
    ) -> None:
        base = whole.slice_.base_file
        self._slices, self._place, self._mask, self._lowest, self._file_size = slices, place, mask, lowest, file_size
        self._base_bytes = base.size if base else 0
        self._log_bytes = int(whole.metrics["TOTAL_LOG_FILES_SIZE"])
        self.file_id, self.number, self.span = whole.file_id, len(whole.chosen), slices.once(whole.span)

    @property
    def partition(self) -> str:
        return self._slices.partition

    @property
    def metrics(self) -> Mapping[str, float]:
        return _metrics(self._base_bytes, self.number, self._log_bytes, self._file_size)

    def lowest(self, lowest_of: Callable[[Iterable[LogFile]], float]) -> float:
        del lowest_of
        return self._lowest

    @property
    def whole(self) -> WholeCandidate:
        slice_ = self._slices.at(self._place)
        return WholeCandidate(slice_, _of_mask(slice_, self._mask), self.metrics, self.span)


def in_few_bytes(slices: SlicesOf, place: int, whole: WholeCandidate, lowest: float, file_size: int) -> Candidate:
    """The same; itself where its log files are not some of the slice's in order, as a strategy should give them."""
    slice_ = whole.slice_
    mask = (1 << len(slice_.log_files)) - 1
    if len(whole.chosen) < len(slice_.log_files):
        chosen = {log.path for log in whole.chosen}
        mask = sum([1 << n for n, log in enumerate(slice_.log_files) if log.path in chosen])
    same = _of_mask(slice_, mask) == whole.chosen
    return FewBytes(slices, place, mask, whole, lowest, file_size) if same else whole


def _of_mask(slice_: FileSlice, mask: int) -> tuple[LogFile, ...]:
    logs = slice_.log_files
    if mask + 1 == 1 << len(logs):
        return logs
    return tuple([log for n, log in enumerate(logs) if mask >> n & 1])


def metrics_of(slice_: FileSlice, chosen: Sequence[LogFile], base_file_size: int) -> dict[str, float]:
    """An operation's metrics (FileSliceMetricUtils); Java's executor needs every one of these.

    `base_file_size` (bytes) is what a slice without a base file is expected to write.
    """
    base_size = slice_.base_file.size if slice_.base_file else 0
    return _metrics(base_size, len(chosen), sum([log.size for log in chosen]), base_file_size)


def _metrics(base_size: int, logs: int, log_size: int, file_size: int) -> dict[str, float]:
    read, write = (base_size + log_size) // _MB, (base_size or file_size) // _MB
    return {
        "TOTAL_LOG_FILES": float(logs),
        "TOTAL_LOG_FILES_SIZE": float(log_size),
        "TOTAL_IO_READ_MB": float(read),
        "TOTAL_IO_WRITE_MB": float(write),
        "TOTAL_IO_MB": float(read + write),
    }
