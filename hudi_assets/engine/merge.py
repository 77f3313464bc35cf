"""Which record of a key wins: event-time ordering, vectorised. Pure; takes and gives Arrow tables.

Rules (DefaultHoodieRecordPayload; Hudi 1.2's EventTimeRecordMerger for deletes):
- the greater ordering value wins; of equal ones the later in log order; every log is later than the base;
- a delete takes part with its ordering value; one without, or with the Integer 0, deletes whatever came
  before it, and anything after it wins;
- a row whose `_hoodie_is_deleted` is true is a delete with that row's ordering value.
A null ordering value in a data row loses against any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

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
_BLOCK = 1 << 40


def merge(base: pa.Table | None, logs: Sequence[LogRecords], ordering: str, schema: pa.Schema) -> pa.Table:
    """The rows of a file slice after merging its log records, in log order, into its base rows.

    `base` and every `Rows.table` have `schema`. Surviving base rows come first, in their order, then
    the winning log rows in log order.
    """
    start = base if base is not None else schema.empty_table()
    if not logs:
        return start
    winners = _log_winners(_candidates(logs, ordering))
    matches = _match_base(start, winners, ordering)
    kept_by_base = matches.filter(pl.col("matched") & ~pl.col("replaced")).select("key")
    rows = winners.filter(~pl.col("deleted")).join(kept_by_base, on="key", how="anti")
    base_rows = start.filter((~matches["replaced"]).to_arrow()) if len(start) else start
    return pa.concat_tables([base_rows, *_log_rows(logs, rows)])


def _candidates(logs: Sequence[LogRecords], ordering: str) -> pl.DataFrame:
    """One row per log record: key, ord, place, deleted, barrier (a delete in commit order)."""
    frames = [
        _row_candidates(block.table, ordering, number) if isinstance(block, Rows) else _delete_candidates(block, number)
        for number, block in enumerate(logs)
    ]
    return pl.concat(frames, how="vertical_relaxed")


def _row_candidates(table: pa.Table, ordering: str, number: int) -> pl.DataFrame:
    order = table.column(ordering)
    if IS_DELETED in table.schema.names:
        deleted = pc.fill_null(table.column(IS_DELETED), False)
    else:
        deleted = pa.chunked_array([pa.repeat(False, len(table))])
    barrier = pc.and_(deleted, _is_default(order))
    return _frame(table.column(KEY), order, deleted, barrier, number)


def _delete_candidates(block: Deletes, number: int) -> pl.DataFrame:
    barrier = pc.or_(pc.is_null(block.ordering), _is_default(block.ordering))
    deleted = pa.repeat(True, len(block.keys))
    return _frame(block.keys, block.ordering, deleted, barrier, number)


def _is_default(order: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Where an ordering value is Hudi's default: none, or the Integer 0 (a long 0 is compared as any value)."""
    if pa.types.is_int32(order.type):
        return pc.fill_null(pc.equal(order, pa.scalar(0, order.type)), True)
    return pc.is_null(order)


def deletes_in_commit_order(table: pa.Table, ordering: str) -> bool:
    """True where a row is a delete, by `_hoodie_is_deleted`, without an ordering value to compare."""
    if IS_DELETED not in table.schema.names:
        return False
    deleted = pc.fill_null(table.column(IS_DELETED), False)
    return bool(pc.any(pc.and_(deleted, _is_default(table.column(ordering)))).as_py())


def _frame(
    keys: pa.Array | pa.ChunkedArray,
    order: pa.Array | pa.ChunkedArray,
    deleted: pa.Array | pa.ChunkedArray,
    barrier: pa.Array | pa.ChunkedArray,
    number: int,
) -> pl.DataFrame:
    columns = {"key": keys, "ord": order, "deleted": deleted, "barrier": barrier}
    frame = pl.DataFrame({name: pl.Series(name, _chunk(column)) for name, column in columns.items()})
    # The place in log order: block number above, row number in the block below.
    place = pl.int_range(pl.len(), dtype=pl.Int64) + number * _BLOCK
    return frame.with_columns(place=place)


def _chunk(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _log_winners(candidates: pl.DataFrame) -> pl.DataFrame:
    """One row per key. `barred`: a delete in commit order came, so no base row of the key survives."""
    barriers = candidates.filter("barrier").group_by("key").agg(pl.col("place").max().alias("last_barrier"))
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
    return ranked.unique("key", keep="last").select("key", "ord", "deleted", "place", "barred")


def _match_base(base: pa.Table, winners: pl.DataFrame, ordering: str) -> pl.DataFrame:
    """Per base row, in order: its key, `matched` (a log record has it), `replaced` (and wins)."""
    rows = pl.DataFrame(
        {
            "key": pl.Series("key", _chunk(base.column(KEY))),
            "base_ord": pl.Series("base_ord", _chunk(base.column(ordering))),
        }
    )
    joined = rows.join(winners, on="key", how="left", maintain_order="left")
    matched = pl.col("place").is_not_null()
    wins = pl.col("barred") | pl.col("base_ord").is_null() | (pl.col("ord") >= pl.col("base_ord")).fill_null(False)
    return joined.select("key", matched=matched, replaced=(matched & wins).fill_null(False))


def _log_rows(logs: Sequence[LogRecords], rows: pl.DataFrame) -> list[pa.Table]:
    places = rows["place"].sort().to_numpy()
    tables = []
    for number, block in enumerate(logs):
        if isinstance(block, Rows):
            low, high = np.searchsorted(places, [number * _BLOCK, (number + 1) * _BLOCK])
            if high > low:
                tables.append(block.table.take(pa.array(places[low:high] - number * _BLOCK)))
    return tables
