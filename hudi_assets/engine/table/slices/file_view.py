"""Files + timeline → file slices. Pure.

A file group is a list of slices, each a base file and the log files since. Which of them count follows
org.apache.hudi.common.table.view.AbstractTableFileSystemView: committed slices, and the slice that a
pending compaction opens; groups replaced by a completed replacecommit leave the view.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Protocol, TypeVar

from hudi_assets.engine.model import LOG_ORDER, BaseFile, FileSlice, LogFile, Plan
from hudi_assets.engine.model.files import GroupKey
from hudi_assets.engine.table.layout.interface import CompletionOf, Layout
from hudi_assets.engine.table.slices.listing import DataFiles
from hudi_assets.engine.timeline.compaction_plan import residue_paths
from hudi_assets.engine.timeline.instants import Timeline


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
        carried = self._carried[plan.instant]
        added = tuple(log for log in newest.log_files if log.path not in carried)
        if len(slices) == 1:
            return newest
        older = slices[-2]
        return replace(older, log_files=older.log_files + added)

    @cached_property
    def _carried(self) -> Mapping[str, frozenset[str]]:
        """Pending compaction → the log files that carry older ones over."""
        plans = {plan.instant: plan for plan in self.pending.values()}
        return {
            instant: frozenset(c.link for op in plan.operations for c in op.carried_over)
            for instant, plan in plans.items()
        }

    @cached_property
    def base_files(self) -> tuple[BaseFile, ...]:
        """The newest committed base file of each group: what the read-optimized view is made of."""
        newest = (
            next((s.base_file for s in reversed(slices) if s.base_file), None)
            for _, slices in sorted(self.groups.items())
        )
        return tuple(base for base in newest if base is not None)

    def latest_of(self, partition: str) -> Sequence[FileSlice]:
        """The same of one partition alone; none where there is no such partition."""
        return self._latest_by_partition.get(partition, ())

    @cached_property
    def _latest_by_partition(self) -> Mapping[str, Sequence[FileSlice]]:
        found: dict[str, list[FileSlice]] = {}
        for slice_ in self.latest:
            found.setdefault(slice_.partition, []).append(slice_)
        return found

    @property
    def number_of_logs(self) -> int:
        """How many log files the newest slices have."""
        return sum(len(slice_.log_files) for slice_ in self.latest)

    @property
    def view(self) -> FileView:
        """Itself: it may be one of several (`FileViewOfParts`)."""
        return self

    def write_slice(self, key: GroupKey) -> FileSlice | None:
        """The slice that new log files of a group go to: a pending compaction's, where there is one."""
        slices = self.groups.get(key)
        return slices[-1] if slices else None


class Viewed(Protocol):
    """A partition with its slices."""

    @property
    def view(self) -> FileView: ...
    @property
    def number_of_logs(self) -> int: ...


class FileViewOfParts(FileView):
    """The same of views that have a partition each: what they know is not made again, nor all of it at once."""

    def __init__(self, parts: Mapping[str, Viewed], pending: Mapping[GroupKey, Plan]) -> None:
        """`parts`: by partition."""
        super().__init__(_Joined(parts), pending)
        object.__setattr__(self, "_parts", {partition: parts[partition] for partition in sorted(parts)})

    _parts: dict[str, Viewed]

    @cached_property
    def latest(self) -> tuple[FileSlice, ...]:
        return tuple(chain.from_iterable(part.view.latest for part in self._parts.values()))

    def latest_of(self, partition: str) -> Sequence[FileSlice]:
        part = self._parts.get(partition)
        return () if part is None else part.view.latest

    @property
    def number_of_logs(self) -> int:
        return sum(part.number_of_logs for part in self._parts.values())

    @cached_property
    def base_files(self) -> tuple[BaseFile, ...]:
        return tuple(chain.from_iterable(part.view.base_files for part in self._parts.values()))


class _Joined(Mapping[GroupKey, tuple[FileSlice, ...]]):
    """The file groups of all partitions."""

    def __init__(self, parts: Mapping[str, Viewed]) -> None:
        self._parts = parts

    def __getitem__(self, key: GroupKey) -> tuple[FileSlice, ...]:
        return self._parts[key[0]].view.groups[key]

    def __iter__(self) -> Iterator[GroupKey]:
        return chain.from_iterable(part.view.groups for part in self._parts.values())

    def __len__(self) -> int:
        return sum(len(part.view.groups) for part in self._parts.values())


