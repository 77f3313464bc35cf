"""Files that lie behind a base file and are in no view, though their delta commit is completed.

Where slices are cut by completion times, a log file belongs to the slice that had begun when its commit was completed.
A compaction that takes that slice without it opens the next one: then the log file's rows are in no view, nor in the
base file. A base file that the newest one was not made of is in no view either (`grown`). So it goes where a clock is
put back, where those of two hosts differ, and where a plan was made from an older look. What is told here is told by
timeline and plans alone, whatever the cause: no clock, no file's age. Where they do not tell, nothing is said.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from functools import partial

from hudi_assets.engine.errors import CorruptTable, UnsupportedTable
from hudi_assets.engine.model import Action, BaseFile, Instant, LogFile, Operation, Plan, State
from hudi_assets.engine.model.files import GroupKey
from hudi_assets.engine.table.files.grown import base_stats, unseen_bases
from hudi_assets.engine.table.files.missing import parse_file
from hudi_assets.engine.table.settings.written_again import written_again
from hudi_assets.engine.table.slices.parts import remaining_of
from hudi_assets.engine.table.state import TableState
from hudi_assets.engine.timeline.commit_metadata import WriteStat
from hudi_assets.engine.timeline.instants import WRITES

_CLUSTER = "CLUSTER"


class Where(Enum):
    """Where the rows of a log file are that no plan lists: in the newest slice, in no view; or nothing tells."""

    IN_VIEW = auto()
    HIDDEN = auto()
    UNKNOWN = auto()


def where_is(completion: str, bases: Sequence[str], made_of: Callable[[str], str | None]) -> Where:
    """Where the rows of a log file are that no completed compaction's plan takes or carries over.

    Its delta commit was completed at `completion`. Instants compare as text.

    Args:
        bases: The instants of its group's completed base files, ascending.
        made_of: A base instant → the base instant of the slice that it replaced: "" where there was no base file
            before, None where nothing tells.
    """
    place = bisect_right(bases, completion)
    if place == len(bases):
        return Where.IN_VIEW
    source = made_of(bases[place])
    # Where the slice that was replaced began later, a base file between the two was cleaned: that one may hold it.
    return Where.HIDDEN if source is not None and source <= completion else Where.UNKNOWN


@dataclass(frozen=True, slots=True)
class Hidden:
    """A file, as its delta commit lists it, that lies `behind` a base file of that instant.

    `gone`: the file was cleaned. `taken_by`: a pending compaction whose plan lists it all the same.
    """

    stat: WriteStat
    delta_commit: Instant
    behind: Instant
    gone: bool = False
    taken_by: str | None = None

    @property
    def path(self) -> str:
        return self.stat.path

    @property
    def group(self) -> GroupKey:
        return self.stat.partition, self.stat.file_id

    @property
    def is_base(self) -> bool:
        """A base file that was made of the one that it lies behind, or beside that one; else a log file."""
        return self.stat.log_version is None

    @property
    def holds_behind(self) -> bool:
        """A base file that was made of the one that it lies behind, so it holds the rows of that write too."""
        return self.is_base and self.stat.prev_commit == self.behind.timestamp

    @property
    def completion(self) -> str:
        """When its delta commit was completed."""
        return _completion(self.delta_commit)


def hidden_files(state: TableState) -> tuple[Hidden, ...]:
    """The files of completed delta commits that are in no view, but for those whose rows were written again.

    That is the owner's word. Of archived delta commits those that an earlier look found. Base files alone where slices
    are cut by names.
    """
    stated = written_again(state.config.properties, state.storage.base)
    return tuple(file for file in all_hidden_files(state) if file.delta_commit.timestamp not in stated)


def all_hidden_files(state: TableState) -> tuple[Hidden, ...]:
    """The same, also those whose rows were written again."""
    return state.derive(_hidden_files)


def about_to_be_hidden(state: TableState, plan: Plan) -> tuple[Hidden, ...]:
    """The log files that a pending compaction would leave in no view, were it executed."""
    if not state.layout.cuts_by_completion:
        return ()
    opens = next((i for i in state.timeline.pending_compactions if i.timestamp == plan.instant), None)
    if opens is None:
        return ()
    merged = state.derive(_merged)
    ops = {(op.partition, op.file_id): op for op in plan.operations}
    taken = frozenset(_read_by(plan))
    found = []
    for instant, stat in _log_stats(state, plan.instant):
        op = ops.get((stat.partition, stat.file_id))
        if op is None or stat.path in taken or merged.may_have(stat):
            continue
        replaced = _replaced_by(op)
        if replaced is not None and replaced <= _completion(instant) and _is_own(state, instant, stat):
            found.append(Hidden(stat, instant, opens, gone=stat.path not in state.sizes))
    return tuple(found)


def _hidden_files(state: TableState) -> tuple[Hidden, ...]:
    found = [*_remembered(state), *_unseen(state)]
    if state.layout.cuts_by_completion:
        found += _behind_bases(state, [one for one in found if one.is_base])
    if not found:
        return ()
    taken = {path: plan.instant for plan in state.pending_plans for op in plan.operations for path in op.log_files}
    return tuple(replace(one, taken_by=taken.get(one.path)) for one in found)


def _unseen(state: TableState) -> Iterator[Hidden]:
    """Base files with rows that the newest one of their file group lacks."""
    for (instant, stat), behind in unseen_bases(state):
        if not _is_overwritten(state, (stat.partition, stat.file_id)):
            yield Hidden(stat, instant, behind, gone=stat.path not in state.sizes)


def _shown(state: TableState) -> frozenset[str]:
    """Log files in the view: one that was completed below its own request may have opened the newest slice."""
    return frozenset(log.path for log in remaining_of(state.parts.values()))


def _behind_bases(state: TableState, unseen: Sequence[Hidden]) -> Iterator[Hidden]:
    unlisted = _unlisted(state)
    if not unlisted:  # so it is on most tables, and nothing else is looked into there
        return
    groups = {(stat.partition, stat.file_id) for _, stat in unlisted}
    bases = _Bases(state, groups, unseen)
    for instant, stat in unlisted:
        key = (stat.partition, stat.file_id)
        behind = bases.hiding(key, _completion(instant), stat.prev_commit)
        if behind is not None and _is_own(state, instant, stat) and not _is_overwritten(state, key):
            gone = stat.path not in state.sizes
            yield Hidden(stat, instant, behind, gone)


def _unlisted(state: TableState) -> Sequence[tuple[Instant, WriteStat]]:
    """Log files of completed delta commits below the newest base file, in no view and in no plan."""
    newest = _newest_base(state)
    if newest is None:
        return ()
    below = tuple(i.file_name for i in state.timeline.completed(Action.DELTA_COMMIT) if _completion(i) < newest)
    made = tuple(i.file_name for i in state.timeline.completed(Action.COMMIT))

    def find() -> Sequence[tuple[Instant, WriteStat]]:
        elsewhere = [(i, stat) for i, stat in _log_stats(state, newest) if stat.path not in state.derive(_shown)]
        return [(i, stat) for i, stat in elsewhere if not state.derive(_merged).may_have(stat)]

    # What the view shows, or a plan took, leaves both only with a compaction, or with what makes a look doubt.
    return state.reading.told.tell(_unlisted, find, (newest, below, made))


def _remembered(state: TableState) -> Iterator[Hidden]:
    """What an earlier look found and still is so, where the timeline does not tell it any more.

    Its delta commit is archived, or the plan of a compaction of its group cannot be read.
    """
    if not state.archived_facts.hides:
        return
    merged, writes = state.derive(_merged), state.derive(_writes)
    hidden = state.archived_facts.memory.hidden
    # The archive tells whether they were completed to the end, or rolled back since that look.
    asked = {i for kept in hidden.values() for i in (kept.delta_commit, kept.behind)} - writes.keys()
    stand = {*writes, *(state.layout.archive(state.config.properties).completed(state.storage, asked) if asked else ())}
    for path, kept in hidden.items():
        file = parse_file(state, path)
        if file is None or path in state.derive(_shown) or path in merged.paths:
            continue
        group = file.partition, file.file_id
        version = file.version if isinstance(file, LogFile) else None
        if kept.delta_commit in writes and (version is None or group not in merged.unknown):
            continue
        if not {kept.delta_commit, kept.behind} <= stand or _is_overwritten(state, group):
            continue
        stat = WriteStat(path, file.partition, file.file_id, kept.made_of, kept.size, log_version=version)
        commit = Instant(kept.delta_commit, Action.DELTA_COMMIT, State.COMPLETED, "", kept.completion)
        archived = Instant(kept.behind, Action(kept.action), State.COMPLETED, "")
        behind = writes.get(kept.behind, archived)
        yield Hidden(stat, commit, behind, path not in state.sizes)


def _writes(state: TableState) -> Mapping[str, Instant]:
    return {instant.timestamp: instant for instant in state.timeline.completed(*WRITES)}


def _newest_base(state: TableState) -> str | None:
    """The newest completed write that wrote a base file: what was completed later is behind none."""
    for instant in reversed(state.timeline.completed(*WRITES)):
        if base_stats(state, instant):
            return instant.timestamp
    return None


def _log_stats(state: TableState, before: str) -> Iterator[tuple[Instant, WriteStat]]:
    """The log files of delta commits that were completed before an instant."""
    for instant in state.timeline.completed(Action.DELTA_COMMIT):
        if _completion(instant) < before:
            for stat in state.commit(instant).stats:
                if stat.log_version is not None:
                    yield instant, stat


def _is_own(state: TableState, instant: Instant, stat: WriteStat) -> bool:
    """True for a file that is named by its own delta commit.

    Not so what version 6 left, and what a clustering of buckets writes beside: those are named by another instant.
    """
    log = parse_file(state, stat.path)
    return isinstance(log, LogFile) and log.base_instant == instant.timestamp


@dataclass(frozen=True, slots=True)
class _Merged:
    """The log files that plans of completed compactions take or carry over.

    `unknown`: the file groups of those whose plan cannot be read. Nothing is told of them.
    """

    paths: frozenset[str]
    unknown: frozenset[GroupKey]

    def may_have(self, stat: WriteStat) -> bool:
        return stat.path in self.paths or (stat.partition, stat.file_id) in self.unknown


def _merged(state: TableState) -> _Merged:
    paths: set[str] = set()
    unknown: set[GroupKey] = set()
    for compaction in state.timeline.completed(Action.COMMIT):
        try:
            plan = state.plan(compaction.timestamp)
        except (CorruptTable, UnsupportedTable):
            unknown.update((stat.partition, stat.file_id) for stat in state.commit(compaction).stats)
        else:
            paths.update(_read_by(plan) if plan is not None else ())
    return _Merged(frozenset(paths), frozenset(unknown))


def _read_by(plan: Plan) -> Iterator[str]:
    for op in plan.operations:
        yield from op.log_files
        for carried in op.carried_over:
            yield carried.made_from
            yield carried.link


def _replaced_by(op: Operation) -> str | None:
    """The base instant of the slice that an operation replaces; "" where it has no base file; None: not to be told."""
    if op.carried_over:
        return None
    return op.base_instant if op.base_file else ""


def _is_overwritten(state: TableState, key: GroupKey) -> bool:
    """True where a replacecommit meant the group's rows to go: an overwrite or a delete, not a clustering."""
    replaced = state.replaced.get(key)
    return replaced is not None and any(
        instant.timestamp == replaced and state.commit(instant).operation.upper() != _CLUSTER
        for instant in state.timeline.completed(Action.REPLACE_COMMIT)
    )


