"""What `make run` does: replays the stream of flights through Dagster, and shows what came of it.

    python -m hudi_assets.demo [--days 14] [--verify]

Every batch is a run of `flights/mor_table` on its partition; after it the sensor ticks, and what it asks for
runs too. All of it happens on the instance that `make ui` shows, with one Spark for the whole replay.
A table that holds fewer days than asked for is continued; one that holds them all is started over.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TextIO

from dagster import AssetKey, BetaWarning, DagsterRun, DagsterRunStatus
from filelock import FileLock, Timeout
from rich.console import Console

from hudi_assets.dagster.checks import published_freshness
from hudi_assets.dagster.told import told_ms
from hudi_assets.demo.driver import Driver, Tick
from hudi_assets.demo.flights import Batch, FlightStream
from hudi_assets.demo.flights.replayed import store_window, stored_window, window_hours
from hudi_assets.demo.shown import Summary, minute, progress_bar, show
from hudi_assets.engine import HudiTable, duration, iso, open_storage, problem_of
from hudi_assets.home import dagster_home, home, project_root, warehouse
from hudi_assets.resources.catalog import Catalog
from hudi_assets.resources.spark import SparkResource

if TYPE_CHECKING:
    from dagster import EventLogEntry
    from pyspark.sql import SparkSession

SENSOR = "flights_event_time_trigger"
MOR_TABLE, RO_SNAPSHOT, FRESHNESS, PLAN, HOUSEKEEPING = (
    AssetKey(["flights", name]) for name in ("mor_table", "ro_snapshot", "freshness", "compaction_plan", "housekeeping")
)
_MOST_FAILURES = 3
_RESULTS = ("instant", "threshold", "logs_compacted", "logs_remaining", "rows_written", "seconds")


class DemoFailed(Exception):
    """The replay cannot go on; the message says why and where to look."""


class Replay:
    """One replay of the stream on one instance."""

    def __init__(self, driver: Driver, summary: Summary, oracle: Callable[..., Any] | None) -> None:
        self.driver = driver
        self.summary = summary
        self.oracle = oracle
        self._failures = 0
        self._published = published_freshness(driver.instance, FRESHNESS)

    def ingest(self, batch: Batch) -> None:
        """Materialize the batch's partition; a run that failed is tried again before anything follows."""
        while True:
            run = self.driver.materialize([MOR_TABLE], batch.id)
            if self._succeeded(run):
                break
        metadata = self._metadata(run, MOR_TABLE)
        self.summary.batches += 1
        self.summary.rows += metadata["dagster/row_count"]
        self.summary.late_records += metadata["late_records"]

    def tick(self, batch: Batch) -> Tick:
        """Let the sensor look at the table, and take note of the runs that it asked for."""
        tick = self.driver.tick(SENSOR)
        if tick.status.value == "FAILURE":
            self._count_failure(f"the sensor's tick failed: {tick.reason}")
        if not tick.runs:  # the tick publishes by itself
            self._note_published(published_freshness(self.driver.instance, FRESHNESS))
        for run in tick.runs:
            if self._succeeded(run):
                self._note(run, batch)
        return tick

    def _note_published(self, told: int | None) -> None:
        self.summary.fallbacks_published += self._published is not None and (told is None or told < self._published)
        self._published = told

    def _note(self, run: DagsterRun, batch: Batch) -> None:
        self._note_checks(run)
        compacted = self._metadata(run, RO_SNAPSHOT)
        promised = self._metadata(run, FRESHNESS)
        told = told_ms(promised, "freshness", old="freshness_ms")
        if promised:
            self._note_published(told)
        if not compacted:
            return
        entry = {name: compacted[name] for name in _RESULTS}
        entry |= {"freshness": promised["freshness"], "why": run.tags.get("hudi_assets/reason")}
        if self.oracle is not None:
            with local_base_files(open_table()) as files:
                outcome = self.oracle(files, told, batch.end_ms)
            entry["violations"] = len(outcome.violations)
            self.summary.violations = (self.summary.violations or 0) + len(outcome.violations)
        self.summary.compactions.append(entry)

    def _note_checks(self, run: DagsterRun) -> None:
        for entry in self.driver.instance.all_logs(run.run_id):
            event = entry.dagster_event
            if event is None or event.event_type_value != "ASSET_CHECK_EVALUATION":
                continue
            evaluation = event.asset_check_evaluation_data
            if evaluation.passed:
                self.summary.checks_passed += 1
            else:
                self.summary.checks_failed.append(
                    f"{evaluation.check_name} ({evaluation.severity.value}): {evaluation.description}"
                )

    def _metadata(self, run: DagsterRun, key: AssetKey) -> dict[str, Any]:
        """The metadata of what the run materialized of this asset; empty if it did not."""
        event: EventLogEntry | None = self.driver.instance.get_latest_materialization_event(key)
        if event is None or event.run_id != run.run_id or event.asset_materialization is None:
            return {}
        return {name: value.value for name, value in event.asset_materialization.metadata.items()}

    def _succeeded(self, run: DagsterRun) -> bool:
        if run.status is DagsterRunStatus.SUCCESS:
            self._failures = 0
            return True
        self.summary.failed_runs += 1
        self._count_failure(f"run {run.run_id[:8]} ended as {run.status.value}")
        return False

    def _count_failure(self, what: str) -> None:
        self._failures += 1
        if self._failures >= _MOST_FAILURES:
            raise DemoFailed(f"{what}, the {self._failures}. failure in a row. `make ui` shows the runs' logs.")


