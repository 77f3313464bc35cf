"""What processes said they did, and what a table may answer after that.

Each process keeps a journal, a file of JSON lines: a line before a write (its rows), one after it (its instant, or
why it was refused). A write without the second line was in flight when its process died.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Row = tuple[int, int]  # (event time, id of the write)
Answer = Mapping[str, Row]


class Journal:
    """A process's side: lines appended whole, so that a kill tears none."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def say(self, **line: Any) -> None:
        os.write(self._file, json.dumps(line).encode() + b"\n")


@dataclass(frozen=True)
class Write:
    """One upsert or delete: key → event time."""

    id: int
    times: Mapping[str, int]
    deletes: bool


@dataclass
class Ledger:
    """All journals of a folder, as read at one moment."""

    writes: dict[int, Write] = field(default_factory=dict)
    done: set[int] = field(default_factory=set)
    refused: dict[int, str] = field(default_factory=dict)
    other: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def read(cls, folder: Path) -> Ledger:
        ledger = cls()
        for journal in sorted(folder.glob("*.jsonl")):
            # A reader may see half of a line that is being appended: a line counts when it ends.
            whole, _, _ = journal.read_text().rpartition("\n")
            for line in whole.splitlines():
                ledger._add(json.loads(line))
        return ledger

    def _add(self, line: dict[str, Any]) -> None:
        match line:
            case {"begin": number, "times": times, "deletes": deletes}:
                self.writes[number] = Write(number, times, deletes)
            case {"done": number}:
                self.done.add(number)
            case {"refused": number, "why": why}:
                self.refused[number] = why
            case _:
                self.other.append(line)

    @property
    def in_flight(self) -> list[Write]:
        return [w for n, w in self.writes.items() if n not in self.done and n not in self.refused]

    def answer(self, also: Iterable[Write] = ()) -> dict[str, Row]:
        """The snapshot after the acknowledged writes (and `also`): of each key the newest, unless it is a delete."""
        newest: dict[str, tuple[int, int, bool]] = {}
        for write in (*(self.writes[number] for number in self.done), *also):
            for key, time in write.times.items():
                if key not in newest or time > newest[key][0]:
                    newest[key] = (time, write.id, write.deletes)
        return {key: (time, number) for key, (time, number, deleted) in newest.items() if not deleted}


def faults(answer: Answer, before: Ledger, after: Ledger) -> list[str]:
    """What is wrong with an answer given between two readings of the journals; event times never repeat.

    It holds what was acknowledged before it was asked for, or something newer; and nothing that nobody wrote.
    """
    found = []
    possible = [w for n, w in after.writes.items() if n not in after.refused]
    times: dict[str, list[tuple[int, int, bool]]] = {}
    for write in possible:
        for key, time in write.times.items():
            times.setdefault(key, []).append((time, write.id, write.deletes))
    sure = {n: before.writes[n] for n in before.done}
    newest: dict[str, tuple[int, bool]] = {}
    for write in sure.values():
        for key, time in write.times.items():
            newest[key] = max(newest.get(key, (-1, False)), (time, write.deletes))
    for key in answer.keys() | newest.keys():
        time, deleted = newest.get(key, (-1, True))
        shown = answer.get(key)
        if shown is None:
            if not deleted and not any(d and t > time for t, _, d in times[key]):
                found.append(f"{key}: the acknowledged row of {time} is gone")
        elif (*shown, False) not in times.get(key, ()):
            found.append(f"{key}: {shown} was written by nobody, or refused")
        elif shown[0] < time:
            found.append(f"{key}: shows {shown[0]}, older than the acknowledged {time}")
    return found
