"""What a table shows, from a plain list of events and the compactions among them.

No line of an engine decides here. An event is a row or a delete of one key by one commit; a compaction says which
commits' log files it merged in which file group. Event-time ordering: log records are merged first, then with the
base row. The greater event time wins, of equal ones the later; a delete without an event time ends what came before it,
and a delete block's right after it is passed over. A merge forgets deletes. Hudi 0.x compares no log record with a
delete block's delete (docs/explanation/merge.md): `by_0_x`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

Group = tuple[str, int]  # partition path, bucket
Values = Mapping[str, Any]
Shown = dict[tuple[str, str], Values]  # (partition path, key) → the row
FIRST = "000"  # before every instant, in a form that all releases take


class Op(StrEnum):
    UPSERT = "upsert"
    TOMBSTONE = "tombstone"  # a delete that has an event time, in a delete block
    DELETED_ROW = "deleted row"  # the same, as a row that says so
    DELETE = "delete"  # a delete that ends all that came before it; the base row, where it is the last word


@dataclass(frozen=True, eq=False)
class Event:
    """What one commit says about one key. `values` is the row as a reader spells it; empty for a delete."""

    commit: str
    op: Op
    group: Group
    key: str
    time: int
    values: Values = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Compaction:
    """A completed compaction: in each file group the commits whose log files it merged into the base file."""

    instant: str
    merged: Mapping[Group, frozenset[str]]


def winner(base: Event | None, logs: Iterable[Event]) -> Event | None:
    """The event of one key that counts: the log records' first, in log order, and what is left against the base row."""
    last: Event | None = None
    for event in logs:
        if last is not None and last.op is Op.DELETE and event.op is Op.TOMBSTONE:
            continue
        ends_all = event.op is Op.DELETE or last is None or last.op is Op.DELETE
        if ends_all or event.time >= last.time:  # type: ignore[union-attr]
            last = event
    if last is None or base is None:
        return last or base
    return base if last.op is not Op.DELETE and base.time > last.time else last


def winner_by_0_x(base: Event | None, logs: Iterable[Event]) -> Event | None:
    """The same as Hudi 0.x has it: what is left of the log records is compared with the base row."""
    last: Event | None = None
    for event in logs:
        compared = last is not None and event.op is not Op.DELETE
        if event.op in (Op.UPSERT, Op.DELETED_ROW):
            compared = compared and last.op in (Op.UPSERT, Op.DELETED_ROW)  # type: ignore[union-attr]
        if not compared or event.time >= last.time:  # type: ignore[union-attr]
            last = event
    if last is None or base is None:
        return last or base
    is_row = last.op in (Op.UPSERT, Op.DELETED_ROW)
    return base if is_row and base.time > last.time else last


@dataclass
class State:
    """A table at one moment: per key the event in its base file, and those in log files, in log order."""

    by_0_x: bool = False
    base: dict[tuple[Group, str], Event] = field(default_factory=dict)
    logs: list[Event] = field(default_factory=list)

    def write(self, events: Iterable[Event], into_base: frozenset[Group]) -> None:
        for event in events:
            if event.group in into_base and event.op is Op.UPSERT:
                self.base[event.group, event.key] = event
            else:
                self.logs.append(event)

    def winner(self, base: Event | None, logs: list[Event]) -> Event | None:
        return winner_by_0_x(base, logs) if self.by_0_x else winner(base, logs)

    def merge(self, compaction: Compaction) -> None:
        for group, commits in compaction.merged.items():
            merged = [e for e in self.logs if e.group == group and e.commit in commits]
            self.logs = [e for e in self.logs if not (e.group == group and e.commit in commits)]
            for key in {e.key for e in merged}:
                last = self.winner(self.base.pop((group, key), None), [e for e in merged if e.key == key])
                if last is not None and last.op is Op.UPSERT:
                    self.base[group, key] = last

    def read_optimized(self) -> Shown:
        return {(group[0], key): event.values for (group, key), event in self.base.items()}

    def snapshot(self) -> Shown:
        found = {}
        for group, key in self.base.keys() | {(e.group, e.key) for e in self.logs}:
            in_logs = [e for e in self.logs if (e.group, e.key) == (group, key)]
            last = self.winner(self.base.get((group, key)), in_logs)
            if last is not None and last.op is Op.UPSERT:
                found[group[0], key] = last.values
        return found


