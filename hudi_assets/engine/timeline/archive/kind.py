"""The archived timeline as the engine asks for it; a layout says which kind its tables have."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from hudi_assets.engine.model import Instant, Plan
from hudi_assets.engine.storage import Storage


@dataclass(frozen=True, slots=True)
class TimelineFile:
    """A file of the active timeline that is to be archived. `changed`: when it was written, as an instant."""

    instant: Instant
    data: bytes
    changed: str | None
    where: str


class Archive(Protocol):
    """Reads and writes one kind. Paths are table-relative; whatever cannot be read is a `CorruptTable`."""

    def refuse_unknown(self, properties: Mapping[str, str], where: str) -> None:
        """`UnsupportedTable` where the settings put the archived timeline elsewhere; `InvalidInput` for wrong ones."""
        ...

    def is_there(self, storage: Storage) -> bool:
        """True where something was archived."""
        ...

    def completions(self, storage: Storage) -> Mapping[str, str]:
        """Completion times of what is archived, by instant, where the kind keeps them."""
        ...

    def brought_rows(self, storage: Storage) -> Mapping[str, str]:
        """The same of writes alone that brought rows. A compaction only moves them."""
        ...

    def completed(self, storage: Storage, wanted: Collection[str]) -> frozenset[str]:
        """Those of the wanted writes, by instant, that are archived as completed."""
        ...

    def newest_replace(self, storage: Storage) -> str:
        """The newest archived replacecommit; "" where there is none."""
        ...

    def plans(self, storage: Storage, wanted: Collection[str]) -> tuple[Plan, ...]:
        """The plans of the wanted compactions, as far as they are archived."""
        ...

    def archived(self, storage: Storage, files: Iterable[Instant]) -> frozenset[str]:
        """Names of those of the active timeline's files that are archived too: a crash left them."""
        ...

    def add(self, storage: Storage, files: Sequence[TimelineFile]) -> str:
        """Archive files, in their order; the path of the archive's file that holds them."""
        ...

    def settle(self, storage: Storage, properties: Mapping[str, str]) -> None:
        """What the archive does for itself once its instants have left the active timeline."""
        ...
