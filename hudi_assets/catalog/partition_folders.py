"""The folders of a table with the freshness of the partitions, one for each publication, and when they may go.

A folder's name says when it was made, and which one readers were sent to before it. So from the one that the entry
names it can be told which others readers were sent to, and when they were sent on. One that is not among them is of a
publication that failed, or of one that is under way.
"""

from __future__ import annotations

import time
import uuid
from contextlib import suppress
from typing import Final, NamedTuple

from hudi_assets.engine import HudiAssetsError, Storage

# A folder that readers were sent away from is left to those who read it then.
_LEFT_TO_READERS_MS: Final = 3_600_000


class Folders:
    """Of one publication. `sent_to`: the folder that readers are sent to now, empty where there is none.

    All are below the folder `parent`. Paths are relative to the table's.
    """

    def __init__(self, storage: Storage, parent: str, sent_to: str) -> None:
        self._storage, self._parent, self._before = storage, parent, sent_to
        self._unseen: list[str] = []

    def write(self, data: bytes) -> str:
        """Write the rows where no reader is sent yet, and return the folder."""
        own, before = uuid.uuid4().hex[:8], _Name.of(self._before).own
        folder = f"{self._parent}/{_now_ms():013d}-{own}" + (f"-{before}" if before else "")
        self._unseen.append(folder)
        self._storage.replace(file_in(folder), data)
        self._before = folder
        return folder

    def mark_seen(self, folder: str) -> None:
        """Readers may be sent to it from now on."""
        self._unseen.remove(folder)

    def mark_unseen(self, folder: str) -> None:
        """They were not, after all."""
        self._unseen.append(folder)

    def discard_unseen(self) -> None:
        """Of a publication that failed."""
        for folder in self._unseen:
            self._delete(folder)

    def delete_left(self) -> None:
        """Delete what readers left an hour ago, and what failed before that. Nothing depends on that."""
        with suppress(HudiAssetsError, OSError):
            beside = sorted(self._storage.list_directories(self._parent))
            following = _that_follow(beside, self._before)
            for old in beside:
                then = next((one for one in following if one > old), None)
                if old != self._before and then is not None and _Name.of(then).is_older_than(_LEFT_TO_READERS_MS):
                    self._delete(old)

    def _delete(self, folder: str) -> None:
        with suppress(HudiAssetsError, OSError):
            self._storage.delete_tree(folder)


def file_in(folder: str) -> str:
    return f"{folder}/partitions.parquet"


class _Name(NamedTuple):
    made: str
    own: str
    before: str

    @classmethod
    def of(cls, folder: str) -> _Name:
        made, own, before, *_ = [*folder.rpartition("/")[2].split("-"), "", ""]
        return cls(made, own, before)

    def is_older_than(self, ms: int) -> bool:
        return self.made.isdigit() and int(self.made) < _now_ms() - ms


def _that_follow(beside: list[str], sent_to: str) -> list[str]:
    """Which of the folders say when an older one was left: those that readers were sent to, and newer ones.

    One of a publication that failed does not: readers stayed where they were.
    """
    by_own = {_Name.of(folder).own: folder for folder in beside}
    found = {folder for folder in beside if folder > sent_to}
    while sent_to in beside and sent_to not in found:
        found.add(sent_to)
        sent_to = by_own.get(_Name.of(sent_to).before, "")
    return sorted(found)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
