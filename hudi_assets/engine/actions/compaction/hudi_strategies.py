"""Apache Hudi's own compaction strategies, under their class names and with their defaults. Pure.

From org.apache.hudi.table.action.compact.strategy (0.15). Each takes whole file slices. Where Hudi's order is
that of a Java hash map (file groups of one partition, partitions of one day), it is by file id or path
here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import chain
from typing import ClassVar, Final

from hudi_assets.engine.actions.compaction.candidates import Candidate
from hudi_assets.engine.actions.compaction.strategy import CompactionStrategy, within_io
from hudi_assets.engine.errors import InvalidInput
from hudi_assets.engine.model import NO_THRESHOLD, FileSlice, LogFile
from hudi_assets.engine.model.plans import StrategyName
from hudi_assets.engine.table.settings.compaction import LOG_NUM_THRESHOLD, LOG_SIZE_THRESHOLD, CompactionSettings
from hudi_assets.engine.table.slices.file_view import FileView

# SimpleDateFormat("yyyy/MM/dd") is lenient and reads a prefix: 2020/13/01/05 is the first of January 2021.
_DAY: Final = re.compile(r"\s*(\d+)/(\d+)/(\d+)")


@dataclass(frozen=True)
class UnBounded:
    """Every file slice that has log files (UnBoundedCompactionStrategy). `today` is the table's."""

    settings: CompactionSettings
    today: date
    kind: ClassVar[StrategyName] = StrategyName.UNBOUNDED

    @property
    def name(self) -> str:
        return self.kind.class_name

    def filter_partition_paths(self, partitions: Sequence[str]) -> list[str]:
        return list(partitions)

    def filter_log_files(self, slice_: FileSlice) -> tuple[tuple[LogFile, ...], tuple[LogFile, ...]]:
        return slice_.log_files, ()

    def needed(self, slice_: FileSlice) -> tuple[LogFile, ...]:
        return slice_.log_files

    def closed(self, slice_: FileSlice, chosen: Sequence[LogFile]) -> tuple[LogFile, ...]:
        # Nothing is known of the log files' records: a part might forget a delete that the rest still needs.
        del chosen
        return slice_.log_files

    def lowest_of(self, chosen: Iterable[LogFile]) -> float:
        del chosen
        return -math.inf

    def order_and_filter(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        return list(candidates)

    def threshold_of(self, left_out: Sequence[Candidate]) -> int:
        del left_out
        return NO_THRESHOLD

    def nothing(self, view: FileView, candidates: Sequence[Candidate]) -> str:
        with_logs = sum(1 for s in view.latest if s.log_files)
        if not with_logs:
            return "no file slice has log files"
        have = "1 file slice has" if with_logs == 1 else f"{with_logs} file slices have"
        if candidates:
            return f"{have} log files, but none meets {self.asks()}"
        return f"{have} log files, but none is in a partition that {self.kind} takes"

    def asks(self) -> str:
        """What a file slice must meet, in words."""
        return "the strategy's bounds"


@dataclass(frozen=True)
class BoundedIO(UnBounded):
    """File slices in order until their I/O reaches hoodie.compaction.target.io."""

    kind: ClassVar[StrategyName] = StrategyName.BOUNDED_IO

    def order_and_filter(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        return within_io(candidates, self.settings.target_io)


@dataclass(frozen=True)
class LogFileSizeBased(BoundedIO):
    """Hudi's default: the slices with the most log bytes first."""

    kind: ClassVar[StrategyName] = StrategyName.LOG_FILE_SIZE

    def order_and_filter(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        large = [c for c in candidates if _log_bytes(c) >= self.settings.log_size_threshold]
        return super().order_and_filter(sorted(large, key=_log_bytes, reverse=True))

    def asks(self) -> str:
        return f"{LOG_SIZE_THRESHOLD}={self.settings.log_size_threshold} (bytes)"


@dataclass(frozen=True)
class LogFileNumBased(BoundedIO):
    """The slices with the most log files first."""

    kind: ClassVar[StrategyName] = StrategyName.LOG_FILE_NUM

    def order_and_filter(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        many = [c for c in candidates if c.number >= self.settings.log_num_threshold]
        return super().order_and_filter(sorted(many, key=lambda c: c.number, reverse=True))

    def asks(self) -> str:
        return f"{LOG_NUM_THRESHOLD}={self.settings.log_num_threshold}"


@dataclass(frozen=True)
class DayBased(UnBounded):
    """The newest partitions (hoodie.compaction.daybased.target.partitions of them), newest first."""

    kind: ClassVar[StrategyName] = StrategyName.DAY

    def filter_partition_paths(self, partitions: Sequence[str]) -> list[str]:
        return _newest_first(partitions)[: self.settings.target_partitions]

    def order_and_filter(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        found = list(dict.fromkeys(c.partition for c in candidates))
        # Hudi compares partitions, and so reads their days, only where there are several.
        ordered = sorted(found, key=self._day, reverse=True) if len(found) > 1 else found
        return _of(candidates, ordered[: self.settings.target_partitions])

    def _day(self, partition: str) -> date:
        day = day_of(partition)
        if day is None:
            raise InvalidInput(
                f"Partition {partition!r} is no day, and {self.kind} wants partitions as yyyy/MM/dd.",
                hint="Take another hoodie.compaction.strategy.",
            )
        return day

    def asks(self) -> str:
        return f"the {self.settings.target_partitions} newest days"


@dataclass(frozen=True)
class BoundedPartitionAware(DayBased):
    """Every partition from today less hoodie.compaction.daybased.target.partitions days on, newest first."""

    kind: ClassVar[StrategyName] = StrategyName.BOUNDED_PARTITION

    @property
    def _earliest(self) -> date:
        return self.today - timedelta(days=self.settings.target_partitions)

    def filter_partition_paths(self, partitions: Sequence[str]) -> list[str]:
        return [p for p in _newest_first(partitions) if self._day(p) >= self._earliest]

    def order_and_filter(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        found = list(dict.fromkeys(c.partition for c in candidates))
        kept = [p for p in sorted(found, key=self._day, reverse=True) if self._day(p) >= self._earliest]
        return _of(candidates, kept)


@dataclass(frozen=True)
class UnBoundedPartitionAware(BoundedPartitionAware):
    """What BoundedPartitionAware leaves: the older partitions, so that the two never meet."""

    kind: ClassVar[StrategyName] = StrategyName.UNBOUNDED_PARTITION

    def filter_partition_paths(self, partitions: Sequence[str]) -> list[str]:
        others = super().filter_partition_paths(partitions)
        return [p for p in _newest_first(partitions) if p not in others]

    def order_and_filter(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        others = {c.partition for c in super().order_and_filter(candidates)}
        return [c for c in candidates if c.partition not in others]


_STRATEGIES: Final[tuple[type[UnBounded], ...]] = (
    UnBounded,
    BoundedIO,
    LogFileSizeBased,
    LogFileNumBased,
    DayBased,
    BoundedPartitionAware,
    UnBoundedPartitionAware,
)


def hudi_strategy(settings: CompactionSettings, today: date) -> CompactionStrategy:
    """The strategy of Hudi's that the settings name. Raises `KeyError` for the event-time strategy."""
    return {one.kind: one for one in _STRATEGIES}[settings.strategy](settings, today)


def day_of(partition: str) -> date | None:
    """The day that a partition path begins with, hive style (`year=2020/month=01/day=02`) or not."""
    if "=" in partition:
        partition = re.sub(r"/.*?=", "/", re.sub(r".*?=", "", partition, count=1))
    match = _DAY.match(partition)
    if match is None:
        return None
    year, month, day = (int(part) for part in match.groups())
    try:
        return date(year + (month - 1) // 12, (month - 1) % 12 + 1, 1) + timedelta(days=day - 1)
    except (ValueError, OverflowError):
        return None


def _newest_first(partitions: Sequence[str]) -> list[str]:
    # As Hudi does: a path with dashes comes back with slashes, and then names no partition of the table.
    return [p.replace("-", "/") for p in sorted((p.replace("/", "-") for p in partitions), reverse=True)]


def _log_bytes(candidate: Candidate) -> int:
    return int(candidate.metrics["TOTAL_LOG_FILES_SIZE"])


def _of(candidates: Sequence[Candidate], partitions: Sequence[str]) -> list[Candidate]:
    """Those of these partitions, one partition after the other."""
    found: dict[str, list[Candidate]] = {partition: [] for partition in partitions}
    for candidate in candidates:
        if (some := found.get(candidate.partition)) is not None:
            some.append(candidate)
    return list(chain.from_iterable(found.values()))
