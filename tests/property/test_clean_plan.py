"""What a clean may delete, against a slow reading of the same rules: every answer from the retained point on stays."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_assets.engine.actions.cleaning.plan import Retention, earliest_to_retain, plan_clean, retention
from hudi_assets.engine.errors import InvalidInput
from hudi_assets.engine.model import Action, BaseFile, FileSlice, Instant, LogFile, NothingToDo, State
from hudi_assets.engine.model.cleans import CleaningPolicy, CleanPlan
from hudi_assets.engine.model.files import GroupKey
from hudi_assets.engine.table.files.needed import Inventory, protected_files
from hudi_assets.engine.timeline.instants import Timeline, format_instant, instant_ms

HOUR = 3_600_000
START = 1_700_000_000_000


@dataclass
class Slice:
    """One file slice of the model: plain names."""

    base_instant: str
    base_file: str | None
    logs: list[str] = field(default_factory=list)

    @property
    def files(self) -> set[str]:
        return {*self.logs, *([self.base_file] if self.base_file else [])}


@dataclass
class History:
    """A table's life as plain lists."""

    hours: list[int] = field(default_factory=list)
    instants: list[Instant] = field(default_factory=list)
    groups: dict[GroupKey, list[Slice]] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    replaced: dict[GroupKey, str] = field(default_factory=dict)
    compacting: dict[GroupKey, str] = field(default_factory=dict)
    plan_at: str | None = None
    savepoints: dict[str, set[str]] = field(default_factory=dict)

    @property
    def now_ms(self) -> int:
        return START + len(self.hours) * HOUR

    def tick(self, action: Action, state: State) -> str:
        self.hours.append(0)
        timestamp = format_instant(self.now_ms, "UTC")
        name = f"{timestamp}.{action}" + ("" if state is State.COMPLETED else f".{state}")
        self.instants.append(Instant(timestamp, action, state, name))
        return timestamp

    def completed(self) -> list[str]:
        return [i.timestamp for i in self.instants if i.is_completed and i.action is not Action.SAVEPOINT]

    # -- what happens -----------------------------------------------------------------------------

    def delta(self, keys: list[GroupKey], *, finished: bool) -> None:
        t = self.tick(Action.DELTA_COMMIT, State.COMPLETED if finished else State.INFLIGHT)
        for key in keys:
            if key in self.replaced or not finished:
                continue
            slices = self.groups.setdefault(key, [])
            if not slices:
                slices.append(Slice(t, None))
            slices[-1].logs.append(f"{key[1]}_{slices[-1].base_instant}.log.{len(slices[-1].logs) + 1}")

    def compact(self, keys: list[GroupKey], carried: int, *, symlinks: bool, finished: bool) -> None:
        if self.plan_at is not None:
            return
        keys = [k for k in keys if self.groups.get(k) and self.groups[k][-1].logs and k not in self.replaced]
        if not keys:
            return
        t = self.tick(
            Action.COMMIT if finished else Action.COMPACTION, State.COMPLETED if finished else State.REQUESTED
        )
        for key in keys:
            last = self.groups[key][-1]
            new = Slice(t, f"{key[1]}_{t}.parquet" if finished else None)
            for n, log in enumerate(last.logs[len(last.logs) - carried :] if carried else [], start=1):
                new.logs.append(f"{key[1]}_{t}.log.{n}")
                if symlinks:
                    self.links[new.logs[-1]] = self.links.get(log, log)
            if not finished:
                self.compacting[key] = last.base_instant
                self.plan_at = t
            self.groups[key].append(new)

    def replace(self, key: GroupKey) -> None:
        if self.groups.get(key) and key not in self.replaced and key not in self.compacting:
            self.replaced[key] = self.tick(Action.REPLACE_COMMIT, State.COMPLETED)

    def savepoint(self) -> None:
        if self.completed() and self.completed()[-1] not in self.savepoints:
            t = self.completed()[-1]
            self.savepoints[t] = self.read_at(t)
            self.instants.append(Instant(t, Action.SAVEPOINT, State.COMPLETED, f"{t}.savepoint"))

    # -- what a query reads -----------------------------------------------------------------------

    def slices_at(self, key: GroupKey, t: str) -> list[Slice]:
        """The slices whose files a query as of t merges."""
        if key in self.replaced and self.replaced[key] <= t:
            return []
        old = [s for s in self.groups[key] if s.base_instant <= t]
        if old and old[-1].base_instant == self.plan_at:
            return old[-2:]
        return old[-1:]

    def read_at(self, t: str) -> set[str]:
        """The files that a query as of t opens; the links among them lead on."""
        return {f for key in self.groups for s in self.slices_at(key, t) for f in s.files}

    def inventory(self) -> Inventory:
        def log(key: GroupKey, name: str, base: str) -> LogFile:
            return LogFile(name, key[0], key[1], base, int(name.rsplit(".", 1)[1]), "0-0-0", 1, name)

        groups = {
            key: tuple(
                FileSlice(
                    key[0],
                    key[1],
                    s.base_instant,
                    BaseFile(s.base_file, key[0], key[1], s.base_instant, "0-0-0", 1) if s.base_file else None,
                    tuple(log(key, name, s.base_instant) for name in s.logs),
                )
                for s in slices
            )
            for key, slices in self.groups.items()
        }
        return Inventory(
            timeline=Timeline(tuple(sorted(self.instants, key=lambda i: (i.timestamp, i.action)))),
            groups=groups,
            replaced=self.replaced,
            compacting=self.compacting,
            savepointed=frozenset(f for files in self.savepoints.values() for f in files),
            links=self.links,
        )


