"""A Hive metastore in this process, for tests that ask what is published and not how it is spoken to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from hudi_assets.catalog import hive
from hudi_assets.catalog.hive import Entry
from hudi_assets.engine import EnvironmentProblem


class Memory:
    """Stands for `hive.Connection`, and knows entries by address, database and name. `silent`: who does not answer."""

    def __init__(self) -> None:
        self.standing: dict[tuple[str, str, str], Entry] = {}
        self.silent: set[str] = set()
        self.at = ""
        self.questions = 0
        # Of the next calls that put an entry, this name's fails: its publisher dies there. After so many of the name.
        self.dies_at: str | None = None
        self._spared = 0

    def die_at(self, name: str, *, after: int) -> None:
        self.dies_at, self._spared = name, after

    def entry(self, database: str, name: str) -> Entry | None:
        self.questions += 1
        return self.standing.get((self.at, database, name))

    def entries(self, database: str, names: Sequence[str]) -> dict[str, Entry | None]:
        self.questions += 1
        return {name: self.standing.get((self.at, database, name)) for name in names}

    def alter(self, database: str, name: str, entry: Entry, *, expected: tuple[str, str] | None = None) -> None:
        self.create(database, name, entry)

    def create(self, database: str, name: str, entry: Entry) -> None:
        if name == self.dies_at:
            if not self._spared:
                raise KeyboardInterrupt
            self._spared -= 1
        self.standing[self.at, database, name] = entry

    def drop(self, database: str, name: str) -> None:
        self.standing.pop((self.at, database, name), None)

    def said(self, name: str) -> dict[str, str]:
        """The parameters of an entry of the database `default`, wherever it is."""
        (entry,) = (one for (_, _, known), one in self.standing.items() if known == name)
        return entry.parameters | {"text": entry.text or ""}


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> Memory:
    """Every address leads to it, each to entries of its own."""
    made = Memory()

    @contextmanager
    def connect(uri: str, *, timeout_ms: int = 0) -> Iterator[Memory]:
        if uri in made.silent:
            raise EnvironmentProblem("The Hive metastore does not answer.", where=uri)
        made.at = uri
        yield made

    monkeypatch.setattr(hive, "connect", connect)
    return made
