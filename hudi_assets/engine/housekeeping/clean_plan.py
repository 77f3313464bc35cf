"""What a clean may delete. Pure.

The policies and their rules are those of org.apache.hudi.table.action.clean.CleanPlanner and
org.apache.hudi.common.util.CleanerUtils (0.15). On top of them, symbolic links that lead to a file that goes are
found (Hudi's cleaner does not know links), and the newest slice and base file of a group are never given up, whatever
the settings say.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise
from typing import Final

from hudi_assets.engine.errors import InvalidInput
from hudi_assets.engine.event_time.units import duration
from hudi_assets.engine.model import Action, FileSlice, Instant, NothingToDo
from hudi_assets.engine.slices.file_view import GroupKey
from hudi_assets.engine.timeline.instants import WRITES, Timeline, instant_ago

POLICY: Final = "hoodie.cleaner.policy"
_HOUR_MS: Final = 3_600_000
_UNFINISHED: Final = (*WRITES, Action.COMPACTION, Action.LOG_COMPACTION, Action.CLUSTERING)

SliceKey = tuple[GroupKey, str]  # a group and a slice's base instant


class CleaningPolicy(StrEnum):
    """HoodieCleaningPolicy."""

    KEEP_LATEST_COMMITS = "KEEP_LATEST_COMMITS"
    KEEP_LATEST_FILE_VERSIONS = "KEEP_LATEST_FILE_VERSIONS"
    KEEP_LATEST_BY_HOURS = "KEEP_LATEST_BY_HOURS"


RETAINED: Final = {
    CleaningPolicy.KEEP_LATEST_COMMITS: ("hoodie.cleaner.commits.retained", 10),
    CleaningPolicy.KEEP_LATEST_FILE_VERSIONS: ("hoodie.cleaner.fileversions.retained", 3),
    CleaningPolicy.KEEP_LATEST_BY_HOURS: ("hoodie.cleaner.hours.retained", 24),
}


@dataclass(frozen=True, slots=True)
class Retention:
    """A cleaning policy and how much it retains: commits, file versions or hours."""

    policy: CleaningPolicy
    retained: int


@dataclass(frozen=True, slots=True)
class Inventory:
    """What of a table a cleaner looks at. Paths are table-relative.

    `groups` has every file group, also replaced ones and the slice that a pending compaction opens;
    `strays` are base files of a slice besides the one that its commit names; `replaced` gives a group's
    replacecommit; `compacting` the base instant of the slice that a pending (log) compaction reads;
    `links` the target of each symbolic link, of whatever slice, visible or not. `completions`: when the instant that
    opens a slice, or replaces a group, was completed; None where it is not. What is not in it was at its own time.
    """

    timeline: Timeline
    groups: Mapping[GroupKey, tuple[FileSlice, ...]]
    strays: Mapping[SliceKey, tuple[str, ...]] = field(default_factory=dict)
    replaced: Mapping[GroupKey, str] = field(default_factory=dict)
    compacting: Mapping[GroupKey, str] = field(default_factory=dict)
    savepointed: frozenset[str] = frozenset()
    links: Mapping[str, str] = field(default_factory=dict)
    completions: Mapping[str, str | None] = field(default_factory=dict)

    def replaced_before(self, opened: str, instant: str) -> bool:
        """True where what came before the instant `opened` was out of every new query's sight before another one."""
        completion = self.completions.get(opened, opened)
        return completion is not None and completion < instant


@dataclass(frozen=True, slots=True)
class CleanPlan:
    """The files to delete, by partition. `earliest_retained` is None with KEEP_LATEST_FILE_VERSIONS.

    `links`: symbolic links that stay and lead to one of the files.
    """

    policy: CleaningPolicy
    earliest_retained: Instant | None
    last_completed: str
    files: Mapping[str, tuple[str, ...]]
    links: tuple[str, ...] = ()

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(path for partition in sorted(self.files) for path in self.files[partition])


def retention(properties: Mapping[str, str], policy: str | None, retained: int | None, where: str) -> Retention:
    """The policy given, else the table's, else Hudi's default; `InvalidInput` where it would keep nothing."""
    name = policy or properties.get(POLICY) or CleaningPolicy.KEEP_LATEST_COMMITS
    if name.upper() not in CleaningPolicy.__members__:
        raise InvalidInput(
            f"There is no cleaning policy {name!r}.",
            where=where,
            hint=f"It may be: {', '.join(CleaningPolicy)}.",
        )
    chosen = CleaningPolicy(name.upper())
    key, default = RETAINED[chosen]
    if retained is None:
        try:
            retained = int(properties.get(key) or default)
        except ValueError:
            raise InvalidInput(f"{key} is {properties[key]!r}, which is no number.", where=where) from None
    if retained < 1:
        raise InvalidInput(f"A clean has to retain at least 1, not {retained} ({key}).", where=where)
    return Retention(chosen, retained)


