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
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from hudi_assets.engine.errors import Conflict, EnvironmentProblem, InvalidInput, LockLost
from hudi_assets.engine.model.settings import whole_number
from hudi_assets.engine.table.metadata.index_keys import xxh64
from hudi_assets.engine.table.settings.config import TableConfig
from hudi_assets.engine.transaction.holder import parsed

if TYPE_CHECKING:
    from kazoo.client import KazooClient
    from kazoo.recipe.lock import Lock

log = logging.getLogger(__name__)

URL: Final = "hoodie.write.lock.zookeeper.url"
PORT: Final = "hoodie.write.lock.zookeeper.port"
BASE_PATH: Final = "hoodie.write.lock.zookeeper.base_path"
LOCK_KEY: Final = "hoodie.write.lock.zookeeper.lock_key"
SESSION: Final = "hoodie.write.lock.zookeeper.session_timeout_ms"
CONNECTION: Final = "hoodie.write.lock.zookeeper.connection_timeout_ms"
TABLES_BASE_PATH: Final = "hoodie.base.path"
CURATORS: Final = "-lock-"
"""What stands before the number in the names of Curator's nodes."""
_IN_THE_ROW: Final = re.compile(rf"{CURATORS}-?\d{{10}}$")
_PORT: Final = re.compile(r":\d+(,|$)")
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
            from kazoo.exceptions import WriterNotClosedException
        except ImportError as error:
            hint = "pip install 'hudi-assets[zookeeper]'"
            raise EnvironmentProblem("Locks in ZooKeeper need the package kazoo.", hint=hint) from error
        try:
            client = KazooClient(self.hosts, timeout=self.session_ms / 1000, logger=log)
        except ValueError as error:
            hint = "Give it as the other writers have it: host:2181,host:2181."
            raise InvalidInput(f"{URL} is {self.hosts[:200]!r}.", where=self.table, hint=hint) from error
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
            try:
                client.stop()
                client.close()
            except (OSError, WriterNotClosedException) as error:
                log.warning("%s is free once its session has ended: %s", self.where, error)

    def _holder(self, action: str) -> str:
        """What others read of who holds it. Nobody decides by it."""
        who = f"hudi-assets {action} (process {os.getpid()} on {socket.gethostname()})"
        return json.dumps({"holder": who, "table": self.table})


class _Session:
    """One taking of the lock, by one session."""

    def __init__(self, lock: ZooKeeperLock, client: KazooClient) -> None:
        self._lock, self._client = lock, client
        self._node = ""

    def take(self, wait_s: float, holder: str) -> None:
        """Wait for the lock; `Conflict` where that takes longer."""
        mutex = _mutex(self._client, self._lock.path, holder)
        # A server that falls silent answers nothing, however long one waits.
        with _until(wait_s + self._lock.session_ms / 1000, self._client.stop):
            if not self._acquires(mutex, wait_s):
                raise self._not_free()
        self._node = f"{self._lock.path}/{mutex.node}"

    def _acquires(self, mutex: Lock, wait_s: float) -> bool:
        from kazoo.exceptions import CancelledError, KazooException, LockTimeout

        try:
            # kazoo begins to count anew whenever the one before us goes.
            with _until(wait_s, mutex.cancel):
                return bool(mutex.acquire(timeout=wait_s))
        except (LockTimeout, CancelledError):
            return False
        except KazooException as error:
            raise self._failed(error) from error

    def check(self) -> None:
        """Raise `LockLost` unless ZooKeeper says that the lock's node, which goes with our session, is there."""
        from kazoo.exceptions import ConnectionLoss, KazooException, OperationTimeoutError, SessionExpiredError

        ends = time.monotonic() + self._lock.session_ms / 1000
        why = "ZooKeeper did not answer for as long as a session lasts"
        while (left := ends - time.monotonic()) > 0:
            try:
                # A server may be behind the others; this brings it up to them.
                self._client.sync_async(self._lock.path).get(timeout=left)
                if self._client.exists_async(self._node).get(timeout=left) is not None:
                    return
                raise SessionExpiredError
            except SessionExpiredError:
                why = "its session in ZooKeeper has ended"
                break
            except (ConnectionLoss, OperationTimeoutError):
                time.sleep(_POLL_S)
            except self._client.handler.timeout_exception:
                break
            except KazooException as error:
                why = f"ZooKeeper says {type(error).__name__}"
                break
        raise LockLost(
            f"Hudi's lock on the table was taken from this process while it worked: {why}.",
            where=self._lock.where,
            hint=f"A longer {SESSION} helps where processes pause; the server has to allow it. What was done here is "
            "taken back.",
        )

    def _not_free(self) -> Conflict | EnvironmentProblem:
        from kazoo.exceptions import KazooException

        try:
            said = self._first()
        except KazooException as error:
            return self._failed(error)
        return Conflict(
            f"Another process holds Hudi's lock on the table: {said}."
            if said
            else "Other processes take Hudi's lock on the table all the time.",
            where=self._lock.where,
            hint="Wait for it. If its process is dead, the lock is free once its session has ended.",
        )

    def _first(self) -> str:
        """Who is first in the row, by what its node says; "" where nobody is."""
        from kazoo.exceptions import NoNodeError

        row = [node for node in self._client.get_children(self._lock.path) if _IN_THE_ROW.search(node)]
        for node in sorted(row, key=_number):
            with suppress(NoNodeError):
                data, stat = self._client.get(f"{self._lock.path}/{node}")
                since = datetime.fromtimestamp(stat.ctime / 1000, UTC).isoformat(timespec="seconds")
                return f"{_said(data)} since {since}"
        return ""

    def _failed(self, error: Exception) -> EnvironmentProblem:
        said = f"{type(error).__name__} {error}".strip()
        return EnvironmentProblem(f"ZooKeeper refused or failed: {said}.", where=self._lock.where, hint="Try again.")