def build_view(
    files: DataFiles,
    timeline: Timeline,
    layout: Layout,
    *,
    plans: Iterable[Plan] = (),
    replaced: frozenset[GroupKey] = frozenset(),
    named: Callable[[BaseFile], bool] = lambda base: False,
    completion_of: CompletionOf | None = None,
) -> FileView:
    """Cut slices out of a table's files. `plans`: the pending compactions'.

    `named` says whether a base file's commit names it. It is asked only where a slice has several: all
    but one are of task attempts that did not count.
    """
    cutter = Cutter(timeline, layout, tuple(plans), replaced, named, completion_of)
    parts = {partition: cutter.view(partition, listed) for partition, listed in files.items()}
    return FileViewOfParts(parts, cutter.pending)


class Cutter:
    """Cuts the slices of one partition after another (`build_view`)."""

    def __init__(
        self,
        timeline: Timeline,
        layout: Layout,
        plans: tuple[Plan, ...],
        replaced: frozenset[GroupKey],
        named: Callable[[BaseFile], bool],
        completion_of: CompletionOf | None = None,
    ) -> None:
        # A residue log is nobody's before its compaction is completed: an execution may have died, or live.
        self._unfinished = frozenset(path for plan in plans for path in residue_paths(plan, layout.log_file_name))
        self.pending = {(op.partition, op.file_id): plan for plan in plans for op in plan.operations}
        self._pending: dict[str, dict[GroupKey, Plan]] = {}
        for key, plan in self.pending.items():
            self._pending.setdefault(key[0], {})[key] = plan
        self._layout, self._replaced, self._named = layout, replaced, named
        self._committed = _Memo(timeline.is_committed)
        self._completion = _Memo(completion_of or timeline.completions.get)

    def view(self, partition: str, listed: Iterable[LogFile | BaseFile]) -> FileView:
        """The slices of a partition with these files."""
        pending = self._pending.get(partition, {})
        groups: dict[GroupKey, tuple[FileSlice, ...]] = {}
        bases, logs = _by_group(listed, self._unfinished, self._committed, self._named)
        for file_id in bases.keys() | logs.keys():
            key = (partition, file_id)
            if key in self._replaced:
                continue
            plan = pending.get(key)
            found = bases.get(file_id, {})
            starts = sorted({*found, plan.instant} if plan is not None else found)
            cut = self._layout.cut(starts, logs.get(file_id, ()), self._completion.__getitem__)
            slices = _slices(key, found, cut, self._committed, plan)
            if slices:
                groups[key] = slices
        return FileView(groups, pending)


_Value = TypeVar("_Value")


class _Memo(dict[str, _Value]):
    """Answers of a question about instants: there are many files, and few instants."""

    def __init__(self, ask: Callable[[str], _Value]) -> None:
        super().__init__()
        self._ask = ask

    def __missing__(self, instant: str) -> _Value:
        self[instant] = answer = self._ask(instant)
        return answer


def _by_group(
    listed: Iterable[LogFile | BaseFile],
    unfinished: frozenset[str],
    committed: Mapping[str, bool],
    named: Callable[[BaseFile], bool],
) -> tuple[dict[str, dict[str, BaseFile]], dict[str, list[LogFile]]]:
    """A partition's committed base files (file id → instant → file) and its log files (file id → files)."""
    bases: dict[str, dict[str, BaseFile]] = {}
    logs: dict[str, list[LogFile]] = {}
    for file in listed:
        if isinstance(file, LogFile):
            if file.path not in unfinished:
                logs.setdefault(file.file_id, []).append(file)
        elif committed[file.instant]:
            slot = bases.setdefault(file.file_id, {})
            if file.instant not in slot or named(file):
                slot[file.instant] = file
    return bases, logs


def _slices(
    key: GroupKey,
    bases: Mapping[str, BaseFile],
    logs: Mapping[str, list[LogFile]],
    committed: Mapping[str, bool],
    plan: Plan | None,
) -> tuple[FileSlice, ...]:
    partition, file_id = key
    instants = {i for i in bases.keys() | logs.keys() if committed[i]}
    if plan is not None:
        instants.add(plan.instant)
    return tuple(
        FileSlice(partition, file_id, instant, bases.get(instant), tuple(sorted(logs.get(instant, ()), key=LOG_ORDER)))
        for instant in sorted(instants)
    )
