"""Which slices one Spark task reads, one after the other: a task has a cost of its own. Pure."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from hudi_assets.engine.slices.reader import SliceTask

_MOST_BYTES = 128 << 20  # as spark.sql.files.maxPartitionBytes
_OPEN_BYTES = 4 << 20  # what a slice costs whatever its size, as spark.sql.files.openCostInBytes


def pack(slices: Sequence[SliceTask], parallelism: int) -> list[tuple[SliceTask, ...]]:
    """The slices in tasks of about equal size: as many as run at a time, or a multiple where they are large."""
    sizes = [one.size + _OPEN_BYTES for one in slices]
    rounds = -(-sum(sizes) // (_MOST_BYTES * parallelism))
    count = min(len(slices), rounds * parallelism)
    tasks: list[list[SliceTask]] = [[] for _ in range(count)]
    lightest = [(0, number) for number in range(count)]
    for size, one in sorted(zip(sizes, slices, strict=True), key=lambda pair: -pair[0]):
        held, number = lightest[0]
        tasks[number].append(one)
        heapq.heapreplace(lightest, (held + size, number))
    return [tuple(task) for task in tasks]
