"""Random lives of a table against the oracle: after each step all four queries, freshness and the files are compared.

`MACHINE_EXAMPLES` and `MACHINE_STEPS` say how many lives and how long, `MACHINE_SEED` (a number) which;
`MACHINE_SHRINK=1` makes a failing life shorter before it is shown.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, Phase, note, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from hudi_assets.engine import Conflict, CorruptTable, HudiTable, InvalidInput, NoPlan, Plan
from hudi_assets.engine.model import NothingToDo
from tests.crash import faulty
from tests.crash.faulty import Crash, DyingStorage
from tests.in_buckets import IN_BUCKETS
from tests.machine.oracle import Event
from tests.machine.table_under_test import LATENCY_MS, TableUnderTest, Variant, attempt
from tests.tables.local_session import LocalSession

EXAMPLES = int(os.environ.get("MACHINE_EXAMPLES", "3"))
STEPS = int(os.environ.get("MACHINE_STEPS", "40"))
SHRINK = os.environ.get("MACHINE_SHRINK") == "1"
SEED = int(os.environ.get("MACHINE_SEED", "1"))

KEYS = [f"k{i}" for i in range(6)]
LATENESS = [0, 500, 1_000, 2_500, 3_000, 3_500, 5_000, 9_000]
rows = st.lists(st.tuples(st.sampled_from(KEYS), st.sampled_from(LATENESS), st.integers(1, 4)), min_size=1, max_size=7)
gone = st.lists(
    st.tuples(st.sampled_from(KEYS), st.one_of(st.none(), st.sampled_from(LATENESS))),
    min_size=1,
    max_size=3,
    unique_by=lambda one: one[0],
)
# How long before its commit a delete that has no event time truly happened: the latency holds.
IN_TIME = st.integers(0, LATENCY_MS)
ACTIONS = ["writing", "loading", "planning", "executing", "rolling back", "restoring", "cleaning", "archiving"]
Result = TypeVar("Result")
HAPPENED: Counter[str] = Counter()


class TableMachine(RuleBasedStateMachine):
    """One life of one table. Subclasses say which kind of table it is."""

    variant = Variant()

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="machine-"))
        self.table = TableUnderTest(self.folder / "t", LocalSession(), self.variant)
        self.cleaned = False
        self.savepoints: list[str] = []
        self.reachable_from = ""

    def teardown(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    # -- writing ----------------------------------------------------------------------------------

    def _tick(self) -> None:
        self.table.clock += 500

    def _picked(self, picked: list[tuple[str, int, int]]) -> Any:
        return self.table.rows([(key, self.table.clock - late, seq) for key, late, seq in picked])

    def _keys(self, picked: list[tuple[str, int | None]]) -> Any:
        by_event_time = self.variant.ordering == "ts"
        ordered = all(order is not None for _, order in picked)
        chosen = []
        for key, late in picked:
            order = None if late is None or not ordered else self.table.clock - late if by_event_time else late % 5
            chosen.append((key, order))
        return self.table.keys(chosen)

    @rule(picked=rows, more=st.booleans())
    def upsert_some(self, picked: list[tuple[str, int, int]], more: bool) -> None:
        self.upsert(picked)
        if more:
            self.upsert(picked[::-1])

    def upsert(self, picked: list[tuple[str, int, int]]) -> None:
        self._tick()
        frame = self._picked(picked)
        self.table.tell_write(self._must(self.table.upsert(frame)), frame, deletes=False)

    @initialize(picked=st.one_of(st.none(), rows))
    def begin(self, picked: list[tuple[str, int, int]] | None) -> None:
        if picked is not None:
            self.bulk_insert(picked)

    @rule(picked=rows)
    def bulk_insert(self, picked: list[tuple[str, int, int]]) -> None:
        """Into file groups that hold no rows, and into no others."""
        self._tick()
        frame = self._picked(picked)
        groups = {self.table.group_of(key) for key, _, _ in picked}
        done = attempt(lambda: self.table.bulk_insert(frame), InvalidInput)
        if isinstance(done, InvalidInput):
            assert self.variant.exact or groups & self.table.groups_with_files(), done
            HAPPENED["load refused"] += 1
            return
        now = self.table.oracle.now
        assert not self.variant.exact
        assert not groups & {event.group for event in (*now.base.values(), *now.logs)}
        self.table.tell_load(self._must(done), frame)
        HAPPENED["loaded"] += 1

    @rule(picked=gone, earlier=IN_TIME)
    def delete(self, picked: list[tuple[str, int | None]], earlier: int) -> None:
        self._tick()
        frame = self._keys(picked)
        # Where the owner says that deletes count at their commit, they do.
        happened = self.table.clock if self.variant.deletes_at_commit else self.table.clock - earlier
        instant = self._must(self.table.delete(frame))
        self.table.tell_write(instant, frame, deletes=True, happened={key: happened for key, _ in picked})
        HAPPENED["deletes without event time"] += any(e.ts is None for e in self.table.oracle.writes[instant])

    @rule(picked=rows, keys=gone, late=st.sampled_from(LATENESS), earlier=IN_TIME)
    def delete_and_go_on(
        self,
        picked: list[tuple[str, int, int]],
        keys: list[tuple[str, int | None]],
        late: int,
        earlier: int,
    ) -> None:
        """A delete without ordering value, rows after it, and a threshold that may lie between the two."""
        self.delete([(key, None) for key, _ in keys], earlier)
        self.upsert(picked)
        if not self.pending:
            self.compact(late, None)

    @rule(cache=st.booleans())
    def lose_memory(self, cache: bool) -> None:
        """What the engine keeps beside the table is gone; `cache`: the summaries of log files as well."""
        kept = self.table.path / ".hoodie/.aux/hudi_assets"
        for name in ("memory.json", *(["event_times.json"] if cache else [])):
            HAPPENED["memory lost"] += (kept / name).exists()
            (kept / name).unlink(missing_ok=True)

    @staticmethod
    def _must(instant: str | None) -> str:
        assert instant is not None
        return instant

    # -- compacting -------------------------------------------------------------------------------

    @property
    def pending(self) -> list[str]:
        return sorted(self.table.oracle.planned)

    @precondition(lambda self: self.table.oracle.states)
    @rule(late=st.one_of(st.none(), st.sampled_from(LATENESS)))
    def plan(self, late: int | None) -> None:
        threshold = None if late is None else self.table.open().now_ms() - late
        plan = self.table.plan(threshold)
        if self.pending:
            assert isinstance(plan, NoPlan)
        elif isinstance(plan, Plan):
            self._takes_what_it_should(plan)
            self.table.tell_plan(plan.instant)
        else:
            limit = self.table.open().now_ms() - LATENCY_MS if threshold is None else threshold
            lowest = self.table.oracle.now.minimum()
            assert lowest is None or lowest > limit, f"nothing planned at {limit}, but {lowest} is in a log: {plan}"

    def _takes_what_it_should(self, plan: Plan) -> None:
        """With whole slices: all of each file group with something due, and nothing of the others.

        Beside a dead writer's commit a plan of versions 8 and 9 lies before it, and takes what it can.
        """
        if not self.variant.whole or self.table.open().stats().inflight_writes:
            return
        taken = {(op.partition, int(op.file_id[:8])): set(op.log_files) for op in plan.operations}
        waiting: dict[tuple[str, int], list[Event]] = {}
        for event in self.table.oracle.now.logs:
            waiting.setdefault(event.group, []).append(event)
        for group, events in waiting.items():
            due = any(event.counts_from <= plan.threshold for event in events)
            assert due == (group in taken), f"{group} has {events} at {plan.threshold}, and {taken} is taken"
            left = [event for event in events if due and not event.names & taken[group]]
            assert not left, f"left of a slice that is taken: {left}"
            above = [event for event in events if due and event.counts_from > plan.threshold]
            HAPPENED["taken above the threshold"] += bool(above)
        HAPPENED["groups left"] += bool(waiting.keys() - taken.keys())

    @precondition(lambda self: self.table.oracle.states)
    @rule(late=st.one_of(st.none(), st.sampled_from(LATENESS)), beside=st.one_of(st.none(), rows))
    def compact(self, late: int | None, beside: list[tuple[str, int, int]] | None) -> None:
        """Plan where nothing is pending, perhaps write beside the plan, execute."""
        self.plan(late)
        if beside is not None:
            self.upsert(beside)
        self.answers()
        if self.pending:
            self.execute()

    @precondition(lambda self: self.pending)
    @rule()
    def execute(self) -> None:
        instant = self.pending[0]
        self.table.execute(instant)
        HAPPENED["compactions"] += 1
        HAPPENED["partial compactions"] += self._is_partial(instant)
        self.table.tell_compaction(instant)

    def _is_partial(self, instant: str) -> bool:
        """True where log files of the plan's slices remain."""
        if not self.variant.past_instants:
            return any(op["symlinkOperations"] for op in self._operations(instant))
        groups = {(op["partitionPath"], int(op["fileId"][:8])) for op in self._operations(instant)}
        return any(e.commit > instant and e.group in groups for e in self.table.oracle.planned[instant].logs)

    def _take_back_a_begun_execution(self) -> None:
        """An inflight compaction goes back to requested and keeps its links."""
        instant = self.pending[0]
        begun = self.table.timeline / f"{instant}.compaction.inflight"
        begun.touch()
        self.table.open().rollback(instant)
        assert not begun.exists()

    def _unschedule(self) -> None:
        instant = self.pending[0]
        groups = {(op["partitionPath"], int(op["fileId"][:8])) for op in self._operations(instant)}
        # Where a log file is of its own commit, nothing is lost with the plan.
        logs = () if self.variant.past_instants else self.table.oracle.now.logs
        appended = any(e.commit > instant and e.group in groups for e in logs)
        refused = attempt(lambda: self.table.open().unschedule(instant), InvalidInput, Conflict)
        assert (refused is not None) == appended, refused
        if refused is None:
            self.table.oracle.withdrew(instant)
        else:
            HAPPENED["unschedule refused"] += 1

    @precondition(lambda self: self.pending)
    @rule(unschedule=st.booleans())
    def take_back_a_plan(self, unschedule: bool) -> None:
        if unschedule:
            self._unschedule()
        else:
            self._take_back_a_begun_execution()

    # -- taking back ------------------------------------------------------------------------------

    @property
    def newest(self) -> str:
        return max(self.table.oracle.states)

    def _may_be_rolled_back(self, instant: str) -> bool:
        written = self.table.completed(instant, "deltacommit")
        return bool(written) and instant not in self.savepoints and not any(c > instant for c in self.pending)

    @precondition(lambda self: self.table.oracle.states)
    @rule()
    def roll_back(self) -> None:
        instant, allowed = self.newest, self._may_be_rolled_back(self.newest)
        refused = attempt(lambda: self.table.open().rollback(instant), InvalidInput, Conflict)
        if isinstance(refused, Exception):
            assert not allowed, refused
            HAPPENED["rollback refused"] += 1
        else:
            self.table.oracle.rolled_back(instant)
            HAPPENED["rolled back"] += 1

    def _die_rolling_back(self, at: int, after: bool) -> None:
        instant = self.newest
        self._die(lambda storage: self.table.open(storage).rollback(instant), at, after)
        self.table.open().recover()
        if instant not in self.table.instants():
            self.table.oracle.rolled_back(instant)

    @precondition(lambda self: self.table.oracle.states)
    @rule(data=st.data())
    def savepoint(self, data: st.DataObject) -> None:
        self._save(data.draw(st.sampled_from(sorted(self.table.oracle.states)[-3:])))

    def _save(self, instant: str) -> None:
        if instant in self.savepoints:
            return
        made = attempt(lambda: self.table.open().savepoint(instant), InvalidInput)
        if isinstance(made, InvalidInput):
            assert self.cleaned, made
        else:
            self.savepoints.append(instant)

    @precondition(lambda self: self.table.oracle.states)
    @rule(picked=rows)
    def save_write_and_go_back(self, picked: list[tuple[str, int, int]]) -> None:
        """Restores come up in short lives too: by chance a savepoint is rarely followed by one."""
        self._save(self.newest)
        self.upsert(picked)
        if self.savepoints:
            self._restore()

    @precondition(lambda self: self.savepoints)
    @rule(delete=st.booleans())
    def use_savepoint(self, delete: bool) -> None:
        if not delete:
            self._restore()
            return
        self.table.open().delete_savepoint(self.savepoints.pop(0))

    def _restore(self) -> None:
        savepoint = max(self.savepoints)
        self.table.open().restore(savepoint)
        self._restored(savepoint)

    def _die_restoring(self, at: int, after: bool) -> None:
        savepoint = max(self.savepoints)
        timeline = self.table.timeline
        before = set(timeline.glob("*.restore"))
        self._die(lambda storage: self.table.open(storage).restore(savepoint), at, after)
        self.table.open().recover()
        if set(timeline.glob("*.restore")) - before:
            self._restored(savepoint)

    def _restored(self, savepoint: str) -> None:
        self.table.oracle.restored(savepoint)
        HAPPENED["restored"] += 1
        self.savepoints = [s for s in self.savepoints if s <= savepoint]
        self.reachable_from = min(self.reachable_from, savepoint)

    # -- cleaning ---------------------------------------------------------------------------------

    @rule(policy=st.sampled_from(["KEEP_LATEST_COMMITS", "KEEP_LATEST_FILE_VERSIONS"]), retained=st.integers(1, 4))
    def clean(self, policy: str, retained: int) -> None:
        self._reachable(policy, retained)
        done = self.table.open().clean(policy=policy, retained=retained)
        HAPPENED["nothing cleaned" if isinstance(done, NothingToDo) else "cleaned"] += 1

    @precondition(lambda self: not self.pending)
    @rule(picked=rows, retained=st.integers(1, 2))
    def grow_old(self, picked: list[tuple[str, int, int]], retained: int) -> None:
        """Compactions one after the other leave slices that a clean may take: by chance alone that is rare."""
        for _ in range(2):
            self.upsert(picked)
            self.compact(0, None)
        self.answers()
        self.clean("KEEP_LATEST_FILE_VERSIONS", retained)

    def _die_cleaning(self, retained: int, at: int, after: bool) -> None:
        self._reachable("KEEP_LATEST_COMMITS", retained)
        clean = "KEEP_LATEST_COMMITS", retained
        self._die(lambda storage: self.table.open(storage).clean(policy=clean[0], retained=clean[1]), at, after)

    def _reachable(self, policy: str, retained: int) -> None:
        """What the cleaning leaves for time travel: the states of the commits it retains."""
        self.cleaned = True
        commits = self.table.instants()
        if policy != "KEEP_LATEST_COMMITS":
            self.reachable_from = self.newest if self.table.oracle.states else ""
        elif len(commits) >= retained:
            self.reachable_from = max(self.reachable_from, commits[-retained])

    @rule()
    def archive(self) -> None:
        before = len(self.table.instants())
        self.table.open().archive()
        HAPPENED["archived instants"] += before - len(self.table.instants())

    # -- dying ------------------------------------------------------------------------------------

    def _die_writing(self, picked: list[tuple[str, int, int]], at: int, after: bool) -> None:
        self._tick()
        frame = self._picked(picked)
        before = self.table.instants()
        self._die(lambda storage: self.table.upsert(frame, storage), at, after)
        for instant in sorted(set(self.table.instants()) - set(before)):
            self.table.tell_write(instant, frame, deletes=False)

    def _die_loading(self, picked: list[tuple[str, int, int]], at: int, after: bool) -> None:
        self._tick()
        frame = self._picked(picked)
        before = self.table.instants()
        self._die(lambda storage: attempt(lambda: self.table.bulk_insert(frame, storage), InvalidInput), at, after)
        for instant in sorted(set(self.table.instants()) - set(before)):
            self.table.tell_load(instant, frame)

    def _die_planning(self, at: int, after: bool) -> None:
        self._die(lambda storage: self.table.plan(None, storage), at, after)
        for name in [p.name for p in self.table.timeline.glob("*")]:
            instant = name.split(".")[0]
            done = {*self.table.oracle.states, *self.table.oracle.planned}
            if name.endswith(".compaction.requested") and instant not in done and self._operations(instant):
                self.table.tell_plan(instant)

    def _operations(self, instant: str) -> list[Any]:
        operations: list[Any] = self.table.raw_plan(instant)["operations"]
        return operations

    def _die_executing(self, at: int, after: bool) -> None:
        instant = self.pending[0]
        self._die(lambda storage: self.table.execute(instant, storage), at, after)
        if self.table.completed(instant, "commit"):
            self.table.tell_compaction(instant)

    @rule(picked=rows, what=st.sampled_from(ACTIONS), at=st.integers(1, 20), after=st.booleans())
    def die(self, picked: list[tuple[str, int, int]], what: str, at: int, after: bool) -> None:
        """The process dies before or after a storage operation of some action."""
        states = self.table.oracle.states
        if what == "writing":
            self._die_writing(picked, at, after)
        elif what == "loading":
            self._die_loading(picked, at, after)
        elif what == "planning" and not self.pending:
            self._die_planning(at, after)
        elif what == "executing" and self.pending:
            self._die_executing(at, after)
        elif what == "rolling back" and states and self._may_be_rolled_back(self.newest):
            self._die_rolling_back(at, after)
        elif what == "restoring" and self.savepoints:
            self._die_restoring(at, after)
        elif what == "cleaning":
            self._die_cleaning(1 + at % 3, at, after)
        elif what == "archiving":
            self._die(lambda storage: self.table.open(storage).archive(), at, after)

    def _die(self, action: Callable[[Any], Any], at: int, after: bool) -> None:
        storage = DyingStorage(str(self.table.path), at, after=after)
        try:
            action(storage)
        except Crash:
            note(f"died of {storage.operations[-1]}")
            HAPPENED["died"] += 1

    @rule()
    def recover(self) -> None:
        self.table.open().recover()
        self._no_strays()

    # -- looking ----------------------------------------------------------------------------------

    @rule(data=st.data())
    def look_back(self, data: st.DataObject) -> None:
        """Time travel and incremental queries at instants of the past, and in between."""
        oracle, table = self.table.oracle, self.table.open()
        if not oracle.states or not hasattr(table, "time_travel"):
            return
        instants = sorted(oracle.states)
        begin = data.draw(st.sampled_from(["000", *instants]))
        end = data.draw(st.sampled_from(instants))
        between = str(int(end) + 1)
        for as_of in (end, between):
            found = self._or_cleaned(end, lambda as_of=as_of: table.time_travel(self.table.session, as_of))  # type: ignore[misc]
            if found is not None:
                assert self.table.shown(found) == oracle.as_of(as_of), f"as of {as_of}"
        if begin <= end:
            found = self._or_cleaned(end, lambda: table.incremental(self.table.session, begin, end))
            if found is not None:
                assert self.table.shown(found) == oracle.between(begin, end), f"{begin} to {end}"

    @precondition(lambda self: self.variant.carry_over == "symlink" and self.table.oracle.states)
    @rule(data=st.data(), picked=rows)
    def lose_a_target(self, data: st.DataObject, picked: list[tuple[str, int, int]]) -> None:
        """For a while what a symbolic link leads to is not there: who reads the link refuses, nothing is promised."""
        if not self.table.symbolic_links():
            self.upsert([(key, 9_000, seq) for key, _, seq in picked])
            self.upsert([(key, 0, seq) for key, _, seq in picked])
            self.compact(5_000, None)
            self.answers()
        links = self.table.symbolic_links()
        if not links:
            return
        link = data.draw(st.sampled_from(sorted(links)))
        of_link, of_target = self.table.slice_instant(link), self.table.slice_instant(links[link])
        newest = self.table.newest_base(link, besides=self.pending)
        # What was carried over twice has a link in each slice, and all of them lead to the first original.
        slices = {self.table.slice_instant(one) for one, target in links.items() if target == links[link]}
        read_now = newest in slices or not slices.isdisjoint(self.pending)
        if not read_now and of_target >= newest:
            return  # a dead planner's link: the target is a file like any other
        as_of = [i for i in self.table.oracle.states if i >= of_link]
        with self.table.without(links[link]):
            table = self.table.open()
            refused = attempt(lambda: table.snapshot(self.table.session), CorruptTable)
            if isinstance(refused, CorruptTable):
                assert read_now, refused
                assert links[link].name in str(refused)
                assert table.freshness().freshness is None
                lacking = link.parent.relative_to(self.table.path).as_posix().lstrip(".")
                told = {one.partition: one.freshness for one in table.partition_freshness()}
                assert told[lacking] is None
                assert all(told[other] is not None for other in told.keys() - {lacking})
                HAPPENED["lost target refused"] += 1
            else:
                assert not read_now, f"{link} leads to nothing"
                self.answers()
            if as_of:
                instant = data.draw(st.sampled_from(sorted(as_of)))
                found = attempt(lambda: table.time_travel(self.table.session, instant), CorruptTable, InvalidInput)
                if not isinstance(found, Exception):
                    assert self.table.shown(found) == self.table.oracle.as_of(instant), f"as of {instant}"

    def _or_cleaned(self, end: str, query: Callable[[], Result]) -> Result | None:
        """The answer, or None where the history is cleaned: only after a clean, and below what it had to retain.

        Once its commit is archived, a slice of log files alone that a symbolic link leads to might be a clean's rest.
        """
        try:
            return query()
        except InvalidInput:
            might_be = self.variant.carry_over == "symlink" and end < min(self.table.instants())
            if not might_be and (not self.cleaned or end >= self.reachable_from):
                raise
            HAPPENED["cleaned history refused"] += 1
            return None

    @invariant()
    def answers(self) -> None:
        table, oracle = self.table.open(), self.table.oracle
        assert self.table.shown(table.snapshot(self.table.session)) == oracle.now.snapshot(), "snapshot"
        assert self.table.shown(table.read_optimized(self.table.session)) == oracle.now.read_optimized(), "RO view"
        if oracle.states:
            self._freshness(table)

    def _freshness(self, table: HudiTable) -> None:
        fresh, lowest = table.freshness(), self.table.oracle.now.minimum()
        assert fresh.hidden == (), "a sound table has no rows in no view"
        watermark = table.now_ms() - LATENCY_MS
        expected = watermark if lowest is None else min(watermark, lowest - 1)
        if table.stats().inflight_writes:
            # What a dead writer left counts until it is taken back: the promise may be smaller, never greater.
            assert fresh.freshness is None or fresh.freshness <= expected, fresh
        else:
            assert fresh.freshness == expected, fresh
        self._freshness_of_partitions(table, watermark)
        missed = [
            e for e in self.table.oracle.now.logs if fresh.freshness is not None and e.happened <= fresh.freshness
        ]
        assert not missed, f"{fresh} is promised, and these are in no base file: {missed}"

    def _freshness_of_partitions(self, table: HudiTable, watermark: int) -> None:
        """Of each by itself: the watermark, or just below what waits in it alone. The table's is the least of them."""
        told = {one.partition: one for one in table.partition_freshness()}
        unfinished = bool(table.stats().inflight_writes)
        HAPPENED["freshness of partitions held"] += not unfinished
        for partition, one in told.items():
            waiting = [e.counts_from for e in self.table.oracle.now.logs if e.group[0] == partition]
            expected = min([watermark, *(at - 1 for at in waiting)])
            if unfinished:
                assert one.freshness is None or one.freshness <= expected, one
            else:
                assert one.freshness == expected, one
            missed = [
                e
                for e in self.table.oracle.now.logs
                if one.freshness is not None and e.group[0] == partition and e.happened <= one.freshness
            ]
            assert not missed, f"{one} is promised, and these are in no base file: {missed}"
        assert {e.group[0] for e in self.table.oracle.now.logs} <= told.keys()
        known = [one.freshness for one in told.values()]
        whole = table.freshness().freshness
        assert whole == (None if None in known else min((f for f in known if f is not None), default=whole))

    def _no_strays(self) -> None:
        """Every file belongs to a slice of the view, and no marker is left."""
        table = self.table.open()
        slices = [s for group in table.state().view.groups.values() for s in group]
        shown = {log.path for s in slices for log in s.log_files} | {s.base_file.path for s in slices if s.base_file}
        # A pending plan that was begun may have base files until it is executed.
        begun = {p for p in self.table.files() if any(p.endswith(f"_{i}.parquet") for i in self.pending)}
        assert set(self.table.files()) - begun == shown
        temp = self.table.path / ".hoodie/.temp"
        left = {p.name for p in temp.iterdir()} if temp.exists() else set()
        assert left <= set(self.pending)


