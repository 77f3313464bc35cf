"""Python's cyclic garbage collector, kept off what lives on."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_collecting() -> Iterator[None]:
    """For code that makes very many values which all live on, and no cycles.

    The collector would walk through them again and again, and find nothing: a third of the time of a plan over
    100,000 log files. What else is garbage meanwhile, in other threads too, is collected after it. Not left switched
    off by whatever order threads enter and leave in: who finds it on switches it on again.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
