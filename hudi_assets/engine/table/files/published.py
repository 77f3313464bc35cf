"""What the table notes of the views that are published of it: which base files they may name, by digests.

Whoever publishes keeps the notes, a file for each place. A cleaner asks them, as it knows no catalog.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Final

from hudi_assets.engine.errors import HudiAssetsError, OutdatedView
from hudi_assets.engine.storage.interface import SCRATCH
from hudi_assets.engine.table.slices.parts import Part
from hudi_assets.engine.table.state import TableState

# Notes of places, and in one the digests of the views that may stand there. Without them nobody knows.
PUBLISHED_NOTES = f"{SCRATCH}/published"
NOTED_DIGESTS = "view_digests"
# Rows of published tables with the freshness of each partition.
PARTITION_TABLES: Final = f"{SCRATCH}/partitions"
# The form of a place whose view names files; readers of the other one list the table's folders.
NAMES_FILES: Final = "views"


def view_digest(state: TableState) -> str:
    """Differs where the read-optimized view has other files or columns; empty where nobody knows the columns."""
    try:
        columns = state.schema
    except HudiAssetsError:  # as of a table of others that has no commit yet
        return ""
    text = str(columns.remove_metadata())
    parts = state.parts
    by = (text, tuple((partition, part.bases.digest) for partition, part in parts.items()))
    return state.reading.told.tell(_digest, lambda: _digest(text, parts.values()), by)


def _digest(columns: str, parts: Iterable[Part]) -> str:
    lines = [columns, *sorted(path for part in parts for path in part.bases.paths)]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def refuse_outdated_views(state: TableState) -> None:
    """A clean never deletes the newest slice of a file group: so a view that names those alone loses nothing.

    Raises `OutdatedView` where a published view may name others.
    """
    for view, note in _outdated_views(state):
        raise OutdatedView(
            f"The published view {view} may name files that a clean would delete.",
            where=state.storage.uri(note),
            hint="Publish it anew first: hudi-assets publish, or clean by hudi-assets clean, which does. "
            "If that catalog is gone for good, delete this note. Or clean with unasked=True, whatever it says.",
        )


def _outdated_views(state: TableState) -> Iterator[tuple[str, str]]:
    """Each with the file that notes it."""
    noted = list(_noted_views(state))
    now = [view_digest(state)] if noted else []
    return ((view, note) for view, note, digests in noted if digests != now)


def _noted_views(state: TableState) -> Iterator[tuple[str, str, object]]:
    """View, the file that notes it, the digests in it. A note that says nothing of a view is none, nor one gone."""
    for file in state.storage.list_files(PUBLISHED_NOTES):
        with suppress(ValueError, KeyError, TypeError, AttributeError, FileNotFoundError):
            note = f"{PUBLISHED_NOTES}/{file.name}"
            said = json.loads(state.storage.read(note))
            names = said["names"]
            view = f"{names['database']}.{names['ro']} in {said['metastore']}"
            if names["form"] == NAMES_FILES:
                yield view, note, said.get(NOTED_DIGESTS)
