"""The commands that keep a table's past in order, and the four queries: answers, exit codes, refusals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from hudi_assets.engine import HudiTable, Plan
from hudi_assets.engine.model import Action
from tests.cli.conftest import (
    DONE,
    FAILED,
    NOTHING_TO_DO,
    SPLIT,
    WRONG_USE,
    Answer,
    commit,
    contents,
    make_table,
    run_process,
    set_property,
)
from tests.tables.local_session import LocalSession

Run = Callable[..., Answer]


@dataclass(frozen=True)
class Aged:
    """A table of four delta commits, each compacted by itself: four slices in each of two file groups."""

    path: Path
    commits: tuple[str, ...]
    compactions: tuple[str, ...]

    def open(self) -> HudiTable:
        return HudiTable.open(str(self.path))


@pytest.fixture
def aged(tmp_path: Path, session: LocalSession) -> Aged:
    table = make_table(tmp_path / "aged")
    commits, compactions = [], []
    for hour in range(4):
        commits.append(commit(session, table, hour, range(10)))
        plan = table.plan_compaction(threshold=f"2024-05-01T{hour:02}:30:00Z")
        assert isinstance(plan, Plan)
        compactions.append(table.execute_compaction(session, plan.instant).instant)
    return Aged(tmp_path / "aged", tuple(commits), tuple(compactions))


def _times(aged: Aged, session: LocalSession) -> set[str]:
    """The hours whose rows the snapshot holds."""
    rows = aged.open().snapshot(session).rows()
    return {row["note"].rsplit(" ", 1)[1] for row in rows}


# -- clean and archive ----------------------------------------------------------------------------


def test_a_dry_clean_deletes_nothing_and_names_what_a_clean_deletes(run: Run, aged: Aged) -> None:
    before = contents(aged.path)
    dry = run("clean", aged.path, "--policy", "keep_latest_file_versions", "--retained", 1, "--dry-run", "--json")
    assert (dry.code, contents(aged.path)) == (DONE, before)
    assert dry.json["dry_run"] is True
    assert dry.json["instant"] is None

    done = run("clean", aged.path, "--policy", "KEEP_LATEST_FILE_VERSIONS", "--retained", 1, "--json")
    assert done.code == DONE
    assert done.json["deleted"] == dry.json["deleted"]
    sizes = {name: len(data) for name, data in before.items()}
    assert done.json["bytes_deleted"] == sum(sizes[name] for name in done.json["deleted"]) > 0
    assert set(before) - set(contents(aged.path)) >= set(done.json["deleted"])
    assert run("validate", aged.path).code == DONE


def test_nothing_to_clean_or_archive_says_why(run: Run, aged: Aged) -> None:
    cleaned = run("clean", aged.path)
    assert cleaned.code == NOTHING_TO_DO
    assert cleaned.out.startswith("Nothing to do: ")
    archived = run("archive", aged.path, "--json")
    assert archived.code == NOTHING_TO_DO
    assert "30" in archived.json["nothing_to_do"]


def test_archive_goes_by_the_tables_settings(run: Run, aged: Aged) -> None:
    set_property(aged.path, "hoodie.cleaner.commits.retained", "2")
    set_property(aged.path, "hoodie.keep.min.commits", "3")
    set_property(aged.path, "hoodie.keep.max.commits", "4")
    assert run("clean", aged.path).code == DONE
    done = run("archive", aged.path, "--json")
    assert done.code == DONE, done.err
    assert done.json["instants"][0] == aged.commits[0]
    assert (aged.path / done.json["file"]).is_file()
    assert not (aged.path / ".hoodie" / f"{aged.commits[0]}.deltacommit").exists()


def test_a_table_that_others_write_needs_the_owners_word(run: Run, aged: Aged) -> None:
    set_property(aged.path, "hudi_assets.writers", None)
    before = contents(aged.path)
    commands = (("clean",), ("archive",), ("savepoint",), ("rollback", aged.compactions[-1]))
    for command, *more in commands:
        refused = run(command, aged.path, *more, "--json")
        assert refused.code == WRONG_USE, command
        assert "how other engines write" in refused.error["what"]
    assert contents(aged.path) == before
    stated = run("clean", aged.path, "--policy", "keep_latest_file_versions", "--retained", 1, "--writers", "stopped")
    assert stated.code == DONE


# -- savepoints -----------------------------------------------------------------------------------


def test_a_savepoint_is_listed_restored_and_given_up(run: Run, aged: Aged, session: LocalSession) -> None:
    made = run("savepoint", aged.path, aged.compactions[1], "--comment", "before the audit", "--json")
    assert made.json == {"savepoint": aged.compactions[1]}
    assert run("savepoints", aged.path, "--json").json == {"savepoints": [aged.compactions[1]]}
    assert _times(aged, session) == {"3"}

    restored = run("restore", aged.path, aged.compactions[1], "--json")
    assert restored.code == DONE, restored.err
    assert set(restored.json["instants"]) == {*aged.commits[2:], *aged.compactions[2:]}
    assert _times(aged, session) == {"1"}

    assert run("delete-savepoint", aged.path, aged.compactions[1]).code == DONE
    assert run("savepoints", aged.path).out.strip() == "There are none."
    again = run("restore", aged.path, aged.compactions[1], "--json")
    assert again.code == WRONG_USE
    assert "savepoint" in again.error["what"]


# -- rollback and plans ---------------------------------------------------------------------------


def test_the_newest_write_is_rolled_back_and_an_older_one_is_not(run: Run, aged: Aged, session: LocalSession) -> None:
    newest = commit(session, aged.open(), 5, range(10))
    before = contents(aged.path)
    refused = run("rollback", aged.path, aged.commits[0], "--json")
    assert refused.code == WRONG_USE
    assert newest in refused.error["what"] + refused.error["hint"]
    assert contents(aged.path) == before
    done = run("rollback", aged.path, newest, "--json")
    assert done.code == DONE, done.err
    assert (done.json["instant"], done.json["action"]) == (newest, "deltacommit")
    assert _times(aged, session) == {"3"}


def test_a_plan_is_withdrawn_with_its_links(run: Run, table: Path) -> None:
    files = {path.name for path in table.iterdir()}
    instant = run("plan", table, "--threshold", SPLIT, "--json").json["instant"]
    assert {path.name for path in table.iterdir()} > files
    assert run("unschedule", table, instant, "--json").json == {"unscheduled": instant}
    assert {path.name for path in table.iterdir()} == files
    assert run("status", table, "--json").json["pending"] == []
    assert run("unschedule", table, instant).code == WRONG_USE


# -- validate and recover -------------------------------------------------------------------------


def test_validate_lists_what_recover_mends(run: Run, table: Path) -> None:
    assert run("validate", table, "--json").json == {"findings": []}
    log = sorted(table.glob(".*.log.*"))[0]
    orphan = log.with_name(log.name.replace(log.name.split("_")[1].split(".")[0], "29990101000000000"))
    orphan.hardlink_to(log)
    found = run("validate", table, "--json")
    assert found.code == FAILED
    assert [(one["kind"], one["path"]) for one in found.json["findings"]] == [("orphan", orphan.name)]
    assert orphan.name in run("validate", table).out
    assert run("status", table, "--json").json["orphans"] == [orphan.name]

    mended = run("recover", table, "--json")
    assert mended.code == DONE
    assert len(mended.json["recovered"]) == 1
    assert not orphan.exists()
    assert run("validate", table).code == DONE
    assert run("recover", table).code == NOTHING_TO_DO


def test_validate_names_a_file_that_is_gone(run: Run, table: Path) -> None:
    log = sorted(table.glob(".*.log.*"))[0]
    log.unlink()
    found = run("validate", table, "--json")
    assert found.code == FAILED
    assert [(one["kind"], one["path"]) for one in found.json["findings"]] == [("missing_file", log.name)]
    assert run("recover", table).code == NOTHING_TO_DO


# -- what a dry run shows -------------------------------------------------------------------------


def test_a_dry_run_shows_what_each_threshold_would_cost(run: Run, table: Path) -> None:
    sizes = {path.name: path.stat().st_size for path in table.glob(".*.log.*")}
    found = run("plan", table, "--threshold", SPLIT, "--dry-run", "--json").json
    curve = found["cost_curve"]
    # Two file groups, each with a log file of either commit: the selection changes at four event times.
    assert [(point["log_files"], point["file_groups"]) for point in curve] == [(1, 1), (2, 2), (3, 2), (4, 2)]
    assert curve[-1]["bytes_to_rewrite"] == sum(sizes.values())
    planned = sum(sizes[name] for op in found["operations"] for name in op["log_files"])
    assert curve[1]["bytes_to_rewrite"] == planned
    assert [point["freshness"] for point in curve] == sorted(point["freshness"] for point in curve)
    shown = run("compact", table, "--threshold", SPLIT, "--dry-run").out
    assert "to rewrite" in shown
    assert curve[-1]["threshold"] in shown
    assert "cost_curve" not in run("plan", table, "--threshold", SPLIT, "--json").json
    assert run("compact", table, "--dry-run", "--json").json["cost_curve"] == []


def test_a_dry_run_without_a_plan_shows_the_other_thresholds(run: Run, table: Path) -> None:
    found = run("plan", table, "--threshold", "2024-04-01", "--dry-run", "--json")
    assert found.code == NOTHING_TO_DO
    assert found.json["nothing_to_do"]
    assert len(found.json["cost_curve"]) == 4


def test_a_learned_latency_shows_its_evidence(run: Run, table: Path) -> None:
    assert "learned_latency" not in run("status", table, "--json").json
    set_property(table, "hudi_assets.data.latency", "auto")
    for command in ("status", "freshness"):
        learned = run(command, table, "--json").json["learned_latency"]
        assert (learned["commits"], learned["log_files"], learned["records"]) == (2, 4, 40)
        assert learned["quantile"] == 0.99
        assert learned["first_instant"] in run(command, table).out
    stated = run("freshness", table, "--data-latency", "1h", "--json").json
    assert "learned_latency" not in stated


def test_a_strategy_of_hudis_plans_without_a_threshold(run: Run, table: Path) -> None:
    set_property(table, "hoodie.compaction.strategy", "LogFileSizeBasedCompactionStrategy")
    waiting = run("plan", table, "--json")
    assert waiting.code == NOTHING_TO_DO
    assert "2 delta commits" in waiting.json["nothing_to_do"]
    set_property(table, "hoodie.compact.inline.max.delta.commits", "2")
    assert "LogFileSizeBasedCompactionStrategy" in run("plan", table, "--dry-run").out
    planned = run("plan", table, "--json").json
    assert planned["threshold"] is None
    assert planned["strategy"].endswith("LogFileSizeBasedCompactionStrategy")


# -- the four queries -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("--begin", "earliest"), "--begin does not go with --query snapshot"),
        (("--query", "read_optimized", "--as-of", "20240501000000000"), "--as-of"),
        (("--query", "time_travel", "--end", "20240501000000000"), "--end"),
        (("--query", "time_travel"), "--as-of"),
        (("--query", "incremental"), "--begin"),
        (("--query", "incremental", "--end", "20240501000000000"), "--begin"),
        (("--query", "incremental", "--begin", "2024", "--end", "2025"), "2024"),
        (("--query", "incremental", "--begin", "20250101000000", "--end", "20240101000000"), "after its end"),
        (("--query", "time_travel", "--as-of", "yesterday"), "yesterday"),
        (("--query", "everything"), "everything"),
    ],
)
def test_read_refuses_before_spark_starts(run: Run, table: Path, args: tuple[str, ...], says: str) -> None:
    refused = run("read", table, *args, "--json")
    assert refused.code == WRONG_USE
    assert says in refused.error["what"]


def test_cleaned_history_is_refused_before_spark_starts(run: Run, aged: Aged) -> None:
    assert run("clean", aged.path, "--retained", 2).code == DONE
    refused = run("read", aged.path, "--query", "time_travel", "--as-of", aged.commits[0], "--json")
    assert refused.code == WRONG_USE
    assert "cleaned" in refused.error["what"]
    assert "earliest instant left" in refused.error["hint"]


@pytest.mark.spark
def test_read_the_past(spark: SparkSession, run: Run, table: Path, tmp_path: Path) -> None:
    first, second = HudiTable.open(str(table)).state().timeline.completed(Action.DELTA_COMMIT)
    queries = {
        ("time_travel", "--as-of", first.timestamp): [f"k{n}" for n in range(20)],
        ("incremental", "--begin", first.timestamp): [f"k{n}" for n in range(10, 30)],
        ("incremental", "--begin", "earliest", "--end", first.timestamp): [f"k{n}" for n in range(20)],
        ("incremental", "--begin", second.timestamp): [],
    }
    for number, (query, keys) in enumerate(queries.items()):
        out = tmp_path / f"{number}.parquet"
        answer = run("read", table, "--query", *query, "--out", out, "--json")
        assert answer.code == DONE, answer.err
        assert answer.json == {"query": query[0], "out": str(out), "rows": len(keys)}
        assert sorted(pq.read_table(out)["id"].to_pylist()) == sorted(keys)


def test_the_commands_are_processes_without_spark(table: Path, tmp_path: Path) -> None:
    no_java = {"PATH": str(tmp_path), "JAVA_HOME": ""}
    made = run_process("savepoint", table, "--json", env=no_java)
    assert made.code == DONE, made.err
    assert run_process("validate", table, env=no_java).code == DONE
    nothing = run_process("clean", table, "--json", env=no_java)
    assert nothing.code == NOTHING_TO_DO
    assert nothing.json["nothing_to_do"]
