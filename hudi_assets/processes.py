"""Processes of this machine, by number."""

from __future__ import annotations

import os


def is_alive(pid: int) -> bool:
    """True while a process of this number runs, whoever's it is."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):  # no system has so great a number
        return False
    except PermissionError:
        return True
    return True
