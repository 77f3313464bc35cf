"""What `make run` shows: within 80 columns, and late rows as what they are."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from hudi_assets.demo import replay
from hudi_assets.demo.shown import Summary, minute, progress_bar, show
from hudi_assets.engine import CorruptTable

LATE = "no_late_records (ERROR): p/f.log.1: 1 late record of commit 20240101000000000"
COMPACTION = {
    "threshold": "2013-01-03T19:00:00Z",
    "logs_compacted": 1048,
    "logs_remaining": 6,
    "rows_written": 522_036,
    "seconds": 12.416,
}
QUERIES = {
    "read_optimized": {"rows": 2595, "freshness": "2013-01-03T19:00:00Z", "behind": "4 h 58 min"},
    "snapshot": {"rows": 2696, "freshness": "2013-01-04T00:00:00Z", "behind": "0 s"},
}


def console() -> Console:
    return Console(file=io.StringIO(), width=80, force_terminal=True, color_system=None)


def shown(**more: object) -> str:
    out = console()
    summary = Summary(
        3,
        "started over",
        batches=24,
        rows=7417,
        compactions=[COMPACTION] * 3,
        queries=QUERIES,
        **more,  # type: ignore
    )
    show(summary, out, "/w/flights", Path("/w/last-run.json"))
    assert isinstance(out.file, io.StringIO)
    text = out.file.getvalue()
    assert max(map(len, text.splitlines())) <= 80
    return text


def test_both_tables_fit_and_a_time_stands_on_one_line() -> None:
    text = shown()
    assert text.count("2013-01-03 19:00") == 4  # three compactions and the view have the same freshness
    assert "…" not in text
    assert "Compactions: log files up to the threshold become base files" in text  # on one line
    assert "log files merged   log files left   flights   seconds" in text


def test_late_rows_are_no_failure() -> None:
    text = " ".join(shown(late_records=6, fallbacks_published=2, checks_passed=34, checks_failed=[LATE, LATE]).split())
    assert "fail" not in text
    assert "6 of them came late, as they do in this stream" in text
    assert "The check no_late_records said so 2 times, and the freshness was taken back 2 times." in text
    assert "All other 34 checks passed." in text


def test_another_check_that_fails_is_one() -> None:
    text = " ".join(shown(checks_passed=33, checks_failed=[LATE, "freshness_within_slo (WARN): late"]).split())
    assert "33 checks passed, and 1 failed that should not: freshness_within_slo (WARN): late" in text


def test_the_progress_line_fits_with_the_time_left() -> None:
    out = console()
    with progress_bar(out) as progress:
        task = progress.add_task("clock 2013-12-31 21:00", total=365, said="fresh to 12-31 07:00")
        progress.advance(task, 300)
        progress.refresh()
    assert isinstance(out.file, io.StringIO)
    lines = [line for line in out.file.getvalue().splitlines() if "clock" in line]
    assert any("300/365" in line and "left fresh to 12-31 07:00" in line for line in lines), lines


def test_a_time_is_told_to_the_minute() -> None:
    assert [minute(time) for time in ("2013-01-03T19:01:59.999Z", None)] == ["2013-01-03 19:01", "none"]


def test_a_place_in_brackets_is_shown() -> None:
    """Rich takes words in brackets for styles: a path would be one that ends nowhere."""
    failed = "no_pre_threshold_logs (ERROR): It is so. [/w/flights: p/f.log.1]"
    assert failed in " ".join(shown(checks_failed=[failed]).split())


def test_an_error_is_shown_with_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def damaged(*_: object, **__: object) -> Summary:
        raise CorruptTable("It is so.", where="/w/flights: p/f.log.1")

    monkeypatch.setenv("HUDI_ASSETS_HOME", str(tmp_path))
    monkeypatch.setattr(replay, "replay", damaged)
    assert replay.main([]) == 1
    assert "It is so. [/w/flights: p/f.log.1]" in capsys.readouterr().out
