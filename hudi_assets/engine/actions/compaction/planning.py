"""Planning a compaction: what is due, what it takes, and publishing it."""

from __future__ import annotations

import functools
import time
from dataclasses import dataclass, replace

from hudi_assets.engine.actions.compaction import strategy, triggers
from hudi_assets.engine.actions.compaction.closure import MergeRule
from hudi_assets.engine.actions.compaction.cost import CostPoint, cost_curve
from hudi_assets.engine.actions.compaction.hudi_executor import check_hudi_executes
from hudi_assets.engine.actions.compaction.hudi_strategies import hudi_strategy
from hudi_assets.engine.actions.compaction.other_engines import (
    refuse_links_beside_others,
    refuse_short_query_time,
    settled_with_others,
)
from hudi_assets.engine.actions.compaction.residue import check_exact_split, keeps_tombstones, plan_marks
from hudi_assets.engine.actions.compaction.strategy import CompactionStrategy, EventTimeBased
from hudi_assets.engine.actions.compaction.threshold import in_doubt
from hudi_assets.engine.actions.compaction.who_executes import made_untrue, refuse_execution
from hudi_assets.engine.actions.writing.delta_commit import WRITER_NAME
from hudi_assets.engine.errors import InvalidInput
from hudi_assets.engine.event_time.commit_bound import bounded_summaries
from hudi_assets.engine.event_time.freshness import watermark
from hudi_assets.engine.event_time.hidden_times import hidden_rows
from hudi_assets.engine.event_time.lateness import data_latency_ms
from hudi_assets.engine.event_time.table_times import TableTimes
from hudi_assets.engine.gc_pause import no_collecting
from hudi_assets.engine.model import NO_THRESHOLD, NoPlan, Plan
from hudi_assets.engine.model.units import EventTimeUnit, Latency
from hudi_assets.engine.table import index as table_index
from hudi_assets.engine.table.files.base_times import BaseTimes
from hudi_assets.engine.table.files.missing import refuse_missing
from hudi_assets.engine.table.files.origins import origin_of
from hudi_assets.engine.table.metadata.policy import switch_off
from hudi_assets.engine.table.settings.config import HUDI
from hudi_assets.engine.table.state import TableState
from hudi_assets.engine.timeline.commit_metadata import EVENT_TIME, WRITER
from hudi_assets.engine.timeline.instants import local_date, moved_instant
from hudi_assets.engine.transaction.open_table import OpenTable
from hudi_assets.engine.transaction.transaction import refuse_unstated_writers, transaction

_GAP_WAIT_S = 20.0
_GAP_POLL_S = 0.02


