"""The command line against a real table: answers, exit codes, and wrong input that changes nothing."""

from __future__ import annotations

import csv
import importlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from rich.console import Console

from hudi_assets import cli
from hudi_assets.cli import output
from tests.cli.conftest import (
    DONE,
    FAILED,
    NOTHING_TO_DO,
    SPLIT,
    WRONG_USE,
    Answer,
    contents,
    run_process,
    set_property,
)

# -- answers --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("width", "shown"), [(80, "│ a[b] │ 1"), (12, "row 1\n  id      a[b]\n  amount  1\n")])
def test_rows_too_wide_for_the_terminal_are_shown_a_column_a_line(
    width: int, shown: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(output, "OUT", Console(width=width, highlight=False))
    output._print_rows(["id", "amount"], [["a[b]", "1"]])
    assert shown in capsys.readouterr().out


def test_status_json_has_the_documented_keys(run: Callable[..., Answer], table: Path) -> None:
    answer = run("status", table, "--json")
    assert answer.code == DONE
    found = answer.json
    assert found["table_version"] == 6
    assert found["remaining"]["log_files"] == 4
    assert found["remaining"]["file_slices"] == 2
    assert found["remaining"]["bytes"] == sum(p.stat().st_size for p in table.glob(".*.log.*"))
    assert found["min_event_time"] == "2024-05-01T00:00:00Z"
    assert found["freshness"] == "2024-04-30T23:59:59.999Z"
    assert found["threshold"] is None
    assert found["pending"] == []
    assert found["last_compaction"] is None


def test_status_for_people_shows_the_same(run: Callable[..., Answer], table: Path) -> None:
    answer = run("status", table)
    assert answer.code == DONE
    assert "2024-04-30T23:59:59.999Z" in answer.out
    assert "4 in 2 file slices" in answer.out


def test_a_unit_that_nobody_stated_is_shown_as_inferred(run: Callable[..., Answer], table: Path) -> None:
    stated = run("status", table, "--json").json["event_time_unit"]
    assert (stated["unit"], stated["source"], stated["evidence"]) == ("ms", "setting", None)
    for key in ("hudi_assets.event.time.unit", "hudi_assets.clock"):  # as in a table that others made
        set_property(table, key, None)
    promise = run("freshness", table, "--json").json
    assert promise["freshness"] == "2024-04-30T23:59:59.999Z"
    assert (promise["event_time_unit"]["unit"], promise["event_time_unit"]["source"]) == ("ms", "values")
    inferred = "ms for column ts, inferred: in no other unit does each value of 4 files lie between 1980 and its commit"
    assert inferred in run("status", table).out
    planned = ("plan", table, "--threshold", SPLIT, "--dry-run", "--writers", "stopped")
    assert inferred in run(*planned).out
    assert run(*planned, "--json").json["event_time_unit"]["evidence"]


def test_a_plan_of_hudis_strategies_needs_no_event_time_column(run: Callable[..., Answer], table: Path) -> None:
    strategy = ("--set", "hoodie.compaction.strategy=UnBoundedCompactionStrategy")
    trigger = ("--set", "hoodie.compact.inline.trigger.strategy=NUM_COMMITS")
    often = ("--set", "hoodie.compact.inline.max.delta.commits=1")
    set_property(table, "hoodie.payload.event.time.field", "gone")
    answer = run("plan", table, *strategy, *trigger, *often, "--json")
    assert answer.code == DONE
    assert answer.json["event_time_unit"] is None


def test_a_unit_that_the_values_contradict(run: Callable[..., Answer], table: Path) -> None:
    promise = run("freshness", table, "--event-time-unit", "us", "--json").json
    assert promise["freshness"] is None
    assert "look like milliseconds" in promise["reason"]
    before = contents(table)
    answer = run("plan", table, "--event-time-unit", "us", "--json")
    assert answer.code == WRONG_USE
    assert "hudi_assets.event.time.unit=ms" in answer.error["hint"]
    assert contents(table) == before
    assert run("plan", table, "--event-time-unit", "days").code == WRONG_USE


def test_freshness_without_a_latency_is_null_and_says_why(run: Callable[..., Answer], table: Path) -> None:
    set_property(table, "hudi_assets.data.latency", None)
    found = run("freshness", table, "--json").json
    assert found["freshness"] is None
    assert found["reason"]
    assert found["reason"] in run("freshness", table).out
    assert run("freshness", table, "--data-latency", "1h", "--json").json["freshness"] is not None


def test_a_dry_run_writes_nothing_and_names_the_same_log_files(run: Callable[..., Answer], table: Path) -> None:
    before = contents(table)
    dry = run("plan", table, "--threshold", SPLIT, "--dry-run", "--json")
    assert (dry.code, contents(table)) == (DONE, before)
    assert dry.json["dry_run"] is True

    planned = run("plan", table, "--threshold", SPLIT, "--json")
    assert planned.code == DONE
    assert planned.json["threshold"] == SPLIT
    logs = [log for op in planned.json["operations"] for log in op["log_files"]]
    assert sorted(logs) == sorted(log for op in dry.json["operations"] for log in op["log_files"])
    assert len(logs) == 2
    assert sum(len(op["carried_over"]) for op in planned.json["operations"]) == 2
    assert run("status", table, "--json").json["pending"] == [planned.json["instant"]]


def test_a_second_plan_has_nothing_to_do_while_one_is_pending(run: Callable[..., Answer], table: Path) -> None:
    instant = run("plan", table, "--threshold", SPLIT, "--json").json["instant"]
    before = contents(table)
    again = run("plan", table, "--threshold", SPLIT)
    assert again.code == NOTHING_TO_DO
    assert instant in again.out
    as_json = run("plan", table, "--threshold", SPLIT, "--json")
    assert as_json.code == NOTHING_TO_DO
    assert instant in as_json.json["nothing_to_do"]
    other = run("compact", table, "--threshold", "2024-05-01T20:00:00Z", "--json")
    assert other.code == FAILED
    assert other.error["error"] == "Conflict"
    assert instant in other.error["what"]
    assert contents(table) == before


def test_nothing_due_is_exit_3_with_the_reason(run: Callable[..., Answer], table: Path) -> None:
    for command in ("plan", "compact"):
        answer = run(command, table, "--threshold", "2024-04-01", "--json")
        assert answer.code == NOTHING_TO_DO
        assert answer.json["nothing_to_do"]
    assert run("recover", table).code == NOTHING_TO_DO


def test_settings_on_the_command_line_reach_the_engine(run: Callable[..., Answer], table: Path) -> None:
    set_property(table, "hudi_assets.writers", None)
    before = contents(table)
    refused = run("plan", table, "--threshold", SPLIT, "--json")
    assert refused.code != DONE
    assert contents(table) == before
    assert run("plan", table, "--threshold", SPLIT, "--writers", "stopped").code == DONE


@pytest.mark.spark
def test_compact_and_read_as_a_user_runs_them(run: Callable[..., Answer], table: Path, tmp_path: Path) -> None:
    others = {"PYSPARK_PYTHON": "/bin/false", "PYSPARK_DRIVER_PYTHON": "/bin/false", "SPARK_HOME": "/opt/another/spark"}
    compacted = run_process("compact", table, "--threshold", SPLIT, "--json", env=others)
    assert compacted.code == DONE, compacted.err
    assert compacted.json["logs_compacted"] == 2
    assert compacted.json["logs_remaining"] == 2
    assert compacted.json["rows"] == 20
    assert compacted.json["freshness"] == "2024-05-01T12:00:09.999Z"

    status = run("status", table, "--json").json
    assert status["last_compaction"] == compacted.json["instant"]
    assert status["threshold"] == SPLIT
    assert status["remaining"]["log_files"] == 2

    out = tmp_path / "ro.parquet"
    nowhere = {"HOME": "/proc/nowhere"}
    written = run_process("read", table, "--query", "read_optimized", "--out", out, "--json", env=nowhere)
    assert written.code == DONE, written.err
    assert compacted.err + written.err == ""
    assert written.json["rows"] == 20
    rows = pq.read_table(out).to_pylist()
    assert sorted(row["id"] for row in rows) == sorted(f"k{i}" for i in range(20))
    assert {row["note"].rsplit(" ", 1)[1] for row in rows} == {"0"}
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".")] == []


