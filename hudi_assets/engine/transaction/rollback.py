"""Executing rollbacks: of a write, of a compaction's attempt, of a compaction plan and all.

The order is Hudi's (BaseRollbackActionExecutor, BaseHoodieWriteClient.rollback in 0.15): `.rollback.requested` with
everything that will go → `.rollback.inflight` → the target back to inflight → its files → its own timeline
files → `.rollback`. Each step can be done again, so a crash anywhere is finished from the plan alone.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from hudi_assets.engine.errors import Conflict, CorruptTable
from hudi_assets.engine.event_time.table_times import SUMMARIES
from hudi_assets.engine.format.log_file.codec import encode_rollback_block
from hudi_assets.engine.model import Action, Instant, LogFile, State
from hudi_assets.engine.table.log_files.headers import log_headers
from hudi_assets.engine.table.state import TableState
from hudi_assets.engine.timeline.commit_metadata import GUARDED
from hudi_assets.engine.timeline.compaction_plan import decode_plan
from hudi_assets.engine.timeline.instants import moved_instant
from hudi_assets.engine.timeline.rollback_metadata import (
    RollbackPlan,
    RollbackRequest,
    decode_rollback_plan,
    encode_rollback_metadata,
    encode_rollback_plan,
    rollback_record,
)
from hudi_assets.engine.transaction.lease import has_leases
from hudi_assets.engine.transaction.open_table import OpenTable
from hudi_assets.engine.transaction.taken_back import Note, execution_in

_TOKEN = "1-0-1"  # Hudi's own for rollback blocks (HoodieLogFormat.UNKNOWN_WRITE_TOKEN)


@dataclass(frozen=True, slots=True)
class RollbackResult:
    """A completed rollback. `still_planned`: the compaction is back to requested, its links kept.

    `rollback` is the rollback's own instant; None where a write was taken back that never had one.
    """

    instant: str
    action: str
    rollback: str | None
    files_deleted: int
    rollback_blocks: int
    still_planned: bool = False


@dataclass(frozen=True)
class RollbackExecutor:
    """Publishes and executes rollbacks of one table. The caller holds the locks."""

    table: OpenTable

    def publish(self, state: TableState, plan: RollbackPlan) -> str:
        """Make the plan visible; the rollback's instant."""
        instant = self.table.publisher.new_instant(state.timeline)
        path = self.table.layout.instant_path(instant, Action.ROLLBACK, State.REQUESTED)
        self.table.publisher.announce(path, encode_rollback_plan(plan, self.table.storage.uri))
        return instant

    def read_plan(self, instant: str) -> RollbackPlan:
        path = self.table.layout.instant_path(instant, Action.ROLLBACK, State.REQUESTED)
        try:
            return decode_rollback_plan(self.table.storage.read(path), f"{self.table.path}: {path}")
        except FileNotFoundError:
            raise CorruptTable("A rollback has no plan.", where=f"{self.table.path}: {path}") from None

    def execute(self, instant: str, plan: RollbackPlan) -> RollbackResult:
        """Do what a published plan says, from wherever an earlier attempt stopped."""
        started = time.monotonic()
        target = plan.target
        self._create_once(self.table.layout.instant_path(instant, Action.ROLLBACK, State.INFLIGHT), b"")
        self._note(plan)
        self._revert_to_inflight(plan)
        # What was scanned is remembered by name and size, and a name may come again.
        self.table.storage.delete(SUMMARIES)
        self._forget(plan)
        blocks = self._take_out(instant, plan)
        if has_leases(self.table.storage):
            self.table.publisher.withdraw_late(target.timestamp, _timeline_action(target.action))
        self._record_blocks(instant, blocks)
        taken_ms = round((time.monotonic() - started) * 1000)
        record = rollback_record(instant, plan, blocks, taken_ms, self.table.storage.uri)
        self.table.publisher.complete_once(instant, Action.ROLLBACK, encode_rollback_metadata(record))
        self.table.publisher.forget_markers(target.timestamp)
        return RollbackResult(
            instant=target.timestamp,
            action=target.action,
            rollback=instant,
            files_deleted=len(plan.files),
            rollback_blocks=sum(len(files) for files in blocks.values()),
            still_planned=target.action == Action.COMPACTION,
        )

    def _create_once(self, path: str, data: bytes) -> None:
        if not self.table.storage.exists(path):
            self.table.storage.create(path, data)

    def _note(self, plan: RollbackPlan) -> None:
        """A commit of the target that arrives later counts no more."""
        if not has_leases(self.table.storage):
            return
        target, publisher = plan.target, self.table.publisher
        if target.action not in (Action.COMMIT, Action.COMPACTION):
            # Who has committed gives no file its name any more; such a file could hold the archive back (version 6).
            named = self.table.layout.log_name_tells_beginning and self._is_completed(target.timestamp)
            publisher.taken_back.add(target.timestamp, Note(True, data=frozenset(() if named else plan.files)))
            return
        inflight = self.table.layout.instant_path(target.timestamp, Action.COMPACTION, State.INFLIGHT)
        try:
            begun = frozenset({execution_in(self.table.storage.read(inflight))})
        except FileNotFoundError:
            begun = frozenset()
        completed = publisher.completed_path(publisher.read_timeline(), target.timestamp, Action.COMPACTION)
        names = frozenset({completed.rpartition("/")[2]} if completed is not None else ())
        publisher.taken_back.add(target.timestamp, Note(False, begun - {""}, names, frozenset(plan.files)))

    def _is_completed(self, instant: str) -> bool:
        timeline = self.table.publisher.read_timeline()
        return any(i.timestamp == instant and i.is_completed for i in timeline.instants)

    def _revert_to_inflight(self, plan: RollbackPlan) -> None:
        """Hide a completed instant from every reader; its inflight file stays until its files are gone."""
        action = _timeline_action(plan.target.action)
        completed = self.table.publisher.completed_path(
            self.table.publisher.read_timeline(), plan.target.timestamp, action
        )
        if completed is not None:
            self._create_once(self.table.layout.instant_path(plan.target.timestamp, action, State.INFLIGHT), b"")
            self.table.storage.delete(completed)

    def _forget(self, plan: RollbackPlan) -> None:
        """Take the target out of the metadata table while it is pending: later, what it lists would count."""
        table = self.table.publisher.metadata_table
        if table is not None:
            # The links of a compaction's plan go with the plan, not before it.
            keeps = plan.target.action == Action.COMMIT
            table.undo(plan.target.timestamp, [path for path in plan.files if not (keeps and _is_log(path))])

    def _record_blocks(self, instant: str, blocks: Mapping[str, Mapping[str, int]]) -> None:
        """Log files with rollback blocks are listed beyond the rollback's own time on the timeline."""
        table = self.table.publisher.metadata_table
        if table is not None and blocks:
            named = {p: {path.rsplit("/", 1)[-1]: size for path, size in f.items()} for p, f in blocks.items()}
            table.show(instant, named)

    def _take_out(self, instant: str, plan: RollbackPlan) -> Mapping[str, Mapping[str, int]]:
        """Remove files and blocks, then the target's timeline files; the rollback blocks written, by partition."""
        target, path = plan.target, self.table.layout.instant_path
        if target.action == Action.COMMIT:
            # A compaction whose base files are gone is pending again, and right; then its plan goes, links last.
            logs = [file for file in plan.files if _is_log(file)]
            self._delete(file for file in plan.files if not _is_log(file))
            self.withdraw_plan(target.timestamp, logs)
            return {}
        self._delete(plan.files)
        blocks = self._write_blocks(instant, plan)
        # A compaction goes back to requested: whoever executes it next finds plan and links as they were.
        states = (State.INFLIGHT,) if target.action == Action.COMPACTION else (State.INFLIGHT, State.REQUESTED)
        for state in states:
            self.table.storage.delete(path(target.timestamp, _timeline_action(target.action), state))
        return blocks

    def _delete(self, files: Iterable[str]) -> None:
        for file in files:
            self.table.storage.delete(file)

    # -- rollback blocks --------------------------------------------------------------------------

    def _write_blocks(self, instant: str, plan: RollbackPlan) -> dict[str, dict[str, int]]:
        written: dict[str, dict[str, int]] = {}
        for request in plan.requests:
            if request.log_blocks:
                path, size = self._write_block(instant, plan.target.timestamp, request)
                written.setdefault(request.partition, {})[path] = size
        return written

    def _write_block(self, instant: str, target: str, request: RollbackRequest) -> tuple[str, int]:
        """A log file with a command block, behind the slice's others; Hudi too starts a new file for it."""
        logs = sorted(self._slice_logs(request), key=lambda log: log.order)
        for log in logs:
            if self._takes_back(log, instant, target):
                return log.path, log.size
        version = max((log.version for log in logs), default=0) + 1
        name = self.table.layout.log_file_name(request.file_id, request.base_instant, version, _TOKEN)
        path = f"{request.partition}/{name}" if request.partition else name
        block = encode_rollback_block(instant, target)
        self.table.storage.create(path, block)
        return path, len(block)

    def _slice_logs(self, request: RollbackRequest) -> Iterator[LogFile]:
        for file in self.table.storage.list_files(request.partition):
            log = self.table.layout.parse_log_file(file, request.partition)
            if log and (log.file_id, log.base_instant) == (request.file_id, request.base_instant):
                yield log

    def _takes_back(self, log: LogFile, instant: str, target: str) -> bool:
        blocks = log_headers(self.table.storage, log.path, log.size)
        return any(
            b.command is not None and (b.instant_time, b.target_instant_time) == (instant, target) for b in blocks
        )

    # -- compaction plans -------------------------------------------------------------------------

    def withdraw_plan(self, instant: str, links: Iterable[str]) -> None:
        """Remove a compaction's plan, then the log files of its slices.

        Or, as the layout says, the other way round.
        Without their plan links are orphans: a guard, an empty pending compaction before them, keeps Hudi's archiver
        from moving the timeline's start past them. What a crash leaves, `recover` removes as it removes an
        unpublished plan.
        """
        if self.table.layout.withdraws_plan_first:
            guard = self._guard(instant)
            self._delete_plan(instant)
            self._delete_listed(links)
            self.table.publisher.withdraw_guard(guard)
        else:
            self._delete_listed(links)
            self._delete_plan(instant)
        self.table.publisher.forget_markers(instant)

    def _delete_plan(self, instant: str) -> None:
        for state in (State.INFLIGHT, State.REQUESTED):
            self.table.storage.delete(self.table.layout.instant_path(instant, Action.COMPACTION, state))

    def _delete_listed(self, links: Iterable[str]) -> None:
        """Delete files that the metadata table, where there is one, lists."""
        named = list(links)
        if (metadata_table := self.table.publisher.metadata_table) is not None:
            metadata_table.forget(named)
        self._delete(named)

    def _guard(self, instant: str) -> str:
        """Publish the guard of an instant just before it, or find the one that a crash left."""
        names = (file.name for file in self.table.storage.list_files(self.table.layout.timeline_folder))
        taken = {i.timestamp: i for i in map(self.table.layout.parse_instant, names) if i is not None}
        # An instant of whole seconds sorts before every one within that second.
        guard = moved_instant(instant, -999 if len(instant) == 14 else 0)
        while True:
            guard = moved_instant(guard, -1)
            if guard not in taken:
                self.table.publisher.publish_guard(guard, instant)
                return guard
            if self._guards(taken[guard], instant):
                return guard

    def _guards(self, found: Instant, instant: str) -> bool:
        if found.action is not Action.COMPACTION or found.state is not State.REQUESTED:
            return False
        path = self.table.layout.instant_path(found.timestamp, Action.COMPACTION, State.REQUESTED)
        plan = decode_plan(found.timestamp, self.table.storage.read(path), f"{self.table.path}: {path}")
        return plan.extra_metadata.get(GUARDED) == instant


