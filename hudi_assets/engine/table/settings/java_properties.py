"""Java's properties format. A table's settings are read by each call and seldom change: a text is parsed once."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import javaproperties


def parse_properties(text: str) -> dict[str, str]:
    """Key → value, in the text's order; `ValueError` where it is no such text."""
    return dict(_parsed(text))


@lru_cache(maxsize=32)
def _parsed(text: str) -> tuple[tuple[str, str], ...]:
    return tuple(javaproperties.loads(text).items())


def dump_properties(properties: Mapping[str, str]) -> bytes:
    """Java's properties format; text beyond Latin-1 is escaped as Java does."""
    return javaproperties.dumps(dict(properties), timestamp=True, sort_keys=True).encode("latin-1")
