"""Which columns of a Parquet file are dictionaries."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_assets.engine.format.parquet_distinct import dictionary_columns

ROWS = 5_000
NUMBERS = range(ROWS)
TABLE = pa.table(
    {
        "key": pa.array([f"key-{n}" for n in NUMBERS]),
        "word": pa.array([f"word-{n % 900}" for n in NUMBERS]),
        "ratio": pa.array([n / 7 for n in NUMBERS]),
        "code": pa.array([n % 5 for n in NUMBERS], pa.int32()),
        "none": pa.nulls(ROWS, pa.string()),
        "some": pa.array([f"{n}" if n % 2 else None for n in NUMBERS]),
        "flag": pa.array([n % 2 == 0 for n in NUMBERS]),
        "a.b": pa.array(["x"] * ROWS),
        "list": pa.array([[n, None] for n in NUMBERS]),
        "map": pa.array([[("k", float(n))] for n in NUMBERS], pa.map_(pa.string(), pa.float64())),
        "place": pa.array([{"x": n, "deep": {"names": [f"{n}"]}} for n in NUMBERS]),
    }
)
NESTED = ["list.list.element", "map.key_value.key", "map.key_value.value", "place.x", "place.deep.names.list.element"]


def dictionaries(table: pa.Table) -> set[str]:
    out = io.BytesIO()
    pq.write_table(table, out, use_dictionary=dictionary_columns(table))
    group = pq.ParquetFile(out).metadata.row_group(0)
    chunks = [group.column(number) for number in range(group.num_columns)]
    return {chunk.path_in_schema for chunk in chunks if chunk.has_dictionary_page}


def test_columns_whose_values_repeat_and_nested_ones() -> None:
    assert dictionaries(TABLE) == {"word", "code", "none", "a.b", *NESTED}


def test_a_sorted_column_is_sampled_all_over() -> None:
    """Its first values are one value."""
    numbers = [0] * 1_000 + list(range(100_000))
    assert dictionary_columns(pa.table({"n": numbers, "same": [1] * len(numbers)})) == ["same"]


@pytest.mark.parametrize("rows", [0, 1, 3])
def test_small_tables(rows: int) -> None:
    assert pq.ParquetFile(io.BytesIO(written(TABLE.slice(0, rows)))).read().equals(TABLE.slice(0, rows))


def written(table: pa.Table) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out, use_dictionary=dictionary_columns(table))
    return out.getvalue()
