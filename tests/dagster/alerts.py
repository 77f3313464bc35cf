"""The sensors of docs/how-to/alerts.md, as they stand there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

_PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "alerts.md"


def documented() -> dict[str, Any]:
    """What the page's blocks of Python define."""
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", _PAGE.read_text("utf-8"), re.DOTALL):
        exec(block, names)
    return names
