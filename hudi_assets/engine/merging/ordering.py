"""Ordering values: one field's, or several fields' as a struct, compared field by field. Pure.

As Hudi 1.x has it (OrderingValues, ArrayComparable): the first field in which two records differ decides. A null counts
as the Integer 0. In a field of Integers that is a value. In any other one Hudi fails where it compares it, and for a
delete block's delete it compares no values at all. So where the place of a null would decide, the merge is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from hudi_assets.engine.errors import UnsupportedTable

Ordering: TypeAlias = tuple[str, ...]
"""The ordering fields; empty where a table has none."""
Flags = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int64]
Values: TypeAlias = pa.Array | pa.ChunkedArray

NOT_DECIDED: Final = "Write the rows of this key again without nulls in the ordering fields, or delete the key."


def ordering_type(schema: pa.Schema, ordering: Ordering) -> pa.DataType | None:
    """The Arrow type of ordering values: that of the one field, or a struct; None without a field."""
    if len(ordering) > 1:
        return pa.struct([pa.field(name, schema.field(name).type) for name in ordering])
    return schema.field(ordering[0]).type if ordering else None


def ordering_values(rows: pa.Table, ordering: Ordering) -> Values:
    """The ordering values of rows; nulls where the table has no ordering field."""
    if not ordering:
        return pa.nulls(len(rows), pa.int64())
    if len(ordering) == 1:
        return rows.column(ordering[0])
    return pa.StructArray.from_arrays(
        [with_default(_whole(rows.column(name))) for name in ordering],
        fields=[pa.field(name, rows.schema.field(name).type) for name in ordering],
    )


def with_default(values: pa.Array) -> pa.Array:
    """Of several ordering fields, a null in one of Integers is Hudi's default, 0."""
    return pc.fill_null(values, 0) if pa.types.is_int32(values.type) else values


def values_of_field(values: Values, ordering: Ordering, name: str) -> Values | None:
    """One field's part of ordering values; None where it is no ordering field."""
    if name not in ordering:
        return None
    return values if len(ordering) == 1 else pc.struct_field(values, name)


def ranks_of(ordering: pa.ChunkedArray) -> Numbers:
    """Numbers that compare as the ordering values do, a null below all others."""
    if pa.types.is_struct(ordering.type):
        return _ranks_of_several(ordering, nulls_last=False)
    whole = pa.types.is_integer(ordering.type) and ordering.type != pa.uint64()
    if not ordering.null_count and (whole or pa.types.is_temporal(ordering.type)):
        narrow = pa.types.is_temporal(ordering.type) and ordering.type.bit_width == 32
        numbers: Numbers = (ordering.cast(pa.int32()) if narrow else ordering).cast(pa.int64()).to_numpy()
        return numbers
    return _dense(pl.Series(ordering))


def _dense(values: pl.Series) -> Numbers:
    ranks: Numbers = values.rank("dense").fill_null(0).cast(pl.Int64).to_numpy()
    return ranks


def _fields(ordering: Values) -> list[pl.Series]:
    return [_comparable(pc.struct_field(ordering, number)) for number in range(ordering.type.num_fields)]


def _comparable(values: Values) -> pl.Series:
    """As Java compares: of floating-point numbers -0.0 is less than 0.0, and NaN is greatest."""
    if not pa.types.is_floating(values.type):
        return pl.Series(values)
    doubles = pl.Series(values.cast(pa.float64()))
    bits = doubles.fill_null(0.0).to_numpy().view(np.int64)
    ordered = np.where(bits < 0, bits ^ np.int64(np.iinfo(np.int64).max), bits)
    numbers = pl.Series(np.where(doubles.is_nan().fill_null(False).to_numpy(), np.iinfo(np.int64).max, ordered))
    return pl.select(pl.when(doubles.is_not_null()).then(numbers)).to_series()


def _ranks_of_several(ordering: pa.ChunkedArray, *, nulls_last: bool) -> Numbers:
    combined = np.zeros(len(ordering), np.int64)
    for values in _fields(ordering):
        ranks = _dense(values)
        if nulls_last:
            ranks = np.where(values.is_null().to_numpy(), len(ordering) + 1, ranks)
        # Dense again: so two numbers of records can be multiplied.
        combined = _dense(pl.Series(combined * (len(ordering) + 2) + ranks))
    return combined


@dataclass(frozen=True, slots=True)
class WithNulls:
    """Ordering values of several fields, some of them null.

    `lowest`, `highest`: their ranks with a null below, and above, all others. `patterns`: which fields are null, as a
    number.
    """

    lowest: Numbers
    highest: Numbers
    patterns: Numbers

    def may_exceed(self, one: int, other: int) -> bool:
        """True where the one record is greater than the other, wherever nulls stand."""
        return bool(self.lowest[one] > self.lowest[other] or self.highest[one] > self.highest[other])


def with_nulls(ordering: pa.ChunkedArray) -> WithNulls | None:
    """What is to be known beside the ranks, where one of several fields is null; None where none is."""
    if not pa.types.is_struct(ordering.type):
        return None
    there = pc.is_valid(ordering).to_numpy()
    patterns = np.zeros(len(ordering), np.int64)
    for number in range(ordering.type.num_fields):
        field = pc.struct_field(ordering, number)
        if field.null_count:
            patterns |= (pc.is_null(field).to_numpy() & there).astype(np.int64) << number
    if not patterns.any():
        return None
    lowest, highest = (_ranks_of_several(ordering, nulls_last=last) for last in (False, True))
    return WithNulls(lowest, highest, patterns)


def has_nulls(ordering: Values) -> bool:
    """True where one of several fields is null in a record that has ordering values."""
    return pa.types.is_struct(ordering.type) and any(
        pc.struct_field(ordering, number).null_count > ordering.null_count for number in range(ordering.type.num_fields)
    )


def at_least(log: pa.ChunkedArray, base: pa.ChunkedArray) -> tuple[Flags, Flags]:
    """Per pair: the log record's value is not less than the base row's. And where the place of a null would decide.

    Of one field, a null is less than any other value.
    """
    if not pa.types.is_struct(log.type):
        theirs, mine = pl.Series(base), pl.Series(log)
        flags: Flags = (theirs.is_null() | (mine >= theirs).fill_null(False)).to_numpy()
        return flags, np.zeros(len(flags), np.bool_)
    equal = np.ones(len(log), np.bool_)
    less, unknown = np.zeros((2, len(log)), np.bool_)
    for mine, theirs in zip(_fields(log), _fields(base), strict=True):
        one_sided = mine.is_null().to_numpy() != theirs.is_null().to_numpy()
        unknown |= equal & one_sided
        less |= equal & (mine < theirs).fill_null(False).to_numpy()
        equal &= ~one_sided & (mine == theirs).fill_null(True).to_numpy()
    return ~less, unknown


def refuse_undecided(key: str) -> None:
    """Refuse a key of which the place of a null decides."""
    raise UnsupportedTable(
        f"Of the key {key!r} a record has a null in one of several ordering fields, and another one has a value there. "
        "Which of them wins depends in Hudi on how they come to be compared.",
        hint=f"{NOT_DECIDED} Unschedule the plan first, if there is one.",
    )


def _whole(column: Values) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
