"""Restoring a savepoint: every later write, compaction and plan is rolled back, the newest first.

As org.apache.hudi.table.action.restore.BaseRestoreActionExecutor (0.15): `.restore.requested` names the instants,
`.restore.inflight`, one rollback each, `.restore`, and then the rollbacks of what is no longer there leave
the timeline. Whatever a crash leaves is a table as at one of the instants in between, and the restore goes
on from the plan; until then nobody writes.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hudi_assets.engine.errors import Conflict, UnsupportedTable
from hudi_assets.engine.model import Action, Instant, State
from hudi_assets.engine.table.state import TableState
from hudi_assets.engine.timeline.rollback_metadata import (
    InstantInfo,
    RestorePlan,
    decode_restore_plan,
    decode_rollback_metadata,
    encode_restore_metadata,
    encode_restore_plan,
)
from hudi_assets.engine.transaction.open_table import OpenTable
from hudi_assets.engine.transaction.rollback import RollbackExecutor, arrived_late, withdraw_late
from hudi_assets.engine.transaction.rollback_plan import (
    files_of_slice,
    plan_attempt_rollback,
    plan_compaction_rollback,
    plan_write_rollback,
)

RESTORED = (Action.DELTA_COMMIT, Action.COMMIT, Action.COMPACTION, Action.REPLACE_COMMIT, Action.LOG_COMPACTION)


@dataclass(frozen=True, slots=True)
class RestoreResult:
    """A completed restore: the savepoint's instant, the restore's own, and what was rolled back, newest first."""

    savepoint: str
    restore: str
    instants: tuple[str, ...]


def plan_restore(state: TableState, savepoint: str) -> RestorePlan:
    """What has to be rolled back, newest first. Refuses a log compaction by name."""
    later = [i for i in state.timeline.instants if i.timestamp > savepoint and i.action in RESTORED]
    for instant in later:
        requested = state.layout.instant_path(instant.timestamp, Action.LOG_COMPACTION, State.REQUESTED)
        if instant.action is Action.LOG_COMPACTION or state.storage.exists(requested):
            raise UnsupportedTable(
                f"Log compaction {instant.timestamp} is later than the savepoint and cannot be rolled back here.",
                where=state.storage.base,
                hint="Restore with the engine that wrote it.",
            )
    return RestorePlan(savepoint, tuple(InstantInfo(i.timestamp, i.action) for i in reversed(later)))


@dataclass(frozen=True)
class RestoreExecutor:
    """Publishes and executes restores of one table. The caller holds the locks."""

    table: OpenTable

    def publish(self, plan: RestorePlan) -> str:
        instant = self.table.publisher.new_instant(self.table.read().timeline)
        path = self.table.layout.instant_path(instant, Action.RESTORE, State.REQUESTED)
        self.table.publisher.announce(path, encode_restore_plan(plan))
        return instant

    def execute(self, instant: str, plan: RestorePlan) -> RestoreResult:
        """Do what a published plan says, from wherever an earlier attempt stopped."""
        started = time.monotonic()
        inflight = self.table.layout.instant_path(instant, Action.RESTORE, State.INFLIGHT)
        if not self.table.storage.exists(inflight):
            self.table.storage.create(inflight, b"")
        for one in plan.instants:
            self._roll_back(one)
        state = self.table.read()
        rollbacks = [i for i in state.timeline.completed(Action.ROLLBACK) if i.timestamp > plan.savepoint]
        taken_ms = round((time.monotonic() - started) * 1000)
        metadata = encode_restore_metadata(instant, plan, self._done(plan, rollbacks), taken_ms)
        self.table.publisher.complete(instant, Action.RESTORE, metadata)
        for rollback in rollbacks:
            self._forget(rollback)
        return RestoreResult(plan.savepoint, instant, tuple(one.timestamp for one in plan.instants))

    def _roll_back(self, one: InstantInfo) -> None:
        """Roll one instant back, if an earlier attempt has not."""
        state = self.table.read()
        found = [i for i in state.timeline.instants if i.timestamp == one.timestamp and i.action in RESTORED]
        if not found:
            return
        target = found[0]
        executor = RollbackExecutor(self.table)
        if target.action is Action.COMPACTION and not target.is_completed:
            self._withdraw(executor, state, target)
            return
        whole = target.action is Action.COMMIT and target.is_completed
        plan = plan_compaction_rollback(state, target) if whole else plan_write_rollback(state, target)
        executor.execute(executor.publish(state, plan), plan)

    @staticmethod
    def _withdraw(executor: RollbackExecutor, state: TableState, target: Instant) -> None:
        """Take a pending compaction back: its attempt, then its plan with every log file in its slices."""
        compaction = state.plan(target.timestamp)
        if target.state is State.INFLIGHT and compaction is not None:
            plan = plan_attempt_rollback(state, target, compaction)
            executor.execute(executor.publish(state, plan), plan)
        attempt = {file.path for file in files_of_slice(state, target.timestamp)}
        executor.withdraw_plan(target.timestamp, sorted(attempt))

    def _done(self, plan: RestorePlan, rollbacks: list[Instant]) -> Mapping[str, Mapping[str, Any]]:
        """Instant → the metadata of its rollback. A plan that was withdrawn unexecuted has none."""
        wanted = {one.timestamp for one in plan.instants}
        done: dict[str, Mapping[str, Any]] = {}
        for rollback in rollbacks:
            path = f"{self.table.layout.timeline_folder}/{rollback.file_name}"
            record = decode_rollback_metadata(self.table.storage.read(path), f"{self.table.path}: {path}")
            done |= {timestamp: record for timestamp in record["commitsRollback"] if timestamp in wanted}
        return done

    def _forget(self, rollback: Instant) -> None:
        # The completed file last: without it a rollback counts as pending.
        for state in (State.REQUESTED, State.INFLIGHT):
            self.table.storage.delete(self.table.layout.instant_path(rollback.timestamp, Action.ROLLBACK, state))
        self.table.storage.delete(f"{self.table.layout.timeline_folder}/{rollback.file_name}")


def finish_restores(table: OpenTable, state: TableState) -> tuple[str, ...]:
    """Go on with a restore of ours that a crash left; what was done, a sentence each.

    Raises `Conflict` for another engine's: the table is in between, and only that engine knows how to go on.
    """
    executor = RestoreExecutor(table)
    done = []
    for instant in state.timeline.pending(Action.RESTORE):
        path = state.layout.instant_path(instant.timestamp, Action.RESTORE, State.REQUESTED)
        plan = decode_restore_plan(state.storage.read(path), f"{state.storage.base}: {path}")
        if plan.ours and arrived_late(state, instant):
            done.append(withdraw_late(state, instant))
            continue
        if not plan.ours:
            raise Conflict(
                f"Restore {instant.timestamp} to {plan.savepoint} is another engine's and unfinished.",
                where=state.storage.base,
                hint="Let that engine finish it before anything is written.",
            )
        executor.execute(instant.timestamp, plan)
        done.append(f"finished the restore of savepoint {plan.savepoint}")
    return tuple(done)
