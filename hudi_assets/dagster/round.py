"""One sensor for many tables: it looks at them in turn, for as long as a tick may take, and goes on at the next tick.

A look that does not fit into a tick goes on beside them (`aside`). What is wrong with one table is logged, reported by
that table's checks, and told in the tick's words; the others are looked at all the same.
"""

from __future__ import annotations

import time
import zlib
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from json import dumps, loads
from logging import LoggerAdapter, getLogger
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

from hudi_assets.dagster.aside import SPARE_SECONDS, Memory, sensor_deadline
from hudi_assets.dagster.assets import MAINTENANCE, TableAssets
from hudi_assets.dagster.known import Known
from hudi_assets.dagster.looks import report_failure, wall_ms
from hudi_assets.dagster.sensors import OneTable, evaluate_table
from hudi_assets.resources import TableResource

if TYPE_CHECKING:
    from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition

_NAMED: Final = 5
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


# Sensor → its memory, one in each code server.
_memories: dict[str, Memory] = {}


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
        return look_around(context, watched, seconds, _memories.setdefault(name, Memory()))

    return evaluate


def look_around(
    context: SensorEvaluationContext, watched: Sequence[Watched], seconds: float, memory: Memory
) -> SensorResult:
    """One tick. At least one table is looked at, so that every round comes to its end."""
    before = RoundCursor.of(context.cursor)
    tick, first = memory.begin(context.cursor, [one.table.name for one in watched], before.next)
    cursors = {one.table.name: before.tables[one.table.name] for one in watched if one.table.name in before.tables}
    found = Found(context, cursors)
    next_, known, turn = None, Known(context.instance), list(in_turn(watched, first))
    for number, one in enumerate(turn):
        name = one.table.name
        if memory.is_slow(name):
            _look_aside(found, memory, known, one)
            continue
        started = time.monotonic()
        late = started + memory.took.get(name, 0) > tick.began + sensor_deadline() - SPARE_SECONDS
        if tick.looked and (started >= tick.began + seconds or late):
            next_ = name
            break
        if not known.knows(one.table, _KNOWN_SECONDS):
            _ask(context, known, turn[number : number + _TOGETHER])
        tick.looked.append(name)
        log = NamedLog(context.log, {"table": name})
        look = OneTable(known, _resources(context, one), cursors.get(name), log)
        found.take(one.table, lambda look=look, one=one: evaluate_table(look, one.table))  # type: ignore[misc]
        memory.took[name] = time.monotonic() - started
    words = _words(len(tick.looked) + found.beside, len(watched), found, next_)
    tick.ended = time.monotonic()
    context.log.info(words)
    return SensorResult(
        run_requests=found.requests,
        skip_reason=None if found.requests else SkipReason(words),
        asset_events=found.events,
        cursor=RoundCursor(next_, cursors).text(),
    )


@dataclass
class Found:
    """What a tick has found so far. `cursors`: what each look leaves to the next one of its table."""

    context: SensorEvaluationContext
    cursors: dict[str, str]
    requests: list[RunRequest] = field(default_factory=list)
    events: list[Any] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    # Looks that go on beside the ticks, in words, and how many of them have ended.
    at_work: list[str] = field(default_factory=list)
    beside: int = 0

    def take(self, table: TableAssets, result: Callable[[], SensorResult]) -> None:
        """The result of a look. What is wrong with one table is that table's problem."""
        try:
            found = result()
        except Exception as problem:
            self.context.log.error(f"{table.name}: {problem}")
            self.failed.append(f"{table.name}: {problem}")
            return
        self.requests += [_of_table(table, request) for request in found.run_requests or []]
        self.events += found.asset_events or []
        if found.cursor is not None:
            self.cursors[table.name] = found.cursor


def _look_aside(found: Found, memory: Memory, known: Known, one: Watched) -> None:
    """A look that takes longer than a tick: begun, still at work, or at its end."""
    table, resources = one.table, _resources(found.context, one)
    cursor, log = found.cursors.get(table.name), NamedLog(getLogger(__name__), {"table": table.name})
    look = memory.look_aside(
        found.context,
        table.name,
        lambda instance: evaluate_table(OneTable(instance, resources, cursor, log), table),
    )
    if look.ended is not None:
        found.beside += 1
        found.take(table, look.result)
        return
    found.at_work.append(f"{table.name} for {look.seconds:.0f} s")
    hung = look.hung()
    if hung is not None:
        found.failed.append(f"{table.name}: {hung}")
        report_failure(known, table, hung, wall_ms())


def _ask(context: SensorEvaluationContext, known: Known, watched: Sequence[Watched]) -> None:
    """What cannot be told of all is asked of each, and then it is that table's problem."""
    tables = [one.table for one in watched]
    try:
        known.ask(tables)
        places = [getattr(context.resources, one.catalog_key).place(ro=one.ro_view, rt=one.rt_view) for one in tables]
        known.ask_catalogs(place for place in places if place is not None)
    except Exception as problem:
        known.forget()
        context.log.warning(f"{len(tables)} tables were not asked for at once: {problem}")


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


def _words(looked: int, of: int, found: Found, next_: str | None) -> str:
    words = f"{looked} of {of} tables were looked at"
    if next_ is not None:
        words += f"; the next tick goes on with {next_}"
    if found.at_work:
        words += f"; at work, and reported by a later tick: {_named(found.at_work, ', ')}"
    if found.failed:
        words += f". {len(found.failed)} could not be: {_named(found.failed, '; ')}"
    return f"{words.rstrip('.')}."


def _named(words: Sequence[str], between: str) -> str:
    more = f"; and {len(words) - _NAMED} more" if len(words) > _NAMED else ""
    return f"{between.join(words[:_NAMED])}{more}"
