"""Executing a published compaction plan, and committing it."""

from __future__ import annotations

import functools
import math
import time
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace

from hudi_assets.engine.actions.compaction.residue import ResidueSpec, residue_path
from hudi_assets.engine.actions.compaction.tasks import CompactionSpec, Executed, execute_operation
from hudi_assets.engine.actions.compaction.who_executes import made_untrue
from hudi_assets.engine.actions.writing.delta_commit import WRITER_NAME
from hudi_assets.engine.errors import Conflict, CorruptTable, InvalidInput, LockLost, UnsupportedTable
from hudi_assets.engine.event_time.table_times import TableTimes
from hudi_assets.engine.model import NO_THRESHOLD, Action, CarryOver, CompactionResult, OperationResult, Plan, State
from hudi_assets.engine.model.units import EventTimeUnit
from hudi_assets.engine.queries.query import slice_reader
from hudi_assets.engine.spark import session as spark
from hudi_assets.engine.spark.interface import Frame, Session
from hudi_assets.engine.storage import each
from hudi_assets.engine.table.files.missing import refuse_missing_inputs
from hudi_assets.engine.table.files.origins import origin_of
from hudi_assets.engine.table.index import bloom_filter_of
from hudi_assets.engine.table.layout.names import log_version
from hudi_assets.engine.table.metadata.policy import switch_off
from hudi_assets.engine.table.settings.merging import EXACT_SPLIT
from hudi_assets.engine.table.state import TableState
from hudi_assets.engine.timeline.attempts import publish
from hudi_assets.engine.timeline.carried_over import SYMLINK_OPERATIONS, encode_carried_over
from hudi_assets.engine.timeline.commit_metadata import (
    EVENT_TIME,
    EXECUTION,
    SCHEMA,
    THRESHOLD,
    WRITER,
    CommitMetadata,
    WriteStat,
)
from hudi_assets.engine.timeline.compaction_plan import RESIDUE
from hudi_assets.engine.transaction.heartbeat import Heartbeats
from hudi_assets.engine.transaction.late_log_files import refuse_stragglers
from hudi_assets.engine.transaction.lease import has_leases
from hudi_assets.engine.transaction.lock import EXECUTE, HeldLock, table_lock
from hudi_assets.engine.transaction.open_table import OpenTable
from hudi_assets.engine.transaction.other_executors import begun_by_us, check_still_ours, refuse_other_executor
from hudi_assets.engine.transaction.publish import begun_under
from hudi_assets.engine.transaction.transaction import transaction

_LOCK_WAIT_S = 30.0
_COMMIT_WAIT_S = 600.0


