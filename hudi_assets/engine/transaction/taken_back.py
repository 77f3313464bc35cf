"""Notes of what was taken back: a commit of it that arrives afterwards does not count.

On a store a request may arrive after its sender's lease has ended. So whoever takes an instant back leaves a note,
before the first delete, which is kept for a day. A late sender that goes on asks for it. Each transaction begins with
deleting the commits that notes tell of: a sender may be killed before it looks.

A delta commit that was taken back is so for good. A compaction's plan may be executed again at the same instant: there
the note names the executions, and the completed file where there was one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from hudi_assets.engine.errors import CorruptTable
from hudi_assets.engine.model import Instant
from hudi_assets.engine.model.units import DAY_MS
from hudi_assets.engine.storage import SCRATCH, Storage
from hudi_assets.engine.table.layout.interface import Layout
from hudi_assets.engine.timeline.commit_metadata import EXECUTION
from hudi_assets.engine.timeline.instants import is_instant
from hudi_assets.engine.transaction.lease import has_leases

FOLDER: Final = f"{SCRATCH}/taken_back"
_KEPT_MS: Final = DAY_MS
_Names = frozenset[str]


@dataclass(frozen=True, slots=True)
class Note:
    """What of an instant counts no more: all of it, commits of these executions, completed files of these names.

    `data`: data files that went with it, and go again once the note goes: one may have been given its name since.
    """

    whole: bool = False
    executions: _Names = field(default_factory=frozenset)
    completed: _Names = field(default_factory=frozenset)
    data: _Names = field(default_factory=frozenset)

    def __or__(self, other: Note) -> Note:
        return Note(
            self.whole or other.whole,
            self.executions | other.executions,
            self.completed | other.completed,
            self.data | other.data,
        )

    def encode(self) -> bytes:
        lists = {name: sorted(getattr(self, name)) for name in _LISTS}
        return json.dumps({"whole": self.whole, **lists}).encode()

    @classmethod
    def decode(cls, content: bytes) -> Note:
        """Nothing for what is no note: it is ours alone, and a missing one only leaves a commit where it is."""
        try:
            body = json.loads(content)
            return cls(body["whole"] is True, *(frozenset(map(str, body[name])) for name in _LISTS))
        except (ValueError, TypeError, KeyError, RecursionError):
            return cls()


_LISTS: Final = ("executions", "completed", "data")


@dataclass(frozen=True)
class TakenBack:
    """The notes of a table. None are kept where nothing arrives late: on a file system."""

    storage: Storage
    layout: Layout
    now_ms: Callable[[], int]

    def add(self, instant: str, note: Note) -> None:
        """Leave a note, before the first delete; one that is there already stays, and says both."""
        if not has_leases(self.storage) or note == Note():
            return
        path = f"{FOLDER}/{instant}"
        try:
            said, version = self.storage.read_with_version(path)
        except FileNotFoundError:
            self.storage.create(path, note.encode())
            return
        both = (Note.decode(said) | note).encode()
        if both != said:
            self.storage.replace_if(path, both, version)

    def of(self, instant: str) -> Note:
        if not has_leases(self.storage):
            return Note()
        try:
            return Note.decode(self.storage.read(f"{FOLDER}/{instant}"))
        except FileNotFoundError:
            return Note()

    def tells_of(self, instant: str, completed: str, content: bytes) -> bool:
        """Was the instant that this completed file stands for taken back?"""
        note = self.of(instant)
        return (
            note.whole or completed.rpartition("/")[2] in note.completed or self._execution(content) in note.executions
        )

    def _execution(self, content: bytes) -> str:
        try:
            return self.layout.decode_commit(content, self.storage.base).extra.get(EXECUTION, "")
        except CorruptTable:
            return ""

    def forget_late(self) -> tuple[str, ...]:
        """Delete the commits that notes tell of, then the notes that are old; a sentence each. One listing mostly."""
        noted = [file for file in self.storage.list_files(FOLDER) if is_instant(file.name)]
        if not noted:
            return ()
        names = {file.name for file in noted}
        done = []
        for late in self._completed():
            path = f"{self.layout.timeline_folder}/{late.file_name}"
            if late.timestamp in names and self.tells_of(late.timestamp, path, self.storage.read(path)):
                self.storage.delete(path)
                done.append(f"removed a commit of {late.timestamp} that arrived after it was taken back")
        oldest = self.now_ms() - _KEPT_MS
        self._forget(file.name for file in noted if file.modified_ms < oldest)
        return tuple(done)

    def _completed(self) -> list[Instant]:
        """All of them: two of one instant too."""
        listed = (self.layout.parse_instant(file.name) for file in self.storage.list_files(self.layout.timeline_folder))
        return [instant for instant in listed if instant is not None and instant.is_completed]

    def gone(self) -> frozenset[str]:
        """Instants that were taken back for good within a day: a file of one may be given its name yet."""
        if not has_leases(self.storage):
            return frozenset()
        noted = (file.name for file in self.storage.list_files(FOLDER) if is_instant(file.name))
        return frozenset(instant for instant in noted if (note := self.of(instant)).whole and note.data)

    def _forget(self, instants: Iterable[str]) -> None:
        for instant in instants:
            for path in sorted(self.of(instant).data):
                # A log file of another writer's may have got the name again.
                if self.layout.occurs_once(path):
                    self.storage.delete(path)
            self.storage.delete(f"{FOLDER}/{instant}")


def execution_in(inflight: bytes) -> str:
    """Whose execution a compaction's inflight file tells of; "" where it does not."""
    try:
        body = json.loads(inflight)
    except (ValueError, RecursionError):
        return ""
    said = body.get("execution") if isinstance(body, dict) else None
    return said if isinstance(said, str) else ""
