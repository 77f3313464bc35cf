"""Locks between processes that share a table.

On one machine: the filelock library (flock), which the operating system frees when the holder dies. Beside
Apache Hudi's writers (`writers: locked`): a lock of theirs as well (`lock_providers`), taken inside ours. On a store of
objects: a lease (`lease`), which is Hudi's storage-based lock already. In HDFS: a lease, with a lock of theirs inside.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from filelock import FileLock, Timeout

from hudi_assets.engine.errors import Conflict, UnsupportedTable, machine_problem
from hudi_assets.engine.storage import LOCKS, SCRATCH, Storage
from hudi_assets.engine.table.layout.choice import layout_of
from hudi_assets.engine.table.settings.config import TableConfig
from hudi_assets.engine.transaction.holder import parsed
from hudi_assets.engine.transaction.lease import HUDIS_FILE, Lease, LeaseTimes, has_leases, leased
from hudi_assets.engine.transaction.lock_providers import check_lease_is_shared, shared_lock

WRITE = "write"
EXECUTE = "execute"
_LEASES = {WRITE: HUDIS_FILE, EXECUTE: f"{LOCKS}/hudi_assets_execute.json"}


@dataclass(frozen=True)
class HeldLock:
    """What `write_lock` and `table_lock` give: ask `check` right before publishing."""

    shared: Callable[[], None] | None = None
    lease: Lease | None = None

    @property
    def owner(self) -> str:
        """By what a lease knows this holder; "" without one."""
        return "" if self.lease is None else self.lease.owner

    def check(self) -> None:
        """Raise `Conflict` where the lock was taken from us (Hudi's and leases expire): publish nothing then."""
        if self.lease is not None:
            self.lease.renew()
        if self.shared is not None:
            self.shared()


@contextmanager
def write_lock(
    storage: Storage, config: TableConfig, *, wait_s: float, action: str = "works on the table"
) -> Iterator[HeldLock]:
    """The lock of whatever changes the timeline; with `writers: locked`, that of Apache Hudi's writers inside it."""
    is_shared = config.writers == "locked" and storage.capabilities.file_lock
    layout = layout_of(config.table_version, storage.base)
    if is_shared and has_leases(storage) and layout.makes_links:
        raise UnsupportedTable(
            "On version 6 in HDFS the writers of Apache Hudi have to be stopped: they append to log files there.",
            where=storage.base,
            hint="Stop them while this runs (hudi_assets.writers=stopped), or upgrade the table to version 8 or 9.",
        )
    shared = shared_lock(storage, config) if is_shared else None
    with table_lock(storage, WRITE, config=config, wait_s=wait_s, action=action) as held:
        if shared is None:
            yield held
            return
        with shared.held(wait_s, action) as check:
            yield HeldLock(shared=check, lease=held.lease)


@contextmanager
def table_lock(
    storage: Storage, name: str, *, config: TableConfig, wait_s: float, action: str = "works on the table"
) -> Iterator[HeldLock]:
    """Hold one of the table's locks: `write` (whatever changes the timeline) or `execute` (executors).

    Raises `Conflict`, naming the holder, when another process holds it for longer than `wait_s` seconds. On one machine
    the operating system frees it when its holder dies; on a store it ends with the lease, and a holder that goes on
    after that can change nothing more. Either way what is unfinished is nobody's.
    """
    if not has_leases(storage):
        with _machine_lock(storage, name, wait_s, action):
            yield HeldLock()
        return
    if config.writers == "locked" and not storage.capabilities.file_lock:
        check_lease_is_shared(config, storage.base)
    path, times = _LEASES[name], LeaseTimes.of(config, storage.base)
    with leased(storage, name, path=path, wait_s=wait_s, action=action, times=times) as lease:
        yield HeldLock(lease=lease)


@contextmanager
def _machine_lock(storage: Storage, name: str, wait_s: float, action: str) -> Iterator[None]:
    path = storage.local_path(f"{SCRATCH}/{name}.lock")
    lock = FileLock(path)
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        lock.acquire(timeout=wait_s)
    except Timeout:
        raise Conflict(
            f"Another process holds the table's {name} lock: {_holder(storage, name)}.",
            where=path,
            hint="Wait for it to finish and try again.",
        ) from None
    except OSError as error:
        raise machine_problem(error, path) or error from error
    try:
        _name_holder(storage, name, action)
        yield
    finally:
        try:
            storage.delete(_holder_path(name))
        finally:
            lock.release()


def _holder_path(name: str) -> str:
    return f"{SCRATCH}/{name}.lock.json"


def _name_holder(storage: Storage, name: str, action: str) -> None:
    """Who holds the lock, beside it: flock itself does not say."""
    holder = {
        "action": action,
        "process": os.getpid(),
        "host": socket.gethostname(),
        "since": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    try:
        with storage.open_new(_holder_path(name)) as file:
            file.write(json.dumps(holder).encode())
    except OSError as error:
        raise machine_problem(error, storage.uri(_holder_path(name))) or error from error


def _holder(storage: Storage, name: str) -> str:
    try:
        holder = parsed(storage.read(_holder_path(name)))
    except OSError:
        holder = {}
    if not all(isinstance(holder.get(key), str) for key in ("action", "host", "since")):
        return "it has just taken it"
    return f"process {holder.get('process')} on {holder['host']} {holder['action']} since {holder['since']}"
