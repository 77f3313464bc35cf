"""Hudi's locks in ZooKeeper: ZookeeperBasedLockProvider, and ZookeeperBasedImplicitBasePathLockProvider of 1.x.

Both are Curator's InterProcessMutex at one path. Whoever wants the lock makes a node below it, which ZooKeeper numbers,
and which goes with the session of its maker. The least number has the lock; each other waits for the one before it.
kazoo's lock does the same. It has the names that Curator sorts by number once it has Curator's `-lock-` in its own.

`docs/explanation/zookeeper.md` has the protocol, and what was tried beside Hudi.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from hudi_assets.engine.errors import Conflict, EnvironmentProblem, InvalidInput, LockLost
from hudi_assets.engine.model.settings import whole_number
from hudi_assets.engine.table.metadata.index_keys import xxh64
from hudi_assets.engine.table.settings.config import TableConfig

if TYPE_CHECKING:
    from kazoo.client import KazooClient

log = logging.getLogger(__name__)

URL: Final = "hoodie.write.lock.zookeeper.url"
PORT: Final = "hoodie.write.lock.zookeeper.port"
BASE_PATH: Final = "hoodie.write.lock.zookeeper.base_path"
LOCK_KEY: Final = "hoodie.write.lock.zookeeper.lock_key"
SESSION: Final = "hoodie.write.lock.zookeeper.session_timeout_ms"
CONNECTION: Final = "hoodie.write.lock.zookeeper.connection_timeout_ms"
TABLES_BASE_PATH: Final = "hoodie.base.path"
_DEFAULT_PORT: Final = 2181
_MOST: Final = (1 << 31) - 1
_LEAST_WAIT_S: Final = 1.0  # a free lock takes some answers of the server
_POLL_S: Final = 0.1


@dataclass(frozen=True, slots=True)
class ZooKeeperLock:
    """Where the lock is. `hosts`: as Hudi has it in `url`, host:port,host:port, a path after it if need be."""

    hosts: str
    path: str
    session_ms: int
    connection_ms: int
    table: str

    @classmethod
    def of(cls, config: TableConfig, table: str, *, implicit: bool) -> ZooKeeperLock:
        """By Hudi's settings; `implicit`: its path is made from the table's."""
        properties = config.properties
        return cls(
            hosts=_hosts(config, table),
            path=_implicit_path(config, table) if implicit else _path(config, table),
            session_ms=whole_number(properties, SESSION, 60_000, where=table, least=1, most=_MOST),
            connection_ms=whole_number(properties, CONNECTION, 15_000, where=table, least=1, most=_MOST),
            table=table,
        )

    @property
    def where(self) -> str:
        return f"{self.table}: {self.path} in ZooKeeper at {self.hosts}"

    @contextmanager
    def held(self, wait_s: float, action: str) -> Iterator[Callable[[], None]]:
        """Hold the lock; what asks whether it is still ours, and raises `LockLost` where it is not."""
        with self._session() as client:
            session = _Session(self, client)
            session.take(max(wait_s, _LEAST_WAIT_S), self._holder(action))
            yield session.check

    @contextmanager
    def _session(self) -> Iterator[KazooClient]:
        """A session of our own. Its end frees what it holds."""
        try:
            from kazoo.client import KazooClient
        except ImportError as error:
            hint = "pip install 'hudi-assets[zookeeper]'"
            raise EnvironmentProblem("Locks in ZooKeeper need the package kazoo.", hint=hint) from error
        client = KazooClient(self.hosts, timeout=self.session_ms / 1000, logger=log)
        try:
            client.start(timeout=self.connection_ms / 1000)
        except client.handler.timeout_exception as error:
            raise EnvironmentProblem(
                f"ZooKeeper does not answer at {self.hosts}.",
                where=self.table,
                hint=f"Look whether it runs, and whether {URL} is that of the other writers.",
            ) from error
        try:
            yield client
        finally:
            with suppress(OSError):  # its socket may be gone
                client.stop()
            client.close()

    def _holder(self, action: str) -> str:
        """What others read of who holds it. Nobody decides by it."""
        who = f"hudi-assets {action} (process {os.getpid()} on {socket.gethostname()})"
        return json.dumps({"holder": who, "table": self.table})


class _Session:
    """One taking of the lock, by one session."""

    def __init__(self, lock: ZooKeeperLock, client: KazooClient) -> None:
        self._lock, self._client = lock, client
        self._node = ""
        self._session: int | None = None

    def take(self, wait_s: float, holder: str) -> None:
        """Wait for the lock; `Conflict` where that takes longer."""
        from kazoo.exceptions import CancelledError, KazooException, LockTimeout

        mutex = _mutex(self._client, self._lock.path, holder)
        # kazoo begins to count anew whenever the one before it goes.
        ends = [threading.Timer(wait_s, mutex.cancel), threading.Timer(wait_s + self._lock.session_ms / 1000, self._end)]
        for end in ends:
            end.daemon = True
            end.start()
        try:
            taken = mutex.acquire(timeout=wait_s)
        except (LockTimeout, CancelledError):
            taken = False
        except KazooException as error:
            raise self._failed(error) from error
        finally:
            for end in ends:
                end.cancel()
        if not taken:
            raise self._held_by_another(mutex)
        self._node = f"{self._lock.path}/{mutex.node}"
        self._session = self._owner()
        self.check()

    def check(self) -> None:
        """Raise `LockLost` unless ZooKeeper says that the lock's node is there and this session's."""
        if self._session is None or self._owner() != self._session:
            raise LockLost(
                "Hudi's lock in ZooKeeper was taken from this process: its session has ended while it worked.",
                where=self._lock.where,
                hint=f"Raise {SESSION}, if the server allows more. What was done here is taken back.",
            )
"""
