"""`no_late_records` by a look of the sensor: late data must be seen where no run looks.

A tick publishes a freshness that has fallen back, and then nothing is left for a run to do. So the tick evaluates the
check too. It reads only the log files that reach down to what was promised, not at every tick, and not large ones.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dagster import AssetCheckResult

from hudi_assets.dagster.assets import TableAssets
from hudi_assets.dagster.checks import find_late, late_result
from hudi_assets.dagster.known import OneTable
from hudi_assets.dagster.looks import TickLook
from hudi_assets.dagster.told import promised_before
from hudi_assets.engine import HudiAssetsError, LogBar, iso

if TYPE_CHECKING:
    from hudi_assets.engine import HudiTable

# A tick has a minute for everything: of more bytes than that it does not count the late records.
_MOST_BYTES: Final = 64_000_000


@dataclass(frozen=True, slots=True)
class _State:
    """What the answer rests on, all but the newest commit."""

    promised: int
    freshness: int | None
    compaction: str | None


@dataclass(frozen=True, slots=True)
class _Remembered:
    state: _State
    commit: str | None
    at_ms: int
    found: tuple[str, ...]


# Path of a table → what the last reading of its log files found.
_remembered: dict[str, _Remembered] = {}


def late_by_look(
    context: OneTable, table: TableAssets, hudi: "HudiTable", seen: TickLook, now: int
) -> AssetCheckResult | None:
    """The check's result; None where nothing was promised, or where it could not be told this time."""
    stats, promise = seen.stats, seen.stats.freshness
    promised = promised_before(context.known, table.key("freshness"), promise.instant)
    if promised is None:
        return None
    low = stats.min_event_time
    if (promise.freshness is not None and promise.freshness >= promised) or (low is not None and low > promised):
        _remembered.pop(hudi.path, None)
        return late_result([], promised)
    state = _State(promised, promise.freshness, promise.instant)
    before = _remembered.get(hudi.path)
    if before is not None and before.state == state:
        recent = bool(before.found) and now - before.at_ms < table.report_every_ms
        if recent or before.commit == stats.last_commit:
            return late_result(before.found, promised)
    try:
        found = tuple(_find(hudi, promised))
    except (HudiAssetsError, OSError) as problem:  # files come and go beside a look: the next tick asks again
        context.log.warning(f"What came late could not be told: {problem}")
        return None
    _remembered[hudi.path] = _Remembered(state, stats.last_commit, now, found)
    return late_result(found, promised)


def _find(hudi: "HudiTable", promised: int) -> list[str]:
    low = [bar for bar in hudi.log_bars() if bar.min_event_time is not None and bar.min_event_time <= promised]
    if sum(bar.size for bar in low) <= _MOST_BYTES:
        return find_late(hudi.late_records(promised)) if low else []
    return [_unread(bar) for bar in low]


def _unread(bar: LogBar) -> str:
    return f"{bar.partition}/{bar.name}: begins at {iso(bar.min_event_time)}, too large to count its late records"