@st.composite
def histories(draw: st.DrawFn) -> History:
    keys = [("p", f"g{n}") for n in range(draw(st.integers(1, 3)))]
    some = st.lists(st.sampled_from(keys), min_size=1, max_size=3, unique=True)
    history = History()
    for _ in range(draw(st.integers(1, 16))):
        match draw(st.sampled_from("dddddcccsrpi")):
            case "d":
                history.delta(draw(some), finished=True)
            case "c":
                history.compact(draw(some), draw(st.integers(0, 2)), symlinks=draw(st.booleans()), finished=True)
            case "s":
                history.savepoint()
            case "r" if draw(st.booleans()):
                history.replace(draw(st.sampled_from(keys)))
            case "p" if draw(st.booleans()):
                history.compact(draw(some), draw(st.integers(0, 2)), symlinks=draw(st.booleans()), finished=False)
            case "i" if draw(st.booleans()):
                history.delta(draw(some), finished=False)
    return history


retentions = st.builds(Retention, st.sampled_from(CleaningPolicy), st.integers(1, 8))


def deleted_by(history: History, keep: Retention) -> set[str]:
    """The files that go; no link that stays may be left dangling."""
    plan = plan_clean(history.inventory(), keep, now_ms=history.now_ms, timezone="UTC")
    if isinstance(plan, NothingToDo):
        return set()
    gone = set(plan.paths)
    assert set(plan.links) == {link for link, target in history.links.items() if target in gone and link not in gone}
    return gone


def oldest_retained(history: History, keep: Retention) -> str | None:
    """The rule by looking at one commit after the other, newest first."""
    completed = history.completed()
    unfinished = [i.timestamp for i in history.instants if not i.is_completed]
    if keep.policy is CleaningPolicy.KEEP_LATEST_COMMITS:
        kept = completed[len(completed) - keep.retained :] if len(completed) > keep.retained else []
    else:
        since = format_instant(history.now_ms - keep.retained * HOUR, "UTC")
        kept = [t for t in completed if t >= since]
    if not kept:
        return None
    earliest = kept[0]
    if unfinished and earliest > min(unfinished):
        before = [t for t in completed if t < min(unfinished)]
        return before[-1] if before else None
    return earliest


@given(histories(), retentions)
@settings(max_examples=400, deadline=None)
def test_no_answer_from_the_retained_point_on_changes(history: History, keep: Retention) -> None:
    gone = deleted_by(history, keep)
    last = format_instant(history.now_ms + HOUR, "UTC")
    points = {last, *history.savepoints}
    if keep.policy is not CleaningPolicy.KEEP_LATEST_FILE_VERSIONS:
        earliest = oldest_retained(history, keep)
        if earliest is None:
            assert not gone
            return
        points |= {i.timestamp for i in history.instants if i.timestamp >= earliest}
    for t in points:
        assert not gone & history.read_at(t), t
    for key, reads in history.compacting.items():
        assert not gone & {f for s in history.groups[key] if s.base_instant >= reads for f in s.files}


