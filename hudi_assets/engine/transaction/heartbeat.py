"""Heartbeats of inflight work, as org.apache.hudi.client.heartbeat.HoodieHeartbeatClient (0.15) keeps them.

`.hoodie/.heartbeat/<instant>` is an empty file; its modification time is the last beat. A writer with
hoodie.cleaner.policy.failed.writes=LAZY takes back an unfinished write whose last beat is older than
interval × tolerable misses, or that has none; it leaves the others alone, and so do we.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from hudi_assets.engine.errors import Conflict, EnvironmentProblem
from hudi_assets.engine.model.settings import whole_number
from hudi_assets.engine.storage import Storage
from hudi_assets.engine.table.settings.config import TableConfig
from hudi_assets.engine.timeline.instants import is_instant

log = logging.getLogger(__name__)

FOLDER = ".hoodie/.heartbeat"
INTERVAL = "hoodie.client.heartbeat.interval_in_ms"
MISSES = "hoodie.client.heartbeat.tolerable.misses"
_MOST = (1 << 31) - 1  # Java's int


@dataclass(frozen=True, slots=True)
class HeartbeatSettings:
    """Times in ms. A heartbeat whose last beat is older than `tolerable_ms` is dead."""

    interval_ms: int
    misses: int

    @property
    def tolerable_ms(self) -> int:
        return self.interval_ms * self.misses

    @classmethod
    def of(cls, config: TableConfig, where: str) -> HeartbeatSettings:
        # Hudi too refuses an interval below a second.
        interval_ms = whole_number(config.properties, INTERVAL, 60_000, where=where, least=1000, most=_MOST)
        return cls(interval_ms, whole_number(config.properties, MISSES, 2, where=where, least=1, most=_MOST))


@dataclass(frozen=True)
class Heartbeats:
    """The heartbeats of a table. `now_ms` is the true clock."""

    storage: Storage
    settings: HeartbeatSettings
    now_ms: Callable[[], int]

    @classmethod
    def of(cls, storage: Storage, config: TableConfig, now_ms: Callable[[], int]) -> Heartbeats:
        return cls(storage, HeartbeatSettings.of(config, storage.base), now_ms)

    def last(self) -> Mapping[str, int]:
        """Instant → its last beat, epoch ms."""
        files = self.storage.list_files(FOLDER)
        return {file.name: file.modified_ms for file in files if is_instant(file.name)}

    def is_alive(self, instant: str) -> bool:
        """True where the instant's writer has given a sign of life within the tolerable time."""
        modified = self.storage.modified_ms(f"{FOLDER}/{instant}")
        # What is told in whole seconds may be a second younger.
        doubt = 0 if self.storage.capabilities.exact_times else 1000
        return modified is not None and self.now_ms() - modified <= self.settings.tolerable_ms + doubt

    def forget(self, instant: str) -> bool:
        """Delete the heartbeat of an instant that is finished or taken back."""
        return self.storage.delete(f"{FOLDER}/{instant}")

    def forget_dead(self, completed: frozenset[str], unfinished: frozenset[str]) -> tuple[str, ...]:
        """Delete what a crash left: beats of completed instants, and dead ones of instants that are not there.

        A young one of no instant may be a writer's that is about to start.
        """
        dead = []
        for instant, modified in self.last().items():
            old = self.now_ms() - modified > self.settings.tolerable_ms
            if instant in completed or (instant not in unfinished and old):
                self.forget(instant)
                dead.append(instant)
        return tuple(sorted(dead))

    @contextmanager
    def beating(self, instant: str) -> Iterator[Beat]:
        """Beat from before the instant's `.requested` until its end; a thread refreshes it at each interval."""
        beat = Beat(self, instant)
        beat.now()
        done = threading.Event()

        def work() -> None:
            while not done.wait(self.settings.interval_ms / 1000):
                try:
                    beat.now()
                except Conflict:
                    return  # the table's lock is lost: whoever has it now takes this work back
                except (OSError, EnvironmentProblem) as error:
                    log.warning("The heartbeat of %s could not be refreshed: %s", instant, error)

        thread = threading.Thread(target=work, name=f"heartbeat-{instant}", daemon=True)
        thread.start()
        try:
            yield beat
        finally:
            done.set()
            thread.join()
            self.forget(instant)


class Beat:
    """One heartbeat that this process gives."""

    def __init__(self, heartbeats: Heartbeats, instant: str) -> None:
        self._heartbeats = heartbeats
        self._instant = instant
        self._last = time.monotonic()

    def now(self) -> None:
        # Nobody needs it to outlive a power cut: no sync.
        self._heartbeats.storage.touch(f"{FOLDER}/{self._instant}")
        self._last = time.monotonic()

    def check(self) -> None:
        """Raise `Conflict` where beats were missed: another writer may have taken our work back meanwhile."""
        silent_ms = (time.monotonic() - self._last) * 1000
        if silent_ms > self._heartbeats.settings.tolerable_ms:
            raise Conflict(
                f"No heartbeat of {self._instant} was given for {silent_ms / 1000:.0f} s.",
                where=f"{self._heartbeats.storage.base}: {FOLDER}/{self._instant}",
                hint="Another writer may have taken it for dead. It is taken back: write again.",
            )
