"""The truth about a table by the plainest rules: what came in, and which compaction merged what.

No line of the engine decides here. Which log file an event went to is read from the raw commit file; a compaction is
told as the set of log files that its plan names.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

Group = tuple[str, int]  # partition, bucket
Shown = dict[str, tuple[int, int, int | None, str]]  # key → (ts, ord, value, commit)


@dataclass(eq=False)
class Event:
    """A row, or a delete (`value` None). A delete without `ord` deletes whatever came before it.

    `happened`: when it truly did. `bound`: of one without `ts`, what stands for it, by its commit.
    """

    commit: str
    group: Group
    key: str
    ts: int | None
    ord: int | None
    value: int | None
    names: set[str] = field(default_factory=set)  # every path its log file has been shown under
    happened: int = 0
    bound: int = -1

    @property
    def counts_from(self) -> int:
        return self.bound if self.ts is None else self.ts

    @property
    def shown(self) -> tuple[int, int, int | None, str]:
        return (self.ts, self.ord, self.value, self.commit)  # type: ignore[return-value]


def alive(events: Iterable[Event]) -> list[Event]:
    """Of one key's events in log files, those that a delete in commit order has not ended, and the last such delete.

    A delete with a value is passed over where it comes right after one without.
    """
    left: list[Event] = []
    for event in events:
        if event.ord is None:
            left = [event]
        elif event.value is not None or not left or left[-1].ord is not None:
            left.append(event)
    return left


def newest(events: Iterable[Event]) -> Event | None:
    """The last of those with the greatest value; one without value where there is no other."""
    best: Event | None = None
    for event in events:
        if best is None or best.ord is None or (event.ord is not None and event.ord >= best.ord):
            best = event
    return best


def winner(base: Event | None, logs: Iterable[Event]) -> Event | None:
    """The event of one key that counts: the log's events first, in log order, and what is left against the base row."""
    return against(base, newest(alive(logs)))


def against(base: Event | None, last: Event | None, beside: Iterable[Event] = ()) -> Event | None:
    """What is left of the log's events against the base row; `beside`: of them, those that are left out of a merge.

    Where some are, a delete without value is not the last word: it ends no base row above the least of them.
    """
    if base is None or last is None:
        return last or base
    assert base.ord is not None
    values = [event.ord for event in (last, *(beside if last.ord is None else ())) if event.ord is not None]
    return base if values and base.ord > min(values) else last


def winner_by_0_x(base: Event | None, logs: Iterable[Event]) -> Event | None:
    """The same by Hudi 0.x's rules: the log's events first, and a delete that is left of them ends the base row."""
    last: Event | None = None
    for event in logs:
        if (
            last is None
            or (last.value is None and event.value is not None)
            or event.ord is None
            or last.ord is None
            or event.ord >= last.ord
        ):
            last = event
    if last is None or base is None:
        return last or base
    assert base.ord is not None
    return base if last.value is not None and last.ord is not None and base.ord > last.ord else last


@dataclass
class State:
    """What base files hold (one event a key), and every event in a log file, in log order."""

    by_0_x: bool = False

    base: dict[str, Event] = field(default_factory=dict)
    logs: list[Event] = field(default_factory=list)

    def copy(self) -> State:
        return State(self.by_0_x, dict(self.base), list(self.logs))

    def keep(self, wanted: Callable[[Event], bool]) -> None:
        """Forget all other events."""
        self.base = {key: event for key, event in self.base.items() if wanted(event)}
        self.logs = [event for event in self.logs if wanted(event)]

    def winner(self, key: str) -> Event | None:
        rule = winner_by_0_x if self.by_0_x else winner
        return rule(self.base.get(key), [e for e in self.logs if e.key == key])

    def snapshot(self) -> Shown:
        best = {key: self.winner(key) for key in self.base.keys() | {e.key for e in self.logs}}
        return {key: e.shown for key, e in best.items() if e is not None and e.value is not None}

    def read_optimized(self) -> Shown:
        return {key: event.shown for key, event in self.base.items()}

    def minimum(self) -> int | None:
        """The smallest event time in a log file, or what stands for one by its commit."""
        return min((e.counts_from for e in self.logs), default=None)


@dataclass
class Merge:
    """A compaction: the log files it merges, by path, and the rule for what lives on in a residue log."""

    instant: str
    threshold: int
    paths: frozenset[str]
    residue: Mapping[Group, str]  # group → residue log, where the plan allows one
    exact: bool
    lives_on: dict[str, list[Event]] = field(default_factory=dict)

    def decide(self, state: State, by_event_time: bool) -> None:
        """Which merged events live on in a residue log: from the state that the plan was made at."""
        remaining: dict[Group, list[int]] = {}
        for event in state.logs:
            if not event.names & self.paths:
                remaining.setdefault(event.group, []).append(-1 if event.ts is None else event.ts)
        for key in {e.key for e in state.logs if e.names & self.paths}:
            last, above = self._merged(state, key)
            group = next(e.group for e in state.logs if e.key == key)
            if group not in self.residue:
                continue
            left = remaining.get(group, [])
            met: list[Event] = []
            if last is not None and last.value is None and last.ord is not None and left:
                met = [last] if not by_event_time or last.ord >= min(left) else []
            if met or above:
                self.lives_on[key] = met + above

    def _merged(self, state: State, key: str) -> tuple[Event | None, list[Event]]:
        """What this merges the key to, and its events above an exact split.

        What is in the base file already stays there. A delete without value ends all log events before it.
        """
        base = state.base.get(key)
        merged = [e for e in state.logs if e.key == key and e.names & self.paths]
        if state.by_0_x:
            return winner_by_0_x(base, merged), []
        left = alive(merged)
        above = [e for e in left if self.exact and e.ts is not None and e.ts > self.threshold]
        return against(base, newest([e for e in left if e not in above]), above), above

    def apply(self, state: State) -> None:
        keys = {e.key for e in state.logs if e.names & self.paths}
        for key in keys:
            last, _ = self._merged(state, key)
            state.base.pop(key, None)
            if last is not None and last.value is not None:
                moved = copy.copy(last)
                moved.names = set()
                state.base[key] = moved
        rest = [e for e in state.logs if not e.names & self.paths]
        first = []
        for key in keys:
            for event in self.lives_on.get(key, []):
                moved = copy.copy(event)
                moved.names = {self.residue[event.group]}
                first.append(moved)
        state.logs = first + rest