@given(histories(), retentions)
@settings(max_examples=400, deadline=None)
def test_whatever_nothing_needs_goes(history: History, keep: Retention) -> None:
    """The same rules the other way round: a slice stays only for a reason that can be named."""
    by_commits = keep.policy is not CleaningPolicy.KEEP_LATEST_FILE_VERSIONS
    earliest = oldest_retained(history, keep) if by_commits else None
    saved = {f for files in history.savepoints.values() for f in files}
    for key, reads in history.compacting.items():
        compacting = {f for s in history.groups[key] if s.base_instant >= reads for f in s.files}
        saved |= {target for link, target in history.links.items() if link in compacting}
    expected: list[set[str]] = []
    for key, slices in history.groups.items():
        reads = history.compacting.get(key)  # type: ignore[assignment]
        others = [s for s in slices if reads is None or s.base_instant < reads]
        for place, slice_ in enumerate(others):
            if key in history.replaced:
                old = not by_commits or (earliest is not None and history.replaced[key] < earliest)
            elif by_commits:
                old = earliest is not None and any(s.base_instant < earliest for s in slices[place + 1 :])
            else:
                newer = len(others) - place - 1 + (reads is not None)
                old = newer >= keep.retained
            if old and not slice_.files & saved:
                expected.append(slice_.files)
    gone = set().union(*expected)
    assert deleted_by(history, keep) == (gone if history.completed() else set())


@given(histories(), retentions)
@settings(max_examples=100, deadline=None)
def test_cleaning_again_finds_nothing(history: History, keep: Retention) -> None:
    gone = deleted_by(history, keep)
    for key, slices in list(history.groups.items()):
        for slice_ in slices:
            slice_.logs = [log for log in slice_.logs if log not in gone]
            slice_.base_file = None if slice_.base_file in gone else slice_.base_file
        # A listing without files has no slice; the one that a pending compaction opens is there anyway.
        history.groups[key] = [s for s in slices if s.files or s.base_instant == history.plan_at]
    for link in [link for link in history.links if link in gone]:
        del history.links[link]
    assert not deleted_by(history, keep)


@given(histories())
@settings(max_examples=100, deadline=None)
def test_the_newest_slice_is_never_given_up(history: History) -> None:
    inventory = history.inventory()
    kept = protected_files(inventory)
    for key, slices in history.groups.items():
        if key not in history.replaced:
            assert slices[-1].files <= kept


@pytest.mark.parametrize("symlinks", [False, True])
def test_what_a_pending_compaction_reads_stays(symlinks: bool) -> None:
    """Log files alone: no base file is in the slice that would keep it. A link of it leads to an older one's."""
    history = History()
    key = ("p", "g")
    history.delta([key], finished=True)
    if symlinks:
        history.delta([key], finished=True)
        history.compact([key], 1, symlinks=True, finished=True)
        history.groups[key][-1].base_file = None
    history.compact([key], 0, symlinks=False, finished=False)
    needed = history.groups[key][-2].files | set(history.links.values())
    keep = Retention(CleaningPolicy.KEEP_LATEST_FILE_VERSIONS, 1)
    assert not deleted_by(history, keep) & needed


def test_commits_are_counted_from_the_newest() -> None:
    history = History()
    for _ in range(5):
        history.delta([("p", "g")], finished=True)
    keep = Retention(CleaningPolicy.KEEP_LATEST_COMMITS, 2)
    earliest = earliest_to_retain(history.inventory().timeline, keep, 0, "UTC")
    assert earliest is not None
    assert earliest.timestamp == history.completed()[-2]


def test_an_inflight_write_holds_the_retained_point_back() -> None:
    history = History()
    key = ("p", "g")
    for number in range(8):
        history.delta([key], finished=number != 2)
        history.compact([key], 0, symlinks=False, finished=True)
    keep = Retention(CleaningPolicy.KEEP_LATEST_COMMITS, 1)
    earliest = earliest_to_retain(history.inventory().timeline, keep, 0, "UTC")
    unfinished = next(i.timestamp for i in history.instants if not i.is_completed)
    assert earliest is not None
    assert earliest.timestamp < unfinished


