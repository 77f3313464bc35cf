"""By how much each log file makes its base file larger, as the compactions of the timeline tell it.

A write stat does not say how many of its rows are new to the table: to find that out the writer would have to read. But
what a base file grew by, when certain log files were merged into it, is on the timeline.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import linear_regression

from hudi_assets.engine.model import Action, Instant, Operation
from hudi_assets.engine.past.compactions import completed_ms, file_size
from hudi_assets.engine.table.files.origins import first_path
from hudi_assets.engine.table.state import TableState
from hudi_assets.engine.timeline.commit_metadata import WriteStat

_Place = tuple[str, str]


@dataclass
class _Rate:
    """Bytes of growth, and the rows of log files that were merged for it."""

    grown: int = 0
    rows: int = 0

    def add(self, grown: int, rows: int) -> None:
        self.grown, self.rows = self.grown + grown, self.rows + rows


@dataclass
class Growth:
    """`before`: bytes of the base files before the first compaction that is on the timeline.

    `row_bytes`: by how much a log file is larger with one more row. `empty_bytes`: of a base file with no rows.
    """

    row_bytes: float
    empty_bytes: int
    before: dict[_Place, int] = field(default_factory=dict)
    _merged: dict[str, int] = field(default_factory=dict)
    _rates: dict[_Place, _Rate] = field(default_factory=dict)
    _all: _Rate = field(default_factory=_Rate)

    def of(self, log: WriteStat) -> int:
        """Where it was not merged yet, as its file group grew for each row so far, or else the table.

        Where nothing was ever compacted, each row counts as new, and as large as log files are larger with it. What
        each of them has besides, as a schema and a footer, is in no base file.
        """
        known = self._merged.get(log.path)
        if known is not None:
            return known
        rate = self._rates.get((log.partition, log.file_id), self._all)
        return rate.grown * log.num_writes // rate.rows if rate.rows else round(self.row_bytes * log.num_writes)

    def merged(self, place: _Place, before: int, after: int, logs: Sequence[WriteStat]) -> None:
        """A base file grew by these log files. Each has a share by its rows, and the first of all makes the file."""
        rows = sum(log.num_writes for log in logs)
        if rows == 0:
            return
        made = min(self.empty_bytes, after) if before == 0 else 0
        grown, upto = after - before - made, 0
        for log in logs:
            share = grown * upto // rows
            upto += log.num_writes
            self._merged[log.path] = grown * upto // rows - share + made
            made = 0
        self._rates.setdefault(place, _Rate()).add(grown, rows)
        self._all.add(grown, rows)


def growth_of(state: TableState, logs: Mapping[str, WriteStat]) -> Growth:
    """`logs`: those that delta commits of the active timeline wrote, by path."""
    compactions = sorted(state.timeline.completed(Action.COMMIT), key=lambda one: completed_ms(state, one))
    written = [_written(state, instant) for instant in compactions]
    empty, _ = _line([(stat.num_writes, stat.size) for stats in written for stat in stats.values()])
    _, row = _line([(log.num_writes, log.size) for log in logs.values()])
    found = Growth(row, round(empty))
    for instant, stats in zip(compactions, written, strict=True):
        plan = state.plan(instant.timestamp)
        for op in plan.operations if plan else ():
            place = (op.partition, op.file_id)
            before, after = _base_bytes(state, op), stats.get(place)
            if before is None or after is None:
                continue
            found.before.setdefault(place, before)
            merged = [logs.get(first_path(state, path)) for path in op.log_files]
            if None not in merged:
                found.merged(place, before, after.size, [log for log in merged if log is not None])
    return found


def _line(files: Sequence[tuple[int, int]]) -> tuple[float, float]:
    """(bytes without rows, bytes of a row), of rows and bytes; (0, their mean) where they tell no other."""
    rows, sizes = [one for one, _ in files], [size for _, size in files]
    if len(set(rows)) > 1:
        slope, empty = linear_regression(rows, sizes)
        if slope >= 0 and empty >= 0:
            return min(empty, min(sizes)), slope
    return 0.0, sum(sizes) / max(1, sum(rows))


def _written(state: TableState, compaction: Instant) -> Mapping[_Place, WriteStat]:
    """The base files that it wrote."""
    stats = state.commit(compaction).stats
    return {(stat.partition, stat.file_id): stat for stat in stats if stat.log_version is None and stat.path}


def _base_bytes(state: TableState, op: Operation) -> int | None:
    """What was read; None where the file is forgotten."""
    return 0 if op.base_file is None else file_size(state, op.base_file)
