"""Rows on their way through Spark to the tasks that write them: in parcels of Arrow bytes, which Spark only carries.

Spark makes rows of its own out of columns, and columns out of rows, at each step that takes Arrow. Here that happens
once, where the DataFrame comes in; from there on a parcel is a few rows of bytes to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from hudi_assets.engine import spark
from hudi_assets.engine.errors import HudiAssetsError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SLOTS_PER_CORE = 16
_PIECE = 16 * 1024
"""Bytes to a row: Spark puts 10,000 rows into a batch for Python, whatever their size."""
_TASK_BYTES = 256 << 20
PIECES = pa.schema(
    [
        ("slot", pa.int32()),
        ("stream", pa.int64()),
        ("piece", pa.int32()),
        ("data", pa.binary()),
        ("note", pa.binary()),
    ]
)
_DDL = "slot int, stream bigint, piece int, data binary, note binary"


@dataclass(frozen=True, slots=True)
class Parcel:
    """Rows that come to one task together with all others of their slot. The schema's metadata comes along."""

    slot: int
    rows: pa.RecordBatch


@dataclass(frozen=True, slots=True)
class Note:
    """What the driver is told of a Spark partition."""

    value: Any


Pack = Callable[[Iterator[pa.RecordBatch], int], Iterator[Parcel | Note]]
"""`pack(batches, slots)`: a Spark partition's rows as parcels for slots 0 … slots - 1, and what is said of them."""
Work = Callable[[Iterator[pa.RecordBatch], str], Any]
"""`work(parcels' rows, write token)`: what a task does with the parcels that came to it."""


@dataclass(frozen=True)
class Packed:
    """A DataFrame's rows in parcels, made once. `notes`: one list of values per Spark partition."""

    notes: tuple[Any, ...]
    _frame: DataFrame
    _bytes: Mapping[int, int]  # by slot
    _cores: int

    def run(self, work: Work) -> list[Any]:
        """What `work` returns in each task; parcels come in the order of the DataFrame's partitions and rows."""
        if not self._bytes:
            return []
        homes, tasks = assign(self._bytes, self._cores)
        table = ", ".join(str(homes.get(slot, 0)) for slot in range(max(homes) + 1))
        chosen = self._frame.where("data is not null").selectExpr(
            "slot", "stream", "piece", "data", f"element_at(array({table}), slot + 1) as home"
        )
        # By the number itself where Spark has that (4.1): its hash may send two homes to one task.
        by_id = getattr(chosen, "repartitionById", None)
        moved = by_id(tasks, "home") if by_id else chosen.repartition(tasks, "home")

        def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            yield _outcome(lambda token: work(parcels_of(batches), token))

        rows = moved.select("stream", "piece", "data").mapInArrow(run, "result binary").collect()
        return [spark.unwrap(row["result"]) for row in rows]


@contextmanager
def packed(frame: DataFrame, pack: Pack) -> Iterator[Packed]:
    """Pack a DataFrame's rows, once, whatever is done with them inside the block. Errors of `pack` come as they are."""
    cores = frame.sparkSession.sparkContext.defaultParallelism
    slots = SLOTS_PER_CORE * cores

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        partition = int(spark.write_token().split("-")[0])
        yield from packing(pack, iter(batches), slots, partition)

    pieces = frame.mapInArrow(run, _DDL).persist()
    try:
        sizes: dict[int, int] = {}
        notes: list[Any] = []
        for row in pieces.where("note is not null").select("note").collect():
            by_slot, said = spark.unwrap(row["note"])
            notes += said
            for slot, size in by_slot.items():
                sizes[slot] = sizes.get(slot, 0) + size
        yield Packed(tuple(notes), pieces, sizes, cores)
    finally:
        pieces.unpersist()


