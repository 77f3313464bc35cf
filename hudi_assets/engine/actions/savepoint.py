"""Savepoints: the files of the table as of an instant, protected from every cleaner until it is deleted.

As org.apache.hudi.table.action.savepoint.SavepointActionExecutor does: `<t>.savepoint.inflight`, then `<t>.savepoint`
with the names of the files of each group's slice. Cleaners keep a slice of which a savepoint names a file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hudi_assets.engine.errors import InvalidInput
from hudi_assets.engine.model import Action, FileSlice, State
from hudi_assets.engine.storage import FileInfo
from hudi_assets.engine.table.files.cleaned import inventory, read_cleans, read_pending_cleans, read_savepoints
from hudi_assets.engine.table.files.missing import refuse_missing
from hudi_assets.engine.table.slices.as_of import at_its_own_time, slices_across
from hudi_assets.engine.table.state import TableState
from hudi_assets.engine.timeline.clean_metadata import Savepoint, encode_savepoint
from hudi_assets.engine.timeline.instants import WRITES
from hudi_assets.engine.transaction.clean import SAVEPOINT_MARK, finish_cleans
from hudi_assets.engine.transaction.open_table import OpenTable
from hudi_assets.engine.transaction.transaction import transaction


@dataclass(frozen=True)
class Savepoints:
    """The savepoints of one table."""

    table: OpenTable

    def all(self) -> tuple[str, ...]:
        """Instants of the savepoints, oldest first."""
        return tuple(i.timestamp for i in self.table.read().timeline.completed(Action.SAVEPOINT))

    def read(self) -> tuple[Savepoint, ...]:
        return read_savepoints(self.table.read())

    def create(self, instant: str | None, *, comment: str, user: str) -> str:
        """Protect the table as of a completed write (the last one by default); its instant.

        A savepoint that is there already stays as it is. `InvalidInput` where the instant is no completed write of
        the active timeline, or where files of it were cleaned.
        """
        with transaction(self.table, "makes a savepoint", needs_stated_writers=True) as tx:
            # A pending clean may be about to delete what the savepoint would name.
            finish_cleans(self.table, tx.read())
            state = tx.read()
            chosen = self._completed(state, instant)
            if any(i.timestamp == chosen for i in state.timeline.completed(Action.SAVEPOINT)):
                return chosen
            self._refuse_cleaned(state, chosen)
            refuse_missing(state)
            files = tuple(sorted(set(savepoint_files(state, chosen))))
            savepoint = Savepoint(chosen, files, user, comment, self.table.now_ms())
            tx.check()
            self._publish(savepoint)
            return chosen

    def delete(self, instant: str) -> None:
        """Give a savepoint up: the next clean may take its files."""
        with transaction(self.table, "deletes a savepoint", needs_stated_writers=True, recovers=False) as tx:
            state = tx.read()
            known = {i.timestamp: i for i in state.timeline.completed(Action.SAVEPOINT)}
            if instant not in known:
                raise InvalidInput(
                    "There is no savepoint at this instant.",
                    where=f"{self.table.path} {instant}",
                    hint=f"There are: {', '.join(known) or 'none'}.",
                )
            tx.check()
            # The inflight file first: alone it would be taken for a savepoint that is being made.
            self.table.storage.delete(self.table.layout.instant_path(instant, Action.SAVEPOINT, State.INFLIGHT))
            self.table.storage.delete(f"{self.table.layout.timeline_folder}/{known[instant].file_name}")

    def _completed(self, state: TableState, instant: str | None) -> str:
        completed = [i.timestamp for i in state.timeline.completed(*WRITES)]
        if not completed:
            raise InvalidInput("Nothing was committed yet: there is nothing to protect.", where=self.table.path)
        if instant is None:
            return completed[-1]
        if instant not in completed:
            raise InvalidInput(
                "A savepoint is made of a completed write or compaction on the active timeline; this is none.",
                where=f"{self.table.path} {instant}",
                hint=f"The active timeline has completed ones from {completed[0]} to {completed[-1]}.",
            )
        return instant

    def _refuse_cleaned(self, state: TableState, instant: str) -> None:
        pending = [clean.instant for clean in read_pending_cleans(state)]
        if pending:
            raise InvalidInput(
                f"Clean {pending[0]} of another engine is pending and may delete what the savepoint would name.",
                where=self.table.path,
                hint="Let that engine finish it, then make the savepoint.",
            )
        reason = cleaned_away(state, instant)
        if reason is not None:
            raise InvalidInput(
                f"Files of this instant were cleaned: {reason}.",
                where=f"{self.table.path} {instant}",
                hint="Make a savepoint of a later instant.",
            )

    def _publish(self, savepoint: Savepoint) -> None:
        inflight = self.table.layout.instant_path(savepoint.instant, Action.SAVEPOINT, State.INFLIGHT)
        self.table.publisher.check_can_complete()
        if not self.table.storage.exists(inflight):
            self.table.storage.create(inflight, SAVEPOINT_MARK)
        self.table.publisher.complete(savepoint.instant, Action.SAVEPOINT, encode_savepoint(savepoint))


def savepoint_files(state: TableState, instant: str) -> Iterator[str]:
    """The files that the table is made of as of an instant, table-relative.

    Per group the newest slice with base instant ≤ t, whole; the one below it as well while a compaction at t or
    before is pending. With them the targets of symbolic links, which Hudi's cleaner would delete otherwise.

    Where slices are cut by completion times, a log file that was requested by t may have been completed after a base
    instant beyond t: it is in that later slice, which has to stay for its sake.
    """
    if state.layout.cuts_by_completion:
        across = slices_across(state.view_with_replaced, state.replaced, instant, at_its_own_time())
        yield from (path for slices in across.values() for slice_ in slices for path in _paths(slice_))
    links = inventory(state).links
    for key, slices in state.view_with_replaced.groups.items():
        replaced = state.replaced.get(key)
        if replaced is not None and replaced <= instant:
            continue
        for slice_ in _visible(tuple(s for s in slices if s.base_instant <= instant)):
            for path in _paths(slice_):
                yield from _with_targets(path, links)


def _with_targets(path: str, links: Mapping[str, str]) -> Iterator[str]:
    seen: set[str] = set()
    while path not in seen:
        yield path
        seen.add(path)
        path = links.get(path, path)


def _visible(slices: tuple[FileSlice, ...]) -> tuple[FileSlice, ...]:
    """The newest slice, and what is below it as far as a base file: what a pending compaction merges."""
    for place in reversed(range(len(slices))):
        if slices[place].base_file is not None:
            return slices[place:]
    return slices


def _paths(slice_: FileSlice) -> Iterator[str]:
    if slice_.base_file is not None:
        yield slice_.base_file.path
    yield from (log.path for log in slice_.log_files)


def cleaned_away(state: TableState, instant: str) -> str | None:
    """Why the table as of an instant is no longer whole, by the cleans on the active timeline; None where it is."""
    view = state.view_with_replaced
    for clean in read_cleans(state):
        if instant < clean.earliest_retained:
            return f"clean {clean.instant} retained instants from {clean.earliest_retained} on"
        for path in clean.deleted:
            slice_ = _slice_of(state, path)
            if slice_ is None or slice_[1] > instant:
                continue
            key, gone = slice_
            replaced = state.replaced.get(key)
            left = [s.base_instant for s in view.groups.get(key, ()) if gone < s.base_instant <= instant]
            if not left and (replaced is None or replaced > instant):
                return f"clean {clean.instant} deleted {path}"
    return None


def _slice_of(state: TableState, path: str) -> tuple[tuple[str, str], str] | None:
    """(group, base instant) that a file's name states."""
    file, partition = FileInfo(path, 0), path.rpartition("/")[0]
    base = state.layout.parse_base_file(file, partition)
    if base is not None:
        return (partition, base.file_id), base.instant
    log = state.layout.parse_log_file(file, partition)
    return ((partition, log.file_id), state.slice_instant(log)) if log is not None else None
