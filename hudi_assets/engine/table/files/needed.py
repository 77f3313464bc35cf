"""What a cleaner looks at, and the files that no clean may take. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from hudi_assets.engine.model import FileSlice
from hudi_assets.engine.model.files import GroupKey
from hudi_assets.engine.timeline.instants import Timeline

SliceKey = tuple[GroupKey, str]  # a group and a slice's base instant


@dataclass(frozen=True, slots=True)
class Inventory:
    """What of a table a cleaner looks at. Paths are table-relative.

    `groups` has every file group, also replaced ones and the slice that a pending compaction opens;
    `strays` are base files of a slice besides the one that its commit names; `replaced` gives a group's
    replacecommit; `compacting` the base instant of the slice that a pending (log) compaction reads;
    `hidden` files whose rows are nowhere else, and in no view;
    `links` the target of each symbolic link, of whatever slice, visible or not. `completions`: when the instant that
    opens a slice, or replaces a group, was completed; None where it is not. What is not in it was at its own time.
    """

    timeline: Timeline
    groups: Mapping[GroupKey, tuple[FileSlice, ...]]
    strays: Mapping[SliceKey, tuple[str, ...]] = field(default_factory=dict)
    replaced: Mapping[GroupKey, str] = field(default_factory=dict)
    compacting: Mapping[GroupKey, str] = field(default_factory=dict)
    savepointed: frozenset[str] = frozenset()
    hidden: frozenset[str] = frozenset()
    links: Mapping[str, str] = field(default_factory=dict)
    completions: Mapping[str, str | None] = field(default_factory=dict)

    def replaced_before(self, opened: str, instant: str) -> bool:
        """True where what came before the instant `opened` was out of every new query's sight before another one."""
        completion = self.completions.get(opened, opened)
        return completion is not None and completion < instant


def protected_files(inventory: Inventory) -> frozenset[str]:
    """Files that no clean may take: the newest slice and base file of each group, savepoints, what a
    pending compaction reads, what its links lead to (its plan names that), and the last copy of rows in no view."""
    kept: set[str] = set()
    wanted = inventory.savepointed | inventory.hidden
    for key, slices in inventory.groups.items():
        reads = inventory.compacting.get(key)
        compacting = [s for s in slices if reads is not None and s.base_instant >= reads]
        kept.update(inventory.links.get(path, path) for s in compacting for path in slice_files(s))
        saved = [s for s in slices if wanted.intersection(slice_files(s))]
        newest = [] if key in inventory.replaced else [*slices[-1:], *[s for s in slices if s.base_file][-1:]]
        kept.update(path for s in (*compacting, *saved, *newest) for path in slice_files(s))
    return frozenset(kept)


def deletable(inventory: Inventory, slices: Iterable[SliceKey]) -> dict[SliceKey, tuple[str, ...]]:
    """Of the slices given up those that nothing else needs, with their files. A slice goes whole or stays whole."""
    protected = protected_files(inventory)
    free: dict[SliceKey, tuple[str, ...]] = {}
    for key, base_instant in slices:
        found = next((s for s in inventory.groups.get(key, ()) if s.base_instant == base_instant), None)
        if found is not None and not protected.intersection(slice_files(found)):
            free[key, base_instant] = (*slice_files(found), *inventory.strays.get((key, base_instant), ()))
    return free


def links_into(inventory: Inventory, doomed: frozenset[str]) -> tuple[str, ...]:
    """The symbolic links that stay and lead to a file that goes: they need the file in their own place first."""
    links = inventory.links.items()
    return tuple(sorted(link for link, target in links if target in doomed and link not in doomed))


def slice_files(slice_: FileSlice) -> tuple[str, ...]:
    """The files of a slice, base file first."""
    base = (slice_.base_file.path,) if slice_.base_file else ()
    return (*base, *(log.path for log in slice_.log_files))
