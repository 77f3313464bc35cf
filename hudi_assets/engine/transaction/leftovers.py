"""What a dead process of ours left, by a look that is cheap enough for every tick of a sensor. Reads only.

`validate` looks at everything; here only what `recover` mends is looked for, and only on the listing and the timeline.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from hudi_assets.engine.errors import Conflict
from hudi_assets.engine.model import Action, State
from hudi_assets.engine.table.files.cleaned import read_pending_cleans
from hudi_assets.engine.table.files.orphans import Orphans
from hudi_assets.engine.table.files.strays import Strays
from hudi_assets.engine.table.slices.parts import instant_of
from hudi_assets.engine.table.state import TableState
from hudi_assets.engine.timeline.rollback_metadata import decode_restore_plan, decode_rollback_plan
from hudi_assets.engine.transaction.heartbeat import Heartbeats
from hudi_assets.engine.transaction.rollback_plan import is_ours


def leftovers(state: TableState, now_ms: Callable[[], int]) -> tuple[str, ...]:
    """Sentences about what `recover` would finish, undo or remove; empty where there is nothing."""
    try:
        return tuple(_leftovers(state, now_ms))
    except (Conflict, FileNotFoundError):
        # Whoever it is about finished it meanwhile: nothing is left, or the next look sees what is.
        return ()


def _leftovers(state: TableState, now_ms: Callable[[], int]) -> Iterator[str]:
    removable = Orphans(state).removable
    if removable:
        instants = ", ".join(sorted({instant_of(file) for file in removable}))
        kind = "carried-over log files" if state.layout.orphans_may_hold_rows else "files"
        yield f"{len(removable)} {kind} of {instants}, which is on no timeline"
    strays = Strays(state)
    if strays.second_base_files and strays.base_files:
        yield f"{len(strays.base_files)} base files that their commits do not list, of lost task attempts"
    beats = Heartbeats.of(state.storage, state.config, now_ms)
    for write in state.timeline.pending(Action.DELTA_COMMIT):
        if not beats.is_alive(write.timestamp) and is_ours(state, write):
            yield f"write {write.timestamp} is unfinished, and its writer is gone"
    for guard in sorted(state.guards):
        yield f"plan {guard} was begun and never published"
    yield from _unfinished_actions(state)


def _unfinished_actions(state: TableState) -> Iterator[str]:
    for clean in read_pending_cleans(state):
        if clean.is_ours:
            yield f"clean {clean.instant} is unfinished"
    for action, decode in ((Action.ROLLBACK, decode_rollback_plan), (Action.RESTORE, decode_restore_plan)):
        for instant in state.timeline.pending(action):
            path = state.layout.instant_path(instant.timestamp, action, State.REQUESTED)
            if decode(state.storage.read(path), f"{state.storage.base}: {path}").ours:
                yield f"{action} {instant.timestamp} is unfinished"
