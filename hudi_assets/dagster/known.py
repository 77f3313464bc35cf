"""What Dagster's instance knows of tables, asked for many of them at once.

A look at a table asks for runs, checks and what was published: some thirty SQL statements. For fifty tables together
they are hardly more than for one. An answer is used for looks of the next seconds alone, and what a tick reports itself
makes it forgotten.
"""

import time
from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from dagster import (
    AssetCheckEvaluation,
    AssetCheckKey,
    AssetKey,
    AssetMaterialization,
    AssetObservation,
    DagsterInstance,
    DagsterRun,
    EventLogEntry,
    RunsFilter,
)

from hudi_assets.catalog.hive import Refused
from hudi_assets.catalog.places import Found, Place, found_together
from hudi_assets.dagster.assets import MAINTENANCE, TableAssets
from hudi_assets.dagster.checks import look_checks
from hudi_assets.dagster.ingestion import INGESTION_TAG, UNFINISHED
from hudi_assets.engine import EnvironmentProblem, HudiAssetsError

if TYPE_CHECKING:
    from dagster._core.storage.asset_check_execution_record import AssetCheckExecutionRecord

# Dagster keeps the pools of a run as tags in its storage.
_POOL_TAG: Final = ".dagster/pool/"
# A backfill of the ingestion may have thousands of runs queued in the pool.
_MOST_RUNS: Final = 50
# Of all tables: where more are unfinished, each table's own are asked for.
_MOST_RUNS_OF_ALL: Final = 500
# Before the last evaluation of a check there are runs that died without one: few, they are asked for ever more rarely.
_RECORDS: Final = 20

RunlessEvent = AssetCheckEvaluation | AssetMaterialization | AssetObservation