def life(kind: Variant) -> type[TableMachine]:
    return type("Life", (TableMachine,), {"variant": kind})


VARIANTS = {
    "event time": Variant(),
    "other ordering": Variant(ordering="seq", block_format="avro"),
    "copies, unpartitioned": Variant(carry_over="copy", partitioned=False, block_format="avro"),
    "symbolic links": Variant(carry_over="symlink", services="ours"),
    "residue log": Variant(services="ours"),
    "residue log, seq orders": Variant(ordering="seq", services="ours"),
    "exact split": Variant(services="ours", exact=True),
    "by 0.x's rules": Variant(by_0_x=True),
    "deletes at their commit": Variant(deletes_at_commit=True),
    "whole slices": Variant(whole=True),
    "whole slices, residue log": Variant(whole=True, services="ours", deletes_at_commit=True),
    "whole slices, version 9": Variant(whole=True, version=9),
    "version 9": Variant(version=9),
    "version 9, seq orders": Variant(ordering="seq", block_format="avro", version=9),
    "version 8, unpartitioned": Variant(partitioned=False, version=8),
}


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", [name for name, kind in VARIANTS.items() if kind.is_in_buckets or not IN_BUCKETS])
def test_lives(session: LocalSession, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if IN_BUCKETS:
        from tests.stores.folder import tables_in_buckets

        tables_in_buckets(monkeypatch.setattr, faulty)
    options: dict[str, Any] = {"derandomize": False, "database": None}
    machine = seed(SEED)(life(VARIANTS[name]))
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=STEPS,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            print_blob=True,
            report_multiple_bugs=False,
            phases=[Phase.explicit, Phase.generate, *([Phase.shrink] if SHRINK else [])],
            **options,
        ),
    )
    note_what_happened(name)


def note_what_happened(name: str) -> None:
    """A life in which nothing happens proves nothing: with the default numbers there are compactions and rollbacks.

    Hypothesis leaves some steps out of each life, so that in a few short ones others may not come up at all.
    """
    print(name, dict(HAPPENED))
    variant, steps = VARIANTS[name], EXAMPLES * STEPS
    often = ["compactions", "rolled back", "load refused"]
    rare = ["died", "cleaned", "archived instants", "restored"]
    rare += ["deletes without event time", "memory lost"]
    rare += ["taken above the threshold", "groups left"] if variant.whole else ["partial compactions"]
    rare += ["loaded"] * (not variant.exact) + ["lost target refused"] * (variant.carry_over == "symlink")
    for what in [*(often if steps >= 400 else []), *(rare if steps >= 2_000 else [])]:
        assert HAPPENED[what], f"no {what} in {EXAMPLES} lives of {STEPS} steps"
    HAPPENED.clear()
