"""What keeps a table in order: compactions, what takes instants back, cleaning and archiving."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from hudi_assets.engine.actions.archiving.archive import Archiver, ArchiveResult
from hudi_assets.engine.actions.cleaning.clean import Cleaner
from hudi_assets.engine.actions.compaction.cost import CostPoint
from hudi_assets.engine.actions.compaction.executor import CompactionExecutor
from hudi_assets.engine.actions.compaction.hudi_executor import HudiExecutor
from hudi_assets.engine.actions.compaction.other_engines import refuse_short_query_time
from hudi_assets.engine.actions.compaction.planning import CompactionPlanner
from hudi_assets.engine.actions.compaction.series import CompactionSeries, run_series
from hudi_assets.engine.actions.compaction.threshold import choose_threshold, is_due
from hudi_assets.engine.actions.compaction.who_executes import refuse_execution
from hudi_assets.engine.actions.recover import recover
from hudi_assets.engine.actions.savepoint import Savepoints
from hudi_assets.engine.actions.undo import Undo
from hudi_assets.engine.errors import HudiAssetsError, InvalidInput
from hudi_assets.engine.hudi_table.opened import OpenedTable
from hudi_assets.engine.model import Bill, CompactionResult, NoPlan, NothingToDo, Plan
from hudi_assets.engine.model.units import Latency, Time
from hudi_assets.engine.past.bills import bill_of
from hudi_assets.engine.spark import session as spark_session
from hudi_assets.engine.spark.interface import Frame, Session
from hudi_assets.engine.table.settings.config import HUDI
from hudi_assets.engine.transaction.clean import CleanResult
from hudi_assets.engine.transaction.leftovers import leftovers
from hudi_assets.engine.transaction.restore import RestoreResult
from hudi_assets.engine.transaction.rollback import RollbackResult
from hudi_assets.engine.validate import Finding, validate


class Maintenance(OpenedTable):
    """Compactions, their undoing, and housekeeping. Each does its work whole, or says who is in the way."""

    # -- compacting -------------------------------------------------------------------------------

    def plan_compaction(
        self,
        *,
        threshold: Time | None = None,
        data_latency: Latency | None = None,
        dry_run: bool = False,
    ) -> Plan | NoPlan:
        """Plan and publish one compaction of every log file with event times at or below the threshold.

        One plan may reach less than the threshold (`Plan.claims`), where it is bounded and on versions 8 and 9.
        `compact` makes the whole series.

        Args:
            threshold: An event time: ISO-8601 text, a datetime with a zone, or epoch ms. Default: the table's clock
                less the data latency.
            data_latency: In place of the table's own ("2h", a timedelta, milliseconds).
            dry_run: Publish nothing. Shows also a plan that would be refused because it leaves running queries too
                little time (`Plan.query_time`).

        Returns:
            The plan, or why there is nothing to do.

        Raises:
            InvalidInput: The table or the settings do not allow it, for a reason that is named.
            Conflict: Another process holds the table.
        """
        state, planner = self._table.read_in_columns(), self._planner()
        limit = choose_threshold(state, threshold, data_latency, unchecked=not dry_run)
        if isinstance(limit, NoPlan):
            return limit
        if dry_run:
            return planner.due(state, limit, data_latency)
        del state  # the planner reads the table again, under its lock
        return planner.plan(limit, data_latency)

    def due_compaction(self) -> Plan | NoPlan:
        """What `plan_compaction` would plan now. Needs neither Spark nor a lock."""
        return self.plan_compaction(dry_run=True)

    def refuse_short_query_time(self, plan: Plan) -> None:
        """Refuse a plan of a dry run as `plan_compaction` would refuse to publish it.

        Args:
            plan: Of `plan_compaction(dry_run=True)` or `due_compaction`. A plan that is published is never refused.

        Raises:
            InvalidInput: The plan leaves running queries less time than `hudi_assets.query.grace.least` says.
        """
        refuse_short_query_time(plan, self.path)

    def refuse_execution(self, plan: Plan) -> None:
        """Refuse a plan that the executor of the settings (`hudi_assets.executor`) would not execute.

        Args:
            plan: Published or not.

        Raises:
            UnsupportedTable: Its log records are not merged here.
        """
        refuse_execution(self.state(), plan)

    def check_workers(self, spark: Session[Frame]) -> None:
        """Ask whether the session's workers can execute a compaction; none needs to ask first. Once for each session.

        Args:
            spark: A SparkSession. On this machine there is nothing to ask.

        Raises:
            EnvironmentProblem: A worker lacks a package, or sees another folder where the table is.
        """
        if self.config.executor != HUDI:
            spark_session.ready_workers(spark, self._table.storage, to_write=True)

    def execute_compaction(self, spark: Session[Frame], instant: str) -> CompactionResult:
        """Execute the plan published at `instant`, and commit it; by Apache Hudi where `hudi_assets.executor=hudi`.

        Args:
            spark: A classic session. One task per file group runs on its workers.
            instant: Of a plan that is pending (`pending_plan`).

        Returns:
            What each file group's compaction did, and what it cost and bought. `seconds` is how long all of it took.

        Raises:
            InvalidInput: No plan is pending at the instant.
            Conflict: Another process executes it, or wrote what the plan did not see.
            CorruptTable: A file that the plan names is gone. Nothing was committed.
        """
        if self.config.executor == HUDI:
            result = HudiExecutor(self._table).execute(spark, instant)
        else:
            self.check_workers(spark)
            result = CompactionExecutor(self._table).execute(spark, instant)
        return replace(result, bill=self._bill(instant))

    def _bill(self, instant: str) -> Bill | None:
        """None where it cannot be told: the compaction is committed all the same."""
        try:
            return bill_of(self.state(), instant)
        except (HudiAssetsError, OSError):
            return None

    def compact(
        self,
        spark: Session[Frame],
        *,
        threshold: Time | None = None,
        data_latency: Latency | None = None,
        on_plan: Callable[[Plan], None] = lambda _: None,
        on_done: Callable[[CompactionResult], None] = lambda _: None,
    ) -> CompactionSeries | NoPlan:
        """Plan and execute until the threshold is reached, with as many plans as that takes, or say what is in the way.

        With Hudi's strategies it is one compaction. An error leaves the compactions that are done as they are. A plan
        that is published stays for `execute_compaction`.

        Args:
            spark: A classic session.
            threshold: As for `plan_compaction`; the table's clock is read once.
            data_latency: As for `plan_compaction`.
            on_plan: Called with each plan that is published.
            on_done: Called with the result of each.

        Returns:
            The compactions that were made, and what ended the series; `NoPlan` where there was none.

        Raises:
            InvalidInput: As `plan_compaction`.
            Conflict: As `plan_compaction` and `execute_compaction`.
        """
        state = self._table.read_in_columns()
        limit = choose_threshold(state, threshold, data_latency)
        if isinstance(limit, NoPlan):
            return limit
        slices = sum(part.counts.remaining_slices for part in state.parts.values())
        self.check_workers(spark)

        def execute(plan: Plan) -> CompactionResult:
            on_plan(plan)
            result = self.execute_compaction(spark, plan.instant)
            on_done(result)
            return result

        by_event_time = self.config.compaction.by_event_time
        return run_series(
            limit if by_event_time else None,
            max(1, slices),
            plan=lambda: self._planner().plan(limit, data_latency),
            execute=execute,
            is_reached=lambda: limit is not None and not is_due(self.state(), limit, data_latency),
        )

    def _planner(self) -> CompactionPlanner:
        return CompactionPlanner(self._table)

    @property
    def plans_in_series(self) -> bool:
        """True where one plan may not reach its threshold: it is bounded, or stands at a past instant."""
        settings = self.config.compaction
        bounded = settings.io_bound is not None or settings.partition_bound is not None
        return bounded or self._table.layout.back_dates_plans

    def pending_plan(self) -> Plan | None:
        """The plan of this engine that waits for execution; None where there is none."""
        return next(iter(self.state().executable_plans), None)

    def plan(self, instant: str) -> Plan:
        """The compaction plan of an instant, pending or completed, whoever made it.

        Args:
            instant: Of the plan, 17 digits.

        Raises:
            InvalidInput: No plan is on the active timeline at the instant.
        """
        found = self.state().plan(instant)
        if found is None:
            pending = ", ".join(plan.instant for plan in self.state().executable_plans) or "none"
            raise InvalidInput(
                "There is no compaction plan at this instant.",
                where=f"{self.path} {instant}",
                hint=f"Pending: {pending}.",
            )
        return found

    def cost_curve(self, points: int = 20) -> tuple[CostPoint, ...]:
        """What a compaction costs at each possible threshold, and the freshness after it. Reads only.

        Args:
            points: How many thresholds at most, 1 or more. Those left out lie between others.

        Returns:
            The points, the oldest threshold first; bytes, and times in epoch ms.

        Raises:
            InvalidInput: `points` is below 1.
        """
        return self._planner().cost_curve(self.state(), points)

    # -- taking back ------------------------------------------------------------------------------

    def rollback(self, instant: str) -> RollbackResult:
        """Take back the newest write, an unfinished one, or a compaction's attempt (its plan and links stay).

        Args:
            instant: Of the write or compaction, 17 digits.

        Returns:
            The rollback's own instant, and whether the compaction is planned still.

        Raises:
            InvalidInput: There is no such instant, or something later builds on it, which the error names.
            Conflict: Another process is at work on the table.
            UnsupportedTable: An index of the metadata table would become untrue.
        """
        return self._undo().rollback(instant)

    def unschedule(self, instant: str) -> None:
        """Withdraw a pending compaction plan with its carried-over log files.

        Args:
            instant: Of the plan, 17 digits.

        Raises:
            InvalidInput: No plan is pending there, or commits wrote to its slices.
            Conflict: Another engine made the plan and may execute it, or an unfinished write may write to its slices.
        """
        self._undo().unschedule(instant)

    def restore(self, savepoint: str) -> RestoreResult:
        """Make the table what it was at a savepoint: everything later is rolled back, the newest first.

        Args:
            savepoint: Its instant, which is that of the write that it protects.

        Returns:
            The restore's own instant, and what was rolled back.

        Raises:
            InvalidInput: There is no such savepoint, or later ones protect what would be rolled back.
            Conflict: Another process is at work on the table.
            CorruptTable: A file that the savepoint names is missing.
            UnsupportedTable: As for `rollback`.
        """
        return self._undo().restore(savepoint)

    def _undo(self) -> Undo:
        return Undo(self._table)

    def validate(self) -> tuple[Finding, ...]:
        """What is not as the timeline says, with what to do about it; empty: all is well. Reads only."""
        return validate(self.state(), self._table.now_ms)

    def leftovers(self) -> tuple[str, ...]:
        """What `recover` would finish, undo or remove, a sentence each, by a look that costs no more than a listing."""
        return leftovers(self.state(), self._table.now_ms)

    def recover(self) -> tuple[str, ...]:
        """Finish or undo what dead processes of this project left. Waits up to a minute for the write lock.

        Returns:
            What was done, a sentence each; empty where there was nothing.

        Raises:
            Conflict: Another process holds the table.
        """
        return recover(self._table)

    # -- housekeeping -----------------------------------------------------------------------------

    def clean(
        self,
        *,
        policy: str | None = None,
        retained: int | None = None,
        dry_run: bool = False,
        unasked: bool = False,
    ) -> CleanResult | NothingToDo:
        """Delete the file slices that no retained view reads; finish a clean that a crash left.

        Args:
            policy: A policy of Hudi's (HoodieCleaningPolicy), as KEEP_LATEST_COMMITS. Default: the table's own
                (hoodie.cleaner.policy).
            retained: How many commits, file versions or hours the policy retains, 1 or more. Default: the table's own.
            dry_run: Delete nothing, and show what would be deleted.
            unasked: Clean also where a published view may name what is deleted.

        Returns:
            The files that were deleted and their bytes, or why there is nothing to do.

        Raises:
            InvalidInput: There is no such policy, or nothing says how other engines write the table.
            Conflict: A view that is published of the table may name files of before: publish it anew first. Or
                another process holds the table.
            CorruptTable: A file of the table is missing: an older slice may hold the last copy of its rows.
        """
        return self._cleaner().clean(policy=policy, retained=retained, dry_run=dry_run, unasked=unasked)

    def savepoint(self, instant: str | None = None, *, comment: str = "", user: str = "") -> str:
        """Protect the table as of a completed write from every cleaner, Hudi's too.

        Args:
            instant: Of a completed write or compaction on the active timeline, 17 digits. Default: the last one.
            comment: Kept with the savepoint.
            user: Kept with the savepoint.

        Returns:
            The savepoint's instant, which is that of the write.

        Raises:
            InvalidInput: There is no such write, or files as of it were cleaned.
            Conflict: Another process holds the table.
        """
        return self._savepoints().create(instant, comment=comment, user=user)

    def delete_savepoint(self, instant: str) -> None:
        """Give a savepoint up: the next clean may take its files.

        Args:
            instant: The savepoint's, one of `savepoints`.

        Raises:
            InvalidInput: There is no savepoint at this instant. The error names those that there are.
        """
        self._savepoints().delete(instant)

    def savepoints(self) -> tuple[str, ...]:
        """Instants of the savepoints, oldest first."""
        return self._savepoints().all()

    def archive(self) -> ArchiveResult | NothingToDo:
        """Move old instants from the active timeline into the archived one.

        `hoodie.keep.min.commits` and `hoodie.keep.max.commits` say how many stay.

        Returns:
            The instants that were archived, or why there is nothing to do.

        Raises:
            InvalidInput: The settings contradict each other.
            Conflict: Another process holds the table.
            CorruptTable: A file of the table is missing.
        """
        return Archiver(self._table).archive()

    def _cleaner(self) -> Cleaner:
        return Cleaner(self._table)

    def _savepoints(self) -> Savepoints:
        return Savepoints(self._table)
