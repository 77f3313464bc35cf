"""`hudi-assets metrics`: what it tells of tables, and that a broken one stops no other and leaves no number behind."""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from typer.testing import CliRunner

from hudi_assets.cli import app
from hudi_assets.cli import metrics as cli_metrics
from hudi_assets.engine import HudiTable, InvalidInput, Plan
from hudi_assets.monitoring.samples import GAUGES, LABELS, NAMES, registry_of
from hudi_assets.monitoring.tables import Monitored, watched_tables
from hudi_assets.monitoring.watch import Watch
from tests.cli.conftest import DONE, FAILED, WRONG_USE, Answer
from tests.ports import free_port
from tests.tables.local_session import LocalSession
from tests.tables.steps import compact

Values = dict[tuple[str, str], float]
HOUR = 3_600_000


def values_of(text: str) -> Values:
    """(metric, path) → value."""
    families = text_string_to_metric_families(text)
    return {(one.name, one.labels["path"]): one.value for family in families for one in family.samples}


def told(watch: Watch) -> Values:
    metrics = registry_of(watch).collect()
    return {(one.name, one.labels["path"]): one.value for family in metrics for one in family.samples}


@pytest.fixture(autouse=True)
def log_again() -> Iterator[None]:
    """A command settles its log for its process, which here is that of all tests."""
    log = logging.getLogger("hudi_assets.metrics")
    before = log.handlers, log.propagate, log.level
    yield
    log.handlers, log.propagate = before[0], before[1]
    log.setLevel(before[2])


# -- what is told ---------------------------------------------------------------------------------


def test_a_table_is_told_as_status_tells_it(run: Callable[..., Answer], table: Path, session: LocalSession) -> None:
    hudi = HudiTable.open(str(table))
    compact(hudi, session, "2024-05-01T06:00:00Z")
    status = run("status", table, "--json").json
    answer = run("metrics", table, "--slo", "6h")
    assert answer.code == DONE
    assert answer.err == ""
    found = {name: value for (name, path), value in values_of(answer.out).items() if path == str(table)}
    assert found["hudi_assets_up"] == 1
    assert found["hudi_assets_freshness_known"] == 1
    assert found["hudi_assets_freshness_timestamp_seconds"] == status["freshness_ms"] / 1000
    assert abs(found["hudi_assets_freshness_lag_seconds"] - (time.time() - status["freshness_ms"] / 1000)) < 60
    assert found["hudi_assets_freshness_slo_seconds"] == 6 * 3600
    assert found["hudi_assets_threshold_timestamp_seconds"] == 1714543200
    assert found["hudi_assets_min_event_timestamp_seconds"] == 1714564800 + 10
    assert found["hudi_assets_remaining_log_files"] == status["remaining"]["log_files"] == 2
    assert found["hudi_assets_remaining_log_bytes"] == status["remaining"]["bytes"]
    assert found["hudi_assets_remaining_file_slices"] == status["remaining"]["file_slices"]
    assert found["hudi_assets_base_files"] == status["base"]["files"]
    assert found["hudi_assets_base_bytes"] == status["base"]["bytes"]
    assert found["hudi_assets_pending_compactions"] == 0
    assert found["hudi_assets_last_compaction_log_files"] == 2
    (last,) = hudi.past_compactions()
    assert found["hudi_assets_last_compaction_read_bytes"] == last.bytes_read
    assert found["hudi_assets_last_compaction_written_bytes"] == last.bytes_written
    assert found["hudi_assets_last_compaction_timestamp_seconds"] == last.completed_ms / 1000
    assert found["hudi_assets_last_compaction_duration_seconds"] == (last.duration_ms or 0) / 1000
    (day,) = hudi.metrics().days
    assert f'day="{day.day}"' in answer.out
    assert found["hudi_assets_day_compactions"] == day.compactions == 1
    assert found["hudi_assets_day_read_bytes"] == last.bytes_read
    assert found["hudi_assets_day_written_bytes"] == last.bytes_written
    assert found["hudi_assets_day_compacting_seconds"] == (last.duration_ms or 0) / 1000
    assert found["hudi_assets_day_freshness_gained_seconds"] == day.gained_ms / 1000 > 0
    of_runs = {name for name in NAMES if "run" in name or "dagster" in name}
    assert found.keys() == NAMES - {"hudi_assets_pending_compaction_age_seconds"} - of_runs
    assert f'{{path="{table}",table="payments"}}' in answer.out or f'{{table="payments",path="{table}"}}' in answer.out


