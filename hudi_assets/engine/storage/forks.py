"""Stores that are reached by a library with threads of its own cannot be used in a fork of a process that used them."""

from __future__ import annotations

import os
from typing import Final

from hudi_assets.engine.errors import EnvironmentProblem

_BEGUN_IN: Final[list[int]] = []  # the process that used a store first, of this one and those that it is a fork of


def refuse_after_fork(where: str) -> None:
    """The library's threads are not in a fork of the process that began them: any call would wait for ever there."""
    if not _BEGUN_IN:
        _BEGUN_IN.append(os.getpid())
    if _BEGUN_IN[0] != os.getpid():
        hint = "Start processes by 'spawn' or 'forkserver', or open tables on a store after the fork alone."
        raise EnvironmentProblem("This process is a fork of one that has used a store.", where=where, hint=hint)