def earliest_to_retain(timeline: Timeline, keep: Retention, now_ms: int, timezone: str) -> Instant | None:
    """The oldest completed write whose view of the table stays; None where nothing is old enough.

    It never lies after the last completed write before an unfinished one: what that one started from stays.
    """
    completed = timeline.completed(*WRITES)
    if keep.policy is CleaningPolicy.KEEP_LATEST_COMMITS:
        chosen = completed[-keep.retained] if len(completed) > keep.retained else None
    elif keep.policy is CleaningPolicy.KEEP_LATEST_BY_HOURS:
        since = instant_ago(now_ms, keep.retained * _HOUR_MS, timezone)
        chosen = next((i for i in completed if i.timestamp >= since), None)
    else:
        return None
    unfinished = timeline.pending(*_UNFINISHED)
    if chosen is None or not unfinished or chosen.timestamp <= unfinished[0].timestamp:
        return chosen
    return next((i for i in reversed(completed) if i.timestamp < unfinished[0].timestamp), None)


def plan_clean(
    inventory: Inventory, keep: Retention, *, now_ms: int, timezone: str, grace_ms: int = 0
) -> CleanPlan | NothingToDo:
    """What to delete so that every query from the retained point on keeps its answer.

    What was replaced less than `grace_ms` ago stays, whatever the policy: queries that began before may still read it.
    """
    completed = inventory.timeline.completed(*WRITES)
    if not completed:
        return NothingToDo("nothing was committed yet")
    earliest = earliest_to_retain(inventory.timeline, keep, now_ms, timezone)
    if earliest is None and keep.policy is not CleaningPolicy.KEEP_LATEST_FILE_VERSIONS:
        return NothingToDo(f"every commit is retained ({keep.policy}, {keep.retained})")
    files: dict[str, list[str]] = {}
    given_up = tuple(_given_up(inventory, keep, earliest))
    settled = _settled(inventory, given_up, instant_ago(now_ms, grace_ms, timezone) if grace_ms else None)
    for ((partition, _), _), paths in deletable(inventory, settled).items():
        files.setdefault(partition, []).extend(paths)
    if not files:
        if len(settled) < len(given_up):
            held = len(given_up) - len(settled)
            return NothingToDo(f"{held} file slices were replaced less than {duration(grace_ms)} ago")
        return NothingToDo(f"no file slice is older than what is retained ({keep.policy}, {keep.retained})")
    last = completed[-1].timestamp
    links = links_into(inventory, frozenset(path for paths in files.values() for path in paths))
    return CleanPlan(keep.policy, earliest, last, {p: tuple(sorted(paths)) for p, paths in files.items()}, links)


def _given_up(inventory: Inventory, keep: Retention, earliest: Instant | None) -> Iterator[SliceKey]:
    """(group, base instant) of the slices that the policy gives up."""
    for key, slices in inventory.groups.items():
        replaced = inventory.replaced.get(key)
        if replaced is not None:
            old = earliest is None or inventory.replaced_before(replaced, earliest.timestamp)
            doomed: Iterable[FileSlice] = slices if old else ()
        elif earliest is None:
            doomed = _old_versions(slices, keep.retained, inventory.compacting.get(key))
        else:
            doomed = _before(inventory, slices, earliest.timestamp)
        yield from ((key, slice_.base_instant) for slice_ in doomed)


def _before(inventory: Inventory, slices: tuple[FileSlice, ...], earliest: str) -> tuple[FileSlice, ...]:
    """Slices that no view at `earliest` or later reads: the next one was completed before it."""
    return tuple(old for old, new in pairwise(slices) if inventory.replaced_before(new.base_instant, earliest))


def _settled(inventory: Inventory, given_up: Iterable[SliceKey], since: str | None) -> list[SliceKey]:
    """Those of the slices that were replaced before `since` (None: whenever)."""
    if since is None:
        return list(given_up)
    next_: dict[SliceKey, str] = {}
    for key, slices in inventory.groups.items():
        next_ |= {(key, old.base_instant): new.base_instant for old, new in pairwise(slices)}
        if slices and key in inventory.replaced:
            next_[key, slices[-1].base_instant] = inventory.replaced[key]
    return [slot for slot in given_up if slot not in next_ or inventory.replaced_before(next_[slot], since)]


def _old_versions(slices: tuple[FileSlice, ...], versions: int, compacting: str | None) -> tuple[FileSlice, ...]:
    """Slices beyond the newest `versions`; what a pending compaction reads and writes counts as one."""
    if compacting is not None:
        slices = tuple(s for s in slices if s.base_instant < compacting)
        versions -= 1
    return slices[: max(0, len(slices) - versions)]


def protected_files(inventory: Inventory) -> frozenset[str]:
    """Files that no clean may take: the newest slice and base file of each group, savepoints, what a
    pending compaction reads, and what its links lead to (its plan names that)."""
    kept: set[str] = set()
    for key, slices in inventory.groups.items():
        reads = inventory.compacting.get(key)
        compacting = [s for s in slices if reads is not None and s.base_instant >= reads]
        kept.update(inventory.links.get(path, path) for s in compacting for path in slice_files(s))
        saved = [s for s in slices if inventory.savepointed.intersection(slice_files(s))]
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