@contextmanager
def _until(seconds: float, end: Callable[[], object]) -> Iterator[None]:
    """Call `end` if the block takes longer."""
    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


def _mutex(client: KazooClient, path: str, holder: str) -> Lock:
    from kazoo.recipe.lock import Lock

    class CuratorsLock(Lock):  # type: ignore[misc]  # kazoo has no types
        """With kazoo's own name a node stands behind all of Curator's, and Curator overlooks it."""

        _NODE_NAME = CURATORS

    mutex = CuratorsLock(client, path, holder, extra_lock_patterns=[CURATORS])
    if not mutex.create_path.endswith(CURATORS):
        hint = "Give the one that this project's lock file has."
        raise EnvironmentProblem("This version of the package kazoo names its locks in another way.", hint=hint)
    return mutex


def _number(node: str) -> str:
    """ZooKeeper's number of a node, by which the row is sorted, as text, like Curator and kazoo do."""
    return node.rpartition(CURATORS)[2]


def _said(data: bytes | None) -> str:
    """What a holder's node says: ours a holder, Hudi 1.x JSON of its own, Curator an address."""
    data = data or b""
    holder = parsed(data).get("holder")
    text = holder if isinstance(holder, str) else data.decode("utf-8", "replace")
    shown = "".join(c if c.isprintable() else " " for c in text[:200]).strip()
    return shown or "its node says nothing"


def _hosts(config: TableConfig, where: str) -> str:
    hosts = (config.properties.get(URL) or "").strip()
    if not hosts:
        raise _missing(URL, where, "the servers, as the other writers have it: host:2181,host:2181")
    port = whole_number(config.properties, PORT, _DEFAULT_PORT, where=where, least=1, most=65_535)
    if port != _DEFAULT_PORT and not _PORT.search(hosts.partition("/")[0]):
        raise InvalidInput(
            f"{PORT} is {port}, which Hudi does not read: its writers go to {_DEFAULT_PORT}.",
            where=where,
            hint=f"Put the port into {URL} on every writer: {hosts.split(',')[0]}:{port}.",
        )
    return hosts


def _path(config: TableConfig, where: str) -> str:
    """As Hudi has it, letter for letter: another path would be another lock."""
    base = config.properties.get(BASE_PATH) or ""
    key = config.properties.get(LOCK_KEY) or config.properties.get("hoodie.table.name") or ""
    if not base:
        raise _missing(BASE_PATH, where, "the folder of the other writers' locks")
    if not key:
        raise _missing(LOCK_KEY, where, "the name of the other writers' lock in its folder")
    path = f"{base}/{key}"
    parts = path.split("/")
    if parts[0] or any(part in ("", ".", "..") or not part.isprintable() for part in parts[1:]):
        raise InvalidInput(
            f"{BASE_PATH} and {LOCK_KEY} make {path[:200]!r}, which is no path in ZooKeeper.",
            where=where,
            hint=f"Give a {BASE_PATH} that begins with / and does not end with it.",
        )
    return path


def _implicit_path(config: TableConfig, where: str) -> str:
    named = config.properties.get(TABLES_BASE_PATH) or ""
    if not named:
        raise _missing(TABLES_BASE_PATH, where, "the table's path letter for letter as Hudi's writers are given it")
    return f"/tmp/{xxh64(named.encode()):016X}/lock_key"


def _missing(key: str, where: str, what: str) -> InvalidInput:
    return InvalidInput(f"The lock in ZooKeeper needs {key}.", where=where, hint=f"Give {what}.")
