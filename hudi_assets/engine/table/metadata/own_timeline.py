"""The metadata table's own timeline: what is on it, and how its files are named.

It is a table's timeline below `.hoodie/metadata`, but its instants may have 20 digits: on version 6 a compaction, a
clean and the like of its own take the last delta commit's instant with three digits behind it
(HoodieTableMetadataUtil.OperationSuffix).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from hudi_assets.engine.model import Action, State
from hudi_assets.engine.storage import Storage
from hudi_assets.engine.table.layout.interface import Layout

ROOT: Final = ".hoodie/metadata"
PROPERTIES: Final = f"{ROOT}/.hoodie/hoodie.properties"
_NAME: Final = re.compile(
    r"(?P<instant>\d{14,})(?:_(?P<completion>\d{14,17}))?\.(?P<action>[a-z]+)(?:\.(?P<state>requested|inflight))?",
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class OwnInstant:
    """One state of one instant. `path` is table-relative; `completion` is None on version 6 and while unfinished."""

    timestamp: str
    action: str
    state: State
    completion: str | None
    path: str

    @property
    def is_completed(self) -> bool:
        return self.state is State.COMPLETED


@dataclass(frozen=True)
class OwnTimeline:
    """All files of the metadata table's active timeline, in order of their instants."""

    files: tuple[OwnInstant, ...]

    @classmethod
    def read(cls, storage: Storage, layout: Layout) -> OwnTimeline:
        listed = storage.list_files(f"{ROOT}/{layout.timeline_folder}")
        found = (_parse(file.path, file.name) for file in listed)
        return cls(tuple(sorted((i for i in found if i is not None), key=lambda i: (i.timestamp, i.path))))

    def completed(self, *actions: Action) -> tuple[OwnInstant, ...]:
        return tuple(i for i in self.files if i.is_completed and i.action in actions)

    def of(self, timestamp: str, action: Action) -> tuple[OwnInstant, ...]:
        """The files of one instant, its completed one first."""
        found = (i for i in self.files if i.timestamp == timestamp and i.action == action)
        return tuple(sorted(found, key=lambda i: not i.is_completed))

    @property
    def unfinished(self) -> Iterator[OwnInstant]:
        """One file of each instant that is not completed."""
        done = {i.timestamp for i in self.files if i.is_completed and i.action in (Action.COMMIT, Action.DELTA_COMMIT)}
        done_others = {(i.timestamp, i.action) for i in self.files if i.is_completed}
        seen: set[tuple[str, str]] = set()
        for instant in self.files:
            key = (instant.timestamp, instant.action)
            writes = instant.action in (Action.COMPACTION, Action.LOG_COMPACTION, Action.DELTA_COMMIT, Action.COMMIT)
            over = instant.timestamp in done if writes else key in done_others
            if not over and key not in seen:
                seen.add(key)
                yield instant

    @property
    def last_compaction(self) -> OwnInstant | None:
        """The newest completed compaction: every delta commit before it is in the base files."""
        return max(self.completed(Action.COMMIT), key=lambda i: i.timestamp, default=None)

    def has_merged(self, delta: OwnInstant) -> bool:
        """True where a completed compaction has read a delta commit."""
        last = self.last_compaction
        return delta.is_completed and last is not None and (delta.completion or delta.timestamp) < last.timestamp

    @property
    def latest(self) -> str | None:
        """The greatest instant or completion time."""
        return max((i.completion or i.timestamp for i in self.files), default=None)


def _parse(path: str, name: str) -> OwnInstant | None:
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    state = State(match["state"]) if match["state"] else State.COMPLETED
    return OwnInstant(match["instant"], match["action"], state, match["completion"], path)


def own_path(layout: Layout, timestamp: str, action: Action, state: State, completion: str | None = None) -> str:
    """Where a state of an instant of the metadata table is written, table-relative."""
    return f"{ROOT}/{layout.instant_path(timestamp, action, state, completion)}"
