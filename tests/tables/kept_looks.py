"""What a look keeps for the next one, against a listing of everything: the two must never differ."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from hudi_assets.engine import HudiTable, loaded
from hudi_assets.engine.errors import HudiAssetsError
from hudi_assets.engine.model import FileSlice, Look, NoPlan
from hudi_assets.engine.storage import folders
from hudi_assets.engine.table.slices import kept
from hudi_assets.engine.table.state import TableState
from hudi_assets.engine.timeline import stat_columns

_TICK_S = 0.02


@contextmanager
def looks_keep(patch: pytest.MonkeyPatch, *, columns: bool = False) -> Iterator[None]:
    """Tables of few files are kept too, and what was changed a moment ago is.

    `columns`: what is kept has hardly any objects, as that of a table of very many files.
    """
    if columns:
        patch.setattr(loaded.LOADED, "most", 0)
        patch.setattr(stat_columns, "_FEW", 0)
    patch.setattr(kept, "FEW_FILES", 0)
    patch.setattr(folders, "TICK_NS", int(_TICK_S * 1e9))
    kept.forget()
    yield
    kept.forget()


def settle() -> None:
    """Wait until what was done is older than a tick of the file system's clock."""
    time.sleep(1.25 * _TICK_S)


def view_of(state: TableState) -> tuple[object, ...]:
    """All that a reading says of the files, whatever their order in the listing."""
    latest = tuple(map(_in_order, state.view.latest))
    groups = {key: tuple(map(_in_order, slices)) for key, slices in state.view.groups.items()}
    files = {partition: sorted(found, key=lambda one: one.path) for partition, found in state.data_files.items()}
    return files, groups, latest, state.view.base_files, dict(state.sizes), state.broken_links


def _in_order(slice_: FileSlice) -> FileSlice:
    return replace(slice_, log_files=tuple(sorted(slice_.log_files, key=lambda log: log.path)))


def moved_on(table: HudiTable) -> TableState:
    """The reading of a look that goes on from the last one; the next goes on from it."""
    state = table._table.look()
    _ = state.view
    state.keep()
    return state


def look_of(table: HudiTable) -> Look | str:
    """A look, or the words of its refusal; without what is of the moment alone."""
    try:
        seen = table.look()
    except HudiAssetsError as error:
        return str(error)
    due: Any = seen.due
    if not isinstance(due, NoPlan):
        by_group = sorted(due.operations, key=lambda op: (op.partition, op.file_id))
        operations = tuple(
            replace(op, carried_over=tuple(c._replace(link=c.link.replace(due.instant, "")) for c in op.carried_over))
            for op in by_group
        )
        due = replace(due, instant="", operations=operations)
    return replace(seen, due=due)


def assert_kept_is_true(table: HudiTable) -> None:
    """A look that goes on from the last one says what one says that lists everything."""
    state, fresh = moved_on(table), table.state()
    if state.timeline == fresh.timeline:  # nobody wrote in between
        assert view_of(state) == view_of(fresh)
    moved = look_of(table)
    kept_before = dict(kept._KEEPERS)
    kept.forget()
    anew = look_of(table)
    kept._KEEPERS.update(kept_before)
    assert moved == anew, f"{moved}\n{anew}"
