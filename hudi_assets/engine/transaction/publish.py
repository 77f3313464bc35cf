"""The timeline's writer: the one owner of what is published, and in which order.

A compaction's order is: guard → carried-over logs → `.requested` → (guard withdrawn) → `.inflight` →
markers → staged base files → base files → commit. Every file is created whole and exclusively; a crash between any two
leaves a table that readers answer rightly and that `recover` repairs.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from hudi_assets.engine.errors import Conflict, CorruptTable, EnvironmentProblem, LockLost
from hudi_assets.engine.model import NO_THRESHOLD, Action, CarryOver, Plan, State
from hudi_assets.engine.storage import Storage, each
from hudi_assets.engine.table.layout.interface import Layout
from hudi_assets.engine.table.metadata.writer import MetadataTable, files_by_partition
from hudi_assets.engine.timeline.attempts import forget_staged
from hudi_assets.engine.timeline.clock import next_instant
from hudi_assets.engine.timeline.commit_metadata import GUARDED, CommitMetadata, WriteStat
from hudi_assets.engine.timeline.compaction_plan import STRATEGY, encode_plan
from hudi_assets.engine.timeline.instants import Timeline, format_instant, instant_ms, latest_states
from hudi_assets.engine.timeline.markers import TEMP
from hudi_assets.engine.transaction.taken_back import Note, TakenBack, execution_in

log = logging.getLogger(__name__)
CLOCKS_MS = 500
"""By how much the clocks of a store and of those who write to it may differ."""
BEGUN = b'{"writer": "hudi-assets"}'
"""What our inflight file of a compaction says. Hudi's is empty, and nobody of Hudi reads it."""


def begun_under(owner: str) -> bytes:
    """The same on a store, with the owner of the executors' lease: who lost it sees that another has begun."""
    return BEGUN if not owner else BEGUN[:-1] + f', "execution": "{owner}"}}'.encode()


