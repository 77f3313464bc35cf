"""Log files that landed in a slice after a compaction of it was planned.

A Java writer (0.15.0, tried) reads the timeline before it takes the lock. One that read it just before our plan
was published, and whose instant is later than the plan's, appends to the old slice, and its conflict check lets it
commit. While the plan is pending every query reads both slices; executed, the plan would lose the rows.

Where slices are cut by completion times no row is lost, but a plan's instant has to lie below the requested time of
every write that it leaves out: a writer takes its instant some moments before its file is on the timeline, so one may
turn up below a plan that was published meanwhile. Ties would flip, and as of its instant its rows would be missing.
One that was also completed below the plan's instant, as clocks that differ or are put back have it, would be in no view
(`table.files.hidden`): so a plan of any engine's is refused.
"""

from __future__ import annotations

from collections.abc import Iterator

from hudi_assets.engine.errors import Conflict
from hudi_assets.engine.model import LogFile, Operation, Plan
from hudi_assets.engine.table.files.hidden import about_to_be_hidden
from hudi_assets.engine.table.log_files.headers import log_headers
from hudi_assets.engine.table.state import TableState


def refuse_stragglers(state: TableState, plan: Plan) -> None:
    """Raise `Conflict`, naming the log file, where executing the plan would change an answer. Nothing is changed."""
    if state.layout.back_dates_plans:
        _refuse_earlier(state, plan)
        _refuse_hidden(state, plan)
    if state.layout.loses_late_log_files:
        _refuse_landed(state, plan)


def _refuse_landed(state: TableState, plan: Plan) -> None:
    """A log file that landed in the old slice is in no slice once the plan is executed."""
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


def _refuse_earlier(state: TableState, plan: Plan) -> None:
    """A write that was requested before the plan's instant is in the plan, or completed before its slice began.

    Not so in Apache Hudi's own plans, which stand at the time of planning, beside whatever is unfinished then.
    """
    if not plan.is_ours:
        return
    where = f"{state.storage.base} {plan.instant}"
    for write in state.timeline.inflight_writes:
        if write.timestamp < plan.instant:
            raise Conflict(
                f"{write.action} {write.timestamp} was requested before the plan's instant and is unfinished: "
                "its log files would be in the new slice.",
                where=where,
                hint=f"Wait for it, or roll it back; where it commits, unschedule {plan.instant} and plan again.",
            )
    for op in plan.operations:
        planned = frozenset(op.log_files)
        for slice_ in state.view.groups.get((op.partition, op.file_id), ()):
            for log in slice_.log_files:
                if slice_.base_instant < op.base_instant or log.base_instant > plan.instant or log.path in planned:
                    continue
                if log.base_instant in state.committed:
                    raise Conflict(
                        f"A log file of {log.base_instant}, requested before the plan's instant, is not in the plan.",
                        where=f"{state.storage.base}: {log.path}",
                        hint=f"Unschedule {plan.instant} and plan again.",
                    )


def _refuse_hidden(state: TableState, plan: Plan) -> None:
    """A log file that stands in the slice, below any plan's instant, and is not in the plan: no view would show it."""
    for log in about_to_be_hidden(state, plan):
        raise Conflict(
            f"A log file of {log.delta_commit.timestamp}, completed before the plan's instant, is not in the plan: "
            "executing it would hide its rows.",
            where=f"{state.storage.base}: {log.path}",
            hint=f"Unschedule {plan.instant} and plan again.",
        )


def _unplanned(state: TableState, op: Operation) -> Iterator[LogFile]:
    """The logs of the operation's slice that the plan neither compacts nor carries over."""
    planned = {*op.log_files, *(carried.made_from for carried in op.carried_over)}
    for slice_ in state.view.groups.get((op.partition, op.file_id), ()):
        if slice_.base_instant == op.base_instant:
            yield from (log for log in slice_.log_files if log.path not in planned and log.original not in planned)


def _counted_instant(state: TableState, log: LogFile) -> str | None:
    """The first instant of the log's blocks that is committed; None for what a failed write left."""
    for block in log_headers(state.storage, log.path, log.size):
        if not block.is_corrupt and block.instant_time in state.committed:
            return block.instant_time
    return None
