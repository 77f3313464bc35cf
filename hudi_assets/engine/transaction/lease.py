"""Leases: the table's locks on a store of objects and in HDFS, where the death of a holder frees nothing.

The write lock is Hudi's own file (org.apache.hudi.client.transaction.lock.StorageBasedLockProvider 1.2.0), byte for
byte: `.hoodie/.locks/table_lock.json`, made only where it is not there, and changed only where it is as it was read.
Its holder has it until a time that it moves on while it works. It is free once it says so, or once that time has
passed. The executors' lock is another file of the same form.

A holder that was stopped for so long that its lease ran out may go on later. Nothing that it asks of the store then may
arrive: while a lease is held, the storage asks it before each change (`Storage.fenced`).
"""

from __future__ import annotations

import json
import logging
import math
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from hudi_assets.engine.errors import Conflict, CorruptTable, InvalidInput, LockLost, machine_problem
from hudi_assets.engine.model.settings import whole_number
from hudi_assets.engine.storage import LOCKS, Storage
from hudi_assets.engine.table.settings.config import TableConfig
from hudi_assets.engine.transaction.renewing import renewed

log = logging.getLogger(__name__)

VALIDITY: Final = "hoodie.write.lock.storage.validity.timeout.secs"
RENEWAL: Final = "hoodie.write.lock.storage.renew.interval.secs"
OLD_RENEWAL: Final = "hoodie.write.lock.storage.heartbeat.poll.secs"  # its name before Hudi 1.2.0, which reads both
HUDIS_FILE: Final = f"{LOCKS}/table_lock.json"
_DRIFT_MS: Final = 500  # how far two machines' clocks may differ, as Hudi has it
_POLL_S: Final = 0.2
_MOST: Final = (1 << 31) - 1


def has_leases(storage: Storage) -> bool:
    """True on a store where a file can be changed only as it was read; else the operating system has locks."""
    return storage.capabilities.put_if_match


@dataclass(frozen=True, slots=True)
class LeaseTimes:
    """For how long a lease is given, and how often it is moved on. Hudi's defaults."""

    validity_ms: int = 300_000
    renewal_ms: int = 30_000

    @classmethod
    def of(cls, config: TableConfig, where: str) -> LeaseTimes:
        """By Hudi's settings; `InvalidInput` for what Hudi refuses too."""
        properties = config.properties
        validity = whole_number(properties, VALIDITY, 300, where=where, least=10, most=_MOST)
        named = RENEWAL if properties.get(RENEWAL) or not properties.get(OLD_RENEWAL) else OLD_RENEWAL
        renewal = whole_number(properties, named, 30, where=where, least=1, most=_MOST)
        if validity < 10 * renewal:
            raise InvalidInput(
                f"{VALIDITY} is {validity}, {named} is {renewal}.",
                where=where,
                hint="The first has to be ten times the second at least. Give every writer the same.",
            )
        return cls(1000 * validity, 1000 * renewal)


@dataclass(frozen=True, slots=True)
class LockFile:
    """What a lock's file says: StorageLockData, in its order."""

    expired: bool
    valid_until: int
    owner: str

    def encode(self) -> bytes:
        body = {"expired": self.expired, "validUntil": self.valid_until, "owner": self.owner}
        return json.dumps(body, separators=(",", ":")).encode()

    @classmethod
    def decode(cls, data: bytes, where: str) -> LockFile:
        """Fields that are not known are passed over, as Hudi does."""
        try:
            body = json.loads(data)
            expired, until, owner = body["expired"], body["validUntil"], body["owner"]
        except (ValueError, TypeError, KeyError, RecursionError):
            expired = until = owner = None
        if not isinstance(expired, bool) or not isinstance(until, int) or not isinstance(owner, str):
            hint = "Stop all that writes the table, then delete the file."
            raise CorruptTable("The lock's file cannot be read.", where=where, hint=hint)
        return cls(expired, until, owner)

    def is_held(self, now_ms: int) -> bool:
        return not self.expired and now_ms <= self.valid_until + _DRIFT_MS


