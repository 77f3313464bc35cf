"""Compactions at past instants among random overlapping delta commits: no answer changes, ties included.

The oracle merges record by record, in log order, and knows nothing of plans: the answers of file groups as they are
with base files, as of every instant, against the same log files without any compaction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hypothesis import event, given, settings
from hypothesis import strategies as st

from hudi_assets.engine.model import Action, BaseFile, FileSlice, Instant, LogFile, State
from hudi_assets.engine.table.layout.placement import past_instant
from hudi_assets.engine.table.layout.v8 import LayoutV8
from hudi_assets.engine.timeline.instants import Timeline, format_instant

LAYOUT = LayoutV8(9)
_EPOCH_MS = 1_790_000_000_000
_END = 130
Record = tuple[int, int, int]  # key, ordering value, what it says
Rows = dict[int, tuple[int, int]]


def t(ms: int) -> str:
    return format_instant(_EPOCH_MS + ms, "UTC")


@dataclass(frozen=True)
class Delta:
    """A delta commit: requested and completed at (ms), and the records that it writes into each file group."""

    requested: int
    completed: int
    records: Mapping[str, tuple[Record, ...]]


@dataclass
class Group:
    """A file group: base instants with their rows, and log files with their records, by delta instant."""

    name: str
    bases: dict[str, Rows] = field(default_factory=dict)
    logs: dict[str, tuple[Record, ...]] = field(default_factory=dict)

    def file(self, instant: str) -> LogFile:
        name = f".{self.name}_{instant}.log.1_0-0-0"
        return LogFile(name, "", self.name, instant, 1, "0-0-0", 1, name)

    def slices(self, completions: Mapping[str, str]) -> dict[str, list[LogFile]]:
        there = [self.file(i) for i in self.logs if i in completions]
        cut = dict(LAYOUT.cut(sorted(self.bases), there, completions.get))
        return {start: cut.get(start, []) for start in sorted({*cut, *self.bases})}

    def as_of(self, instant: str, completions: Mapping[str, str]) -> Rows:
        """The newest slice at or before an instant, its log files up to it, merged one record after the other."""
        slices = {start: logs for start, logs in self.slices(completions).items() if start <= instant}
        if not slices:
            return {}
        start = max(slices)
        return self.merged(start, [one.base_instant for one in slices[start] if one.base_instant <= instant])

    def merged(self, start: str, logs: Sequence[str]) -> Rows:
        rows = dict(self.bases.get(start, {}))
        for instant in sorted(logs):
            for key, order, says in self.logs[instant]:
                if key not in rows or order >= rows[key][0]:  # a tie goes to the one that comes later
                    rows[key] = (order, says)
        return rows


def _timeline(deltas: Sequence[Delta], compactions: Mapping[str, str], now: int) -> Timeline:
    """The active timeline at `now`."""
    found = []
    for one in deltas:
        if one.completed <= now:
            name = f"{t(one.requested)}_{t(one.completed)}.deltacommit"
            found.append(Instant(t(one.requested), Action.DELTA_COMMIT, State.COMPLETED, name, t(one.completed)))
        elif one.requested <= now:
            found.append(Instant(t(one.requested), Action.DELTA_COMMIT, State.INFLIGHT, ""))
    for instant, completion in compactions.items():
        found.append(Instant(instant, Action.COMMIT, State.COMPLETED, f"{instant}_{completion}.commit", completion))
    return Timeline(tuple(sorted(found)))


def _compact(groups: Sequence[Group], timeline: Timeline, wanted: frozenset[str]) -> str | None:
    """Plan as the engine does, for the log files of these deltas, and execute slowly; the instant, None: no plan."""
    completions = timeline.completions
    placement = past_instant(timeline, completions.get)
    settled: list[tuple[FileSlice, tuple[LogFile, ...]]] = []
    owners = []
    for group in groups:
        starts = group.slices(completions)
        if not starts:
            continue
        start = max(starts)
        base = BaseFile("b", "", group.name, start, "0", 1) if start in group.bases else None
        # Log files of unfinished writes are there too.
        unfinished = tuple(group.file(i) for i in group.logs if i not in completions)
        slice_ = placement.considered(FileSlice("", group.name, start, base, (*starts[start], *unfinished)))
        chosen = [log for log in slice_.log_files if log.base_instant in wanted]
        taken = placement.settle(slice_, chosen) if chosen else ()
        if taken:
            settled.append((slice_, taken))
            owners.append(group)
    if not settled:
        return None
    instant, suited = placement.place([placement.span(*one) for one in settled])
    assert suited
    _check(instant, [settled[n] for n in suited], timeline)
    for n in suited:
        slice_, taken = settled[n]
        owners[n].bases[instant] = owners[n].merged(slice_.base_instant, [log.base_instant for log in taken])
    return instant


def _check(instant: str, planned: Sequence[tuple[FileSlice, tuple[LogFile, ...]]], timeline: Timeline) -> None:
    """The rules for a plan's instant, said once more."""
    assert instant not in {i.timestamp for i in timeline.instants}
    assert timeline.start is not None
    assert instant > timeline.start
    assert all(instant < i.timestamp for i in timeline.instants if not i.is_completed)
    for slice_, taken in planned:
        assert instant > slice_.base_instant
        for log in slice_.log_files:
            if log in taken:
                assert timeline.completions[log.base_instant] <= instant
            else:
                assert log.base_instant > instant


