"""The order of things in a delta commit: check, lock, begin, write in Spark, reconcile, commit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from hudi_assets.engine.actions.writing import exchange
from hudi_assets.engine.actions.writing.bulk_insert import write_base_rows
from hudi_assets.engine.actions.writing.gaps import refuse_rows_with_gaps
from hudi_assets.engine.actions.writing.log_files import (
    Target,
    WriteSpec,
    Written,
    check_fields,
    write_deletes,
    write_rows,
)
from hudi_assets.engine.actions.writing.lookup import group_numbers, lookup_of, write_found_deletes, write_found_rows
from hudi_assets.engine.actions.writing.ordering_fields import refuse_ordering_values, refuse_rows
from hudi_assets.engine.actions.writing.packing import Packing
from hudi_assets.engine.actions.writing.row_checks import RowCount
from hudi_assets.engine.errors import Conflict, HudiAssetsError, InvalidInput, UnsupportedTable
from hudi_assets.engine.event_time.lateness import data_latency_ms
from hudi_assets.engine.event_time.remembering import archived_batches
from hudi_assets.engine.event_time.table_times import TableTimes
from hudi_assets.engine.model import Action, CommitResult, Freshness, State
from hudi_assets.engine.queries.query import slice_reader
from hudi_assets.engine.spark import session as spark
from hudi_assets.engine.spark.interface import Frame, Session
from hudi_assets.engine.table import schema_evolution as evolution
from hudi_assets.engine.table.files.missing import refuse_missing
from hudi_assets.engine.table.index import bloom_filter_of, looks_keys_up, refuse_writes
from hudi_assets.engine.table.metadata.decimal_limits import Columns, tight_columns
from hudi_assets.engine.table.metadata.policy import check_write as check_metadata_table
from hudi_assets.engine.table.metadata.policy import switch_off
from hudi_assets.engine.table.record_keys import bucket_ids, bucket_of
from hudi_assets.engine.table.settings.key_generators import refuse_other_paths
from hudi_assets.engine.table.state import META_COLUMNS, TableState
from hudi_assets.engine.timeline.attempts import publish
from hudi_assets.engine.timeline.commit_metadata import BATCH_ID, CLOCK_TIME, EVENT_TIME, SCHEMA, WRITER, CommitMetadata
from hudi_assets.engine.timeline.compaction_plan import AFTER_RESIDUE, RESIDUE
from hudi_assets.engine.transaction.heartbeat import Beat, Heartbeats
from hudi_assets.engine.transaction.open_table import OpenTable
from hudi_assets.engine.transaction.transaction import Transaction, transaction

WRITER_NAME = "hudi-assets"
UPSERT, DELETE, BULK_INSERT = "UPSERT", "DELETE", "BULK_INSERT"  # org.apache.hudi.common.model.WriteOperationType
_LOCK_WAIT_S = 600.0
_Work = Callable[[WriteSpec, Iterator[pa.RecordBatch], str], list[Written]]


@dataclass(frozen=True)
class Writer:
    """Writes delta commits into one table."""

    table: OpenTable
    session: Session[Frame]
    freshness_of: Callable[[TableState], Freshness]

    @staticmethod
    def committed_batches(state: TableState) -> dict[str, str]:
        batches = dict(archived_batches(state))
        for instant in state.timeline.completed(Action.DELTA_COMMIT):
            batch = state.commit(instant).extra.get(BATCH_ID)
            if batch is not None:
                batches[batch] = instant.timestamp
        return batches

    def upsert(self, df: Frame, clock_ms: int | None, batch_id: str | None) -> CommitResult:
        return self._write(df, UPSERT, clock_ms, batch_id)

    def bulk_insert(self, df: Frame, clock_ms: int | None, batch_id: str | None) -> CommitResult:
        if self.table.config.merging.exact_split:
            raise InvalidInput(
                "With exact split the read-optimized view holds no record above its threshold; a bulk insert would.",
                where=self.table.path,
                hint="Upsert the rows, and compact.",
            )
        return self._write(df, BULK_INSERT, clock_ms, batch_id)

    def _write(self, df: Frame, operation: str, clock_ms: int | None, batch_id: str | None) -> CommitResult:
        self._refuse_other_tables()
        self._refuse_marked_rows()
        refuse_rows(self.table.config, self.table.path)
        refuse_rows_with_gaps(self.table.config, self.table.path)
        df = spark.select(df, [name for name in spark.schema_of(df).names if name not in META_COLUMNS])
        check_fields(spark.schema_of(df), self.table.config)
        state = self._evolved(self.table.read(), spark.schema_of(df))
        data = state.data_schema
        by_value = evolution.by_value(spark.schema_of(df), data)
        needed = {name for name in (*self.table.config.ordering_fields, self.table.config.event_time_field) if name}
        needed |= {field.name for field in data if not field.nullable}
        tight = tight_columns(self.table.storage, self.table.layout, state.timeline, data)
        return self._commit(df, sorted(needed), by_value, operation, clock_ms, batch_id, tight)

    def delete(self, df: Frame, clock_ms: int | None, batch_id: str | None) -> CommitResult:
        self._refuse_other_tables()
        given = spark.schema_of(df).names
        for name in (*self.table.config.record_key, *self.table.config.partition_fields):
            if name not in given:
                raise InvalidInput(
                    f"Deletes need column {name!r}.",
                    where=self.table.path,
                    hint="Give the columns of the record key and of the partition.",
                )
        refuse_ordering_values(self.table.config, given, self.table.path)
        ordering = self.table.config.ordering_field
        wanted = (*self.table.config.record_key, *self.table.config.partition_fields)
        df = spark.select(df, list(dict.fromkeys((*wanted, ordering) if ordering in given else wanted)))
        self._check_types(df)
        by_value = evolution.by_value(spark.schema_of(df), self.table.read().data_schema)
        return self._commit(df, [], by_value, DELETE, clock_ms, batch_id)

    # -- checks before anything is written ----------------------------------------------------------

    def _refuse_marked_rows(self) -> None:
        marker = self.table.config.merging.delete_marker
        if marker is not None:
            raise UnsupportedTable(
                f"A row whose {marker.column} is {marker.value!r} is a delete to Hudi's writers, and a row to ours.",
                where=self.table.path,
                hint="Let Hudi go on writing rows. Deleting, compacting, cleaning and reading here is supported.",
            )

    def _refuse_other_tables(self) -> None:
        config, where = self.table.config, self.table.path
        config.refuse_merge(where)
        if config.keeps_changes:
            raise UnsupportedTable(
                "The table keeps change data (hoodie.table.cdc.enabled=true), which our writer does not write.",
                where=where,
                hint="Let Hudi's writers go on writing it; compacting, cleaning and reading it here is supported.",
            )
        if not config.record_key:
            raise UnsupportedTable(
                "The table names no record key: Hudi's writers make one for each row.",
                where=where,
                hint="Let them go on writing it; compacting, cleaning and reading it here is supported.",
            )

    def _evolved(self, state: TableState, columns: pa.Schema) -> TableState:
        """The table with the schema that these rows give it; `InvalidInput`, by column, where they do not fit."""
        config = self.table.config
        fixed = {*config.record_key, *config.partition_fields, config.ordering_field, config.event_time_field or ""}
        try:
            schema = evolution.evolve(state.avro_schema, columns, fixed)
        except InvalidInput as error:
            raise InvalidInput(error.what, where=self.table.path, hint=error.hint) from error
        return state if schema == state.avro_schema else replace(state, evolved_schema=schema)

    def _check_types(self, df: Frame) -> None:
        try:
            evolution.check_fits(spark.schema_of(df), self.table.read().data_schema)
        except InvalidInput as error:
            raise InvalidInput(error.what, where=self.table.path, hint=error.hint) from error

    def _checked(self, counts: Iterable[RowCount]) -> RowCount:
        """What there is to write; `InvalidInput` where some lack a key, an ordering value, an event time …"""
        total = sum(counts, RowCount())
        for fault, rows in total.faults.items():
            raise InvalidInput(
                f"{rows} of {total.rows} rows have no {fault}.",
                where=self.table.path,
                hint="Filter them out or fill them in; nothing was written.",
            )
        return total

    def _check_index(self, state: TableState) -> None:
        """Refuse to write where a key's bucket would not be the file group that holds it: rows would double."""
        refuse_other_paths(self.table.config.key_generator, self.table.path)
        refuse_writes(state)
        if looks_keys_up(self.table.config):
            return
        groups = [slice_ for slice_ in state.view.latest if slice_.base_file or slice_.log_files]
        if not self.table.config.buckets_given or not groups:
            return
        # Nothing in the table states its bucket count: look at where its own rows are.
        first = groups[0]
        rows, _ = slice_reader(state).read(
            first.base_file.path if first.base_file else None, tuple(log.path for log in first.log_files)
        )
        columns = [_chunk(rows.column(name)) for name in self.table.config.record_key]
        buckets = bucket_ids(columns, self.table.config.buckets or 1, complex_keys=self.table.config.complex_keys)
        if set(buckets.tolist()) - {bucket_of(first.file_id)}:
            raise InvalidInput(
                f"With {self.table.config.buckets} buckets, rows of file group {first.file_id} belong elsewhere.",
                where=self.table.path,
                hint="Give hoodie.bucket.index.num.buckets as the table was written with.",
            )

    def _check_empty(self, state: TableState, groups: frozenset[tuple[str, int]]) -> None:
        """Refuse rows for a file group that holds some: one of a key would be in its base files twice."""
        slices = [slice_ for slice_ in state.view.latest if slice_.base_file or slice_.log_files]
        if looks_keys_up(self.table.config):
            held = {slice_.partition for slice_ in slices}
            full = sorted(partition for partition, _ in groups if partition in held)
            where = f"partition {full[0]!r}" if full else ""
        else:
            filled = {(slice_.partition, bucket_of(slice_.file_id)) for slice_ in slices}
            full = sorted(f"bucket {bucket} of partition {part!r}" for part, bucket in groups & filled)
            where = full[0] if full else ""
        if full:
            raise InvalidInput(
                f"A bulk insert writes into empty file groups, and {where} holds rows ({len(full)} such).",
                where=self.table.path,
                hint="Upsert these rows: then those of a key that is there take the place of the old ones.",
            )

    # -- one delta commit -------------------------------------------------------------------------

    def _commit(
        self,
        df: Frame,
        not_null: Sequence[str],
        by_value: pa.Schema,
        operation: str,
        clock_ms: int | None,
        batch_id: str | None,
        tight: Columns | None = None,
    ) -> CommitResult:
        if self.table.config.buckets is None and not looks_keys_up(self.table.config):
            raise InvalidInput(
                "The table states no bucket count, so its index is unknown.",
                where=self.table.path,
                hint="Write it with the engine that made it; or set hoodie.bucket.index.num.buckets, "
                "or hoodie.index.type where it is SIMPLE or BLOOM.",
            )
        if self.table.config.clock == "commit" and clock_ms is None:
            raise InvalidInput(
                "This table's clock is its commits', and this write states no time.",
                where=self.table.path,
                hint="Give clock_time.",
            )
        self.table.read().refuse_other_zone()
        self.table.check_writable()
        packing = Packing(self.table.config, tuple(not_null), by_value, tight)
        columns = spark.schema_of(df)
        with exchange.packed(df, packing.pack) as rows_once:
            total = self._checked(rows_once.notes)
            action = f"writes a delta commit ({operation})"
            with transaction(self.table, action, wait_s=_LOCK_WAIT_S) as tx:
                return self._locked_commit(rows_once, columns, total, operation, clock_ms, batch_id, tx)

    def _locked_commit(
        self,
        packed_rows: exchange.Packed,
        columns: pa.Schema,
        total: RowCount,
        operation: str,
        clock_ms: int | None,
        batch_id: str | None,
        tx: Transaction,
    ) -> CommitResult:
        state = tx.read()
        done = self.committed_batches(state).get(batch_id) if batch_id is not None else None
        if done is not None or (total.rows == 0 and clock_ms is None):
            return CommitResult(done, 0, 0, 0, None, None)
        if operation != DELETE:
            state = self._evolved(state, columns)
        # Rows written into a group that a clustering or insert overwrite replaces would be lost with it.
        replacing = state.timeline.pending(Action.REPLACE_COMMIT, Action.CLUSTERING)
        for other in (*state.timeline.inflight_writes, *replacing):
            raise Conflict(
                f"{other.action} {other.timestamp} of another writer is unfinished.",
                where=self.table.path,
                hint="Wait for it, or let that writer roll it back.",
            )
        refuse_missing(state)
        self._check_index(state)
        if operation == BULK_INSERT:
            self._check_empty(state, total.groups)
        switch_off(self.table.storage, check_metadata_table(self.table.storage, self.table.config, self.table.layout))
        instant = self.table.publisher.new_instant(state.timeline)
        extra = {WRITER: WRITER_NAME}
        heartbeats = Heartbeats.of(self.table.storage, self.table.config, self.table.now_ms)
        with heartbeats.beating(instant) as beat:
            self.table.publisher.begin_write(instant, CommitMetadata(operation, (), extra))
            published: list[str] = []
            try:
                spec = self._spec(state, instant, clock_ms)
                written = self._run(packed_rows, spec, self._work(state, operation)) if total.rows else []
                self._still_ours(instant, beat, tx)
                publish(self.table.storage, instant, [w.staged for w in written], published)
                self._still_ours(instant, beat, tx)
            except BaseException as error:
                self._abandon(instant, published, error)
                raise
            extra |= {SCHEMA: state.avro_schema, EVENT_TIME: TableTimes(state).tag}
            if clock_ms is not None:
                extra[CLOCK_TIME] = str(clock_ms)
            if batch_id is not None:
                extra[BATCH_ID] = batch_id
            stats = tuple(sorted((w.stat for w in written), key=lambda s: s.path))
            self.table.publisher.commit_write(instant, CommitMetadata(operation, stats, extra))
        return _result(instant, written)

    def _still_ours(self, instant: str, beat: Beat, tx: Transaction) -> None:
        """Raise `Conflict` where another engine took this process for dead and may have taken the write back."""
        tx.check()
        if self.table.config.writers == "locked":
            beat.check()
        inflight = self.table.layout.instant_path(instant, Action.DELTA_COMMIT, State.INFLIGHT)
        if not self.table.storage.exists(inflight):
            raise Conflict(
                "Another engine took this write back.",
                where=f"{self.table.path} {instant}",
                hint="Nothing of it was committed. Write again.",
            )

    def _spec(self, state: TableState, instant: str, clock_ms: int | None) -> WriteSpec:
        column, unit = TableTimes(state).column
        freshness = self.freshness_of(state)
        now = clock_ms if clock_ms is not None else freshness.computed_at
        latency = data_latency_ms(state)
        return WriteSpec(
            storage=self.table.storage,
            config=self.table.config,
            layout=self.table.layout,
            instant=instant,
            schema=state.schema,
            avro_schema=state.avro_schema_with_meta,
            column=column,
            unit=unit,
            targets=_targets(state, instant),
            watermark_ms=None if latency is None else now - latency,
            freshness_ms=freshness.freshness,
            clock_ms=clock_ms,
        )

    def _work(self, state: TableState, operation: str) -> _Work:
        """What a worker does: where the index looks keys up, it finds them first."""
        if looks_keys_up(self.table.config):
            lookup = lookup_of(state)
            found = write_found_deletes if operation == DELETE else write_found_rows
            return lambda spec, batches, token: found(spec, lookup, batches, token)
        if operation == BULK_INSERT:
            bloom = bloom_filter_of(state)
            return lambda spec, batches, token: write_base_rows(spec, bloom, batches, token)
        return write_deletes if operation == DELETE else write_rows

    def _run(self, rows: exchange.Packed, spec: WriteSpec, work: _Work) -> list[Written]:
        results = rows.run(lambda batches, token: work(spec, batches, token))
        return [written for part in results for written in part]

    def _abandon(self, instant: str, published: Iterable[str], error: BaseException) -> None:
        """Take back an unfinished write, unless even that fails: then the next run does it."""
        try:
            for path in published:
                self.table.storage.delete(path)
            self.table.publisher.withdraw_write(instant)
        except (OSError, HudiAssetsError) as second:
            error.add_note(f"The unfinished write {instant} is left for recover: {second}")


