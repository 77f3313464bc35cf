"""What a look keeps of a table's files for the next one, and when it is not believed.

The next look lists the timeline, and asks each folder whether its names are still the same. Of a partition that changed
it lists the names, and asks new files for their sizes. All else is as it was, unless there is doubt: then everything is
listed, with sizes. What a doubt is, `doubt` says; docs/decisions/0023-what-a-look-keeps.md says why.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Final

from hudi_assets.engine.model import Action, BaseFile, Instant, Plan
from hudi_assets.engine.model.files import GroupKey
from hudi_assets.engine.storage import FileInfo, Storage
from hudi_assets.engine.table.layout.interface import CompletionOf, Layout
from hudi_assets.engine.table.slices.file_view import Cutter, FileView
from hudi_assets.engine.table.slices.listing import Tree
from hudi_assets.engine.table.slices.parts import Files, Part, Told, parse_again
from hudi_assets.engine.timeline.commit_metadata import CommitMetadata
from hudi_assets.engine.timeline.instants import WRITES, Timeline
from hudi_assets.engine.timeline.stat_columns import partitions_of

# Everything is listed again after so long, with sizes, whatever the folders say.
BELIEVED_S: Final = 600.0
# Where there are fewer files, listing them takes next to no time.
FEW_FILES: Final = 1_000
# The files of so many tables are kept, the last ones looked at.
MOST_TABLES: Final = 2_000
# What adds files, and changes none of another instant.
_PLAIN: Final = frozenset({Action.DELTA_COMMIT, Action.COMMIT, Action.COMPACTION})
# Archivers take these away by a count of their own.
_ARCHIVED_BY_COUNT: Final = frozenset({Action.CLEAN, Action.ROLLBACK})

_Answer = tuple[bool, str | None]


@dataclass(frozen=True, slots=True)
class Seen:
    """The timeline that a reading of the files goes by, its pending plans and replaced file groups."""

    timeline: Timeline
    timeline_files: Mapping[str, FileInfo]
    plans: tuple[Plan, ...]
    replaced: Mapping[GroupKey, str]


@dataclass(frozen=True, slots=True)
class Asked:
    """What a reading of the files asks of the table."""

    storage: Storage
    layout: Layout
    seen: Seen
    commit_of: Callable[[Instant], CommitMetadata]
    completion_of: CompletionOf

    def is_named(self, base: BaseFile, infos: Iterable[FileInfo], files: Files) -> bool:
        """True where the commit of a base file's instant lists it; where that is archived: of several the oldest.

        Strays go before their commit is archived, but Hudi's archiver knows none; what a lost attempt wrote is late.
        `infos` and `files`: the listing of its partition.
        """
        instants = [i for i in self.seen.timeline.completed(*WRITES) if i.timestamp == base.instant]
        if instants:
            return any(stat.path == base.path for i in instants for stat in self.commit_of(i).stats)
        changed = {file.path: (file.modified_ms, file.path) for file in infos}
        slot = (base.file_id, base.instant)
        bases = (file for file in files.values() if isinstance(file, BaseFile))
        return base.path == min((b.path for b in bases if (b.file_id, b.instant) == slot), key=changed.__getitem__)

    def answers(self, parts: Mapping[str, Part]) -> Mapping[str, _Answer]:
        """Of each instant in a file's name: whether it counts, and for log files when it was completed."""
        found: dict[str, _Answer] = {}
        by_completion, is_committed = self.layout.cuts_by_completion, self.seen.timeline.is_committed
        for part in parts.values():
            for instant in part.log_instants.difference(found) if by_completion else ():
                found[instant] = (is_committed(instant), self.completion_of(instant))
        for part in parts.values():
            for instant in part.instants.difference(found):
                found[instant] = (is_committed(instant), None)
        return found


