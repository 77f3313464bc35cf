"""Log files that landed in a slice after a compaction of it was planned.

A Java writer (0.15.0, tried) reads the timeline before it takes the lock. One that read it just before our plan
was published, and whose instant is later than the plan's, appends to the old slice, and its conflict check lets it
commit. While the plan is pending every query reads both slices; executed, the plan would lose the rows.
"""

from __future__ import annotations

from collections.abc import Iterator

from hudi_assets.engine.errors import Conflict
from hudi_assets.engine.logs.codec import read_headers
from hudi_assets.engine.model import LogFile, Operation, Plan
from hudi_assets.engine.state import TableState


def refuse_stragglers(state: TableState, plan: Plan) -> None:
    """Raise `Conflict`, naming the log file, where executing the plan would lose rows. Nothing is changed."""
    for op in plan.operations:
        for log in _unplanned(state, op):
            instant = _counted_instant(state, log)
            if instant is not None:
                raise Conflict(
                    f"A log file of {instant} landed in the old slice after compaction {plan.instant} was planned: "
                    "executing the plan would lose its rows.",
                    where=f"{state.storage.base}: {log.path}",
                    hint="Unschedule the plan and plan again.",
                )


def _unplanned(state: TableState, op: Operation) -> Iterator[LogFile]:
    """The logs of the operation's slice that the plan neither compacts nor carries over."""
    planned = {*op.log_files, *(carried.target for carried in op.carried_over)}
    for slice_ in state.view.groups.get((op.partition, op.file_id), ()):
        if slice_.base_instant == op.base_instant:
            yield from (log for log in slice_.log_files if log.path not in planned and log.original not in planned)


def _counted_instant(state: TableState, log: LogFile) -> str | None:
    """The first instant of the log's blocks that is committed; None for what a failed write left."""
    for block in read_headers(lambda offset, n: state.storage.read_at(log.path, offset, n), log.size):
        if not block.is_corrupt and block.instant_time in state.committed:
            return block.instant_time
    return None
