"""The bare cost of a compaction: pyarrow reads the same bytes and writes the same Parquet, and merges nothing."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_assets.engine import HudiTable
from hudi_assets.engine.format.log_file.codec import read_blocks

PROCESSES = 2


@dataclass(frozen=True, slots=True)
class Piece:
    """Parquet inside a file: the content of a log block."""

    path: str
    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class Group:
    """What one file group's compaction reads, and the rows of its result."""

    base: str
    blocks: tuple[Piece, ...]
    rows: int
    codec: str


class BarePyarrow:
    """A warm pool with one core for each process, and one file group at a time in each."""

    name = "bare pyarrow"

    def __init__(self) -> None:
        self._pool = ProcessPoolExecutor(PROCESSES, multiprocessing.get_context("spawn"), initializer=_start)
        list(self._pool.map(_warm, range(PROCESSES * 4)))

    def close(self) -> None:
        self._pool.shutdown()

    def compact(self, groups: list[Group], out: Path) -> None:
        """Read each group's base file and blocks whole, write as many rows as the real result has."""
        out.mkdir(parents=True)
        list(self._pool.map(_rewrite, groups, [str(out / f"{n}.parquet") for n in range(len(groups))]))


def _start() -> None:
    # As a worker of Spark: the other core belongs to the other process.
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)


def _warm(number: int) -> int:
    pq.read_metadata  # noqa: B018  (what is measured is not the import)
    return number


def _rewrite(group: Group, target: str) -> None:
    base = pq.read_table(group.base, use_threads=False, partitioning=None)
    parts = [base]
    for block in group.blocks:
        with open(block.path, "rb") as file:
            file.seek(block.offset)
            content = pa.BufferReader(file.read(block.length))
        parts.append(pq.read_table(content, use_threads=False))
    rows = base if len(base) == group.rows else pa.concat_tables(parts, promote_options="default")
    pq.write_table(rows.slice(0, group.rows), target, compression=group.codec)


def groups_of(before: HudiTable, after: HudiTable) -> list[Group]:
    """Each file group of a table with Parquet log blocks, and what its compaction made of it."""
    results = {(base.partition, base.file_id): base.path for base in after.state().view.base_files}
    groups = []
    for slice_ in before.state().view.latest:
        assert slice_.base_file is not None
        footer = pq.read_metadata(Path(after.path, results[slice_.partition, slice_.file_id]))
        groups.append(
            Group(
                base=str(Path(before.path, slice_.base_file.path)),
                blocks=tuple(p for log in slice_.log_files for p in _pieces(Path(before.path, log.path))),
                rows=footer.num_rows,
                codec=footer.row_group(0).column(0).compression.lower(),
            )
        )
    return groups


def _pieces(log: Path) -> list[Piece]:
    blocks = (block for block in read_blocks(log.read_bytes()) if block.is_data)
    return [Piece(str(log), block.content_offset, block.content_size) for block in blocks]
