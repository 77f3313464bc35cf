"""What Spark's Python workers keep between two tasks."""

from __future__ import annotations

import gc
import itertools
from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa

_OnBatches = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
_TASKS_BEGUN = itertools.count()  # in this process, a worker


def in_workers(run: _OnBatches) -> _OnBatches:
    """For `mapInArrow`: `run`, in a worker that has been told what stays (`spare_what_stays`)."""

    def run_in_worker(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        spare_what_stays()
        return run(batches)

    return run_in_worker


def spare_what_stays() -> None:
    """At each task's begin. At a worker's second one, all that is there is taken out of the garbage collection.

    PySpark collects after each task (daemon.py): over the modules of pyarrow, pandas and the like, 40 ms of CPU.
    The first task has imported them, and its own garbage is collected already.
    """
    if next(_TASKS_BEGUN) == 1:
        gc.freeze()