@pytest.mark.spark
def test_read_writes_csv_and_json_and_shows_rows(
    spark: SparkSession, run: Callable[..., Answer], table: Path, tmp_path: Path
) -> None:
    out = tmp_path / "snapshot.csv"
    written = run("read", table, "--out", out)
    assert written.code == DONE, written.err
    with out.open(newline="") as file:
        by_id = {row["id"]: row for row in csv.DictReader(file)}
    assert len(by_id) == 30
    assert by_id["k5"]["note"] == 'say "5", 0'
    assert by_id["k15"]["note"] == 'say "15", 12'

    out = tmp_path / "some.json"
    written = run("read", table, "--out", out, "--limit", 3, "--json")
    assert written.json == {"query": "snapshot", "out": str(out), "rows": 3}
    assert len([json.loads(line) for line in out.read_text().splitlines()]) == 3

    some = run("read", table, "--columns", "note,id", "--limit", 2, "--json").json
    assert some["columns"] == ["note", "id"]

    shown = run("read", table, "--limit", 2, "--json").json
    assert [len(shown["rows"]), shown["more"]] == [2, True]
    assert shown["columns"][:2] == ["_hoodie_commit_time", "_hoodie_commit_seqno"]


@pytest.mark.spark
def test_compact_executes_the_plan_that_is_pending(
    spark: SparkSession, run: Callable[..., Answer], table: Path
) -> None:
    instant = run("plan", table, "--threshold", SPLIT, "--json").json["instant"]
    assert run("compact", table, "--dry-run", "--json").json["instant"] == instant
    done = run("compact", table)
    assert done.code == DONE, done.err
    assert instant in done.out
    assert run("status", table, "--json").json["last_compaction"] == instant


