"""Rows on their way to the tasks that write them: in parcels of Arrow bytes.

Spark makes rows of its own out of columns, and columns out of rows, at each step that takes Arrow. Here that happens
once at most, where the DataFrame comes in. From there on a parcel waits in a file where all workers are on this
machine, and is a few rows of bytes to Spark's shuffle where they are not.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa

from hudi_assets.engine.actions.writing.parcels import PIECES, ipc_bytes, note_row, parcels_of, pieces_of
from hudi_assets.engine.errors import HudiAssetsError
from hudi_assets.engine.spark import session as spark
from hudi_assets.engine.spark.interface import Frame, Session
from hudi_assets.engine.storage import LocalStorage

SLOTS_PER_CORE = 16
_TASK_BYTES = 256 << 20


@dataclass(frozen=True, slots=True)
class Parcel:
    """Rows that come to one task together with all others of their slot. The schema's metadata comes along."""

    slot: int
    rows: pa.RecordBatch


@dataclass(frozen=True, slots=True)
class Note:
    """What the driver is told of a partition."""

    value: Any


Pack = Callable[[Iterator[pa.RecordBatch], int], Iterator[Parcel | Note]]
"""`pack(batches, slots)`: a partition's rows as parcels for slots 0 … slots - 1, and what is said of them."""
Work = Callable[[Iterator[pa.RecordBatch], str], Any]
"""`work(parcels' rows, write token)`: what a task does with the parcels that came to it."""


@dataclass(frozen=True)
class Packed:
    """A DataFrame's rows in parcels, made once. `notes`: one list of values per partition."""

    notes: tuple[Any, ...]
    _sizes: Mapping[int, int]  # bytes by slot
    _cores: int
    _deliver: Callable[[Mapping[int, int], int, Work], list[Any]]

    def run(self, work: Work) -> list[Any]:
        """What `work` returns in each task; parcels come in the order of the DataFrame's partitions and rows."""
        if not self._sizes:
            return []
        return self._deliver(*assign(self._sizes, self._cores), work)


@contextmanager
def packed(frame: Frame, pack: Pack) -> Iterator[Packed]:
    """Pack a DataFrame's rows, once, whatever is done with them inside the block. Errors of `pack` come as they are."""
    session = spark.session_of(frame)
    cores = spark.parallelism(session)
    slots = SLOTS_PER_CORE * cores
    folder = spark.scratch_folder(session)
    with _shuffled(frame, pack, slots) if folder is None else _in_files(session, frame, pack, slots, folder) as found:
        sizes: dict[int, int] = {}
        for by_slot in found.sizes:
            for slot, size in by_slot.items():
                sizes[slot] = sizes.get(slot, 0) + size
        yield Packed(found.notes, sizes, cores, found.deliver)


class _Found(NamedTuple):
    sizes: Sequence[Mapping[int, int]]
    notes: tuple[Any, ...]
    deliver: Callable[[Mapping[int, int], int, Work], list[Any]]


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


# ------------------------------------------------------------------------------------------ in files of this machine


class Place(NamedTuple):
    """Where a parcel lies."""

    slot: int
    file: str
    offset: int
    size: int


class _Filed(NamedTuple):
    """What one partition left: its parcels, in the order they were made."""

    places: tuple[Place, ...]
    notes: tuple[Any, ...]

    def sizes(self) -> dict[int, int]:
        found: dict[int, int] = {}
        for place in self.places:
            found[place.slot] = found.get(place.slot, 0) + place.size
        return found


@contextmanager
def _in_files(session: Session[Frame], frame: Frame, pack: Pack, slots: int, folder: str) -> Iterator[_Found]:
    scratch = LocalStorage(f"{folder}/parcels-{uuid.uuid4()}")
    try:
        filed = spark.map_rows(frame, lambda batches: file_parcels(scratch, pack(batches, slots)))

        def deliver(homes: Mapping[int, int], tasks: int, work: Work) -> list[Any]:
            shares: list[list[Place]] = [[] for _ in range(tasks)]
            for part in filed:
                for place in part.places:
                    shares[homes[place.slot]].append(place)
            return spark.run_tasks(
                session, lambda places: work(parcels_in_files(scratch, places), spark.write_token()), shares
            )

        yield _Found([part.sizes() for part in filed], tuple(note for part in filed for note in part.notes), deliver)
    finally:
        scratch.delete_tree("")


def file_parcels(scratch: LocalStorage, made: Iterator[Parcel | Note]) -> _Filed:
    """Put a partition's parcels into a file of its own, one after the other. In a worker."""
    name = str(uuid.uuid4())
    places: list[Place] = []
    notes: list[Any] = []
    end = 0
    with scratch.open_new(name) as file:
        for one in made:
            if isinstance(one, Note):
                notes.append(one.value)
                continue
            # Not compressed: the pages go from memory to memory, and are gone before most of them reach the disk.
            data = ipc_bytes(one.rows, None)
            file.write(data)
            places.append(Place(one.slot, name, end, data.size))
            end += data.size
    return _Filed(tuple(places), tuple(notes))


def parcels_in_files(scratch: LocalStorage, places: Sequence[Place]) -> Iterator[pa.RecordBatch]:
    """The parcels in these places, in the same order. In a worker.

    They are mapped: most of their pages are in the memory already, and a copy would take longer than the mapping.
    """
    for place in places:
        with pa.memory_map(scratch.local_path(place.file)) as file:
            file.seek(place.offset)
            data = file.read_buffer(place.size)
        with pa.ipc.open_stream(data) as reader:
            yield from reader


# ------------------------------------------------------------------------------------------ by Spark's shuffle


@contextmanager
def _shuffled(frame: Frame, pack: Pack, slots: int) -> Iterator[_Found]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        partition = int(spark.write_token().split("-")[0])
        yield from packing(pack, batches, slots, partition)

    with spark.carried(frame, run, PIECES) as pieces:
        said = pieces.notes()

        def deliver(homes: Mapping[int, int], tasks: int, work: Work) -> list[Any]:
            return pieces.to_tasks(homes, tasks, lambda batches: work(parcels_of(batches), spark.write_token()))

        yield _Found([sizes for sizes, _ in said], tuple(note for _, notes in said for note in notes), deliver)


def packing(pack: Pack, batches: Iterator[pa.RecordBatch], slots: int, partition: int) -> Iterator[pa.RecordBatch]:
    """A partition's parcels in pieces, and last its note. In a worker."""
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
        # Spark copies the bytes some five times, and compresses those that it shuffles: fewer are cheaper than that.
        data = ipc_bytes(one.rows, "lz4")
        sizes[one.slot] = sizes.get(one.slot, 0) + data.size
        yield pieces_of(one.slot, (partition << 32) + number, data)
        number += 1
    yield note_row(spark.dumps(one if one is not None else (sizes, notes)))
