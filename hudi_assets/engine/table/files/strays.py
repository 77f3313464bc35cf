"""Files of completed instants that no commit lists: task attempts wrote them that did not count.

Ours are published by the driver (`timeline.attempts`), so that none comes to be; an earlier release's attempt, one of
Hudi's, or a driver that was taken for dead may have left one. Hudi takes whichever base file of a slice it lists last
(HoodieFileGroup.addBaseFile); here the one counts that the commit lists. Only the active timeline tells, so strays go
before their commit is archived.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from hudi_assets.engine.model import Action, BaseFile, Instant, LogFile
from hudi_assets.engine.model.files import GroupKey
from hudi_assets.engine.table.files.orphans import Orphans
from hudi_assets.engine.table.log_files.headers import log_headers
from hudi_assets.engine.table.metadata.writer import MetadataTable
from hudi_assets.engine.table.state import TableState
from hudi_assets.engine.timeline.commit_metadata import WRITER
from hudi_assets.engine.timeline.instants import WRITES, instant_ms
from hudi_assets.engine.timeline.markers import marked_files

_CLOCKS_MS: Final = 3_600_000  # by which the clocks of writers and file system may differ


@dataclass(frozen=True)
class Strays:
    """The strays of one reading of a table."""

    state: TableState

    @cached_property
    def _completed(self) -> dict[str, Instant]:
        return {i.timestamp: i for i in self.state.timeline.completed(*WRITES)}

    @cached_property
    def _listed(self) -> frozenset[str]:
        """Paths that a commit on the active timeline, or a plan's links, name."""
        paths = {stat.path for i in self._completed.values() for stat in self.state.commit(i).stats}
        plans = [self.state.plan(i.timestamp) for i in self._completed.values() if i.action is Action.COMMIT]
        for plan in (*plans, *self.state.pending_plans):
            paths.update(carried.link for op in (plan.operations if plan else ()) for carried in op.carried_over)
        return frozenset(paths)

    @cached_property
    def _read_by_plans(self) -> frozenset[str]:
        operations = (op for plan in self.state.pending_plans for op in plan.operations)
        return frozenset(path for op in operations for path in (op.base_file, *op.log_files) if path)

    def _is_ours(self, instant: Instant) -> bool:
        return WRITER in self.state.commit(instant).extra

    def _files(self) -> Iterator[BaseFile | LogFile]:
        files = (file for listed in self.state.data_files.values() for file in listed)
        return (file for file in files if file.path not in self._listed and file.path not in self._read_by_plans)

    @cached_property
    def base_files(self) -> tuple[BaseFile, ...]:
        """Base files of a completed instant whose commit, being ours, does not list them, or lists another instead."""
        return tuple(f for f in self._files() if isinstance(f, BaseFile) and self._is_stray(f))

    @cached_property
    def second_base_files(self) -> tuple[BaseFile, ...]:
        """Base files beside the one that counts of their slice. Reads no commit where there are none."""
        doubled = [part for part in self.state.parts.values() if part.has_doubles]
        groups = self.state.view_with_replaced.groups.items() if doubled else ()
        shown = {(*key, s.base_instant): s.base_file for key, slices in groups for s in slices if s.base_file}
        bases = (file for part in doubled for file in part.files.values() if isinstance(file, BaseFile))
        return tuple(base for base in bases if shown.get((base.partition, base.file_id, base.instant), base) != base)

    def _is_stray(self, base: BaseFile) -> bool:
        instant = self._completed.get(base.instant)
        return instant is not None and (
            self._is_ours(instant) or (base.partition, base.file_id) in self._groups_of(instant)
        )

    def _groups_of(self, instant: Instant) -> frozenset[GroupKey]:
        """The file groups that got a base file by a commit."""
        stats = self.state.commit(instant).stats
        return frozenset((stat.partition, stat.file_id) for stat in stats if stat.log_version is None and stat.path)

    @cached_property
    def log_files(self) -> tuple[LogFile, ...]:
        """Log files of our delta commits that none of these lists.

        Of other engines' only their own writer could say: a log file of a repeated attempt of theirs stays. Where a
        name does not tell the delta commit, the headers are read of those unlisted that the timeline may know of.
        """
        logs = (file for file in self._files() if isinstance(file, LogFile))
        found = [log for log in logs if self._is_young(log) and self._is_unlisted(log)]
        # What stands in a slice that was never begun is a dead planner's link.
        orphans = frozenset(Orphans(self.state).paths) if found else frozenset()
        return tuple(log for log in found if log.path not in orphans)

    def _is_young(self, log: LogFile) -> bool:
        """False where a log file was there before the timeline's start: its commit is archived."""
        return self.state.layout.delta_commit_of(log) is not None or self._changed.get(log.path, 0) >= self._since

    @cached_property
    def _changed(self) -> dict[str, int]:
        return {file.path: file.modified_ms for files in self.state.listing.values() for file in files}

    @cached_property
    def _since(self) -> int:
        start = self.state.timeline.start
        return instant_ms(start, self.state.config.timezone) - _CLOCKS_MS if start else 0

    def _is_unlisted(self, log: LogFile) -> bool:
        named = self.state.layout.delta_commit_of(log)
        instants = self._instants_in(log) if named is None else frozenset({named})
        known = [self._completed.get(instant) for instant in instants]
        return bool(known) and all(
            one is not None and one.action is Action.DELTA_COMMIT and self._is_ours(one) for one in known
        )

    def _instants_in(self, log: LogFile) -> frozenset[str]:
        """Instants of its blocks; none where it holds others than of records and deletes."""
        found = set()
        for block in log_headers(self.state.storage, log.path, log.size):
            if block.is_corrupt or block.command is not None or not block.instant_time:
                return frozenset()
            found.add(block.instant_time)
        return frozenset(found)

    def marked(self, instant: str) -> tuple[str, ...]:
        """What the markers of a completed write of ours name and no commit lists. Lists no partition."""
        completed = self._completed.get(instant)
        if completed is None or not self._is_ours(completed):
            return ()
        named = marked_files(self.state.storage, instant)
        return tuple(path for path in named if path not in self._listed and path not in self._read_by_plans)


def remove_strays(state: TableState, metadata_table: MetadataTable | None) -> tuple[str, ...]:
    """Delete the strays; what was done, a sentence. Call it under the write lock only."""
    strays = Strays(state)
    paths = [file.path for file in strays.base_files]
    paths += [file.path for file in strays.log_files]
    if not paths:
        return ()
    if metadata_table is not None:
        metadata_table.forget(paths)
    for path in paths:
        state.storage.delete(path)
    return (f"removed {len(paths)} files that their commits do not list, of lost task attempts",)