@dataclass(frozen=True)
class Publisher:
    """Writes instants of one table. `now_ms` is the true clock: instants are never ahead of it."""

    storage: Storage
    layout: Layout
    now_ms: Callable[[], int]
    timezone: str = "UTC"

    def new_instant(self, timeline: Timeline, *, completes: bool = False) -> str:
        """The current time as an instant later than every one on the timeline (`next_instant`)."""
        return next_instant(timeline.last, self.now_ms, self.timezone, self.storage.base, completes=completes)

    def wait_for(self, instant: str) -> None:
        """Wait (a millisecond or so) until the clock has reached an instant: none is ahead of it."""
        while format_instant(self.now_ms(), self.timezone) < instant:
            time.sleep(0.001)

    def announce(self, requested: str, content: bytes) -> None:
        """Make a requested file. One that arrived after the lock was lost goes again, unless somebody has begun it."""
        try:
            self.storage.create(requested, content)
        except LockLost:
            begun = self.storage.exists(f"{requested.removesuffix(State.REQUESTED)}{State.INFLIGHT}")
            if not begun and self._says(requested, content):
                self.storage.take_back(requested)
            raise

    # -- completing -------------------------------------------------------------------------------

    def check_can_complete(self) -> None:
        """Raise `Conflict`, before work is begun, where its completion would be given no instant now.

        So it is while a clock that was put back goes through an hour again, in which others have completed something.
        """
        if self.layout.names_completion_times:
            self.new_instant(self.read_timeline(), completes=True)

    def complete(self, instant: str, action: Action, content: bytes, begun: bytes | None = None) -> None:
        """Make an instant completed. Raises `Conflict` where it is already: another process was first.

        `begun`: what the inflight file says where it tells whose execution it is.

        Where completed instants are named by their completion times too, no exclusive create tells: then the
        caller holds a lock under which nobody else completes this instant.
        """
        completion = None
        if self.layout.names_completion_times:
            timeline = self.read_timeline()
            there = self.completed_path(timeline, instant, action)
            if there is not None and not self._forget_late(instant, there):
                raise Conflict(f"The {action} is completed already.", where=f"{self.storage.base} {instant}")
            completion = self.new_instant(timeline, completes=True)
        path = self.layout.instant_path(instant, action, State.COMPLETED, completion)
        if action in (Action.DELTA_COMMIT, Action.COMPACTION):
            self._wait_for_later_second(instant)
        self.storage.renew_fences()
        try:
            self.storage.create(path, content)
        except LockLost:
            if self._is_taken_back(instant, action, path, content, begun) and self._says(path, content):
                self.storage.take_back(path)
            raise
        if completion is not None:
            self._alone(instant, action, path)

    def _wait_for_later_second(self, instant: str) -> None:
        """Let the commit's file be of a later second than its instant.

        Hudi 1.x takes the file's time for the completion of a commit of version 6. A store has whole seconds, so one of
        the same second would look completed before it began: then its log files are in no slice of its own.
        """
        if self.layout.names_completion_times or self.storage.capabilities.exact_times:
            return
        later = (instant_ms(instant, self.timezone) // 1000 + 1) * 1000 + CLOCKS_MS
        left = later - self.now_ms()
        if 0 < left <= 1000 + CLOCKS_MS:
            time.sleep(left / 1000)

    def _forget_late(self, instant: str, completed: str) -> bool:
        """Delete a commit of what was taken back; true where it was one."""
        is_late = self.taken_back.tells_of(instant, completed, self.storage.read(completed))
        return is_late and self.storage.delete(completed)

    def withdraw_late(self, instant: str, action: Action) -> None:
        """Undo that an instant was completed while it was taken back: its files are gone.

        So it is where its writer was stopped right before the request that commits, and went on.
        """
        for path in self._completed_paths(instant, action):
            self.storage.delete(path)

    def _is_taken_back(self, instant: str, action: Action, path: str, content: bytes, begun: bytes | None) -> bool:
        """The request may have arrived after another process took the lock: has it taken the instant back, or over?

        Ours leaves a note before it deletes anything. Another engine deletes the inflight file, or puts its own there.
        """
        if self.taken_back.tells_of(instant, path, content):
            return True
        try:
            said = self.storage.read(self.layout.instant_path(instant, action, State.INFLIGHT))
        except FileNotFoundError:
            return True
        if begun is not None and not said.startswith(BEGUN[:-1]):
            return True
        return any(one != path for one in self._completed_paths(instant, action))

    @property
    def taken_back(self) -> TakenBack:
        return TakenBack(self.storage, self.layout, self.now_ms)

    def _says(self, path: str, content: bytes) -> bool:
        try:
            return self.storage.read(path) == content
        except FileNotFoundError:
            return False

    def _alone(self, instant: str, action: Action, path: str) -> None:
        """Give way where, whatever lock there was, another process has completed the instant at the same time."""
        if other := [one for one in self._completed_paths(instant, action) if one != path]:
            self.storage.delete(path)
            raise Conflict(f"The {action} was completed by another process too: {other[0]}.", where=self.storage.base)

    def _completed_paths(self, instant: str, action: Action) -> list[str]:
        names = (file.name for file in self.storage.list_files(self.layout.timeline_folder))
        listed = (i for i in map(self.layout.parse_instant, names) if i is not None and i.is_completed)
        kinds = {action, Action.COMMIT} if action is Action.COMPACTION else {action}
        return [
            f"{self.layout.timeline_folder}/{i.file_name}"
            for i in listed
            if i.timestamp == instant and i.action in kinds
        ]

    def complete_once(self, instant: str, action: Action, content: bytes) -> None:
        """As `complete`, for what is done again after a crash: nothing where it is completed already."""
        if self.completed_path(self.read_timeline(), instant, action) is None:
            self.complete(instant, action, content)

    def read_timeline(self) -> Timeline:
        """The timeline as it is listed now."""
        listing = self.storage.list_files(self.layout.timeline_folder)
        return Timeline(latest_states(i for i in map(self.layout.parse_instant, (f.name for f in listing)) if i))

    def completed_path(self, timeline: Timeline, instant: str, action: Action) -> str | None:
        """The file of a completed instant; None where it is not completed. A compaction completes as a commit."""
        kinds = {action, Action.COMMIT} if action is Action.COMPACTION else {action}
        found = (i for i in timeline.instants if i.timestamp == instant and i.is_completed and i.action in kinds)
        return next((f"{self.layout.timeline_folder}/{i.file_name}" for i in found), None)

    # -- the metadata table -----------------------------------------------------------------------

    @property
    def metadata_table(self) -> MetadataTable | None:
        """Hudi's metadata table, where the table has one now."""
        return MetadataTable.of(self.storage, self.layout, self.now_ms, self.timezone)

    def _check_metadata_table(self) -> None:
        """Before anything is written: what would keep the instant out of the metadata table."""
        if (table := self.metadata_table) is not None:
            table.check_free()

    def _record(self, instant: str, action: Action, stats: Iterable[WriteStat]) -> None:
        """Put an instant's files into the metadata table: they count there once the instant is completed."""
        table = self.metadata_table
        # Where another process has completed it, `complete` refuses; what that one has recorded is right.
        if table is not None and self.completed_path(self.read_timeline(), instant, action) is None:
            table.record(instant, files_by_partition(stats))

    # -- delta commits ----------------------------------------------------------------------------

    def begin_write(self, instant: str, inflight: CommitMetadata) -> None:
        self._check_metadata_table()
        path, content = self.layout.instant_path, self.layout.encode_commit(inflight)
        # Java leaves this one empty and never reads it; ours says whose it is.
        self.storage.create(path(instant, Action.DELTA_COMMIT, State.REQUESTED), content)
        self.storage.create(path(instant, Action.DELTA_COMMIT, State.INFLIGHT), content)

    def commit_write(self, instant: str, metadata: CommitMetadata) -> None:
        self._record(instant, Action.DELTA_COMMIT, metadata.stats)
        self.complete(instant, Action.DELTA_COMMIT, self.layout.encode_commit(metadata))
        self.forget_markers(instant)

    def withdraw_write(self, instant: str) -> None:
        """Remove an unfinished write's instant; its files are gone by then."""
        for state in (State.INFLIGHT, State.REQUESTED):
            self.storage.delete(self.layout.instant_path(instant, Action.DELTA_COMMIT, state))
        self.forget_markers(instant)

    # -- markers ----------------------------------------------------------------------------------

    def forget_markers(self, instant: str) -> None:
        """An instant's markers, and what attempts of its tasks wrote that did not count."""
        forget_staged(self.storage, instant)
        self.storage.delete_tree(f"{TEMP}/{instant}")

    # -- compactions ------------------------------------------------------------------------------

    def publish_plan(self, plan: Plan, guard: str | None, mode: str, still_alone: Callable[[], str | None]) -> None:
        """Make the plan's carried-over logs, then the plan visible.

        `guard` is an instant before the plan's: an empty pending compaction there keeps Hudi's archiver
        from moving the timeline's start past links whose plan is not published yet (they would count as
        a committed slice then). `still_alone` looks again after publishing; its reason withdraws the plan.
        """
        carried = [c for op in plan.operations for c in op.carried_over]
        if carried and guard is not None:
            self.publish_guard(guard, plan.instant)
        try:
            self.carry_over(carried, mode)
            self._show_links(carried, guard)
            self._announce_plan(plan)
        except BaseException:
            self._undo_plan(plan, guard)
            raise
        reason = still_alone()
        if reason is not None:
            self._undo_plan(plan, guard)
            raise Conflict(f"The plan was withdrawn: {reason}.", where=f"{self.storage.base} {plan.instant}")
        if guard is not None:
            self.withdraw_guard(guard)

    def _announce_plan(self, plan: Plan) -> None:
        requested, content = self._requested(plan.instant), encode_plan(plan)
        if not self.layout.late_requests_harm(self.storage.capabilities):
            self.announce(requested, content)
            return
        # An empty plan first: whoever has the lock next deletes it, and the plan that would arrive then is refused.
        # One that has arrived stays. Somebody may have seen it, and have written rows into the slice that it opens.
        empty = encode_plan(Plan(plan.instant, NO_THRESHOLD, (), STRATEGY, {GUARDED: plan.instant}))
        self.announce(requested, empty)
        try:
            _, version = self.storage.read_with_version(requested)
        except FileNotFoundError as error:
            what = "Another process has taken the lock, and the plan back."
            raise Conflict(what, where=f"{self.storage.base} {plan.instant}") from error
        self.storage.replace_if(requested, content, version)

    def _requested(self, instant: str) -> str:
        return self.layout.instant_path(instant, Action.COMPACTION, State.REQUESTED)

    def publish_guard(self, guard: str, guarded: str) -> None:
        empty = Plan(guard, NO_THRESHOLD, (), STRATEGY, {GUARDED: guarded})
        self.storage.create(self._requested(guard), encode_plan(empty))

    def withdraw_guard(self, guard: str) -> None:
        self.storage.delete(self._requested(guard))

    def _undo_plan(self, plan: Plan, guard: str | None) -> None:
        if guard is not None and self.layout.late_requests_harm(self.storage.capabilities):
            self.publish_guard(guard, plan.instant)  # whoever has the lock next finishes this first (`recover`)
        # The plan goes first: links without a plan are invisible, a plan without its links loses rows.
        self.storage.delete(self._requested(plan.instant))
        links = [carried.link for op in plan.operations for carried in op.carried_over]
        if (metadata_table := self.metadata_table) is not None:
            metadata_table.forget(links)
        each(self.storage, self.storage.delete, links)
        if guard is not None:
            self.withdraw_guard(guard)

    def carry_over(self, carried: Sequence[CarryOver], mode: str) -> None:
        """Show each log file under its link: by hard link, relative symbolic link or copy of what is there now.

        `auto` takes hard links, and copies where the file system has none.
        """
        each(self.storage, lambda one: self._carry_over(one, mode), carried)
        for partition in {one.link.rpartition("/")[0] for one in carried}:
            self.storage.sync(partition)

    def _carry_over(self, one: CarryOver, mode: str) -> None:
        source = one.made_from
        if not self.storage.exists(source):
            raise CorruptTable("A log file to carry over is missing.", where=f"{self.storage.base}: {source}")
        if mode == "symlink":
            self.storage.symlink(source, one.link)
        elif mode == "copy":
            self.storage.copy(source, one.link)
        else:
            self._hard_link(one, fall_back=mode == "auto")

    def _show_links(self, carried: Sequence[CarryOver], guard: str | None) -> None:
        """List the links in the metadata table before the plan is there: whoever executes it has to see them."""
        table = self.metadata_table
        if table is None or not carried or guard is None:
            return
        listed: dict[str, dict[str, int]] = {}
        links = [one.link for one in carried]
        for link, size in zip(links, each(self.storage, self.storage.size, links), strict=True):
            partition, _, name = link.rpartition("/")
            listed.setdefault(partition, {})[name] = size
        table.show(guard, listed)

    def _hard_link(self, one: CarryOver, *, fall_back: bool) -> None:
        try:
            self.storage.hard_link(one.made_from, one.link)
        except FileExistsError:
            raise
        except OSError as error:
            if not fall_back:
                raise EnvironmentProblem(
                    f"The file system makes no hard link: {error.strerror}.",
                    where=f"{self.storage.base}: {one.link}",
                    hint="Set hudi_assets.carry.over to auto, symlink or copy.",
                ) from error
            self.storage.copy(one.made_from, one.link)

    def begin_compaction(self, instant: str, begun: bytes = BEGUN) -> None:
        """`begun`: what the inflight file says, by which its execution knows it again."""
        self._check_metadata_table()
        path = self.layout.instant_path(instant, Action.COMPACTION, State.INFLIGHT)
        if begun != BEGUN:
            try:
                self._take_over(instant, path, begun)
            except LockLost:
                if self._says(path, begun):  # without its plan, it may be by now
                    self.storage.take_back(path)
                raise
        elif not self.storage.exists(path):
            self.storage.create(path, begun)

    def _take_over(self, instant: str, path: str, begun: bytes) -> None:
        """Begin where an earlier execution may still be under way: one that commits from now on takes that back."""
        try:
            said, version = self.storage.read_with_version(path)
        except FileNotFoundError:
            said = begun
            self.storage.create(path, begun)
        else:
            if said != begun:
                self.storage.replace_if(path, begun, version)
        self._refuse_completed(instant)
        if former := execution_in(said) if said != begun else "":
            self.taken_back.add(instant, Note(executions=frozenset({former})))
            # What arrived between the two is of an execution that counts no more.
            self.withdraw_late(instant, Action.COMPACTION)

    def _refuse_completed(self, instant: str) -> None:
        if self._completed_paths(instant, Action.COMPACTION):
            hint = "There is nothing left to do."
            raise Conflict("The compaction was completed meanwhile.", where=f"{self.storage.base} {instant}", hint=hint)

    def commit_compaction(self, instant: str, metadata: CommitMetadata, begun: bytes | None = None) -> None:
        self._record(instant, Action.COMPACTION, metadata.stats)
        self.complete(instant, Action.COMPACTION, self.layout.encode_commit(metadata), begun)
        self.forget_markers(instant)


def system_now_ms() -> int:
    return time.time_ns() // 1_000_000
