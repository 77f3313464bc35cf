"""HudiTable: the engine's public face. Every call reads the table as it stands and leaves it whole."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from . import avro_schema as avro
from . import spark as seam
from .compaction import Compactor
from .config import (
    CLOCK,
    DATA_LATENCY,
    EVENT_TIME_UNIT,
    LOG_BLOCK_FORMAT,
    PROPERTIES,
    WRITERS,
    TableConfig,
    dump_properties,
    new_table_properties,
    parse_config,
    read_config,
)
from .errors import InvalidInput, UnsupportedTable
from .event_time import parse_latency, parse_time, to_micros, unit_of
from .file_view import Layout
from .freshness import compute_freshness
from .layout_v6 import LayoutV6
from .log_reader import event_time_columns
from .model import (
    CarryOver,
    CommitResult,
    CompactionResult,
    Freshness,
    LogBar,
    LogFile,
    NoPlan,
    Plan,
    Stats,
)
from .publish import Publisher, system_now_ms
from .query import ReadTask, read_optimized_frame, snapshot_frame, snapshot_tasks
from .recover import recover
from .state import TableState, check_no_metadata_table
from .storage import Storage, open_storage
from .timeline import instant_ms
from .write import check_fields
from .writer import Writer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

Time = int | str | datetime
Latency = timedelta | str | int
_LAYOUTS: Mapping[int, Layout] = {6: LayoutV6()}


class HudiTable:
    """An Apache Hudi merge-on-read table. Get one by `create` or `open`."""

    def __init__(self, storage: Storage, config: TableConfig, *, now_ms: Callable[[], int] = system_now_ms) -> None:
        self.config = config
        self._storage = storage
        self._layout = _layout(config.table_version, storage.base)
        self._true_now_ms = now_ms
        self._publisher = Publisher(storage, self._layout, now_ms, config.timezone)

    @property
    def path(self) -> str:
        """The table's base path."""
        return self._storage.base

    # -- creating and opening ---------------------------------------------------------------------

    @classmethod
    def create(
        cls,
        path: str,
        schema: StructType | pa.Schema | str,
        *,
        record_key: Sequence[str],
        ordering_field: str,
        event_time_field: str | None = None,
        partition_fields: Sequence[str] = (),
        buckets: int = 4,
        table_version: int = 6,
        storage_options: Mapping[str, str] | None = None,
        name: str | None = None,
        event_time_unit: str | None = None,
        data_latency: Latency | None = None,
        clock: str = "system",
        log_block_format: str = "parquet",
        hive_style: bool = True,
    ) -> HudiTable:
        """Create an empty table at a path that holds none.

        `schema`: Spark, Arrow or Avro (JSON). `event_time_field` defaults to the ordering field;
        `event_time_unit` (s, ms, us, iso) is for long and string columns. `data_latency`: how long from
        an event to its commit. `clock`: "system", or "commit" for a replayed stream whose time is the
        newest commit's `clock_time`. Raises `InvalidInput` before anything is written.
        """
        storage = open_storage(path, storage_options)
        table_name = name or storage.base.rstrip("/").rsplit("/", 1)[-1]
        avro_json = _as_avro(schema, table_name)
        own = {CLOCK: clock, LOG_BLOCK_FORMAT: log_block_format, WRITERS: "stopped"}
        if event_time_unit is not None:
            own[EVENT_TIME_UNIT] = event_time_unit
        if data_latency is not None:
            own[DATA_LATENCY] = f"{parse_latency(data_latency)}ms"
        _check_shape(record_key, buckets, table_version)
        properties = new_table_properties(
            name=table_name,
            avro_schema=avro_json,
            record_key=record_key,
            ordering_field=ordering_field,
            event_time_field=event_time_field or ordering_field,
            partition_fields=partition_fields,
            buckets=buckets,
            table_version=table_version,
            hive_style=hive_style,
            own=own,
        )
        config = parse_config(properties, storage.base)
        arrow = avro.avro_to_arrow_schema(avro_json)
        check_fields(arrow, config)
        column = config.event_time_field or ordering_field
        unit_of(arrow.field(column).type, config.event_time_unit, column)
        storage.check_writable()
        if storage.exists(PROPERTIES):
            raise InvalidInput("There is a Hudi table already.", where=storage.base, hint="Open it instead.")
        storage.create(PROPERTIES, dump_properties(properties))
        return cls(storage, config)

    @classmethod
    def open(
        cls,
        path: str,
        storage_options: Mapping[str, str] | None = None,
        *,
        settings: Mapping[str, str] | None = None,
    ) -> HudiTable:
        """Open a table. `settings` (hoodie.* and hudi_assets.* keys) overlay the table's own for this process.

        Raises `InvalidInput` for a path that holds no table and `UnsupportedTable`, naming the feature,
        for one that cannot be handled rightly.
        """
        storage = open_storage(path, storage_options)
        config = read_config(storage, settings)
        check_no_metadata_table(storage)
        return cls(storage, config)

    def state(self) -> TableState:
        """The table as it stands now."""
        return TableState.read(self._storage, self.config, self._layout, self._true_now_ms)

    # -- writing ----------------------------------------------------------------------------------

    def upsert(
        self,
        spark: SparkSession,
        df: DataFrame,
        *,
        clock_time: datetime | None = None,
        batch_id: str | None = None,
    ) -> CommitResult:
        """Write rows as one delta commit; of a key's rows the greatest ordering value counts.

        `clock_time` is the time of a replayed stream; `batch_id` makes the call repeatable: a batch that
        is committed already writes nothing. Raises `InvalidInput` before anything is written.
        """
        return self._writer(spark).upsert(df, _ms(clock_time), batch_id)

    def delete(
        self,
        spark: SparkSession,
        df: DataFrame,
        *,
        clock_time: datetime | None = None,
        batch_id: str | None = None,
    ) -> CommitResult:
        """Delete the keys of a DataFrame (key and partition columns; the ordering column if it should count)."""
        return self._writer(spark).delete(df, _ms(clock_time), batch_id)

    def _writer(self, spark: SparkSession) -> Writer:
        seam.use_this_python(spark)
        return Writer(self._storage, self.config, self._layout, self._publisher, spark, self._freshness_of)

    def committed_batches(self) -> dict[str, str]:
        """batch id → instant, of the delta commits on the active timeline."""
        return Writer.committed_batches(self.state())

    # -- compacting -------------------------------------------------------------------------------

    def plan_compaction(
        self,
        *,
        threshold: Time | None = None,
        data_latency: Latency | None = None,
        dry_run: bool = False,
    ) -> Plan | NoPlan:
        """Plan and publish one compaction of every log file with event times at or below the threshold.

        The threshold is given, or the table's clock less the data latency (given, or the table's own).
        `NoPlan` says why there is nothing to do. A dry run publishes nothing.
        """
        state = self.state()
        limit = self._threshold(state, threshold, data_latency)
        if isinstance(limit, NoPlan):
            return limit
        return self._compactor().plan(limit, dry_run=dry_run)

    def due_compaction(self) -> Plan | NoPlan:
        """What `plan_compaction` would plan now. Needs neither Spark nor a lock."""
        return self.plan_compaction(dry_run=True)

    def execute_compaction(self, spark: SparkSession, instant: str) -> CompactionResult:
        """Execute the plan published at `instant`, and commit it."""
        seam.use_this_python(spark)
        return self._compactor().execute(spark, instant)

    def _compactor(self) -> Compactor:
        return Compactor(self._storage, self.config, self._layout, self._publisher)

    def _threshold(self, state: TableState, threshold: Time | None, data_latency: Latency | None) -> int | NoPlan:
        if threshold is not None and data_latency is not None:
            raise InvalidInput("Give a threshold or a data latency, not both.")
        now = self._now_of(state)
        if threshold is None:
            latency = self.config.data_latency_ms if data_latency is None else parse_latency(data_latency)
            if latency is None:
                return NoPlan("the table has no data latency, and no threshold was given")
            return now - latency
        limit = parse_time(threshold)
        if limit > now:
            raise InvalidInput(
                f"The threshold {threshold} is in the future of the table's clock.",
                where=self.path,
                hint="Give one at or before now: records up to it may still arrive.",
            )
        return limit

    def pending_plan(self) -> Plan | None:
        """The plan that waits for execution."""
        return next(iter(self.state().executable_plans), None)

    def plan(self, instant: str) -> Plan:
        """The compaction plan of an instant, pending or completed."""
        found = self.state().plan(instant)
        if found is None:
            raise InvalidInput("There is no compaction plan at this instant.", where=f"{self.path} {instant}")
        return found

    def recover(self) -> tuple[str, ...]:
        """Undo what dead writers and planners of ours left; sentences about what was done."""
        return recover(self._storage, self.config, self._layout, self._publisher)

    # -- reading ----------------------------------------------------------------------------------

    def schema(self) -> pa.Schema:
        """The table's columns, Hudi's meta columns first."""
        return self.state().schema

    def snapshot(self, spark: SparkSession) -> DataFrame:
        """The snapshot view: base files with every committed log record merged in."""
        seam.use_this_python(spark)
        return snapshot_frame(spark, self.state())

    def snapshot_tasks(self) -> list[ReadTask]:
        """The snapshot view as picklable tasks for `engine.query.read_task`."""
        return snapshot_tasks(self.state())

    def read_optimized(self, spark: SparkSession) -> DataFrame:
        """The read-optimized view: Spark's own Parquet reader on the current base files."""
        return read_optimized_frame(spark, self.state())

    def read_optimized_files(self) -> list[str]:
        """Absolute paths of the current base files."""
        return [self._storage.uri(base.path) for base in self.state().view.base_files]

    # -- looking ----------------------------------------------------------------------------------

    def now_ms(self) -> int:
        """The table's clock, epoch ms: the system's, or the newest commit's in a replayed stream."""
        return self._now_of(self.state())

    def _now_of(self, state: TableState) -> int:
        if self.config.clock == "system":
            return state.read_at_ms
        times = (commit.clock_time for _, commit in state.commits_newest_first())
        # Commits come in order of the stream, so the newest ones tell; a compaction states none.
        return next((time for time in times if time is not None), 0)

    def freshness(self, *, data_latency: Latency | None = None) -> Freshness:
        """What the read-optimized view promises now."""
        latency = None if data_latency is None else parse_latency(data_latency)
        return self._freshness_of(self.state(), latency)

    def _freshness_of(self, state: TableState, latency: int | None = None) -> Freshness:
        unfinished = [i.timestamp for i in state.timeline.inflight_writes]
        oldest = instant_ms(min(unfinished), self.config.timezone) if unfinished else None
        return compute_freshness(
            state.remaining_logs,
            state.summaries,
            now_ms=self._now_of(state),
            oldest_unfinished_ms=oldest,
            data_latency_ms=self.config.data_latency_ms if latency is None else latency,
            last_threshold=state.last_threshold,
        )

    def stats(self) -> Stats:
        """The table in numbers: the RFC's metrics among them."""
        state = self.state()
        freshness = self._freshness_of(state)
        latest = [s for s in state.view.latest if s.log_files]
        last = state.timeline.completed("commit")  # type: ignore[arg-type]
        return Stats(
            table_version=self.config.table_version,
            freshness=freshness,
            file_groups=len(state.view.groups),
            base_files=len(state.view.base_files),
            base_bytes=sum(base.size for base in state.view.base_files),
            remaining_file_slices=len(latest),
            remaining_log_files=len(state.remaining_logs),
            remaining_bytes=sum(log.size for log in state.remaining_logs),
            min_event_time=freshness.min_event_time,
            pending=tuple(plan.instant for plan in state.executable_plans),
            last_compaction=last[-1].timestamp if last else None,
            last_commit=state.timeline.last_write,
            inflight_writes=tuple(i.timestamp for i in state.timeline.inflight_writes),
        )

    def log_bars(self, plan: Plan | None = None) -> tuple[LogBar, ...]:
        """The remaining log files with their ranges, and those of `plan` marked as compacted."""
        state = self.state()
        bars = [self._bar(state, log, compacted=False) for log in state.remaining_logs]
        if plan is None:
            return tuple(bars)
        taken = {path for op in plan.operations for path in op.log_files}
        marked = [replace(bar, compacted=True) if _path(bar) in taken else bar for bar in bars]
        gone = taken - {_path(bar) for bar in marked}
        return (*self._compacted_bars(state, gone), *marked)

    @staticmethod
    def _bar(state: TableState, log: LogFile, *, compacted: bool) -> LogBar:
        summary = state.summaries[log.path]
        return LogBar(log.name, log.partition, summary.min_event_time, summary.max_event_time, log.size, compacted)

    @staticmethod
    def _compacted_bars(state: TableState, paths: set[str]) -> Iterator[LogBar]:
        """Bars of log files that a completed compaction merged, from the commits that wrote them."""
        for _, commit in state.commits_newest_first():
            for stat in commit.stats:
                if stat.path in paths and stat.log_version is not None:
                    name = stat.path.rsplit("/", 1)[-1]
                    low, high = stat.min_event_time, stat.max_event_time
                    yield LogBar(name, stat.partition, low, high, stat.size, True)

    def carried_over(self) -> tuple[CarryOver, ...]:
        """The carried-over log files that the current slices show, link and target."""
        state = self.state()
        shown = {log.path for log in state.remaining_logs}
        instants = {log.base_instant for log in state.remaining_logs}
        plans = [state.plan(instant) for instant in sorted(instants)]
        pending = {plan.instant for plan in state.pending_plans}
        return tuple(
            carried
            for plan in (*plans, *(p for p in state.pending_plans if p.instant not in instants))
            if plan is not None
            for op in plan.operations
            for carried in op.carried_over
            if carried.link in shown or plan.instant in pending
        )

    def log_event_times(self) -> Iterator[tuple[LogFile, pa.ChunkedArray]]:
        """Per remaining log file, the event times (epoch ms) in its data blocks, read anew from the data."""
        state = self.state()
        column, unit = state.event_time_column
        for log in state.remaining_logs:
            micros = [to_micros(c, unit) for c in event_time_columns(self._storage, log.path, column)]
            values = [None if v is None else v // 1000 for part in micros for v in part.to_pylist()]
            yield log, pa.chunked_array([pa.array(values, pa.int64())])

    def exists(self, path: str) -> bool:
        """True where a table-relative file is there (a link whose target is gone is not)."""
        return self._storage.exists(path)


def _path(bar: LogBar) -> str:
    return f"{bar.partition}/{bar.name}" if bar.partition else bar.name


def _layout(version: int, where: str) -> Layout:
    layout = _LAYOUTS.get(version)
    if layout is None:
        raise UnsupportedTable(
            f"Table version {version} is not supported.",
            where=where,
            hint=f"Supported: {', '.join(map(str, _LAYOUTS))}.",
        )
    return layout


def _check_shape(record_key: Sequence[str], buckets: int, table_version: int) -> None:
    if isinstance(record_key, str) or not record_key:
        raise InvalidInput("record_key takes a list with at least one column.")
    if not 1 <= buckets <= 99_999_999:
        raise InvalidInput(f"buckets is {buckets}.", hint="Give at least 1.")
    _layout(table_version, "create")


def _as_avro(schema: Any, table_name: str) -> str:
    """Any of the accepted schema kinds as Avro JSON without meta columns."""
    if isinstance(schema, str):
        json.loads(schema)
        return schema
    if not isinstance(schema, pa.Schema):
        schema = seam.arrow_schema(schema)
    name, namespace = avro.record_name(table_name)
    return avro.arrow_to_avro_schema(schema, name, namespace)


def _ms(moment: datetime | None) -> int | None:
    return None if moment is None else parse_time(moment, "clock time")
