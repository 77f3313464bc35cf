"""Partial updates: log records that hold some of a row's columns. Older records of the key fill the others. Pure.

The rule is Hudi 1.2's (PartialUpdateBufferedRecordMerger, with the partialMerge of its Spark mergers). Which record of
a key wins is decided as between whole rows. Beside that, log records are folded in log order:
- what loses (by event time, the lesser ordering value) gives the columns that the other lacks;
- nothing is filled across a delete: the record that wins against one is left as it is.
What is lacking after the log records comes from the base row.

So a filled column need not be the one of the next lower ordering value: a column that was filled stays.
`docs/explanation/merge.md` has an example.

Whole rows with gaps (`gaps`) are filled in the same way (PartialUpdateHandler). There a base row has gaps too: where it
wins, the log records fill them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_assets.engine.errors import UnsupportedTable
from hudi_assets.engine.merging.gaps import Gaps
from hudi_assets.engine.merging.ordering import ranks_of
from hudi_assets.engine.merging.winners import BLOCK, Flags, Head, Matched, Places, Winners, flags_of
from hudi_assets.engine.model import MergeMode

_KEY = "_hoodie_record_key"
_LACKING = -1
_COMMIT_TIME = MergeMode.COMMIT_TIME_ORDERING
Numbers = npt.NDArray[np.int64]
Groups = tuple[tuple[str, ...], ...]
"""Columns that records have together or not at all."""


@dataclass(frozen=True, slots=True)
class Filling:
    """Rows that are filled: the places of log records that won, ascending, and per group of columns their sources.

    `sources` has a row per group: the places of log records, negative where the value is the base row's. `nth`: which
    of the base rows of the key that is, from 0.
    """

    places: Places
    groups: Groups
    sources: npt.NDArray[np.int64]
    nth: Numbers

    def slice(self, start: int, length: int) -> Filling:
        part = slice(start, start + length)
        return Filling(self.places[part], self.groups, self.sources[:, part], self.nth[part])

    def by(self, groups: Groups) -> Filling:
        """The same by smaller groups."""
        of = {name: number for number, group in enumerate(self.groups) for name in group}
        return replace(self, groups=groups, sources=self.sources[[of[group[0]] for group in groups]])

    def repeated(self, places: Places, times: Numbers) -> Filling:
        """With rows that replace several base rows once for each. `times`: how often more than once those are there."""
        counts = np.ones(len(self.places), np.int64)
        mine = np.isin(places, self.places)
        counts[np.searchsorted(self.places, places[mine])] += times[mine]
        nth = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        return Filling(np.repeat(self.places, counts), self.groups, np.repeat(self.sources, counts, axis=1), nth)


@dataclass(frozen=True, slots=True)
class KeptRows:
    """Base rows that win against log records, and have gaps: their keys' numbers, and where each column has one."""

    numbers: Numbers
    gaps: Mapping[str, Flags]

    @classmethod
    def of(cls, rows: pa.Table, matched: Matched, winners: Winners, gaps: Gaps) -> KeptRows:
        """Those among base rows, which are marked as replaced: rows that are filled take their place."""
        alive = ~winners.deleted[matched.beaten]
        at = matched.keeping[alive]
        found = gaps.of(rows.take(pa.array(at)))
        some = np.any([np.zeros(len(at), np.bool_), *found.values()], axis=0)
        matched.replaced[at[some]] = True
        return cls(matched.beaten[alive][some], {name: flags[some] for name, flags in found.items()})

    def at(self, name: str) -> Flags:
        return self.gaps.get(name, np.zeros(len(self.numbers), np.bool_))


def kept_together(parts: Sequence[KeptRows]) -> KeptRows:
    """The kept rows of several parts of a base file."""
    names = dict.fromkeys(name for part in parts for name in part.gaps)
    numbers = np.concatenate([np.empty(0, np.int64), *(part.numbers for part in parts)])
    return KeptRows(numbers, {name: np.concatenate([part.at(name) for part in parts]) for name in names})


def groups_of(columns: Sequence[str], only: Iterable[frozenset[str] | None], alone: Iterable[str] = ()) -> Groups:
    """The columns in groups, where records have `only` these (None: all of them). `alone`: each in its own."""
    kinds = [*(kind for kind in dict.fromkeys(only) if kind is not None), *map(frozenset, zip(alone))]
    groups: dict[tuple[bool, ...], list[str]] = {}
    for name in columns:
        groups.setdefault(tuple(name in kind for kind in kinds), []).append(name)
    return tuple(map(tuple, groups.values()))


