"""Python's cyclic garbage collector, put off while very many values are made that all live on."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_MANY: Final = 1_000


@contextmanager
def no_collecting(values: int) -> Iterator[None]:
    """For code that makes about so many values which all live on, and no cycles; nothing is done where they are few.

    The collector would walk through them again and again, and find nothing: a third of the time of a plan over
    100,000 log files. Only for code that computes, and ends soon: the process may be a host of ours with work of its
    own in other threads, whose garbage waits meanwhile. It is only put off: nothing is moved between the collector's
    generations, so what is young and dies is still found where the collector looks often.

    Threads may enter and leave in any order. Who finds the collector on switches it on again, so it is never off for
    longer than the one section of that thread; where the program has it off, it stays off.
    """
    if values < _MANY or not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
