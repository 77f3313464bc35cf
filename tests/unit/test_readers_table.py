"""The page's table of what readers show is that of the test that asks them."""

from __future__ import annotations

from tests.interop.trino.table import PAGE, with_table


def test_the_page_has_the_table() -> None:
    text = PAGE.read_text()
    assert with_table(text) == text, "run: .venv/bin/python -m tests.interop.trino.table --write"