def table_path() -> str:
    return f"{warehouse()}/flights"


def open_table() -> HudiTable:
    return HudiTable.open(table_path())


@contextmanager
def local_base_files(table: HudiTable) -> Iterator[list[str]]:
    """The read-optimized view's files, for who reads this machine's files alone: those of a bucket as copies."""
    if "://" not in table.path:
        yield table.read_optimized_files()
        return
    with TemporaryDirectory() as folder:
        copies = []
        for number, file in enumerate(table.read_optimized_files()):
            name = file.partition("://")[2].removeprefix(table.path.partition("://")[2] + "/")
            copies.append(str(Path(folder, f"{number}.parquet")))
            Path(copies[-1]).write_bytes(table.storage.read(name))
        yield copies


def committed() -> set[str]:
    """The ids of the batches that the table holds."""
    there = open_storage(table_path()).is_directory(".hoodie")
    return set(open_table().committed_batches()) if there else set()


def start_over(driver: Driver, spark: SparkSession) -> None:
    """Remove the table, its views, and what the instance knows of its assets. Runs and ticks stay."""
    Catalog().remove(spark, ro="flights_ro", rt="flights_rt")
    open_storage(table_path()).delete_tree("")
    driver.instance.wipe_assets([MOR_TABLE, PLAN, RO_SNAPSHOT, FRESHNESS, HOUSEKEEPING])


def replay(days: int, console: Console, *, verify: bool) -> Summary:
    """The whole of it; raises DemoFailed when it cannot go on."""
    started = time.monotonic()
    hours = window_hours(days)
    recut = hours != stored_window()
    store_window(hours)
    batches = FlightStream(days=days, batch_hours=hours).batches
    with (home() / "run.log").open("a", buffering=1) as log, Driver(dagster_home(), log) as driver:
        abandoned = driver.fail_abandoned_runs()
        if abandoned:
            console.print(f"{abandoned} runs of an interrupted replay were marked as failed.")
        console.print("Starting Spark and the catalog …", style="dim")
        with _stderr_to(log):
            spark: SparkSession = SparkResource().spark_session
        done = committed()
        todo = [] if recut else [batch for batch in batches if batch.id not in done]
        summary = Summary(days, _mode(done, todo))
        if recut and done:
            console.print(f"{days} days are delivered in windows of {hours} h, the table's are others.")
        console.print(_announcement(summary.mode, done, days, recut), soft_wrap=True)
        if summary.mode != "continued":
            start_over(driver, spark)
            todo = batches
        _run_batches(Replay(driver, summary, _oracle() if verify else None), todo, console)
        published = published_freshness(driver.instance, FRESHNESS)
        summary.freshness = iso(published)
        summary.queries = compare_queries(spark, published)
    summary.seconds = round(time.monotonic() - started, 1)
    return summary