@dataclass(frozen=True)
class CompactionExecutor:
    """Executes the compactions of one table."""

    table: OpenTable

    def execute(self, session: Session[Frame], instant: str) -> CompactionResult:
        started = time.monotonic()
        self.table.config.refuse_merge(f"{self.table.path} {instant}")
        self.table.check_writable()
        action = f"executes compaction {instant}"
        with ExitStack() as held:
            executing = held.enter_context(self._alone(action))
            begun = begun_under(executing.owner)
            # Not between a planner's publishing and its second look, which may withdraw the plan.
            with transaction(self.table, action, recovers=False) as tx:
                state = tx.read()
                if state.timeline.pending(Action.ROLLBACK, Action.RESTORE) or state.guards:
                    # What a crash left is finished first: it may take this very plan back.
                    tx.recover()
                    state = tx.read()
                plan = self._pending_plan(state, instant)
                refuse_stragglers(state, plan)
                refuse_missing_inputs(state, plan)
                self._refuse_residue_in_a_bucket(plan)
                refuse_other_executor(self.table.storage, self.table.layout, self.table.config, instant)
                held.enter_context(self._beating(instant))
                untrue = made_untrue(state, plan)
                self.table.publisher.check_can_complete()
                tx.check()
                switch_off(self.table.storage, untrue)
                self._begin(instant, begun)
            # What a dead executor left: its base files first, then the markers that name them.
            self._delete_base_files(plan)
            self._delete_residue_logs(plan)
            self.table.publisher.forget_markers(instant)
            executed = self._run(session, state, plan)
            self._verify_carried_over(plan)
            shared = self.table.config.writers == "locked" or self.table.publisher.metadata_table is not None
            if shared or self.table.layout.commits_under_lock or has_leases(self.table.storage):
                # Another engine commits under this lock; the metadata table takes one change at a time; and so may
                # the version's timeline. On a store a lock that was lost is noticed so.
                tx = held.enter_context(transaction(self.table, action, wait_s=_COMMIT_WAIT_S, recovers=False))
            refuse_stragglers(self.table.read(), plan)
            check_still_ours(self.table.storage, self.table.layout, instant, (), begun)
            published: list[str] = []
            publish(self.table.storage, instant, [file for done in executed for file in done.staged], published)
            check_still_ours(self.table.storage, self.table.layout, instant, published, begun)
            executing.check()
            tx.check()
            metadata = self._metadata(state, plan, executed)
            if executing.owner:
                metadata = replace(metadata, extra={**metadata.extra, EXECUTION: executing.owner})
            self._commit(instant, metadata, executed, begun)
        return CompactionResult(
            instant=instant,
            threshold=plan.threshold if plan.threshold != NO_THRESHOLD else None,
            operations=self._results(executed),
            seconds=time.monotonic() - started,
        )

    def _refuse_residue_in_a_bucket(self, plan: Plan) -> None:
        """A plan that was made elsewhere, before the table came into a bucket."""
        leaves = RESIDUE in plan.extra_metadata and any(op.carried_over for op in plan.operations)
        if leaves and self.table.layout.late_requests_harm(self.table.storage.capabilities):
            raise UnsupportedTable(
                "The plan carries log files over and may leave residue logs, whose names would occur more than once "
                "in a bucket.",
                where=f"{self.table.path} {plan.instant}",
                hint="Unschedule it and plan again: here plans take whole slices.",
            )

    def _alone(self, action: str) -> AbstractContextManager[HeldLock]:
        """The executors' lock."""
        return table_lock(self.table.storage, EXECUTE, config=self.table.config, wait_s=_LOCK_WAIT_S, action=action)

    def _beating(self, instant: str) -> AbstractContextManager[object]:
        """Signs of life; `Conflict` where another executor gives some although its lease has ended."""
        beats = Heartbeats.of(self.table.storage, self.table.config, self.table.now_ms)
        if has_leases(self.table.storage) and beats.is_alive(instant):
            raise Conflict(
                f"Another process executes compaction {instant}: its last sign of life is young.",
                where=self.table.path,
                hint="Wait for it. Correct the clocks of both machines: the lock's lease has ended for one of them.",
            )
        return beats.beating(instant)

    def _results(self, executed: list[Executed]) -> tuple[OperationResult, ...]:
        if self.table.layout.plan_tells_what_remains:
            return tuple(e.result for e in executed)
        # What the plan left is in the new slice by itself: it is counted there.
        left = {(s.partition, s.file_id): len(s.log_files) for s in self.table.read().view.latest}
        results = (e.result for e in executed)
        return tuple(replace(r, logs_remaining=left.get((r.partition, r.file_id), 0)) for r in results)

    def _begin(self, instant: str, begun: bytes) -> None:
        if begun_by_us(self.table.storage, self.table.layout, instant) is False:
            # A dead attempt of another engine, as its owner says.
            self.table.storage.delete(self.table.layout.instant_path(instant, Action.COMPACTION, State.INFLIGHT))
        self.table.publisher.begin_compaction(instant, begun)

    def _commit(self, instant: str, metadata: CommitMetadata, executed: list[Executed], begun: bytes) -> None:
        try:
            self.table.publisher.commit_compaction(instant, metadata, begun)
        except LockLost:
            raise  # whoever has it now finds what is here
        except Conflict:
            # Another engine executed the plan first: our base files must not stand beside its own.
            state = self.table.read()
            winner = [state.commit(i) for i in state.timeline.completed(Action.COMMIT) if i.timestamp == instant]
            named = {stat.path for commit in winner for stat in commit.stats}
            written = {file.path for done in executed for file in done.staged}
            for path in written - named if winner else ():
                self.table.storage.delete(path)
            raise

    def _pending_plan(self, state: TableState, instant: str) -> Plan:
        if any(i.timestamp == instant for i in state.timeline.completed(Action.COMMIT)):
            raise InvalidInput(
                "This compaction is completed already.",
                where=f"{self.table.path} {instant}",
                hint="There is nothing left to do.",
            )
        plan = next((p for p in state.executable_plans if p.instant == instant), None)
        if plan is None:
            pending = ", ".join(p.instant for p in state.executable_plans) or "none"
            raise InvalidInput(
                "No compaction is pending at this instant.",
                where=f"{self.table.path} {instant}",
                hint=f"Pending: {pending}.",
            )
        self._check_event_time(state, plan)
        return plan

    def _check_event_time(self, state: TableState, plan: Plan) -> None:
        """The ranges that the commit states are believed later as those of the plan's event-time column."""
        planned = plan.extra_metadata.get(EVENT_TIME)
        if planned is not None and planned != TableTimes(state).tag:
            problem = TableTimes(state).unit.problem or f"these settings by {TableTimes(state).tag}"
            raise InvalidInput(
                f"The plan goes by the event times of {planned}, but {problem}.",
                where=f"{self.table.path} {plan.instant}",
                hint="Execute it with the event-time field and unit that it was planned with.",
            )

    def _run(self, session: Session[Frame], state: TableState, plan: Plan) -> list[Executed]:
        # The schema of the plan's instant, not of now: after a restore to between the two its base files still fit.
        past = state.in_schema_of(plan.instant)
        spec = CompactionSpec(
            reader=slice_reader(past),
            layout=self.table.layout,
            instant=plan.instant,
            avro_schema=past.avro_schema_with_meta,
            residue=self._residue(state, plan),
            bloom=bloom_filter_of(state),
            memory=self.table.config.compaction.memory,
            parquet=self.table.config.parquet,
        )
        return spark.run_tasks(session, functools.partial(execute_operation, spec), plan.operations)

    def _residue(self, state: TableState, plan: Plan) -> ResidueSpec | None:
        if RESIDUE not in plan.extra_metadata:
            return None
        column, unit = TableTimes(state).column
        summaries = TableTimes(state).summaries
        by_path = {path: log.path for log in state.remaining_logs for path in (log.original, log.path)}
        lowest: dict[tuple[str, str], int | None] = {}
        for op in plan.operations:
            paths = [by_path.get(carried.made_from) for carried in op.carried_over]
            # Deletes in commit order bring nothing back: a log file of those alone has no smallest event time.
            low = min((summaries[path].lowest if path else -math.inf for path in paths), default=math.inf)
            if low < math.inf:
                lowest[op.partition, op.file_id] = None if low == -math.inf else int(low)
        return ResidueSpec(
            layout=self.table.layout,
            instant=plan.instant,
            avro_schema=state.in_schema_of(plan.instant).avro_schema_with_meta,
            column=column,
            unit=unit,
            by_event_time=self.table.config.ordered_by_event_time and unit is not EventTimeUnit.ISO,
            block_format=self.table.config.log_block_format,
            split_at=plan.threshold if EXACT_SPLIT in plan.extra_metadata else None,
            lowest=lowest,
        )

    def _delete_residue_logs(self, plan: Plan) -> None:
        """Residue logs that an earlier execution published at this instant."""
        if RESIDUE in plan.extra_metadata:
            for op in plan.operations:
                self.table.storage.delete(residue_path(self.table.layout, op, plan.instant))

    def _delete_base_files(self, plan: Plan) -> None:
        """Base files that an earlier execution published at this instant."""
        groups = {(op.partition, op.file_id) for op in plan.operations}
        for partition in {op.partition for op in plan.operations}:
            for file in self.table.storage.list_files(partition):
                base = self.table.layout.parse_base_file(file, partition)
                if base and base.instant == plan.instant and (partition, base.file_id) in groups:
                    self.table.storage.delete(base.path)

    def _verify_carried_over(self, plan: Plan) -> None:
        storage = self.table.storage
        carried = [one for op in plan.operations for one in op.carried_over]
        there = each(storage, storage.exists, [one.link for one in carried])
        gone = next((one for one, is_there in zip(carried, there, strict=True) if not is_there), None)
        if gone is not None:
            raise CorruptTable(
                "A carried-over log file is gone; without it rows would be lost.",
                where=f"{self.table.path}: {gone.link}",
                hint=f"Link it to {gone.made_from} again, then execute the plan again.",
            )

    def _carried_over(self, state: TableState, plan: Plan) -> list[CarryOver]:
        """What the plan carries over, each with its first original: a plan may have been made before it was stated."""
        logs = {log.path: log for log in state.remaining_logs}
        carried = (c for op in plan.operations for c in op.carried_over)
        return [c._replace(target=origin_of(state, logs[c.target])) if c.target in logs else c for c in carried]

    def _metadata(self, state: TableState, plan: Plan, executed: list[Executed]) -> CommitMetadata:
        """Commit metadata: per group a stat for its residue log and each carried-over log, then the base file's last.

        Java's incremental query takes its files from there, and on version 6 the last stat of a group.
        """
        # A table that Hudi's strategies compact may have no event time at all; it carries nothing over.
        known = TableTimes(state).summaries if any(op.carried_over for op in plan.operations) else {}
        by_path = {path: log for log in state.remaining_logs for path in (log.original, log.path)}
        storage, links = self.table.storage, [c.link for op in plan.operations for c in op.carried_over]
        sizes = dict(zip(links, each(storage, storage.size, links), strict=True))
        stats: list[WriteStat] = []
        for op, done in zip(plan.operations, executed, strict=True):
            if done.residue is not None:
                stats.append(done.residue)
            for carried in op.carried_over:
                log = by_path.get(carried.made_from)
                summary = known.get(log.path) if log else None
                stats.append(
                    WriteStat(
                        path=carried.link,
                        partition=op.partition,
                        file_id=op.file_id,
                        prev_commit=op.base_instant,
                        size=sizes[carried.link],
                        num_deletes=(summary.deletes or 0) if summary else 0,
                        min_event_time=summary.min_event_time if summary else None,
                        max_event_time=summary.max_event_time if summary else None,
                        log_version=log_version(carried.link),
                        base_file=done.result.base_file.rsplit("/", 1)[-1],
                    )
                )
            stats.append(done.stat)
        extra = {SCHEMA: state.in_schema_of(plan.instant).avro_schema, WRITER: WRITER_NAME}
        if plan.threshold != NO_THRESHOLD:
            extra[THRESHOLD] = str(plan.threshold)
        if EVENT_TIME in plan.extra_metadata:
            extra[EVENT_TIME] = plan.extra_metadata[EVENT_TIME]
        if carried_over := self._carried_over(state, plan):
            extra[SYMLINK_OPERATIONS] = encode_carried_over(carried_over)
        extra |= {mark: plan.extra_metadata[mark] for mark in (RESIDUE, EXACT_SPLIT) if mark in plan.extra_metadata}
        return CommitMetadata("COMPACT", tuple(stats), extra, compacted=True)
