"""Which record of each key wins, among log records and then against base rows. Pure; whole columns at a time.

Keys become numbers by one hash table (Arrow's), and every rule is arithmetic over arrays of a record's key number,
ordering value and place. Nothing is sorted: the greatest ordering value of a key is found first, then the last
place that has it. The rules are those of `merge`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import assert_never

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_assets.engine.errors import UnsupportedTable
from hudi_assets.engine.merging.ordering import WithNulls, at_least, ranks_of, refuse_undecided, with_nulls
from hudi_assets.engine.model import MergeMode

Places = npt.NDArray[np.int64]
"""Where log records stand in log order: block number above, row number in the block below; ascending."""
Flags = npt.NDArray[np.bool_]
BLOCK = 1 << 40
_NONE = -1


@dataclass(frozen=True, slots=True)
class Head:
    """What decides about one block's records, in their order.

    `deleted`: they are deletes, of whichever kind; `barrier`: deletes in commit order; `from_rows`: of a data block.
    `only`: the columns that partial updates have; None for whole rows, and deletes. `gaps`: where columns have some.
    """

    keys: pa.Array
    ordering: pa.Array
    deleted: Flags
    barrier: Flags
    places: Places
    from_rows: bool
    only: frozenset[str] | None = None
    gaps: Mapping[str, Flags] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.places)

    @property
    def nbytes(self) -> int:
        arrays: int = self.keys.nbytes + self.ordering.nbytes
        gaps = sum(flags.nbytes for flags in self.gaps.values())
        return arrays + self.deleted.nbytes + self.barrier.nbytes + self.places.nbytes + gaps

    def filter(self, mask: Flags) -> Head:
        """The records where `mask` is true."""
        if mask.all():
            return self
        chosen = pa.array(mask)
        return Head(
            self.keys.filter(chosen),
            self.ordering.filter(chosen),
            self.deleted[mask],
            self.barrier[mask],
            self.places[mask],
            self.from_rows,
            self.only,
            {name: flags[mask] for name, flags in self.gaps.items()},
        )


@dataclass(slots=True)
class FirstMatches:
    """A key may stand twice in a base file. By keys, Hudi's readers change its first row alone.

    `alone`: per number of a key, whether its record does so. Base rows are asked for in their order.
    """

    alone: Flags
    _met: Flags = field(init=False)

    def __post_init__(self) -> None:
        self._met = np.zeros(len(self.alone), np.bool_)

    def later(self, hits: npt.NDArray[np.int64]) -> Flags:
        """Which of these matches, by their keys' numbers, are not the first of their key."""
        later = np.zeros(len(hits), np.bool_)
        mine = np.flatnonzero(self.alone[hits])
        numbers, before = hits[mine], np.count_nonzero(self._met)
        met = self._met[numbers]
        self._met[numbers] = True
        # Sorting is slow, and seldom needed.
        if np.count_nonzero(self._met) - before < len(numbers):
            first = np.zeros(len(numbers), np.bool_)
            first[np.unique(numbers, return_index=True)[1]] = True
            later[mine] = met | ~first
        return later


