"""The order of things in a compaction: choose, publish, execute, commit."""

from __future__ import annotations

import functools
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from . import spark, strategy
from .commit_metadata import EVENT_TIME, SCHEMA, THRESHOLD, WRITER, CommitMetadata, WriteStat
from .config import WRITERS, TableConfig
from .errors import Conflict, CorruptTable, InvalidInput
from .event_time import EventTimeUnit
from .execute import CompactionSpec, Executed, execute_operation
from .file_view import Layout
from .lock import EXECUTE, table_lock, write_lock
from .model import NO_THRESHOLD, Action, CompactionResult, NoPlan, Plan
from .publish import Publisher
from .query import slice_reader
from .recover import clean_up
from .state import TableState, refuse_other_indexes
from .storage import Storage
from .timeline import format_instant, instant_ms
from .writer import WRITER_NAME

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOCK_WAIT_S = 30.0


@dataclass(frozen=True)
class Compactor:
    """Plans and executes compactions of one table."""

    storage: Storage
    config: TableConfig
    layout: Layout
    publisher: Publisher

    def _state(self) -> TableState:
        return TableState.read(self.storage, self.config, self.layout, self.publisher.now_ms)

    # -- planning ---------------------------------------------------------------------------------

    def plan(self, threshold: int, *, dry_run: bool) -> Plan | NoPlan:
        """Choose at `threshold` (epoch ms) and, unless it is a dry run, publish."""
        if self.config.writers is None:
            raise InvalidInput(
                "Nothing says how other engines write this table.",
                where=self.storage.base,
                hint=f"State it: {WRITERS}=stopped (nobody writes meanwhile) or locked (every writer takes "
                "the table's lock); on the command line --writers.",
            )
        if dry_run:
            return self._choose(self._state(), threshold)[0]
        self.storage.check_writable()
        with write_lock(self.storage, self.config, wait_s=_LOCK_WAIT_S):
            state = self._state()
            clean_up(self.storage, self.layout, self.publisher, state)
            chosen, guard = self._choose(self._state(), threshold)
            if isinstance(chosen, Plan):
                self.publisher.wait_for(chosen.instant)
                still_alone = functools.partial(self._still_alone, chosen)
                self.publisher.publish_plan(chosen, guard, self.config.carry_over, still_alone)
            return chosen

    def _choose(self, state: TableState, threshold: int) -> tuple[Plan | NoPlan, str]:
        """The plan or the reason for none, and the instant that guards its links."""
        refuse_other_indexes(state)
        _, unit = state.event_time_column  # refuses a missing or mistyped field before anything else
        # A guard that is left is a dead planner's: planning removes it, so it is no reason to wait.
        reason = strategy.trigger(state.timeline, ignore=state.guards)
        if reason is not None:
            return reason, ""
        guard = self.publisher.new_instant(state.timeline)
        after = format_instant(instant_ms(guard, self.config.timezone) + 1, self.config.timezone)
        chosen = strategy.plan(
            state.view,
            state.summaries,
            instant=after,
            threshold=threshold,
            # Text in ISO form does not sort as the times do.
            ordered_by_event_time=self.config.ordered_by_event_time and unit is not EventTimeUnit.ISO,
            carry_over=self.layout.carry_over,
            extra_metadata={WRITER: WRITER_NAME, EVENT_TIME: state.event_time_tag},
        )
        return chosen, guard

    def _still_alone(self, plan: Plan) -> str | None:
        """Look again after publishing: has another service or write appeared beside the plan?"""
        state = self._state()
        timeline, own = state.timeline, state.guards | {plan.instant}
        others = [i for i in timeline.pending_services if i.timestamp not in own]
        if others:
            return f"{others[0].action} {others[0].timestamp} appeared beside it"
        older = [i for i in timeline.inflight_writes if i.timestamp < plan.instant]
        if older:
            return f"{older[0].action} {older[0].timestamp} started before it and is unfinished"
        return None

    # -- executing --------------------------------------------------------------------------------

    def execute(self, session: SparkSession, instant: str) -> CompactionResult:
        started = time.monotonic()
        self.storage.check_writable()
        with table_lock(self.storage, EXECUTE, wait_s=_LOCK_WAIT_S):
            # Not between a planner's publishing and its second look, which may withdraw the plan.
            with write_lock(self.storage, self.config, wait_s=_LOCK_WAIT_S):
                state = self._state()
                plan = self._pending_plan(state, instant)
                self.publisher.begin_compaction(instant)
            # What a dead executor left: its base files first, then the markers that name them.
            self._delete_base_files(plan, keep=frozenset())
            self.publisher.forget_markers(instant)
            executed = self._run(session, state, plan)
            self._delete_base_files(plan, keep=frozenset(e.result.base_file for e in executed))
            self._verify_carried_over(plan)
            self._commit(instant, self._metadata(state, plan, executed), executed)
        return CompactionResult(
            instant=instant,
            threshold=plan.threshold if plan.threshold != NO_THRESHOLD else None,
            operations=tuple(e.result for e in executed),
            seconds=time.monotonic() - started,
        )

    def _commit(self, instant: str, metadata: CommitMetadata, executed: list[Executed]) -> None:
        try:
            self.publisher.commit_compaction(instant, metadata)
        except Conflict:
            # Another engine executed the plan first: our base files must not stand beside its own.
            state = self._state()
            winner = [state.commit(i) for i in state.timeline.completed(Action.COMMIT) if i.timestamp == instant]
            named = {stat.path for commit in winner for stat in commit.stats}
            for path in {done.result.base_file for done in executed} - named if winner else ():
                self.storage.delete(path)
            raise

    def _pending_plan(self, state: TableState, instant: str) -> Plan:
        if any(i.timestamp == instant for i in state.timeline.completed(Action.COMMIT)):
            raise InvalidInput("This compaction is completed already.", where=f"{self.storage.base} {instant}")
        plan = next((p for p in state.executable_plans if p.instant == instant), None)
        if plan is None:
            pending = ", ".join(p.instant for p in state.executable_plans) or "none"
            raise InvalidInput(
                "No compaction is pending at this instant.",
                where=f"{self.storage.base} {instant}",
                hint=f"Pending: {pending}.",
            )
        return plan

    def _run(self, session: SparkSession, state: TableState, plan: Plan) -> list[Executed]:
        spec = CompactionSpec(
            reader=slice_reader(state),
            layout=self.layout,
            instant=plan.instant,
            avro_schema=state.avro_schema_with_meta,
        )
        return spark.run_tasks(session, functools.partial(execute_operation, spec), plan.operations)

    def _delete_base_files(self, plan: Plan, keep: frozenset[str]) -> None:
        """Base files that an earlier attempt, or a failed task, wrote at this instant."""
        groups = {(op.partition, op.file_id) for op in plan.operations}
        for partition in {op.partition for op in plan.operations}:
            for file in self.storage.list_files(partition):
                base = self.layout.parse_base_file(file, partition)
                if base is None or base.instant != plan.instant or base.path in keep:
                    continue
                if (partition, base.file_id) in groups:
                    self.storage.delete(base.path)

    def _verify_carried_over(self, plan: Plan) -> None:
        for op in plan.operations:
            for carried in op.carried_over:
                if not self.storage.exists(carried.link):
                    raise CorruptTable(
                        "A carried-over log file is gone; without it rows would be lost.",
                        where=f"{self.storage.base}: {carried.link}",
                        hint=f"Link it to {carried.target} again, then execute the plan again.",
                    )

    def _metadata(self, state: TableState, plan: Plan, executed: list[Executed]) -> CommitMetadata:
        """Commit metadata: per group a stat for each carried-over log, then the base file's last.

        Java's incremental query takes its files from there, and on version 6 the last stat of a group.
        """
        known = state.summaries
        by_path = {path: log for log in state.remaining_logs for path in (log.original, log.path)}
        stats: list[WriteStat] = []
        for op, done in zip(plan.operations, executed, strict=True):
            for version, carried in enumerate(op.carried_over, start=1):
                log = by_path.get(carried.target)
                summary = known.get(log.path) if log else None
                stats.append(
                    WriteStat(
                        path=carried.link,
                        partition=op.partition,
                        file_id=op.file_id,
                        prev_commit=op.base_instant,
                        size=self.storage.size(carried.link),
                        num_deletes=(summary.deletes or 0) if summary else 0,
                        min_event_time=summary.min_event_time if summary else None,
                        max_event_time=summary.max_event_time if summary else None,
                        log_version=version,
                        base_file=done.result.base_file.rsplit("/", 1)[-1],
                    )
                )
            stats.append(replace(done.stat))
        extra = {SCHEMA: state.avro_schema, WRITER: WRITER_NAME}
        if plan.threshold != NO_THRESHOLD:
            extra[THRESHOLD] = str(plan.threshold)
        if EVENT_TIME in plan.extra_metadata:
            extra[EVENT_TIME] = plan.extra_metadata[EVENT_TIME]
        return CommitMetadata("COMPACT", tuple(stats), extra, compacted=True)
