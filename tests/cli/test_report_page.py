"""`hudi-assets report`: one page that needs no network, and that says what cannot be told."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from hudi_assets.engine import HudiTable, InvalidInput, Plan, duration
from hudi_assets.reporting.page import _section
from hudi_assets.reporting.pictures import lag_figure, svg
from tests.cli.conftest import DONE, FAILED, WRONG_USE, Answer
from tests.tables.local_session import LocalSession
from tests.tables.steps import compact


class Read(HTMLParser):
    """A page's text outside pictures, its headings, how many pictures, and what it would fetch."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.text, self.headings, self.fetched = "", [""], []  # type: ignore[var-annotated]
        self.pictures, self._inside, self._open = 0, "", []  # type: ignore[var-annotated]
        self.feed(page)
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("meta", "use", "path", "rect", "li", "br"):
            self._open.append(tag)
        self._inside = tag
        self.pictures += tag == "svg"
        if tag == "h2":
            self.headings.append("")
        self.fetched += [v for k, v in attrs if k in ("src", "href", "xlink:href") and v and not v.startswith("#")]

    def handle_endtag(self, tag: str) -> None:
        if tag in self._open:
            while self._open.pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        if "svg" not in self._open and "style" not in self._open:
            self.text += data
        if self._open and self._open[-1] == "h2":
            self.headings[-1] += data


@pytest.fixture
def page(run: Callable[..., Answer], tmp_path: Path) -> Callable[..., Read]:
    def made(*args: object) -> Read:
        answer = run("report", *args, "--out", tmp_path / "report.html")
        assert (answer.code, answer.err) == (DONE, "")
        return Read((tmp_path / "report.html").read_text("utf-8"))

    return made


def test_the_page_tells_the_table_in_words_and_pictures(
    page: Callable[..., Read], table: Path, session: LocalSession
) -> None:
    compact(HudiTable.open(str(table)), session, "2024-05-01T06:00:00Z")
    read = page(table, "--slo", "6h")
    assert read.fetched == []
    assert read.pictures == 6
    assert "holds every ingested record up to 2024-05-01 12:00 UTC" in read.text
    assert "beyond the SLO of 6 h" in read.text
    assert "2 log files (" in read.text
    assert "Their oldest event is of 2024-05-01 12:00." in read.text
    (last,) = HudiTable.open(str(table)).past_compactions()
    assert f"The last compaction, {last.instant}, merged 2 log files into 2 base files" in read.text
    (bill,), (day,) = HudiTable.open(str(table)).bills(), HudiTable.open(str(table)).metrics().days
    assert bill.gained_ms
    assert day.day in read.text
    assert read.text.count(duration(bill.gained_ms)) >= 2  # of the compaction, and of the day
    assert "Of the last 40 records, 95 % were committed within" in read.text


def test_a_table_that_was_never_compacted_has_a_page_too(page: Callable[..., Read], table: Path) -> None:
    read = page(table)
    assert "No compaction is on the active timeline." in read.text
    assert "SLO" not in read.text


def test_a_pending_plan_is_told(page: Callable[..., Read], table: Path) -> None:
    plan = HudiTable.open(str(table)).plan_compaction(threshold="2024-05-01T06:00:00Z")
    assert isinstance(plan, Plan)
    read = page(table)
    assert f"A compaction is pending: {plan.instant}, published " in read.text
    assert "A compaction is pending: it comes first." in read.text


def test_without_a_freshness_the_page_says_why_and_stands(page: Callable[..., Read], table: Path) -> None:
    sorted(table.glob(".*.log.*"))[0].unlink()
    read = page(table)
    assert "No freshness can be promised: " in read.text
    assert len(read.headings) == 8


def test_what_cannot_be_told_is_said_in_its_section() -> None:
    def refuses() -> str:
        raise InvalidInput("There is <no> column.")

    said = "<p>This cannot be told: There is &lt;no&gt; column.</p>"
    assert _section("Title", "Words.", refuses) == f"<section><h2>Title</h2><p>Words.</p>{said}</section>"


def test_names_are_no_markup(page: Callable[..., Read], table: Path, tmp_path: Path) -> None:
    odd = tmp_path / "<b>&c"
    shutil.move(table, odd)
    assert str(odd) in page(odd).text


def test_an_empty_table_has_a_page(page: Callable[..., Read], table: Path, tmp_path: Path) -> None:
    made = HudiTable.open(str(table))
    HudiTable.create(str(tmp_path / "new"), made.schema(), record_key=["id"], ordering_field="ts")
    assert "No freshness can be promised" in page(tmp_path / "new").text


def test_without_matplotlib_it_says_what_to_install(table: Path, tmp_path: Path) -> None:
    code = "import sys; sys.modules['matplotlib'] = None; from hudi_assets import cli; cli.main()"
    command = [sys.executable, "-c", code, "report", table, "--out", tmp_path / "report.html"]
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
    assert done.returncode == FAILED
    assert "pip install 'hudi-assets[report]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_wrong_slo_is_refused(run: Callable[..., Answer], table: Path, tmp_path: Path) -> None:
    answer = run("report", table, "--out", tmp_path / "report.html", "--slo", "soon")
    assert answer.code == WRONG_USE
    assert not (tmp_path / "report.html").exists()


def test_where_nothing_is_known_the_line_has_a_gap(table: Path) -> None:
    past = HudiTable.open(str(table)).past_freshness()
    (axes,) = lag_figure(past, (past[-1].at_ms, None), None).axes
    lags = np.asarray(axes.get_lines()[0].get_ydata())
    assert lags[-1] != lags[-1]  # NaN
    assert re.match(r"<svg [^>]*xmlns", svg(lag_figure(past, (past[-1].at_ms, None), 3_600_000)))
