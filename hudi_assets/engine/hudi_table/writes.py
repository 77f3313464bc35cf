"""What is written to a table: rows, and deletes of keys."""

from __future__ import annotations

from datetime import datetime

from hudi_assets.engine import status as look
from hudi_assets.engine.actions.writing.delta_commit import Writer
from hudi_assets.engine.hudi_table.opened import OpenedTable
from hudi_assets.engine.model import CommitResult
from hudi_assets.engine.model.units import parse_time
from hudi_assets.engine.spark import session as spark_session
from hudi_assets.engine.spark.interface import Frame, Session


class Writes(OpenedTable):
    """Each write is one delta commit, or nothing.

    `clock_time` is the time of a replayed stream; `batch_id` makes a call repeatable: a batch that is committed
    already writes nothing.
    """

    def upsert(
        self,
        spark: Session[Frame],
        df: Frame,
        *,
        clock_time: datetime | None = None,
        batch_id: str | None = None,
    ) -> CommitResult:
        """Write rows as one delta commit. Of a key's rows the greatest ordering value counts.

        Args:
            spark: A classic session. Its workers write the log files.
            df: The rows. Columns that the table lacks are added to its schema, if they may be null.
            clock_time: The time of a replayed stream, with a zone. Only for tables with `clock="commit"`.
            batch_id: Makes the call repeatable: a batch that is committed already writes nothing.

        Returns:
            The commit's instant, rows, files and bytes, and the range of event times in epoch ms.

        Raises:
            InvalidInput: Rows lack a key, an ordering value or an event time, or do not fit the schema. Nothing was
                written.
            Conflict: Another process holds the table, or its write is unfinished. Try again.
        """
        return self._writer(spark).upsert(df, _ms(clock_time), batch_id)

    def bulk_insert(
        self,
        spark: Session[Frame],
        df: Frame,
        *,
        clock_time: datetime | None = None,
        batch_id: str | None = None,
    ) -> CommitResult:
        """Write the first rows of a table, or of file groups that hold none, as base files in one delta commit.

        The read-optimized view holds them at once. Of a key's rows one is written, as the table's merge mode has it.

        Args:
            spark: A classic session. Its workers write the base files.
            df: The rows, as for `upsert`.
            clock_time: As for `upsert`.
            batch_id: As for `upsert`.

        Returns:
            As `upsert`; `base_files` instead of log files.

        Raises:
            InvalidInput: As `upsert`; and where a file group of the rows holds rows already, or the table asks for an
                exact split. Nothing was written.
            Conflict: Another process holds the table, or its write is unfinished. Try again.
        """
        return self._writer(spark).bulk_insert(df, _ms(clock_time), batch_id)

    def delete(
        self,
        spark: Session[Frame],
        df: Frame,
        *,
        clock_time: datetime | None = None,
        batch_id: str | None = None,
    ) -> CommitResult:
        """Delete keys as one delta commit.

        Args:
            spark: A classic session. Its workers write the log files.
            df: The columns of the record key and of the partition. With the ordering column a delete takes part with
                its value; without, it deletes whatever came before.
            clock_time: As for `upsert`.
            batch_id: As for `upsert`.

        Returns:
            The commit; `rows` counts the deletes.

        Raises:
            InvalidInput: A column or a key is missing. Nothing was written.
            Conflict: Another process holds the table, or its write is unfinished. Try again.
        """
        return self._writer(spark).delete(df, _ms(clock_time), batch_id)

    def _writer(self, spark: Session[Frame]) -> Writer:
        spark_session.ready_workers(spark, self._table.storage, to_write=True)
        return Writer(self._table, spark, look.freshness_of)

    def committed_batches(self) -> dict[str, str]:
        """Batch id → instant, of the delta commits on the active timeline."""
        return Writer.committed_batches(self.state())


def _ms(moment: datetime | None) -> int | None:
    return None if moment is None else parse_time(moment, "clock time")
