"""A file slice whose rows are in memory, for `merging.passes.SliceMerge`: no files, parts as small as a test likes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from hudi_assets.engine.merging.merge import LogRecords, Rows
from hudi_assets.engine.merging.winners import Flags


@dataclass
class HeldSlice:
    """`at_once`: base rows per part. `read` collects what was asked of the blocks: (number, all columns?).

    `chooses`: some rows of a data block are read without the others; `chosen` collects (number, how many).
    """

    rows: pa.Table
    blocks: Sequence[LogRecords]
    at_once: int = 1 << 20
    block_bytes: int = 1
    chooses: bool = False
    by_positions: bool = False

    def __post_init__(self) -> None:
        self.read: list[tuple[int, bool]] = []
        self.chosen: list[tuple[int, int]] = []

    @property
    def schema(self) -> pa.Schema:
        return self.rows.schema

    @property
    def block_sizes(self) -> Sequence[int]:
        return [self.block_bytes] * len(self.blocks)

    def base(self, columns: Sequence[str], most_bytes: int) -> Iterator[pa.Table]:
        for start in range(0, len(self.rows), self.at_once):
            yield self.rows.slice(start, self.at_once).select(list(columns))

    def base_fits(self, most_bytes: int) -> bool:
        return self.rows.nbytes <= most_bytes

    def reads_chosen(self, number: int) -> bool:
        return self.chooses and isinstance(self.blocks[number], Rows)

    def block(self, number: int, columns: Sequence[str], chosen: Flags | None = None) -> LogRecords:
        self.read.append((number, set(columns) == set(self.schema.names)))
        block = self.blocks[number]
        if not isinstance(block, Rows):
            return block
        table = block.table.select([name for name in block.table.schema.names if name in columns])
        if chosen is None:
            return Rows(table, block.only)
        self.chosen.append((number, int(chosen.sum())))
        return Rows(table.filter(pa.array(chosen)), block.only)