def _chunk(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks()


def _targets(state: TableState, instant: str) -> dict[tuple[str, int], Target]:
    targets = {}
    numbers = group_numbers(state) if looks_keys_up(state.config) else {}
    for key in state.view.groups:
        bucket = numbers.get(key, bucket_of(key[1]))
        slice_ = state.view.write_slice(key)
        if bucket is not None and slice_ is not None:
            plan = state.view.pending.get(key)
            # The first version of such a slice is kept for the residue log, which its execution writes.
            first = AFTER_RESIDUE if plan is not None and RESIDUE in plan.extra_metadata else 1
            log_instant, version = state.layout.new_log(slice_, instant)
            targets[(key[0], bucket)] = Target(
                file_id=key[1],
                base_instant=slice_.base_instant,
                log_instant=log_instant,
                next_version=max(first, version),
                base_file=slice_.base_file.name if slice_.base_file else "",
                log_files=tuple(log.name for log in slice_.log_files),
                is_new=False,
            )
    return targets


def _result(instant: str, written: list[Written]) -> CommitResult:
    stats = [w.stat for w in written]
    lows = [s.min_event_time for s in stats if s.min_event_time is not None]
    highs = [s.max_event_time for s in stats if s.max_event_time is not None]
    return CommitResult(
        instant=instant,
        rows=sum(w.stat.num_writes or w.stat.num_deletes if w.rows is None else w.rows for w in written),
        log_files=sum(s.log_version is not None for s in stats),
        base_files=sum(s.log_version is None for s in stats),
        bytes_written=sum(s.size for s in stats),
        min_event_time=min(lows, default=None),
        max_event_time=max(highs, default=None),
        late_records=sum(w.late_records for w in written),
    )
