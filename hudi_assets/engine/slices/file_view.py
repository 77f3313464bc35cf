"""Listing + timeline → file slices. Pure.

A file group is a list of slices, each a base file and the log files since. Which of them count follows
org.apache.hudi.common.table.view.AbstractTableFileSystemView: committed slices, and the slice that a
pending compaction opens; groups replaced by a completed replacecommit leave the view.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from hudi_assets.engine.layout.seam import CompletionOf, Layout
from hudi_assets.engine.model import BaseFile, FileSlice, LogFile, Plan
from hudi_assets.engine.storage import FileInfo
from hudi_assets.engine.timeline.compaction_plan import residue_paths
from hudi_assets.engine.timeline.instants import Timeline

GroupKey = tuple[str, str]  # (partition, file id)


@dataclass(frozen=True)
class FileView:
    """The file slices of a table, per file group in order of their base instants."""

    groups: Mapping[GroupKey, tuple[FileSlice, ...]]
    pending: Mapping[GroupKey, Plan]

    @cached_property
    def latest(self) -> tuple[FileSlice, ...]:
        """The slice that a snapshot query reads of each group, in order of partition and file id.

        While a compaction is pending that is the slice it reads, with the logs of the new slice behind
        (getLatestMergedFileSlicesBeforeOrOn); logs that only carry an older one over come once.
        """
        slices = (self._merged(key) for key in sorted(self.groups))
        return tuple(s for s in slices if s.base_file or s.log_files)

    def _merged(self, key: GroupKey) -> FileSlice:
        slices, plan = self.groups[key], self.pending.get(key)
        newest = slices[-1]
        if plan is None or newest.base_instant != plan.instant:
            return newest
        carried = {c.link for op in plan.operations for c in op.carried_over}
        added = tuple(log for log in newest.log_files if log.path not in carried)
        if len(slices) == 1:
            return newest
        older = slices[-2]
        return replace(older, log_files=older.log_files + added)

    @cached_property
    def base_files(self) -> tuple[BaseFile, ...]:
        """The newest committed base file of each group: what the read-optimized view is made of."""
        newest = (
            next((s.base_file for s in reversed(slices) if s.base_file), None)
            for _, slices in sorted(self.groups.items())
        )
        return tuple(base for base in newest if base is not None)

    def write_slice(self, key: GroupKey) -> FileSlice | None:
        """The slice that new log files of a group go to: a pending compaction's, where there is one."""
        slices = self.groups.get(key)
        return slices[-1] if slices else None


def build_view(
    files: Mapping[str, Iterable[FileInfo]],
    timeline: Timeline,
    layout: Layout,
    *,
    plans: Iterable[Plan] = (),
    replaced: frozenset[GroupKey] = frozenset(),
    named: Callable[[BaseFile], bool] = lambda base: False,
    completion_of: CompletionOf | None = None,
) -> FileView:
    """Cut slices out of a listing. `files`: partition → its files; `plans`: the pending compactions'.

    `named` says whether a base file's commit names it. It is asked only where a slice has several: all
    but one are of task attempts that did not count.
    """
    plans = tuple(plans)
    # A residue log is nobody's before its compaction is completed: an execution may have died, or live.
    unfinished = frozenset(path for plan in plans for path in residue_paths(plan, layout.log_file_name))
    bases: dict[GroupKey, dict[str, BaseFile]] = {}
    logs: dict[GroupKey, list[LogFile]] = {}
    for partition, listing in files.items():
        for file in listing:
            log = layout.parse_log_file(file, partition)
            if log is not None:
                if log.path in unfinished:
                    continue
                logs.setdefault((partition, log.file_id), []).append(log)
                continue
            base = layout.parse_base_file(file, partition)
            if base is not None and timeline.is_committed(base.instant):
                slot = bases.setdefault((partition, base.file_id), {})
                if base.instant not in slot or named(base):
                    slot[base.instant] = base
    pending = {(op.partition, op.file_id): plan for plan in plans for op in plan.operations}
    groups: dict[GroupKey, tuple[FileSlice, ...]] = {}
    for key in bases.keys() | logs.keys():
        if key in replaced:
            continue
        plan = pending.get(key)
        found = bases.get(key, {})
        starts = sorted({*found, plan.instant} if plan is not None else found)
        cut = layout.cut(starts, logs.get(key, ()), completion_of or timeline.completions.get)
        slices = _slices(key, found, cut, timeline, plan)
        if slices:
            groups[key] = slices
    return FileView(groups, pending)


def _slices(
    key: GroupKey,
    bases: Mapping[str, BaseFile],
    logs: Mapping[str, list[LogFile]],
    timeline: Timeline,
    plan: Plan | None,
) -> tuple[FileSlice, ...]:
    partition, file_id = key
    instants = {i for i in bases.keys() | logs.keys() if timeline.is_committed(i)}
    if plan is not None:
        instants.add(plan.instant)
    return tuple(
        FileSlice(
            partition,
            file_id,
            instant,
            bases.get(instant),
            tuple(sorted(logs.get(instant, ()), key=lambda log: log.order)),
        )
        for instant in sorted(instants)
    )
