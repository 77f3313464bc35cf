"""Cleaning: file slices that no retained view reads are deleted, with Hudi's plan and metadata on the timeline."""

from __future__ import annotations

from dataclasses import dataclass

from hudi_assets.engine.actions.cleaning.plan import Retention, plan_clean, retention
from hudi_assets.engine.actions.cleaning.query_grace import query_grace_ms
from hudi_assets.engine.model import Action, NothingToDo, State
from hudi_assets.engine.model.cleans import CleanPlan
from hudi_assets.engine.table.files.cleaned import inventory
from hudi_assets.engine.table.files.missing import refuse_missing
from hudi_assets.engine.table.files.published import refuse_outdated_views
from hudi_assets.engine.table.files.strays import remove_strays
from hudi_assets.engine.table.state import TableState
from hudi_assets.engine.timeline.clean_metadata import PublishedClean, clean_extra, encode_clean_plan
from hudi_assets.engine.transaction.clean import CleanResult, execute_clean, finish_cleans, own_linked_files, size_of
from hudi_assets.engine.transaction.open_table import OpenTable
from hudi_assets.engine.transaction.transaction import transaction


@dataclass(frozen=True)
class Cleaner:
    """Cleans one table."""

    table: OpenTable

    def clean(
        self, *, policy: str | None, retained: int | None, dry_run: bool, unasked: bool
    ) -> CleanResult | NothingToDo:
        """Plan, publish and execute one clean; first finish one that a crash left.

        `policy` and `retained` overrule the table's settings. A dry run writes and deletes nothing. `unasked`: also
        where a published view may name what is deleted.
        """
        keep = retention(self.table.config.properties, policy, retained, self.table.path)
        if dry_run:
            state = self.table.read()
            plan = self._plan(state, keep)
            return plan if isinstance(plan, NothingToDo) else _would_delete(state, plan)
        with transaction(self.table, "cleans", needs_stated_writers=True) as tx:
            finished = finish_cleans(self.table, tx.read())
            remove_strays(tx.read(), self.table.publisher.metadata_table)
            state = tx.read()
            plan = self._plan(state, keep)
            if isinstance(plan, NothingToDo):
                return finished[-1] if finished else plan
            if not unasked:
                refuse_outdated_views(state)
            tx.check()
            return execute_clean(self.table, state, self._publish(state, plan))

    def _plan(self, state: TableState, keep: Retention) -> CleanPlan | NothingToDo:
        pending = state.timeline.pending(Action.CLEAN)
        if pending:
            return NothingToDo(f"clean {pending[0].timestamp} is pending")
        state.refuse_other_zone()
        # An older slice may hold the last copy of what is gone from a newer one.
        refuse_missing(state)
        properties, back_dated = self.table.config.properties, self.table.layout.back_dates_plans
        return plan_clean(
            inventory(state),
            keep,
            now_ms=self.table.now_ms(),
            timezone=self.table.config.timezone,
            grace_ms=query_grace_ms(properties, self.table.path, back_dated=back_dated),
        )

    def _publish(self, state: TableState, plan: CleanPlan) -> PublishedClean:
        instant = self.table.publisher.new_instant(state.timeline)
        savepoints = [i.timestamp for i in state.timeline.completed(Action.SAVEPOINT)]
        uris = {path: _hadoop_path(self.table.storage.uri(path)) for path in plan.paths}
        data = encode_clean_plan(plan, savepoints, uris)
        # Before the plan can be seen: another engine that finishes it does not know links.
        own_linked_files(self.table.storage, plan.links)
        self.table.publisher.announce(self.table.layout.instant_path(instant, Action.CLEAN, State.REQUESTED), data)
        return PublishedClean(instant, plan, clean_extra(savepoints))


def _would_delete(state: TableState, plan: CleanPlan) -> CleanResult:
    earliest = plan.earliest_retained
    return CleanResult(
        None, plan.policy, earliest.timestamp if earliest else None, plan.paths, size_of(state, plan.paths)
    )


def _hadoop_path(uri: str) -> str:
    """A file as Hudi's plans name it: with its file system. A local path would mean the cluster's default one."""
    return uri if "://" in uri else f"file:{uri}"