def together(fillings: Sequence[Filling]) -> Filling:
    """Several merges' fillings as one."""
    names = [name for group in fillings[0].groups for name in group]
    groups = groups_of(names, [frozenset(group) for filling in fillings for group in filling.groups])
    alike = [filling.by(groups) for filling in fillings]
    places = np.concatenate([filling.places for filling in alike])
    sources = np.concatenate([filling.sources for filling in alike], axis=1)
    nth = np.concatenate([filling.nth for filling in alike])
    order = np.argsort(places, kind="stable")
    return Filling(places[order], groups, sources[:, order], nth[order])


def find_filling(
    heads: Sequence[Head],
    winners: Winners,
    shown: Numbers,
    kept: KeptRows | None,
    mode: MergeMode,
    columns: Sequence[str],
) -> tuple[Filling, Flags]:
    """What is filled, and which of the winners that are shown are among it: by the numbers of their keys.

    Partial updates, or, with the base rows that are `kept`, rows that have gaps. `heads`: of all blocks.
    """
    places = winners.places[shown]
    if kept is not None:
        partial = _have_gaps(heads, places)
        return _fill_gaps(heads, winners, shown[partial], kept, mode, columns), partial
    only = {number: head.only for number, head in enumerate(heads) if head.only is not None}
    partial = np.isin(places // BLOCK, list(only))
    fold = _by_commit_time if mode is _COMMIT_TIME else _by_event_time
    return _find(heads, winners, shown[partial], groups_of(columns, only.values()), fold), partial


def _have_gaps(heads: Sequence[Head], places: Places) -> Flags:
    some = [head.places[np.any(list(head.gaps.values()), axis=0)] for head in heads if head.gaps]
    flags: Flags = np.isin(places, np.concatenate([np.empty(0, np.int64), *some]))
    return flags


def _fill_gaps(
    heads: Sequence[Head], winners: Winners, numbers: Numbers, kept: KeptRows, mode: MergeMode, columns: Sequence[str]
) -> Filling:
    fold = _with_gaps_by_commit_time if mode is _COMMIT_TIME else _by_event_time
    # Columns with gaps are alone, and so is the key: whatever is filled has one.
    alone = dict.fromkeys([_KEY, *(name for head in heads for name in head.gaps), *kept.gaps])
    groups = groups_of(columns, (), alone)
    filling = _find(heads, winners, np.concatenate([numbers, kept.numbers]), groups, fold)
    at = np.searchsorted(filling.places, winners.places[kept.numbers])
    for sources, group in zip(filling.sources, groups, strict=True):
        if group != (_KEY,):
            sources[at] = np.where(kept.at(group[0]), sources[at], _LACKING)
    return filling


def _find(heads: Sequence[Head], winners: Winners, numbers: Numbers, groups: Groups, fold: Fold) -> Filling:
    places = winners.places[numbers]
    records = _records(heads, winners.keys.take(pa.array(numbers)), groups, compared=fold is _by_event_time)
    state = _State(len(numbers), len(groups))
    for now in _in_turns(records.numbers):
        fold(state, records, now)
    order = np.argsort(places)
    return Filling(places[order], groups, state.sources[:, order], np.zeros(len(places), np.int64))


@dataclass(frozen=True, slots=True)
class _Records:
    """The log records of some keys, in log order: their keys' numbers, and what decides about them.

    `has`: per group of columns, which of them have it.
    """

    numbers: Numbers
    places: Places
    has: Flags
    ranks: Numbers
    deleted: Flags
    barrier: Flags
    from_rows: Flags


def _records(heads: Sequence[Head], keys: pa.Array, groups: Groups, *, compared: bool) -> _Records:
    found = [pc.index_in(head.keys, value_set=keys) for head in heads]
    masks = [flags_of(pc.is_valid(numbers)) for numbers in found]
    some = [head.filter(mask) for head, mask in zip(heads, masks, strict=True)]
    numbers = np.concatenate([of.drop_null().to_numpy().astype(np.int64) for of in found])
    sizes = [len(head) for head in some]
    ranks = ranks_of(pa.chunked_array([head.ordering for head in some])) if compared else np.zeros_like(numbers)
    return _Records(
        numbers=numbers,
        places=np.concatenate([head.places for head in some]),
        has=np.concatenate([_has(head, groups) for head in some], axis=1),
        ranks=ranks,
        deleted=np.concatenate([head.deleted for head in some]),
        barrier=np.concatenate([head.barrier for head in some]),
        from_rows=np.repeat([head.from_rows for head in some], sizes),
    )


def _has(head: Head, groups: Groups) -> Flags:
    has = np.ones((len(groups), len(head)), np.bool_)
    for flags, group in zip(has, groups, strict=True):
        if head.only is not None:
            flags[:] = group[0] in head.only
        elif group[0] in head.gaps:
            flags[:] = ~head.gaps[group[0]]
    return has


def _in_turns(numbers: Numbers) -> Iterator[Numbers]:
    """The first record of each key, then each second one, and so on."""
    by_key, turns = _turns(numbers)
    by_turn = np.argsort(turns, kind="stable")
    yield from np.split(by_key[by_turn], np.cumsum(np.bincount(turns))[:-1])


def _turns(numbers: Numbers) -> tuple[Numbers, Numbers]:
    """Records in the order of their keys; and of each of these, how many of its key come before it."""
    by_key = np.argsort(numbers, kind="stable")
    sorted_ = numbers[by_key]
    return by_key, np.arange(len(by_key)) - np.searchsorted(sorted_, sorted_)


@dataclass(slots=True)
class _State:
    """What the records so far make of each key."""

    keys: int
    groups: int
    there: Flags = field(init=False)
    ranks: Numbers = field(init=False)
    deleted: Flags = field(init=False)
    barrier: Flags = field(init=False)
    from_rows: Flags = field(init=False)
    sources: npt.NDArray[np.int64] = field(init=False)

    def __post_init__(self) -> None:
        self.there, self.deleted, self.barrier, self.from_rows = np.zeros((4, self.keys), np.bool_)
        self.ranks = np.zeros(self.keys, np.int64)
        self.sources = np.full((self.groups, self.keys), _LACKING, np.int64)

    def take(self, records: _Records, now: Numbers, wins: Flags, fills: Flags) -> None:
        """Where a record `wins`, the key's record becomes it; where it `fills`, the other one gives what it lacks."""
        keys, at, has = records.numbers[now], records.places[now], records.has[:, now]
        mine, before = np.where(has, at, _LACKING), self.sources[:, keys]
        filled = np.where(wins, np.where(has, at, before), np.where(before == _LACKING, mine, before))
        self.sources[:, keys] = np.where(fills, filled, np.where(wins, mine, before))
        won, of = keys[wins], now[wins]
        self.there[won] = True
        for mine_, theirs in (
            (self.ranks, records.ranks),
            (self.deleted, records.deleted),
            (self.barrier, records.barrier),
            (self.from_rows, records.from_rows),
        ):
            mine_[won] = theirs[of]


Fold = Callable[[_State, _Records, Numbers], None]


def _by_event_time(state: _State, records: _Records, now: Numbers) -> None:
    keys = records.numbers[now]
    there, barrier = state.there[keys], state.barrier[keys]
    passed_over = there & barrier & ~records.from_rows[now]  # a delete block's delete
    ends = barrier | records.barrier[now]
    loses = passed_over | (there & ~ends & (state.ranks[keys] > records.ranks[now]))
    fills = there & ~state.deleted[keys] & ~records.deleted[now]
    state.take(records, now, ~loses, fills)


def _by_commit_time(state: _State, records: _Records, now: Numbers) -> None:
    keys = records.numbers[now]
    # Hudi fills from a row that says it is deleted, and fails at a delete block's delete.
    fills = state.there[keys] & state.from_rows[keys] & ~records.deleted[now]
    state.take(records, now, np.ones(len(now), np.bool_), fills)


def _with_gaps_by_commit_time(state: _State, records: _Records, now: Numbers) -> None:
    keys = records.numbers[now]
    fills = state.there[keys] & ~state.deleted[keys] & ~records.deleted[now]
    state.take(records, now, np.ones(len(now), np.bool_), fills)


def filled_rows(
    filling: Filling,
    schema: pa.Schema,
    rows_of: Callable[[int], pa.Table],
    base: Callable[[], Iterable[pa.Table]],
    gaps: Gaps,
) -> pa.Table:
    """The rows of a filling, in the columns of the schema.

    `rows_of`: a log block's rows, by its number. `base`: the base file's rows, part by part; where rows of a key are
    told apart (`Filling.nth`), those that are replaced. What no record has stays a gap: an update of a row that is
    nowhere.
    """
    groups = filling.groups
    pieces: list[list[tuple[Numbers, pa.Table]]] = [[] for _ in groups]
    blocks = filling.sources // BLOCK
    # Not `np.unique`, which takes seconds for some million values: there are few blocks.
    for number in np.flatnonzero(np.bincount(blocks[blocks >= 0])):
        rows = rows_of(int(number))
        for group, sources, of, found in zip(groups, filling.sources, blocks, pieces, strict=True):
            at = np.flatnonzero(of == number)
            if len(at):
                found.append((at, rows.select(group).take(pa.array(sources[at] % BLOCK))))
    if (filling.sources < 0).any():
        _from_base(filling, pieces, base)
    columns: dict[str, pa.ChunkedArray] = {}
    for group, found in zip(groups, pieces, strict=True):
        columns.update(_in_order(group, found, len(filling.places), schema, gaps))
    _refuse_unfilled(columns, schema)
    return pa.Table.from_arrays([columns[name] for name in schema.names], schema=schema)


def _refuse_unfilled(columns: Mapping[str, pa.ChunkedArray], schema: pa.Schema) -> None:
    """A column that may not be null has to be filled: no Parquet file could hold the row."""
    for field_ in schema:
        column = columns[field_.name]
        if field_.nullable or not column.null_count:
            continue
        key = columns[_KEY].filter(pc.is_null(column))[0].as_py()
        raise UnsupportedTable(
            f"A partial update of the key {key!r} has no value of {field_.name}, which is required, and the row that "
            "it changes is gone.",
            hint="Unschedule the plan, if there is one, and write the row of this key whole, or delete it.",
        )


def _from_base(
    filling: Filling, pieces: list[list[tuple[Numbers, pa.Table]]], base: Callable[[], Iterable[pa.Table]]
) -> None:
    groups = filling.groups
    keyed = next(number for number, group in enumerate(groups) if _KEY in group)
    order = np.argsort(np.concatenate([at for at, _ in pieces[keyed]]))
    keys = pa.concat_tables([rows.select([_KEY]) for _, rows in pieces[keyed]]).column(_KEY).take(pa.array(order))
    lacking = np.flatnonzero((filling.sources < 0).any(axis=0))
    wanted = _Wanted(keys.take(pa.array(lacking)).combine_chunks(), filling.nth[lacking])
    for rows in base():
        there, found_of = wanted.among(rows.column(_KEY))
        if not len(there):
            continue
        at = lacking[found_of]
        for group, sources, found in zip(groups, filling.sources, pieces, strict=True):
            needed = sources[at] < 0
            if needed.any():
                found.append((at[needed], rows.select(group).take(pa.array(there[needed]))))


class _Wanted:
    """Base rows that are asked for: the nth row of a key. They are asked for in the order of the base file."""

    def __init__(self, keys: pa.Array, nth: Numbers) -> None:
        self._keys = pc.unique(keys)
        self._most = int(nth.max(initial=0)) + 1
        codes = pc.index_in(keys, value_set=self._keys).to_numpy().astype(np.int64) * self._most + nth
        self._order = np.argsort(codes)
        self._codes = codes[self._order]
        self._seen = np.zeros(len(self._keys), np.int64)

    def among(self, keys: pa.ChunkedArray) -> tuple[Numbers, Numbers]:
        """Which of these rows are wanted, and as which of the wanted."""
        numbers = pc.index_in(keys, value_set=self._keys)
        there = np.flatnonzero(flags_of(pc.is_valid(numbers)))
        hits = numbers.drop_null().to_numpy().astype(np.int64)
        by_key, turns = _turns(hits)
        nth = self._seen[hits]
        nth[by_key] += turns
        self._seen += np.bincount(hits, minlength=len(self._seen))
        of = np.searchsorted(self._codes, hits * self._most + nth)
        asked = nth < self._most
        asked[asked] = self._codes[of[asked]] == (hits * self._most + nth)[asked]
        return there[asked], self._order[of[asked]]


def _in_order(
    group: Sequence[str], found: Sequence[tuple[Numbers, pa.Table]], size: int, schema: pa.Schema, gaps: Gaps
) -> Iterator[tuple[str, pa.ChunkedArray]]:
    at = np.concatenate([np.empty(0, np.int64), *(places for places, _ in found)])
    there = np.zeros(size, np.bool_)
    there[at] = True
    lacking = np.flatnonzero(~there)
    order = pa.array(np.argsort(np.concatenate([at, lacking])))
    for name in group:
        kind = schema.field(name).type
        chunks = [chunk for _, rows in found for chunk in rows.column(name).cast(kind).chunks]
        column = pa.chunked_array([*chunks, gaps.left(kind, len(lacking))], kind)
        yield name, column.take(order)
