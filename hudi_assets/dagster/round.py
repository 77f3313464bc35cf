"""One sensor for many tables: it looks at them in turn, for as long as a tick may take, and goes on at the next tick.

A look that does not fit into a tick goes on beside them (`aside`). What is wrong with one table is logged, reported by
that table's checks, and told in the tick's words; the others are looked at all the same.

The daemon writes a tick's events one by one before the sensor's next tick, and no table is looked at meanwhile. So a
tick hands over so many events at most. What it leaves out, the next looks at those tables find again.
"""

from __future__ import annotations

import time
import zlib
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from json import dumps, loads
from logging import LoggerAdapter, getLogger
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

from dagster import (
    AssetCheckEvaluation,
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

from hudi_assets.dagster.aside import SPARE_SECONDS, Memory, TickSeen, begun, is_daemons, memory_of, sensor_deadline
from hudi_assets.dagster.assets import MAINTENANCE, TableAssets
from hudi_assets.dagster.known import Known, OneTable
from hudi_assets.dagster.looks import report_failure, wall_ms
from hudi_assets.dagster.sensors import evaluate_table, look_and_report, reported, still_due
from hudi_assets.resources import TableResource

if TYPE_CHECKING:
    from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition

_NAMED: Final = 5
# Dagster is asked for so many tables at once, and anew for those that were not looked at after so many seconds.
_TOGETHER: Final = 50
_KNOWN_SECONDS: Final = 2


@dataclass(frozen=True)
class Limits:
    """Of a tick of many tables. `look_every`: after so many seconds at most each table should be looked at again."""

    seconds: float
    most_events: int
    look_every: float


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
    limits: Limits,
    running: bool,
) -> SensorDefinition:
    """Looks at the tables in turn, and requests a run for each that needs one."""

    @sensor(
        name=name,
        job=job,
        minimum_interval_seconds=interval,
        default_status=DefaultSensorStatus.RUNNING if running else DefaultSensorStatus.STOPPED,
        required_resource_keys={one.table.catalog_key for one in watched},
        description=f"Looks at {len(watched)} tables in turn. Asks for compactions when event time has moved on.",
    )
    def evaluate(context: SensorEvaluationContext) -> SensorResult:
        return look_around(context, watched, limits, memory_of(name), interval)

    return evaluate


def look_around(
    context: SensorEvaluationContext, watched: Sequence[Watched], limits: Limits, memory: Memory, interval: float
) -> SensorResult:
    """One tick. At least one table is looked at, so that every round comes to its end.

    Looks beside the ticks that have ended come first: a whole round may take long.
    """
    before = RoundCursor.of(context.cursor)
    tick = memory.begin(context.cursor, [one.table.name for one in watched], takes=is_daemons(context))
    cursors = {one.table.name: before.tables[one.table.name] for one in watched if one.table.name in before.tables}
    found = Found(context, cursors, limits.most_events)
    next_, known, turn = None, Known(context.instance), list(in_turn(watched, tick.first or before.next))
    asking = _Asking(context, known, failed=tick.asks_not)
    if tick.asks_not:
        known.ask_no_catalog("The tick before this one waited for an answer until it was too late.")
    aside = partial(_look_aside, found, memory, tick, known, interval)
    ended = memory.ended()
    for one in turn:
        if one.table.name in ended:
            found.take(one.table, partial(aside, one))
    turn = [one for one in turn if one.table.name not in ended]
    for number, one in enumerate(turn):
        name = one.table.name
        if memory.has_given_up(tick):
            next_ = name
            break
        if memory.is_slow(name):
            found.take(one.table, partial(aside, one))
            continue
        started = time.monotonic()
        late = started + memory.took.get(name, 0) > tick.began + sensor_deadline() - SPARE_SECONDS
        if tick.looked and (started >= tick.began + limits.seconds or late):
            next_ = name
            break
        tick.asking = True
        asking.ask_for(turn[number:])
        if time.monotonic() > tick.began + sensor_deadline():
            next_ = name  # it is lost
            break
        tick.asking = False
        found.note_wait(name, memory.waited(name, time.monotonic()))
        log = NamedLog(context.log, {"table": name})
        look = partial(evaluate_table, OneTable(known, _resources(context, one), cursors.get(name), log), one.table)
        found.take(one.table, partial(memory.look_within, tick, name, look, partial(reported, known, one.table)))
    words = _words(len(tick.looked) + found.beside, len(watched), found, next_, limits.look_every)
    tick.ended = time.monotonic()
    context.log.info(words)
    return SensorResult(
        run_requests=found.requests,
        skip_reason=None if found.requests else SkipReason(words),
        asset_events=found.events,
        cursor=RoundCursor(next_ or next(iter(found.left_out), None), cursors).text(),
    )


