"""Locks between processes that share a table on one machine (the filelock library: flock)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from filelock import FileLock, Timeout

from .errors import Conflict
from .storage import SCRATCH, Storage

WRITE = "write"
EXECUTE = "execute"


@contextmanager
def table_lock(storage: Storage, name: str, *, wait_s: float) -> Iterator[None]:
    """Hold one of the table's locks: `write` (writers and planners) or `execute` (executors).

    Raises `Conflict` when another process holds it for longer than `wait_s` seconds. The operating
    system frees it when its holder dies, so what the holder left unfinished is dead for sure.
    """
    path = storage.uri(f"{SCRATCH}/{name}.lock")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    lock = FileLock(path)
    try:
        lock.acquire(timeout=wait_s)
    except Timeout:
        raise Conflict(
            f"Another process holds the table's {name} lock.",
            where=path,
            hint="Wait for it to finish and try again.",
        ) from None
    try:
        yield
    finally:
        lock.release()
