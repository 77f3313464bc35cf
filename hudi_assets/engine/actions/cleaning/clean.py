"""Cleaning: file slices that no retained view reads are deleted, with Hudi's plan and metadata on the timeline."""

from __future__ import annotations

from dataclasses import dataclass

from hudi_assets.engine.actions.cleaning.plan import Retention, plan_clean, retention
from hudi_assets.engine.actions.cleaning.query_grace import query_grace_ms
from hudi_assets.engine.errors import InvalidInput
from hudi_assets.engine.model import Action, NothingToDo, State
from hudi_assets.engine.model.cleans import CleanPlan
from hudi_assets.engine.storage import Storage
from hudi_assets.engine.table.files.cleaned import inventory
from hudi_assets.engine.table.files.missing import refuse_missing
from hudi_assets.engine.table.files.strays import remove_strays
from hudi_assets.engine.table.layout.seam import Layout
from hudi_assets.engine.table.settings.config import WRITERS, TableConfig
from hudi_assets.engine.table.state import TableState
from hudi_assets.engine.timeline.clean_metadata import PublishedClean, clean_extra, encode_clean_plan
from hudi_assets.engine.transaction.clean import CleanResult, execute_clean, finish_cleans, own_linked_files, size_of
from hudi_assets.engine.transaction.lock import write_lock
from hudi_assets.engine.transaction.publish import Publisher
from hudi_assets.engine.transaction.recover import clean_up

_LOCK_WAIT_S = 30.0


@dataclass(frozen=True)
class Cleaner:
    """Cleans one table."""

    storage: Storage
    config: TableConfig
    layout: Layout
    publisher: Publisher

    def clean(self, *, policy: str | None, retained: int | None, dry_run: bool) -> CleanResult | NothingToDo:
        """Plan, publish and execute one clean; first finish one that a crash left.

        `policy` and `retained` overrule the table's settings. A dry run writes and deletes nothing.
        """
        keep = retention(self.config.properties, policy, retained, self.storage.base)
        if dry_run:
            state = self._state()
            plan = self._plan(state, keep)
            return plan if isinstance(plan, NothingToDo) else _would_delete(state, plan)
        refuse_unstated_writers(self.config, self.storage)
        self.storage.check_writable()
        with write_lock(self.storage, self.config, wait_s=_LOCK_WAIT_S, action="cleans") as held:
            clean_up(self.storage, self.layout, self.publisher, self._state())
            finished = finish_cleans(self._state(), self.config, self.publisher)
            remove_strays(self._state(), self.publisher.metadata_table)
            state = self._state()
            plan = self._plan(state, keep)
            if isinstance(plan, NothingToDo):
                return finished[-1] if finished else plan
            held.check()
            return execute_clean(state, self._publish(state, plan), self.publisher)

    def _state(self) -> TableState:
        return TableState.read(self.storage, self.config, self.layout, self.publisher.now_ms)

    def _plan(self, state: TableState, keep: Retention) -> CleanPlan | NothingToDo:
        pending = state.timeline.pending(Action.CLEAN)
        if pending:
            return NothingToDo(f"clean {pending[0].timestamp} is pending")
        state.refuse_other_zone()
        # An older slice may hold the last copy of what is gone from a newer one.
        refuse_missing(state)
        properties, back_dated = self.config.properties, not self.layout.carries_logs_over
        return plan_clean(
            inventory(state),
            keep,
            now_ms=self.publisher.now_ms(),
            timezone=self.config.timezone,
            grace_ms=query_grace_ms(properties, self.storage.base, back_dated=back_dated),
        )

    def _publish(self, state: TableState, plan: CleanPlan) -> PublishedClean:
        instant = self.publisher.new_instant(state.timeline)
        savepoints = [i.timestamp for i in state.timeline.completed(Action.SAVEPOINT)]
        uris = {path: _hadoop_path(self.storage.uri(path)) for path in plan.paths}
        data = encode_clean_plan(plan, savepoints, uris)
        # Before the plan can be seen: another engine that finishes it does not know links.
        own_linked_files(self.storage, plan.links)
        self.storage.create(self.layout.instant_path(instant, Action.CLEAN, State.REQUESTED), data)
        return PublishedClean(instant, plan, clean_extra(savepoints))


def refuse_unstated_writers(config: TableConfig, storage: Storage) -> None:
    """Refuse to change a table's past while nothing says how other engines write it."""
    if config.writers is None:
        raise InvalidInput(
            "Nothing says how other engines write this table.",
            where=storage.base,
            hint=f"State it: {WRITERS}=stopped (nobody writes meanwhile) or locked (every writer takes "
            "the table's lock).",
        )


def _would_delete(state: TableState, plan: CleanPlan) -> CleanResult:
    earliest = plan.earliest_retained
    return CleanResult(
        None, plan.policy, earliest.timestamp if earliest else None, plan.paths, size_of(state, plan.paths)
    )


def _hadoop_path(uri: str) -> str:
    """A file as Hudi's plans name it: with its file system. A local path would mean the cluster's default one."""
    return uri if "://" in uri else f"file:{uri}"
