"""What was decoded of the timeline's files, kept in memory for the next look.

A completed instant's file is not written again. But its name can come back with other content: a compaction that was
rolled back is executed again at its instant, a plan that was withdrawn is planned anew at the same past instant, a
backup is put back. So a file is the same only while its path, size, inode (or the store's version) and time of
modification are. And of a file that was modified just before it was read nothing is kept: whatever comes in its place
within one tick of the file system's clock could have the same time.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Final, Generic, TypeVar

from hudi_assets.engine.model import Plan
from hudi_assets.engine.storage import FileInfo
from hudi_assets.engine.timeline.commit_metadata import CommitMetadata
from hudi_assets.engine.timeline.stat_columns import StatColumns

Decoded = TypeVar("Decoded")

_TICK_MS: Final = 2_000  # FAT's; others have finer ones


class Kept(Generic[Decoded]):
    """Decoded files by what they were decoded from, the last used ones, up to `most` in all by `weigh`."""

    def __init__(self, most: int, weigh: Callable[[Decoded], int]) -> None:
        self.most = most
        self._weigh = weigh
        self._weight = 0
        self._kept: OrderedDict[Hashable, Decoded] = OrderedDict()
        self._lock = Lock()

    def get(self, where: Hashable, file: FileInfo, decode: Callable[[], Decoded]) -> Decoded:
        """What `decode` gives, or gave of this file. `where` tells tables apart, and ways to decode."""
        key = (where, file.path, file.size, file.inode, file.version, file.modified_ms)
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
                return found
        is_old = file.modified_ms < time.time_ns() // 1_000_000 - _TICK_MS
        decoded = decode()
        if is_old:
            self._keep(key, decoded)
        return decoded

    def _keep(self, key: Hashable, decoded: Decoded) -> None:
        weight = self._weigh(decoded)
        if weight > self.most:
            return
        with self._lock:
            if key in self._kept:
                return
            self._kept[key] = decoded
            self._weight += weight
            while self._weight > self.most:
                _, oldest = self._kept.popitem(last=False)
                self._weight -= self._weigh(oldest)

    def clear(self) -> None:
        with self._lock:
            self._kept.clear()
            self._weight = 0


def _weigh(commit: CommitMetadata) -> int:
    """About how many bytes it takes."""
    return 1_000 + (60 if isinstance(commit.stats, StatColumns) else 600) * len(commit.stats)


# What a process keeps: in all so many bytes of commits, about, and so many log files of plans.
COMMITS: Final = Kept[CommitMetadata](200_000_000, _weigh)
PLANS: Final = Kept[Plan](
    500_000, lambda plan: 1 + sum(1 + len(op.log_files) + len(op.carried_over) for op in plan.operations)
)
