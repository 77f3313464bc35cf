"""Base files of delta commits that the newest one of their file group was not made of.

Inserts grow a small base file: they read the newest one of the file group and write it anew, with their rows, under
their own instant. HoodieMergeHandle states which one it read (`prevCommit`). Where the instants of two writers cross,
the newest base file is the one of the greatest instant, whichever holds more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from hudi_assets.engine.model import Action, BaseFile, Instant
from hudi_assets.engine.model.files import GroupKey
from hudi_assets.engine.table.state import TableState
from hudi_assets.engine.timeline.commit_metadata import WriteStat
from hudi_assets.engine.timeline.instants import WRITES
from hudi_assets.engine.timeline.stat_columns import base_stats_of


class Written(NamedTuple):
    """A base file, as the write of that instant lists it."""

    instant: Instant
    stat: WriteStat


def base_stats(state: TableState, instant: Instant) -> Sequence[WriteStat]:
    """The stats of a completed write that are not of log files: there are few."""
    return state.reading.told.of_commit(
        base_stats,
        instant.file_name,
        lambda: base_stats_of(state.commit(instant).stats),
    )


def unseen_bases(state: TableState) -> Iterator[tuple[Written, Instant]]:
    """Base files of delta commits with rows that the newest one lacks, each with what it lies behind."""
    writes = tuple(instant.file_name for instant in state.timeline.completed(*WRITES))
    behind, crossed = state.reading.told.tell(_made_of_later, lambda: _made_of_later(state), writes)
    yield from behind
    if crossed:
        yield from _left_out(state, crossed)


def _made_of_later(state: TableState) -> tuple[list[tuple[Written, Instant]], set[GroupKey]]:
    """Base files that were made of a later write's, and the file groups of which one was not made of the last one's."""
    writes = {instant.timestamp: instant for instant in state.timeline.completed(*WRITES)}
    behind: list[tuple[Written, Instant]] = []
    newest: dict[GroupKey, str] = {}
    crossed: set[GroupKey] = set()
    for instant in state.timeline.completed(Action.DELTA_COMMIT):
        for stat in base_stats(state, instant):
            if not stat.path:
                continue
            key, made_of = (stat.partition, stat.file_id), stat.prev_commit
            if made_of.isdigit() and made_of < newest.get(key, ""):
                crossed.add(key)
            newest[key] = instant.timestamp
            if made_of > instant.timestamp and made_of in writes:
                behind.append((Written(instant, stat), writes[made_of]))
    return behind, crossed


def _left_out(state: TableState, groups: set[GroupKey]) -> Iterator[tuple[Written, Instant]]:
    """Base files that came between the one that another delta commit made its own of, and its own."""
    newest: dict[GroupKey, str] = {}
    for partition in {partition for partition, _ in groups}:
        for file in state.data_files.get(partition, ()):
            if isinstance(file, BaseFile) and state.timeline.is_committed(file.instant):
                key = (partition, file.file_id)
                newest[key] = max(file.instant, newest.get(key, ""))
    for key, bases in _of_groups(state, groups).items():
        if newest.get(key, "") <= max(bases):  # else the timeline does not tell of the newest one
            yield from _beside(bases)


def _of_groups(state: TableState, groups: set[GroupKey]) -> Mapping[GroupKey, Mapping[str, Written]]:
    found: dict[GroupKey, dict[str, Written]] = {key: {} for key in groups}
    for instant in state.timeline.completed(*WRITES):
        for stat in base_stats(state, instant):
            if stat.path and (key := (stat.partition, stat.file_id)) in groups:
                found[key][instant.timestamp] = Written(instant, stat)
    return found


def _beside(bases: Mapping[str, Written]) -> Iterator[tuple[Written, Instant]]:
    """From the newest base file down to what it was made of, as far as the timeline tells: what is passed over.

    One that was made of a later one is told of by itself. What lies beside a compaction's is none of these.
    """
    place = max(bases)
    while place in bases:
        upper, stat = bases[place]
        made_of = stat.prev_commit
        if upper.action is Action.REPLACE_COMMIT or not made_of.isdigit() or made_of >= place:
            return
        if upper.action is Action.DELTA_COMMIT:
            for instant, one in bases.values():
                between = made_of < instant.timestamp < place and one.prev_commit < instant.timestamp
                if between and one.prev_commit.isdigit() and instant.action is Action.DELTA_COMMIT:
                    yield Written(instant, one), upper
        place = made_of
