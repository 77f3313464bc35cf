"""A file slice whose rows are in memory, for `merging.passes.SliceMerge`: no files, parts as small as a test likes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from hudi_assets.engine.merging.merge import LogRecords, Rows


@dataclass
class HeldSlice:
    """`at_once`: base rows per part. `read` collects what was asked of the blocks: (number, all columns?)."""

    rows: pa.Table
    blocks: Sequence[LogRecords]
    at_once: int = 1 << 20
    block_bytes: int = 1

    def __post_init__(self) -> None:
        self.read: list[tuple[int, bool]] = []

    @property
    def schema(self) -> pa.Schema:
        return self.rows.schema

    @property
    def block_sizes(self) -> Sequence[int]:
        return [self.block_bytes] * len(self.blocks)

    def base(self, columns: Sequence[str], most_bytes: int) -> Iterator[pa.Table]:
        for start in range(0, len(self.rows), self.at_once):
            yield self.rows.slice(start, self.at_once).select(list(columns))

    def block(self, number: int, columns: Sequence[str] | None) -> LogRecords:
        self.read.append((number, columns is None))
        block = self.blocks[number]
        if columns is None or not isinstance(block, Rows):
            return block
        return Rows(block.table.select([name for name in block.table.schema.names if name in columns]))
