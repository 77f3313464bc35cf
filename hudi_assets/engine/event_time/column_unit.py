"""A table's event-time column and its unit: stated, by the column's type, or inferred from the table's own files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import attrgetter
from typing import Final

from hudi_assets.engine.errors import CorruptTable, InvalidInput
from hudi_assets.engine.format.parquet_footer import footer_stats
from hudi_assets.engine.format.parquet_reader import open_parquet, parquet_damage
from hudi_assets.engine.merging.ordering import Ordering
from hudi_assets.engine.model import BaseFile
from hudi_assets.engine.model.column_unit import (
    EARLIEST_MS,
    LEEWAY_MS,
    ColumnUnit,
    Counts,
    Source,
    contradiction,
    infer,
)
from hudi_assets.engine.model.log_summary import LogSummary, ScannedLog
from hudi_assets.engine.model.units import MICROS_OF, EventTimeUnit, in_counts, unit_of
from hudi_assets.engine.table.settings.config import NAME_A_COLUMN
from hudi_assets.engine.table.state import TableState
from hudi_assets.engine.timeline.instants import instant_ms

_BASE_FILES: Final = 8
"""So many of the newest are looked at where no log file tells: freshness does not hang on the unit then."""


def unit_of_table(state: TableState, scanned: Callable[[], Mapping[str, ScannedLog]]) -> ColumnUnit:
    """The event-time column and how it counts; `InvalidInput` where the settings name no column that fits.

    `scanned`: what every remaining log file says by itself; asked for only where nothing states the unit.
    """
    stated = stated_unit(state)
    if stated is not None:
        return stated
    name, _ = column_of(state)
    return infer(name, [*_in_logs(state, scanned())] or [*_in_base_files(state, name)])


def stated_unit(state: TableState) -> ColumnUnit | None:
    """The same, where the column's type or a setting says it."""
    config = state.config
    name, _ = column_of(state)
    stated = unit_of(state.data_schema.field(name).type, config.event_time_unit, name)
    if stated is not None:
        return ColumnUnit(name, stated, Source.SETTING if stated in MICROS_OF else Source.TYPE)
    if config.created_here:
        return ColumnUnit(name, EventTimeUnit.MILLIS, Source.DEFAULT)
    return None


def column_of(state: TableState) -> tuple[str, EventTimeUnit | None]:
    """The event-time column and the unit that its type makes; None for one of integers."""
    name = state.config.event_time_field
    if name is None:
        ordering = state.config.ordering_field
        often = f" Often it is the ordering field, here {ordering!r}." if ordering else ""
        raise InvalidInput(
            "No event-time column is known: neither the table nor this call names one.",
            where=state.storage.base,
            hint=f"{NAME_A_COLUMN[0].upper()}{NAME_A_COLUMN[1:]}.{often}",
        )
    names = state.data_schema.names
    if name not in names:
        raise InvalidInput(
            f"The table has no column {name!r} to take event times from.",
            where=state.storage.base,
            hint=f"It has: {', '.join(names)}.",
        )
    return name, unit_of(state.data_schema.field(name).type, None, name)


def _in_logs(state: TableState, known: Mapping[str, ScannedLog]) -> Iterator[Counts]:
    """What every remaining log file holds, of which that is known."""
    for log in state.remaining_logs:
        scanned = known[log.path]
        if scanned.summary.dated is not None:
            yield Counts(log.path, *scanned.summary.dated, _committed_ms(scanned.last_instant))


def _in_base_files(state: TableState, column: str) -> Iterator[Counts]:
    newest = sorted(state.view.base_files, key=attrgetter("instant"), reverse=True)[:_BASE_FILES]
    for base in newest:
        bounds = _bounds(state, base, column)
        if bounds is not None:
            yield Counts(base.path, *bounds, _committed_ms(base.instant))


def _bounds(state: TableState, base: BaseFile, column: str) -> tuple[int, int] | None:
    try:
        with state.storage.open(base.path) as source, parquet_damage(), open_parquet(source) as file:
            for stats in footer_stats(file, column.__eq__):
                if isinstance(stats.smallest, int):
                    return int(stats.smallest), int(stats.greatest)
    except (OSError, CorruptTable):
        return None  # it says nothing; whoever reads its rows will name it
    return None


def _committed_ms(instant: str) -> int:
    """An instant as UTC, whatever the table's zone: the leeway is wider than any zone is off. 0: it is no time."""
    try:
        return instant_ms(instant, "UTC")
    except CorruptTable:
        return 0


def doubt(state: TableState, known: ColumnUnit, summaries: Mapping[str, LogSummary]) -> ColumnUnit | None:
    """A unit that the table states, with its problem where log files contradict it. `summaries`: in that unit."""
    if known.unit not in MICROS_OF or known.source is Source.VALUES:
        return None
    return contradiction(known, _counted(known.unit, _far_off(summaries, state.read_at_ms), state.read_at_ms))


def _far_off(summaries: Mapping[str, LogSummary], now_ms: int) -> Iterator[tuple[str, int, int]]:
    """The log files of which no event time is plausible in the unit: those alone can tell of another."""
    latest = now_ms + LEEWAY_MS
    for path, summary in summaries.items():
        # There may be a million, and nearly all are like this.
        if (low := summary.min_event_time) is not None and is_plausible(low, low, now_ms):
            continue
        dated = summary.dated
        if dated is not None and (dated[0] > latest or dated[1] < EARLIEST_MS):
            yield path, *dated


def is_plausible(least_ms: int, greatest_ms: int, now_ms: int) -> bool:
    """True where nothing between these two event times can tell of another unit than the one they were read by."""
    return least_ms >= EARLIEST_MS and greatest_ms <= now_ms + LEEWAY_MS


def _counted(unit: EventTimeUnit, ranges: Iterable[tuple[str, int, int]], now_ms: int) -> Iterator[Counts]:
    """Ranges in epoch ms as the column counts them."""
    for path, low, high in ranges:
        yield Counts(path, in_counts(low, unit), in_counts(high, unit), now_ms)


def is_doubtful(known: ColumnUnit, low_ms: int, high_ms: int, now_ms: int) -> bool:
    """True where a range that a commit states contradicts the unit that the table states."""
    if known.unit not in MICROS_OF:
        return False
    return contradiction(known, _counted(known.unit, [("", low_ms, high_ms)], now_ms)) is not None


def ordering_of(state: TableState) -> Ordering:
    """The ordering fields by which a look reads event times of deletes.

    None where one is no column: where nothing is merged here, that is no error.
    """
    fields = state.config.ordering_fields
    return fields if all(name in state.schema.names for name in fields) else ()
