"""What a breakage is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Breakage:
    """`old` stands once in `file`; with `new` in its place one of `tests` has to fail.

    `tests`: files, or functions as `file::function`. With the one function that notices, it takes a second or two.
    """

    what: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