RECORD = st.tuples(st.integers(0, 2), st.integers(1, 2), st.integers(0, 999))
RECORDS = st.lists(RECORD, min_size=1, max_size=3).map(tuple)
TIMES = st.lists(st.integers(0, 100), min_size=8, max_size=16, unique=True)


@st.composite
def histories(draw: st.DrawFn) -> list[Delta]:
    """Delta commits of several writers: any may be requested while others are under way."""
    times = draw(TIMES)
    half = len(times) // 2
    pairs = [sorted(pair) for pair in zip(times[:half], times[half : 2 * half], strict=True)]
    made = []
    for requested, completed in sorted(pairs):
        where = draw(st.sets(st.sampled_from("fgh"), min_size=1))
        made.append(Delta(requested, completed, {name: draw(RECORDS) for name in sorted(where)}))
    return made


@settings(max_examples=200, deadline=None)
@given(deltas=histories(), looks=st.lists(st.integers(20, _END), min_size=1, max_size=3), data=st.data())
def test_no_answer_changes(deltas: list[Delta], looks: list[int], data: st.DataObject) -> None:
    compacted = [Group(name) for name in "fgh"]
    plain = [Group(name) for name in "fgh"]
    compactions: dict[str, str] = {}
    for now in sorted(looks):
        for group in (*compacted, *plain):
            group.logs = {
                t(d.requested): d.records[group.name] for d in deltas if group.name in d.records and d.requested <= now
            }
        timeline = _timeline(deltas, compactions, now)
        done = sorted(timeline.completions.keys() - compactions.keys())
        if not done:
            continue
        wanted = frozenset(data.draw(st.sets(st.sampled_from(done), min_size=1)))
        instant = _compact(compacted, timeline, wanted)
        event("planned" if instant else "no room")
        if instant is not None:
            compactions[instant] = t(now)
        _same_answers(plain, compacted, _timeline(deltas, compactions, now).completions)
    for group in (*compacted, *plain):
        group.logs = {t(d.requested): d.records[group.name] for d in deltas if group.name in d.records}
    _same_answers(plain, compacted, _timeline(deltas, compactions, _END).completions)


def _same_answers(plain: Sequence[Group], compacted: Sequence[Group], completions: Mapping[str, str]) -> None:
    for one, other in zip(plain, compacted, strict=True):
        for ms in range(_END):
            assert other.as_of(t(ms), completions) == one.as_of(t(ms), completions), (one.name, ms)
