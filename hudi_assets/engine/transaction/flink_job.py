"""What a job of Hudi's Flink writer leaves beside a table, and which unfinished write is its own.

Read in Hudi's source. The order of its steps was run, with Hudi's classes and without Flink (docs/reference/flink.md).
"""

from __future__ import annotations

from typing import Final

from hudi_assets.engine.model import Action, Instant
from hudi_assets.engine.storage import Storage
from hudi_assets.engine.table.state import TableState
from hudi_assets.engine.timeline.markers import all_marked_files

_AUXILIARY: Final = ".hoodie/.aux"
# ViewStorageProperties: where a job's file view is served. CkpMetadata (0.x, 1.0): the instants of its checkpoints.
_VIEW: Final = "view_storage_conf"
_CHECKPOINTS: Final = "ckp_meta"


def traces(storage: Storage) -> tuple[str, ...]:
    """What says that a Flink job has written the table; empty for none."""
    files, folders = storage.list_folder(_AUXILIARY)
    found = [path for path in (*(file.path for file in files), *folders) if _is_trace(path.rpartition("/")[2])]
    return tuple(sorted(found))


def _is_trace(name: str) -> bool:
    return name.startswith((_VIEW, _CHECKPOINTS))


def goes_on_with(state: TableState, write: Instant) -> bool:
    """True for an unfinished write that is, as far as the table tells, a Flink job's current one.

    StreamWriteOperatorCoordinator has one from each checkpoint to the next, without a heartbeat, and leaves it when the
    job ends. With a later delta commit it would be committed or given up.
    """
    later = any(done.timestamp > write.timestamp for done in state.timeline.completed(Action.DELTA_COMMIT))
    return not later and bool(traces(state.storage))


def may_commit(state: TableState, write: Instant) -> bool:
    """True where a job that starts again from its last checkpoint may commit the write (`recommitInstant`).

    A checkpoint is complete before its write is committed. A write without files is no checkpoint's.
    """
    return goes_on_with(state, write) and bool(all_marked_files(state.storage, write.timestamp))
