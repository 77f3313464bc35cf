"""What a clean may delete. Pure.

The policies and their rules are those of org.apache.hudi.table.action.clean.CleanPlanner and
org.apache.hudi.common.util.CleanerUtils (0.15). On top of them, symbolic links that lead to a file that goes are
found (Hudi's cleaner does not know links), and the newest slice and base file of a group are never given up, whatever
the settings say.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from hudi_assets.engine.errors import InvalidInput
from hudi_assets.engine.model import Action, FileSlice, Instant, NothingToDo
from hudi_assets.engine.model.cleans import CleaningPolicy, CleanPlan
from hudi_assets.engine.model.settings import whole_number
from hudi_assets.engine.model.units import HOUR_MS, duration
from hudi_assets.engine.table.files.needed import Inventory, SliceKey, deletable, links_into, slice_files
from hudi_assets.engine.timeline.instants import WRITES, Timeline, instant_ago

POLICY: Final = "hoodie.cleaner.policy"
_UNFINISHED: Final = (*WRITES, Action.COMPACTION, Action.LOG_COMPACTION, Action.CLUSTERING)


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
        retained = whole_number(properties, key, default, where=where)
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
        since = instant_ago(now_ms, keep.retained * HOUR_MS, timezone)
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
    why = ""
    replacing = _first_replacing_hidden_rows(inventory)
    if replacing is not None and earliest is None:
        return NothingToDo(f"{replacing.timestamp} replaced a file group with rows in no view: `validate` names them")
    if replacing is not None and earliest is not None and replacing.timestamp < earliest.timestamp:
        earliest, why = replacing, f", and {replacing.timestamp}, which replaced rows in no view: `validate` names them"
    files: dict[str, list[str]] = {}
    given_up = tuple(_given_up(inventory, keep, earliest))
    settled = _settled(inventory, given_up, instant_ago(now_ms, grace_ms, timezone) if grace_ms else None)
    for ((partition, _), _), paths in deletable(inventory, settled).items():
        files.setdefault(partition, []).extend(paths)
    if not files:
        if len(settled) < len(given_up):
            held = len(given_up) - len(settled)
            return NothingToDo(f"{held} file slices were replaced less than {duration(grace_ms)} ago")
        return NothingToDo(f"no file slice is older than what is retained ({keep.policy}, {keep.retained}{why})")
    last = completed[-1].timestamp
    links = links_into(inventory, frozenset(path for paths in files.values() for path in paths))
    return CleanPlan(keep.policy, earliest, last, {p: tuple(sorted(paths)) for p, paths in files.items()}, links)


def _first_replacing_hidden_rows(inventory: Inventory) -> Instant | None:
    """The earliest replacecommit of a group whose files stay, as they are the last copy of rows in no view.

    No clean may retain from a later instant. Hudi's archiver takes replaced groups for cleaned below that
    (ClusteringUtils.getEarliestInstantToRetainForClustering); with the replacecommit archived their rows would be back.
    """
    held = {
        inventory.replaced[key]
        for key, slices in inventory.groups.items()
        if key in inventory.replaced and any(inventory.hidden.intersection(slice_files(s)) for s in slices)
    }
    return next((i for i in inventory.timeline.completed(Action.REPLACE_COMMIT) if i.timestamp in held), None)


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
