"""The partitions of a query and their values, as the Java reader gets them."""

from __future__ import annotations

import json
from dataclasses import dataclass

Values = tuple[str | None, ...]
"""A partition's values, one for each partition column; None: not known, or null."""


@dataclass(frozen=True)
class Places:
    """The partition columns, each partition's values, and each slice's partition (its number) and bytes.

    `joined`: values were joined as they are, so a path has lost the slashes and dots that one begins with.
    """

    columns: tuple[str, ...]
    partitions: tuple[Values, ...]
    slices: tuple[tuple[int, int], ...]
    joined: bool = False

    def to_json(self) -> str:
        return json.dumps(
            {"columns": self.columns, "partitions": self.partitions, "slices": self.slices, "joined": self.joined}
        )