class Known:
    """The instance as a tick asks it. What was not asked for beforehand is asked for then.

    `since`: when the look began, where it may take so long that runs come and go meanwhile.
    """

    def __init__(self, instance: DagsterInstance, since: datetime | None = None) -> None:
        self.instance = instance
        self.since = since
        self._tables: frozenset[str] = frozenset()
        self._asked_at = 0.0
        self._published: dict[AssetKey, EventLogEntry | None] = {}
        self._checks: dict[AssetCheckKey, AssetCheckExecutionRecord | None] = {}
        self._runs: dict[str, str | None] = {}
        # What stands in catalogs; each answer is good for one look.
        self._found: dict[Place, Found | None] = {}
        self._no_catalog: str | None = None
        # Metastore → why it was not asked again in this tick: copies, which hold nothing of the looks that raise them.
        self._silent: dict[str, HudiAssetsError] = {}
        # Run → the run, for one tick: neither what it makes nor its pools change.
        self._seen_runs: dict[str, DagsterRun] = {}

    def knows(self, table: TableAssets, seconds: float) -> bool:
        """Whether the table was asked for, no longer ago than that."""
        return table.name in self._tables and time.monotonic() - self._asked_at <= seconds

    def ask(self, tables: Sequence[TableAssets]) -> None:
        """Ask for these tables at once, and forget all others."""
        self.forget()
        assets = [table.key("freshness") for table in tables]
        published = self.instance.get_latest_materialization_events(assets)
        checks = [key for table in tables for key in look_checks(table)]
        records = self.instance.event_log_storage.get_latest_asset_check_execution_by_key(checks)
        runs = self._unfinished_runs(tables)
        self._published = {key: published.get(key) for key in assets}
        self._checks = {key: records.get(key) for key in checks}
        self._runs = runs
        self._tables = frozenset(table.name for table in tables)
        self._asked_at = time.monotonic()

    def ask_no_catalog(self, why: str) -> None:
        """From now on: whoever asks what stands there is told why not."""
        self._no_catalog = why

    def ask_catalogs(self, places: Iterable[Place]) -> None:
        """Ask for these places at once. A metastore that does not answer is not waited for at each table.

        One that answers and refuses may do so of one table alone, as AWS Glue does: then each is asked for by itself.
        """
        began = time.monotonic()
        by_metastore: dict[str, list[Place]] = {}
        for place in places:
            if place.metastore not in self._silent and not place.was_never_used:
                by_metastore.setdefault(place.metastore, []).append(place)
        for metastore, group in by_metastore.items():
            try:
                self._found |= found_together(group)
            except Refused:
                continue
            except HudiAssetsError as problem:
                self._silent[metastore] = copy(problem)
            except Exception as problem:
                self._silent[metastore] = EnvironmentProblem(f"{type(problem).__name__}: {problem}", where=metastore)
        self._asked_at += time.monotonic() - began  # what Dagster said is no older for it

    def found(self, place: Place) -> Found | None:
        """What stands there. Raises what kept a tick of many tables from asking."""
        if self._no_catalog is not None:
            raise EnvironmentProblem(f"No catalog is asked. {self._no_catalog}")
        if place.metastore in self._silent:
            raise copy(self._silent[place.metastore])
        return self._found.pop(place) if place in self._found else place.found()

    def forget(self) -> None:
        self._tables = frozenset()
        self._published, self._checks, self._runs, self._found = {}, {}, {}, {}

    def get_latest_materialization_event(self, key: AssetKey, /) -> EventLogEntry | None:
        if key not in self._published:
            self._published[key] = self.instance.get_latest_materialization_event(key)
        return self._published[key]

    def check_record(self, key: AssetCheckKey) -> "AssetCheckExecutionRecord | None":
        """Of its last evaluation, or of a run that is only going to make one."""
        if key in self._checks:
            return self._checks[key]
        return self.instance.get_latest_asset_check_evaluation_record(key)

    def last_evaluation(self, key: AssetCheckKey) -> AssetCheckEvaluation | None:
        """The last one that was made; a run that is only going to make one, or died before, has a record after it."""
        history = partial(self.instance.event_log_storage.get_asset_check_execution_history, key, _RECORDS)
        records = history()
        while records:
            for record in records:
                if isinstance(record.evaluation, AssetCheckEvaluation):
                    return record.evaluation
            records = history(cursor=records[-1].id)
        return None

    def report(self, event: RunlessEvent) -> None:
        """Report it now, and ask anew for what it changes."""
        self.instance.report_runless_asset_event(event)
        if isinstance(event, AssetMaterialization):
            self._published.pop(event.asset_key, None)
        elif isinstance(event, AssetCheckEvaluation):
            self._checks.pop(event.asset_check_key, None)

    def unfinished_run(self, table: TableAssets) -> str | None:
        """A run that maintains this table and is queued or running, whoever started it.

        Those of the sensor and of the table's job have the table's tag. A run that was started by hand in the UI has
        not: it is known by its pool, of which Dagster keeps a tag, and by what it makes. Ingestion is no maintenance.
        """
        if table.name in self._runs:
            return self._runs[table.name]
        return self._run(table, statuses=UNFINISHED)

    def was_overtaken(self, table: TableAssets) -> bool:
        """Whether a run maintains the table, or did so since the look began: it knows better what the look saw."""
        if self.since is None:
            return False
        return bool(self._run(table, updated_after=self.since) or self._run(table, statuses=UNFINISHED))

    def _run(self, table: TableAssets, **which: Any) -> str | None:
        """One of those runs that maintains the table."""
        runs = self.instance.get_runs(RunsFilter(tags=table.run_tags, **which), limit=1)
        by_pool = RunsFilter(tags={f"{_POOL_TAG}{table.pool}": "true"}, **which)
        return _maintaining(table, runs or self.instance.get_runs(by_pool, limit=_MOST_RUNS))

    def _unfinished_runs(self, tables: Sequence[TableAssets]) -> dict[str, str | None]:
        """Table → its run; none at all where too many are unfinished to look at."""
        ids = self.instance.get_run_ids(RunsFilter(statuses=UNFINISHED), limit=_MOST_RUNS_OF_ALL)
        if len(ids) >= _MOST_RUNS_OF_ALL:
            return {}
        new = [one for one in ids if one not in self._seen_runs]
        for run in self.instance.get_runs(RunsFilter(run_ids=new)) if new else ():
            self._seen_runs[run.run_id] = run
        by_tag: dict[tuple[str, str], list[DagsterRun]] = {}
        for run in (self._seen_runs[one] for one in ids if one in self._seen_runs):
            for tag in run.tags_for_storage().items():
                by_tag.setdefault(tag, []).append(run)
        found: dict[str, str | None] = {}
        for table in tables:
            tagged = [run for tag in table.run_tags.items() for run in by_tag.get(tag, ())]
            pooled = by_tag.get((f"{_POOL_TAG}{table.pool}", "true"), [])
            found[table.name] = _maintaining(table, [*tagged, *pooled])
        return found


@dataclass(frozen=True)
class OneTable:
    """What looking at one table asks of a tick: of a sensor for this table, of one for many, or beside the ticks."""

    known: Known
    resources: Any
    cursor: str | None
    log: Any


def _maintaining(table: TableAssets, runs: Iterable[DagsterRun]) -> str | None:
    """The first of the runs that maintains the table, in short."""
    maintained = {table.key(name) for name in MAINTENANCE}
    for run in runs:
        if table.run_tags.items() <= run.tags.items():
            return run.run_id[:8]
        if INGESTION_TAG in run.tags:
            continue  # of the job's own runs Dagster keeps no selection
        if not run.asset_selection or maintained & run.asset_selection:
            return run.run_id[:8]
    return None
