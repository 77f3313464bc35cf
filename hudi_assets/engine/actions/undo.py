"""Rollback, unschedule and restore as they are asked for: the locks, what is refused and why, then the doing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass

from hudi_assets.engine.errors import Conflict, CorruptTable, InvalidInput
from hudi_assets.engine.model import Action, Instant, Plan, State
from hudi_assets.engine.table.files.cleaned import read_savepoints
from hudi_assets.engine.table.files.hidden import all_hidden_files
from hudi_assets.engine.table.files.past import whole_from
from hudi_assets.engine.table.metadata.policy import check_undo, switch_off
from hudi_assets.engine.table.settings.config import WRITERS
from hudi_assets.engine.table.state import TableState
from hudi_assets.engine.timeline.instants import WRITES, is_instant
from hudi_assets.engine.timeline.markers import TEMP
from hudi_assets.engine.timeline.rollback_metadata import RollbackPlan
from hudi_assets.engine.transaction import flink_job
from hudi_assets.engine.transaction.clean import finish_cleans
from hudi_assets.engine.transaction.heartbeat import Heartbeats
from hudi_assets.engine.transaction.open_table import OpenTable
from hudi_assets.engine.transaction.restore import RESTORED, RestoreExecutor, RestoreResult, plan_restore
from hudi_assets.engine.transaction.rollback import RollbackExecutor, RollbackResult, arrived_late
from hudi_assets.engine.transaction.rollback_plan import (
    appended_logs,
    block_instants,
    files_of_slice,
    is_ours,
    plan_attempt_rollback,
    plan_compaction_rollback,
    plan_write_rollback,
)
from hudi_assets.engine.transaction.transaction import Transaction, transaction

_WRITE_WAIT_S = 60.0
_COMPACTIONS = (Action.COMMIT, Action.COMPACTION)


@dataclass(frozen=True)
class Undo:
    """Takes things back from one table."""

    table: OpenTable

    @property
    def _executor(self) -> RollbackExecutor:
        return RollbackExecutor(self.table)

    def _refuse(self, what: str, hint: str, instant: str = "") -> InvalidInput:
        return InvalidInput(what, where=f"{self.table.path} {instant}".rstrip(), hint=hint)

    def _transaction(self, action: str, *, beside_executors: bool = False) -> AbstractContextManager[Transaction]:
        return transaction(
            self.table,
            action,
            wait_s=_WRITE_WAIT_S,
            beside_executors=beside_executors,
            needs_stated_writers=True,
            recovers=False,
        )

    # -- rollback ---------------------------------------------------------------------------------

    def rollback(self, instant: str) -> RollbackResult:
        """Take back the newest write, an unfinished one, or a compaction's attempt.

        Raises `InvalidInput`, naming it, where something later builds on the instant.
        """
        target = self._target(self.table.read(), instant)
        with self._transaction(f"rolls {instant} back", beside_executors=target.action not in _COMPACTIONS) as tx:
            done = self._finish_pending(instant)
            if done is not None:
                return done
            tx.recover(spare=instant)
            state = tx.read()
            target = self._target(state, instant)
            plan = self._plan_rollback(state, target)
            untrue = check_undo(self.table.storage, self.table.config, self.table.layout, [target])
            tx.check()
            switch_off(self.table.storage, untrue)
            return self._executor.execute(self._executor.publish(state, plan), plan)

    def _target(self, state: TableState, instant: str) -> Instant:
        if not is_instant(instant):
            raise self._refuse(f"{instant!r} is no instant.", "Instants have 17 digits.")
        found = [i for i in state.timeline.instants if i.timestamp == instant and i.action in RESTORED]
        if not found or instant in state.guards:
            if state.timeline.start is not None and instant < state.timeline.start:
                raise self._refuse(
                    "The instant is archived: it cannot be rolled back.", "Restore a savepoint.", instant
                )
            newest = state.timeline.last_write or "none"
            raise self._refuse("No write or compaction has this instant.", f"The newest write: {newest}.", instant)
        target = found[0]
        if target.action not in (Action.DELTA_COMMIT, *_COMPACTIONS):
            raise self._refuse(
                f"A {target.action} is not rolled back here.",
                "Restore a savepoint, or use the engine that wrote it.",
                instant,
            )
        return target

    def _finish_pending(self, instant: str) -> RollbackResult | None:
        """Finish a rollback of the instant that was begun: ours, or another engine's that is stopped."""
        state = self.table.read()
        for rollback in state.timeline.pending(Action.ROLLBACK):
            plan = self._executor.read_plan(rollback.timestamp)
            if plan.ours and arrived_late(state, rollback):
                continue
            if plan.target.timestamp == instant and (plan.ours or self.table.config.writers == "stopped"):
                return self._executor.execute(rollback.timestamp, plan)
        return None

    def _plan_rollback(self, state: TableState, target: Instant) -> RollbackPlan:
        if any(i.timestamp == target.timestamp for i in state.timeline.completed(Action.SAVEPOINT)):
            raise self._refuse("The instant has a savepoint.", "Delete the savepoint first.", target.timestamp)
        if target.is_completed:
            self._check_not_last(state, target)
        if target.action is Action.DELTA_COMMIT:
            return self._plan_write(state, target)
        if target.is_completed:
            return self._plan_compaction(state, target)
        return self._plan_attempt(state, target)

    def _plan_write(self, state: TableState, target: Instant) -> RollbackPlan:
        if target.is_completed:
            self._check_newest(state, target)
        elif not is_ours(state, target):
            self._check_dead(target)
            self._check_flink_needs_it_not(state, target)
        plan = plan_write_rollback(state, target)
        self._check_unplanned(state, target, plan)
        return plan

    def _check_unplanned(self, state: TableState, target: Instant, plan: RollbackPlan) -> None:
        """No pending compaction reads what goes."""
        taken = {path for request in plan.requests for path in (*request.files, *request.log_blocks)}
        for pending in state.executable_plans:
            read = (
                (op.base_file, *op.log_files, *(path for c in op.carried_over for path in (c.target, c.made_from)))
                for op in pending.operations
            )
            used = taken & {path for paths in read for path in paths if path}
            if used:
                raise self._refuse(
                    f"Compaction {pending.instant} is planned with its file {min(used)}.",
                    f"Unschedule {pending.instant} first.",
                    target.timestamp,
                )

    def _check_not_last(self, state: TableState, target: Instant) -> None:
        """What was archived counts because it lies before the first write there is: one has to stay."""
        if whole_from(state) and not [i for i in state.timeline.completed(*WRITES) if i != target]:
            raise self._refuse(
                "It is the only write that is not archived; without it the archived ones would not count.",
                "Write the earlier values again instead, or restore a savepoint.",
                target.timestamp,
            )

    def _check_newest(self, state: TableState, target: Instant) -> None:
        """BaseRollbackActionExecutor.validateRollbackCommitSequence: nothing later may build on it."""
        self._check_unseen(state, target)
        later = [i for i in state.timeline.completed(*WRITES) if self._may_build_on(target, i)]
        if later:
            compacted = any(i.action is Action.COMMIT for i in later)
            hint = f"Roll {later[-1].timestamp} back first"
            raise self._refuse(
                f"{later[-1].action} {later[-1].timestamp} is later"
                + (" and may have merged or carried over its log files." if compacted else "."),
                f"{hint}, or restore a savepoint.",
                target.timestamp,
            )
        others = (
            *state.timeline.inflight_writes,
            *state.timeline.pending(Action.REPLACE_COMMIT, Action.LOG_COMPACTION),
        )
        for other in others:
            if self._may_build_on(target, other):
                raise Conflict(
                    f"{other.action} {other.timestamp} is later and unfinished.",
                    where=f"{self.table.path} {target.timestamp}",
                    hint="Wait for it, or roll it back first.",
                )

    def _check_unseen(self, state: TableState, target: Instant) -> None:
        """An earlier instant may have grown the target's base file: nobody sees that until the target is gone."""
        for one in all_hidden_files(state):
            if one.holds_behind and one.behind == target:
                raise self._refuse(
                    f"{one.delta_commit.action} {one.delta_commit.timestamp} is earlier and made a base file of what "
                    "it wrote: that one would be in view, with its rows.",
                    "Restore a savepoint of before both.",
                    target.timestamp,
                )

    def _may_build_on(self, target: Instant, other: Instant) -> bool:
        """A later write, compaction or replacecommit may have read what the target wrote, or written into its slices.

        Where they do not append to its slices, delta commits after a compaction's instant are as they were without it.
        """
        delta_after_compaction = target.action is Action.COMMIT and other.action is Action.DELTA_COMMIT
        independent = delta_after_compaction and not self.table.layout.appends_to_planned_slice
        return other.timestamp > target.timestamp and not independent

    def _check_nothing_appended(self, state: TableState, plan: Plan, whose: str, hint: str) -> None:
        """Commits that wrote to a plan's slices would go with them; a plan ahead of the writers' clock has such too."""
        if not self.table.layout.appends_to_planned_slice:
            return  # log files are of their own commits, not of the slice's
        for log in appended_logs(state, plan):
            committed = [i for i in block_instants(self.table.storage, log) if i in state.committed]
            if committed:
                raise self._refuse(
                    f"Commit {min(committed)} wrote to the {whose}'s slice: {log.path}.", hint, plan.instant
                )

    def _check_dead(self, target: Instant) -> None:
        """Another engine's unfinished write may be alive: only its owner's word, and no heartbeat, say otherwise."""
        beating = Heartbeats.of(self.table.storage, self.table.config, self.table.now_ms).is_alive(target.timestamp)
        if self.table.config.writers != "stopped" or beating:
            raise Conflict(
                f"{target.action} {target.timestamp} is another engine's and may still be running.",
                where=self.table.path,
                hint=f"Let that engine roll it back; or stop it and state {WRITERS}=stopped.",
            )

    def _check_flink_needs_it_not(self, state: TableState, target: Instant) -> None:
        """It may hold a checkpoint of a Flink job, which commits that when it starts again, or fails at each start."""
        if flink_job.may_commit(state, target):
            left = flink_job.traces(self.table.storage)
            raise self._refuse(
                "A Flink job may have made a checkpoint of this write. It commits it when it starts again, and what "
                "was rolled back cannot be committed.",
                "Start the job again: it commits the write or takes it back. If it never will start from a checkpoint "
                f"again, delete {', '.join(left)}.",
                target.timestamp,
            )

    def _plan_attempt(self, state: TableState, target: Instant) -> RollbackPlan:
        compaction = state.plan(target.timestamp)
        if compaction is None or target.state is not State.INFLIGHT:
            raise self._refuse(
                "The compaction is planned and not begun: there is nothing to roll back.",
                "To withdraw the plan, unschedule it.",
                target.timestamp,
            )
        self._check_executor_dead(target)
        return plan_attempt_rollback(state, target, compaction)

    def _check_executor_dead(self, target: Instant) -> None:
        # Our own executors hold the lock that we have; Hudi's leave this file for as long as they run.
        if self.table.config.writers != "stopped" and self.table.storage.exists(
            f"{TEMP}/{target.timestamp}/MARKERS.type"
        ):
            raise Conflict(
                f"Compaction {target.timestamp} is being executed by another engine.",
                where=self.table.path,
                hint=f"Wait for it; or stop that engine and state {WRITERS}=stopped.",
            )

    def _plan_compaction(self, state: TableState, target: Instant) -> RollbackPlan:
        """A completed compaction: only the newest write, and only where what it read is still there."""
        self._check_newest(state, target)
        compaction = state.plan(target.timestamp)
        if compaction is None:
            raise self._refuse("The compaction's plan is gone.", "Restore a savepoint.", target.timestamp)
        for op in compaction.operations:
            # The old slice's own files: what they were made from first may be cleaned.
            inputs = (op.base_file, *op.log_files, *(c.made_from for c in op.carried_over))
            for path in inputs:
                if path and not self.table.storage.exists(path):
                    raise self._refuse(
                        f"What the compaction read was cleaned since: {path}.", "Restore a savepoint.", target.timestamp
                    )
        would_be_lost = "Its rows would be lost; restore a savepoint instead."
        self._check_nothing_appended(state, compaction, "compaction", would_be_lost)
        plan = plan_compaction_rollback(state, target)
        self._check_unplanned(state, target, plan)
        for savepoint in read_savepoints(state):
            if named := set(savepoint.files).intersection(plan.files):
                raise self._refuse(
                    f"Savepoint {savepoint.instant} names its file {min(named)}.",
                    "Delete the savepoint first, or restore it.",
                    target.timestamp,
                )
        return plan

    # -- unschedule -------------------------------------------------------------------------------

    def unschedule(self, instant: str) -> None:
        """Withdraw a pending compaction plan, its attempt and its carried-over logs with it."""
        with self._transaction(f"unschedules {instant}") as tx:
            tx.recover()
            state = tx.read()
            plan = self._pending_plan(state, instant)
            self._check_unscheduled(state, plan)
            target = next(i for i in state.timeline.pending_compactions if i.timestamp == instant)
            tx.check()
            if target.state is State.INFLIGHT:
                self._check_executor_dead(target)
                attempt = plan_attempt_rollback(state, target, plan)
                self._executor.execute(self._executor.publish(state, attempt), attempt)
            self._executor.withdraw_plan(instant, sorted(file.path for file in files_of_slice(state, instant)))

    def _pending_plan(self, state: TableState, instant: str) -> Plan:
        plan = next((p for p in state.executable_plans if p.instant == instant), None)
        if plan is None:
            pending = ", ".join(p.instant for p in state.executable_plans) or "none"
            raise self._refuse("No compaction is pending at this instant.", f"Pending: {pending}.", instant)
        return plan

    def _check_unscheduled(self, state: TableState, plan: Plan) -> None:
        if not plan.is_ours and self.table.config.writers != "stopped":
            raise Conflict(
                "The plan is another engine's, which may execute it now.",
                where=f"{self.table.path} {plan.instant}",
                hint=f"Stop that engine and state {WRITERS}=stopped.",
            )
        if not self.table.layout.appends_to_planned_slice:
            return  # log files are of their own commits: without the plan they are in the old slice again
        for other in state.timeline.inflight_writes:
            raise Conflict(
                f"{other.action} {other.timestamp} is unfinished and may write into the plan's slices.",
                where=f"{self.table.path} {plan.instant}",
                hint="Wait for it, or roll it back first.",
            )
        would_be_lost = "Execute the plan; without it those rows would be lost."
        self._check_nothing_appended(state, plan, "plan", would_be_lost)

    # -- restore ----------------------------------------------------------------------------------

    def restore(self, savepoint: str) -> RestoreResult:
        """Make the table what it was at a savepoint."""
        with self._transaction(f"restores {savepoint}") as tx:
            tx.recover()
            finish_cleans(self.table, tx.read())
            state = tx.read()
            self._check_savepoint(state, savepoint)
            executor = RestoreExecutor(self.table)
            plan = plan_restore(state, savepoint)
            later = [i for i in state.timeline.instants if i.timestamp > savepoint]
            untrue = check_undo(self.table.storage, self.table.config, self.table.layout, later)
            tx.check()
            switch_off(self.table.storage, untrue)
            return executor.execute(executor.publish(plan), plan)

    def _check_savepoint(self, state: TableState, savepoint: str) -> None:
        timeline = state.timeline
        known = [i.timestamp for i in timeline.completed(Action.SAVEPOINT)]
        if savepoint not in known:
            raise self._refuse("There is no such savepoint.", f"There are: {', '.join(known) or 'none'}.", savepoint)
        if savepoint not in {i.timestamp for i in timeline.completed(*WRITES)}:
            raise self._refuse("The savepoint's commit is archived.", "Restore with Hudi.", savepoint)
        later = [one for one in known if one > savepoint]
        if later:
            raise self._refuse(
                f"Later savepoints protect what would be rolled back: {', '.join(later)}.",
                "Delete them first.",
                savepoint,
            )
        for clean in timeline.pending(Action.CLEAN):
            raise Conflict(f"Clean {clean.timestamp} is unfinished.", where=self.table.path, hint="Finish it first.")
        for write in (*timeline.inflight_writes, *timeline.pending(Action.REPLACE_COMMIT)):
            ours = write.action is Action.DELTA_COMMIT and is_ours(state, write)
            if write.timestamp > savepoint and not ours:
                self._check_dead(write)
        for compaction in timeline.pending_compactions:
            if compaction.timestamp > savepoint and compaction.state is State.INFLIGHT:
                self._check_executor_dead(compaction)
        for one in all_hidden_files(state):
            if one.holds_behind and one.delta_commit.timestamp <= savepoint < one.behind.timestamp:
                raise self._refuse(
                    f"{one.delta_commit.action} {one.delta_commit.timestamp} is not later, and made a base file of "
                    f"what {one.behind.timestamp} wrote: that one would be in view, with its rows.",
                    "Restore a savepoint of before both.",
                    savepoint,
                )
        for path in _needed(state, savepoint):
            if not self.table.storage.exists(path):
                raise CorruptTable("A file that the savepoint names is missing.", where=f"{self.table.path}: {path}")


def _needed(state: TableState, savepoint: str) -> Iterator[str]:
    """Files that the table as at a savepoint needs for sure.

    A savepoint names its slices whole, with log files of later commits that an earlier restore may have removed.
    """
    named = {path for one in read_savepoints(state) if one.instant == savepoint for path in one.files}
    commits = (i for i in state.timeline.completed(*WRITES) if i.timestamp <= savepoint)
    written = {stat.path for instant in commits for stat in state.commit(instant).stats}
    for path in sorted(named):
        if path.endswith(".parquet") or path in written:
            yield path
