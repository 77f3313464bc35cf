"""A table's past: which slices answer a query as of an instant, and whether they still can. Pure.

As of t, each file group shows its newest slice with a base instant ≤ t and, of its log blocks, those of
instants ≤ t (AbstractTableFileSystemView.getLatestMergedFileSlicesBeforeOrOn). That is right only while
no slice between that one and t was cleaned. Hudi answers without looking; here a *gap* is a range of
instants for which it cannot be proven that nothing is missing, and a query in a gap is refused.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from hudi_assets.engine.model import FileSlice
from hudi_assets.engine.model.files import GroupKey
from hudi_assets.engine.table.slices.as_of import Since, at_its_own_time, slices_across
from hudi_assets.engine.table.slices.file_view import FileView

SliceKey = tuple[GroupKey, str]  # a group and a slice's base instant


@dataclass(frozen=True, slots=True)
class Gap:
    """Instants t with `begin` ≤ t < `end` whose state is not proven complete. `begin` "": from ever."""

    begin: str
    end: str

    def __contains__(self, t: str) -> bool:
        return self.begin <= t < self.end


@dataclass(frozen=True)
class Evidence:
    """What the timeline and the files prove about the past."""

    # Per slice, the files that the active timeline's completed writes name.
    written: Mapping[SliceKey, frozenset[str]]
    # Per group, base instants of the slices that there were, by those writes and by the cleans.
    opened: Mapping[GroupKey, frozenset[str]]
    # Slice → the slice that it was made from, "" for the first of its group; absent where nothing says so.
    predecessors: Mapping[SliceKey, str]
    # Every write at or after this instant is on the active timeline ("": all there ever were).
    whole_from: str
    # Savepoint → the newest slice of each group that it protects: of all that there were.
    savepoints: Mapping[str, Mapping[GroupKey, str]]
    # Per group, slices of which a clean has deleted a file, or is about to.
    cleaned: Mapping[GroupKey, frozenset[str]]
    # Asks a slice's own files whether it is the first of its group.
    began_with: Callable[[FileSlice], bool]
    # The newest replacecommit that was archived ("": none): what it replaced has left no trace.
    archived_replace: Callable[[], str]
    # Per group, log files requested before the slice that they are in began, and completed after: as of the
    # instants between they belong to the answer, which a slice before that one gives.
    across: Mapping[GroupKey, tuple[Across, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Across:
    """A log file and the instants [requested, slice) at which it is read beside an older slice."""

    path: str
    requested: str
    slice_instant: str


def after(instant: str) -> str:
    """The smallest text above an instant: where a range begins that leaves the instant itself out."""
    return instant + "0"


def view_as_of(view: FileView, replaced: Mapping[GroupKey, str], t: str, since: Since | None = None) -> FileView:
    """The view as of instant t. `view` has every group, `replaced` says when which one was replaced.

    Its slices' log files may hold later blocks: read them with `CommittedInstants.until` = t. With `since` (slices
    are cut by completion times), only log files of writes that count at t are in it.
    """
    if since is not None:
        return FileView(slices_across(view, replaced, t, since), {})
    groups = {
        key: kept
        for key, slices in view.groups.items()
        if not (key in replaced and replaced[key] <= t) and (kept := tuple(s for s in slices if s.base_instant <= t))
    }
    return FileView(groups, view.pending)


def settled_at(view: FileView, replaced: Mapping[GroupKey, str], since: Since | None = None) -> str:
    """From this instant on the newest slice of every group that is left answers."""
    counts = since or at_its_own_time()
    newest = (counts.base(slices[-1].base_instant) for key, slices in view.groups.items() if key not in replaced)
    return max([*newest, *map(counts.base, replaced.values())], default="")


@dataclass(frozen=True)
class History:
    """All slices that are left, and what is known about those that are not."""

    view: FileView
    replaced: Mapping[GroupKey, str]
    evidence: Evidence

    # -- asking -----------------------------------------------------------------------------------

    def as_of(self, t: str, since: Since | None = None) -> tuple[FileSlice, ...]:
        """The slices to merge for instant t, in order of partition and file id. Ask `gap_at` first."""
        return view_as_of(FileView(self._usable, self.view.pending), self.replaced, t, since).latest

    def gap_at(self, t: str) -> Gap | None:
        """A gap that t lies in; None where the answer as of t is right."""
        if t < self.evidence.whole_from:
            forgotten = Gap("", self.evidence.archived_replace())
            if t in forgotten:
                return forgotten
        return next((gap for key in self._keys for gap in self._gaps_around(key, t) if t in gap), None)

    @cached_property
    def complete_from(self) -> str:
        """The earliest instant from which on every instant's state is there; "" where nothing is missing."""
        ends = [self.evidence.archived_replace() if self.evidence.whole_from else ""]
        ends += [gap.end for key in self._keys for gap in self._gaps(key)]
        return max(ends)

    @property
    def answering_savepoints(self) -> tuple[str, ...]:
        """Savepoints before `complete_from` whose state is still there."""
        older = sorted(s for s in self.evidence.savepoints if s < self.complete_from)
        return tuple(s for s in older if self.gap_at(s) is None)

    # -- gaps of one group ------------------------------------------------------------------------

    @cached_property
    def _usable(self) -> dict[GroupKey, tuple[FileSlice, ...]]:
        """Slices but those that were, or will be, cleaned: never what a query as of now reads."""
        usable = {}
        for key, slices in self.view.groups.items():
            gone = self.evidence.cleaned.get(key, frozenset())
            read_now = slices[-2:] if key in self.view.pending else slices[-1:]
            kept = () if key in self.replaced else read_now
            usable[key] = tuple(s for s in slices if s in kept or s.base_instant not in gone)
        return usable

    @cached_property
    def _paths(self) -> frozenset[str]:
        slices = (s for group in self.view.groups.values() for s in group)
        return frozenset(file.path for s in slices for file in (s.base_file, *s.log_files) if file)

    @cached_property
    def _link_targets(self) -> frozenset[str]:
        """Log files that a symbolic link shows in another slice: a clean of their own slice leaves them."""
        slices = (s for group in self.view.groups.values() for s in group)
        return frozenset(log.original for s in slices for log in s.log_files if log.original != log.path)

    @property
    def _keys(self) -> Iterable[GroupKey]:
        return sorted(self._usable.keys() | self.replaced.keys())

    def _gaps_around(self, key: GroupKey, t: str) -> Iterator[Gap]:
        """The one gap of a group that can hold t, if there is one: nothing else is looked into."""
        if t >= self.replaced.get(key, after(t)):
            return
        slices = self._usable.get(key, ())
        place = bisect_right(slices, t, key=lambda s: s.base_instant)
        if place < len(slices) or not slices:
            yield from self._gap_before(key, slices, place)
        yield from self._gaps_across(key)

    def _gaps(self, key: GroupKey) -> Iterator[Gap]:
        slices = self._usable.get(key, ())
        yield from self._gaps_across(key)
        for place in range(max(len(slices), 1)):
            yield from self._gap_before(key, slices, place)

    def _gaps_across(self, key: GroupKey) -> Iterator[Gap]:
        """Where an older slice answers, but for a log file that went to a newer one and is gone with it."""
        gone = self.evidence.cleaned.get(key, frozenset())
        for log in self.evidence.across.get(key, ()):
            if log.path not in self._paths or log.slice_instant in gone:
                yield Gap(log.requested, log.slice_instant)

    def _gap_before(self, key: GroupKey, slices: tuple[FileSlice, ...], place: int) -> Iterator[Gap]:
        """The gap that ends where the slice at `place` begins."""
        if not slices:
            # A group that was replaced, and then cleaned as a whole.
            yield Gap(self._unborn_until(key, self.replaced[key]), self.replaced[key])
        elif place == 0:
            if not self._is_first(key, slices[0]):
                yield Gap(self._unborn_until(key, slices[0].base_instant), slices[0].base_instant)
        else:
            older, newer = slices[place - 1], slices[place]
            begin = self._lost_from(key, older, newer, older_is_first=place == 1)
            if begin is not None:
                yield Gap(begin, newer.base_instant)

    def _unborn_until(self, key: GroupKey, end: str) -> str:
        """Where a gap before `end` begins: a savepoint without the group shows that it began later."""
        without = (v for v, newest in self.evidence.savepoints.items() if v < end and key not in newest)
        return max(map(after, without), default="")

    def _is_first(self, key: GroupKey, slice_: FileSlice) -> bool:
        made_from = self.evidence.predecessors.get((key, slice_.base_instant))
        if made_from is not None:
            return made_from == ""
        if slice_.base_file is None and any(log.path in self._link_targets for log in slice_.log_files):
            return False
        return self.evidence.began_with(slice_)

    def _lost_from(self, key: GroupKey, older: FileSlice, newer: FileSlice, *, older_is_first: bool) -> str | None:
        """From when on `older` may not be the whole answer any more, before `newer` takes over; None: never."""
        if not self._is_whole(key, older, is_first=older_is_first):
            return older.base_instant
        if self.evidence.predecessors.get((key, newer.base_instant)) == older.base_instant:
            return None
        if self.evidence.whole_from <= older.base_instant:
            opened = self.evidence.opened.get(key, frozenset())
            return min((i for i in opened if older.base_instant < i < newer.base_instant), default=None)
        proven = [v for v, newest in self.evidence.savepoints.items() if newest.get(key) == older.base_instant]
        return after(max([older.base_instant, *proven]))

    def _is_whole(self, key: GroupKey, slice_: FileSlice, *, is_first: bool) -> bool:
        """False where a file of the slice is gone: a clean was interrupted, or somebody deleted it."""
        if slice_.base_file is None and not (is_first and self._is_first(key, slice_)):
            return False
        return self.evidence.written.get((key, slice_.base_instant), frozenset()) <= self._paths