class Lease:
    """A lock's file that this process holds, from `take` to `release`."""

    def __init__(self, storage: Storage, path: str, times: LeaseTimes) -> None:
        self.owner = str(uuid.uuid4())
        self._storage, self._path, self._times = storage, path, times
        self._lock = threading.Lock()
        self._version: str | None = None  # None: not held, or lost
        self._valid_until = self._given_at = 0.0
        self._doubted = False

    @property
    def where(self) -> str:
        return f"{self._storage.base}: {self._path}"

    @property
    def holder(self) -> str:
        return f"{self._path.rpartition('/')[2].partition('.')[0]}/{self.owner}"

    def take(self, wait_s: float, described: Callable[[LockFile], str]) -> None:
        """Take the lock, waiting for another holder; `Conflict`, by what `described` says, where that takes longer."""
        deadline = time.monotonic() + wait_s
        while True:
            held, version = self._read()
            is_late = time.monotonic() > deadline
            # Ours is what was written although no answer came.
            if held is None or not held.is_held(_now_ms()) or held.owner == self.owner:
                try:
                    self._put(version)
                    return
                except Conflict:
                    pass  # another process was first
                except OSError:
                    if is_late:
                        raise
            if is_late:
                raise Conflict(
                    described(held) if held is not None else "Other processes take the table's lock all the time.",
                    where=self.where,
                    hint=f"Wait for it. If its process is dead, the lock is free from {_until(held)} on."
                    if held is not None
                    else "Try again.",
                )
            time.sleep(_POLL_S)

    def renew(self) -> None:
        """Move the lease's end on. `Conflict` where another process has taken the lock meanwhile.

        A lease that has ended and that nobody has taken is given anew: nobody can have come in between.
        """
        self._renew_below(math.inf)

    def fence(self) -> None:
        """Before each change: half of the lease has to be left, which a request under way does not outlast."""
        self._renew_below(self._times.validity_ms / 2)

    def renew_soon(self) -> None:
        self._renew_below(self._times.validity_ms - self._times.renewal_ms / 10)

    @property
    def request_s(self) -> float:
        """A third of what `fence` asks for: giving a name by a copy takes three requests."""
        return self._times.validity_ms / 2 / 1000 / 3

    def _renew_below(self, left_ms: float) -> None:
        """Renew where less than this is left. Of threads that ask at once, one does it."""
        if self._version is not None and self._left_ms() >= left_ms:
            return
        with self._lock:
            if self._version is None:
                raise self._lost()
            if self._left_ms() >= left_ms:
                return
            try:
                self._put_over(self._version)
            except Conflict:
                self._version = None
                raise self._lost() from None

    def _put_over(self, version: str) -> None:
        """Renew. An earlier renewal may have been written although no answer came: then the file says our name."""
        try:
            self._put(version)
        except Conflict:
            self._put(self._own_version())

    def _own_version(self) -> str:
        """The version of the lock's file, if it is ours; else `Conflict`."""
        try:
            held, version = self._read()
        except CorruptTable:
            raise self._lost() from None
        if held is None or version is None or held.owner != self.owner or held.expired:
            raise self._lost()
        return version

    def doubt(self) -> None:
        """A request of its holder may arrive yet."""
        self._doubted = True

    def let_end(self) -> None:
        """Its holder failed: while a request of it may arrive yet, the lock is not free. The lease ends by itself."""
        if self._doubted:
            log.warning("%s is free once its lease has ended: a request was not answered", self.where)
            with self._lock:
                self._version = None

    def release(self) -> None:
        """Say that the lock is free. Where that fails it is free once the lease has ended."""
        with self._lock:
            version, self._version = self._version, None
            if version is None:
                return
            done = LockFile(True, int(self._valid_until), self.owner).encode()
            try:
                try:
                    self._storage.replace_if(self._path, done, version)
                except Conflict:
                    self._storage.replace_if(self._path, done, self._own_version())
            except (Conflict, OSError) as error:
                log.warning("%s could not be released: %s", self.where, error)

    def _read(self) -> tuple[LockFile | None, str | None]:
        try:
            data, version = self._storage.read_with_version(self._path)
        except FileNotFoundError:
            return None, None
        return LockFile.decode(data, self.where), version

    def _put(self, version: str | None) -> None:
        """Write the lock's file as ours, over this version of it (None: there is none)."""
        asked, asked_ms = _uptime_ms(), _now_ms()
        mine = LockFile(False, asked_ms + self._times.validity_ms, self.owner)
        if version is None:
            self._storage.create(self._path, mine.encode())
            found, version = self._read()
            if version is None or found != mine:
                raise self._lost()
        else:
            version = self._storage.replace_if(self._path, mine.encode(), version)
        self._version, self._valid_until, self._given_at = version, mine.valid_until, asked

    def _left_ms(self) -> float:
        """By the wall's clock, which may be put back, and by the time since this machine's start."""
        return min(self._valid_until - _now_ms(), self._given_at + self._times.validity_ms - _uptime_ms())

    def _lost(self) -> LockLost:
        return LockLost(
            "The table's lock was taken from this process: it gave no sign of life for too long.",
            where=self.where,
            hint="Nothing more was changed. What it left is taken back or finished by the next change. Look at the "
            "table, then try again.",
        )


@contextmanager
def leased(storage: Storage, name: str, *, path: str, wait_s: float, action: str, times: LeaseTimes) -> Iterator[Lease]:
    """Hold a lock of the table by a lease, renewed by a thread; each change of the storage asks it first."""
    lease = Lease(storage, path, times)
    holders = f"{LOCKS}/hudi_assets_{name}_holder.json"
    with _said_by_machine(lease):
        lease.take(wait_s, lambda held: _described(storage, name, holders, held))
    try:
        with _said_by_machine(lease):
            _name_holder(storage, holders, lease.owner, action)
        renewing = renewed(lease.renew, every_ms=times.renewal_ms, where=lease.where, thread="lease")
        with storage.fenced(lease), renewing:
            yield lease
    except BaseException:
        lease.let_end()
        raise
    finally:
        lease.release()


@contextmanager
def _said_by_machine(lease: Lease) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise machine_problem(error, lease.where) or error from error


def _name_holder(storage: Storage, path: str, owner: str, action: str) -> None:
    """Who holds the lock, beside it: the lock's own file has no room for that."""
    holder = {
        "owner": owner,
        "action": action,
        "process": os.getpid(),
        "host": socket.gethostname(),
        "since": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    storage.replace(path, json.dumps(holder).encode())


def _described(storage: Storage, name: str, holders: str, held: LockFile) -> str:
    said: dict[str, object] = {}
    with suppress(OSError, ValueError, RecursionError):
        found = json.loads(storage.read(holders))
        said = found if isinstance(found, dict) else {}
    if said.get("owner") == held.owner and all(isinstance(said.get(k), str) for k in ("action", "host", "since")):
        who = f"process {said.get('process')} on {said['host']} {said['action']} since {said['since']}"
    else:
        who = f"owner {held.owner[:100]}"
    return f"Another process holds the table's {name} lock: {who}."


def _until(held: LockFile) -> str:
    try:
        free = datetime.fromtimestamp((held.valid_until + _DRIFT_MS) / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return str(held.valid_until)
    return free.isoformat(timespec="seconds")


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _uptime_ms() -> float:
    """Counts on while the process, or the whole machine, is stopped."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)) * 1000
