"""Files that the timeline says are there and are not: without them a query would answer less, and look right.

So is a symbolic link that leads to nothing, also where the commit that named it is archived: who deletes what it leads
to (Hudi's cleaner does) takes its rows. Apache Hudi reads on without a word. Here nothing is read, written, planned,
cleaned or archived on a table that lacks a file of its commits, and its freshness is null; rollback, restore and
recover go on, to mend it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from hudi_assets.engine.errors import CorruptTable
from hudi_assets.engine.model import BaseFile, Instant, LogFile, Plan
from hudi_assets.engine.model.files import GroupKey
from hudi_assets.engine.storage import FileInfo
from hudi_assets.engine.table.slices.parts import are_few, few_at_once
from hudi_assets.engine.table.state import TableState
from hudi_assets.engine.timeline.commit_metadata import WriteStat
from hudi_assets.engine.timeline.instants import WRITES
from hudi_assets.engine.timeline.stat_columns import partitions_of, stats_in

_Stats = tuple[Instant, Sequence[WriteStat]]
RESTORE_HINT = "Restore the file from a copy, or restore a savepoint."


@dataclass(frozen=True, slots=True)
class Missing:
    """A file of a slice that queries of now read: gone (`found` None), or `found` bytes short. `path` is its own."""

    path: str
    what: str
    found: int | None

    @classmethod
    def of(cls, instant: Instant, stat: WriteStat, found: int | None) -> Missing:
        """One that a completed write names."""
        wrote = f"{instant.action} {instant.timestamp} wrote"
        gone = f"{wrote} it, and it is gone."
        return cls(
            stat.path, gone if found is None else f"It has {found} of the {stat.size} bytes that {wrote}.", found
        )


def missing_files(state: TableState) -> Iterator[Missing]:
    """Files that queries of now would read and that are not there.

    A completed write on the active timeline names them, or a symbolic link that has their name leads to nothing.
    """
    complete = state.reading.told.complete
    asked = [instant for instant in state.timeline.completed(*WRITES) if instant.file_name not in complete]
    commits = [(instant, state.commit(instant).stats) for instant in asked]
    several = _few_partitions(state, commits)
    # What is lacking is told in the order of the commits.
    none = len(several) > 1 and not any(any(True for _ in _lacking(state, commits, some)) for some in several)
    lacking = [] if none else list(_lacking(state, commits))
    # Most tables lack nothing, and nothing else is looked into there.
    found = _missing(state, lacking) if lacking or state.broken_links else iter(())
    first = next(found, None)
    if first is None:
        # What is not read now is not read later either.
        complete.update(instant.file_name for instant in asked)
    else:
        yield first
        yield from found


def _few_partitions(state: TableState, commits: Sequence[_Stats]) -> list[set[str]]:
    """The partitions that commits name, a few at a time: of a large table only so many files have objects at once."""
    if are_few(state.parts.values()):
        return [set()]
    named = set(chain.from_iterable(partitions_of(stats) for _, stats in commits))
    there = [state.parts[partition] for partition in sorted(named & state.parts.keys())]
    some = [{part.partition for part in parts} for parts in few_at_once(there)]
    some[0] |= named - state.parts.keys()
    return some


def _lacking(
    state: TableState, commits: Iterable[_Stats], partitions: Collection[str] | None = None
) -> Iterator[tuple[Instant, WriteStat, LogFile | BaseFile]]:
    """Files that commits name, and that are not there as they were written; of some partitions, or of all."""
    there = state.sizes
    for instant, stats in commits:
        for stat in stats if partitions is None else stats_in(stats, partitions):
            if (size := there.get(stat.path)) is None or size < stat.size:
                file = parse_file(state, stat.path)
                if file is not None:
                    yield instant, stat, file


def _missing(state: TableState, lacking: Sequence[tuple[Instant, WriteStat, LogFile | BaseFile]]) -> Iterator[Missing]:
    there, newest = state.sizes, _newest_bases(state)
    broken = {link.path: link for link in state.broken_links}
    for link, file in _broken_files(state):
        if _is_read_now(state, file, newest):
            yield Missing(link.path, broken_words(link), None)
    for instant, stat, file in lacking:
        if stat.path not in broken and _is_read_now(state, file, newest):
            yield Missing.of(instant, stat, there.get(stat.path))


def broken_words(link: FileInfo) -> str:
    """What is to be said of a link that leads to nothing."""
    return f"It is a symbolic link to {link.link_target}, which is gone."


def _broken_files(state: TableState) -> Iterator[tuple[FileInfo, LogFile | BaseFile]]:
    """Links to nothing under the name of a file that counts: of a completed write, or of a pending plan's slice."""
    pending = {plan.instant for plan in state.pending_plans}
    for link in state.broken_links:
        file = parse_file(state, link.path)
        if file is not None:
            instant = file.base_instant if isinstance(file, LogFile) else file.instant
            if state.timeline.is_committed(instant) or instant in pending:
                yield link, file


def _is_read_now(state: TableState, file: LogFile | BaseFile, newest: Mapping[GroupKey, str]) -> bool:
    """True where the file is of the newest slice of its group, or later. `newest`: the newest base files' instants."""
    key = (file.partition, file.file_id)
    slice_instant = state.slice_instant(file) if isinstance(file, LogFile) else file.instant
    return key not in state.replaced and slice_instant >= newest.get(key, "")


def refuse_missing(state: TableState) -> None:
    """Raise `CorruptTable`, naming the first missing file of the slices that are read now."""
    for one in missing_files(state):
        raise CorruptTable(
            f"A file of the table is missing or short: {one.what}",
            where=f"{state.storage.base}: {one.path}",
            hint=f"If a clean ran meanwhile, ask again. {RESTORE_HINT}",
        )


def refuse_missing_inputs(state: TableState, plan: Plan) -> None:
    """Raise `CorruptTable`, naming it, where a file that a pending compaction reads or carries over is gone."""
    broken = {link.path: link for link in state.broken_links}
    for op in plan.operations:
        for path in (op.base_file, *op.log_files, *(carried.link for carried in op.carried_over)):
            if path and path not in state.sizes:
                words = broken_words(broken[path]) if path in broken else f"Compaction {plan.instant} needs it."
                raise CorruptTable(
                    f"A file of the pending compaction is gone: {words}",
                    where=f"{state.storage.base}: {path}",
                    hint=RESTORE_HINT,
                )


def _newest_bases(state: TableState) -> dict[GroupKey, str]:
    """Per group the newest base file's instant, of those listed and those that a commit names."""
    listed = (f for files in state.data_files.values() for f in files if isinstance(f, BaseFile))
    there = (f for f in listed if state.timeline.is_committed(f.instant))
    stats = (stat for i in state.timeline.completed(*WRITES) for stat in state.commit(i).stats)
    written = (parse_file(state, stat.path) for stat in stats if stat.path.endswith(".parquet"))
    broken = (file for _, file in _broken_files(state))
    newest: dict[GroupKey, str] = {}
    for file in (*there, *written, *broken):
        if isinstance(file, BaseFile):
            key = (file.partition, file.file_id)
            newest[key] = max(newest.get(key, ""), file.instant)
    return newest


def parse_file(state: TableState, path: str) -> LogFile | BaseFile | None:
    """What a table-relative path names; None for neither a base nor a log file."""
    return state.layout.parse_file(FileInfo(path, 0), path.rpartition("/")[0])
