"""Locks between processes that share a table on one machine (the filelock library: flock)."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from filelock import FileLock, Timeout

from .config import TableConfig
from .errors import Conflict, UnsupportedTable
from .storage import SCRATCH, Storage

WRITE = "write"
EXECUTE = "execute"
_HUDI_LOCK = ".hoodie/lock"
_HUDI_LOCK_PATH = "hoodie.write.lock.filesystem.path"
_OWNER = "hudi-assets"


@contextmanager
def write_lock(storage: Storage, config: TableConfig, *, wait_s: float) -> Iterator[None]:
    """The lock of writers and planners; with `writers: locked`, Apache Hudi's file-system lock inside it."""
    with table_lock(storage, WRITE, wait_s=wait_s):
        if config.writers != "locked":
            yield
            return
        _take_hudi_lock(storage, config, wait_s)
        try:
            yield
        finally:
            storage.delete(_HUDI_LOCK)


def _take_hudi_lock(storage: Storage, config: TableConfig, wait_s: float) -> None:
    """Create `.hoodie/lock` as org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider does.

    One that an earlier process of ours left is dead for sure: whoever is here holds our own lock.
    """
    if config.properties.get(_HUDI_LOCK_PATH):
        raise UnsupportedTable(f"{_HUDI_LOCK_PATH} is set; only the lock in .hoodie is supported.", where=storage.base)
    owner = {"lockCreateTime": datetime.now(UTC).isoformat(), "lockThreadName": _OWNER, "lockStacksInfo": []}
    deadline = time.monotonic() + wait_s
    while True:
        try:
            storage.create(_HUDI_LOCK, json.dumps(owner).encode())
            return
        except Conflict:
            if _held_by_us(storage):
                storage.delete(_HUDI_LOCK)
            elif time.monotonic() > deadline:
                raise Conflict(
                    "Another engine holds Hudi's lock on the table.",
                    where=f"{storage.base}: {_HUDI_LOCK}",
                    hint="Wait for it; if its process is dead, delete the file.",
                ) from None
            time.sleep(0.1)


def _held_by_us(storage: Storage) -> bool:
    try:
        return _OWNER.encode() in storage.read(_HUDI_LOCK)
    except FileNotFoundError:
        return False


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