class Oracle:
    """A table's whole history: its state after each instant.

    `past_instants`: a compaction's instant lies before writes that the table has when it is planned.
    `by_0_x`: the table is merged by Hudi 0.x's rules.
    """

    def __init__(self, *, by_event_time: bool, past_instants: bool = False, by_0_x: bool = False) -> None:
        self.by_event_time = by_event_time
        self.past_instants = past_instants
        self.writes: dict[str, list[Event]] = {}
        self.loads: dict[str, list[Event]] = {}
        self.merges: dict[str, Merge] = {}
        self.completions: dict[str, str] = {}
        self.now = State(by_0_x)
        self.states: dict[str, State] = {}
        self.planned: dict[str, State] = {}
        self.unmerged: dict[str, State] = {}

    def wrote(self, instant: str, events: list[Event], completion: str) -> None:
        self.completions[instant] = completion
        self.writes[instant] = events
        self.now.logs += events
        self.states[instant] = self.now.copy()

    def loaded(self, instant: str, events: list[Event], completion: str) -> None:
        """Rows went into the first base files of their file groups."""
        self.completions[instant] = completion
        self.loads[instant] = events
        self._load(self.now, events)
        self.states[instant] = self.now.copy()

    @staticmethod
    def _load(state: State, events: list[Event]) -> None:
        for key in {e.key for e in events}:
            best = newest([e for e in events if e.key == key])
            assert best is not None
            state.base[key] = best

    def published(self, instant: str, links: Mapping[str, str]) -> None:
        """A plan appeared; each link shows a target."""
        for event in self.now.logs:
            event.names |= {link for link, target in links.items() if target in event.names}
        self.planned[instant] = self.now.copy()

    def withdrew(self, instant: str) -> None:
        del self.planned[instant]

    def compacted(self, merge: Merge, completion: str) -> None:
        self.completions[merge.instant] = completion
        before = self.planned.pop(merge.instant)
        self.merges[merge.instant] = merge
        self.unmerged[merge.instant] = before.copy()
        merge.decide(before, self.by_event_time)
        shown = before.snapshot()
        merge.apply(before)
        assert before.snapshot() == shown, "the compaction changes an answer"
        late = [e for e in before.logs if e.counts_from <= merge.threshold]
        assert not late, f"logs at or below the threshold {merge.threshold} remain: {late}"
        for instant, state in self.states.items():
            if instant > merge.instant:
                merge.apply(state)
        merge.apply(self.now)
        self.states[merge.instant] = self._just_before(merge) if self.past_instants else before

    def _just_before(self, merge: Merge) -> State:
        """What the table was at the last write before a compaction's instant, merged."""
        state = self.states[max(i for i in self.states if i < merge.instant)].copy()
        merge.apply(state)
        return state

    def _retold(self, end: str = "~") -> State:
        """All writes and merges that were completed by `end`, told once more."""
        done = sorted(i for i in self.writes if self.completions[i] <= end)
        state = State(self.now.by_0_x, {}, [event for instant in done for event in self.writes[instant]])
        for instant, events in self.loads.items():
            if self.completions[instant] <= end:
                self._load(state, events)
        for merge in self.merges.values():
            if self.completions[merge.instant] <= end:
                merge.apply(state)
        return state

    def rolled_back(self, instant: str) -> None:
        """The newest write or compaction never was."""
        for known in (self.writes, self.loads):
            known.pop(instant, None)
        self.merges.pop(instant, None)
        for state in self.planned.values():
            state.keep(lambda e: e.commit != instant)
        if self.past_instants:
            self.now = self._retold()
        elif instant in self.unmerged:
            self.now = self.unmerged.pop(instant)
        self.now.keep(lambda e: e.commit != instant)
        del self.states[instant]

    def restored(self, savepoint: str) -> None:
        for known in (self.states, self.planned, self.writes, self.loads, self.merges):
            for instant in [i for i in known if i > savepoint]:
                known.pop(instant)
        for state in self.planned.values():
            state.keep(lambda e: e.commit <= savepoint)
        self.now = self._retold() if self.past_instants else self.states[savepoint].copy()

    def as_of(self, instant: str) -> Shown:
        known = [i for i in self.states if i <= instant]
        return self.states[max(known)].snapshot() if known else {}

    def between(self, begin: str, end: str) -> Shown:
        """Of the state that was completed by `end`, the rows whose commits were completed in (begin, end].

        Where the timeline has no completion times, these are the instants themselves.
        """
        shown = self._retold(end).snapshot() if self.past_instants else self.as_of(end)
        return {key: row for key, row in shown.items() if begin < self.completions[row[3]] <= end}


def in_order(events: list[Event], time_of: Callable[[Event], int]) -> list[Event]:
    """Rows of one batch lie in log files in order of event time."""
    return sorted(events, key=time_of)
