"""What hoodie.properties state of the table's version, and what follows for other settings. Pure.

What a version states in full, its layout says (`layout/interface.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

VERSION: Final = "hoodie.table.version"
LAYOUT_VERSION: Final = "hoodie.timeline.layout.version"


def states_merge_mode(properties: Mapping[str, str]) -> bool:
    """True where hoodie.record.merge.mode decides how records merge; else the payload class does."""
    return properties.get(LAYOUT_VERSION) == "2"