@contextmanager
def _stderr_to(log: TextIO) -> Iterator[None]:
    """Lets a process that is started meanwhile, Spark's, write its warnings to the log."""
    saved = os.dup(2)
    os.dup2(log.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)


def _mode(done: set[str], todo: Sequence[Batch]) -> str:
    if not done:
        return "new"
    return "continued" if todo else "started over"


def _announcement(mode: str, done: set[str], days: int, recut: bool) -> str:
    if mode == "new":
        return f"A new table at {table_path()}: {days} days of flights."
    if mode == "continued":
        return f"Continuing the table at {table_path()}: it holds {len(done)} batches."
    if recut:
        return f"Starting over with a new table at {table_path()}."
    return f"The table at {table_path()} holds all {days} days already: starting over with a new one."


def _run_batches(replaying: Replay, todo: Sequence[Batch], console: Console) -> None:
    with progress_bar(console) as progress:
        task = progress.add_task("", total=len(todo), said="")
        for batch in todo:
            progress.update(task, description=f"clock {minute(iso(batch.end_ms))}")
            replaying.ingest(batch)
            if replaying.tick(batch).runs and replaying.summary.compactions:
                fresh = minute(replaying.summary.compactions[-1]["freshness"])
                progress.update(task, said=f"fresh to {fresh[-11:]}")
            progress.advance(task)


def compare_queries(spark: SparkSession, published: int | None) -> dict[str, dict[str, Any]]:
    """The same count over both views, with what readers of each may rely on.

    The read-optimized view's freshness is the published one, which its readers find in the catalog. Not timed: the
    table is small, and then what a query costs by itself says more of Spark than of the views.
    """
    table = open_table()
    now = table.now_ms()
    behind = None if published is None else duration(now - published)
    return {
        "read_optimized": {"rows": spark.table("flights_ro").count(), "freshness": iso(published), "behind": behind},
        "snapshot": {"rows": table.snapshot(spark).count(), "freshness": iso(now), "behind": duration(0)},
    }


def _oracle() -> Callable[..., Any]:
    """The independent check of the tests, which works the stream out again from the source CSV."""
    path = project_root() / "tests" / "oracle" / "flights_oracle.py"
    spec = importlib.util.spec_from_file_location("flights_oracle", path)
    if not path.exists() or spec is None or spec.loader is None:
        raise DemoFailed(f"--verify needs {path}, which a source tree has")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    check: Callable[..., Any] = module.check
    return check


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m hudi_assets.demo", description="Replay the stream of flights through Dagster"
    )
    parser.add_argument("--days", type=int, default=14, help="how many days of 2013, from 1 January")
    parser.add_argument("--verify", action="store_true", help="check each compaction against the source CSV")
    options = parser.parse_args(arguments)
    # This very stream, also while Dagster's output goes to the log.
    console = Console(file=sys.stdout, width=None if sys.stdout.isatty() else 120)
    warnings.filterwarnings("ignore", category=BetaWarning)
    home().mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(str(home() / "run.lock"), timeout=0):
            summary = replay(options.days, console, verify=options.verify)
    except Timeout:
        console.print(f"Another replay is at work in {home()}.", style="red", markup=False)
        return 1
    except Exception as error:
        problem = error if isinstance(error, DemoFailed | ValueError) else problem_of(error)
        if problem is None:
            raise
        console.print(str(problem), style="red", soft_wrap=True, highlight=False, markup=False)
        return 1
    (home() / "last-run.json").write_text(json.dumps(asdict(summary), indent=2) + "\n", "utf-8")
    show(summary, console, table_path(), home() / "last-run.json")
    return 1 if summary.violations else 0
