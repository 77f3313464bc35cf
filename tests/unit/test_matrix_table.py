"""The page's table of what works beside Apache Hudi is that of the matrix's expectations."""

from __future__ import annotations

from tests.interop.matrix.expectations import TOPICS
from tests.interop.matrix.kinds import KINDS
from tests.interop.matrix.table import BEGIN, END, PAGE, inserted, lines


def test_the_page_has_the_current_table() -> None:
    text = PAGE.read_text()
    assert text.count(BEGIN) == text.count(END) == 1
    assert inserted(text) == text, "run: .venv/bin/python -m tests.interop.matrix.table --write"


def test_every_topic_and_kind_is_in_it() -> None:
    head, _, *rows = [line for line in lines() if line.startswith("|")]
    assert head.count("|") == len(KINDS) + 2
    assert len(rows) == len(TOPICS)
    assert all(row.count("|") == len(KINDS) + 2 for row in rows)