@dataclass(frozen=True, slots=True)
class Matched:
    """Per base row: a log record replaces it; it is a later one of its key, which log records do not change.

    And the numbers of the keys that a base row keeps, with its place, and of those whose row is replaced.
    """

    replaced: Flags
    later: Flags
    beaten: npt.NDArray[np.int64]
    keeping: npt.NDArray[np.int64]
    replacing: npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Winners:
    """One record per key of some log records. `barred`: no base row of the key survives."""

    keys: pa.Array
    ordering: pa.ChunkedArray
    places: Places  # in the order of the keys
    deleted: Flags
    barrier: Flags
    barred: Flags

    def beside(self, left: Sequence[Head]) -> Winners:
        """The same, where these records are left for later merges.

        A row among them is compared with the base row then. So a delete in commit order that came before it ends no
        base row above the least of them.
        """
        if not self.barrier.any() or not any(len(head) for head in left):
            return self
        keys = pa.chunked_array([head.keys for head in left])
        ordering = pa.chunked_array([head.ordering for head in left], self.ordering.type)
        least = pa.table({"key": keys, "at": ordering}).group_by("key").aggregate([("at", "min")])
        found = pc.index_in(self.keys, value_set=least.column("key"))
        compared = flags_of(pc.is_valid(found)) & self.barrier
        at = pc.if_else(pa.array(compared), least.column("at_min").take(found), self.ordering)
        return replace(self, ordering=at, barred=self.barred & ~compared)

    def first_matches(self, by_positions: bool, gaps: bool) -> FirstMatches | None:
        """For `match`: which log records change the first base row of their key alone. None: none of them does.

        All do that are merged by keys. Where they have positions, each row of the key has its record. Here rows with
        gaps are filled from the first all the same.
        """
        if not by_positions:
            return FirstMatches(np.ones(len(self.places), np.bool_))
        return FirstMatches(~self.deleted) if gaps else None

    def match(
        self, keys: pa.ChunkedArray, ordering: pa.ChunkedArray | None, first: FirstMatches | None = None
    ) -> Matched:
        """Against base rows; `ordering` may be None where no mode compares them (every key is barred)."""
        if not len(keys):
            none, numbers = np.empty(0, np.bool_), np.empty(0, np.int64)
            return Matched(none, none, numbers, numbers, numbers)
        numbers = pc.index_in(keys, value_set=self.keys)
        found = flags_of(pc.is_valid(numbers))
        hits = numbers.drop_null().to_numpy().astype(np.int64)
        later = np.zeros(len(keys), np.bool_)
        if first is not None and (behind := first.later(hits)).any():
            later[np.flatnonzero(found)[behind]] = True
            found = found & ~later
            hits = hits[~behind]
        wins = self.barred[hits]
        open_ = np.flatnonzero(~wins)
        if len(open_) and ordering is not None:
            base = ordering.take(pa.array(np.flatnonzero(found)[open_]))
            log_wins, undecided = at_least(self.ordering.take(pa.array(hits[open_])), base)
            if undecided.any():
                refuse_undecided(self.keys[hits[open_][undecided][0]].as_py())
            wins = wins.copy()
            wins[open_] = log_wins
        replaced = np.zeros(len(keys), np.bool_)
        replaced[found] = wins
        return Matched(replaced, later, hits[~wins], np.flatnonzero(found)[~wins], hits[wins])

    def outcome(
        self, beaten: npt.NDArray[np.int64], replacing: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Which winners are rows of the result, and which are deletes with an ordering value: by their key's number.

        `beaten`: the numbers of the keys that a base row keeps. `replacing`: of those whose row is replaced.
        """
        left = np.ones(len(self.places), np.bool_)
        left[beaten] = False
        left[replacing] = True  # of several rows of the key a later one was kept
        return np.flatnonzero(left & ~self.deleted), np.flatnonzero(left & self.deleted & ~self.barrier)

    def repeated(self, replacing: npt.NDArray[np.int64]) -> tuple[Places, npt.NDArray[np.int64]]:
        """The places of rows that replace several base rows, ascending, and how often more than once each."""
        times = np.bincount(replacing, minlength=len(self.places))
        numbers = np.flatnonzero((times > 1) & ~self.deleted)
        numbers = numbers[np.argsort(self.places[numbers])]
        return self.places[numbers], times[numbers] - 1


def find_winners(heads: Sequence[Head], mode: MergeMode, *, alive: bool = False) -> Winners:
    """The winner of each key among log records, which are in log order; `alive`: `without_ended` was asked before."""
    _refuse_partial(heads, mode)
    keys, numbers = _numbered(heads)
    deleted, barrier = np.concatenate([h.deleted for h in heads]), np.concatenate([h.barrier for h in heads])
    ordering = pa.chunked_array([h.ordering for h in heads])
    barred = np.ones(len(keys), np.bool_)
    match mode:
        case MergeMode.EVENT_TIME_ORDERING:
            ended = np.zeros(len(numbers), np.bool_) if alive else _ended(heads, numbers, len(keys))
            won = _by_event_time(numbers, len(keys), ranks_of(ordering), barrier, ended)
            if (nulls := with_nulls(ordering)) is not None:
                other = _by_event_time(numbers, len(keys), nulls.highest, barrier, ended)
                compared = np.flatnonzero(~ended & ~barrier)
                undecided = [
                    *np.flatnonzero(won != other),
                    *_unlike_deletes(numbers, nulls, _from_rows(heads), compared),
                ]
                if undecided:
                    refuse_undecided(keys[int(undecided[0])].as_py())
            barred = barrier[won]
        case MergeMode.COMMIT_TIME_ORDERING:
            won = _last(numbers, len(keys), np.arange(len(numbers)))
        case MergeMode.OVERWRITE_WITH_LATEST | MergeMode.EVENT_TIME_ORDERING_0X:
            from_rows = _from_rows(heads)
            if not _compared_by_0_x(ordering.type):
                barrier = barrier | ~from_rows
            won = _fold_as_0_x(numbers, len(keys), ranks_of(ordering), from_rows, barrier)
            if mode.compares_base_rows:
                barred = ~from_rows[won]  # a delete block's delete has no row that 0.x could compare with the base row
        case _:
            assert_never(mode)
    return Winners(
        keys=keys,
        ordering=ordering.take(pa.array(won)),
        places=np.concatenate([h.places for h in heads])[won],
        deleted=deleted[won],
        barrier=barrier[won],
        barred=barred,
    )


def _refuse_partial(heads: Sequence[Head], mode: MergeMode) -> None:
    if not mode.merges_partial_updates and any(head.only is not None for head in heads):
        raise UnsupportedTable(f"Partial updates are not merged here in mode {mode}.")


def _compared_by_0_x(type_: pa.DataType) -> bool:
    """False where a delete block's value and a row's, raw from Avro, are of two Java classes: then the delete wins."""
    return not (pa.types.is_string(type_) or pa.types.is_date(type_) or pa.types.is_decimal(type_))


def without_ended(heads: Sequence[Head]) -> list[Head]:
    """The records that deletes in commit order leave anything of, by 1.x's rules for event-time ordering."""
    if not any(head.barrier.any() for head in heads):
        return list(heads)
    keys, numbers = _numbered(heads)
    parts = np.split(~_ended(heads, numbers, len(keys)), np.cumsum([len(head) for head in heads])[:-1])
    return [head.filter(part) for head, part in zip(heads, parts, strict=True)]


def _ended(heads: Sequence[Head], numbers: npt.NDArray[np.int64], keys: int) -> Flags:
    """Records of which a delete in commit order leaves nothing, as Hudi 1.x merges.

    Those before it; and after it a delete block's deletes, until a data block's record of the key comes.
    """
    barrier = np.concatenate([h.barrier for h in heads])
    if not barrier.any():
        return np.zeros(len(numbers), np.bool_)
    records = np.arange(len(numbers))
    last = _last(numbers, keys, np.flatnonzero(barrier))
    rows = np.flatnonzero(_from_rows(heads) & (records > last[numbers]))
    first = np.full(keys, len(numbers), np.int64)
    np.minimum.at(first, numbers[rows], rows)
    passed_over = (last[numbers] > _NONE) & (records > last[numbers]) & (records < first[numbers])
    return (records < last[numbers]) | passed_over


def _from_rows(heads: Sequence[Head]) -> Flags:
    return np.repeat(np.array([h.from_rows for h in heads], np.bool_), [len(h) for h in heads])


def flags_of(mask: pa.Array | pa.ChunkedArray) -> Flags:
    """A boolean column without nulls."""
    array = mask.combine_chunks() if isinstance(mask, pa.ChunkedArray) else mask
    flags: Flags = array.to_numpy(zero_copy_only=False)
    return flags.astype(np.bool_, copy=False)


def _numbered(heads: Sequence[Head]) -> tuple[pa.Array, npt.NDArray[np.int64]]:
    """The distinct keys, and each record's key as its number among them."""
    records = pa.chunked_array([h.keys for h in heads if len(h)], pa.string())
    if not len(records):
        return pa.array([], pa.string()), np.empty(0, np.int64)
    encoded = records.dictionary_encode(null_encoding="encode")
    keys = encoded.chunk(encoded.num_chunks - 1).dictionary
    indices = [chunk.indices.to_numpy() for chunk in encoded.chunks]
    return keys, np.concatenate(indices).astype(np.int64)


def _last(numbers: npt.NDArray[np.int64], keys: int, records: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Per key, the last of the given records (ascending) that have it; -1 where none has."""
    last = np.full(keys, _NONE, np.int64)
    np.maximum.at(last, numbers[records], records)
    return last


def _greatest(
    numbers: npt.NDArray[np.int64], keys: int, ranks: npt.NDArray[np.int64], records: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Per key, the last of those of the given records that have the key's greatest rank; -1 where none has it."""
    best = np.full(keys, np.iinfo(np.int64).min, np.int64)
    np.maximum.at(best, numbers[records], ranks[records])
    return _last(numbers, keys, records[ranks[records] == best[numbers[records]]])


def _by_event_time(
    numbers: npt.NDArray[np.int64], keys: int, ranks: npt.NDArray[np.int64], barrier: Flags, ended: Flags
) -> npt.NDArray[np.int64]:
    if barrier.any():
        # The delete in commit order loses to whatever it leaves after it, whatever the ordering value.
        ranks = np.where(barrier, np.iinfo(np.int64).min, ranks)
    return _greatest(numbers, keys, ranks, np.flatnonzero(~ended))


def _unlike_deletes(
    numbers: npt.NDArray[np.int64], nulls: WithNulls, from_rows: Flags, compared: npt.NDArray[np.int64]
) -> Iterator[int]:
    """Keys of which a delete block's delete comes after a greater record that has its nulls elsewhere.

    Hudi compares no two such values among log records: the delete wins. With the base row that the record becomes by a
    compaction it does compare it.
    """
    met: dict[int, list[int]] = {}
    some = np.isin(numbers[compared], numbers[compared[nulls.patterns[compared] > 0]])
    for record in compared[some].tolist():
        before = met.setdefault(int(numbers[record]), [])
        if not from_rows[record] and any(
            nulls.patterns[one] != nulls.patterns[record] and nulls.may_exceed(one, record) for one in before
        ):
            yield int(numbers[record])
        before.append(record)


def _fold_as_0_x(
    numbers: npt.NDArray[np.int64], keys: int, ranks: npt.NDArray[np.int64], from_rows: Flags, barrier: Flags
) -> npt.NDArray[np.int64]:
    """Keys with deletes from delete blocks are folded one record after the other: a delete can end a comparison."""
    folded = np.zeros(keys, np.bool_)
    folded[numbers[~from_rows]] = True
    won = _greatest(numbers, keys, ranks, np.flatnonzero(~folded[numbers]))
    best: dict[int, int] = {}
    for record in np.flatnonzero(folded[numbers]).tolist():
        key = int(numbers[record])
        old = best.get(key)
        # What was there has a greater ordering value, and this is neither after nor itself a delete that ends it.
        loses = old is not None and ranks[old] > ranks[record]
        if loses and (from_rows[old] if from_rows[record] else not barrier[record]):
            continue
        best[key] = record
    won[list(best)] = list(best.values())
    return won
