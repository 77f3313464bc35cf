"""Column statistics of a base file from its Parquet footer, as Hudi puts them into the metadata table.

Hudi takes them from the footer too (ParquetUtils.readColumnStatsFromMetadata). How a bound is written depends on the
index's version (HoodieIndexVersion): V1 wraps what Java makes of the value, V2 what the file holds, with the type's
number beside it (org.apache.hudi.stats.ValueType).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_assets.engine.errors import UnsupportedTable

NAMESPACE: Final = "org.apache.hudi.avro.model"
_V1_SCALE: Final = 15  # DecimalWrapper is decimal(30, 15)
_V1_MOST: Final = Decimal(10) ** 15


@dataclass(frozen=True, slots=True)
class ColumnStats:
    """One column of one base file. `smallest` and `greatest` are as stored, None where all values are null."""

    column: str
    type: pa.DataType
    smallest: Any
    greatest: Any
    values: int
    nulls: int
    size: int
    size_unpacked: int


@dataclass(frozen=True, slots=True)
class _Kind:
    """How a type's bounds are wrapped: V1's wrapper, V2's wrapper and number."""

    v1: str
    v2: str
    number: int
    info: str | None = None


def leaves(schema: pa.Schema) -> Mapping[str, pa.DataType]:
    """Type of each column that is no list or map, by path: fields of structs too."""
    return dict(_leaves("", schema))


def _leaves(prefix: str, fields: Iterable[pa.Field]) -> Iterator[tuple[str, pa.DataType]]:
    for field in fields:
        path = f"{prefix}{field.name}"
        if pa.types.is_struct(field.type):
            yield from _leaves(f"{path}.", (field.type.field(n) for n in range(field.type.num_fields)))
        else:
            # A file may say that its column was dictionary-encoded in memory too.
            plain = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
            if _kind(plain) is not None:
                yield path, plain


def footer_stats(file: pq.ParquetFile, wanted: Callable[[str], bool]) -> list[ColumnStats]:
    """The statistics of the columns that are wanted by their paths, over all row groups."""
    metadata, types = file.metadata, leaves(file.schema_arrow)
    found = []
    for number in range(metadata.num_columns):
        path = file.schema.column(number).path
        if path in types and wanted(path):
            groups = [metadata.row_group(n).column(number) for n in range(metadata.num_row_groups)]
            found.append(_over(file, path, types[path], groups))
    return found


def _over(file: pq.ParquetFile, path: str, kind: pa.DataType, groups: list[Any]) -> ColumnStats:
    values = sum(group.num_values for group in groups)
    stated = [g.statistics for g in groups]
    # A writer may leave statistics out: of long texts, or of a row group without a value.
    whole = all(s is not None and s.has_null_count for s in stated)
    nulls = sum(s.null_count for s in stated) if whole else _count_nulls(file, path)
    if nulls == values:
        bounds = None
    elif whole and all(s.has_min_max or s.null_count == g.num_values for s, g in zip(stated, groups, strict=True)):
        raw = [_stored(value, kind) for s in stated if s.has_min_max for value in (s.min_raw, s.max_raw)]
        bounds = min(raw), max(raw)
    else:
        bounds = _scanned(file, path, kind)
    low, high = bounds or (None, None)
    size = sum(group.total_compressed_size for group in groups)
    return ColumnStats(path, kind, low, high, values, nulls, size, sum(g.total_uncompressed_size for g in groups))


def _stored(raw: Any, kind: pa.DataType) -> Any:
    """A footer's value in an order of its own: bytes for text, an integer for decimals, dates and times."""
    if pa.types.is_decimal(kind) and isinstance(raw, bytes):
        return int.from_bytes(raw, "big", signed=True)
    return raw


def _column(file: pq.ParquetFile, path: str) -> pa.ChunkedArray:
    column = file.read(columns=[path])
    found: pa.ChunkedArray = column.column(0)
    for name in path.split(".")[1:]:
        found = pa.chunked_array([part for chunk in found.chunks for part in [_field(chunk, name)]])
    return found


def _field(chunk: pa.StructArray, name: str) -> pa.Array:
    # A field of a struct that is null is null: flatten hands the parent's nulls down.
    return chunk.flatten()[chunk.type.get_field_index(name)]


def _count_nulls(file: pq.ParquetFile, path: str) -> int:
    return int(_column(file, path).null_count)


def _scanned(file: pq.ParquetFile, path: str, kind: pa.DataType) -> tuple[Any, Any]:
    """The bounds of a column whose footer has none, by reading it."""
    if pa.types.is_floating(kind):
        # It holds NaN, which is beyond every number for Spark.
        return float("-inf"), float("nan")
    values = [value for value in _column(file, path).to_pylist() if value is not None]
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        values = [value.encode() for value in values]
    elif pa.types.is_decimal(kind):
        values = [_unscaled(value) for value in values]
    elif not isinstance(values[0], bytes | bool | int):
        values = [
            pa.scalar(value, kind).cast(pa.int64() if kind.bit_width == 64 else pa.int32()).as_py()
            for value in (min(values), max(values))
        ]
    return min(values), max(values)