@dataclass
class Found:
    """What a tick has found so far. `cursors`: what each look leaves to the next one of its table."""

    context: SensorEvaluationContext
    cursors: dict[str, str]
    most_events: int
    requests: list[RunRequest] = field(default_factory=list)
    events: list[Any] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    # Looks that go on beside the ticks, in words, and how many of them have ended.
    at_work: list[str] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    beside: int = 0
    # Tables whose events wait for a later tick.
    left_out: list[str] = field(default_factory=list)
    # How long the table that waited longest was not looked at.
    waited: tuple[float, str] = (0, "")

    def note_wait(self, name: str, seconds: float) -> None:
        self.waited = max(self.waited, (seconds, name))

    def take(self, table: TableAssets, result: Callable[[], SensorResult]) -> None:
        """The result of a look. What is wrong with one table is that table's problem."""
        try:
            found = result()
        except Exception as problem:
            self.context.log.error(f"{table.name}: {problem}")
            self.failed.append(f"{table.name}: {problem}")
            return
        events = found.asset_events or []
        if events and len(self.events) + len(events) > self.most_events and not _is_urgent(found):
            self.left_out.append(table.name)  # with its cursor, so that the next look finds them again
            return
        self.requests += [_of_table(table, request) for request in found.run_requests or []]
        self.events += events
        if found.cursor is not None:
            self.cursors[table.name] = found.cursor


def _is_urgent(found: SensorResult) -> bool:
    """What may not wait: a run, before which its table is reported, and a check that fails."""
    checks = [event for event in found.asset_events or [] if isinstance(event, AssetCheckEvaluation)]
    return bool(found.run_requests) or not all(check.passed for check in checks)


def _look_aside(
    found: Found, memory: Memory, tick: TickSeen, known: Known, interval: float, one: Watched
) -> SensorResult:
    """A look that takes longer than a tick: begun, still at work, or at its end."""
    table, resources = one.table, _resources(found.context, one)
    cursor, log = found.cursors.get(table.name), NamedLog(getLogger(__name__), {"table": table.name})
    ticks = found.context
    look = memory.look_aside(
        tick,
        table.name,
        partial(begun, ticks, lambda known: look_and_report(OneTable(known, resources, cursor, log), table)),
    )
    if look is None:
        found.waiting.append(table.name)
    elif look.ended is not None:
        found.beside += 1
        return still_due(known, table, look, interval)
    else:
        found.at_work.append(f"{table.name} for {look.seconds:.0f} s")
        if look.is_hung:
            report_failure(known, table, look.hung(), wall_ms())
            raise look.hung()
    return SensorResult()


@dataclass
class _Asking:
    """Asks Dagster, and the catalogs, for many tables at once: for so many as the last answer served, or some more."""

    context: SensorEvaluationContext
    known: Known
    together: int = _TOGETHER
    served: int = 0
    # What cannot be told of all is asked of each, and then it is that table's problem.
    failed: bool = False

    def ask_for(self, turn: Sequence[Watched]) -> None:
        """That the first of these tables is known."""
        if self.failed:
            return
        if not self.known.knows(turn[0].table, _KNOWN_SECONDS):
            if self.served:
                self.together = min(_TOGETHER, 2 * self.served)
            self.served = 0
            self._ask([one.table for one in turn[: self.together]])
        self.served += 1

    def _ask(self, tables: Sequence[TableAssets]) -> None:
        try:
            self.known.ask(tables)
        except Exception as problem:
            self.failed = True
            self.known.forget()
            self.context.log.warning(f"{len(tables)} tables were not asked for at once: {problem}")
            return
        resources = self.context.resources
        try:
            places = [getattr(resources, one.catalog_key).place(ro=one.ro_view, rt=one.rt_view) for one in tables]
            self.known.ask_catalogs(place for place in places if place is not None)
        except Exception as problem:
            self.context.log.warning(f"{len(tables)} tables were not looked up in catalogs at once: {problem}")


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


def _words(looked: int, of: int, found: Found, next_: str | None, look_every: float) -> str:
    words = f"{looked} of {of} tables were looked at"
    if next_ is not None:
        words += f"; the next tick goes on with {next_}"
    seconds, name = found.waited
    if seconds > look_every:
        words += f"; {name} was not looked at for {seconds:.0f} s, longer than `look_every`, {look_every:g} s"
    if found.left_out:
        words += f"; later ticks report {len(found.left_out)} of them"
    if found.at_work:
        words += f"; at work, and reported by a later tick: {_named(found.at_work, ', ')}"
    if found.waiting:
        words += f"; waiting for these: {_named(found.waiting, ', ')}"
    if found.failed:
        words += f". {len(found.failed)} could not be: {_named(found.failed, '; ')}"
    return f"{words.rstrip('.')}."


def _named(words: Sequence[str], between: str) -> str:
    more = f"; and {len(words) - _NAMED} more" if len(words) > _NAMED else ""
    return f"{between.join(words[:_NAMED])}{more}"
