"""Locks between processes that share a table.

On one machine: the filelock library (flock), which the operating system frees when the holder dies. Beside
Apache Hudi's writers (`writers: locked`): its file-system lock as well, taken inside ours. On a store of objects: a
lease (`lease`), which is Hudi's storage-based lock already.
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import unquote, urlparse

from filelock import FileLock, Timeout

from hudi_assets.engine.errors import Conflict, InvalidInput, UnsupportedTable, machine_problem
from hudi_assets.engine.model.settings import whole_number
from hudi_assets.engine.storage import LOCKS, SCRATCH, Storage, folder_storage
from hudi_assets.engine.table.settings.config import TableConfig
from hudi_assets.engine.transaction.lease import HUDIS_FILE, Lease, LeaseTimes, has_leases, leased
from hudi_assets.engine.transaction.lock_providers import check_lock_provider
from hudi_assets.engine.transaction.renewing import renewed

WRITE = "write"
EXECUTE = "execute"
LOCK_PATH = "hoodie.write.lock.filesystem.path"
LOCK_EXPIRE = "hoodie.write.lock.filesystem.expire"
_OWNER = "hudi-assets"
_POLL_S = 0.1
_LEASES = {WRITE: HUDIS_FILE, EXECUTE: f"{LOCKS}/hudi_assets_execute.json"}


@dataclass(frozen=True)
class HudiLock:
    """Hudi's file-system lock (org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider 0.15).

    A file named `lock`, in `.hoodie` or in hoodie.write.lock.filesystem.path, created exclusively.
    Its holder is dead when the file is older than hoodie.write.lock.filesystem.expire minutes (0: never).
    """

    storage: Storage
    path: str
    expire_ms: int
    table: str

    @classmethod
    def of(cls, storage: Storage, config: TableConfig) -> HudiLock:
        """The lock that the settings name; `UnsupportedTable` for one that cannot be shared from here."""
        check_lock_provider(config, storage.base)
        expire_ms = 60_000 * _minutes(config, storage.base)
        folder = (config.properties.get(LOCK_PATH) or "").strip().rstrip("/")
        if not folder:
            return cls(storage, ".hoodie/lock", expire_ms, storage.base)
        scheme = urlparse(folder).scheme
        if scheme not in ("", "file"):
            raise UnsupportedTable(f"{LOCK_PATH} is {folder}: only a local path is supported.", where=storage.base)
        local = unquote(urlparse(folder).path) if scheme else folder
        if not os.path.isabs(local):
            raise InvalidInput(f"{LOCK_PATH} is {folder!r}.", where=storage.base, hint="Give an absolute path.")
        return cls(folder_storage(local), "lock", expire_ms, storage.base)

    def take(self, wait_s: float, action: str) -> bytes:
        """Create the lock file, waiting for another holder; its content, by which `release` knows it again."""
        mine = self._content(action)
        deadline = time.monotonic() + wait_s
        while True:
            try:
                self.storage.create(self.path, mine)
                return mine
            except Conflict:
                held = self._read()
                # Whoever is here holds our own lock: what an earlier process of ours left is a dead one's.
                if held is not None and (self._is_ours(held) or self._expired()):
                    self.storage.delete(self.path)
                elif time.monotonic() > deadline:
                    raise Conflict(
                        f"Another engine holds Hudi's lock on the table: {_described(held)}.",
                        where=f"{self.storage.base}: {self.path}",
                        hint="Wait for it; if its process is dead, delete the file.",
                    ) from None
                time.sleep(_POLL_S)

    def release(self, mine: bytes) -> None:
        if self.holds(mine):
            self.storage.delete(self.path)

    def holds(self, mine: bytes) -> bool:
        return self._read() == mine

    def refresh(self, mine: bytes) -> None:
        """Make the file young again, so that Java does not take it from a long write."""
        if self.holds(mine):
            self.storage.replace(self.path, mine)

    def _content(self, action: str) -> bytes:
        holder = {
            "lockCreateTime": datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3],
            "lockThreadName": f"{_OWNER} {action} (process {os.getpid()} on {socket.gethostname()})",
            "lockStacksInfo": [],
            "owner": _OWNER,
            "host": socket.gethostname(),
            "table": self.table,
        }
        return json.dumps(holder).encode()

    def _read(self) -> bytes | None:
        try:
            return self.storage.read(self.path)
        except FileNotFoundError:
            return None

    def _is_ours(self, content: bytes) -> bool:
        holder = _parsed(content)
        wanted = {"owner": _OWNER, "host": socket.gethostname(), "table": self.table}
        return all(holder.get(key) == value for key, value in wanted.items())

    def _expired(self) -> bool:
        if self.expire_ms == 0:
            return False
        modified = self.storage.modified_ms(self.path)
        return modified is not None and time.time_ns() // 1_000_000 - modified > self.expire_ms


@dataclass(frozen=True)
class HeldLock:
    """What `write_lock` and `table_lock` give: ask `check` right before publishing."""

    hudi: HudiLock | None = None
    content: bytes = b""
    lease: Lease | None = None

    @property
    def owner(self) -> str:
        """By what a lease knows this holder; "" without one."""
        return "" if self.lease is None else self.lease.owner

    def check(self) -> None:
        """Raise `Conflict` where the lock was taken from us (Hudi's and leases expire): publish nothing then."""
        if self.lease is not None:
            self.lease.renew()
        if self.hudi is not None and not self.hudi.holds(self.content):
            raise Conflict(
                "Hudi's lock on the table was taken from this process while it worked.",
                where=f"{self.hudi.storage.base}: {self.hudi.path}",
                hint=f"Raise {LOCK_EXPIRE} on every writer; what was done here is taken back.",
            )


@contextmanager
def write_lock(
    storage: Storage, config: TableConfig, *, wait_s: float, action: str = "works on the table"
) -> Iterator[HeldLock]:
    """The lock of whatever changes the timeline; with `writers: locked`, Apache Hudi's file-system lock inside it."""
    hudi = HudiLock.of(storage, config) if config.writers == "locked" and not has_leases(storage) else None
    with table_lock(storage, WRITE, config=config, wait_s=wait_s, action=action) as held:
        if hudi is None:
            yield held
            return
        content = hudi.take(wait_s, action)
        try:
            with _kept_young(hudi, content):
                yield HeldLock(hudi, content)
        finally:
            hudi.release(content)


@contextmanager
def _kept_young(hudi: HudiLock, content: bytes) -> Iterator[None]:
    """Refresh a lock that expires by age, three times in its lifetime."""
    if hudi.expire_ms == 0:
        yield
        return
    third, where = hudi.expire_ms / 3, f"{hudi.storage.base}: {hudi.path}"
    with renewed(lambda: hudi.refresh(content), every_ms=third, where=where, thread="hudi-lock"):
        yield


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
    if config.writers == "locked":
        check_lock_provider(config, storage.base, on_a_store=True)
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
        holder = _parsed(storage.read(_holder_path(name)))
    except OSError:
        holder = {}
    if not all(isinstance(holder.get(key), str) for key in ("action", "host", "since")):
        return "it has just taken it"
    return f"process {holder.get('process')} on {holder['host']} {holder['action']} since {holder['since']}"


def _parsed(content: bytes) -> dict[str, object]:
    """A holder's JSON; empty for anything else."""
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    return body if isinstance(body, dict) else {}


def _described(content: bytes | None) -> str:
    holder = _parsed(content or b"")
    thread, since = holder.get("lockThreadName"), holder.get("lockCreateTime")
    return f"{str(thread)[:200]} since {str(since)[:40]}" if thread else "its file says nothing"


def _minutes(config: TableConfig, where: str) -> int:
    """0: it never expires."""
    return whole_number(config.properties, LOCK_EXPIRE, 0, where=where, least=0, most=(1 << 31) - 1)
