"""Which record of a key wins, in each merge mode, vectorised. Pure; takes and gives Arrow tables.

EVENT_TIME_ORDERING (DefaultHoodieRecordPayload; Hudi 1.2's EventTimeRecordMerger for deletes):
- the greater ordering value wins; of equal ones the later in log order; every log is later than the base;
- a delete takes part with its ordering value; one without, or with the Integer 0, deletes whatever came
  before it, and anything after it wins;
- a row whose `_hoodie_is_deleted` is true is a delete with that row's ordering value.
COMMIT_TIME_ORDERING: the last record in log order wins, whatever it is.
OVERWRITE_WITH_LATEST (OverwriteWithLatestAvroPayload as Hudi 0.15 has it): among log records the greater
ordering value, of equal ones the later; a row after a delete block's delete always wins, a delete loses to a
row before it with a greater ordering value. What wins among the log records replaces the base row.

A null ordering value in a data row loses against any other. `docs/merge.md` says what was tried.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from hudi_assets.engine.model import MergeMode

KEY = "_hoodie_record_key"
IS_DELETED = "_hoodie_is_deleted"


@dataclass(frozen=True, slots=True)
class Rows:
    """Records of one log block, in the table's schema."""

    table: pa.Table


@dataclass(frozen=True, slots=True)
class Deletes:
    """Deletes of one log block: keys, and their ordering values in the ordering column's Arrow type.

    A null ordering value is a delete in commit order: it deletes whatever came before.
    """

    keys: pa.Array
    ordering: pa.Array


LogRecords = Rows | Deletes
Places = npt.NDArray[np.int64]
"""Where log records stand in log order: block number above, row number in the block below; ascending."""
_BLOCK = 1 << 40


@dataclass(frozen=True, slots=True)
class Merged:
    """The rows that are left, and the places of deletes that won with an ordering value (event-time ordering).

    An older record that is not among the merged ones would still lose to such a delete.
    """

    rows: pa.Table
    tombstones: Places


def merge(
    base: pa.Table | None,
    logs: Sequence[LogRecords],
    ordering: str,
    schema: pa.Schema,
    mode: MergeMode = MergeMode.EVENT_TIME_ORDERING,
) -> pa.Table:
    """The rows of a file slice after merging its log records, in log order, into its base rows.

    `base` and every `Rows.table` have `schema`; `ordering` is empty where the table has no such field.
    Surviving base rows come first, in their order, then the winning log rows in log order.
    """
    return merge_with_tombstones(base, logs, ordering, schema, mode).rows


def merge_with_tombstones(
    base: pa.Table | None, logs: Sequence[LogRecords], ordering: str, schema: pa.Schema, mode: MergeMode
) -> Merged:
    """As `merge`, and the deletes among the winners."""
    start = base if base is not None else schema.empty_table()
    if not logs:
        return Merged(start, np.empty(0, np.int64))
    winners = _winners(_candidates(logs, ordering), mode)
    matches = _match_base(start, winners, ordering)
    kept_by_base = matches.filter(pl.col("matched") & ~pl.col("replaced")).select("key")
    won = winners.join(kept_by_base, on="key", how="anti")
    base_rows = start.filter((~matches["replaced"]).to_arrow()) if len(start) else start
    rows = [taken.table for taken in take(logs, _places(won.filter(~pl.col("deleted")))) if isinstance(taken, Rows)]
    tombstones = won.filter(pl.col("deleted") & ~pl.col("barrier"))
    kept = _places(tombstones) if mode is MergeMode.EVENT_TIME_ORDERING else np.empty(0, np.int64)
    return Merged(pa.concat_tables([base_rows, *rows]), kept)


def take(logs: Sequence[LogRecords], places: Places) -> list[LogRecords]:
    """The records at these places, block by block in log order; blocks of which nothing is taken are left out."""
    taken: list[LogRecords] = []
    for number, block in enumerate(logs):
        low, high = np.searchsorted(places, [number * _BLOCK, (number + 1) * _BLOCK])
        if high > low:
            inside = pa.array(places[low:high] - number * _BLOCK)
            if isinstance(block, Rows):
                taken.append(Rows(block.table.take(inside)))
            else:
                taken.append(Deletes(block.keys.take(inside), block.ordering.take(inside)))
    return taken


def ordering_column(block: LogRecords, ordering: str) -> pa.Array | pa.ChunkedArray:
    """The ordering values of a block's records; nulls where the table has no ordering field."""
    if isinstance(block, Deletes):
        return block.ordering
    return block.table.column(ordering) if ordering else pa.nulls(len(block.table), pa.int64())


def last_barriers(logs: Sequence[LogRecords], ordering: str) -> pl.DataFrame:
    """key → `last_barrier`, the place of its last delete in commit order; keys without one are not in it."""
    return _last_barriers(_candidates(logs, ordering))


def places_of(block: LogRecords, number: int) -> Places:
    """The places of the records of block `number`."""
    size = len(block.table) if isinstance(block, Rows) else len(block.keys)
    return np.arange(size, dtype=np.int64) + number * _BLOCK


def _candidates(logs: Sequence[LogRecords], ordering: str) -> pl.DataFrame:
    """One row per log record: key, ord, place, deleted, barrier (a delete in commit order), from_row."""
    frames = [
        _row_candidates(block, ordering, number) if isinstance(block, Rows) else _delete_candidates(block, number)
        for number, block in enumerate(logs)
    ]
    return pl.concat(frames, how="vertical_relaxed")


