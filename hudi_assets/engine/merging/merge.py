"""Which record of a key wins, in each merge mode, vectorised. Pure; takes and gives Arrow tables.

EVENT_TIME_ORDERING (DefaultHoodieRecordPayload; Hudi 1.2's EventTimeRecordMerger for deletes):
- the log records are merged into one first, and that one with the base row: the greater ordering value wins; of equal
  ones the later in log order; every log is later than the base;
- a delete takes part with its ordering value. One without, or with the Integer 0, ends the log records before it, and
  the base row where it is the one that is left; after it a delete block's deletes are passed over until a row comes,
  and that row wins;
- a row whose `_hoodie_is_deleted` is true is a row with that row's ordering value, that leaves none where it wins.
COMMIT_TIME_ORDERING: the last record in log order wins, whatever it is.
OVERWRITE_WITH_LATEST (OverwriteWithLatestAvroPayload as Hudi 0.x has it): among log records the greater
ordering value, of equal ones the later; a row after a delete block's delete always wins, a delete loses to a
row before it with a greater ordering value. What wins among the log records replaces the base row.
EVENT_TIME_ORDERING_0X (DefaultHoodieRecordPayload as Hudi 0.x has it): the same among log records. A row that wins
there is compared with the base row, of equal ones the log's wins; a delete block's delete ends the base row
whatever its ordering value.

A null ordering value in a data row loses against any other. Of several fields (event-time ordering of 1.x alone) the
first decides in which two records differ (`ordering`). Records that hold some of a row's columns, and rows with gaps
(`gaps`), are filled from older ones (`partial`). `docs/explanation/merge.md` says what was tried.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_assets.engine.errors import UnsupportedTable
from hudi_assets.engine.merging.gaps import Gaps
from hudi_assets.engine.merging.ordering import Ordering, Values, ordering_values
from hudi_assets.engine.merging.partial import KeptRows, filled_rows, find_filling
from hudi_assets.engine.merging.winners import BLOCK, Flags, Head, Places, find_winners, flags_of
from hudi_assets.engine.model import MergeMode

KEY = "_hoodie_record_key"
IS_DELETED = "_hoodie_is_deleted"


@dataclass(frozen=True, slots=True)
class Rows:
    """Records of one log block, in the table's schema.

    `only`: the columns that partial updates have, where the others are null; None: whole rows.
    """

    table: pa.Table
    only: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class Deletes:
    """Deletes of one log block: keys, and their ordering values in the ordering column's Arrow type.

    Of several ordering fields these are structs.

    A null ordering value is a delete in commit order: it deletes whatever came before.
    """

    keys: pa.Array
    ordering: pa.Array


LogRecords = Rows | Deletes


def merge(
    base: pa.Table | None,
    logs: Sequence[LogRecords],
    ordering: Ordering,
    schema: pa.Schema,
    mode: MergeMode = MergeMode.EVENT_TIME_ORDERING,
    gaps: Gaps | None = None,
    by_positions: bool = False,
) -> pa.Table:
    """The rows of a file slice after merging its log records, in log order, into its base rows.

    `base` and every `Rows.table` have `schema`; `ordering` is empty where the table has no such field. Where a null in
    one of several fields would decide, `UnsupportedTable` names the key. `by_positions`: as `SliceRecords` has it.
    Surviving base rows come first, in their order, then the winning log rows in log order, then partial updates, and
    then the later base rows of keys that stand twice: the first of a key has to stay the first.
    """
    start = base if base is not None else schema.empty_table()
    if not logs:
        return start
    heads = [head_of(block, number, ordering, gaps) for number, block in enumerate(logs)]
    only = {number: head.only for number, head in enumerate(heads) if head.only is not None}
    winners = find_winners(heads, mode)
    first = winners.first_matches(by_positions, gaps is not None)
    matched = winners.match(start.column(KEY), chunked(ordering_values(start, ordering)), first)
    shown, _ = winners.outcome(matched.beaten, matched.replacing)
    filling, whole = None, shown
    if only or gaps is not None:
        kept = None if gaps is None else KeptRows.of(start, matched, winners, gaps)
        filling, partial = find_filling(heads, winners, shown, kept, mode, schema.names)
        whole = shown[~partial]
    gone = matched.replaced | matched.later
    base_rows = start.filter(pa.array(~gone)) if gone.any() else start
    taken = take(logs, np.sort(winners.places[whole]))
    parts = [base_rows, *(rows_of(block) for block in taken if isinstance(block, Rows))]
    places, times = winners.repeated(matched.replacing)
    alone = np.isin(places, winners.places[whole])
    for place, more in zip(places[alone].tolist(), times[alone].tolist(), strict=True):
        (block,) = take(logs, np.array([place]))
        parts += [rows_of(block)] * more
    if filling is not None and len(filling.places):
        filling = filling.repeated(places, times)
        filled_from = start.filter(pa.array(matched.replaced)) if first is None else start
        parts.append(filled_rows(filling, schema, lambda n: rows_of(logs[n]), lambda: [filled_from], gaps or Gaps()))
    if matched.later.any():
        parts.append(start.filter(pa.array(matched.later)))
    return pa.concat_tables(parts)


def rows_of(block: LogRecords) -> pa.Table:
    """A data block's rows."""
    assert isinstance(block, Rows)
    return block.table


