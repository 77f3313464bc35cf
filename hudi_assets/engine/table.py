"""HudiTable: the engine's public face. Every call reads the table as it stands and leaves it whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import pyarrow as pa

from hudi_assets.engine import look
from hudi_assets.engine import spark as seam
from hudi_assets.engine.compaction.cost import CostPoint
from hudi_assets.engine.compaction.executor import CompactionExecutor
from hudi_assets.engine.compaction.hudi_executor import HudiExecutor
from hudi_assets.engine.compaction.planning import CompactionPlanner
from hudi_assets.engine.compaction.threshold import choose_threshold
from hudi_assets.engine.create import NewTable, create_table
from hudi_assets.engine.errors import InvalidInput, UnsupportedTable
from hudi_assets.engine.event_time.latency import ObservedLatency
from hudi_assets.engine.event_time.lateness import LateLog, late_records, observed_latency
from hudi_assets.engine.event_time.units import Latency, Time, parse_time
from hudi_assets.engine.housekeeping.archive import Archiver, ArchiveResult
from hudi_assets.engine.housekeeping.clean import Cleaner
from hudi_assets.engine.housekeeping.clean_execute import CleanResult
from hudi_assets.engine.housekeeping.savepoint import Savepoints
from hudi_assets.engine.layout.seam import Layout
from hudi_assets.engine.layout.v6 import LayoutV6
from hudi_assets.engine.layout.v8 import LayoutV8
from hudi_assets.engine.model import (
    CarryOver,
    CommitResult,
    CompactionResult,
    Freshness,
    LogBar,
    LogFile,
    MergeMode,
    NoPlan,
    NothingToDo,
    Plan,
    Stats,
)
from hudi_assets.engine.queries.instants import Moment
from hudi_assets.engine.queries.query import (
    Columns,
    ReadTask,
    incremental_frame,
    incremental_tasks,
    read_optimized_frame,
    read_optimized_tasks,
    snapshot_frame,
    snapshot_tasks,
    time_travel_frame,
    time_travel_tasks,
)
from hudi_assets.engine.schema.base_files import base_file_groups
from hudi_assets.engine.schema.schema_on_read import check_no_schema_on_read
from hudi_assets.engine.settings.config import (
    HUDI,
    TableConfig,
    read_config,
)
from hudi_assets.engine.slices.missing import missing_files
from hudi_assets.engine.state import TableState
from hudi_assets.engine.storage import Storage, open_storage
from hudi_assets.engine.timeline.publish import Publisher, system_now_ms
from hudi_assets.engine.undo.leftovers import leftovers
from hudi_assets.engine.undo.recover import recover
from hudi_assets.engine.undo.restore import RestoreResult
from hudi_assets.engine.undo.rollback import RollbackResult
from hudi_assets.engine.undo.undo import Undo
from hudi_assets.engine.validate import Finding, validate
from hudi_assets.engine.writing.writer import Writer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_LAYOUTS: Mapping[int, Layout] = {6: LayoutV6(), 8: LayoutV8(8), 9: LayoutV8(9)}


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
        ordering_field: str | None = None,
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
        url_encode: bool = False,
        merge_mode: MergeMode | str = MergeMode.EVENT_TIME_ORDERING,
        exact_split: bool = False,
    ) -> HudiTable:
        """Create an empty table at a path that holds none.

        `schema`: Spark, Arrow or Avro (JSON). `event_time_field` defaults to the ordering field;
        `event_time_unit` (s, ms, us, iso) is for long and string columns. `data_latency`: how long from
        an event to its commit, or "auto" to learn it from the commits. `clock`: "system", or "commit" for a
        replayed stream whose time is the newest commit's `clock_time`. `hive_style`, `url_encode`: how partition
        values name folders (`field=value`; escaped as Hudi does). `merge_mode`: see `docs/merge.md`;
        COMMIT_TIME_ORDERING takes no ordering field, so it needs the event-time field. `exact_split`: no record
        above a threshold gets into the read-optimized view by compaction; Hudi's own table services are off then.
        Raises `InvalidInput` before anything is written.
        """
        storage = open_storage(path, storage_options)
        layout = _layout(table_version, storage.base)
        asked = NewTable(
            schema=schema,
            record_key=record_key,
            ordering_field=ordering_field,
            event_time_field=event_time_field,
            partition_fields=partition_fields,
            buckets=buckets,
            table_version=table_version,
            name=name,
            event_time_unit=event_time_unit,
            data_latency=data_latency,
            clock=clock,
            log_block_format=log_block_format,
            hive_style=hive_style,
            url_encode=url_encode,
            merge_mode=merge_mode,
            exact_split=exact_split,
        )
        return cls(storage, create_table(storage, asked, layout))

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
        check_no_schema_on_read(storage)
        return cls(storage, config)

    def state(self) -> TableState:
        """The table as it stands now."""
        return TableState.read(self._storage, self.config, self._layout, self._true_now_ms)

    def _readable(self) -> TableState:
        """As `state`, read again where a clean has just deleted what the first reading still names."""
        state = self.state()
        return state if next(missing_files(state), None) is None else self.state()

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

    def bulk_insert(
        self,
        spark: SparkSession,
        df: DataFrame,
        *,
        clock_time: datetime | None = None,
        batch_id: str | None = None,
    ) -> CommitResult:
        """Write the first rows of a table, or of file groups that hold none, as base files in one delta commit.

        The read-optimized view holds them at once. Of a key's rows one is written, as the table's merge mode has it.
        Raises `InvalidInput` before anything is written, also where a file group of the rows is not empty.
        """
        return self._writer(spark).bulk_insert(df, _ms(clock_time), batch_id)

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
        return Writer(self._storage, self.config, self._layout, self._publisher, spark, look.freshness_of)

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
        limit = choose_threshold(state, threshold, data_latency)
        if isinstance(limit, NoPlan):
            return limit
        return self._planner().plan(limit, dry_run=dry_run)

    def due_compaction(self) -> Plan | NoPlan:
        """What `plan_compaction` would plan now. Needs neither Spark nor a lock."""
        return self.plan_compaction(dry_run=True)

    def execute_compaction(self, spark: SparkSession, instant: str) -> CompactionResult:
        """Execute the plan published at `instant`, and commit it; by Apache Hudi where `hudi_assets.executor=hudi`."""
        if self.config.executor == HUDI:
            return HudiExecutor(self._storage, self.config, self._layout, self._publisher).execute(spark, instant)
        seam.use_this_python(spark)
        executor = CompactionExecutor(self._storage, self.config, self._layout, self._publisher)
        return executor.execute(spark, instant)

    def _planner(self) -> CompactionPlanner:
        return CompactionPlanner(self._storage, self.config, self._layout, self._publisher)

    @property
    def plans_in_series(self) -> bool:
        """True where one plan may not reach its threshold: it is bounded, or stands at a past instant."""
        settings = self.config.compaction
        bounded = settings.io_bound is not None or settings.partition_bound is not None
        return bounded or not self._layout.carries_logs_over

    def pending_plan(self) -> Plan | None:
        """The plan that waits for execution."""
        return next(iter(self.state().executable_plans), None)

    def plan(self, instant: str) -> Plan:
        """The compaction plan of an instant, pending or completed."""
        found = self.state().plan(instant)
        if found is None:
            raise InvalidInput("There is no compaction plan at this instant.", where=f"{self.path} {instant}")
        return found

    def rollback(self, instant: str) -> RollbackResult:
        """Take back the newest write, an unfinished one, or a compaction's attempt (its plan and links stay).

        `InvalidInput` names what builds on the instant and is in the way; `Conflict` whoever else is at work.
        """
        return self._undo().rollback(instant)

    def unschedule(self, instant: str) -> None:
        """Withdraw a pending compaction plan with its carried-over logs; refused where commits wrote to its slice."""
        self._undo().unschedule(instant)

    def restore(self, savepoint: str) -> RestoreResult:
        """Make the table what it was at a savepoint: everything later is rolled back, the newest first."""
        return self._undo().restore(savepoint)

    def _undo(self) -> Undo:
        return Undo(self._storage, self.config, self._layout, self._publisher)

    def validate(self) -> tuple[Finding, ...]:
        """What is not as the timeline says, with what to do about it; empty: all is well. Reads only."""
        return validate(self.state(), self._true_now_ms)

    def leftovers(self) -> tuple[str, ...]:
        """What `recover` would finish, undo or remove, by a look that costs no more than a listing."""
        return leftovers(self.state(), self._true_now_ms)

    def recover(self) -> tuple[str, ...]:
        """Undo what dead writers and planners of ours left; sentences about what was done."""
        return recover(self._storage, self.config, self._layout, self._publisher)

    # -- housekeeping -----------------------------------------------------------------------------

    def clean(
        self, *, policy: str | None = None, retained: int | None = None, dry_run: bool = False
    ) -> CleanResult | NothingToDo:
        """Delete the file slices that no retained view reads; finish a clean that a crash left.

        Policy and how much it retains (commits, file versions or hours) are given, or the table's own
        (hoodie.cleaner.*). A dry run deletes nothing.
        """
        return self._cleaner().clean(policy=policy, retained=retained, dry_run=dry_run)

    def savepoint(self, instant: str | None = None, *, comment: str = "", user: str = "") -> str:
        """Protect the table as of a completed write (the last one) from every cleaner; the savepoint's instant."""
        return self._savepoints().create(instant, comment=comment, user=user)

    def delete_savepoint(self, instant: str) -> None:
        """Give a savepoint up."""
        self._savepoints().delete(instant)

    def savepoints(self) -> tuple[str, ...]:
        """Instants of the savepoints, oldest first."""
        return self._savepoints().all()

    def archive(self) -> ArchiveResult | NothingToDo:
        """Move old instants from the active timeline into the archived one (hoodie.keep.min/max.commits)."""
        return Archiver(self._storage, self.config, self._layout, self._publisher).archive()

    def _cleaner(self) -> Cleaner:
        return Cleaner(self._storage, self.config, self._layout, self._publisher)

    def _savepoints(self) -> Savepoints:
        return Savepoints(self._storage, self.config, self._layout, self._publisher)

    # -- reading ----------------------------------------------------------------------------------

    def schema(self) -> pa.Schema:
        """The table's columns, Hudi's meta columns first."""
        return self.state().schema

    # With `columns`, each query gives those columns alone, and reads no others but what a merge looks at.

    def snapshot(self, spark: SparkSession, *, columns: Columns = None) -> DataFrame:
        """The snapshot view: base files with every committed log record merged in."""
        seam.use_this_python(spark)
        return snapshot_frame(spark, self._readable(), columns)

    def snapshot_tasks(self, *, columns: Columns = None) -> list[ReadTask]:
        """The snapshot view as picklable tasks for `engine.queries.query.read_task`."""
        return snapshot_tasks(self._readable(), columns)

    def read_optimized(self, spark: SparkSession, *, columns: Columns = None) -> DataFrame:
        """The read-optimized view: Spark's own Parquet reader on the current base files."""
        return read_optimized_frame(spark, self._readable(), columns)

    def read_optimized_tasks(self, *, columns: Columns = None) -> list[ReadTask]:
        """The read-optimized view as picklable tasks for `engine.queries.query.read_task`."""
        return read_optimized_tasks(self._readable(), columns)

    def time_travel(self, spark: SparkSession, instant: Moment, *, columns: Columns = None) -> DataFrame:
        """The snapshot as of an instant: 17 or 14 digits, ISO-8601 text, or a datetime with a zone.

        Raises `InvalidInput`, naming the earliest instant left, where the history was cleaned.
        """
        seam.use_this_python(spark)
        return time_travel_frame(spark, self._readable(), instant, columns)

    def time_travel_tasks(self, instant: Moment, *, columns: Columns = None) -> list[ReadTask]:
        """`time_travel` as picklable tasks for `engine.queries.query.read_task`."""
        return time_travel_tasks(self._readable(), instant, columns)

    def incremental(
        self, spark: SparkSession, begin: Moment, end: Moment | None = None, *, columns: Columns = None
    ) -> DataFrame:
        """The rows that the table held at `end` (None: now) with begin < `_hoodie_commit_time` ≤ end.

        On versions 8 and 9 the range is one of completion times: begin < completion of the row's commit ≤ end.
        `begin` may be "earliest". Raises `InvalidInput` where the history at `end` was cleaned.
        """
        seam.use_this_python(spark)
        return incremental_frame(spark, self._readable(), begin, end, columns)

    def incremental_tasks(self, begin: Moment, end: Moment | None = None, *, columns: Columns = None) -> list[ReadTask]:
        """`incremental` as picklable tasks for `engine.queries.query.read_task`."""
        return incremental_tasks(self._readable(), begin, end, columns)

    def read_optimized_groups(self) -> list[tuple[list[str], dict[str, str]]]:
        """The current base files by the schema that they have, and Spark SQL per column of the table for each."""
        return base_file_groups(self.state())

    def read_optimized_files(self) -> list[str]:
        """Absolute paths of the current base files."""
        return [self._storage.uri(base.path) for base in self.state().view.base_files]

    # -- looking ----------------------------------------------------------------------------------

    def now_ms(self) -> int:
        """The table's clock, epoch ms: the system's, or the newest commit's in a replayed stream."""
        return self.state().now_ms

    def observed_latency(self) -> ObservedLatency | None:
        """How late records came, by the latest delta commits, and the evidence; None where there is none."""
        return observed_latency(self.state())

    def late_records(self, freshness_ms: int) -> tuple[LateLog, ...]:
        """The remaining log files with records at or below a freshness that was published: they came late."""
        return late_records(self.state(), freshness_ms)

    def cost_curve(self, points: int = 20) -> tuple[CostPoint, ...]:
        """For each possible threshold (thinned to `points`) what its compaction costs, and the freshness after."""
        return self._planner().cost_curve(self.state(), points)

    def freshness(self, *, data_latency: Latency | None = None) -> Freshness:
        """What the read-optimized view promises now."""
        return look.freshness_of(self._readable(), data_latency)

    def stats(self) -> Stats:
        """The table in numbers: the RFC's metrics among them."""
        return look.stats_of(self._readable())

    def log_bars(self, plan: Plan | None = None) -> tuple[LogBar, ...]:
        """The remaining log files with their ranges, and those of `plan` marked as compacted."""
        return look.log_bars(self.state(), plan)

    def carried_over(self) -> tuple[CarryOver, ...]:
        """The carried-over log files that the current slices show, link and target."""
        return look.carried_over(self.state())

    def log_event_times(self) -> Iterator[tuple[LogFile, pa.ChunkedArray]]:
        """Per remaining log file, the event times (epoch ms) in its data blocks, read anew from the data."""
        return look.log_event_times(self.state())

    def exists(self, path: str) -> bool:
        """True where a table-relative file is there (a link whose target is gone is not)."""
        return self._storage.exists(path)


def _layout(version: int, where: str) -> Layout:
    layout = _LAYOUTS.get(version)
    if layout is None:
        raise UnsupportedTable(
            f"Table version {version} is not supported.",
            where=where,
            hint=f"Supported: {', '.join(map(str, _LAYOUTS))}.",
        )
    return layout


def _ms(moment: datetime | None) -> int | None:
    return None if moment is None else parse_time(moment, "clock time")