def test_without_a_freshness_there_is_no_sample_of_it(run: Callable[..., Answer], table: Path) -> None:
    log = sorted(table.glob(".*.log.*"))[0]
    log.unlink()
    answer = run("metrics", table)
    assert answer.code == DONE
    found = {name: value for (name, _), value in values_of(answer.out).items()}
    assert found["hudi_assets_freshness_known"] == 0
    assert not found.keys() & {"hudi_assets_freshness_timestamp_seconds", "hudi_assets_freshness_lag_seconds"}
    assert "hudi_assets_freshness_slo_seconds" not in found  # nobody stated one


def test_a_pending_plan_has_an_age(run: Callable[..., Answer], table: Path) -> None:
    plan = HudiTable.open(str(table)).plan_compaction(threshold="2024-05-01T06:00:00Z")
    assert isinstance(plan, Plan)
    file = table / ".hoodie" / f"{plan.instant}.compaction.requested"
    os.utime(file, (time.time() - 7200,) * 2)
    found = values_of(run("metrics", table).out)
    assert found["hudi_assets_pending_compactions", str(table)] == 1
    assert 7200 <= found["hudi_assets_pending_compaction_age_seconds", str(table)] < 7300


def test_names_are_as_prometheus_has_them() -> None:
    for name in NAMES - {"hudi_assets_look_failures_total"}:
        assert not name.endswith(("_total", "_count", "_sum", "_bucket", "_info")), name
    for gauge in GAUGES:
        assert re.fullmatch(r"[A-Z1].*\.", gauge.help), gauge
    assert len({gauge.name for gauge in GAUGES}) == len(GAUGES)
    assert LABELS == ("table", "path")


@pytest.mark.skipif(
    shutil.which("promtool") is None, reason="no promtool here: Debian has it in its package prometheus"
)
def test_promtool_finds_no_fault_with_them(run: Callable[..., Answer], table: Path) -> None:
    text = run("metrics", table, "--slo", "6h").out
    done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


# -- looks that fail ------------------------------------------------------------------------------


def test_a_table_that_is_not_there_stops_no_other_and_is_told_on_stderr(
    run: Callable[..., Answer], table: Path, tmp_path: Path
) -> None:
    answer = run("metrics", tmp_path / "none", table)
    assert answer.code == FAILED
    found = values_of(answer.out)
    assert found["hudi_assets_up", str(tmp_path / "none")] == 0
    assert found["hudi_assets_look_failures_total", str(tmp_path / "none")] == 1
    assert found["hudi_assets_up", str(table)] == 1
    assert found["hudi_assets_look_failures_total", str(table)] == 0
    assert found["hudi_assets_remaining_log_files", str(table)] == 4
    assert f"The look at {tmp_path / 'none'} failed: " in answer.err


