"""What is known of each log file of a table, by path: kept with its partition, and told when it is asked for.

There may be ten million log files, and nearly all of them are asked for once: at the first look.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, starmap
from typing import Final

from hudi_assets.engine.columns import column
from hudi_assets.engine.model import BaseFile, LogFile
from hudi_assets.engine.model.log_summary import LogSummary
from hudi_assets.engine.table.slices.parts import Part

Ranges = Mapping[str, LogSummary]
Oldest = tuple[LogFile, LogSummary] | tuple[()] | None
"""Of a partition's remaining log files the oldest one; () where there is none, None where one is undated: all count."""

_USUAL: Final = LogSummary.stated(0, 0, 0)[3:]


class KnownOfLogs:
    """What is known of a partition's log files and hidden files; `scanned`: paths of those that no commit states.

    Of log files that remain it becomes columns, where commits stated it of all (`Part.unload`).
    """

    __slots__ = ("_columns", "_more", "_ranges", "scanned")

    def __init__(self, ranges: dict[str, LogSummary], scanned: frozenset[str]) -> None:
        self._ranges: dict[str, LogSummary] | None = ranges
        self._columns: tuple[Iterable[int], ...] = ()
        self._more: dict[str, LogSummary] = {}
        self.scanned = scanned

    def of(self, logs: Sequence[LogFile]) -> dict[str, LogSummary]:
        """By path. `logs`: the remaining ones of the partition, in order."""
        found = self._ranges
        if found is None:
            summaries = starmap(LogSummary.stated, zip(*self._columns, strict=True))
            found = dict(zip([log.path for log in logs], summaries, strict=True))
            found.update(self._more)
            self._ranges = found
        return found

    def unload(self, logs: Sequence[LogFile]) -> None:
        ranges = self._ranges
        if ranges is None or not logs:
            return
        if not self._columns:
            fields = list(zip(*[ranges[log.path] for log in logs], strict=True))
            # What `LogSummary.stated` was told, and nothing besides.
            if any(None in told for told in fields[:3]) or any(
                values.count(usual) < len(values) for values, usual in zip(fields[3:], _USUAL, strict=True)
            ):
                return
            paths = {log.path for log in logs}
            self._more = {path: one for path, one in ranges.items() if path not in paths}
            self._columns = tuple(map(column, fields[:3]))
        self._ranges = None


def spread(logs: Sequence[LogFile], ranges: Ranges) -> tuple[int, int] | None:
    """The least and the greatest minimum event time of a partition's remaining log files; None where one has none."""
    lows = [ranges[log.path].min_event_time for log in logs]
    known = [low for low in lows if low is not None]
    return (min(known), max(known)) if known and len(known) == len(lows) else None


def oldest(logs: Sequence[LogFile], ranges: Ranges) -> Oldest:
    lows = [(low, log) for log in logs if (low := ranges[log.path].min_event_time) is not None]
    if len(lows) < len(logs):
        return None
    if not lows:
        return ()
    first = min(lows)[1]
    return first, ranges[first.path]


def not_usual(logs: Sequence[LogFile | BaseFile], ranges: Ranges) -> dict[str, LogSummary]:
    """Of those log files that are not merged here, or hold partial updates: nearly always none."""
    known = ((log.path, ranges[log.path]) for log in logs)
    return {path: summary for path, summary in known if summary.partial or summary.not_merged is not None}


class RangesOfParts(Mapping[str, LogSummary]):
    """What is known of all log files, partition by partition.

    `near`: of those by which a freshness goes; `gone`: of hidden files whose partition is gone.
    """

    def __init__(self, parts: Mapping[str, Part], known: Mapping[str, KnownOfLogs], near: Ranges, gone: Ranges) -> None:
        self._parts, self._known, self._near, self._gone = parts, known, near, gone
        self._last: Ranges = {}

    def _of(self, partition: str) -> Ranges:
        return self._known[partition].of(self._parts[partition].remaining_logs)

    def __getitem__(self, path: str) -> LogSummary:
        found = self._last.get(path) or self._near.get(path) or self._gone.get(path)
        if found is None:
            self._last = last = self._of(path.rpartition("/")[0])
            found = last[path]
        return found

    def __iter__(self) -> Iterator[str]:
        return chain(chain.from_iterable(map(self._of, self._parts)), self._gone)

    def __len__(self) -> int:
        return sum(len(self._of(partition)) for partition in self._parts) + len(self._gone)

    def __bool__(self) -> bool:
        return bool(self._gone) or any(part.has_logs for part in self._parts.values()) or len(self) > 0


class Over(Mapping[str, LogSummary]):
    """Some ranges, and others over them: by paths that those have too."""

    def __init__(self, over: Ranges, ranges: Ranges) -> None:
        self._over, self._ranges = over, ranges

    def __getitem__(self, path: str) -> LogSummary:
        return self._over.get(path) or self._ranges[path]

    def __iter__(self) -> Iterator[str]:
        return iter(self._ranges)

    def __len__(self) -> int:
        return len(self._ranges)
