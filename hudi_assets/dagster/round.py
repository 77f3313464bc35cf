"""One sensor for many tables: it looks at them in turn, for as long as a tick may take, and goes on at the next tick.

Dagster's daemon gives a sensor 60 seconds (`DAGSTER_SENSOR_GRPC_TIMEOUT_SECONDS`). Of a tick that takes longer it takes
neither events nor cursor, so what such a tick was busy with is remembered here: the next one goes on elsewhere. What is
wrong with one table is logged, reported by that table's checks, and told in the tick's words; the others are looked at
all the same.
"""

from __future__ import annotations

import os
import time
import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from json import dumps, loads
from logging import LoggerAdapter
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

from dagster import (
    AssetSelection,
    DefaultSensorStatus,
    RunRequest,
    SensorDefinition,
    SensorEvaluationContext,
    SensorResult,
    SkipReason,
    define_asset_job,
    in_process_executor,
    sensor,
)

from hudi_assets.dagster.assets import MAINTENANCE, TableAssets
from hudi_assets.dagster.known import Known
from hudi_assets.dagster.sensors import OneTable, evaluate_table
from hudi_assets.resources import TableResource

if TYPE_CHECKING:
    from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition

_NAMED: Final = 5
# For Dagster's own part of a tick.
_SPARE_SECONDS: Final = 10
# Dagster is asked for so many tables at once, and anew for those that were not looked at after so many seconds.
_TOGETHER: Final = 50
_KNOWN_SECONDS: Final = 2


@dataclass(frozen=True)
class Watched:
    """A table that the sensor looks at."""

    table: TableAssets
    resource: TableResource


class NamedLog(LoggerAdapter):  # type: ignore[type-arg]
    """Says of which table a line of the tick's log is."""

    def process(self, msg: Any, kwargs: Any) -> tuple[Any, Any]:
        return f"{(self.extra or {})['table']}: {msg}", kwargs


@dataclass(frozen=True)
class RoundCursor:
    """With which table the next tick begins, and what each look left to the next one of its table."""

    next: str | None = None
    tables: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, text: str | None) -> RoundCursor:
        """From the beginning where the cursor is empty or none of ours."""
        try:
            next_, packed = loads(text or "null")
            tables = loads(zlib.decompress(b64decode(packed)))
            return cls(next_, {str(name): str(cursor) for name, cursor in tables.items()})
        except (ValueError, TypeError, AttributeError, zlib.error):
            return cls()

    def text(self) -> str:
        """Packed: Dagster keeps the cursor of every tick."""
        return dumps([self.next, b64encode(zlib.compress(dumps(dict(self.tables)).encode())).decode()])


@dataclass
class RoundTick:
    """A tick as the code server saw it, whatever the daemon took of it; seconds by the monotonic clock."""

    cursor: str | None
    began: float
    ended: float | None = None
    # The tables that it looked at, the last one last.
    looked: list[str] = field(default_factory=list)

    def was_lost(self, cursor: str | None) -> bool:
        """Whether the daemon gave it up: the same cursor comes again, and no answer came in time."""
        in_time = self.ended is not None and self.ended - self.began <= sensor_deadline()
        return bool(self.looked) and cursor == self.cursor and not in_time


@dataclass
class RoundMemory:
    """What the code server remembers of one sensor."""

    last: RoundTick | None = None
    # Table → how many seconds its last look took.
    took: dict[str, float] = field(default_factory=dict)

    def first(self, cursor: str | None, names: Sequence[str], asked: str | None) -> str | None:
        """With which table to begin. After a tick that was lost: with the one that it did not get through with, or
        after that, where it was alone."""
        lost = self.last if self.last is not None and self.last.was_lost(cursor) else None
        at = lost.looked[-1] if lost else None
        if lost is None or at not in names:
            return asked
        return at if len(lost.looked) > 1 else names[(names.index(at) + 1) % len(names)]


# Sensor → its memory, one in each code server.
_memories: dict[str, RoundMemory] = {}


def sensor_deadline() -> float:
    """How many seconds the daemon waits for a tick, as far as this process can tell: its environment may be another."""
    return float(os.environ.get("DAGSTER_SENSOR_GRPC_TIMEOUT_SECONDS") or 60)


def in_turn(tables: Sequence[Watched], first: str | None) -> Iterator[Watched]:
    """All tables, beginning with the one of that name, or else from the start."""
    start = next((number for number, one in enumerate(tables) if one.table.name == first), 0)
    yield from (*tables[start:], *tables[:start])


