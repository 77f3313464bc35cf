"""The sensors of docs/how-to/alerts.md, as they stand there."""

from __future__ import annotations

from typing import Any

from tests.pages import ROOT, blocks

_PAGE = ROOT / "docs/how-to/alerts.md"


def documented() -> dict[str, Any]:
    """What the page's blocks of Python define."""
    names: dict[str, Any] = {}
    for block in blocks(_PAGE, "python"):
        exec(block.text, names)
    return names