@dataclass(frozen=True)
class CompactionPlanner:
    """Plans the compactions of one table."""

    table: OpenTable

    def due(self, state: TableState, threshold: int | None, latency: Latency | None = None) -> Plan | NoPlan:
        """What `plan` would choose, as the table stood when `state` was read; nothing is published."""
        self._check()
        return self._choose(state, threshold, latency, beside_writes=self._waits_for_gaps)[0]

    def plan(self, threshold: int | None, latency: Latency | None = None) -> Plan | NoPlan:
        """Choose at `threshold` (epoch ms; None for Hudi's strategies) and publish.

        `latency`: this call's data latency, in place of the table's own.
        """
        self._check()
        self.table.check_writable()
        give_up = time.monotonic() + (_GAP_WAIT_S if self._waits_for_gaps else 0)
        while True:
            self._await_gap(give_up)
            chosen = self._plan_now(threshold, latency)
            busy = isinstance(chosen, NoPlan) and triggers.beside_write(self.table.read().timeline) is not None
            if not busy or time.monotonic() > give_up:
                return chosen

    def _check(self) -> None:
        """Refuse what no look at the table's files can make right."""
        refuse_links_beside_others(self.table.config, self.table.layout, self.table.path)
        if self.table.layout.needs_stated_writers:
            refuse_unstated_writers(self.table.config, self.table.path)
        if self.table.config.executor == HUDI:
            check_hudi_executes(self.table.config, self.table.layout, None, self.table.path)

    @property
    def _waits_for_gaps(self) -> bool:
        """Beside locked writers, where a plan stands beside no unfinished write: one may always be there."""
        return not self.table.layout.plans_beside_writes and self.table.config.writers == "locked"

    def _await_gap(self, give_up: float) -> None:
        """Wait, without any lock, for a moment at which no write is unfinished: a busy writer has short ones."""
        while triggers.beside_write(self.table.read().timeline) is not None and time.monotonic() < give_up:
            time.sleep(_GAP_POLL_S)

    def _plan_now(self, threshold: int | None, latency: Latency | None) -> Plan | NoPlan:
        with transaction(self.table, "plans a compaction") as tx:
            state = tx.read_in_columns()
            chosen, guard = self._choose(state, threshold, latency)
            if isinstance(chosen, Plan):
                refuse_short_query_time(chosen, self.table.path)
                refuse_execution(state, chosen)
                self.table.publisher.wait_for(chosen.instant)
                still_alone = functools.partial(self._still_alone, chosen)
                tx.check()
                switch_off(self.table.storage, made_untrue(state, chosen))
                self.table.publisher.publish_plan(chosen, guard or None, self.table.config.carry_over, still_alone)
            return chosen

    def _choose(
        self, state: TableState, threshold: int | None, latency: Latency | None, *, beside_writes: bool = False
    ) -> tuple[Plan | NoPlan, str]:
        """The plan or the reason for none, and the instant that guards its links.

        Where plans are back-dated an unfinished write keeps the plan's instant below its own: no reason for none.
        """
        state.refuse_other_zone()
        refuse_missing(state)
        config, layout = self.table.config, self.table.layout
        settings = config.compaction
        # Refuses a missing or mistyped field before anything else.
        unit = None
        if settings.by_event_time or settings.due_by_event_time:
            if (nothing := in_doubt(state)) is not None:
                return nothing, ""
            unit = TableTimes(state).column[1]
        check_exact_split(config, unit if settings.by_event_time else None, layout, self.table.path)
        table_index.check_exact_split(state)
        # A guard that is left is a dead planner's: planning removes it, so it is no reason to wait.
        writes = not layout.plans_beside_writes and not beside_writes
        held = triggers.hold_back(state.timeline, ignore=state.guards, writes=writes)
        if held is not None:
            return held, ""
        now = self.table.publisher.new_instant(state.timeline)
        after = moved_instant(now, 1)
        not_due = triggers.not_due(state.timeline, settings, instant=after, timezone=config.timezone)
        if not_due is not None:
            return not_due, ""
        # A plan of Hudi's strategies states no event time: its instant says nothing about a threshold.
        extra = {}
        if settings.by_event_time:
            extra = {EVENT_TIME: TableTimes(state).tag, **plan_marks(config, layout)}
        view, wanted = state.view, self._strategy(state, threshold, latency)
        with no_collecting(view.number_of_logs):
            chosen = strategy.plan(
                view,
                wanted,
                placement=layout.placement(after, state.timeline, state.completion_of),
                partitions=sorted(state.listing),
                base_file_size=settings.base_file_size,
                carry_over=functools.partial(layout.carry_over, original_of=functools.partial(origin_of, state)),
                extra_metadata={WRITER: WRITER_NAME, **extra},
            )
        if isinstance(chosen, Plan) and settings.due_by_event_time and threshold is not None:
            chosen = triggers.not_old_enough(chosen, bounded_summaries(state, latency), threshold) or chosen
        if isinstance(chosen, Plan):
            asked_for = threshold if settings.by_event_time else None
            settled = settled_with_others(state, chosen)
            chosen = replace(settled, asked_for=asked_for, left=_left(state, settled))
        return chosen, now if layout.makes_links else ""

    def _strategy(self, state: TableState, threshold: int | None, latency: Latency | None) -> CompactionStrategy:
        settings = self.table.config.compaction
        if not settings.by_event_time:
            return hudi_strategy(settings, local_date(state.now_ms, self.table.config.timezone))
        if threshold is None:
            raise InvalidInput(
                "An event-time compaction needs a threshold.",
                where=self.table.path,
                hint="Give one, or state a data latency (hudi_assets.data.latency).",
            )
        return self._event_time_strategy(state, threshold, latency)

    def _event_time_strategy(self, state: TableState, threshold: int, latency: Latency | None = None) -> EventTimeBased:
        column, unit = TableTimes(state).column
        merging = self.table.config.merging
        # Hudi's execution carries nothing over: where that is asked for, slices are taken whole.
        parts = merging.not_merged is None or self.table.layout.hudi_executes_plans
        rule = MergeRule(
            merging.mode if parts else None,
            # Text in ISO form does not sort as the times do.
            by_event_time=self.table.config.ordered_by_event_time and unit is not EventTimeUnit.ISO,
            keeps_tombstones=keeps_tombstones(self.table.config, self.table.layout),
            finds_keys_in_base_files=not table_index.has_bucket_index(state),
            several_fields=len(self.table.config.ordering_fields) > 1,
            fills_gaps=merging.gaps is not None,
        )
        return EventTimeBased(
            threshold,
            bounded_summaries(state, latency),
            rule,
            self.table.config.compaction.io_bound,
            self.table.config.compaction.partition_bound,
            merging.exact_split,
            BaseTimes(self.table.storage, column, unit).highest,
            self.table.config.compaction.whole_slices,
            TableTimes(state).oldest,
        )

    def cost_curve(self, state: TableState, points: int) -> tuple[CostPoint, ...]:
        """What each possible threshold would cost; empty where one of Hudi's strategies plans."""
        if not self.table.config.compaction.by_event_time:
            return ()
        latency = data_latency_ms(state)
        learned = self.table.config.data_latency_auto
        known = watermark(state.now_ms, state.oldest_unfinished_ms, latency)
        # No compaction brings back rows that are in no view.
        hidden, untold = hidden_rows(state, bounded_summaries(state), latency)
        below = [rows.min_event_time - 1 for rows in hidden if rows.min_event_time is not None]

        def watermark_of(claimed: int) -> int | None:
            # Without a data latency, the watermark is what the compaction itself claims.
            mark = known if known is not None or learned or claimed == NO_THRESHOLD else claimed
            return None if mark is None or untold is not None else min([mark, *below])

        return cost_curve(
            state.view,
            self._event_time_strategy(state, NO_THRESHOLD),
            base_file_size=self.table.config.compaction.base_file_size,
            now_ms=state.now_ms,
            watermark_of=watermark_of,
            points=points,
        )

    def _still_alone(self, plan: Plan) -> str | None:
        """Look again after publishing: has another service or write appeared beside the plan?"""
        state = self.table.read()
        timeline, own = state.timeline, state.guards | {plan.instant}
        others = [i for i in timeline.pending_services if i.timestamp not in own]
        if others:
            return f"{others[0].action} {others[0].timestamp} appeared beside it"
        # Beside locked writers the plan stays: one that has seen it may append to its slice already; one that has
        # not cannot commit (its instant is earlier), or is noticed before the plan is executed (refuse_stragglers).
        older = [i for i in timeline.inflight_writes if i.timestamp < plan.instant]
        if self.table.layout.back_dates_plans and timeline.start is not None and plan.instant < timeline.start:
            return f"the active timeline begins at {timeline.start} by now: instants before it were archived"
        if older and self.table.config.writers != "locked":
            return f"{older[0].action} {older[0].timestamp} started before it and is unfinished"
        return None


def _left(state: TableState, plan: Plan) -> tuple[str, ...]:
    """The partitions in which log files stay that the plan does not take."""
    taken: dict[str, int] = {}
    for operation in plan.operations:
        taken[operation.partition] = taken.get(operation.partition, 0) + len(operation.log_files)
    # Each is taken once, and all of them remain: so many as there are, and none is left.
    return tuple(
        sorted(part.partition for part in state.parts.values() if part.number_of_logs > taken.get(part.partition, 0))
    )