def test_the_numbers_of_a_table_that_breaks_vanish_and_come_back(table: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = str(table)
    watch = Watch([Monitored(path, 1000)])
    with caplog.at_level(logging.INFO, "hudi_assets.metrics"):
        watch.look()
        whole = told(watch)
        shutil.move(table / ".hoodie", table / "gone")
        watch.look()
        watch.look()
        broken = told(watch)
        shutil.move(table / "gone", table / ".hoodie")
        watch.look()
    assert {name for name, _ in broken} == {
        "hudi_assets_up",
        "hudi_assets_look_duration_seconds",
        "hudi_assets_look_timestamp_seconds",
        "hudi_assets_look_failures_total",
    }
    assert broken["hudi_assets_up", path] == 0
    assert broken["hudi_assets_look_failures_total", path] == 2
    assert broken["hudi_assets_look_timestamp_seconds", path] == whole["hudi_assets_look_timestamp_seconds", path]
    again = told(watch)
    assert again.keys() == whole.keys()
    assert again["hudi_assets_look_failures_total", path] == 2
    assert [record.levelname for record in caplog.records] == ["ERROR", "INFO"]  # each reason once


def test_a_mistake_in_the_program_stops_no_other_table(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    opened = HudiTable.open

    def open_table(path: str, **options: object) -> HudiTable:
        if path.endswith("odd"):
            raise KeyError("x")
        return opened(path)

    monkeypatch.setattr(HudiTable, "open", open_table)
    watch = Watch([Monitored(str(tmp_path / "odd")), Monitored(str(table))])
    watch.look()
    found = told(watch)
    assert found["hudi_assets_up", str(tmp_path / "odd")] == 0
    assert found["hudi_assets_up", str(table)] == 1
    assert any(record.exc_info for record in caplog.records)


def test_numbers_of_a_look_that_is_long_ago_vanish(table: Path) -> None:
    now = [1000.0]
    watch = Watch([Monitored(str(table))], interval=60, clock=lambda: now[0])
    watch.look()
    now[0] += 179
    assert told(watch)["hudi_assets_remaining_log_files", str(table)] == 4
    now[0] += 2  # three rounds: a later look hangs
    late = told(watch)
    assert late["hudi_assets_up", str(table)] == 0
    assert ("hudi_assets_remaining_log_files", str(table)) not in late


# -- which tables ---------------------------------------------------------------------------------


def test_tables_come_from_a_file_each_with_its_own_slo(tmp_path: Path) -> None:
    file = tmp_path / "tables.toml"
    file.write_text(
        '[[table]]\npath = "/data/a"\nslo = "2h"\nsettings = {"hoodie.payload.event.time.field" = "ts"}\n'
        '[[table]]\npath = "/data/b/"\n'
    )
    found = watched_tables(["/data/b", "/data/b/../c"], file, "6h", {})
    assert found == (
        Monitored("/data/b", 6 * HOUR, {}),
        Monitored("/data/c", 6 * HOUR, {}),
        Monitored("/data/a", 2 * HOUR, {"hoodie.payload.event.time.field": "ts"}),
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("table = 1", "names no tables"),
        ("[[tables]]\npath = 'a'", "'tables', which is not known"),
        ("[[table]]\npath = 1", "needs a path"),
        ("[[table]]\npath = 'a'\nslo = 6", "slo is a text"),
        ("[[table]]\npath = 'a'\nslo = 'soon'", "'soon' is no duration"),
        ("[[table]]\npath = 'a'\nsol = '6h'", "'sol' is not known"),
        ("[[table]]\npath = 'a'\nsettings = {'hudi_assets.nothing' = 'x'}", "no setting hudi_assets.nothing"),
        ("[[table]]\npath = 'a'\nsettings = {'hoodie.x' = 1}", "settings has texts alone"),
        ("[[table", "is no TOML"),
    ],
)
def test_a_wrong_file_of_tables_is_refused_in_words(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "tables.toml").write_text(text)
    with pytest.raises(InvalidInput, match=said):
        watched_tables([], tmp_path / "tables.toml", None, {})


def test_the_help_shows_the_sections_of_the_file_of_tables() -> None:
    """Rich takes words in brackets for styles, and leaves them out."""
    assert "[[table]] with path" in CliRunner().invoke(app, ["metrics", "--help"], env={"COLUMNS": "200"}).output


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((), "No table is given"),
        (("t", "--slo", "soon"), "'soon' is no duration"),
        (("t", "--tables", "/nowhere.toml"), "no such file of tables"),
        (("t", "--listen", "localhost"), "has no port"),
        (("t", "--listen", ":99999"), "has no port"),
        (("t", "--once"), "goes with --textfile alone"),
        (("t", "--set", "hudi_assets.nothing=1"), "no setting hudi_assets.nothing"),
    ],
)
def test_wrong_use_is_refused(given: tuple[str, ...], said: str, run: Callable[..., Answer]) -> None:
    answer = run("metrics", *given)
    assert answer.code == WRONG_USE
    assert said in answer.err