def tables_job(name: str, tables: Sequence[TableAssets]) -> UnresolvedAssetJobDefinition:
    """One job for all tables: a run of it is of one table, by the assets that it is asked for."""
    keys = [table.key(asset) for table in tables for asset in MAINTENANCE]
    return define_asset_job(
        f"{name}_compaction", selection=AssetSelection.assets(*keys), executor_def=in_process_executor
    )


def tables_trigger(
    name: str,
    job: UnresolvedAssetJobDefinition,
    watched: Sequence[Watched],
    *,
    interval: int,
    seconds: float,
    running: bool,
) -> SensorDefinition:
    """Looks at the tables in turn for so many seconds, and requests a run for each that needs one."""

    @sensor(
        name=name,
        job=job,
        minimum_interval_seconds=interval,
        default_status=DefaultSensorStatus.RUNNING if running else DefaultSensorStatus.STOPPED,
        required_resource_keys={one.table.catalog_key for one in watched},
        description=f"Looks at {len(watched)} tables in turn. Asks for compactions when event time has moved on.",
    )
    def evaluate(context: SensorEvaluationContext) -> SensorResult:
        return look_around(context, watched, seconds, _memories.setdefault(name, RoundMemory()))

    return evaluate


def look_around(
    context: SensorEvaluationContext, watched: Sequence[Watched], seconds: float, memory: RoundMemory
) -> SensorResult:
    """One tick. At least one table is looked at, so that every round comes to its end."""
    before, began = RoundCursor.of(context.cursor), time.monotonic()
    first = memory.first(context.cursor, [one.table.name for one in watched], before.next)
    tick = memory.last = RoundTick(context.cursor, began)
    cursors = {one.table.name: before.tables[one.table.name] for one in watched if one.table.name in before.tables}
    requests: list[RunRequest] = []
    events: list[Any] = []
    failed: list[str] = []
    next_, known, turn = None, Known(context.instance), list(in_turn(watched, first))
    for number, one in enumerate(turn):
        name = one.table.name
        started = time.monotonic()
        late = started + memory.took.get(name, 0) > began + sensor_deadline() - _SPARE_SECONDS
        if tick.looked and (started >= began + seconds or late):
            next_ = name
            break
        if not known.knows(one.table, _KNOWN_SECONDS):
            _ask(context, known, [other.table for other in turn[number : number + _TOGETHER]])
        tick.looked.append(name)
        try:
            resources = _resources(context, one)
            log = NamedLog(context.log, {"table": name})
            found = evaluate_table(OneTable(known, resources, cursors.get(name), log), one.table)
        except Exception as problem:
            context.log.error(f"{name}: {problem}")
            failed.append(f"{name}: {problem}")
            continue
        finally:
            memory.took[name] = time.monotonic() - started
        requests += [_of_table(one.table, request) for request in found.run_requests or []]
        events += found.asset_events or []
        if found.cursor is not None:
            cursors[name] = found.cursor
    words = _words(len(tick.looked), len(watched), failed, next_)
    tick.ended = time.monotonic()
    context.log.info(words)
    return SensorResult(
        run_requests=requests,
        skip_reason=None if requests else SkipReason(words),
        asset_events=events,
        cursor=RoundCursor(next_, cursors).text(),
    )


def _ask(context: SensorEvaluationContext, known: Known, tables: Sequence[TableAssets]) -> None:
    """What cannot be told of all is asked of each, and then it is that table's problem."""
    try:
        known.ask(tables)
    except Exception as problem:
        known.forget()
        context.log.warning(f"Dagster was not asked for {len(tables)} tables at once: {problem}")


def _resources(context: SensorEvaluationContext, one: Watched) -> SimpleNamespace:
    """The table itself, which Dagster need not make for every tick, and the catalog."""
    table, key = one.table, one.table.catalog_key
    return SimpleNamespace(**{table.resource_key: {table.name: one.resource}, key: getattr(context.resources, key)})


def _of_table(table: TableAssets, request: RunRequest) -> RunRequest:
    """The job is of all tables: the run is of this one."""
    return RunRequest(
        run_key=request.run_key,
        run_config=request.run_config,
        tags=request.tags,
        asset_selection=request.asset_selection or [table.key(asset) for asset in MAINTENANCE],
    )


def _words(looked: int, of: int, failed: Sequence[str], next_: str | None) -> str:
    words = f"{looked} of {of} tables were looked at"
    if next_ is not None:
        words += f"; the next tick goes on with {next_}"
    if failed:
        more = f"; and {len(failed) - _NAMED} more" if len(failed) > _NAMED else ""
        words += f". {len(failed)} could not be: {'; '.join(failed[:_NAMED])}{more}"
    return f"{words.rstrip('.')}."