def _row_candidates(block: Rows, ordering: str, number: int) -> pl.DataFrame:
    order = ordering_column(block, ordering)
    deleted = _deleted(block.table)
    return _frame(block.table.column(KEY), order, deleted, pc.and_(deleted, _is_default(order)), block, number)


def _deleted(table: pa.Table) -> pa.Array | pa.ChunkedArray:
    if IS_DELETED in table.schema.names:
        return pc.fill_null(table.column(IS_DELETED), False)
    return pa.chunked_array([pa.repeat(False, len(table))])


def _delete_candidates(block: Deletes, number: int) -> pl.DataFrame:
    barrier = pc.or_(pc.is_null(block.ordering), _is_default(block.ordering))
    return _frame(block.keys, block.ordering, pa.repeat(True, len(block.keys)), barrier, block, number)


def _is_default(order: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Where an ordering value is Hudi's default: none, or the Integer 0 (a long 0 is compared as any value)."""
    if pa.types.is_int32(order.type):
        return pc.fill_null(pc.equal(order, pa.scalar(0, order.type)), True)
    return pc.is_null(order)


def deletes_in_commit_order(table: pa.Table, ordering: str) -> bool:
    """True where a row is a delete, by `_hoodie_is_deleted`, without an ordering value to compare."""
    if IS_DELETED not in table.schema.names or not ordering:
        return False
    return bool(pc.any(pc.and_(_deleted(table), _is_default(table.column(ordering)))).as_py())


def _frame(
    keys: pa.Array | pa.ChunkedArray,
    order: pa.Array | pa.ChunkedArray,
    deleted: pa.Array | pa.ChunkedArray,
    barrier: pa.Array | pa.ChunkedArray,
    block: LogRecords,
    number: int,
) -> pl.DataFrame:
    columns = {"key": keys, "ord": order, "deleted": deleted, "barrier": barrier}
    frame = pl.DataFrame({name: pl.Series(name, _chunk(column)) for name, column in columns.items()})
    from_row = pl.lit(isinstance(block, Rows))
    return frame.with_columns(place=pl.Series(places_of(block, number)), from_row=from_row)


def _chunk(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _places(records: pl.DataFrame) -> Places:
    places: Places = records["place"].sort().to_numpy()
    return places


# --------------------------------------------------------------------------------- winners among log records


def _winners(candidates: pl.DataFrame, mode: MergeMode) -> pl.DataFrame:
    """One row per key: key, ord, place, deleted, barrier; `barred`: no base row of the key survives."""
    if mode is MergeMode.EVENT_TIME_ORDERING:
        won = _by_event_time(candidates)
    elif mode is MergeMode.COMMIT_TIME_ORDERING:
        won = candidates.sort("place").unique("key", keep="last").with_columns(barred=pl.lit(True))
    else:
        won = _overwrite_with_latest(candidates).with_columns(barred=pl.lit(True))
    return won.select("key", "ord", "place", "deleted", "barrier", "barred")


def _last_barriers(candidates: pl.DataFrame) -> pl.DataFrame:
    return candidates.filter("barrier").group_by("key").agg(pl.col("place").max().alias("last_barrier"))


def _by_event_time(candidates: pl.DataFrame) -> pl.DataFrame:
    barriers = _last_barriers(candidates)
    if len(barriers):
        candidates = candidates.join(barriers, on="key", how="left").filter(
            pl.col("last_barrier").is_null() | (pl.col("place") >= pl.col("last_barrier"))
        )
        # The delete itself loses to whatever comes after it, whatever the ordering value.
        candidates = candidates.with_columns(ord=pl.when(~pl.col("barrier")).then("ord"))
        barred = pl.col("last_barrier").is_not_null()
    else:
        barred = pl.lit(False)
    ranked = candidates.with_columns(barred=barred).sort("ord", "place", nulls_last=False)
    return ranked.unique("key", keep="last")


def _overwrite_with_latest(candidates: pl.DataFrame) -> pl.DataFrame:
    """Keys with deletes from delete blocks are folded one record after the other: a delete can end a comparison."""
    ranked = candidates.with_columns(rank=pl.col("ord").rank("dense").fill_null(0))
    deletes = ranked.filter(~pl.col("from_row")).select("key").unique()
    rows_alone = ranked.join(deletes, on="key", how="anti").sort("rank", "place").unique("key", keep="last")
    folded = ranked.join(deletes, on="key", how="semi").sort("place")
    best: dict[str, tuple[int, int, bool]] = {}
    for key, rank, place, from_row, barrier in folded.select("key", "rank", "place", "from_row", "barrier").iter_rows():
        old = best.get(key)
        if old is not None and old[0] > rank and (old[2] if from_row else not barrier):
            continue  # what was there has a greater ordering value, and this is neither after nor such a delete
        best[key] = (rank, place, from_row)
    won = pl.Series([place for _, place, _ in best.values()], dtype=pl.Int64)
    return pl.concat([rows_alone, folded.filter(pl.col("place").is_in(won.implode()))])


def _match_base(base: pa.Table, winners: pl.DataFrame, ordering: str) -> pl.DataFrame:
    """Per base row, in order: its key, `matched` (a log record has it), `replaced` (and wins)."""
    columns = {"key": base.column(KEY), "base_ord": ordering_column(Rows(base), ordering)}
    rows = pl.DataFrame({name: pl.Series(name, _chunk(column)) for name, column in columns.items()})
    joined = rows.join(winners, on="key", how="left", maintain_order="left")
    matched = pl.col("place").is_not_null()
    wins = pl.col("barred") | pl.col("base_ord").is_null() | (pl.col("ord") >= pl.col("base_ord")).fill_null(False)
    return joined.select("key", matched=matched, replaced=(matched & wins).fill_null(False))
