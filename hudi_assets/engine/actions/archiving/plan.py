"""Which instants leave the active timeline. Pure.

The rules are those of org.apache.hudi.client.HoodieTimelineArchiver (0.15): when more than
hoodie.keep.max.commits writes are completed, the oldest go, down to hoodie.keep.min.commits; cleans and rollbacks
by a count of their own. An instant older than the timeline's start counts as committed, so the start never passes
anything that is not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from hudi_assets.engine.errors import InvalidInput
from hudi_assets.engine.model import Action, Instant, NothingToDo
from hudi_assets.engine.model.settings import whole_number
from hudi_assets.engine.table.settings.config import ARCHIVE_BEYOND_CHECKPOINT
from hudi_assets.engine.timeline.instants import WRITES, Timeline

MIN_COMMITS: Final = "hoodie.keep.min.commits"
MAX_COMMITS: Final = "hoodie.keep.max.commits"
_DEFAULTS: Final = {MIN_COMMITS: 20, MAX_COMMITS: 30}
_COUNTED: Final = (Action.CLEAN, Action.ROLLBACK)
_UNFINISHED: Final = (*WRITES, Action.COMPACTION, Action.LOG_COMPACTION, Action.CLUSTERING)
_UNDOING: Final = (Action.ROLLBACK, Action.RESTORE)


@dataclass(frozen=True, slots=True)
class Keep:
    """How many completed writes stay: archiving starts above `max` and leaves `min`."""

    min: int
    max: int


@dataclass(frozen=True, slots=True)
class Bounds:
    """What the start of the timeline must not pass. Instants; "" or None where nothing binds.

    `cleaned_from`: the earliest commit that the cleaner retains. `uncommitted`: instants of files that count for
    nothing now, and would once the start has passed them. `replacing`: replacecommits whose replaced files are
    still there. `deltas`: so many delta commits since the last compaction a trigger counts.
    `archived`: instants that the archive holds already, whose deletion a crash cut short. `metadata_compacted`: the
    metadata table's last compaction ("": it had none): what it says of later writes counts by the active timeline.
    `checkpoints`: the writes from which Hudi's streaming writers go on, and whose they are.
    """

    cleaned_from: str | None = None
    uncommitted: frozenset[str] = frozenset()
    replacing: frozenset[str] = frozenset()
    deltas: int = 0
    archived: frozenset[tuple[str, Action]] = frozenset()
    metadata_compacted: str | None = None
    checkpoints: Mapping[str, str] = field(default_factory=dict)


def keep_of(properties: Mapping[str, str], where: str) -> Keep:
    """The table's settings; `InvalidInput` where they cannot be kept."""
    keep = Keep(*(whole_number(properties, key, default, where=where) for key, default in _DEFAULTS.items()))
    if keep.min < 2 or keep.max <= keep.min:
        raise InvalidInput(
            f"{MIN_COMMITS} is {keep.min} and {MAX_COMMITS} is {keep.max}.",
            where=where,
            hint="The least has to be 2 or more, and the most above it.",
        )
    return keep


def plan_archive(timeline: Timeline, keep: Keep, bounds: Bounds) -> tuple[Instant, ...] | NothingToDo:
    """The completed instants to archive, oldest first."""
    undoing = timeline.pending(*_UNDOING)
    if undoing:
        return NothingToDo(f"{undoing[0].action} {undoing[0].timestamp} is unfinished")
    writes = timeline.completed(*WRITES)
    counted = (i for action in _COUNTED for i in _beyond(timeline.completed(action), keep, bounds))
    # What the metadata table says of a clean counts by the active timeline too.
    chosen = [i for i in counted if bounds.metadata_compacted is None or i.timestamp < bounds.metadata_compacted]
    due = _beyond(writes, _adjusted(writes, keep, bounds.cleaned_from), bounds)
    first, words = _first_to_stay(timeline, writes, bounds)
    allowed = [i for i in due if first is None or i.timestamp < first]
    chosen += allowed
    if chosen:
        return tuple(sorted(chosen, key=lambda i: (i.timestamp, i.action)))
    if due:
        return NothingToDo(f"{words} holds back {len(due)} instants")
    return NothingToDo(f"{len(writes)} completed writes are on the timeline; archiving starts above {keep.max}")


def _beyond(instants: tuple[Instant, ...], keep: Keep, bounds: Bounds) -> tuple[Instant, ...]:
    """The oldest instants, down to `keep.min`; at least those that were archived and not deleted."""
    many = len(instants) - keep.min if len(instants) > keep.max else 0
    done = next((n for n, i in enumerate(instants) if (i.timestamp, i.action) not in bounds.archived), len(instants))
    return instants[: max(many, min(done, len(instants) - 1))]


def _adjusted(writes: tuple[Instant, ...], keep: Keep, cleaned_from: str | None) -> Keep:
    """More stay where the cleaner retains more: its earliest commit and the one before it are still needed."""
    if cleaned_from is None:
        return keep
    needed = sum(1 for i in writes if i.timestamp > cleaned_from) + 2
    return Keep(needed, keep.max + needed - keep.min) if needed > keep.min else keep


def _first_to_stay(timeline: Timeline, writes: tuple[Instant, ...], bounds: Bounds) -> tuple[str | None, str]:
    """The oldest write that must stay, and what holds it, in words."""
    limits = [*_held(timeline, writes, bounds)]
    return min(limits, default=(None, ""), key=lambda limit: limit[0] or "")


def _held(timeline: Timeline, writes: tuple[Instant, ...], bounds: Bounds) -> Iterator[tuple[str, str]]:
    for pending in timeline.pending(*_UNFINISHED):
        # The completed write before it stays too, so that the timeline has no hole.
        yield _last_before(writes, pending.timestamp), f"{pending.action} {pending.timestamp}, which is unfinished,"
    for instant in sorted(bounds.uncommitted):
        yield _last_before(writes, instant), f"the instant {instant}, whose files were never committed,"
    for savepoint in timeline.completed(Action.SAVEPOINT):
        yield savepoint.timestamp, f"savepoint {savepoint.timestamp}"
    for instant in sorted(bounds.replacing):
        yield instant, f"replacecommit {instant}, whose replaced files are not cleaned yet,"
    for instant, whose in sorted(bounds.checkpoints.items()):
        yield instant, f"write {instant}, which has the last checkpoint of {whose} ({ARCHIVE_BEYOND_CHECKPOINT}),"
    if bounds.metadata_compacted is not None:
        last = bounds.metadata_compacted
        later = (i.timestamp for i in writes if (i.completion or i.timestamp) > last)
        words = f"the metadata table, last compacted at {last}," if last else "the metadata table, not compacted yet,"
        yield next(later, last), words
    if bounds.deltas:
        yield from _held_for_trigger(writes, bounds.deltas)


def _held_for_trigger(writes: tuple[Instant, ...], deltas: int) -> Iterator[tuple[str, str]]:
    """Delta commits that a trigger which counts them still has to see (CompactionUtils)."""
    last = next((i.timestamp for i in reversed(writes) if i.action is Action.COMMIT), "")
    since = [i for i in writes if i.action is Action.DELTA_COMMIT and i.timestamp > last]
    if len(since) >= deltas:
        yield since[-deltas].timestamp, "the compaction trigger, which counts delta commits,"
    elif last:
        yield last, f"compaction {last}, since which the trigger counts delta commits,"


def _last_before(writes: tuple[Instant, ...], timestamp: str) -> str:
    return next((i.timestamp for i in reversed(writes) if i.timestamp < timestamp), timestamp)
