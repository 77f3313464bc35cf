"""The files and commands of "In a dg project of your own" in docs/how-to/dagster.md, as a reader copies them."""

from __future__ import annotations

from pathlib import Path

from tests.pages import blocks_of

PAGE = Path(__file__).resolve().parents[2] / "docs/how-to/dagster.md"
TITLE = "## In a dg project of your own\n"
TABLE = "/data/payments"
PACKAGE = "hudi-assets[dagster]"


def section() -> str:
    return PAGE.read_text("utf-8").partition(TITLE)[2].partition("\n## ")[0]


def fenced(kind: str) -> list[str]:
    """The section's blocks of one language."""
    return [block.text for block in blocks_of(section(), kind)]


def project_file() -> str:
    (text,) = fenced("toml")
    return text


def definitions() -> str:
    (text,) = fenced("python")
    return text


def block(table: str) -> str:
    (text,) = fenced("yaml")
    return text.replace(TABLE, table)


def commands() -> list[str]:
    return [line for text in fenced("sh") for line in text.splitlines()]
