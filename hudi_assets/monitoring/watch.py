"""Looks at tables in turn, again and again. What goes wrong with one stops no other, and is logged once."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from hudi_assets.engine import HudiTable, TableMetrics, problem_of
from hudi_assets.monitoring.runs import DagsterRuns, RunsSeen
from hudi_assets.monitoring.tables import Monitored

LOG = logging.getLogger("hudi_assets.metrics")
# What is older than so many rounds is not shown: a look hangs.
_ROUNDS = 3


@dataclass(frozen=True, slots=True)
class LastLook:
    """The last look at a table. `metrics`: None where it failed. Times in seconds since 1970, `seconds` it took.

    `succeeded_at`: the last look that did not fail. `problem`: why this one did.
    """

    table: Monitored
    name: str
    metrics: TableMetrics | None
    seconds: float
    looked_at: float
    succeeded_at: float | None
    failures: int
    problem: str | None

    @property
    def in_dagster(self) -> str:
        """The table's name there."""
        return self.table.dagster or self.name


class Watch:
    """`interval`: seconds between two rounds; None where there is one alone. `runs`: where Dagster is asked too."""

    def __init__(
        self,
        tables: Sequence[Monitored],
        interval: float | None = None,
        clock: Callable[[], float] = time.time,
        runs: DagsterRuns | None = None,
    ) -> None:
        self._tables = tables
        self._interval = interval
        self._clock = clock
        self._seen: dict[str, LastLook] = {}
        self._round_seconds = 0.0
        self._runs = runs
        self._runs_seen: tuple[float, Mapping[str, RunsSeen]] = (0.0, {})
        self._runs_problem: str | None = None
        self._without_runs: set[str] = set()

    def look(self) -> None:
        """At each table once. What was seen of one is put in place as a whole: another thread may read meanwhile."""
        began = self._clock()
        for table in self._tables:
            self._seen[table.path] = self._look_at(table, self._seen.get(table.path))
        self._ask_for_runs()
        self._round_seconds = self._clock() - began

    @property
    def asks_dagster(self) -> bool:
        return self._runs is not None

    @property
    def runs_problem(self) -> str | None:
        """Why Dagster did not tell of its runs when it was asked last."""
        return self._runs_problem

    def runs_of(self, one: LastLook) -> RunsSeen | None:
        """What Dagster told of the table's runs; None where it did not, or too long ago."""
        asked_at, seen = self._runs_seen
        return None if self._is_old(asked_at) else seen.get(one.in_dagster)

    def _ask_for_runs(self) -> None:
        if self._runs is None:
            return
        problem, seen = None, {}
        try:
            seen = dict(self._runs.of([one.in_dagster for one in self._seen.values()]))
        except Exception as error:
            problem = _in_words(error, "Dagster's runs")
        if problem is not None and problem != self._runs_problem:
            LOG.error("%s", problem)
        elif problem is None and self._runs_problem is not None:
            LOG.info("Dagster tells of its runs again.")
        if problem is None:
            self._log_without_runs({name for name, runs in seen.items() if runs.failed_in_a_row is None})
        self._runs_seen, self._runs_problem = (self._clock(), seen), problem

    def _log_without_runs(self, names: set[str]) -> None:
        """Once: a table may be new, or have another name in Dagster."""
        for name in sorted(names - self._without_runs):
            LOG.warning("Dagster knows no runs of %s that have ended. Is that the table's name there?", name)
        self._without_runs = names

    def _is_old(self, at: float) -> bool:
        if self._interval is None:
            return False
        return self._clock() - at > _ROUNDS * (self._interval + self._round_seconds)

    def seen(self) -> tuple[LastLook, ...]:
        """The last look at each table; one that is too long ago counts as failed, so that no number stands still."""
        return tuple(self._if_recent(one) for one in list(self._seen.values()))

    def _if_recent(self, one: LastLook) -> LastLook:
        return replace(one, metrics=None) if one.metrics is not None and self._is_old(one.looked_at) else one

    def _look_at(self, table: Monitored, last: LastLook | None) -> LastLook:
        began = self._clock()
        name = last.name if last else table.path.rstrip("/").rsplit("/", 1)[-1]
        metrics, problem = None, None
        try:
            opened = HudiTable.open(table.path, settings=table.settings)
            name, metrics = opened.config.name, opened.metrics()
        except Exception as error:
            problem = _in_words(error, table.path)
        now = self._clock()
        _log(table.path, name, problem, last.problem if last else None)
        return LastLook(
            table=table,
            name=name,
            metrics=metrics,
            seconds=now - began,
            looked_at=now,
            succeeded_at=(last.succeeded_at if last else None) if metrics is None else now,
            failures=(last.failures if last else 0) + (metrics is None),
            problem=problem,
        )


def _in_words(error: Exception, path: str) -> str:
    known = problem_of(error)
    if known is None:  # a mistake of the program's: the others go on, and its traceback has to be seen
        LOG.error("The look at %s failed on an unexpected error.", path, exc_info=error, extra={"path": path})
        return f"{type(error).__name__}: {error}"
    return str(known)


def _log(path: str, name: str, problem: str | None, before: str | None) -> None:
    """A reason once, not at each look; and its end."""
    if problem == before:
        return
    told = {"table": name, "path": path}
    if problem is None:
        LOG.info("The look at %s succeeds again.", path, extra=told)
    else:
        LOG.error("The look at %s failed: %s", path, problem, extra=told)