def assign(sizes: Mapping[int, int], cores: int) -> tuple[dict[int, int], int]:
    """Slot → task, so that tasks are alike in bytes, and how many tasks: a multiple of the cores where there are more.

    The largest slot first, each to the task that has least.
    """
    wanted = max(cores, -(-sum(sizes.values()) // _TASK_BYTES))
    tasks = min(len(sizes), -(-wanted // cores) * cores)
    loads = [0] * tasks
    homes = {}
    for slot, size in sorted(sizes.items(), key=lambda item: (-item[1], item[0])):
        homes[slot] = loads.index(min(loads))
        loads[homes[slot]] += size
    return homes, tasks


# ------------------------------------------------------------------------------------------ in a worker


def packing(pack: Pack, batches: Iterator[pa.RecordBatch], slots: int, partition: int) -> Iterator[pa.RecordBatch]:
    sizes: dict[int, int] = {}
    notes: list[Any] = []
    packing = pack(batches, slots)
    number = 0
    while True:
        one = spark.capture(lambda _: next(packing, None), None)
        if one is None or isinstance(one, HudiAssetsError):
            break
        if isinstance(one, Note):
            notes.append(one.value)
            continue
        data = ipc_bytes(one.rows)
        sizes[one.slot] = sizes.get(one.slot, 0) + data.size
        yield pieces_of(one.slot, (partition << 32) + number, data)
        number += 1
    said = one if one is not None else (sizes, notes)
    yield pa.RecordBatch.from_pydict(
        {"slot": [0], "stream": [0], "piece": [0], "data": [None], "note": [spark.dumps(said)]}, PIECES
    )


def ipc_bytes(batch: pa.RecordBatch) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    # Spark copies the bytes some five times, and compresses those that it shuffles: fewer are cheaper than that.
    options = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
    with pa.ipc.new_stream(sink, batch.schema, options=options) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


def pieces_of(slot: int, stream: int, data: pa.Buffer) -> pa.RecordBatch:
    """A parcel's bytes, cut into rows."""
    offsets = np.append(np.arange(0, data.size, _PIECE, dtype=np.int32), np.int32(data.size))
    count = len(offsets) - 1
    cut = pa.BinaryArray.from_buffers(pa.binary(), count, [None, pa.py_buffer(offsets), data])
    columns = [np.full(count, slot, np.int32), np.full(count, stream, np.int64), np.arange(count, dtype=np.int32)]
    return pa.RecordBatch.from_arrays([*map(pa.array, columns), cut, pa.nulls(count, pa.binary())], schema=PIECES)


def parcels_of(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The parcels whose pieces (columns stream, piece, data) come in some order, in the order they were made."""
    streams: dict[int, list[tuple[int, pa.Buffer]]] = {}
    for batch in batches:
        stream, piece = (batch.column(number).to_numpy() for number in (0, 1))
        # Pieces that follow each other lie one after the other in memory too.
        new = (np.diff(stream) != 0) | (np.diff(piece) != 1)
        starts = [0, *(np.flatnonzero(new) + 1).tolist(), len(batch)] if len(batch) else []
        offsets = np.frombuffer(batch.column(2).buffers()[1], np.int32, len(batch) + 1, batch.column(2).offset * 4)
        data = batch.column(2).buffers()[2]
        for start, stop in pairwise(starts):
            part = data.slice(int(offsets[start]), int(offsets[stop] - offsets[start]))
            streams.setdefault(int(stream[start]), []).append((int(piece[start]), part))
    for number in sorted(streams):
        parts = [part for _, part in sorted(streams.pop(number), key=lambda found: found[0])]
        whole = parts[0] if len(parts) == 1 else pa.py_buffer(b"".join(parts))
        with pa.ipc.open_stream(whole) as reader:
            yield from reader


def _outcome(work: Callable[[str], Any]) -> pa.RecordBatch:
    outcome = spark.dumps(spark.capture(work, spark.write_token()))
    return pa.RecordBatch.from_pydict({"result": [outcome]}, pa.schema([("result", pa.binary())]))