def finish_rollbacks(table: OpenTable, state: TableState) -> tuple[str, ...]:
    """Finish the rollbacks of ours that a crash left; what was done, a sentence each.

    Raises `Conflict` for another engine's: its plan may name files that a write of ours would make anew.
    """
    executor = RollbackExecutor(table)
    done = []
    for instant in state.timeline.pending(Action.ROLLBACK):
        plan = executor.read_plan(instant.timestamp)
        if plan.ours and arrived_late(state, instant):
            done.append(withdraw_late(state, instant))
            continue
        if not plan.ours:
            raise Conflict(
                f"Rollback {instant.timestamp} of {plan.target.timestamp} is another engine's and unfinished.",
                where=state.storage.base,
                hint=f"Let that engine finish it; or, when it is stopped, roll {plan.target.timestamp} back here.",
            )
        executor.execute(instant.timestamp, plan)
        done.append(f"finished the rollback of {plan.target.timestamp}")
    return tuple(done)


def arrived_late(state: TableState, undoing: Instant) -> bool:
    """A rollback or restore that nobody has begun, with something later beside it, on a store.

    Whoever takes the lock finishes what he finds before he gives an instant. So what came after it was not to be found.
    """
    is_asked_for = state.storage.capabilities.late_requests and undoing.state is State.REQUESTED
    return is_asked_for and any(i.timestamp > undoing.timestamp for i in state.timeline.instants)


def withdraw_late(state: TableState, undoing: Instant) -> str:
    """Delete it: what was asked for was another table. A sentence."""
    state.storage.delete(state.layout.instant_path(undoing.timestamp, undoing.action, State.REQUESTED))
    return f"withdrew the {undoing.action} {undoing.timestamp}, which had arrived after its sender's lock had ended"


def _timeline_action(action: str) -> Action:
    """A completed compaction is a `commit`; its pending files are a compaction's."""
    return Action.COMPACTION if action == Action.COMMIT else Action(action)


def _is_log(path: str) -> bool:
    return path.rsplit("/", 1)[-1].startswith(".")
