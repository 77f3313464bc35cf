"""What a table says of itself: freshness, statistics, event times. Reads only, and needs no Spark."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from hudi_assets.engine import status
from hudi_assets.engine.actions.compaction.planning import CompactionPlanner
from hudi_assets.engine.actions.compaction.threshold import choose_threshold
from hudi_assets.engine.actions.compaction.who_executes import unless_refused
from hudi_assets.engine.errors import CorruptTable, InvalidInput
from hudi_assets.engine.event_time.latency import ObservedLatency
from hudi_assets.engine.event_time.lateness import LateLog, late_records, lateness_of, observed_latency
from hudi_assets.engine.hudi_table.opened import OpenedTable
from hudi_assets.engine.model import (
    Bill,
    CarryOver,
    Freshness,
    LogBar,
    LogFile,
    Look,
    NoPlan,
    PartitionFreshness,
    PastCompaction,
    PastFreshness,
    Plan,
    Publication,
    PublishedPartitions,
    StartNow,
    Stats,
    TableMetrics,
    WaitUntil,
)
from hudi_assets.engine.model.column_unit import ColumnUnit
from hudi_assets.engine.model.profile import TableProfile
from hudi_assets.engine.model.units import Latency
from hudi_assets.engine.past.bills import bills_of
from hudi_assets.engine.past.compactions import past_compactions
from hudi_assets.engine.past.freshness import past_freshness
from hudi_assets.engine.past.metrics import metrics_of
from hudi_assets.engine.past.rewriting import feed_of_past, proposal_of
from hudi_assets.engine.profile.profile import profile_of
from hudi_assets.engine.queries.read_optimized_columns import base_file_groups
from hudi_assets.engine.slo.simulation.feed import Feed
from hudi_assets.engine.slo.values import SloTerms
from hudi_assets.engine.table.files.published import view_digest
from hudi_assets.engine.timeline.instants import instant_ms
from hudi_assets.engine.transaction.leftovers import leftovers


class Reports(OpenedTable):
    """A table in numbers, as it stands now."""

    def now_ms(self) -> int:
        """The table's clock, epoch ms: the system's, or the newest commit's in a replayed stream."""
        return self.state().now_ms

    def instant_ms(self, instant: str) -> int:
        """When an instant of this table is, epoch ms. Instants are in the time zone of the table's writers.

        Args:
            instant: 17 or 14 digits, as on the timeline.

        Raises:
            CorruptTable: The digits are no point in time.
        """
        return instant_ms(instant, self.config.timezone)

    def observed_latency(self) -> ObservedLatency | None:
        """How late records came, by the latest delta commits, and the evidence; None where there is none."""
        return observed_latency(self.state())

    def late_records(self, freshness_ms: int) -> tuple[LateLog, ...]:
        """The remaining log files with records at or below a freshness that was published: they came late.

        Args:
            freshness_ms: The freshness that was published, epoch ms.
        """
        return late_records(self.state(), freshness_ms)

    def freshness(self, *, data_latency: Latency | None = None) -> Freshness:
        """What the read-optimized view promises now.

        Args:
            data_latency: In place of the table's own ("2h", a timedelta, milliseconds, or "auto").

        Returns:
            The freshness and what it follows from, epoch ms. Where nothing can be promised, `freshness` is None and
            `reason` says why.
        """
        return status.freshness_of(self._looked_at(), data_latency)

    def partition_freshness(self, *, data_latency: Latency | None = None) -> tuple[PartitionFreshness, ...]:
        """What the read-optimized view of each partition promises: who reads a cold one need not wait for a hot one.

        Args:
            data_latency: As for `freshness`.

        Returns:
            A promise for each partition, the one furthest behind first. The table's freshness is the least of them.
        """
        return status.partition_freshness_of(self._looked_at(), data_latency)

    def event_time_unit(self) -> ColumnUnit | None:
        """How the event-time column counts, and what says so: its type, a setting, or its values.

        Returns:
            None where the table has no event-time column.
        """
        return status.column_unit(self._looked_at())

    def stats(self) -> Stats:
        """The table in numbers: the RFC's metrics among them."""
        return status.stats_of(self._looked_at())

    def look(self, slo: SloTerms | None = None, *, tick_ms: int | None = None, publish_ms: int | None = None) -> Look:
        """What a sensor asks at each tick, all of one reading. Needs neither Spark nor a lock.

        Args:
            slo: Only what this SLO needs is due, when it needs it, and up to where. Default: all up to the clock less
                the data latency.
            tick_ms: With `slo`: how long until the next look at the latest. Default: a minute.
            publish_ms: With `slo`: as for `propose_compaction`.

        Returns:
            Freshness, numbers, the pending plan, the plan that is due and leftovers. A damaged table has no compaction
            due, nor has one that is not merged here, or whose event times nobody can read.
        """
        state = self._looked_at()
        stats = status.stats_of(state)
        proposal, refused = None, True
        try:
            problem = state.zone_problem
            limit = choose_threshold(state, None, None) if problem is None else NoPlan(str(problem))
            if slo is not None and not isinstance(limit, NoPlan):
                proposal = proposal_of(state, slo, tick_ms=tick_ms, publish_ms=publish_ms)
                limit = proposal.threshold if isinstance(proposal, StartNow) else NoPlan(proposal.why)
            due = limit if isinstance(limit, NoPlan) else CompactionPlanner(self._table).due(state, limit)
            refused = problem is not None or isinstance(due, Plan)
            if isinstance(due, Plan):
                due = unless_refused(state, due)
        except CorruptTable as damage:
            due = NoPlan(str(damage))
        except InvalidInput as wrong:
            unit = stats.freshness.unit
            if unit is None or unit.problem is None:
                raise
            due = NoPlan(str(wrong))
        return Look(
            stats=stats,
            pending=next(iter(state.executable_plans), None),
            due=due,
            leftovers=leftovers(state, self._table.now_ms),
            now_ms=state.now_ms,
            view_digest=view_digest(state),
            proposal=proposal,
            partitions=status.published_partitions_of(state),
            refused=due.reason if refused and isinstance(due, NoPlan) else None,
        )

    def profile(self) -> TableProfile:
        """What the table tells about itself to somebody who sets it up: from its timeline and a sample of its rows."""
        return profile_of(self._readable())

    def metrics(self) -> TableMetrics:
        """What monitoring asks: the numbers, the pending plan's age, and what the last compaction cost."""
        return metrics_of(self._looked_at())

    def past_compactions(self) -> tuple[PastCompaction, ...]:
        """The completed compactions of the active timeline and what they cost, the last first."""
        return tuple(past_compactions(self.state()))

    def bills(self) -> tuple[Bill, ...]:
        """What each compaction of the active timeline cost and bought, the last first."""
        return tuple(bills_of(self._readable()))

    def past_freshness(self) -> tuple[PastFreshness, ...]:
        """The freshness before and after each write of the active timeline, oldest first, as far as it is known."""
        return past_freshness(self._readable())

    def lateness(self) -> tuple[tuple[int, int], ...]:
        """How late records came: (ms, records) of each log file that the latest delta commits wrote, at the most."""
        return lateness_of(self.state())

    def propose_compaction(
        self, terms: SloTerms, *, data_latency: Latency | None = None, publish_ms: int | None = None
    ) -> StartNow | WaitUntil:
        """Whether a compaction is needed now for a freshness SLO, and up to which threshold; else until when it is not.

        Args:
            terms: The SLO, and the owner's bounds.
            data_latency: In place of the table's own.
            publish_ms: How long a compaction takes besides, until its freshness is published. Default: a minute.

        Returns:
            The threshold with its bytes, or until when to wait; both with the reason in words. Beside a pending plan
            it is to wait: that is executed first.

        Raises:
            InvalidInput: The table has no data latency, or no event-time column, or is not compacted by event time.
        """
        return proposal_of(self._readable(), terms, data_latency, publish_ms=publish_ms)

    def past_feed(self, *, data_latency: Latency | None = None) -> Feed:
        """The delta commits of the active timeline, for a simulation of compaction policies.

        Args:
            data_latency: In place of the table's own.

        Raises:
            InvalidInput: No commit says when its records happened, or the table has no data latency.
        """
        return feed_of_past(self.state(), data_latency)

    def publication(self) -> Publication:
        """What a catalog is told: freshness, columns and the current base files, all of one reading.

        Raises:
            UnsupportedTable: The base files are of another kind: a view of them alone would not show the table's rows.
        """
        self.config.refuse_other_files(self.path)
        state = self._readable()
        promise = status.freshness_of(state)
        return Publication(
            path=self.path,
            freshness=promise,
            instant_ms=None if promise.instant is None else self.instant_ms(promise.instant),
            schema=state.schema,
            groups=tuple((tuple(files), columns) for files, columns in base_file_groups(state)),
            view_digest=view_digest(state),
            partitions=status.published_partitions_of(state),
        )

    def published_partitions(self) -> PublishedPartitions | None:
        """What a catalog is told of the partitions; None unless `hudi_assets.publish.partitions` is true."""
        return status.published_partitions_of(self._looked_at())

    def view_digest(self) -> str:
        """Differs where the read-optimized view has other files or columns. Asks for no event time."""
        return view_digest(self._readable())

    def log_bars(self, plan: Plan | None = None) -> tuple[LogBar, ...]:
        """The remaining log files with their ranges of event times, epoch ms.

        Args:
            plan: Its log files are marked as compacted. Default: none is.
        """
        return status.log_bars(self.state(), plan)

    def carried_over(self) -> tuple[CarryOver, ...]:
        """The carried-over log files of the current slices and pending plans, link and first original."""
        return status.carried_over(self.state())

    def log_event_times(self) -> Iterator[tuple[LogFile, pa.ChunkedArray]]:
        """Per remaining log file, the event times (epoch ms) in its data blocks, read anew from the data."""
        return status.log_event_times(self.state())
