"""A plan made of all slices at once, as whole objects: the plain way, against which plans in few bytes are held."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from hudi_assets.engine.actions.compaction.candidates import Candidate, WholeCandidate, metrics_of
from hudi_assets.engine.actions.compaction.strategy import CompactionStrategy
from hudi_assets.engine.model import CarryOver, FileSlice, LogFile, NoPlan, Operation, Plan
from hudi_assets.engine.table.layout.interface import Placement
from hudi_assets.engine.table.slices.file_view import FileView

Settled = tuple[FileSlice, tuple[LogFile, ...]]


def whole_plan(
    view: FileView,
    strategy: CompactionStrategy,
    *,
    placement: Placement,
    partitions: Sequence[str],
    base_file_size: int,
    carry_over: Callable[[FileSlice, tuple[LogFile, ...], str], tuple[CarryOver, ...]],
    extra_metadata: Mapping[str, str],
) -> Plan | NoPlan:
    """As `strategy.plan`."""
    found: list[Candidate] = []
    held: list[WholeCandidate] = []
    slices: dict[str, list[FileSlice]] = {}
    for slice_ in view.latest:
        if slice_.log_files:
            slices.setdefault(slice_.partition, []).append(placement.considered(slice_))
    for partition in dict.fromkeys(strategy.filter_partition_paths(partitions)):
        for slice_ in slices.get(partition, ()):
            taken, late = _of_slice(slice_, strategy, placement)
            if taken:
                span = placement.span(slice_, taken)
                found.append(WholeCandidate(slice_, taken, metrics_of(slice_, taken, base_file_size), span))
            if late:
                held.append(WholeCandidate(slice_, late, {}))
    ordered = [one.whole for one in strategy.order_and_filter(found)]
    if not ordered:
        logs = sum(len(one.chosen) for one in held)
        waits = f"{logs} log files are due, and a write in progress overlaps with them"
        return NoPlan(waits if held and not found else strategy.nothing(view, found))
    instant, suited = placement.place([placement.span(one.slice_, one.chosen) for one in ordered])
    planned = [ordered[n] for n in sorted(suited)]
    groups = {(one.slice_.partition, one.slice_.file_id) for one in planned}
    left_out = [one for one in found if (one.partition, one.file_id) not in groups]
    operations = tuple(
        Operation(
            one.slice_.partition,
            one.slice_.file_id,
            one.slice_.base_instant,
            one.slice_.base_file.path if one.slice_.base_file else None,
            tuple(log.path for log in one.chosen),
            carry_over(one.slice_, tuple(log for log in one.slice_.log_files if log not in one.chosen), instant),
            one.metrics,
        )
        for one in planned
    )
    return Plan(instant, strategy.threshold_of([*left_out, *held]), operations, strategy.name, dict(extra_metadata))


def _of_slice(
    slice_: FileSlice, strategy: CompactionStrategy, placement: Placement
) -> tuple[tuple[LogFile, ...], tuple[LogFile, ...]]:
    """What is taken of it, and what a write in progress holds back."""
    chosen, rest = strategy.filter_log_files(slice_)
    taken = _settled(slice_, chosen, strategy, placement)
    if taken == chosen and len(chosen) + len(rest) == len(slice_.log_files):
        return taken, ()
    needed = strategy.needed(slice_)
    if any(log not in taken for log in needed):
        taken = _settled(slice_, needed, strategy, placement)
    return taken, tuple(log for log in needed if log not in taken)


def _settled(
    slice_: FileSlice, chosen: tuple[LogFile, ...], strategy: CompactionStrategy, placement: Placement
) -> tuple[LogFile, ...]:
    while chosen:
        settled = placement.settle(slice_, chosen)
        if not settled or settled == chosen:
            return settled
        closed = strategy.closed(slice_, settled)
        if all(log in settled for log in closed):
            return settled
        if all(log in chosen for log in closed):
            return ()
        chosen = closed
    return ()


def left(view: FileView, plan: Plan) -> tuple[str, ...]:
    """The partitions in which log files stay that the plan does not take."""
    taken = {path for op in plan.operations for path in op.log_files}
    return tuple(sorted({s.partition for s in view.latest for log in s.log_files if log.path not in taken}))