@dataclass
class Oracle:
    """The table's history. `completions`: an instant's completion time, where ranges go by it; else its own."""

    events: list[Event] = field(default_factory=list)
    into_base: dict[str, frozenset[Group]] = field(default_factory=dict)
    compactions: list[Compaction] = field(default_factory=list)
    completions: dict[str, str] = field(default_factory=dict)
    writes: list[str] = field(default_factory=list)
    by_0_x: bool = False

    # -- what happened ----------------------------------------------------------------------------

    def wrote(self, commit: str, events: Iterable[Event], *, inserts_into_base: bool) -> None:
        """A write; with `inserts_into_base` the writer puts the first rows of a file group into a base file."""
        mine = list(events)
        known = {e.group for e in self.events}
        self.writes.append(commit)
        self.into_base[commit] = frozenset({e.group for e in mine} - known) if inserts_into_base else frozenset()
        # A delete of a key whose file group does not exist writes nothing; a row that says so does.
        self.events += [e for e in mine if e.op in (Op.UPSERT, Op.DELETED_ROW) or e.group in known]

    def compacted(self, compaction: Compaction) -> None:
        self.compactions.append(compaction)

    def took_back(self, commit: str) -> None:
        """A write was rolled back: it never was."""
        self.writes.remove(commit)
        self.events = [e for e in self.events if e.commit != commit]

    # -- what is right ----------------------------------------------------------------------------

    def instants(self) -> list[str]:
        """Of all writes and completed compactions, in order."""
        return sorted([*self.writes, *(c.instant for c in self.compactions)])

    def state(self, as_of: str | None = None) -> State:
        state = State(self.by_0_x)
        compactions = {c.instant: c for c in self.compactions}
        for instant in self.instants():
            if as_of is not None and instant > as_of:
                break
            if instant in compactions:
                state.merge(compactions[instant])
            else:
                state.write([e for e in self.events if e.commit == instant], self.into_base[instant])
        return state

    def snapshot(self, as_of: str | None = None) -> Shown:
        return self.state(as_of).snapshot()

    def read_optimized(self) -> Shown:
        return self.state().read_optimized()

    def time(self, instant: str) -> str:
        """Where an instant lies in incremental ranges."""
        return self.completions.get(instant, instant)

    def times(self) -> list[str]:
        return sorted(self.time(instant) for instant in self.instants())

    def commits_in(self, begin: str, end: str | None) -> list[str]:
        """The writes in (begin, end]."""
        return [c for c in self.writes if begin < self.time(c) and (end is None or self.time(c) <= end)]

    def incremental(self, begin: str, end: str | None) -> Shown:
        """The rows that the table holds at `end` and that writes of the range brought."""
        known = [c for c in self.instants() if end is None or self.time(c) <= end]
        state = Oracle(
            [e for e in self.events if e.commit in known],
            self.into_base,
            [c for c in self.compactions if c.instant in known],
            writes=[c for c in self.writes if c in known],
            by_0_x=self.by_0_x,
        ).snapshot()
        inside = set(self.commits_in(begin, end))
        return {key: row for key, row in state.items() if row["_hoodie_commit_time"] in inside}

    def late_rows(self, begin: str, end: str | None) -> Shown:
        """What Apache Hudi's incremental query may show beside: rows that win among the range's own events only."""
        inside = set(self.commits_in(begin, end))
        mine = [e for e in self.events if e.commit in inside]
        alone = State(self.by_0_x)
        alone.write(mine, frozenset())
        return {key: row for key, row in alone.snapshot().items() if key not in self.incremental(begin, end)}