# -- where they go --------------------------------------------------------------------------------


def test_a_file_for_the_node_exporter_is_written_once(run: Callable[..., Answer], table: Path, tmp_path: Path) -> None:
    file = tmp_path / "out" / "hudi.prom"
    file.parent.mkdir()
    answer = run("metrics", table, "--textfile", file, "--once")
    assert (answer.code, answer.out) == (DONE, "")
    assert values_of(file.read_text())["hudi_assets_up", str(table)] == 1
    assert list(file.parent.iterdir()) == [file]


def test_a_folder_that_is_not_there_is_an_error_in_words(
    run: Callable[..., Answer], table: Path, tmp_path: Path
) -> None:
    answer = run("metrics", table, "--textfile", tmp_path / "none" / "hudi.prom")
    assert answer.code == FAILED
    assert "Traceback" not in answer.err
    assert str(tmp_path / "none") in answer.err


def test_a_file_that_cannot_be_written_for_a_while_ends_nothing(
    table: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    registry = registry_of(Watch([Monitored(str(table))]))
    with caplog.at_level(logging.ERROR, "hudi_assets.metrics"):
        cli_metrics._put_out_or_log(registry, tmp_path / "none" / "hudi.prom")
    assert "cannot be written: No such file or directory" in caplog.text


@pytest.mark.parametrize(
    ("listen", "address"),
    [
        ("9477", ("127.0.0.1", 9477)),
        (":9477", ("127.0.0.1", 9477)),
        ("0.0.0.0:80", ("0.0.0.0", 80)),
        ("[::1]:80", ("::1", 80)),
    ],
)
def test_other_machines_are_let_in_only_where_that_is_said(listen: str, address: tuple[str, int]) -> None:
    assert cli_metrics._address(listen) == address


def test_the_rules_are_printed(run: Callable[..., Answer]) -> None:
    answer = run("metrics", "--rules")
    assert answer.code == DONE
    assert "alert: HudiAssetsFreshnessBeyondSlo" in answer.out


def test_they_are_served_until_it_is_told_to_end(table: Path, tmp_path: Path) -> None:
    port = free_port()
    file = tmp_path / "hudi.prom"
    command = [sys.executable, "-m", "hudi_assets.cli", "metrics", table, tmp_path / "none", "--listen", str(port)]
    more = ["--interval", "0.2", "--textfile", file, "--log-format", "json"]
    exporter = subprocess.Popen([*map(str, [*command, *more])], stderr=subprocess.PIPE, text=True)
    try:
        path, none = str(table), str(tmp_path / "none")
        first = _until(port, lambda found: ("hudi_assets_up", path) in found)
        assert first["hudi_assets_up", none] == 0
        assert first["hudi_assets_remaining_log_files", path] == 4
        shutil.rmtree(table)
        gone = _until(port, lambda found: found["hudi_assets_up", path] == 0)
        assert ("hudi_assets_remaining_log_files", path) not in gone
        assert values_of(file.read_text())["hudi_assets_up", none] == 0
    finally:
        exporter.send_signal(signal.SIGTERM)
        _, err = exporter.communicate(timeout=60)
    assert exporter.returncode == DONE, err
    lines = [json.loads(line) for line in err.splitlines()]
    assert lines[0]["path"] == none
    assert lines[0]["level"] == "error"
    assert f"http://127.0.0.1:{port}/metrics" in lines[1]["message"]
    assert lines[2]["path"] == path
    assert len(lines) == 3


def test_a_port_that_is_taken_is_an_error_in_words(run: Callable[..., Answer], table: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        answer = run("metrics", table, "--listen", f"127.0.0.1:{taken.getsockname()[1]}")
    assert answer.code == FAILED
    assert "Cannot listen: Address already in use." in answer.err


def _until(port: int, seen: Callable[[Values], bool]) -> Values:
    deadline = time.monotonic() + 60
    found: Values = {}
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
                found = values_of(answer.read().decode())
        except OSError:
            found = {}
        if found and seen(found):
            return found
        time.sleep(0.1)
    raise AssertionError(f"not seen in time: {found}")
