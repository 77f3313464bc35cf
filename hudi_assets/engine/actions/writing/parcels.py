"""Parcels as Spark carries them between machines: Arrow bytes, cut into rows of binary data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

import numpy as np
import pyarrow as pa

PIECE = 16 * 1024
"""Bytes to a row: Spark puts 10,000 rows into a batch for Python, whatever their size."""
PIECES = pa.schema(
    [
        ("slot", pa.int32()),
        ("stream", pa.int64()),
        ("piece", pa.int32()),
        ("data", pa.binary()),
        ("note", pa.binary()),
    ]
)


def ipc_bytes(batch: pa.RecordBatch, compression: str | None) -> pa.Buffer:
    """A batch as an Arrow stream of its own."""
    options = pa.ipc.IpcWriteOptions(compression=compression, use_threads=False)
    with pa.ipc.new_stream(sink := pa.BufferOutputStream(), batch.schema, options=options) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


def pieces_of(slot: int, stream: int, data: pa.Buffer) -> pa.RecordBatch:
    """A parcel's bytes, cut into rows."""
    offsets = np.append(np.arange(0, data.size, PIECE, dtype=np.int32), np.int32(data.size))
    count = len(offsets) - 1
    cut = pa.BinaryArray.from_buffers(pa.binary(), count, [None, pa.py_buffer(offsets), data])
    columns = [np.full(count, slot, np.int32), np.full(count, stream, np.int64), np.arange(count, dtype=np.int32)]
    return pa.RecordBatch.from_arrays([*map(pa.array, columns), cut, pa.nulls(count, pa.binary())], schema=PIECES)


def note_row(note: bytes) -> pa.RecordBatch:
    """The row in which a partition says what the driver is to know."""
    return pa.RecordBatch.from_pydict(
        {"slot": [0], "stream": [0], "piece": [0], "data": [None], "note": [note]}, PIECES
    )


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