def _unscaled(value: Decimal) -> int:
    sign, digits, _ = value.as_tuple()
    number = int("".join(map(str, digits)))
    return -number if sign else number


def _kind(kind: pa.DataType) -> _Kind | None:
    """None for what has no bounds: lists, maps, and types that Hudi does not write."""
    if pa.types.is_decimal(kind):
        return _Kind("Decimal", "Bytes", 10, f"{kind.precision},{kind.scale}")
    if pa.types.is_timestamp(kind):
        millis = kind.unit == "ms"
        number = (15 if millis else 16) if kind.tz else (18 if millis else 19)
        return _Kind("Long", "Long", number) if kind.unit in ("ms", "us") else None
    for is_type, known in _KINDS:
        if is_type(kind):
            return known
    return None


_KINDS: Final[tuple[tuple[Callable[[pa.DataType], bool], _Kind], ...]] = (
    (pa.types.is_boolean, _Kind("Boolean", "Boolean", 2)),
    (pa.types.is_int64, _Kind("Long", "Long", 4)),
    (pa.types.is_signed_integer, _Kind("Int", "Int", 3)),
    (pa.types.is_float32, _Kind("Float", "Float", 5)),
    (pa.types.is_float64, _Kind("Double", "Double", 6)),
    (pa.types.is_string, _Kind("String", "String", 7)),
    (pa.types.is_large_string, _Kind("String", "String", 7)),
    (pa.types.is_binary, _Kind("Bytes", "Bytes", 8)),
    (pa.types.is_large_binary, _Kind("Bytes", "Bytes", 8)),
    (pa.types.is_fixed_size_binary, _Kind("Bytes", "Bytes", 9)),
    (pa.types.is_date32, _Kind("Date", "Int", 12)),
    (pa.types.is_time32, _Kind("Int", "Int", 13)),
    (pa.types.is_time64, _Kind("Long", "Long", 14)),
)


def as_record(stats: ColumnStats, file_name: str, *, typed: bool) -> dict[str, Any]:
    """The fields of HoodieMetadataColumnStats; `typed`: the index is of version V2."""
    kind = _kind(stats.type)
    assert kind is not None
    return {
        "fileName": file_name,
        "columnName": stats.column,
        "minValue": _wrapped(stats.smallest, stats, kind, typed),
        "maxValue": _wrapped(stats.greatest, stats, kind, typed),
        "valueCount": stats.values,
        "nullCount": stats.nulls,
        "totalSize": stats.size,
        "totalUncompressedSize": stats.size_unpacked,
        "isDeleted": False,
        "isTightBound": False,
        "valueType": {"typeOrdinal": kind.number, "additionalInfo": kind.info} if typed else None,
    }


def gone(column: str, file_name: str) -> dict[str, Any]:
    """As `as_record`, for a file that is deleted."""
    counts = dict.fromkeys(("valueCount", "nullCount", "totalSize", "totalUncompressedSize"), 0)
    bounds = dict.fromkeys(("minValue", "maxValue", "valueType"))
    own = {"fileName": file_name, "columnName": column, "isDeleted": True, "isTightBound": False}
    return {**own, **counts, **bounds}


def _wrapped(value: Any, stats: ColumnStats, kind: _Kind, typed: bool) -> tuple[str, dict[str, Any]] | None:
    """A member of the union of wrappers, with its record's name."""
    if value is None:
        return None
    name = kind.v2 if typed else kind.v1
    if name == "String":
        value = value.decode() if isinstance(value, bytes) else value
    elif pa.types.is_decimal(stats.type):
        value = _bytes_of(value) if typed else _decimal(value, stats)
    return f"{NAMESPACE}.{name}Wrapper", {"value": value}


def _bytes_of(number: int) -> bytes:
    """Two's complement, as short as it goes (BigInteger.toByteArray)."""
    return number.to_bytes((number + (number < 0)).bit_length() // 8 + 1, "big", signed=True)


def _decimal(unscaled: int, stats: ColumnStats) -> Decimal:
    # Not by arithmetic, which rounds to the context's precision.
    digits = tuple(int(digit) for digit in str(abs(unscaled)))
    value = Decimal((int(unscaled < 0), digits, -stats.type.scale))
    if abs(value) >= _V1_MOST or stats.type.scale > _V1_SCALE:
        raise UnsupportedTable(
            f"The metadata table's column statistics have no room for {value} of column {stats.column}: "
            "they hold 15 digits on each side of the point.",
            hint="Let Hudi leave this column out (hoodie.metadata.index.column.stats.column.list), or do without them "
            "(hoodie.metadata.index.column.stats.enable=false).",
        )
    return value
