"""What a table answers: its queries, as DataFrames or as tasks, and its schema."""

from __future__ import annotations

import pyarrow as pa

from hudi_assets.engine.hudi_table.opened import OpenedTable
from hudi_assets.engine.queries.columns import chosen_columns
from hudi_assets.engine.queries.moments import Moment
from hudi_assets.engine.queries.query import (
    Columns,
    ReadTask,
    incremental_frame,
    incremental_tasks,
    read_optimized_frame,
    read_optimized_tasks,
    slice_reader,
    snapshot_frame,
    snapshot_tasks,
    time_travel_frame,
    time_travel_tasks,
)
from hudi_assets.engine.queries.read_optimized_columns import base_file_groups
from hudi_assets.engine.spark import session as spark_session
from hudi_assets.engine.spark.interface import FrameT, Session
from hudi_assets.engine.storage import each


class Reads(OpenedTable):
    """With `columns`, each query gives those columns alone, and reads no others but what a merge looks at."""

    def schema(self, *, columns: Columns = None) -> pa.Schema:
        """The table's columns, Hudi's meta columns first.

        Args:
            columns: Those alone, in this order. Default: all.

        Raises:
            InvalidInput: The table has no such column, or one is named twice.
        """
        schema = self.state().schema
        chosen = chosen_columns(schema, columns, self.path)
        return schema if chosen is None else pa.schema([schema.field(name) for name in chosen])

    def snapshot(self, spark: Session[FrameT], *, columns: Columns = None) -> FrameT:
        """The snapshot view: base files with every committed log record merged in.

        Args:
            spark: A classic session.
            columns: Those alone, in this order. Default: all, Hudi's meta columns first.

        Raises:
            InvalidInput: The table has no such column.
            CorruptTable: A file that the view needs is missing or damaged.
        """
        spark_session.ready_workers(spark, self._table.storage)
        return snapshot_frame(spark, self._readable(), columns)

    def snapshot_tasks(self, *, columns: Columns = None) -> list[ReadTask]:
        """The snapshot view as picklable tasks. `ReadTask.read` gives the rows of each."""
        return snapshot_tasks(self._readable(), columns)

    def read_optimized(self, spark: Session[FrameT], *, columns: Columns = None) -> FrameT:
        """The read-optimized view: Spark's own Parquet reader on the current base files.

        Args:
            spark: A classic session.
            columns: As for `snapshot`.

        Raises:
            InvalidInput: As `snapshot`.
            CorruptTable: As `snapshot`.
        """
        return read_optimized_frame(spark, self._readable(), columns)

    def read_optimized_tasks(self, *, columns: Columns = None) -> list[ReadTask]:
        """The read-optimized view as picklable tasks. `ReadTask.read` gives the rows of each."""
        return read_optimized_tasks(self._readable(), columns)

    def time_travel(self, spark: Session[FrameT], instant: Moment, *, columns: Columns = None) -> FrameT:
        """The snapshot as of an instant. Any instant will do, not only a commit's.

        Args:
            spark: A classic session.
            instant: 17 or 14 digits in the timeline's zone, ISO-8601 text, or a datetime with a zone.
            columns: As for `snapshot`.

        Raises:
            InvalidInput: The history at that instant was cleaned. The error names the earliest instant left.
        """
        spark_session.ready_workers(spark, self._table.storage)
        return time_travel_frame(spark, self._readable(), instant, columns)

    def time_travel_tasks(self, instant: Moment, *, columns: Columns = None) -> list[ReadTask]:
        """`time_travel` as picklable tasks. `ReadTask.read` gives the rows of each."""
        return time_travel_tasks(self._readable(), instant, columns)

    def incremental(
        self, spark: Session[FrameT], begin: Moment, end: Moment | None = None, *, columns: Columns = None
    ) -> FrameT:
        """The rows that the table held at `end` (None: now) with begin < `_hoodie_commit_time` ≤ end.

        On versions 8 and 9 the range is one of completion times: begin < completion of the row's commit ≤ end.

        Args:
            spark: A classic session.
            begin: A time as for `time_travel`, or "earliest".
            end: A time as for `time_travel`. Default: now.
            columns: As for `snapshot`.

        Raises:
            InvalidInput: The range ends before it begins, or the history at `end` was cleaned.
        """
        spark_session.ready_workers(spark, self._table.storage)
        return incremental_frame(spark, self._readable(), begin, end, columns)

    def incremental_tasks(self, begin: Moment, end: Moment | None = None, *, columns: Columns = None) -> list[ReadTask]:
        """`incremental` as picklable tasks. `ReadTask.read` gives the rows of each."""
        return incremental_tasks(self._readable(), begin, end, columns)

    def read_optimized_groups(self) -> list[tuple[list[str], dict[str, str]]]:
        """The current base files by the schema that they have, and Spark SQL per column of the table for each."""
        self.config.refuse_other_files(self.path)
        return base_file_groups(self.state())

    def read_optimized_files(self) -> list[str]:
        """The current base files by their absolute paths, or in a bucket by the names that Spark knows them by."""
        storage = self._table.storage
        return [spark_session.spark_name(storage.uri(base.path)) for base in self.state().view.base_files]

    def read_optimized_rows(self) -> int:
        """How many rows the read-optimized view has, from the base files' footers.

        A log file that is gone does not keep it from counting, as it keeps queries from reading.
        """
        state = self.state()
        reader = slice_reader(state)
        return sum(each(state.storage, lambda base: int(reader.base_footer(base.path).num_rows), state.view.base_files))