# -- wrong input: a clear error, the right exit code, and nothing changed -------------------------


@dataclass(frozen=True)
class Wrong:
    """How to spoil a table or a call, and what must be said of it."""

    spoil: Callable[[Path], object]
    args: tuple[str, ...]
    kind: str
    says: str
    code: int


def far_future() -> str:
    return (datetime.now(UTC) + timedelta(days=2)).isoformat()


WRONG = {
    "no table": Wrong(lambda t: shutil.rmtree(t / ".hoodie"), (), "InvalidInput", "no Hudi table", WRONG_USE),
    "no directory": Wrong(shutil.rmtree, (), "InvalidInput", "No such directory", WRONG_USE),
    "copy-on-write": Wrong(
        lambda t: set_property(t, "hoodie.table.type", "COPY_ON_WRITE"),
        (), "UnsupportedTable", "COPY_ON_WRITE", FAILED,
    ),
    "table version": Wrong(
        lambda t: set_property(t, "hoodie.table.version", "7"), (), "UnsupportedTable", "ersion 7", FAILED
    ),
    "a setting that is none": Wrong(lambda t: None, ("--set", "payments=1"), "InvalidInput", "payments", WRONG_USE),
    "a setting without a value": Wrong(
        lambda t: None, ("--set", "hoodie.clean.automatic"), "InvalidInput", "hoodie.clean.automatic", WRONG_USE
    ),
    "a setting with a wrong value": Wrong(
        lambda t: None, ("--set", "hudi_assets.executor=flink"), "InvalidInput", "hudi_assets.executor", WRONG_USE
    ),
    "no event-time field": Wrong(
        lambda t: None, ("--event-time-field", "nowhere"), "InvalidInput", "nowhere", WRONG_USE
    ),
    "event-time field of a wrong type": Wrong(
        lambda t: None, ("--event-time-field", "amount"), "InvalidInput", "amount", WRONG_USE
    ),
    "threshold in the future": Wrong(
        lambda t: None, ("--threshold", far_future()), "InvalidInput", "future", WRONG_USE
    ),
    "threshold that is no time": Wrong(
        lambda t: None, ("--threshold", "yesterday"), "InvalidInput", "yesterday", WRONG_USE
    ),
    "latency that is no duration": Wrong(
        lambda t: None, ("--data-latency", "soon"), "InvalidInput", "soon", WRONG_USE
    ),
    "threshold and latency": Wrong(
        lambda t: None, ("--data-latency", "1h", "--threshold", SPLIT), "InvalidInput", "both", WRONG_USE
    ),
    "an unknown option": Wrong(lambda t: None, ("--nonsense",), "InvalidInput", "--nonsense", WRONG_USE),
    "an unknown choice": Wrong(
        lambda t: None, ("--writers", "sleeping"), "InvalidInput", "sleeping", WRONG_USE
    ),
}  # fmt: skip


