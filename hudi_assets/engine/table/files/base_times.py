"""The greatest event time in a base file, by the statistics in its Parquet footer."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_assets.engine.errors import CorruptTable, InvalidInput
from hudi_assets.engine.format.parquet_reader import parquet_damage
from hudi_assets.engine.model import BaseFile, FileSlice
from hudi_assets.engine.model.units import EventTimeUnit, range_of
from hudi_assets.engine.storage import Storage


@dataclass(frozen=True)
class BaseTimes:
    """Of the base files of one reading of a table; each footer is read once, where somebody asks."""

    storage: Storage
    column: str
    unit: EventTimeUnit
    _known: dict[str, float] = field(default_factory=dict, compare=False)

    def highest(self, slice_: FileSlice) -> float:
        """Epoch ms; infinity where the footer does not say, minus infinity where there is no such row."""
        base = slice_.base_file
        if base is None:
            return -math.inf
        if base.path not in self._known:
            self._known[base.path] = self._by_footer(base)
        return self._known[base.path]

    def _by_footer(self, base: BaseFile) -> float:
        try:
            with self.storage.open(base.path) as file, parquet_damage():
                footer = pq.read_metadata(file)
                type_ = footer.schema.to_arrow_schema().field(self.column).type
                return max(
                    (_highest(group, self.column, type_, self.unit) for group in _groups(footer)), default=-math.inf
                )
        except (CorruptTable, InvalidInput, KeyError):  # damage shows when the file is merged
            return math.inf


def _groups(footer: pq.FileMetaData) -> list[pq.RowGroupMetaData]:
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    return [group for group in groups if group.num_rows]


def _highest(group: pq.RowGroupMetaData, column: str, type_: pa.DataType, unit: EventTimeUnit) -> float:
    for number in range(group.num_columns):
        chunk = group.column(number)
        if chunk.path_in_schema != column:
            continue
        found = chunk.statistics
        if found is not None and found.has_null_count and found.null_count == group.num_rows:
            return -math.inf
        if found is None or not found.has_min_max:
            return math.inf
        covered = range_of(pa.array([found.max], type_), unit, "the base file")
        return math.inf if covered.max is None else covered.max
    return math.inf