def test_a_link_to_what_goes_is_named() -> None:
    history = History()
    key = ("p", "g")
    history.delta([key], finished=True)
    history.delta([key], finished=True)
    history.compact([key], 1, symlinks=True, finished=True)
    keep = Retention(CleaningPolicy.KEEP_LATEST_FILE_VERSIONS, 1)
    plan = plan_clean(history.inventory(), keep, now_ms=0, timezone="UTC")
    assert isinstance(plan, CleanPlan)
    assert list(plan.links) == list(history.links)
    assert set(plan.paths) == set(history.groups[key][0].logs)


@pytest.mark.parametrize(
    ("policy", "retained", "properties"),
    [
        (None, 0, {}),
        ("KEEP_LATEST_FILE_VERSIONS", -1, {}),
        ("KEEP_EVERYTHING", None, {}),
        (None, None, {"hoodie.cleaner.policy": "KEEP_SOME"}),
        (None, None, {"hoodie.cleaner.commits.retained": "ten"}),
        (None, None, {"hoodie.cleaner.commits.retained": "0"}),
    ],
)
def test_a_retention_that_keeps_nothing_is_refused(
    policy: str | None, retained: int | None, properties: dict[str, str]
) -> None:
    with pytest.raises(InvalidInput):
        retention(properties, policy, retained, "table")


def test_the_tables_settings_are_taken() -> None:
    stated = {"hoodie.cleaner.policy": "KEEP_LATEST_BY_HOURS", "hoodie.cleaner.hours.retained": "48"}
    assert retention(stated, None, None, "t") == Retention(CleaningPolicy.KEEP_LATEST_BY_HOURS, 48)
    assert retention({}, None, None, "t") == Retention(CleaningPolicy.KEEP_LATEST_COMMITS, 10)
    chosen = retention(stated, "keep_latest_file_versions", 5, "t")
    assert chosen == Retention(CleaningPolicy.KEEP_LATEST_FILE_VERSIONS, 5)


# ------------------------------------------------------------------------------ age by completion, grace


@st.composite
def late_completions(draw: st.DrawFn) -> tuple[History, dict[str, str | None]]:
    """A history, and when what opened or replaced slices was completed: at its time, or hours later, or not yet."""
    history = draw(histories())
    opened = {s.base_instant for slices in history.groups.values() for s in slices} | set(history.replaced.values())
    later: dict[str, str | None] = {}
    for instant in sorted(opened):
        hours = draw(st.sampled_from([None, 0, 0, 1, 3, 9]))
        ms = instant_ms(instant, "UTC")
        later[instant] = None if hours is None else format_instant(ms + hours * HOUR, "UTC")
    return history, later


@given(late_completions(), retentions, st.integers(0, 5))
@settings(max_examples=300, deadline=None)
def test_a_slice_stays_until_what_replaced_it_is_old(
    made: tuple[History, dict[str, str | None]], keep: Retention, grace_hours: int
) -> None:
    """With whatever completion times, fewer slices go than by instants; those that go were replaced before the
    earliest commit to retain, and before the grace."""
    history, later = made
    grace = grace_hours * HOUR
    inventory = replace(history.inventory(), completions=later)
    plan = plan_clean(inventory, keep, now_ms=history.now_ms, timezone="UTC", grace_ms=grace)
    by_instant = plan_clean(history.inventory(), keep, now_ms=history.now_ms, timezone="UTC")
    gone = set() if isinstance(plan, NothingToDo) else set(plan.paths)
    assert gone <= (set() if isinstance(by_instant, NothingToDo) else set(by_instant.paths))
    earliest = None if keep.policy is CleaningPolicy.KEEP_LATEST_FILE_VERSIONS else oldest_retained(history, keep)
    since = format_instant(history.now_ms - grace, "UTC")
    for key, slices in history.groups.items():
        replacing = [*(s.base_instant for s in slices[1:]), history.replaced.get(key)]
        for slice_, by in zip(slices, replacing, strict=True):
            if not gone & slice_.files:
                continue
            done = later[history.replaced[key] if key in history.replaced and earliest else by or ""] if by else None
            if earliest is not None:
                assert done is not None
                assert done < earliest
            if grace and by is not None:
                assert (later[by] or "9") < since