@dataclass(frozen=True, slots=True)
class Reading:
    """A table's files as a look found them. `whole_at`: when all of it was listed, by this process's clock (s).

    `told`: what was asked of its commits and found right, by question, and kept by the next reading that has lost no
    file (`Told`).
    """

    tree: Tree
    parts: Mapping[str, Part]
    seen: Seen
    answers: Mapping[str, _Answer]
    whole_at: float
    told: Told

    @classmethod
    def read(cls, asked: Asked, last: Reading | None = None) -> Reading:
        """The files now. `last`: the last look's, which is moved on unless there is doubt."""
        now = time.monotonic()
        if last is None or doubt(last, asked.seen, asked.layout) is not None:
            return cls.of(asked, None, Tree.read(asked.storage, keeps=True), whole_at=now, keeps=True)
        sizes = now - last.whole_at >= BELIEVED_S
        fresh = [i for i in asked.seen.timeline.completed(*WRITES) if i.file_name not in last.seen.timeline_files]
        tree = Tree.read(asked.storage, last.tree, keeps=True, sizes=sizes)
        other = frozenset(_told_otherwise(tree, asked, fresh))
        if other:
            tree = Tree.read(asked.storage, tree, anew=other, keeps=True)
        touched = {name for instant in fresh for name in partitions_of(asked.commit_of(instant).stats)}
        touched.update(key[0] for key, _ in asked.seen.replaced.items() ^ last.seen.replaced.items())
        touched.update(_of_plans(asked.seen.plans, last.seen.plans))
        return cls.of(asked, last, tree, frozenset(touched), now if sizes else last.whole_at, keeps=True)

    @classmethod
    def of(
        cls,
        asked: Asked,
        last: Reading | None,
        tree: Tree,
        touched: frozenset[str] = frozenset(),
        whole_at: float = 0.0,
        parsed: Mapping[str, Files] | None = None,
        *,
        keeps: bool = False,
    ) -> Reading:
        """With what was listed. `touched`: the partitions of which nothing that was told before is believed.

        `parsed`: the log and base files of each partition, where they are known. `keeps`: as `Tree.read`.
        """
        before: Mapping[str, Part] = last.parts if last is not None else {}
        changed = _changed(last.answers, asked.answers(before)) if last is not None else frozenset()
        cut = _cutter(asked)
        parts: dict[str, Part] = {}
        lost = not before.keys() <= frozenset(tree.partitions)
        for partition in tree.partitions:
            folder, part = tree.folders[partition], before.get(partition)
            stays = (
                part is not None
                and part.infos is folder.files
                and partition not in touched
                and part.instants.isdisjoint(changed)
                and not part.has_doubles
            )
            if part is None or not stays:
                known = parsed.get(partition) if parsed is not None else None
                files = parse_again(folder.files, partition, asked.layout, part) if known is None else known
                lost = lost or (part is not None and _has_lost(part.files, files))
                told = part.all_told if part is not None else {}
                part = Part(partition, folder.files, asked.layout, files, cut(partition, folder.files, files), told)
                if keeps:
                    part.keep_few()
            parts[partition] = part
        of_table = last.told.of(asked.seen.timeline_files, lost=lost) if last is not None else Told()
        return cls(tree, parts, asked.seen, asked.answers(parts), whole_at, of_table)


def _cutter(asked: Asked) -> Callable[[str, Iterable[FileInfo], Files], FileView]:
    """Cuts the slices of a partition, given its listing and its log and base files."""
    at: tuple[Iterable[FileInfo], Files] = ([], {})

    def is_named(base: BaseFile) -> bool:
        return asked.is_named(base, *at)

    seen = asked.seen
    cutter = Cutter(seen.timeline, asked.layout, seen.plans, frozenset(seen.replaced), is_named, asked.completion_of)

    def cut(partition: str, infos: Iterable[FileInfo], files: Files) -> FileView:
        nonlocal at
        at = (infos, files)
        return cutter.view(partition, files.values())

    return cut


def _has_lost(before: Files, now: Files) -> bool:
    return before is not now and any(path not in now or now[path].size < file.size for path, file in before.items())


def _changed(before: Mapping[str, _Answer], now: Mapping[str, _Answer]) -> frozenset[str]:
    return frozenset(instant for instant, answer in now.items() if before.get(instant) != answer)


