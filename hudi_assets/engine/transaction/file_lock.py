"""Hudi's lock on a file system: FileSystemBasedLockProvider, a file that is created exclusively."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import unquote, urlparse

from hudi_assets.engine.errors import Conflict, InvalidInput, LockLost, UnsupportedTable
from hudi_assets.engine.model.settings import whole_number
from hudi_assets.engine.storage import LOCKS, Storage, folder_storage
from hudi_assets.engine.table.settings.config import TableConfig
from hudi_assets.engine.transaction.holder import parsed
from hudi_assets.engine.transaction.renewing import renewed

LOCK_PATH = "hoodie.write.lock.filesystem.path"
LOCK_EXPIRE = "hoodie.write.lock.filesystem.expire"
_OWNER = "hudi-assets"
_POLL_S = 0.1


@dataclass(frozen=True)
class FileSystemLock:
    """Hudi's file-system lock (org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider 0.15).

    A file named `lock`, in `.hoodie` or in hoodie.write.lock.filesystem.path, created exclusively.
    Its holder is dead when the file is older than hoodie.write.lock.filesystem.expire minutes (0: never).
    """

    storage: Storage
    path: str
    expire_ms: int
    table: str

    @classmethod
    def of(cls, storage: Storage, config: TableConfig) -> FileSystemLock:
        """By Hudi's settings."""
        expire_ms = 60_000 * _minutes(config, storage.base)
        folder = (config.properties.get(LOCK_PATH) or "").strip().rstrip("/")
        if not folder:
            return cls(storage, ".hoodie/lock", expire_ms, storage.base)
        if storage.capabilities.put_if_match:  # in HDFS
            return cls(storage, f"{_inside(storage, folder)}lock", expire_ms, storage.base)
        scheme = urlparse(folder).scheme
        if scheme not in ("", "file"):
            raise UnsupportedTable(f"{LOCK_PATH} is {folder}: only a local path is supported.", where=storage.base)
        local = unquote(urlparse(folder).path) if scheme else folder
        if not os.path.isabs(local):
            raise InvalidInput(f"{LOCK_PATH} is {folder!r}.", where=storage.base, hint="Give an absolute path.")
        return cls(folder_storage(local), "lock", expire_ms, storage.base)

    @contextmanager
    def held(self, wait_s: float, action: str) -> Iterator[Callable[[], None]]:
        """See `SharedLock`."""
        content = self.take(wait_s, action)
        try:
            with self._kept_young(content):
                yield lambda: self.check(content)
        finally:
            self.release(content)

    @contextmanager
    def _kept_young(self, content: bytes) -> Iterator[None]:
        """Refresh a lock that expires by age, three times in its lifetime."""
        if self.expire_ms == 0:
            yield
            return
        third, where = self.expire_ms / 3, f"{self.storage.base}: {self.path}"
        with renewed(lambda: self.refresh(content), every_ms=third, where=where, thread="hudi-lock"):
            yield

    def check(self, mine: bytes) -> None:
        """Raise `Conflict` where another engine took the lock, which expires."""
        if not self.holds(mine):
            raise Conflict(
                "Hudi's lock on the table was taken from this process while it worked.",
                where=f"{self.storage.base}: {self.path}",
                hint=f"Raise {LOCK_EXPIRE} on every writer; what was done here is taken back.",
            )

    def take(self, wait_s: float, action: str) -> bytes:
        """Create the lock file, waiting for another holder; its content, by which `release` knows it again."""
        mine = self._content(action)
        deadline = time.monotonic() + wait_s
        while True:
            try:
                self.storage.create(self.path, mine)
                return mine
            except LockLost:
                raise
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
        holder = parsed(content)
        wanted = {"owner": _OWNER, "table": self.table}
        if not self.storage.capabilities.put_if_match:  # else our own lock is that of all hosts
            wanted["host"] = socket.gethostname()
        return all(holder.get(key) == value for key, value in wanted.items())

    def _expired(self) -> bool:
        if self.expire_ms == 0:
            return False
        modified = self.storage.modified_ms(self.path)
        return modified is not None and time.time_ns() // 1_000_000 - modified > self.expire_ms


def _inside(storage: Storage, folder: str) -> str:
    """A folder of the table, relative to it: there alone is a change refused that comes after the lease.

    In HDFS a path without a scheme is on Hadoop's default store, which only its own files name.
    """
    parts = [part for part in folder.removeprefix(storage.base).split("/") if part]
    relative = "".join(f"{part}/" for part in parts)
    is_inside = f"{folder}/".startswith(f"{storage.base}/") and not {".", ".."} & {*parts}
    if not is_inside or relative.startswith(f"{LOCKS}/"):
        raise UnsupportedTable(
            f"{LOCK_PATH} is {folder}, where a change can arrive after the table's lock was lost.",
            where=storage.base,
            hint=f"Give the whole path, {urlparse(storage.base).scheme}://…, of a folder of the table outside {LOCKS}, "
            "written as the table's own path is. Or give none. Give every writer the same.",
        )
    return relative


def _described(content: bytes | None) -> str:
    holder = parsed(content or b"")
    thread, since = holder.get("lockThreadName"), holder.get("lockCreateTime")
    return f"{str(thread)[:200]} since {str(since)[:40]}" if thread else "its file says nothing"


def _minutes(config: TableConfig, where: str) -> int:
    """0: it never expires."""
    return whole_number(config.properties, LOCK_EXPIRE, 0, where=where, least=0, most=(1 << 31) - 1)
