"""Merging a file slice within a memory budget, whatever its size. Pure: `SliceRecords` reads.

First it is decided which rows are in the result, by keys and ordering values alone; then base file and log blocks are
read part by part and what was decided for is given out. What is held at a time:
- keys and ordering values of the log records ("heads"), within half of the budget: where they are more, the keys are
  dealt into parts by their hash, and each part is decided for in a pass of its own over logs and base file;
- log blocks that were read whole already, within the other half: the others are read again when their rows are due.
  Of Avro blocks only the rows that win are decoded then;
- a quarter of the budget of base rows (where all of them fit, they are read once), one log block, and a bit or a byte
  per row.
`docs/explanation/compaction.md` says what that comes to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

import numpy as np
import polars as pl
import pyarrow as pa

from hudi_assets.engine.errors import UnsupportedTable
from hudi_assets.engine.merging.gaps import Gaps
from hudi_assets.engine.merging.merge import KEY, Deletes, LogRecords, Rows, chunked, head_columns, head_of, rows_of
from hudi_assets.engine.merging.ordering import Ordering, ordering_values
from hudi_assets.engine.merging.partial import Filling, KeptRows, filled_rows, find_filling, kept_together, together
from hudi_assets.engine.merging.winners import BLOCK, Flags, Head, Places, find_winners, without_ended
from hudi_assets.engine.model import MergeMode

DEFAULT_MEMORY: Final = 1 << 30
_MOST_PARTS: Final = 1 << 12
_FILTERED_ROWS: Final = 1 << 17
_FEWEST_ROWS: Final = 1 << 12
_NOBODY: Final = np.empty(0, np.int64)
_MANY: Final = 0.5  # with so many of a block's rows chosen, the others are not worth stepping over


class Leaving(Protocol):
    """What a merge leaves to the readers of the new slice, beside the rows (event-time ordering only)."""

    def above(self, head: Head) -> Flags:
        """The records that do not take part in the merge, but are left as they are."""

    def met(self, ordering: pa.Array) -> Flags:
        """Of deletes that won, with their ordering values: those that a record elsewhere may still lose to."""


class SliceRecords(Protocol):
    """What a merge reads: a base file's rows, if there is one, and log blocks in log order, numbered from 0."""

    @property
    def schema(self) -> pa.Schema: ...
    @property
    def block_sizes(self) -> Sequence[int]:
        """The bytes of each block as it is stored."""

    @property
    def by_positions(self) -> bool:
        """True where all log records say which rows of the base file they change.

        Hudi 1.x then gives each row of a key its record. By keys it changes the first row alone.
        """

    def base(self, columns: Sequence[str], most_bytes: int) -> Iterator[pa.Table]:
        """Some columns of all base rows in their order, about `most_bytes` at a time; the same parts each time."""

    def base_fits(self, most_bytes: int) -> bool:
        """True where all base rows surely take no more in Arrow."""

    def reads_chosen(self, number: int) -> bool:
        """True where of a data block some rows are read without decoding the others."""

    def block(self, number: int, columns: Sequence[str], chosen: Flags | None = None) -> LogRecords:
        """A block's records, rows in those of the columns alone; `chosen`: of a block that `reads_chosen`, these."""


@dataclass
class _Decided:
    """A flag per record of all blocks, in log order, and per base row."""

    rows: Flags
    tombstones: Flags
    above: Flags
    replaced: Flags | None = None  # None: no base row is
    later: Flags | None = None  # of a key that stands twice; None: there is none
    repeated: dict[int, int] = field(default_factory=dict)  # record → how often more than once it is in the result


