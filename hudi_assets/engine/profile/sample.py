"""A sample of a table's rows: those columns that may be event times, and when each row was committed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa

from hudi_assets.engine.errors import CorruptTable, UnsupportedTable
from hudi_assets.engine.format.parquet_reader import open_parquet, parquet_damage
from hudi_assets.engine.table.log_files.headers import log_headers
from hudi_assets.engine.table.log_files.reader import data_block_table
from hudi_assets.engine.table.state import META_COLUMNS, TableState

COMMIT_TIME: Final = "_hoodie_commit_time"
_FILES: Final = 16
_BYTES: Final = 64 << 20
_DAMAGED: Final = (OSError, CorruptTable, UnsupportedTable)


@dataclass(frozen=True)
class SampledFile:
    """Some rows of one file: the columns that may be event times, and `_hoodie_commit_time`."""

    path: str
    rows: pa.Table


def may_be_event_time(kind: pa.DataType) -> bool:
    """By the type alone: timestamps, dates, integers and text."""
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind) or pa.types.is_integer(kind) or is_text)


def sample(state: TableState) -> tuple[SampledFile, ...]:
    """Rows of the newest files. What is damaged or not read says nothing: whoever reads the table will name it."""
    wanted = [f.name for f in state.data_schema if may_be_event_time(f.type) and f.name not in META_COLUMNS]
    found: list[SampledFile] = []
    left = _BYTES
    for path in _newest_files(state):
        if len(found) == _FILES or left <= 0:
            break
        try:
            parts, size = _read(state, path, [COMMIT_TIME, *wanted], left, first=not found)
        except _DAMAGED:
            continue
        left -= size
        if parts:
            # A column that came later is missing in older files.
            found.append(SampledFile(path, pa.concat_tables(parts, promote_options="permissive")))
    return tuple(found)


def _newest_files(state: TableState) -> Iterator[str]:
    """Log and base files that are there: of the newest commits first, then those whose commits are archived."""
    seen: set[str] = set()
    for _, commit in state.commits_newest_first():
        for stat in commit.stats:
            if stat.path in state.sizes and stat.path not in seen:
                seen.add(stat.path)
                yield stat.path
    for log in state.remaining_logs:
        if log.path not in seen:
            yield log.path
    for base in state.view.base_files:
        if base.path not in seen:
            yield base.path


def _read(
    state: TableState, path: str, columns: Sequence[str], limit: int, *, first: bool
) -> tuple[list[pa.Table], int]:
    """Some rows, and about how many bytes they were."""
    if ".log." not in path:
        rows = _first_row_group(state, path, columns)
        return ([rows] if rows is not None else []), 0 if rows is None else rows.nbytes
    parts: list[pa.Table] = []
    size = 0
    for block in log_headers(state.storage, path):
        if block.is_corrupt or not block.is_data or block.instant_time not in state.committed:
            continue
        if size + block.content_size > limit and not (first and not parts):
            break
        size += block.content_size
        content = state.storage.read_at(path, block.content_offset, block.content_size)
        parts.append(data_block_table(replace(block, content=content), columns))
    return parts, size


def _first_row_group(state: TableState, path: str, columns: Sequence[str]) -> pa.Table | None:
    """Rows are in the order of their keys: one row group is as good as another."""
    with state.storage.open(path) as source, parquet_damage(), open_parquet(source) as file:
        if file.num_row_groups == 0:
            return None
        there = [name for name in columns if name in file.schema_arrow.names]
        rows = file.read_row_group(0, columns=there, use_threads=False)
        rows.validate(full=True)
        return rows