def _of_plans(plans: tuple[Plan, ...], before: tuple[Plan, ...]) -> set[str]:
    """The partitions of the pending plans that came or went."""
    if plans == before:
        return set()
    return {op.partition for plan in (*plans, *before) for op in plan.operations}


def _told_otherwise(tree: Tree, asked: Asked, fresh: list[Instant]) -> set[str]:
    """Folders with a file that a new commit names, and that is not there, or has another size."""
    named: dict[str, dict[str, int]] = {}
    for instant in fresh:
        for stat in asked.commit_of(instant).stats:
            if stat.path:
                named.setdefault(stat.path.rpartition("/")[0], {})[stat.path] = stat.size
    found = set()
    for partition, sizes in named.items():
        folder = tree.folders.get(partition)
        there = {info.path: info.size for info in folder.files} if folder is not None else {}
        if any(there.get(path) != size for path, size in sizes.items()):
            found.add(partition)
    return found


def doubt(last: Reading, seen: Seen, layout: Layout) -> str | None:
    """Why what was kept is not moved on; None where it is.

    Only instants that add files are followed: writes and compactions. Whatever else began, ended or went may have
    taken files away, or added to log files that stay (a rollback does on version 6, where the store can append).
    """
    before = {_key(instant): instant for instant in last.seen.timeline.instants}
    now = {_key(instant): instant for instant in seen.timeline.instants}
    for key, instant in before.items():
        found = now.get(key)
        if found is None:
            if not _is_archived(instant, seen.timeline):
                return f"{instant.file_name} has gone"
        elif why := _moved(instant, found, last.seen, seen):
            return why
    for key, instant in now.items():
        if key not in before and instant.action not in _PLAIN:
            return f"{instant.file_name} is new"
    for name in seen.timeline_files.keys() - last.seen.timeline_files.keys():
        if layout.parse_instant(name) is None:
            return f"{name} is not known"
    return None


def _key(instant: Instant) -> tuple[str, Action]:
    """A compaction completes as a commit, a clustering as a replacecommit."""
    action = Action.COMMIT if instant.action is Action.COMPACTION else instant.action
    return instant.timestamp, Action.REPLACE_COMMIT if action is Action.CLUSTERING else action


def _is_archived(instant: Instant, now: Timeline) -> bool:
    if not instant.is_completed:
        return False
    return instant.action in _ARCHIVED_BY_COUNT or (instant.action in WRITES and now.is_archived(instant.timestamp))


def _moved(before: Instant, now: Instant, last: Seen, seen: Seen) -> str | None:
    """Why an instant that is on both timelines is in doubt."""
    if before.file_name == now.file_name:
        # A write that was rolled back may be done again at its instant.
        same = last.timeline_files.get(now.file_name) == seen.timeline_files.get(now.file_name)
        return None if same or not now.is_completed else f"{now.file_name} was written again"
    if before.is_completed:
        return f"{before.file_name} is {now.file_name} now"
    return None if now.action in _PLAIN else f"{now.file_name} is new"


class Keeper:
    """Keeps a table's last reading for the looks of this process. `read` may be called by several threads."""

    def __init__(self) -> None:
        self._last: Reading | None = None

    def read(self, asked: Asked) -> Reading:
        """The files now, moved on from what was kept."""
        return Reading.read(asked, self._last)

    def keep(self, reading: Reading | None) -> None:
        """For the next look; None: it lists everything."""
        few = reading is not None and sum(len(part.infos) for part in reading.parts.values()) < FEW_FILES
        self._last = None if few else reading


_KEEPERS: Final[OrderedDict[Hashable, Keeper]] = OrderedDict()
_LOCK: Final = Lock()


def keeper_of(table: Hashable) -> Keeper:
    """The one that keeps for all looks at a table. `table`: its storage, and the settings that it is read by."""
    with _LOCK:
        keeper = _KEEPERS.setdefault(table, Keeper())
        _KEEPERS.move_to_end(table)
        while len(_KEEPERS) > MOST_TABLES:
            _KEEPERS.popitem(last=False)
        return keeper


def forget() -> None:
    """Keep nothing of any table."""
    with _LOCK:
        _KEEPERS.clear()