@dataclass
class SliceMerge:
    """One merge. When it is made everything is decided for: damage that shows then, shows before a row is given out.

    `ordering` is empty where the table has no ordering field. `memory` in bytes. Rows may come `without` one of their
    columns, that decides nothing. `gaps`: what is one, where rows have some. `parts`: of how many the keys are.
    """

    source: SliceRecords
    ordering: Ordering
    mode: MergeMode
    memory: int = DEFAULT_MEMORY
    leaving: Leaving | None = None
    without: str | None = None
    gaps: Gaps | None = None
    parts: int = field(default=1, init=False)
    log_records: int = field(default=0, init=False)
    _only: dict[int, frozenset[str]] = field(default_factory=dict, init=False)  # of blocks with partial updates
    _fillings: list[Filling] = field(default_factory=list, init=False)
    _kept: dict[int, LogRecords] = field(default_factory=dict, init=False)
    _kept_bytes: int = field(default=0, init=False)
    _kept_base: list[pa.Table] | None = field(default=None, init=False)
    _starts: Places = field(init=False)
    _decided: _Decided = field(init=False)

    def __post_init__(self) -> None:
        heads, sizes = self._first_heads()
        self._starts = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
        self.log_records = int(self._starts[-1])
        rows, tombstones, above = np.zeros((3, self.log_records), np.bool_)
        self._decided = _Decided(rows, tombstones, above)
        for part in range(self.parts):
            self._decide(heads if part == 0 else list(self._heads(part)))

    # ------------------------------------------------------------------------------------------ deciding

    def _first_heads(self) -> tuple[list[Head], list[int]]:
        """The first part's heads, in as many parts as the budget asks for, and the blocks' numbers of records."""
        heads: list[Head] = []
        sizes: list[int] = []
        held = 0
        for number in range(len(self.source.block_sizes)):
            head = head_of(self._for_head(number), number, self.ordering, self.gaps)
            if head.only is not None:
                self._only[number] = head.only
            sizes.append(len(head))
            heads.append(head.filter(_of_part(head, 0, self.parts)))
            held += heads[-1].nbytes
            while held > self.memory // 2 and self.parts < _MOST_PARTS:
                self.parts *= 2
                heads = [h.filter(_of_part(h, 0, self.parts)) for h in heads]
                held = sum(h.nbytes for h in heads)
        return heads, sizes

    def _heads(self, part: int) -> Iterator[Head]:
        for number in range(len(self.source.block_sizes)):
            head = head_of(self._for_head(number), number, self.ordering, self.gaps)
            yield head.filter(_of_part(head, part, self.parts))

    def _for_head(self, number: int) -> LogRecords:
        """A block's records: whole, and kept, while there is room; else those columns that decide."""
        if number in self._kept:
            return self._kept[number]
        room = self.memory // 2 - self._kept_bytes
        if self.source.block_sizes[number] > room or (self.gaps is None and self.source.reads_chosen(number)):
            return self.source.block(number, head_columns(self.ordering) if self.gaps is None else self._names)
        records = self.source.block(number, self._names)
        size = records.table.nbytes if isinstance(records, Rows) else records.keys.nbytes + records.ordering.nbytes
        if size <= room:
            self._kept[number] = records
            self._kept_bytes += size
        else:
            self._kept_bytes = self.memory  # the next one would hardly fit
        return records

    def _decide(self, heads: list[Head]) -> None:
        above: list[Head] = []
        if self.leaving is not None:
            if self._only or self.gaps is not None:
                raise UnsupportedTable("What a merge of partial updates leaves in log files is not known.")
            heads, above = self._parted(without_ended(heads), self.leaving)
        if not any(len(head) for head in heads):
            return
        decided = self._decided
        winners = find_winners(heads, self.mode, alive=self.leaving is not None).beside(above)
        compared = self.ordering if self.mode.compares_base_rows else ()
        first = winners.first_matches(self.source.by_positions, self.gaps is not None)
        found, kept = [], []
        # Where a base row may win, its gaps are asked for too.
        for rows in self._base([KEY, *compared] if self.gaps is None or not compared else self._names):
            values = chunked(ordering_values(rows, compared)) if compared else None
            matched = winners.match(rows.column(KEY), values, first)
            if self.gaps is not None:
                kept.append(KeptRows.of(rows, matched, winners, self.gaps))
            found.append(matched)
        self._mark([matched.replaced for matched in found], [matched.later for matched in found])
        replacing = np.concatenate([_NOBODY, *(matched.replacing for matched in found)])
        shown, tombstones = winners.outcome(np.concatenate([_NOBODY, *(m.beaten for m in found)]), replacing)
        places, times = winners.repeated(replacing)
        if self._only or self.gaps is not None:
            base = None if self.gaps is None else kept_together(kept)
            filling, partial = find_filling(heads, winners, shown, base, self.mode, self._names)
            self._fillings.append(filling.repeated(places, times))
            shown = shown[~partial]
            alone = np.isin(places, winners.places[shown])
            places, times = places[alone], times[alone]
        decided.repeated |= dict(zip(self._flat(places).tolist(), times.tolist(), strict=True))
        decided.rows[self._flat(winners.places[shown])] = True
        if self.leaving is not None and len(tombstones):
            met = self.leaving.met(winners.ordering.take(pa.array(tombstones)).combine_chunks())
            decided.tombstones[self._flat(winners.places[tombstones[met]])] = True

    def _mark(self, replaced: Sequence[Flags], later: Sequence[Flags]) -> None:
        """Of the parts of the base file, by this pass over it."""
        decided = self._decided
        if replaced:
            now = np.concatenate(replaced)
            decided.replaced = now if decided.replaced is None else decided.replaced | now
        if any(flags.any() for flags in later):
            now = np.concatenate(later)
            decided.later = now if decided.later is None else decided.later | now

    def _base(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Base rows in these columns at least; read whole, and kept for `rows`, where they fit."""
        if self._kept_base is None and self.parts == 1 and self.source.base_fits(self.memory // 4):
            self._kept_base = list(self.source.base(self._names, self.memory // 4))
        yield from self.source.base(columns, self.memory // 4) if self._kept_base is None else self._kept_base

    @property
    def _names(self) -> list[str]:
        return [name for name in self.source.schema.names if name != self.without]

    def _parted(self, heads: list[Head], leaving: Leaving) -> tuple[list[Head], list[Head]]:
        """The records that take part, and those above, which are marked."""
        flags = [leaving.above(head) for head in heads]
        above = [head.filter(of) for head, of in zip(heads, flags, strict=True)]
        for head in above:
            self._decided.above[self._flat(head.places)] = True
        return [head.filter(~of) for head, of in zip(heads, flags, strict=True)], above

    def _flat(self, places: Places) -> Places:
        """Places as numbers of records, counted over all blocks."""
        flat: Places = self._starts[places // BLOCK] + places % BLOCK
        return flat

    # ------------------------------------------------------------------------------------------ giving out

    def rows(self) -> Iterator[pa.Table]:
        """The merged rows: base rows that stay, in their order, then log rows and then partial updates in log order.

        Last come the later base rows of keys that stand twice, so that the first row of a key stays the first.
        """
        decided = self._decided
        gone = decided.replaced
        if gone is not None and decided.later is not None:
            gone = gone | decided.later
        yield from self._base_rows(None if gone is None else ~gone)
        for records in self._taken(decided.rows):
            if isinstance(records, Rows):
                yield records.table
        if decided.repeated:
            yield from self._repeated(decided.repeated)
        if self._fillings:
            yield from self._filled(together(self._fillings))
        if decided.later is not None:
            yield from self._base_rows(decided.later)

    def _base_rows(self, chosen: Flags | None) -> Iterator[pa.Table]:
        """The base rows that are chosen; None: all."""
        start = 0
        for rows in self._base(self._names):
            end = start + len(rows)
            yield rows if chosen is None else _filtered(rows, chosen[start:end])
            start = end

    def _repeated(self, times: Mapping[int, int]) -> Iterator[pa.Table]:
        """Log rows as often as they are in the result beyond once."""
        flags = np.zeros(self.log_records, np.bool_)
        flags[list(times)] = True
        left = np.array([times[record] for record in sorted(times)])
        for records in self._taken(flags):
            rows = rows_of(records)
            yield rows.take(pa.array(np.repeat(np.arange(len(rows)), left[: len(rows)])))
            left = left[len(rows) :]

    def _filled(self, filling: Filling) -> Iterator[pa.Table]:
        """Partial updates as whole rows. All log blocks and base rows are read for each part that the memory holds."""
        schema = pa.schema([field for field in self.source.schema if field.name != self.without])
        step = self._rows_at_once()
        for start in range(0, len(filling.places), step):
            part = filling.slice(start, step)
            yield filled_rows(part, schema, self._rows_of, self._to_fill_from, self.gaps or Gaps())

    def _to_fill_from(self) -> Iterator[pa.Table]:
        """All base rows. Where each row of a key has its record, those that have one."""
        each = self.source.by_positions and self.gaps is None
        return self._base_rows(self._decided.replaced if each else None)

    def _rows_at_once(self) -> int:
        first = next(iter(self._base(self._names)), None)
        if first is None or not len(first):
            return _FILTERED_ROWS
        bytes_each: int = first.nbytes // len(first) + 1
        return max(_FEWEST_ROWS, self.memory // 4 // bytes_each)

    def _rows_of(self, number: int) -> pa.Table:
        kept = self._kept.get(number)
        return rows_of(self.source.block(number, self._names) if kept is None else kept)

    def left(self) -> Iterator[LogRecords]:
        """What is left beside the rows: deletes, then records above, each in log order."""
        yield from self._taken(self._decided.tombstones)
        yield from self._taken(self._decided.above)

    def _taken(self, flags: Flags) -> Iterator[LogRecords]:
        for number in range(len(self.source.block_sizes)):
            mask = flags[self._starts[number] : self._starts[number + 1]]
            if not mask.any():
                continue
            if number not in self._kept and mask.mean() < _MANY and self.source.reads_chosen(number):
                yield self.source.block(number, self._names, mask)
                continue
            records = self._kept[number] if number in self._kept else self.source.block(number, self._names)
            if isinstance(records, Rows) and mask.all():
                yield records
            elif isinstance(records, Rows):
                for start in range(0, len(mask), _FILTERED_ROWS):
                    chosen = pa.array(mask[start : start + _FILTERED_ROWS])
                    yield Rows(records.table.slice(start, _FILTERED_ROWS).filter(chosen), records.only)
            else:
                chosen = pa.array(mask)
                yield Deletes(records.keys.filter(chosen), records.ordering.filter(chosen))


def _filtered(rows: pa.Table, mask: Flags) -> pa.Table:
    return rows if mask.all() else rows.filter(pa.array(mask))


def _of_part(head: Head, part: int, parts: int) -> Flags:
    """Which records have keys of this part: by a hash, so that no part is much larger than the others."""
    if parts == 1:
        return np.ones(len(head), np.bool_)
    flags: Flags = (pl.Series(head.keys).hash() % parts == part).to_numpy()
    return flags