@pytest.mark.parametrize("command", ["plan", "compact"])
@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_wrong_input(run: Callable[..., Answer], table: Path, command: str, wrong: Wrong) -> None:
    wrong.spoil(table)
    before = contents(table)
    answer = run(command, table, *wrong.args, "--json")
    assert answer.code == wrong.code
    assert answer.out == ""
    assert answer.error.keys() == {"error", "what", "where", "hint"}
    assert answer.error["error"] == wrong.kind
    assert wrong.says in answer.error["what"]
    assert contents(table) == before


def test_errors_for_people_are_lines_on_stderr(run: Callable[..., Answer], tmp_path: Path) -> None:
    answer = run("status", tmp_path)
    assert answer.code == WRONG_USE
    assert answer.out == ""
    assert answer.err.startswith("Error: This is no Hudi table")
    assert str(tmp_path) in answer.err
    assert "Traceback" not in answer.err


@pytest.mark.parametrize("out", ["rows.xlsx", "nowhere/rows.csv"])
def test_read_refuses_a_file_it_cannot_write(run: Callable[..., Answer], table: Path, out: str) -> None:
    answer = run("read", table, "--out", table.parent / out, "--json")
    assert answer.code == WRONG_USE
    assert "--out" in answer.error["what"]


def test_read_names_a_column_that_is_not_there(run: Callable[..., Answer], table: Path) -> None:
    answer = run("read", table, "--columns", "id,nothing", "--json")
    assert answer.code == WRONG_USE
    assert "no column 'nothing'" in answer.error["what"]


def test_a_directory_without_write_permission(made_once: Path, run: Callable[..., Answer]) -> None:
    # Here first, as well and badly: what a command imports only when it needs it is imported then.
    importlib.import_module("hudi_assets.engine.spark.errors")
    run("plan", made_once, "--threshold", SPLIT, "--dry-run", "--json")
    run("plan", made_once / "none", "--threshold", SPLIT, "--json")
    # Not below the tests' own folders, which are closed to other users.
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        table = Path(shutil.copytree(made_once, Path(folder) / "payments", symlinks=True))
        before = contents(table)
        folders = [table, *(p for p in table.rglob("*") if p.is_dir())]
        for one in folders:
            one.chmod(0o555)
        answer = _as_nobody("plan", table, "--threshold", SPLIT, "--json")
        for one in folders:
            one.chmod(0o755)
        assert contents(table) == before
    assert answer.code == FAILED, answer
    assert answer.error["error"] == "EnvironmentProblem"
    assert str(table) in answer.error["where"]


def _as_nobody(*args: object) -> Answer:
    """Runs a command as a user whom permissions bind: root, whom they do not, gives up its rights first."""
    if os.geteuid() != 0:
        return run_process(*args)
    # A fork of this process: nobody may not be able to open the environment's files below root's home.
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        code = FAILED
        try:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            os.dup2(write_end, 2)
            sys.stderr = os.fdopen(2, "w", closefd=False)
            sys.argv = ["hudi-assets", *map(str, args)]
            cli.main()
        except SystemExit as ended:
            code = int(ended.code or 0)
        finally:
            sys.stderr.flush()
            os._exit(code)
    os.close(write_end)
    with os.fdopen(read_end) as said:
        err = said.read()
    return Answer(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), "", err)