def _completion(instant: Instant) -> str:
    return instant.completion or instant.timestamp


class _Bases:
    """The completed base files of some groups, and what each was made of; without those that nobody sees."""

    def __init__(self, state: TableState, groups: set[GroupKey], unseen: Iterable[Hidden]) -> None:
        self._state = state
        self._by: dict[GroupKey, dict[str, tuple[Instant, WriteStat] | None]] = {}
        self._ops: dict[Instant, Mapping[GroupKey, Operation]] = {}
        for partition in {partition for partition, _ in groups}:
            for file in state.data_files.get(partition, ()):
                key = (partition, file.file_id)
                if isinstance(file, BaseFile) and key in groups and state.timeline.is_committed(file.instant):
                    self._by.setdefault(key, {})[file.instant] = None
        for instant in state.timeline.completed(*WRITES):
            for stat in state.commit(instant).stats:
                key = (stat.partition, stat.file_id)
                if stat.log_version is None and stat.path and key in groups:
                    self._by.setdefault(key, {})[instant.timestamp] = (instant, stat)
        for base in unseen:
            self._by.get(base.group, {}).pop(base.delta_commit.timestamp, None)

    def hiding(self, key: GroupKey, completion: str, appended_to: str) -> Instant | None:
        """The write whose base file hides an unlisted log file; None where none does, or nothing tells.

        `appended_to`: the base instant of the slice that the log file's writer saw.
        """
        by = self._by.get(key, {})
        starts = sorted(by)
        made_of = partial(self._made_of, key, appended_to)
        if where_is(completion, starts, lambda base: made_of(by[base])) is not Where.HIDDEN:
            return None
        known = by[starts[bisect_right(starts, completion)]]
        return None if known is None else known[0]

    def _made_of(self, key: GroupKey, appended_to: str, known: tuple[Instant, WriteStat] | None) -> str | None:
        if known is None:
            return None
        instant, stat = known
        if instant.action is Action.REPLACE_COMMIT:
            # A clustering reads whole slices, and one strategy keeps the groups. It took nothing that came on top.
            on_top = appended_to.isdigit() and appended_to >= instant.timestamp
            return "" if on_top or self._is_new(key, instant) else None
        if instant.action is not Action.COMMIT:  # whoever inserts reads the base file alone
            return stat.prev_commit if stat.prev_commit.isdigit() else ""
        op = self._operations(instant).get(key)
        return None if op is None else _replaced_by(op)

    def _is_new(self, key: GroupKey, replacing: Instant) -> bool:
        """True where a replacecommit made the group: one that keeps groups replaces none, or that very one."""
        replaced = self._state.commit(replacing).replaced
        partition, file_id = key
        is_first = min(self._by[key]) == replacing.timestamp
        return is_first and any(replaced.values()) and file_id not in replaced.get(partition, ())

    def _operations(self, compaction: Instant) -> Mapping[GroupKey, Operation]:
        if compaction not in self._ops:
            plan = self._state.plan(compaction.timestamp)
            self._ops[compaction] = {(op.partition, op.file_id): op for op in plan.operations} if plan else {}
        return self._ops[compaction]