def take(logs: Sequence[LogRecords], places: Places) -> list[LogRecords]:
    """The records at these places, block by block in log order; blocks of which nothing is taken are left out."""
    taken: list[LogRecords] = []
    for number, block in enumerate(logs):
        low, high = np.searchsorted(places, [number * BLOCK, (number + 1) * BLOCK])
        if high > low:
            inside = pa.array(places[low:high] - number * BLOCK)
            if high - low == size_of(block):
                taken.append(block)
            elif isinstance(block, Rows):
                taken.append(Rows(block.table.take(inside), block.only))
            else:
                taken.append(Deletes(block.keys.take(inside), block.ordering.take(inside)))
    return taken


def ordering_column(block: LogRecords, ordering: Ordering) -> Values:
    """The ordering values of a block's records; nulls where the table has no ordering field."""
    if isinstance(block, Deletes):
        return block.ordering if ordering else pa.nulls(size_of(block), pa.int64())
    return ordering_values(block.table, ordering)


def places_of(block: LogRecords, number: int) -> Places:
    """The places of the records of block `number`."""
    return np.arange(size_of(block), dtype=np.int64) + number * BLOCK


def size_of(block: LogRecords) -> int:
    """How many records a block has."""
    return len(block.table) if isinstance(block, Rows) else len(block.keys)


def head_of(block: LogRecords, number: int, ordering: Ordering, gaps: Gaps | None = None) -> Head:
    """What decides about the records of block `number`, which are in all columns where rows have gaps."""
    places = places_of(block, number)
    order = _chunk(ordering_column(block, ordering))
    if isinstance(block, Deletes):
        barrier = flags_of(_is_default(order))
        return Head(block.keys, order, np.ones(len(places), np.bool_), barrier, places, from_rows=False)
    deleted = _deleted(block.table)
    barrier = deleted & flags_of(_is_default(order)) if deleted.any() else deleted
    if gaps is not None and block.only is not None:
        raise UnsupportedTable("Partial updates (MERGE INTO) beside a partial update mode are not merged here.")
    found = {} if gaps is None else gaps.of(block.table)
    keys = _chunk(block.table.column(KEY))
    return Head(keys, order, deleted, barrier, places, from_rows=True, only=block.only, gaps=found)


def head_columns(ordering: Ordering) -> tuple[str, ...]:
    """The columns that `head_of` looks at; not every table has the last one."""
    return (KEY, *ordering, IS_DELETED)


def _deleted(table: pa.Table) -> Flags:
    if IS_DELETED not in table.schema.names:
        return np.zeros(len(table), np.bool_)
    return flags_of(pc.fill_null(table.column(IS_DELETED), False))


def _is_default(order: Values) -> Values:
    """Where an ordering value is Hudi's default: none, or the Integer 0 (a long 0 is compared as any value).

    Values of several fields never are, whatever they are.
    """
    if pa.types.is_int32(order.type):
        return pc.fill_null(pc.equal(order, pa.scalar(0, order.type)), True)
    return pc.is_null(order)


def barriers_of(records: LogRecords, ordering: Ordering) -> Flags:
    """The records of a block that are deletes without an ordering value to compare: deletes in commit order."""
    if isinstance(records, Deletes):
        return flags_of(_is_default(records.ordering))
    deleted = _deleted(records.table)
    if not ordering or not deleted.any():
        return np.zeros(len(deleted), np.bool_)
    return deleted & flags_of(_is_default(ordering_values(records.table, ordering)))


def _chunk(column: Values) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def chunked(column: Values) -> pa.ChunkedArray:
    """A column as a table has it."""
    return column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])
